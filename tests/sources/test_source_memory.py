"""Sources over memory: the same memory, one chunk, labels and weights beside it."""

from __future__ import annotations

import os
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from naive_sources import rows_of
from sklearn.base import clone

from dotadd import KernelSVM, LinearSVM
from dotadd.data.batches import DenseRows, Images, SparseRows, Strings
from dotadd.errors import DataError, DotaddError
from dotadd.sources import open as open_source
from dotadd.sources import sound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_not_copied(dtype):
    x = np.arange(12, dtype=dtype).reshape(4, 3)
    source = open_source(x)
    (chunk,) = source.chunks(1)
    assert isinstance(chunk.batch, DenseRows)
    assert np.shares_memory(chunk.batch.values, x)
    assert chunk.batch.values.dtype == dtype
    assert np.shares_memory(source.load().batch.values, x)


def test_memory_maps_stay_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(open_source(x).load().batch.values, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int64, np.bool_, ">f8", np.uint8])
@pytest.mark.parametrize("shape", [(50, 3), (50, 2, 4)])
def test_numpy_files_are_read_in_chunks(tmp_path, dtype, shape):
    x = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    source, whole = open_source(tmp_path / "x.npy"), open_source(x).load()
    chunks = list(source.chunks(7 * x[0].nbytes))
    assert [len(chunk) for chunk in chunks] == [7] * 7 + [1]
    assert [chunk.first_row for chunk in chunks] == list(range(0, 50, 7))
    for batch in (source.load().batch, type(whole.batch).concat(chunk.batch for chunk in chunks)):
        assert type(batch) is type(whole.batch)
        assert batch.values.dtype == whole.batch.values.dtype
        assert np.array_equal(batch.values, whole.batch.values)
    assert open_source(tmp_path / "x.npy", np.arange(50)).load().y.tolist() == list(range(50))


def test_numpy_files_of_any_order_and_of_text_are_read(tmp_path):
    x = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    assert np.array_equal(open_source(tmp_path / "x.npy").load().batch.values, x)
    np.save(tmp_path / "x.npy", np.array(["ab", "c"]))
    assert rows_of(open_source(tmp_path / "x.npy").load().batch) == [b"ab", b"c"]
    np.save(tmp_path / "x.npy", np.empty((0, 3)))
    with pytest.raises(DataError, match="no examples"):
        open_source(tmp_path / "x.npy").load()
    np.save(tmp_path / "x.npy", np.array([[1.0], [np.nan]]))
    with pytest.raises(DataError, match=r"x\.npy: row 1, column 1: the value is missing"):
        open_source(tmp_path / "x.npy").load()


def test_several_numpy_files_are_read_as_one(tmp_path):
    for k in range(3):
        np.save(tmp_path / f"{k}.npy", np.full((2, 2), k))
    assert open_source(str(tmp_path / "*.npy")).load().batch.values[:, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_a_numpy_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((100000, 8)))
    chunks = open_source(path).chunks(10000)
    next(chunks)
    os.truncate(path, 100000)
    with pytest.raises(DataError, match=r"x\.npy: ends too early"):
        list(chunks)
    with pytest.raises(DataError, match=r"x\.npy: cannot be read"):
        open_source(path)


@pytest.mark.parametrize("value", [np.float32, np.float64])
def test_csr_is_not_copied(value):
    x = sp.random_array((5, 7), density=0.4, format="csr", dtype=value, rng=np.random.default_rng(0))
    batch = open_source(x).load().batch
    assert isinstance(batch, SparseRows)
    for ours, theirs in ((batch.indices, x.indices), (batch.values, x.data)):
        assert np.shares_memory(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert batch.offsets.dtype == np.int64  # a number a row, which kernels want so
    assert batch.offsets.tolist() == x.indptr.tolist()
    x.indptr = x.indptr.astype(np.int64)
    assert np.shares_memory(open_source(x).load().batch.offsets, x.indptr)
    assert batch.n_features == 7
    assert batch.distinct


@pytest.mark.parametrize("format", ["csc", "coo", "lil", "dok"])
def test_other_sparse_formats_hold_the_same_rows(format):
    x = sp.random_array((5, 7), density=0.4, format="csr", rng=np.random.default_rng(0))
    assert rows_of(open_source(x.asformat(format)).load().batch) == rows_of(open_source(x).load().batch)


def test_repeated_indices_are_noticed():
    x = sp.csr_array((np.ones(3), np.array([1, 1, 2]), np.array([0, 2, 3])), shape=(2, 4))
    assert not open_source(x).load().batch.distinct
    table = pa.table({"x": pa.array([[1, 1], [2]], pa.list_(pa.int32()))})
    assert not open_source(table).load().batch.distinct
    table = pa.table({"x": pa.array([[1, 2], [2, 7]], pa.list_(pa.int32()))})
    assert open_source(table).load().batch.distinct


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.uint8, np.float32), (np.int16, np.float32), (np.bool_, np.float32), (np.float16, np.float32),
     (np.int32, np.float64), (np.int64, np.float64), (">f4", np.float64), (object, np.float64)],
)  # fmt: skip
def test_other_numbers_become_floats_that_hold_them(dtype, expected):
    x = np.array([[0, 1], [1, 0]]).astype(dtype)
    batch = open_source(x).load().batch
    assert batch.values.tolist() == [[0, 1], [1, 0]]
    if dtype != ">f4":
        assert batch.values.dtype == expected
    assert batch.values.dtype.isnative
    sparse = sp.csr_array(np.array([[0, 1], [1, 0]], np.int64))
    assert open_source(sparse).load().batch.values.dtype == np.float64


