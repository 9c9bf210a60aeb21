"""Tables that cannot be used: one line that names file, row and column, exit code 2 and no model, from every format,
in memory and streamed; from data frames the same without a file."""

import json
import os
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dotadd
from dotadd import DataError, DotaddError, LinearSVM
from dotadd.automata.automaton import Automaton
from dotadd.cli import run
from dotadd.data.lattices import Lattices
from dotadd.sources.table import Layout

ROWS, BAD = 1200, 1045
FILES = ["csv", "tsv", "jsonl", "parquet", "arrow"]


def columns(**changed):
    """A table as columns; None is what is missing, and a column may hold several types."""
    usual = {
        "age": [float(row % 50) for row in range(ROWS)],
        "job": [("cook", "nurse")[row % 2] for row in range(ROWS)],
        "dna": [("ACGT", "GATTACA")[row % 2] for row in range(ROWS)],
        "label": [("no", "yes")[row // 3 % 2] for row in range(ROWS)],
    }
    return usual | changed


def with_one(name, value):
    values = columns()[name]
    values[BAD] = value
    return columns(**{name: values})


def arrow_array(values):
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # of several types: Arrow has text for them
        return pa.array([None if value is None else str(value) for value in values])


def write(path, data):
    if path.suffix == ".jsonl":
        rows = zip(*data.values(), strict=True)
        path.write_text("".join(json.dumps(dict(zip(data, row, strict=True))) + "\n" for row in rows))
    elif path.suffix in (".csv", ".tsv"):
        frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in data.items()})
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    else:
        table = pa.table({name: arrow_array(values) for name, values in data.items()})
        pq.write_table(table, path) if path.suffix == ".parquet" else feather.write_feather(table, path)


def place(ending, row):
    """How a complaint names a row: by its line, where there are lines, counted from 1, and a header is one of them."""
    return f":{row + {'jsonl': 1}.get(ending, 2)}" if ending in ("csv", "tsv", "jsonl") else f": row {row}"


NOTHING = columns(age=[None] * ROWS)
CASES = {
    "a column that is not there": (columns(), "Number('size') + Category('job')", "no column 'size'; .*'age'", -1),
    "a word among numbers": (with_one("age", "old"), "Number('age')", "'age'.*old", BAD),
    "a word in the first row": (columns(age=["old", *columns()["age"][1:]]), "Number('age')", "'age'.*old", 0),
    "words where numbers are wanted": (columns(), "Number('age', 'job')", "'job'.*cook", 0),
    "infinity": (with_one("age", np.inf), "Number('age').scaled('std')", "column 'age': value inf is not finite", BAD),
    "a value that has to be there": (
        with_one("age", None), "Number('age', missing='refuse')", "column 'age': the value is missing", BAD,
    ),
    "a letter that DNA does not have": (
        with_one("dna", "AXG"), "Column('dna', Spectrum(3))", "column 'dna': letter 'X'", BAD,
    ),
    "no value at all": (NOTHING, "Number('age').scaled('std')", "column 'age': no row has a value", -1),
    "no value at all, quartiles": (
        NOTHING, "Category('job') + Number('age').scaled('robust')", "column 'age': no row has a value", -1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True], ids=["memory", "streamed"])
@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("case", CASES)
def test_the_command_says_what_is_wrong_in_one_line(tmp_path, monkeypatch, capsys, case, ending, streamed):
    data, phi, complaint, row = CASES[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / f"people.{ending}", data)
    more = ["--solver", "stream", "--memory", "20kB"] if streamed else []
    assert run(["train", f"people.{ending}", "-o", "model", "-q", "--label", "label", "--features", phi, *more]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("dotadd: converting")]
    if row >= 0:
        assert line.startswith(f"dotadd: error: people.{ending}{place(ending, row)}:")
    assert re.search(complaint, line), line
    left = {name for name in os.listdir(tmp_path) if not name.endswith(".dotadd.arrow")}
    assert left == {f"people.{ending}"}, "no model, and nothing half-written"


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("case", CASES)
def test_data_frames_are_refused_with_the_row(kind, case):
    data, phi, complaint, row = CASES[case]
    y = data["label"]
    data = {name: values for name, values in data.items() if name != "label"}
    if kind == "pandas":
        X = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in data.items()})
    else:
        X = pa.table({name: arrow_array(values) for name, values in data.items()})
        X = pl.from_arrow(X) if kind == "polars" else X
    with pytest.raises(DotaddError, match=complaint) as raised:
        LinearSVM(phi).fit(X, y)
    assert "\n" not in str(raised.value)
    if row >= 0:
        assert f"row {row}: " in str(raised.value)


