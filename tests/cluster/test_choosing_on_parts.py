"""Choosing C on parts of the data: the folds, the scores and the C of one machine that reads the same rows in order."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from problems import Counting, texts
from sklearn.model_selection import KFold
from test_parts_keep_rows import ROOM, parts_of

import dotadd
from dotadd import DataError, DotaddError, LinearSVMCV
from dotadd.cluster import folds, requests
from dotadd.cluster.engine import LocalEngine, PartsLostError
from dotadd.cluster.folds import Counted
from dotadd.cluster.requests import Begin
from dotadd.cluster.shard import Shard
from dotadd.estimators.protocol import columns_read

CS = [1e-4, 1e-3, 1e-2]
TIGHT = {"cv_tol": 1e-6, "tol": 1e-4, "random_state": 0, "dtype": "float64"}
PHI = "Number('a', 'b', 'c', 'd')"
LIKE = columns_read(PHI)
SHARES = [90, 0, 200, 70]  # rows of each part


def rows(classes=2, seed=0):
    """Rows of a table, in whose first lines one class is rare; with a weight, a person and a day."""
    rng = np.random.default_rng(seed)
    n = sum(SHARES)
    X = 3.0 * rng.normal(size=(n, 4))
    y = np.argmax(X @ rng.normal(size=(4, classes)) + 3.0 * rng.normal(size=(n, classes)), axis=1)
    order = np.argsort(y + 2.0 * rng.random(n) * (y == 0), kind="stable")
    return np.column_stack([X, rng.integers(1, 4, n), rng.geometric(0.05, n), rng.integers(0, 40, n)])[order], y[order]


def written(folder, X, y, shares=SHARES):
    """A file for each share, and one of all."""
    names = "label,a,b,c,d,weight,person,day\n"
    lines = [
        ",".join(map(str, [label, *row[:4], int(row[4]), f"p{row[5]:g}", int(row[6])]))
        for label, row in zip(y, X, strict=True)
    ]
    ends = np.cumsum([0, *shares])
    for number, (first, stop) in enumerate(pairwise(ends)):
        (folder / f"{number}.csv").write_text(names + "".join(f"{line}\n" for line in lines[first:stop]))
    (folder / "all.csv").write_text(names + "".join(f"{line}\n" for line in lines))
    return [str(folder / f"{number}.csv") for number in range(len(shares))], str(folder / "all.csv")


def shards(paths, memory=1 << 24, **reading):
    """A part for each file, of which some have no rows."""
    reading = {"label": "label", "like": LIKE} | reading
    sources = [dotadd.open(one, **reading) if share else None for one, share in zip(paths, SHARES, strict=True)]
    return [Shard(one, memory, number=k) for k, one in enumerate(sources)]


def fitted(folder, X, y, fit=None, *, memory=1 << 24, ids=(), **options):
    """What parts find, and what one machine does."""
    parts, whole = written(folder, X, y)
    reading = {"weight": "weight", "label": "label", "ids": list(ids), "like": LIKE}
    engine = LocalEngine(shards(parts, memory, **reading))
    options = {"Cs": CS, "cv": 4} | TIGHT | options
    there = LinearSVMCV(PHI, **options).fit(None, engine=engine, **(fit or {}))
    here = LinearSVMCV(PHI, **options).fit(dotadd.open(whole, **reading), **(fit or {}))
    return engine, there, here


def assert_alike(there, here, atol=0.012):
    np.testing.assert_allclose(there.scores_, here.scores_, atol=atol)  # a row near the border may change sides
    assert there.C_ == here.C_
    for name in ("mean_test_score", "std_test_score", "pooled_test_score"):
        np.testing.assert_allclose(there.cv_results_[name], here.cv_results_[name], atol=atol)
    assert (there.cv_results_["max_gap"] <= there.cv_tol).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_scores_and_choice_are_those_of_one_machine(tmp_path, classes, loss):
    X, y = rows(classes)
    _, there, here = fitted(tmp_path, X, y, loss=loss)
    assert_alike(there, here)
    assert there.result_.gap <= 1e-4 if classes == 2 else all(one.gap <= 1e-4 for one in there.result_)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=0.02 * np.abs(here.coef_).max())
    assert not hasattr(there, "held_out_scores_")  # they stay with the parts
    assert there.model_.training["cross_validation"]["C"] == CS


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "f1_macro", "f1_micro", "matthews_corrcoef"])
@pytest.mark.parametrize("classes", [2, 3])
def test_measures_are_those_of_one_machine(tmp_path, scoring, classes):
    X, y = rows(classes)
    _, there, here = fitted(tmp_path, X, y, scoring=scoring, refit=False)
    assert_alike(there, here, 0.02)
    assert not hasattr(there, "model_")


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_areas_are_those_of_one_machine(tmp_path, scoring):
    _, there, here = fitted(tmp_path, *rows(), scoring=scoring, refit=False)
    assert_alike(there, here, 0.003)
    with pytest.raises(DotaddError, match="is for two classes, and there are 3"):
        fitted(tmp_path, *rows(3), scoring=scoring)


@pytest.mark.parametrize("memory", [1 << 24, 9_000], ids=["loaded", "read"])
@pytest.mark.parametrize(
    ("fit", "ids"),
    [({"groups": "person"}, ["person"]), ({"times": "day"}, ["day"]), ({"times": True}, [])],
    ids=["groups", "times", "in order"],
)
def test_folds_by_group_and_by_time_are_those_of_one_machine(tmp_path, fit, ids, memory):
    X, y = rows()
    if fit.get("times") is True:  # classes have to be there from the beginning
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
    engine, there, here = fitted(tmp_path, X, y, fit, ids=ids, memory=memory, refit=False)
    assert_alike(there, here)
    loaded = [part.rows.loaded > 0 for part in engine.members if len(part.rows)]
    assert all(loaded) or memory < 1 << 20
    assert not all(loaded) or memory > 9_000


def test_a_row_is_never_tested_by_what_was_trained_on_its_group(tmp_path):
    X, y = rows()
    engine, _, _ = fitted(tmp_path, X, y, {"groups": "person"}, ids=["person"], refit=False)
    tested = []
    for part in engine.members:
        folds = part.rows.folds
        if folds is not None:
            people = part.rows.labels(part.task, "person")[1].to_pylist()
            tested += [(one, fold) for fold in range(4) for one in np.array(people)[folds.held_out(fold)].tolist()]
            assert not (folds.trains & folds.tests).any()
    assert len(tested) == len(y)
    assert len(set(tested)) == len({one for one, _ in tested})


def test_values_of_c_are_where_the_data_is_and_come_after_each_other_where_there_is_no_room(tmp_path, monkeypatch):
    X, y = rows()
    X[:, :4] *= 100.0
    _, there, here = fitted(tmp_path, X, y, Cs=4, cv_tol=1e-3, refit=False)
    np.testing.assert_array_equal(there.cv_results_["param_C"], here.cv_results_["param_C"])
    monkeypatch.setattr(requests, "available", lambda: 4)
    engine, apart, _ = fitted(tmp_path, X, y, Cs=4, cv_tol=1e-3, refit=False)
    assert all(part.task.problems == 4 for part in engine.members)
    np.testing.assert_allclose(apart.scores_, there.scores_, atol=0.02)


@pytest.mark.parametrize("solver", ["cocoa", "average"])
def test_rows_of_phi_are_made_once_for_all_folds_and_the_machine_of_all_rows(solver):
    lines, made = texts(60), np.zeros(20, int)
    LinearSVMCV(Counting(made), Cs=3, cv=2, solver=solver, random_state=0).fit(
        None, engine=parts_of(lines, *[ROOM] * 3)
    )
    assert made.tolist() == [3] * 20


@pytest.mark.parametrize("at", [9, 14, 40])
def test_a_part_that_is_lost_changes_no_score(tmp_path, at):
    X, y = rows()

    class Losing(LocalEngine):
        """Loses a part in the middle of a round, once."""

        def round(self, request):
            if isinstance(request, Begin):
                self.begun = request
            self.left = getattr(self, "left", at) - 1
            if self.left or request.prepares:
                return super().round(request)
            request.answer(self.members[0])
            self.members[2] = Shard(self.members[2].rows.source, 1 << 24, number=2)
            self.begun.answer(self.members[2])
            raise PartsLostError([2])

    parts, _ = written(tmp_path, X, y)
    found = []
    for kind in (LocalEngine, Losing):
        engine = kind(shards(parts, weight="weight"))
        found.append(LinearSVMCV(PHI, Cs=CS, cv=4, **TIGHT).fit(None, engine=engine))
    assert engine.left < 0
    assert_alike(found[1], found[0])


def test_fits_are_told_as_they_are_done_and_limits_and_ctrl_c_end_them(tmp_path):
    X, y = rows(3)
    told = []
    parts, _ = written(tmp_path, X, y)

    def engine():
        return LocalEngine(shards(parts))

    svm = LinearSVMCV(PHI, Cs=CS, cv=2, random_state=0)
    svm.fit(None, engine=engine(), on_progress=lambda _, k, n: told.append((k, n)))
    total = 3 * 2 * 3 + 3
    assert {n for _, n in told} == {total}
    assert [k for k, _ in told if k < total - 3] == list(range(total - 3))
    assert {k for k, _ in told if k >= total - 3} == set(range(total - 3, total))
    with pytest.raises(DotaddError, match="before one C was tried"):
        LinearSVMCV(PHI, Cs=CS, cv=2, max_time=1e-9).fit(None, engine=engine())

    def press(progress, k, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LinearSVMCV(PHI, Cs=CS, cv=2).fit(None, engine=engine(), on_progress=press)


@pytest.mark.parametrize(
    ("options", "fit", "complaint"),
    [
        ({"cv": KFold(3)}, {}, "cv= is a number of folds: a splitter"),
        ({"scoring": "neg_log_loss"}, {}, "scoring is 'neg_log_loss'; on a cluster it is one of accuracy,"),
        ({"scoring": len}, {}, "on a cluster it is one of"),
        ({"probability": "sigmoid"}, {}, "stay with the parts"),
        ({"threshold": "recall=0.9"}, {}, "stay with the parts"),
        ({}, {"groups": [1, 2]}, "groups= is the name of a column"),
        ({}, {"times": np.arange(3)}, "times= is the name of a column"),
        ({}, {"groups": "person"}, "column 'person' is not brought along"),
        ({}, {"y": [1]}, "labels and weights are read from the files"),
        ({}, {"keep_cache": False}, "copies stay with the workers"),
        ({"cv": 400}, {}, "and 400 folds need 400 or more"),
        ({"solver": "dcd"}, {}, "works on one machine"),
        ({"intercept": "free"}, {}, "free intercept"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_line(tmp_path, options, fit, complaint):
    parts, _ = written(tmp_path, *rows())
    engine = LocalEngine(shards(parts))
    with pytest.raises(DotaddError, match=complaint) as caught:
        LinearSVMCV(PHI, **{"Cs": CS} | options).fit(None, engine=engine, **fit)
    assert "\n" not in str(caught.value)


def test_folds_that_cannot_be_are_refused_as_on_one_machine(tmp_path):
    X, y = rows()
    y[:] = 0
    y[-3:] = 1
    with pytest.raises(DataError, match="class 1 has 3 rows, and 4 folds need 4 or more"):
        fitted(tmp_path, X, y)
    with pytest.raises(DataError, match="to train on"):
        fitted(tmp_path, X, y, {"times": True})
    X[:, 5] = 1
    with pytest.raises(DataError, match="4 folds need 4 groups or more, and there are 1"):
        fitted(tmp_path, X, y, {"groups": "person"}, ids=["person"])


def test_a_column_of_too_many_values_or_of_two_kinds_is_refused(tmp_path, monkeypatch):
    X, y = rows()
    monkeypatch.setattr(folds, "MOST_NUMBERS", 30)
    with pytest.raises(DotaddError, match="column 'day' has more than 15 values"):
        fitted(tmp_path, X, y, {"times": "day"}, ids=["day"])
    numbers, words = (
        Counted.of("day", pa.chunked_array([some]), np.zeros(2, np.int64), 2) for some in ([1, 2], ["1st", "2nd"])
    )
    with pytest.raises(DotaddError, match="column 'day' has values of different kinds in different files: int64 and s"):
        Counted.joined([numbers, words])
