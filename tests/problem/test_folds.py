"""Folds and columns: what each row is in each binary problem, against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit

from dotadd import DataError, DotaddError
from dotadd.data.batches import DenseRows
from dotadd.problem import columns as columns_module
from dotadd.problem.columns import Columns, Tally
from dotadd.problem.folds import Dealer, Folds, require_classes
from dotadd.sources.base import Chunk


def test_every_row_is_tested_once_and_classes_are_shared_out_evenly():
    codes = np.random.default_rng(0).choice(4, 1003, p=[0.6, 0.3, 0.08, 0.02])
    folds = Folds.stratified(codes, 5, seed=1)
    times = np.zeros(len(codes), int)
    for fold in range(5):
        times[folds.held_out(fold)] += 1
        assert not (folds.trains[fold] & folds.tests[fold]).any()
        for code, total in enumerate(np.bincount(codes)):
            assert abs(np.count_nonzero(codes[folds.held_out(fold)] == code) - total / 5) < 1
    assert (times == 1).all()
    assert not np.array_equal(folds.parts, Folds.stratified(codes, 5, seed=2).parts)


def test_rows_are_dealt_alike_in_whatever_pieces_they_come():
    codes = np.random.default_rng(0).integers(0, 3, 500)
    whole, dealer = Dealer(7, 3).deal(codes), Dealer(7, 3)
    pieces = [dealer.deal(some) for some in np.split(codes, [1, 2, 60, 61, 333])]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    for first in (1, 60, 61, 333):  # by a dealer who has not dealt out the rows before
        later = Dealer(7, 3, np.bincount(codes[:first], minlength=3))
        np.testing.assert_array_equal(later.deal(codes[first:]), whole[first:])


def test_a_group_is_on_one_side_and_folds_are_even():
    rng = np.random.default_rng(0)
    groups = rng.geometric(0.02, 2000)
    codes = rng.integers(0, 2, 2000)
    folds = Folds.by_group(groups, codes, 4)
    for fold in range(4):
        rows = folds.held_out(fold)
        assert not set(groups[rows]) & set(np.delete(groups, rows))
        assert abs(len(rows) - 500) < 50
    with pytest.raises(DataError, match="3 folds need 3 groups"):
        Folds.by_group(np.array(["a", "b", "a"]), np.array([0, 1, 0]), 3)


def test_by_time_nothing_is_trained_on_that_comes_after_what_is_tested():
    times = np.random.default_rng(0).integers(0, 50, 300)
    folds = Folds.by_time(times, 4)
    for fold in range(4):
        trained = np.flatnonzero(folds.trains[fold][folds.parts])
        assert len(trained)
        assert times[trained].max() < times[folds.held_out(fold)].min()
    with pytest.raises(DataError, match="more than 4 different times"):
        Folds.by_time(np.arange(100) % 4, 4)


@pytest.mark.parametrize(
    "splitter",
    [KFold(3, shuffle=True, random_state=0), ShuffleSplit(4, random_state=0), TimeSeriesSplit(3), GroupKFold(2)],
)
def test_folds_that_are_given_are_those_of_the_splitter(splitter):
    groups = np.arange(60) // 7
    splits = list(splitter.split(np.zeros((60, 1)), groups=groups))
    folds = Folds.given(iter(splits), 60)
    for fold, (train, test) in enumerate(splits):
        np.testing.assert_array_equal(np.flatnonzero(folds.trains[fold][folds.parts]), np.sort(train))
        np.testing.assert_array_equal(folds.held_out(fold), np.sort(test))


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([([0, 1, 2], [2, 3])], "row 2 is trained on and tested on"),
        ([([0, 1], [4])], "names row 4, and there are 4"),
        ([], "no folds"),
    ],
)
def test_folds_that_cannot_be_are_refused(splits, message):
    with pytest.raises(DotaddError, match=message):
        Folds.given(splits, 4)


def test_a_class_that_a_fold_cannot_train_on_is_named():
    codes = np.array([0] * 10 + [1])
    folds = Folds.stratified(codes, 2, 0)
    with pytest.raises(DataError, match=r"no row of class ham to train on \(1 in all\)"):
        require_classes(folds.trains, folds.tests, folds.counts(codes, 2), np.array(["spam", "ham"]))


def chunk_of(y, weight=None):
    return Chunk(DenseRows(np.zeros((len(y), 1))), np.asarray(y), weight, 0)


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_of_folds_are_those_of_the_definition(weighted):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 200)
    weight = rng.integers(0, 3, 200).astype(float) if weighted else None
    chunk, tally = chunk_of(y, weight), Tally()
    tally.note(chunk)
    targets = tally.targets(0.5, {"b": 3.0}, None)
    folds = Folds.stratified(targets.codes(chunk), 4, 0)
    columns = targets.columns(chunk, folds)
    assert len(columns) == 3 * (4 + 1)
    base = 0.5 * np.where(y == "b", 3.0, 1.0) * (1.0 if weight is None else weight)
    for fold in range(5):
        trained = np.ones(200, bool) if fold == 4 else folds.trains[fold][folds.parts]
        for k, label in enumerate("abc"):
            at = 3 * fold + k
            np.testing.assert_array_equal(columns.sign(at), np.where(y == label, 1, -1))
            np.testing.assert_allclose(columns.cost(at), base * trained, rtol=1e-15)
            rows = rng.integers(0, 200, 17)
            np.testing.assert_array_equal(columns.take(rows).cost(at), columns.cost(at, rows))
            np.testing.assert_array_equal(columns.take(rows).sign(at), columns.sign(at)[rows])
            assert columns[at].cost().tobytes() == columns.cost(at).tobytes()


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"], [-1, 1]])
def test_labels_that_are_counted_some_at_a_time_have_the_same_classes_and_weights(labels, monkeypatch):
    monkeypatch.setattr(columns_module, "COUNTED", 7)
    rng = np.random.default_rng(0)
    y = np.sort(rng.choice(labels, 200))  # so that many pieces have one class alone
    weight = rng.integers(0, 3, 200).astype(float)
    tally = Tally()
    tally.note(chunk_of(y, weight))
    assert tally.classes.tolist() == labels
    assert tally.totals.tolist() == [weight[y == label].sum() for label in labels]


def test_columns_are_cut_joined_and_scaled():
    rng = np.random.default_rng(0)
    signs = [np.where(rng.random(50) < 0.4, 1, -1).astype(np.int8) for _ in range(3)]
    cost = rng.random(50)
    columns = Columns.of(signs, cost)
    for k, sign in enumerate(signs):
        np.testing.assert_array_equal(columns.sign(k), sign)
        np.testing.assert_array_equal(columns.cost(k), cost)
    parts = [columns.take(slice(0, 20)), columns.take(slice(20, 50))]
    np.testing.assert_array_equal(Columns.join(parts).sign(2), signs[2])
    np.testing.assert_array_equal(Columns.join(parts).cost(0), cost)
    np.testing.assert_allclose(columns.times(3.0).cost(1), 3.0 * cost, rtol=1e-15)
    np.testing.assert_array_equal(columns.only([2, 0]).sign(0), signs[2])


def test_more_classes_than_codes_are_refused():
    y = np.arange(20_000)
    tally = Tally()
    tally.note(chunk_of(y))
    with pytest.raises(DotaddError, match=r"20,000 classes are too many for 4 folds: 16,384 at most"):
        tally.targets(1.0, None, None).columns(chunk_of(y), Folds.one_part_each(y % 4, 4))
