"""Arrow and Parquet: converted and opened again the data is the same; memory is bounded whatever the record batches."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_sources import rows_of

from dotadd import Windows
from dotadd.data.batches import Images, SparseRows, Strings, pack, unpack
from dotadd.errors import DataError
from dotadd.sources import arrow as arrow_source
from dotadd.sources import convert as convert_module
from dotadd.sources import open as open_source
from dotadd.sources.base import Chunk, Source
from dotadd.sources.convert import convert

SPARSE = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
DATA = {
    "sparse64": SPARSE,
    "sparse32": SPARSE.astype(np.float32),
    "dense": np.arange(12.0).reshape(4, 3),
    "images": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "strings": ["hello", "", "w\u00f6rld"],
    "dna": ["ACGTA", "TTTTT", "GATTA"],
}


class Several(Source):
    """A source that yields these chunks."""

    def __init__(self, *batches, y=None):
        super().__init__()
        self.batches, self.y = batches, y

    def chunks(self, nbytes=0):
        row = 0
        for batch in self.batches:
            yield Chunk(batch, None if self.y is None else self.y[row : row + len(batch)], None, row)
            row += len(batch)


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
@pytest.mark.parametrize("name", DATA)
def test_converted_and_opened_again_it_is_the_same(tmp_path, name, ending):
    x = DATA[name]
    rows = x.shape[0] if hasattr(x, "shape") else len(x)
    for y, weight in (
        (None, None),
        (np.arange(rows), np.ones(rows)),
        (np.arange(rows) / 2, None),
        (["\u00e9"] * rows, None),
    ):
        before = open_source(x, y, weight)
        path = tmp_path / f"x.{ending}"
        done = convert(before, path)
        assert (done.rows, done.bytes, done.skipped) == (rows, path.stat().st_size, 0)
        chunk, old = open_source(path).load(), before.load()
        assert type(chunk.batch) is type(old.batch)
        assert rows_of(chunk.batch) == rows_of(old.batch)
        assert (chunk.y is None) == (y is None)
        if chunk.y is not None:
            assert chunk.y.tolist() == list(y)
            assert chunk.y.dtype.kind == np.asarray(y).dtype.kind
        assert (chunk.weight is None) == (weight is None)
        if isinstance(chunk.batch, SparseRows):
            assert chunk.batch.values.dtype == old.batch.values.dtype
            assert chunk.batch.n_features == 30
        if isinstance(chunk.batch, Images):
            assert chunk.batch.values.dtype == np.uint8
    assert [path.name for path in tmp_path.iterdir()] == [f"x.{ending}"]


def test_dna_takes_two_bits_a_letter_and_comes_back_in_capitals(tmp_path):
    convert(open_source(["acgTN"[:4] * 8, "GGGG" * 8]), tmp_path / "x.arrow")
    batch = open_source(tmp_path / "x.arrow").load().batch
    assert batch.width == 32
    assert rows_of(batch) == [b"ACGT" * 8, b"GGGG" * 8]
    field = pa.ipc.open_file(tmp_path / "x.arrow").schema.field("x")
    assert field.type == pa.binary(8)
    convert(open_source(["acgt"]), tmp_path / "x.arrow", dna=False)
    assert rows_of(open_source(tmp_path / "x.arrow").load().batch) == [b"acgt"]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 21).flatmap(lambda n: st.lists(st.text("ACGT", min_size=n, max_size=n), min_size=1)))
def test_packing_is_undone_by_unpacking(texts):
    width = len(texts[0])
    packed = pack(Strings.from_list(["longer" * 9, *texts]).slice(1, len(texts) + 1), width)
    assert packed.shape == (len(texts), -(-width // 4))
    codes = {"A": 0, "C": 1, "G": 2, "T": 3}
    assert [(int(packed[r, k // 4]) >> 2 * (k % 4)) & 3 for r in range(len(texts)) for k in range(width)] == [
        codes[letter] for text in texts for letter in text
    ]
    assert rows_of(unpack(packed, width)) == [text.encode() for text in texts]


def test_only_acgt_of_one_length_is_packed():
    assert pack(Strings.from_list(["ACGN"]), 4) is None
    assert pack(Strings.from_list(["ACG", "AC"]), 3) is None
    assert pack(Strings(np.frombuffer(b"ACGT", np.uint8), width=2), 4) is None


def test_a_later_chunk_that_does_not_fit_widens_the_file(tmp_path):
    path = tmp_path / "x.arrow"
    ones = SparseRows(np.array([0, 1]), np.array([3], np.int32), None, 4)
    halves = SparseRows(np.array([0, 1]), np.array([2**40]), np.array([0.5]), 2**40 + 1)
    convert(Several(ones, halves, ones), path)
    batch = open_source(path).load().batch
    assert rows_of(batch) == [[(3, 1.0)], [(2**40, 0.5)], [(3, 1.0)]]
    assert batch.n_features == 2**40 + 1
    assert {chunk.batch.n_features for chunk in open_source(path).chunks(1)} == {2**40 + 1}
    convert(Several(ones, ones), path)
    assert open_source(path).load().batch.values is None
    dna, other = Strings.from_list(["ACGT"]), Strings.from_list(["NN"])
    convert(Several(dna, other), path)
    assert rows_of(open_source(path).load().batch) == [b"ACGT", b"NN"]
    with pytest.raises(DataError, match="--no-pack"):
        convert(Several(dna, other), path, dna=True)
    with pytest.raises(DataError, match="cannot be packed"):
        convert(Several(other), path, dna=True)


def test_a_failed_conversion_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "x.arrow"
    convert(open_source(["old"]), path)
    for error in (KeyboardInterrupt, DataError("bad")):

        class Broken(Several):
            def chunks(self, nbytes=0, error=error):
                yield from super().chunks()
                raise error

        with pytest.raises((KeyboardInterrupt, DataError)):
            convert(Broken(Strings.from_list(["new"])), path)
        assert [file.name for file in tmp_path.iterdir()] == ["x.arrow"]
        assert rows_of(open_source(path).load().batch) == [b"old"]


def test_skipped_rows_are_counted_in_the_conversion(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n1 x\n")
    assert convert(open_source(tmp_path / "a.svm", on_bad_row="skip"), tmp_path / "a.arrow").skipped == 1


def write_ipc(path, table, stream=False, **options):
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=10)
    return path


def labelled(x, **more):
    """A table of these examples, whose labels count them."""
    return pa.table({"x": x, "label": np.arange(len(x)), **more})


MISSING = np.arange(90) % 7 == 0
COLUMNS = {
    "sparse": open_source(sp.random_array((90, 30), density=0.2, format="csr", rng=np.random.default_rng(0))),
    "dense": open_source(np.arange(270.0).reshape(90, 3)),
    "strings": open_source(["ab" * (k % 5) for k in range(90)]),
    "binary": pa.array([bytes([k, k]) for k in range(90)], pa.binary(2)),
    "lists": pa.array([[k, k + 0.5] for k in range(90)], pa.list_(pa.float32())),
    "numbers": pa.array(np.arange(90.0)),
    "some missing": pa.array(np.arange(90.0), mask=MISSING),
    "strings, some missing": pa.array([str(k) for k in range(90)], mask=MISSING),
}


@pytest.mark.parametrize("nbytes", [1, 60, 500])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_record_batch_in_parts_is_the_whole(tmp_path, name, stream, nbytes):
    made = COLUMNS[name]
    x = made.load().batch.to_arrow() if isinstance(made, Source) else made
    unread = pa.array(["u", "v", None] * 30).dictionary_encode()
    table = labelled(x, flag=np.arange(90) % 3 == 0, weight=np.ones(90), unread=unread, none=pa.nulls(90))
    path = tmp_path / "x.arrow"
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(str(path), table.schema) as writer:
        writer.write_table(table.slice(0, 7))
        writer.write_batch(table.to_batches()[0].slice(7))
    for label in ("label", "flag"):
        source = open_source(path, column="x", label=label, weight="weight", on_bad_row="skip")
        chunks = list(source.chunks(nbytes))
        whole = source.load()
        assert len(chunks) >= (4 if nbytes < 500 else 2)
        assert [row for chunk in chunks for row in rows_of(chunk.batch)] == rows_of(whole.batch)
        assert np.concatenate([chunk.y for chunk in chunks]).tolist() == whole.y.tolist()
        kept = np.flatnonzero(~MISSING) if x.null_count else np.arange(90)
        assert whole.y.tolist() == (kept.tolist() if label == "label" else (kept % 3 == 0).tolist())
        assert rows_of(whole.batch) == rows_of(open_source(pa.table({"x": x.filter(x.is_valid())})).load().batch)


@pytest.mark.parametrize("stream", [False, True])
def test_memory_does_not_grow_with_the_record_batch(tmp_path, stream):
    table = labelled(open_source(np.arange(400000.0).reshape(-1, 8)).load().batch.to_arrow())
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(str(tmp_path / "x.arrow"), table.schema) as writer:
        writer.write_table(table)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for chunk in open_source(tmp_path / "x.arrow", column="x", label="label").chunks(50000):
        most = max(most, pa.total_allocated_bytes() - before)
        assert chunk.batch.values[0, 0] == 8 * chunk.y[0] == 8 * chunk.first_row
        rows += len(chunk)
    assert rows == 50000
    assert most < 200000  # of 3.6 million


@pytest.mark.parametrize("stream", [False, True])
def test_a_compressed_record_batch_too_large_for_the_memory_is_refused(tmp_path, monkeypatch, stream):
    path = tmp_path / "x.arrow"
    table = labelled(pa.array(np.arange(5000.0)))
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(
        str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
    ) as writer:
        writer.write_table(table)
    source = open_source(path, label="label")
    monkeypatch.setattr(arrow_source, "LARGEST", 1000)
    assert sum(len(chunk) for chunk in source.chunks(500)) == 5000
    with pytest.raises(DataError, match=r"x\.arrow: has a record batch of .* kB .*dotadd convert"):
        list(dataclasses.replace(source, bounded=True).chunks(500))


def test_files_are_compressed_where_that_makes_them_smaller_and_batches_are_small(tmp_path, monkeypatch):
    monkeypatch.setattr(convert_module, "BATCH_BYTES", 5000)
    rng = np.random.default_rng(0)
    noise, flat = rng.random((1000, 8)), np.zeros((1000, 8))
    for x, compressed in ((noise, False), (flat, True)):
        bytes_ = convert(open_source(x, np.arange(1000) % 2), tmp_path / "x.arrow").bytes
        assert (bytes_ < x.nbytes / 2) == compressed
        with pa.ipc.open_file(tmp_path / "x.arrow") as file:
            sizes = [file.get_batch(k).num_rows for k in range(file.num_record_batches)]
        assert sizes.pop() == 0
        assert sum(sizes) == 1000
        assert 5000 / 64 / 2 < max(sizes) <= 5000 / 64 + 1
        assert np.array_equal(open_source(tmp_path / "x.arrow").load().batch.values, x)


def test_windows_keep_their_coordinates_in_small_batches(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    sequences = ["".join(rng.choice(list("ACGT"), 2000)) for _ in range(2)]
    (tmp_path / "g.fa").write_text("".join(f">s{k}\n{letters}\n" for k, letters in enumerate(sequences)))
    windows = Windows(tmp_path / "g.fa", signal="donor", length=20)
    told = []
    for batch_bytes in (100, 1 << 20):
        monkeypatch.setattr(convert_module, "BATCH_BYTES", batch_bytes)
        convert(windows, tmp_path / "x.arrow")
        table = pa.ipc.open_file(tmp_path / "x.arrow").read_all()
        told.append(table.select(["chromosome", "position", "strand"]).to_pylist())
        assert table.column("position").num_chunks > (20 if batch_bytes == 100 else 1)
        letters = rows_of(open_source(tmp_path / "x.arrow").load().batch)
        assert letters == [row for chunk in windows.chunks() for row in rows_of(chunk.batch)]
    assert told[0] == told[1]


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_names_of_features_survive(tmp_path, ending):
    (tmp_path / "x.csv").write_text("a,b,label\n1,2,0\n3,4,1\n")
    convert(open_source(tmp_path / "x.csv"), tmp_path / f"x.{ending}")
    source = open_source(tmp_path / f"x.{ending}")
    source.load()
    assert source.columns == ["a", "b"]


def cut_off_while_read(path, source, nbytes=20000):
    """The complaint about a file that loses its second half while it is read."""
    chunks = source.chunks(nbytes)
    next(chunks)
    with open(path, "rb+") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(DataError) as caught:
        list(chunks)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["arrow", "stream", "one batch", "compressed", "parquet"])
def test_a_file_that_is_cut_off_while_it_is_read_ends_in_one_line(tmp_path, kind):
    path = tmp_path / "x"
    table = labelled(pa.array(np.random.default_rng(0).random(1 << 18)))
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=1 << 14)
    else:
        options = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "compressed" else None)
        with (pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)(
            str(path), table.schema, options=options
        ) as writer:
            writer.write_table(table, max_chunksize=None if kind == "one batch" else 1 << 12)
    assert f"{path}: " in cut_off_while_read(path, open_source(path, label="label"))


@pytest.mark.parametrize("damaged", [[0, 9, 3], [0, 1, 9], [-1, 1, 3]])
@pytest.mark.parametrize("kind", [pa.large_list(pa.int32()), pa.large_binary()])
def test_rows_outside_of_the_data_are_refused(tmp_path, kind, damaged):
    path = tmp_path / "x.arrow"
    rows = [[0], [1, 2]] if kind != pa.large_binary() else [b"a", b"bc"]
    write_ipc(path, pa.table({"x": pa.array(rows, kind)}))
    offsets = np.array([0, 1, 3]).tobytes()
    assert path.read_bytes().count(offsets) == 1
    path.write_bytes(path.read_bytes().replace(offsets, np.array(damaged).tobytes()))
    for nbytes in (1, 1000):
        with pytest.raises(DataError, match=r"x\.arrow: "):
            list(open_source(path, column="x").chunks(nbytes))


@pytest.mark.parametrize("nbytes", [1, 100, 1000, 1 << 20])
@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_chunks_of_any_size_hold_the_same_rows_in_order(tmp_path, ending, nbytes):
    table = pa.table(
        {"a": np.arange(45.0), "b": np.arange(45, dtype=np.float32), "s": ["x"] * 45, "t": ["u", "v", "w"] * 15}
    )
    if ending == "arrow":
        write_ipc(tmp_path / "x.arrow", table, compression="lz4")
    else:
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=7)
    source = open_source(tmp_path / f"x.{ending}", label="t")
    for _ in range(2):
        chunks = list(source.chunks(nbytes))
        assert [row for c in chunks for row in rows_of(c.batch)] == [[k, k] for k in range(45)]
        assert [label for c in chunks for label in c.y] == ["u", "v", "w"] * 15
    assert source.columns == ["a", "b"]


def test_columns_of_foreign_files_are_found(tmp_path):
    x = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32()))
    table = pa.table({"v": x, "text": pa.array(["a", "b"]).dictionary_encode(), "n": [1, 2], "flag": [True, False]})
    pq.write_table(table, tmp_path / "x.parquet")
    path = tmp_path / "x.parquet"
    assert rows_of(open_source(path, column="v").load().batch) == [[1, 2], [3, 4]]
    assert rows_of(open_source(path, column="text").load().batch) == [b"a", b"b"]
    chunk = open_source(path, column="text", label="flag").load()
    assert chunk.y.tolist() == [1, 0]
    assert rows_of(open_source(path).load().batch) == [[1, 1], [2, 0]]


def test_missing_values_are_refused_by_row_and_can_be_skipped(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"x": [1.0, 2.0, None, 4.0, np.nan], "label": ["a", None, "b", "a", "b"]})
    pq.write_table(table, path)
    with pytest.raises(DataError, match=r"x\.parquet: row 1: column 'label' has a missing value"):
        open_source(path, label="label").load()
    source = open_source(path, label="label", on_bad_row="skip")
    assert rows_of(source.load().batch) == [[1.0], [4.0]]
    assert source.skipped.count == 3


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_a_file_that_was_cut_off_is_refused(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    convert(open_source(np.random.default_rng(0).random((500, 3))), path)
    whole = path.read_bytes()
    for length in (0, 3, 20, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=rf"x\.{ending}: ") as caught:
            open_source(path).load()
        assert "\n" not in str(caught.value)


BAD_COLUMNS = {
    "strings of no letters": (pa.array([b"", b""], pa.binary(0)), "strings of no letters"),
    "lists of no numbers": (pa.array([[], []], pa.list_(pa.float32(), 0)), "no features"),
    "structs": (pa.array([[{"a": 0, "b": 1.0}]] * 2), "list<struct<index, value>>"),
    "values of text": (pa.array([[{"index": 0, "value": "a"}]] * 2), "where numbers are expected"),
    "texts": (pa.array([["1", "2"]] * 2, pa.list_(pa.string(), 2)), "where numbers are expected"),
    "missing inside": (pa.array([[None, 1.0]] * 2, pa.list_(pa.float32(), 2)), "missing values inside"),
    "not finite": (pa.array([[1.0, 2.0], [1.0, np.inf]], pa.list_(pa.float16(), 2)), "row 1.*not finite"),
    "not finite sparse": (pa.array([[{"index": 0, "value": np.nan}]] * 2), "row 0.*not finite"),
    "durations": (pa.array([1, 2], pa.duration("s")), "holds neither numbers nor text"),
}


@pytest.mark.parametrize("name", BAD_COLUMNS)
@pytest.mark.parametrize("kind", ["arrow", "parquet", "memory"])
def test_columns_that_hold_no_examples_are_refused_in_one_line(tmp_path, name, kind):
    column, message = BAD_COLUMNS[name]
    x = pa.table({"x": column, "label": [0, 1]})
    if kind == "arrow":
        x = write_ipc(tmp_path / "x.arrow", x)
    elif kind == "parquet":
        if pa.types.is_duration(column.type) or column.type in (pa.binary(0), pa.list_(pa.float32(), 0)):
            pytest.skip("Parquet has no such type")
        pq.write_table(x, tmp_path / "x.parquet")
        x = tmp_path / "x.parquet"
    with pytest.raises(DataError, match=message) as caught:
        open_source(x, column="x", label="label").load()
    assert len(str(caught.value).splitlines()) == 1
    assert kind == "memory" or str(x) in str(caught.value)


@pytest.mark.parametrize("role", ["label", "weight"])
@pytest.mark.parametrize("column", [pa.array([1, 2], pa.duration("s")), pa.array([[0.5], [2]]), pa.array([b"a", b"b"])])
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_labels_and_weights_of_strange_types_are_refused_by_file(tmp_path, role, column, kind):
    table = pa.table({"x": [1.0, 2.0], "label": [0, 1], "weight": [1.0, 1.0]})
    table = table.set_column(table.column_names.index(role), role, column)
    path = tmp_path / f"x.{kind}"
    if kind == "arrow":
        write_ipc(path, table)
    else:
        pq.write_table(table, path)
    source = open_source(path, column="x", label="label", weight="weight")
    with pytest.raises(DataError, match=rf"x\.{kind}: {role}s of type .* cannot be used"):
        list(source.chunks())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lines", "nowhere"), ("lines", "x"), ("columns", "{"), ("columns", "5"), ("columns", "[1]"),
        ("column", "nowhere"), ("columns", "[" * 5000),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_metadata_that_does_not_fit_the_columns_is_refused(tmp_path, key, value, stream):
    table = pa.table({"x": ["a", "b"], "label": [0, 1]}).replace_schema_metadata({"dotadd": "1", key: value})
    path = write_ipc(tmp_path / "x.arrow", table, stream)
    with pytest.raises(DataError, match=r"x\.arrow: "):
        open_source(path).load()


@pytest.mark.parametrize("length", [b"", b"x", b"-3", b"0", b"3", b"9", b"99999999999"])
def test_packed_dna_of_another_length_never_reaches_a_kernel(tmp_path, length):
    field = pa.field("x", pa.binary(2), metadata={b"dotadd.dna2": b"1", b"length": length})
    table = pa.table([pa.array([b"ab", b"cd"], pa.binary(2))], schema=pa.schema([field], {"dotadd": "1"}))
    with pytest.raises(DataError, match=r"x\.arrow: .*packed DNA"):
        open_source(write_ipc(tmp_path / "x.arrow", table)).load()


def test_files_are_found_whatever_bytes_their_names_have(tmp_path):
    for ending in ("arrow", "parquet"):
        path = os.path.join(tmp_path, f"\udcff.{ending}")
        convert(open_source(["ACGT", "AAAA"]), path)
        assert rows_of(open_source(path).load().batch) == [b"ACGT", b"AAAA"]
