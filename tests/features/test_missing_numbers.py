"""Numbers that are missing, scaled: against scikit-learn's scalers, which skip NaN."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_scales import SCALERS, in_chunks, in_parts, same_state

from dotadd import LinearSVM, load, parse
from dotadd.cli import run
from dotadd.data.batches import Strings
from dotadd.data.table import Cells, Table
from dotadd.errors import DataError, FeatureError
from dotadd.features import Category, Number, Shape
from dotadd.features.checks import check_feature_map, materialize

RNG = np.random.default_rng(7)
ROWS = 203
NAMES = ["age", "income", "when", "flag", "rare", "same", "few", "full"]
HOWS = [("std", True), ("std", False), ("robust", True), ("robust", False), ("max", False)]


def holes() -> np.ndarray:
    """Columns with holes: scales, a time in seconds, few values, one value in all, a constant, two values in all."""
    X = RNG.normal(size=(ROWS, 8)) * [10, 1e5, 1e3, 1, 1, 0, 1, 1] + [40, 3e5, 1.6e9, 0, 5, 3, 0, -2]
    X[:, 3] = RNG.integers(0, 3, ROWS)
    X[RNG.random((ROWS, 8)) < [0.3, 0.01, 0.6, 0.5, 1.0, 0.4, 1.0, 0.0]] = np.nan
    X[11, 4], X[[3, 200], 6] = 5.0, (-7.0, 1.0)
    return X


X = holes()
JOBS = RNG.choice(["nurse", "cook", "pilot"], ROWS)
TABLE = Table.from_columns(
    {name: Cells(numbers=X[:, k]) for k, name in enumerate(NAMES)}
    | {"job": Cells(strings=Strings.from_list(JOBS.tolist()))}
)


def scaled_by_scikit_learn(how, center, numbers=X):
    """What its scaler makes of the values that are there; what is missing is 0."""
    return np.nan_to_num(SCALERS[how](center).fit_transform(numbers))


def learned(text, batch=TABLE):
    phi = parse(text) if isinstance(text, str) else text
    return phi.resolve(Shape.of(batch)).learn(batch)


@pytest.mark.parametrize(("how", "center"), HOWS)
def test_values_that_are_there_make_the_scale_and_indicators_stay_as_they_are(how, center):
    phi = learned(Number(*NAMES).scaled(how, center))
    found = materialize(phi, TABLE).toarray()
    assert np.allclose(found[:, : len(NAMES)], scaled_by_scikit_learn(how, center), rtol=1e-6, atol=1e-6)
    assert np.array_equal(found[:, len(NAMES) :], np.isnan(X))
    check_feature_map(phi, TABLE)


def test_numbers_are_centred_unless_told_otherwise():
    phi = learned(Number(*NAMES).scaled("std"))
    assert np.array_equal(materialize(phi, TABLE).toarray()[np.isnan(X).nonzero()], np.zeros(np.isnan(X).sum()))
    assert phi.state()["center"][0] == pytest.approx(np.nanmean(X[:, 0]))


def test_rows_that_come_later_are_scaled_by_what_was_learned():
    phi = learned(Number("age", "full").scaled("std"))
    columns = {"age": [np.nan, 40.0], "full": [np.nan, np.nan]}
    later = Table.from_columns({name: Cells(numbers=np.array(values)) for name, values in columns.items()})
    seen = X[:, [0]]
    expected = (40.0 - np.nanmean(seen)) / np.nanstd(seen)
    assert np.allclose(materialize(phi, later).toarray(), [[0, 0, 1, 1], [expected, 0, 0, 1]], atol=1e-6)


def test_taken_for_zero_it_counts_as_zero():
    found = materialize(learned(Number(*NAMES, missing="zero").scaled("std")), TABLE).toarray()
    assert np.allclose(found, scaled_by_scikit_learn("std", True, np.nan_to_num(X)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("how", "center"), HOWS)
def test_beside_others_and_inside_of_others_it_is_the_same(how, center):
    call = f".scaled({how!r}, center={center})"
    wanted = scaled_by_scikit_learn(how, center)
    flags = np.isnan(X)

    def values(text, slots):
        return materialize(learned(text), TABLE).toarray()[:, slots]

    beside = values(f'Category("job", bits=3) + Number("age", "when"){call}', slice(8, 12))
    assert np.allclose(beside, np.c_[wanted[:, [0, 2]], flags[:, [0, 2]]], atol=1e-6)
    together = values(f'(Number("age", "when") + Number("flag")){call}', slice(None))
    assert np.allclose(together, np.c_[wanted[:, [0, 2]], flags[:, [0, 2]], wanted[:, 3], flags[:, 3]], atol=1e-6)
    mixed = values(f'(Number("age", missing="zero") + Number("age")){call}', slice(1, 3))
    assert np.allclose(mixed, np.c_[wanted[:, 0], flags[:, 0]], atol=1e-6)
    weighed = values(f'2.0 * (3.0 * Number("age", "when")){call}', slice(None))
    assert np.allclose(weighed, 2 * np.c_[wanted[:, [0, 2]], 3 * flags[:, [0, 2]]], atol=1e-6)


def test_an_index_finds_the_places_of_values_and_indicators():
    """Slots are given as features come, so columns are told apart by what they hold."""
    found = materialize(learned('Number("age", "when", "full").indexed().scaled("std", center=True)'), TABLE).toarray()
    wanted = np.c_[scaled_by_scikit_learn("std", True)[:, [0, 2, 7]], np.isnan(X)[:, [0, 2]]]
    assert np.allclose(np.sort(found, axis=1), np.sort(wanted, axis=1), atol=1e-6)


def test_logarithms_of_numbers_are_scaled_where_there_are_numbers():
    found = materialize(learned('Number("income").log().scaled("std")'), TABLE).toarray()
    wanted = scaled_by_scikit_learn("std", True, 1.0 + np.log(X[:, [1]]))
    assert np.allclose(found, np.c_[wanted, np.isnan(X[:, 1])], atol=1e-5)


def test_scaled_twice_is_scaled_by_the_last():
    """What one scale leaves empty the next one does not take for a value."""
    twice = materialize(learned(Number(*NAMES).scaled("robust").scaled("std")), TABLE).toarray()
    assert np.allclose(twice[:, :8], scaled_by_scikit_learn("std", True), atol=1e-5)
    assert np.array_equal(twice[:, 8:], np.isnan(X))


def test_rows_hold_no_more_than_the_numbers_and_indicators_that_are_there():
    phi = learned(Number(*NAMES).scaled("std"))
    assert np.diff(materialize(phi, TABLE).indptr).max() <= len(NAMES)
    assert phi.bound(TABLE) == len(NAMES)


@pytest.mark.parametrize(("how", "center"), HOWS)
@pytest.mark.parametrize("text", ["Number(*names)", "(Number(*names) + Category('job', bits=3))"])
def test_what_is_learned_does_not_depend_on_chunks_or_parts(how, center, text):
    numbers = repr(Number(*NAMES))
    phi = parse(f"{text.replace('Number(*names)', numbers)}.scaled({how!r}, center={center})")
    whole = in_chunks(phi, TABLE, [ROWS])
    for cuts in ([1, ROWS - 1], [0, 3, ROWS - 3], [7] * 29):
        same_state(in_chunks(phi, TABLE, cuts), whole)
    for parts in (1, 2, 5):
        same_state(in_parts(phi, TABLE, parts), whole)


def test_one_part_may_have_nothing_but_holes():
    """A pass that learns quartiles goes on although some parts have nothing to say."""
    column = np.r_[np.full(100, np.nan), np.arange(101.0)]
    batch = Table.from_columns({"a": Cells(numbers=column)})
    phi = in_chunks(Number("a").scaled("robust"), batch, [100, 101])
    assert phi.state()["center"][0] == 50.0
    same_state(phi, in_parts(Number("a").scaled("robust"), batch, 2))


@pytest.mark.filterwarnings("ignore::dotadd.errors.StreamingWarning")
@pytest.mark.parametrize("how", SCALERS)
def test_a_model_from_memory_and_one_from_disk_know_the_same(how, tmp_path):
    frame = pd.DataFrame(X, columns=NAMES).assign(job=JOBS, label=np.where(X[:, 7] > -2, "yes", "no"))
    frame.to_csv(tmp_path / "d.csv", index=False)
    text = f"Number('age', 'when', 'flag', 'few', 'full').scaled({how!r}) + Category('job', bits=4)"
    memory = LinearSVM(text, random_state=0).fit(tmp_path / "d.csv")
    disk = LinearSVM(text, random_state=0, solver="stream").fit(tmp_path / "d.csv")
    same_state(memory.model_.phi, disk.model_.phi)
    memory.save(tmp_path / "m")
    model = load(tmp_path / "m")
    same_state(model.phi, memory.model_.phi)
    assert np.array_equal(model.decision_function(frame), memory.decision_function(frame))


def test_models_that_took_missing_values_for_zero_still_do():
    """Their state says nothing of slots that rows may leave out, and has scales for indicators."""
    phi = learned(Number("age", "full").scaled("std"))
    counted = np.c_[np.nan_to_num(X[:, [0, 7]]), np.isnan(X[:, [0, 7]])]
    old = phi.with_state({"center": counted.mean(0), "factor": np.array([0.1, 1, 2, 1], np.float32)})
    wanted = (counted - counted.mean(0)) * [0.1, 1, 2, 1]
    assert np.allclose(materialize(old, TABLE).toarray(), wanted, rtol=1e-6)
    same_state(old.with_state(old.state()), old)
    with pytest.raises(ValueError, match="optional"):
        phi.with_state(phi.state() | {"optional": np.ones(3, bool)})


@pytest.mark.parametrize("how", SCALERS)
@pytest.mark.parametrize("text", ["Number('full', 'none')", "(Number('full') + 2.0 * Number('age', 'none'))"])
def test_a_column_without_any_value_is_refused_by_name(how, text):
    batch = Table.from_columns(
        {name: Cells(numbers=X[:, 0]) for name in ("full", "age")} | {"none": Cells(X[:, 0] * np.nan)}
    )
    with pytest.raises(DataError, match=r"^column 'none': no row has a value; leave it out$"):
        learned(f"{text}.scaled({how!r})", batch)
    there = Shape.of(Table.from_columns(dict.fromkeys(("full", "age", "none"), Cells(numbers=X[:, 0]))))
    phi = parse(f"{text}.scaled({how!r})").resolve(there)  # rows that have a value may be left out
    with pytest.raises(FeatureError, match="column 'none': no row has a value"):
        phi.learn(batch)


@pytest.mark.parametrize("call", ["", ".scaled('std')"])
@pytest.mark.parametrize("missing", ["indicator", "zero"])
def test_a_column_without_any_value_is_refused_with_its_file_and_nothing_is_written(tmp_path, call, missing, capsys):
    data = pd.DataFrame({"age": X[:, 7], "none": np.nan, "label": np.arange(ROWS) % 2})
    phi = f"Number('age', 'none', missing={missing!r}){call}"
    with pytest.raises(DataError, match=r"^column 'none': no row has a value; leave it out$"):
        LinearSVM(phi).fit(data, data["label"])
    data.to_csv(tmp_path / "t.csv", index=False)
    data.to_parquet(tmp_path / "t.parquet")
    data.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for path in sorted(tmp_path.glob("t.*")):
        for more in ([], ["--memory", "50KB"]):
            assert run(["train", str(path), "--features", phi, "-o", str(tmp_path / "m"), "--quiet", *more]) == 2
            assert f"error: {path}: column 'none': no row has a value; leave it out\n" in capsys.readouterr().err
            assert not (tmp_path / "m").exists()


def test_one_value_is_enough_and_none_are_needed_to_predict(tmp_path):
    data = pd.DataFrame({"age": X[:, 7], "rare": np.nan})
    data.loc[ROWS - 1, "rare"] = 1.0
    y = np.arange(ROWS) % 2
    svm = LinearSVM("Number('age', 'rare')", max_passes=5, tol=1.0).fit(data, y)
    data["rare"] = np.nan
    svm.save(tmp_path / "m")
    assert load(tmp_path / "m").decision_function(data[:3]).tolist() == svm.decision_function(data[:3]).tolist()
    LinearSVM("Number('age', 'rare')", max_passes=5, tol=1.0).fit(data, y, start=svm.model_)


def test_slots_that_are_left_out_are_no_holes():
    """Two rows have a value in "few", one in "rare", and all are missing in fewer rows than are asked for."""
    found = materialize(learned('Number("few", "rare", "full").frequent(min_df=2).scaled("std")'), TABLE).toarray()
    wanted = scaled_by_scikit_learn("std", True)[:, [6, 7]]
    assert np.allclose(found[:, [0, 2]], wanted, atol=1e-6)
    assert not found[:, 1].any()


def test_a_category_has_no_holes():
    phi = (Number("age") + Category("job", bits=3)).scaled("std")
    dense = materialize(learned(phi), TABLE).toarray()
    counts = materialize(Category("job", bits=3), TABLE)
    assert np.allclose(dense[:, 2:], SCALERS["std"](False).fit_transform(counts).toarray(), atol=1e-6)
