"""Models know their columns by name: order and further columns do not matter, and what is missing is refused."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dotadd
from dotadd import DataError, KernelSVM, LinearSVM
from dotadd.cli import run
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.shard import Shard
from dotadd.sources.convert import convert

NAMES = ["age", "height", "mass"]
OTHER_ORDER = ["mass", "note", "rich", "age", "shoe", "height"]  # with the label, a number and a text nobody asked for


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    frame = pd.DataFrame(X, columns=NAMES)
    frame["rich"] = np.where(X @ [1.0, -2.0, 0.5] > 0.1, "yes", "no")
    frame["shoe"] = rng.normal(size=n)
    frame["note"] = [f"a{k} b" for k in range(n)]
    return X, frame


def written(frame, path):
    """The frame as a file whose ending tells the format."""
    match path.suffix:
        case ".csv" | ".tsv":
            frame.to_csv(path, sep="," if path.suffix == ".csv" else "\t", index=False)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dict("records")))
        case ".parquet":
            pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
        case ".arrow":
            feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), str(path), compression=None)
    return path


def as_converted(frame, path):
    """Written by `convert`, which puts all numbers into one column and notes their names."""
    numbers = frame.drop(columns="note")
    label = {"label": "rich"} if "rich" in frame else {}
    convert(dotadd.open(written(numbers, path.with_suffix(".csv")), **label), path)
    return path


FORMS = {
    "csv": lambda frame, folder: written(frame, folder / "d.csv"),
    "tsv": lambda frame, folder: written(frame, folder / "d.tsv"),
    "jsonl": lambda frame, folder: written(frame, folder / "d.jsonl"),
    "parquet": lambda frame, folder: written(frame, folder / "d.parquet"),
    "arrow": lambda frame, folder: written(frame, folder / "d.arrow"),
    "converted": lambda frame, folder: as_converted(frame, folder / "d.arrow"),
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "table": lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=False),
    "opened": lambda frame, folder: dotadd.open(frame.drop(columns="note")),
}


def trained(machine, folder, form="csv", **parameters):
    """A machine fitted on people, whose columns stand as in NAMES, saved and loaded again."""
    train = folder / "train"
    train.mkdir()
    frame = people()[1][[*NAMES, "rich"]]
    data = FORMS[form](frame.assign(note="-") if form == "converted" else frame, train)
    svm = machine(random_state=0, **parameters).fit(data if form == "converted" else dotadd.open(data, label="rich"))
    svm.save(folder / "m.dotadd")
    return svm, dotadd.load(folder / "m.dotadd")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("machine", [LinearSVM, KernelSVM])
def test_columns_are_found_by_name_in_any_order_among_others(tmp_path, machine, form):
    svm, model = trained(machine, tmp_path)
    X, frame = people(seed=1)
    expected = svm.decision_function(X)
    shuffled = FORMS[form](frame[OTHER_ORDER], tmp_path)
    np.testing.assert_allclose(model.decision_function(shuffled), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model.predict(shuffled), svm.classes_[(expected > 0).astype(int)])
    np.testing.assert_allclose(svm.model_.decision_function(shuffled), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet", "arrow", "converted", "polars", "table", "pandas"])
def test_every_table_tells_its_names_to_the_model(tmp_path, form):
    svm, model = trained(LinearSVM, tmp_path, form)
    X, frame = people(seed=1)
    shuffled = written(frame[OTHER_ORDER], tmp_path / "d.csv")
    np.testing.assert_allclose(model.decision_function(shuffled), svm.decision_function(X), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::dotadd.errors.StreamingWarning")
@pytest.mark.parametrize("solver", ["stream", "block_minimization", "ocas"])
def test_names_survive_training_on_a_stream(tmp_path, solver):
    svm, model = trained(LinearSVM, tmp_path, solver=solver, memory="1KB")
    X, frame = people(seed=1)
    shuffled = written(frame[OTHER_ORDER], tmp_path / "d.csv")
    np.testing.assert_allclose(model.decision_function(shuffled), svm.decision_function(X), rtol=1e-5, atol=1e-6)
    assert model.columns.label == "rich"


@pytest.mark.parametrize("form", FORMS)
def test_missing_columns_are_refused_by_name_in_one_line(tmp_path, form):
    _, model = trained(LinearSVM, tmp_path)
    data = FORMS[form](people()[1].drop(columns=["age", "mass"]), tmp_path)
    with pytest.raises(DataError, match=r"lacks the columns 'age', 'mass' .*'height'") as caught:
        model.predict(data)
    assert "\n" not in str(caught.value)


def test_labels_are_looked_for_where_they_are_wanted_and_nowhere_else(tmp_path):
    _, model = trained(LinearSVM, tmp_path)
    frame = people(seed=1)[1][OTHER_ORDER]
    unknown = written(frame.assign(rich=None), tmp_path / "unknown.parquet")
    known = written(frame, tmp_path / "known.parquet")
    np.testing.assert_array_equal(model.predict(unknown), model.predict(known))
    labels = [chunk.y for chunk, _ in model.decision_chunks(dotadd.open(known), labels=True)]
    assert np.concatenate(labels).tolist() == frame["rich"].tolist()


def test_a_feature_called_label_stays_a_feature(tmp_path):
    X, frame = people()
    svm = LinearSVM(random_state=0).fit(frame[NAMES].rename(columns={"mass": "label"}), frame["rich"])
    path = written(frame[["mass", "height", "age"]].rename(columns={"mass": "label"}), tmp_path / "d.csv")
    np.testing.assert_allclose(svm.model_.decision_function(path), X @ svm.coef_[0] + svm.intercept_, rtol=1e-4)


@pytest.mark.parametrize("machine", [LinearSVM, KernelSVM])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "pandas", "polars"])
def test_a_column_of_text_is_found_by_name(tmp_path, machine, form):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(40)]
    frame = pd.DataFrame({"where": "here", "age": 1.0, "dna": texts, "y": np.arange(40) % 2})
    svm = machine("Spectrum(2)", random_state=0)
    svm.fit(dotadd.open(written(frame, tmp_path / "train.csv"), column="dna", label="y")).save(tmp_path / "m")
    model, data = dotadd.load(tmp_path / "m"), FORMS[form](frame[["y", "dna", "age", "where"]], tmp_path)
    np.testing.assert_array_equal(model.decision_function(data), svm.decision_function(texts))
    renamed = frame.rename(columns={"dna": "rna"})
    with pytest.raises(DataError, match=r"lacks the column 'dna' .*'rna'.*--column"):
        model.predict(FORMS[form](renamed, tmp_path))
    again = model.decision_function(dotadd.open(FORMS[form](renamed, tmp_path), column="rna"))
    np.testing.assert_array_equal(again, svm.decision_function(texts))


def test_files_without_a_header_stay_positional(tmp_path):
    X, frame = people()
    frame[["rich", *NAMES]].to_csv(tmp_path / "train.csv", index=False, header=False)
    svm = LinearSVM(random_state=0).fit(dotadd.open(tmp_path / "train.csv", label=0))
    svm.save(tmp_path / "m")
    model, expected = dotadd.load(tmp_path / "m"), svm.decision_function(X)
    np.testing.assert_array_equal(model.decision_function(tmp_path / "train.csv"), expected)  # the header is not lost
    np.testing.assert_array_equal(model.decision_function(dotadd.open(tmp_path / "train.csv", label=0)), expected)
    frame[NAMES].to_csv(tmp_path / "bare.csv", index=False, header=False)
    np.testing.assert_array_equal(model.decision_function(tmp_path / "bare.csv"), expected)
    named = frame[NAMES].rename(columns=dict(zip(NAMES, "abc", strict=True)))
    np.testing.assert_array_equal(model.decision_function(named), expected)


def test_arrays_stay_positional(tmp_path):
    svm, model = trained(LinearSVM, tmp_path)
    X = people(seed=1)[0]
    np.testing.assert_array_equal(model.decision_function(X), svm.decision_function(X))
    plain = LinearSVM(random_state=0).fit(*[people()[0], people()[1]["rich"]])
    assert plain.model_.columns is None
    table = people(seed=1)[1][["mass", "age", "height"]]
    np.testing.assert_array_equal(plain.model_.decision_function(table), plain.decision_function(table.to_numpy()))


def test_a_model_without_names_loads_and_takes_columns_as_they_come(tmp_path):
    svm, _ = trained(LinearSVM, tmp_path)
    svm.model_.columns = None  # as models were saved before they knew names
    svm.save(tmp_path / "m")
    old, X = dotadd.load(tmp_path / "m"), people(seed=1)[0]
    table = pd.DataFrame(X, columns=["c", "b", "a"])
    np.testing.assert_array_equal(old.decision_function(table), svm.decision_function(X))


def test_the_command_line_finds_columns_and_labels_by_name(tmp_path, capsys):
    X, frame = people()
    train = written(frame[[*NAMES, "rich"]], tmp_path / "train.csv")
    model = tmp_path / "m.dotadd"
    assert run(["train", str(train), "--label", "rich", "-o", str(model), "-q"]) == 0
    shuffled = written(frame[OTHER_ORDER], tmp_path / "d.csv")
    capsys.readouterr()
    assert run(["predict", str(model), str(shuffled)]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    expected = dotadd.load(model).decision_function(X)
    np.testing.assert_allclose([float(score) for _, score in lines], expected, rtol=1e-5, atol=1e-6)
    assert run(["evaluate", str(model), str(shuffled), "--log", str(tmp_path / "log")]) == 0
    right = np.mean([label for label, _ in lines] == frame["rich"])
    assert json.loads((tmp_path / "log").read_text())["accuracy"] == pytest.approx(right)
    lacking = written(frame[["height", "rich"]], tmp_path / "lacking.csv")
    capsys.readouterr()
    assert run(["predict", str(model), str(lacking)]) == 2
    assert "lacking.csv: lacks the columns 'age', 'mass'" in capsys.readouterr().err


def test_parts_tell_their_names_to_the_model(tmp_path):
    X, frame = people()
    halves = [written(frame[[*NAMES, "rich"]][k::2], tmp_path / f"part-{k}.csv") for k in range(2)]
    parts = LocalEngine([Shard(dotadd.open(half, label="rich"), 10**6, number=k) for k, half in enumerate(halves)])
    svm = LinearSVM(random_state=0).fit(None, engine=parts)
    shuffled = written(frame[OTHER_ORDER], tmp_path / "d.csv")
    np.testing.assert_allclose(svm.decision_function(shuffled), svm.decision_function(X), rtol=1e-5, atol=1e-6)
    assert svm.model_.columns.label == "rich"
