"""Soundness of batches: values are finite and not too large to be squared and summed up, and indices lie inside the
space, before any compiled code sees them. Numbers of any type become the float32 or float64 that kernels take, copied
only where they have to be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.data.batches import LARGEST_VALUE, Batch, DenseRows, SparseRows, Strings
from dotadd.data.places import Places
from dotadd.data.table import Table
from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Source

PIECE = 1 << 18  # so many values are looked at together, so that they are in the cache when they are looked at again
SHORTEST = {"f": 2, "i": 8, "u": 8}  # bytes of a number of this kind that may not be usable
TOO_LARGE = f"value {{value}} is too large: beyond {LARGEST_VALUE:.3g}, sums of squares overflow; scale the data"
TOGETHER = 1 << 16  # cells of a table that are looked at together, so that what is made of them stays in the cache
LAST_LETTER = 0x10FFFF  # of Unicode
GRAY = (np.uint8, np.uint16)  # pixels of images that stay what they are


def sound_rows(source: Source, chunk: Chunk) -> Chunk:
    """The chunk without its bad rows. The first one raises unless the source skips bad rows."""
    if isinstance(chunk.batch, DenseRows) and len(chunk) and not chunk.batch.n_features:
        raise DataError("has rows of no features", chunk.path)
    bad: set[int] = set()
    for row, column, message in _complaints(chunk.batch, source.columns):
        bad.add(row)
        source.bad_row(chunk.error(row, message, column))
    if chunk.weight is not None:
        for row in np.flatnonzero(~(np.isfinite(chunk.weight) & (chunk.weight >= 0))).tolist():
            if row not in bad:
                bad.add(row)
                source.bad_row(chunk.error(row, f"weight {chunk.weight[row]} is not a number from 0 up"))
    if not bad:
        return chunk
    keep = np.ones(len(chunk), np.bool_)
    keep[list(bad)] = False
    return chunk.take(np.flatnonzero(keep))


_Complaint = tuple[int, int | None, str]


def _complaints(batch: Batch, names: list[str] | None) -> Iterator[_Complaint]:
    """Each bad row once, in order: its number, its column from 1 where rows are dense, and what is wrong.

    They are put into words one by one: most often the first one ends the reading.
    """
    if isinstance(batch, DenseRows):
        yield from _dense_complaints(batch, names)
    elif isinstance(batch, SparseRows):
        yield from _sparse_complaints(batch)
    elif isinstance(batch, Table):
        yield from _table_complaints(batch)


def _dense_complaints(batch: DenseRows, names: list[str] | None) -> Iterator[_Complaint]:
    values = batch.values.reshape(len(batch), -1) if len(batch) else batch.values
    places = unusable(values.reshape(-1))
    if not len(places):
        return
    rows, columns = np.divmod(places, values.shape[1])
    rows, first = np.unique(rows, return_index=True)
    for row, column in zip(rows.tolist(), columns[first].tolist(), strict=True):
        where = f"column {names[column]!r}: " if names is not None else ""
        yield row, column + 1, where + _complaint(values[row, column])


def _table_complaints(batch: Table) -> Iterator[_Complaint]:
    """What a missing number is, the map says; here it is no complaint."""
    values = batch.values[int(batch.offsets[0]) : int(batch.offsets[-1])]
    for first in range(0, len(values), TOGETHER):
        for place in np.flatnonzero(np.abs(values[first : first + TOGETHER]) > LARGEST_VALUE).tolist():
            row, column = divmod(first + place, len(batch.names))
            yield row, None, f"column {batch.names[column]!r}: {_complaint(values[first + place])}"


def _sparse_complaints(batch: SparseRows) -> Iterator[_Complaint]:
    begin, stop = int(batch.offsets[0]), int(batch.offsets[-1])
    indices = batch.indices[begin:stop]
    outside = bad = np.empty(0, np.int64)
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= batch.n_features):
        outside = np.flatnonzero((indices < 0) | (indices >= batch.n_features))
    if batch.values is not None:
        bad = unusable(batch.values[begin:stop])
    places = np.concatenate([outside, bad]) + begin
    rows, first = np.unique(np.searchsorted(batch.offsets, places, side="right") - 1, return_index=True)
    for row, k in zip(rows.tolist(), first.tolist(), strict=True):
        if k < len(outside):
            yield row, None, f"index {batch.indices[places[k]]} is outside the {batch.n_features} features"
        else:
            assert batch.values is not None
            yield row, None, _sparse_complaint(batch.values[places[k]])


def _complaint(value: float) -> str:
    """What is wrong with a number that cannot be used."""
    if np.isnan(value):
        return "the value is missing or NaN; fill or drop it"
    if np.isinf(value):
        return f"value {value} is not finite; infinity cannot be used"
    return TOO_LARGE.format(value=f"{value:.6g}")


def _sparse_complaint(value: float) -> str:
    return _complaint(value) if np.isfinite(value) else f"value {value} is not finite"


def unusable(values: np.ndarray) -> np.ndarray:
    """The places of NaN, infinity and what is too large in a flat array."""
    if values.dtype.kind not in "iuf" or values.itemsize < SHORTEST[values.dtype.kind]:
        return np.empty(0, np.int64)
    found = []
    for first in range(0, len(values), PIECE):
        piece = values[first : first + PIECE]
        # with NaN among them, the largest is NaN
        if not (piece.max() <= LARGEST_VALUE and piece.min() >= -LARGEST_VALUE):
            found.append(first + np.flatnonzero(~((piece <= LARGEST_VALUE) & (piece >= -LARGEST_VALUE))))
    return np.concatenate(found) if found else np.empty(0, np.int64)


def with_distinct(chunk: Chunk) -> Chunk:
    """The chunk, its sparse rows marked as to whether no index occurs twice in a row (increasing indices show it)."""
    batch = chunk.batch
    require_inside(batch, chunk.path)
    if not isinstance(batch, SparseRows):
        return chunk
    distinct = bool(_rows_increase(plain(batch.offsets), plain(batch.indices)))
    rows = SparseRows(batch.offsets, batch.indices, batch.values, batch.n_features, distinct=distinct)
    return dataclasses.replace(chunk, batch=rows)


def require_inside(batch: Batch, path: str | None = None) -> None:
    """Refuse rows that would lie outside of their arrays: kernels trust offsets."""
    inside = True
    if isinstance(batch, Places):
        inside = not len(batch) or int(batch.starts.max()) + (batch.width or 0) <= len(batch.text)
    elif isinstance(batch, Strings) and batch.offsets is not None:
        inside = offsets_fit(batch.offsets, len(batch.letters))
    elif isinstance(batch, SparseRows):
        inside = offsets_fit(batch.offsets, len(batch.indices))
        inside = inside and (batch.values is None or len(batch.values) >= batch.offsets[-1])
    if not inside:
        raise DataError("has rows that lie outside of the data; it is damaged", path)


def offsets_fit(offsets: np.ndarray, length: int) -> bool:
    """Whether rows with these offsets follow one another in an array of this length."""
    return (
        offsets.ndim == 1
        and offsets.dtype.kind in "iu"
        and len(offsets) > 0
        and bool(offsets[0] >= 0 and offsets[-1] <= length and (offsets[1:] >= offsets[:-1]).all())
    )


@kernel
def _rows_increase(offsets, indices):
    """Whether each index is above the one before it in its row."""
    falls = np.int64(0)
    for row in range(np.uint64(len(offsets) - 1)):
        for k in range(np.uint64(offsets[row]) + np.uint64(1), np.uint64(offsets[row + np.uint64(1)])):
            falls += np.int64(indices[k] <= indices[k - np.uint64(1)])
    return falls == 0


def float_type(dtype: np.dtype) -> type[np.float32] | type[np.float64]:
    """The smallest of float32 and float64 that holds every number of this type, as far as float64 can."""
    return np.float32 if np.can_cast(dtype, np.float32) else np.float64


def float_values(array: np.ndarray, what: str = "the array") -> np.ndarray:
    """The same memory if it is float32 or float64 already, else a copy."""
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    if array.dtype.kind in "biuf":
        return array.astype(float_type(array.dtype))
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {what} has complex numbers")
    try:
        return array.astype(np.float64)
    except ValueError as error:
        raise DataError(f"{what} has values of type {array.dtype} that are not numbers: {error}") from None


def require_letters(array: np.ndarray) -> None:
    """Refuse text with letters that do not exist, which NumPy reads without a look."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > LAST_LETTER:
            raise DataError("has letters that do not exist; it is damaged")


def pixel_values(array: np.ndarray, what: str = "the array") -> np.ndarray:
    """The same memory if pixels have one or two bytes, else like `float_values`."""
    return array if array.dtype in GRAY else float_values(array, what)