def test_three_dimensions_are_images_and_bytes_stay_bytes():
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    batch = open_source(x).load().batch
    assert isinstance(batch, Images)
    assert np.shares_memory(batch.values, x)
    assert batch.n_features == 12


@pytest.mark.parametrize(
    "x",
    [
        ["ab", "c\u00e9"], ("ab", "c\u00e9"), [b"ab", "c\u00e9"], np.array(["ab", "c\u00e9"]),
        np.array(["ab", "c\u00e9"], object), pd.Series(["ab", "c\u00e9"]), pd.DataFrame({"t": ["ab", "c\u00e9"]}),
        pd.Series(["ab", "c\u00e9"], dtype="category"), pl.Series(["ab", "c\u00e9"]),
        pl.DataFrame({"t": ["ab", "c\u00e9"]}),
        pa.array(["ab", "c\u00e9"]), pa.chunked_array([["ab"], ["c\u00e9"]]), pa.table({"t": ["ab", "c\u00e9"]}),
        pa.record_batch({"t": ["ab", "c\u00e9"]}),
    ],
    ids=lambda x: f"{type(x).__module__}.{type(x).__name__}",
)  # fmt: skip
def test_text_of_every_container_is_strings(x):
    batch = open_source(x).load().batch
    assert isinstance(batch, Strings)
    assert rows_of(batch) == [b"ab", "c\u00e9".encode()]