@pytest.mark.parametrize("ending", FILES)
def test_a_column_that_changes_its_type_after_many_chunks_is_told(tmp_path, ending):
    rows = 200_000
    data = {"age": [1.5] * rows, "label": ["no", "yes"] * (rows // 2)}
    data["age"][-2] = "old"
    write(tmp_path / f"people.{ending}", data)
    with pytest.raises(DataError, match=f"people.{ending}{place(ending, rows - 2)}:.*'age'.*old"):
        LinearSVM("Number('age')").fit(tmp_path / f"people.{ending}")


def test_bad_rows_of_an_arrow_table_are_skipped_as_those_of_text_are():
    words = pa.array(["1", "old", None, " 2.5", "", "1_000", "nan"])
    table = pa.table({"age": words, "both": words})
    kinds = Layout.of_cells({"age": "number", "both": "both"})
    source = dotadd.open(table, on_bad_row="skip", like=kinds)
    batch = source.load().batch
    assert np.array_equal(batch.numbers("age"), [1.0, np.nan, 2.5, np.nan, np.nan], equal_nan=True)
    assert [bytes(batch.strings("both")[row]) for row in range(2)] == [b"1", b""]
    assert (source.skipped.count, str(source.skipped.first)) == (2, "row 1: column 'age': 'old' is not a number")


def test_a_column_of_several_types_is_read_as_it_would_stand_in_a_file(tmp_path):
    """As JSON lines say it: 7, "x", true, nothing, 2.5."""
    values = [7, "x", True, None, 2.5, 4.0, np.int64(3), float("nan")]
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object), "n": [1, 2, "3", 4.5, None, " 6", 7, 8]})
    batch = dotadd.open(frame, like=Layout.of_cells({"c": "text", "n": "number"})).load().batch
    assert [bytes(batch.strings("c")[row]) for row in range(8)] == [b"7", b"x", b"true", b"", b"2.5", b"4", b"3", b""]
    assert np.array_equal(batch.numbers("n"), [1, 2, 3, 4.5, np.nan, 6, 7, 8], equal_nan=True)
    with pytest.raises(DataError, match="row 1: column 'c' holds a dict among other types"):
        dotadd.open(pd.DataFrame({"c": ["x", {"a": 1}, 3]}), like=Layout.of_cells({"c": "text"}))


def test_columns_without_a_value_are_empty_whatever_their_type():
    for nothing in (pa.nulls(3), pa.nulls(3, pa.float64()), pa.nulls(3, pa.string())):
        table = pa.table({"n": nothing, "c": nothing})
        batch = dotadd.open(table, like=Layout.of_cells({"n": "number", "c": "text"})).load().batch
        assert np.isnan(batch.numbers("n")).all()
        assert [bytes(batch.strings("c")[row]) for row in range(3)] == [b""] * 3


def test_lattices_in_a_column_of_text_are_refused_with_what_to_do(tmp_path):
    lattices = Lattices.from_automata([Automaton.from_string(labels) for labels in ([1, 2], [2, 1], [1, 1])]).to_arrow()
    table = pa.table({"speech": lattices, "age": [1.0, 2.0, 3.0], "label": [0, 1, 0]})
    pq.write_table(table, tmp_path / "people.parquet")
    for data, where in ((table, ""), (tmp_path / "people.parquet", "people.parquet: ")):
        for phi in ("Column('speech', Rational(ngram(1))) + Number('age')", "Category('speech')"):
            with pytest.raises(DataError, match=f"{where}column 'speech' holds lattices.*holds=\"lattices\""):
                LinearSVM(phi).fit(data)
    rows = [{"speech": [{"to": 1, "word": "a"}], "label": 0}, {"speech": [], "label": 1}]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"people.jsonl:1: field 'speech' is neither text nor a number: \["):
        LinearSVM("Column('speech', Rational(ngram(1)))").fit(tmp_path / "people.jsonl")
