"""Batches: rows taken, sliced and joined are the same rows; to Arrow and back is the same memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from naive_sources import rows_of

from dotadd._util.growing import Growing
from dotadd.data.batches import DenseRows, Images, SparseRows, Strings, from_arrow


def sparse(binary: bool = False, index: type = np.int32, value: type = np.float32) -> SparseRows:
    offsets = np.array([0, 2, 2, 5], np.int64)
    values = None if binary else np.array([1.5, -2, 3, 4, 0.25], value)
    return SparseRows(offsets, np.array([0, 7, 1, 2, 9], index), values, 10)


def make(kind: str):
    return {
        "sparse": sparse(),
        "sparse64": sparse(index=np.int64, value=np.float64),
        "binary": sparse(binary=True),
        "dense": DenseRows(np.arange(6, dtype=np.float32).reshape(3, 2)),
        "images": Images(np.arange(18, dtype=np.uint8).reshape(3, 2, 3)),
        "strings": Strings.from_list(["ab", b"", "cde"]),
        "fixed": Strings(np.frombuffer(b"abcdef", np.uint8), width=2),
    }[kind]


KINDS = ["sparse", "sparse64", "binary", "dense", "images", "strings", "fixed"]


@pytest.mark.parametrize("kind", KINDS)
def test_taken_rows_are_the_rows(kind):
    batch = make(kind)
    rows = rows_of(batch)
    assert len(batch) == 3
    assert rows_of(batch.take(np.array([2, 0, 2]))) == [rows[2], rows[0], rows[2]]
    assert rows_of(batch.take(np.empty(0, np.int64))) == []
    assert rows_of(batch.slice(1, 3)) == rows[1:3]
    assert rows_of(batch.slice(1, 3).take(np.array([1]))) == [rows[2]]


@pytest.mark.parametrize("kind", KINDS)
def test_concat_of_slices_is_the_whole(kind):
    batch = make(kind)
    parts = (batch.slice(first, stop) for first, stop in [(0, 1), (1, 1), (1, 3)])
    assert rows_of(type(batch).concat(parts)) == rows_of(batch)
    assert type(batch).concat([batch]) is batch


def test_concat_widens_types_and_fills_in_ones():
    joined = SparseRows.concat([sparse(binary=True), sparse(), sparse(index=np.int64, value=np.float64)])
    assert joined.indices.dtype == np.int64
    assert joined.values.dtype == np.float64
    assert rows_of(joined) == rows_of(sparse(binary=True)) + 2 * rows_of(sparse())


def test_concat_takes_the_widest_space_and_keeps_doubt():
    wide = SparseRows(np.array([0, 1]), np.array([99]), None, 100, distinct=False)
    joined = SparseRows.concat([sparse(), wide])
    assert joined.n_features == 100
    assert not joined.distinct
    assert SparseRows.concat([sparse(), sparse()]).distinct


def test_strings_of_one_width_stay_so_and_others_get_offsets():
    two, three = (Strings(np.frombuffer(b"abcdef", np.uint8), width=width) for width in (2, 3))
    assert Strings.concat([two, two]).width == 2
    mixed = Strings.concat([two, two, three, Strings.from_list(["x"])])
    assert mixed.width is None
    assert rows_of(mixed) == [b"ab", b"cd", b"ef"] * 2 + [b"abc", b"def", b"x"]


def test_growing_does_not_touch_the_first_array():
    first = np.arange(3)
    growing = Growing(first)
    for k in range(50):
        growing.extend(np.array([k, k]))
    assert growing.done().tolist() == [0, 1, 2] + [k for k in range(50) for _ in range(2)]
    assert first.tolist() == [0, 1, 2]


def memory(batch) -> list[np.ndarray]:
    if isinstance(batch, SparseRows):
        return [batch.indices] + ([] if batch.values is None else [batch.values])
    return [batch.letters] if isinstance(batch, Strings) else [batch.values]


@pytest.mark.parametrize("kind", KINDS)
def test_arrow_round_trip_shares_memory(kind):
    batch = make(kind)
    back = from_arrow(batch.to_arrow())
    assert type(back) is type(batch)
    assert rows_of(back) == rows_of(batch)
    for ours, theirs in zip(memory(batch), memory(back), strict=True):
        assert ours.dtype == theirs.dtype
        assert np.shares_memory(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_arrow_of_a_slice_and_slice_of_arrow_agree(kind):
    batch = make(kind)
    assert rows_of(from_arrow(batch.slice(1, 3).to_arrow())) == rows_of(batch)[1:]
    assert rows_of(from_arrow(batch.to_arrow()[1:])) == rows_of(batch)[1:]


def test_lists_of_floats_of_one_length_are_dense_rows():
    array = pa.array([[1.0, 2.0], [3.0, 4.0]])
    assert rows_of(from_arrow(array)) == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match="length"):
        from_arrow(pa.array([[1.0], [3.0, 4.0]]))


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="missing"):
        from_arrow(pa.array(["a", None]))
    with pytest.raises(ValueError, match="missing"):
        from_arrow(pa.array([[1, None], [3]]))
