"""Several labels a row, however they are given: as scikit-learn's MultiLabelBinarizer would read them."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

from dotadd import open as open_source
from dotadd.errors import DataError, DotaddError
from dotadd.sources.convert import convert
from dotadd.sources.label_sets import members

NAMES = ["wheat", "grain", "oil", "gold, fine"]


def random_sets(rng, labels, rows=60):
    return [rng.choice(labels, size=rng.integers(0, 4), replace=False).tolist() for _ in range(rows)]


def indicators(y, classes):
    offsets, numbers, strange = members(y, np.asarray(classes))
    assert not strange
    return sp.csr_array((np.ones(len(numbers)), numbers, offsets), (len(y), len(classes))).toarray()


@pytest.mark.parametrize("labels", [NAMES, [3, 1, 40, -2]])
@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, np.array])
def test_lists_and_sets_are_what_scikit_learn_reads(labels, kind):
    rows = random_sets(np.random.default_rng(0), labels)
    oracle = MultiLabelBinarizer().fit(rows)
    given = [kind(row) for row in rows]
    for y in (given, pd.Series(given)):
        found = open_source(np.zeros((len(rows), 1)), y).load().y
        np.testing.assert_array_equal(indicators(found, oracle.classes_), oracle.transform(rows))


@pytest.mark.parametrize(
    "make", [np.array, np.ndarray.tolist, list, sp.csr_array, sp.coo_matrix, lambda Y: np.array(Y, bool), pd.DataFrame]
)
def test_indicators_are_the_numbers_of_their_columns(make):
    Y = (np.random.default_rng(1).random((50, 7)) < 0.3).astype(np.int64)
    found = open_source(np.zeros((50, 1)), make(Y)).load().y
    np.testing.assert_array_equal(indicators(found, range(7)), Y)
    assert len({id(row) for row in found}) == len(set(found)), "the same labels share one tuple"


def written(folder, rows, separator):
    """The same rows in all formats: what to open, and how."""
    texts = [f"text {k}" for k in range(len(rows))]
    joined = [separator.join(map(str, row)) for row in rows]
    for name, delimiter in (("x.csv", ","), ("x.tsv", "\t")):
        with open(folder / name, "w", newline="") as file:
            lines = csv.writer(file, delimiter=delimiter)
            lines.writerows([("text", "topics"), *zip(texts, joined, strict=True)])
    lines = [json.dumps({"text": text, "topics": row}) for text, row in zip(texts, rows, strict=True)]
    (folder / "x.jsonl").write_text("\n".join(lines) + "\n")
    lines = [json.dumps({"text": text, "topics": row}) for text, row in zip(texts, joined, strict=True)]
    (folder / "joined.jsonl").write_text("\n".join(lines) + "\n")
    pq.write_table(pa.table({"text": texts, "topics": pa.array(rows)}), folder / "x.parquet")
    empty = [cell or None for cell in joined]
    pq.write_table(pa.table({"text": texts, "topics": pa.array(empty, pa.string())}), folder / "joined.parquet")
    apart = {"separator": separator}
    return {
        "x.csv": apart, "x.tsv": apart, "x.jsonl": {}, "joined.jsonl": apart, "x.parquet": {}, "joined.parquet": apart,
    }  # fmt: skip


@pytest.mark.parametrize("labels", [NAMES, [3, 1, 40, 2]])
def test_all_formats_tell_the_same_labels_in_pieces_of_any_size(tmp_path, labels):
    rows = random_sets(np.random.default_rng(2), labels, 300)
    oracle = MultiLabelBinarizer().fit(rows)
    for name, options in written(tmp_path, rows, "|").items():
        source = open_source(tmp_path / name, column="text", label="topics", **options)
        names = oracle.classes_
        if name == "joined.parquet":  # whose column is text
            names = np.array([str(label) for label in names.tolist()])
        for nbytes in (1 << 25, 500):
            found = np.concatenate([chunk.y for chunk in source.chunks(nbytes)])
            np.testing.assert_array_equal(indicators(found, names), oracle.transform(rows), err_msg=name)


@pytest.mark.parametrize("labels", [NAMES, [3, 1, 40, 2]])
def test_a_copy_in_arrow_has_the_same_labels(tmp_path, labels):
    rows = [[]] * 5 + random_sets(np.random.default_rng(3), labels)
    for name, options in written(tmp_path, rows, "|").items():
        source = open_source(tmp_path / name, column="text", label="topics", **options)
        for copy in ("copy.arrow", "copy.parquet"):
            convert(source, tmp_path / copy)
            assert open_source(tmp_path / copy).load().y.tolist() == source.load().y.tolist()


def test_an_empty_cell_and_null_are_rows_without_labels(tmp_path):
    (tmp_path / "x.csv").write_text('text,topics\na,\nb," x , y"\nc,x\n')
    assert open_source(tmp_path / "x.csv", label="topics", separator=",").load().y.tolist() == [(), ("x", "y"), ("x",)]
    (tmp_path / "x.jsonl").write_text('{"text": "a", "topics": ["x"]}\n{"text": "b", "topics": null}\n')
    assert open_source(tmp_path / "x.jsonl", label="topics").load().y.tolist() == [("x",), ()]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([[0, -1], [1, 0]]), "row 0, column 1 is -1"),
        (np.array([[0, 0.5], [1, 0]]), "row 0, column 1 is 0.5"),
        (sp.csr_array([[0, 3], [1, 0]]), "row 0, column 1 is another number"),
        ([["a"], "b"], "row 1 of y is str"),
        ([["a"], None], "row 1 of y is NoneType"),
        ([["a", ""], []], "row 0 of y: a label is empty"),
        ([["a", 1.5], []], "row 0 of y: a label is 1.5"),
        ([["a"], [1]], "text and labels that are numbers"),
        ([["a"]], "y has 1 entries, and there are 2 examples"),
        (np.array([["a", "b"], ["c", "d"]]), "one-dimensional"),
    ],
)
def test_labels_that_cannot_be_are_refused_in_one_line(y, message):
    with pytest.raises(DataError, match=message) as caught:
        open_source(np.zeros((2, 1)), y).load()
    assert "\n" not in str(caught.value)


def test_an_empty_label_between_separators_names_its_line(tmp_path):
    (tmp_path / "x.csv").write_text('text,topics\na,x\nb,"x,,y"\nc,x\n')
    with pytest.raises(DataError, match=r"x\.csv:3: a label of 'x,,y' is empty"):
        open_source(tmp_path / "x.csv", label="topics", separator=",").load()
    left = open_source(tmp_path / "x.csv", label="topics", separator=",", on_bad_row="skip").load()
    assert left.y.tolist() == [("x",), ("x",)]
    pq.write_table(pa.table({"text": ["a", "b"], "topics": ["x", "x,,y"]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet: row 1: a label of 'x,,y' is empty"):
        open_source(tmp_path / "x.parquet", column="text", label="topics", separator=",").load()


def test_a_name_among_numbers_and_a_separator_of_nothing_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("text,topics\n" + 'a,"1,2"\n' * 30 + 'b,"1,x"\n')
    with pytest.raises(DataError, match=r"x\.csv:32: label 'x' is no whole number"):
        open_source(tmp_path / "x.csv", label="topics", separator=",").load()
    with pytest.raises(DotaddError, match="separator=''"):
        open_source(tmp_path / "x.csv", label="topics", separator="")