FRAME = {"a": [1.0, 2.0], "name": ["u", "v"], "b": [3, 4], "y": ["no", "yes"], "w": [1.0, 0.5]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_numeric_columns_are_features_and_named_ones_are_not(make):
    source = open_source(make(FRAME), label="y", weight="w")
    chunk = source.load()
    assert rows_of(chunk.batch) == [[1, 3], [2, 4]]
    assert source.columns == ["a", "b"]
    assert chunk.y.tolist() == ["no", "yes"]
    assert chunk.weight.tolist() == [1.0, 0.5]
    assert rows_of(open_source(make(FRAME), column="name").load().batch) == [b"u", b"v"]
    assert rows_of(open_source(make(FRAME), column="b").load().batch) == [[3], [4]]
    with pytest.raises(DataError, match=r"no column 'q'; the columns are 'a', 'name', 'b', 'y', 'w'"):
        open_source(make(FRAME), label="q")
    with pytest.raises(DataError, match="which column"):
        open_source(make({"s": ["a"], "t": ["b"]}))


def test_pandas_floats_are_not_copied_or_widened():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    values = open_source(pd.DataFrame(x, columns=["a", "b"], copy=False)).load().batch.values
    assert values.dtype == np.float32
    assert np.shares_memory(values, x)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_missing_values_of_tables_are_named_and_can_be_skipped(make):
    table = make({"a": [1.0, None, 3.0, 4.0], "y": ["u", "v", None, "u"]})
    with pytest.raises(DataError, match=r"row [12].*(missing|NaN)"):
        open_source(table, label="y").load()
    chunk = open_source(table, label="y", on_bad_row="skip").load()
    assert rows_of(chunk.batch) == [[1.0], [4.0]]
    assert chunk.y.tolist() == ["u", "u"]


def test_labels_and_weights_stand_beside():
    chunk = open_source([[1.0], [2.0]], y=[3, 4], sample_weight=[1, 0]).load()
    assert chunk.y.tolist() == [3, 4]
    assert chunk.weight.tolist() == [1.0, 0.0]
    assert chunk.y.dtype.kind == "i"
    frame = pd.DataFrame({"a": [1.0, 2.0], "label": [7, 8]})
    assert open_source(frame, y=["p", "q"], label="label").load().y.tolist() == ["p", "q"]


def test_labels_beside_a_file_follow_its_rows(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("".join(f"0 {k + 1}:1\n" for k in range(10)))
    source = open_source(path, y=np.arange(10), sample_weight=np.arange(10) + 1.0)
    chunks = list(source.chunks(20))
    assert len(chunks) > 2
    assert np.concatenate([c.y for c in chunks]).tolist() == list(range(10))
    assert source.load().weight.tolist() == list(range(1, 11))
    for count in (9, 11):
        with pytest.raises(DataError, match=f"y has {count} entries"):
            open_source(path, y=np.zeros(count)).load()
    with pytest.raises(DataError, match="skip"):
        open_source(path, y=np.zeros(10), on_bad_row="skip")


def test_a_source_is_opened_as_it_is():
    source = open_source([[1.0], [2.0]])
    assert open_source(source) is source
    assert open_source(source, y=[1, 2]).load().y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.array([[1.0, np.nan]]), None, "row 0, column 2: .*NaN"),
        (np.array([[1.0], [np.inf]], np.float32), None, "row 1, column 1: value inf"),
        (sp.csr_array(np.array([[0.0, 1.0], [np.nan, 0.0]])), None, "row 1: value nan is not finite"),
        (pd.DataFrame({"age": [1.0, np.nan]}), None, "row 1, column 1: column 'age'"),
        (np.zeros((0, 3)), None, "no examples"),
        (np.zeros((3, 0)), None, "0 feature"),
        ([], None, "no examples"),
        (np.zeros(3), None, "Expected 2D array"),
        (np.zeros((2, 2), complex), None, "Complex"),
        ([[1.0], [1.0, 2.0]], None, "length"),
        (["a", 3], None, "row 1 is not a string"),
        (["a", None], None, "row 1 is not a string"),
        (["\ud800"], None, "UTF-8"),
        (np.array([["a"]]), None, "not numbers"),
        (np.zeros((2, 1)), [1, 2, 3], "y has 3 entries, and there are 2 examples"),
        (np.zeros((2, 1)), [1.0, np.nan], "label nan"),
        (np.zeros((2, 1)), ["a", None], "missing"),
        (np.zeros((2, 1)), np.array([[1, 2], [3, 4]]), "one-dimensional"),
        (7, None, "cannot read examples from int"),
    ],
)
def test_bad_memory_is_refused_in_one_line(x, y, message):
    with pytest.raises(DotaddError, match=message) as caught:
        open_source(x, y).load()
    assert "\n" not in str(caught.value)


def test_indices_outside_the_matrix_never_reach_a_kernel():
    x = sp.csr_array(np.eye(3))
    x.indices[1] = 50
    with pytest.raises(DataError, match="row 1: index 50 is outside the 3 features"):
        open_source(x).load()


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_must_be_finite_and_not_negative(weight):
    with pytest.raises(DataError, match="row 1: weight"):
        open_source([[1.0], [2.0]], [0, 1], [1.0, weight]).load()
    with pytest.raises(DataError, match="sample_weight has 1 entries"):
        open_source([[1.0], [2.0]], [0, 1], [1.0]).load()


def test_skipping_counts_and_keeps_the_rest():
    x = np.array([[1.0, 2.0], [np.nan, np.inf], [3.0, 4.0], [5.0, np.inf]])
    source = open_source(x, [0, 1, 2, 3], on_bad_row="skip")
    for _ in range(2):
        chunk = source.load()
        assert rows_of(chunk.batch) == [[1, 2], [3, 4]]
        assert chunk.y.tolist() == [0, 2]
        assert source.skipped.count == 2


@pytest.mark.parametrize("options", [{"label": "y"}, {"zero_based": True}, {"format": "csv"}, {"dtype": np.float64}])
def test_an_option_acts_or_raises(options):
    with pytest.raises(DotaddError):
        open_source(np.zeros((2, 2)), **options)
    with pytest.raises(DotaddError, match="on_bad_row"):
        open_source(np.zeros((2, 2)), on_bad_row="ignore")


def test_a_batch_is_read_as_it_is():
    batch = Strings.from_list(["AC", "GT"])
    assert open_source(batch, [0, 1]).load().batch is batch


def damaged(format, **arrays):
    """A sparse matrix of which some arrays have been replaced, as a careless program may."""
    matrix = sp.random_array((8, 6), density=0.5, rng=np.random.default_rng(0), format=format)
    for name, change in arrays.items():
        setattr(matrix, name, change(getattr(matrix, name).copy()))
    return matrix


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


DAMAGED = {
    "beyond": damaged("csr", indptr=put(-1, 10**6)),
    "far beyond": damaged("csr", indptr=put(3, 2**31 - 1)),
    "falling": damaged("csr", indptr=put(3, 0)),
    "negative": damaged("csr", indptr=put(0, -5)),
    "too short": damaged("csr", indptr=lambda indptr: indptr[:-2]),
    "too long": damaged("csr", indptr=lambda indptr: np.append(indptr, indptr[-1])),
    "fractions": damaged("csr", indptr=lambda indptr: indptr.astype(float)),
    "few values": damaged("csr", data=lambda data: data[:2]),
    "few indices": damaged("csr", indices=lambda indices: indices[:2]),
    "negative index": damaged("csr", indices=put(0, -7)),
    "large index": damaged("csr", indices=put(0, 10**9)),
    "falling columns": damaged("csc", indptr=put(3, 0)),
    "rows beyond": damaged("csc", indices=put(0, 10**9)),
    "blocks beyond": damaged("bsr", indptr=put(-1, 10**6)),
    "pairs beyond": damaged("coo", row=put(0, 10**9)),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("machine", [LinearSVM(), KernelSVM()], ids=["linear", "kernel"])
def test_damaged_sparse_matrices_never_reach_a_kernel(name, machine):
    good = sp.random_array((8, 6), density=0.5, rng=np.random.default_rng(1), format="csr")
    y = np.arange(8) % 2
    fitted = clone(machine).fit(good, y)
    for use in (lambda: clone(machine).fit(DAMAGED[name], y), lambda: fitted.predict(DAMAGED[name])):
        with pytest.raises(DataError, match=r"matrix is damaged|index -?\d+ is outside"):
            use()


def test_batches_whose_rows_lie_outside_of_their_arrays_are_refused():
    for batch in (
        SparseRows(np.array([0, 5]), np.zeros(3, np.int32), None, 1),
        SparseRows(np.array([0, 3, 2]), np.zeros(3, np.int32), None, 1),
        SparseRows(np.array([0, 3]), np.zeros(3, np.int32), np.ones(2), 1),
        Strings(np.zeros(3, np.uint8), np.array([0, 4])),
    ):
        with pytest.raises(DataError, match="rows that lie outside of the data"):
            open_source(batch).load()


@pytest.mark.parametrize("rows", [sp.csr_array(np.full((300, 40), np.nan)), np.full((300, 40), np.nan)])
def test_the_first_bad_row_is_told_before_the_others_are_looked_at(rows):
    steps = 0

    def count(frame, event, argument):
        nonlocal steps
        steps += event == "line" and frame.f_code.co_filename == sound.__file__
        return count

    source = open_source(rows)
    sys.settrace(count)
    try:
        with pytest.raises(DataError, match="row 0"):
            source.load()
    finally:
        sys.settrace(None)
    assert 0 < steps < 100  # of 12,000 bad values
    source = open_source(np.vstack([np.full((300, 40), np.nan), np.ones((1, 40))]), on_bad_row="skip")
    assert len(source.load()) == 1
    assert source.skipped.count == 300


@pytest.mark.parametrize("rows", [[{"a": 1}, {"a": 2}], [{"a": 1}, "x"], [object()], [{1, 2}], [None], [1, {"a": 2}]])
def test_lists_of_other_things_are_refused_with_advice(rows):
    with pytest.raises(DataError, match=r"row \d is "):
        LinearSVM().fit(rows, np.arange(len(rows)))
    with pytest.raises(DataError, match=r"pandas\.DataFrame"):
        LinearSVM().fit([{"a": 1}, {"a": 2}], [0, 1])


@pytest.mark.parametrize("text", ["some text", "ACGTACGT", "one\ntwo", "word " * 2000])
def test_text_where_a_file_is_expected_is_told_what_to_give(text):
    svm = LinearSVM("NGrams(2)").fit(["aa bb", "cc dd"], [0, 1])
    with pytest.raises(DataError, match="no file that exists; to read text itself, give a list of strings") as caught:
        svm.predict(text)
    assert len(str(caught.value)) < 150
    assert len(str(caught.value).splitlines()) == 1
