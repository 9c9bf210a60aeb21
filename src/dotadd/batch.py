"""Batches: some raw examples in memory, columnar and compact, in Arrow's layout.

A batch is what a source yields and what a feature map reads. Each kind knows its length, its bytes, how to take some
rows, how to join with others, and how to become an Arrow array and come back without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from dotadd.growing import Growing, GrowingOffsets

if TYPE_CHECKING:
    import pyarrow as pa


LARGEST_VALUE = 1e16
"""The largest number that a vector may hold, or a feature map be scaled by. w and sums of gradients may be float32,
which ends at 3.4e38: of squares of values, 1e32, C n = 3 million can then be added up. Whole numbers are exact in
float64 up to 9e15, so that what is refused could not be told apart anyway."""


class Batch:
    """Raw examples of one kind. `kind` names it in messages and model files."""

    kind: ClassVar[str]

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, shared memory included."""
        raise NotImplementedError

    def row_bytes(self) -> np.ndarray:
        """Bytes of each row."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> Self:
        """A batch of these rows, in this order."""
        raise NotImplementedError

    def slice(self, first: int, stop: int) -> Self:
        """Neighbouring rows, without a copy."""
        raise NotImplementedError

    def own(self) -> Batch:
        """The same rows in a batch that holds them itself; virtual examples are made for it."""
        return self

    def typical(self) -> Batch:
        """A batch that shows what rows maps will see: their kind, width, or longest length."""
        return self

    @classmethod
    def concat(cls, batches: Iterable[Self]) -> Self:
        """The rows of all of them, one batch after the other; one batch alone is returned as it is.

        The batches may come from a generator: each is copied and let go, so that the rows are never in memory twice.
        """
        several = iter(batches)
        first = next(several)
        second = next(several, None)
        return first if second is None else cls._joined(chain((first, second), several))

    @classmethod
    def _joined(cls, batches: Iterator[Self]) -> Self:
        raise NotImplementedError

    def to_arrow(self) -> pa.Array:
        """An Arrow array over the same memory."""
        raise NotImplementedError


def item_places(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of the taken rows, and where each of their items lies in the old array."""
    starts = offsets[:-1][rows].astype(np.int64)
    lengths = offsets[1:][rows].astype(np.int64) - starts
    taken = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=taken[1:])
    return taken, np.arange(taken[-1]) + np.repeat(starts - taken[:-1], lengths)


class SparseRows(Batch):
    """Sparse vectors: row r has the indices `indices[offsets[r]:offsets[r+1]]` and the values beside them.

    `values` is None for binary rows (every value is 1). Nothing is copied or converted: int32 or int64 indices and
    float32 or float64 values stay what they are. `distinct` says that no index occurs twice in a row.
    """

    kind = "sparse rows"

    def __init__(
        self,
        offsets: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray | None,
        n_features: int,
        *,
        distinct: bool = True,
    ) -> None:
        self.offsets, self.indices, self.values = offsets, indices, values
        self.n_features, self.distinct = int(n_features), distinct

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.indices.nbytes + (0 if self.values is None else self.values.nbytes)

    def row_bytes(self) -> np.ndarray:
        size = self.indices.itemsize + (0 if self.values is None else self.values.itemsize)
        return np.diff(self.offsets) * size

    def take(self, rows: np.ndarray) -> SparseRows:
        offsets, at = item_places(self.offsets, rows)
        values = None if self.values is None else self.values[at]
        return SparseRows(offsets, self.indices[at], values, self.n_features, distinct=self.distinct)

    def slice(self, first: int, stop: int) -> SparseRows:
        offsets = self.offsets[first : stop + 1]
        return SparseRows(offsets, self.indices, self.values, self.n_features, distinct=self.distinct)

    @classmethod
    def _joined(cls, batches: Iterator[SparseRows]) -> SparseRows:
        offsets, indices, values = GrowingOffsets(), None, None
        n_features, distinct = 0, True
        for batch in batches:
            span = slice(int(batch.offsets[0]), int(batch.offsets[-1]))
            if batch.values is not None and values is None:
                values = Growing(np.ones(0 if indices is None else len(indices), batch.values.dtype))
            if values is not None:
                length = span.stop - span.start
                values.extend(np.ones(length, np.bool_) if batch.values is None else batch.values[span])
            if indices is None:
                indices = Growing(batch.indices[span])
            else:
                indices.extend(batch.indices[span])
            offsets.extend(batch.offsets)
            n_features, distinct = max(n_features, batch.n_features), distinct and batch.distinct
        assert indices is not None
        joined_values = None if values is None else values.done()
        return cls(offsets.done(), indices.done(), joined_values, n_features, distinct=distinct)

    def to_arrow(self) -> pa.Array:
        import pyarrow as pa

        first, stop = int(self.offsets[0]), int(self.offsets[-1])
        items = pa.array(self.indices[first:stop])
        if self.values is not None:
            items = pa.StructArray.from_arrays([items, pa.array(self.values[first:stop])], ["index", "value"])
        offsets = self.offsets if first == 0 else self.offsets - first
        if offsets.dtype == np.int32:
            return pa.ListArray.from_arrays(pa.array(offsets), items)
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items)


class DenseRows(Batch):
    """Vectors with every value written down: a C-contiguous array of shape (rows, features)."""

    kind = "dense rows"

    def __init__(self, values: np.ndarray) -> None:
        self.values = np.ascontiguousarray(values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_features(self) -> int:
        return self.values.shape[1]

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each row begins in the values written one after the other; made once, as maps ask for each block."""
        return np.arange(len(self) + 1, dtype=np.int64) * self.n_features

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def row_bytes(self) -> np.ndarray:
        return np.full(len(self), self.values.itemsize * self.n_features)

    def take(self, rows: np.ndarray) -> Self:
        return type(self)(self.values[rows])

    def slice(self, first: int, stop: int) -> Self:
        return type(self)(self.values[first:stop])

    @classmethod
    def _joined(cls, batches: Iterator[Self]) -> Self:
        values = Growing(next(batches).values)
        for batch in batches:
            values.extend(batch.values)
        return cls(values.done())

    def to_arrow(self) -> pa.Array:
        import pyarrow as pa

        return pa.FixedShapeTensorArray.from_numpy_ndarray(self.values)


class Images(DenseRows):
    """Gray images of one size: an array of shape (images, height, width)."""

    kind = "images"

    @property
    def n_features(self) -> int:
        return self.values.shape[1] * self.values.shape[2]


class Strings(Batch):
    """Byte strings one after the other in `letters`.

    Either `offsets` says where each begins, or all have the same `width` and no offsets are kept.
    """

    kind = "strings"

    def __init__(self, letters: np.ndarray, offsets: np.ndarray | None = None, *, width: int | None = None) -> None:
        if (offsets is None) == (width is None):
            raise ValueError("give offsets or a width, and not both")
        self.letters, self.offsets, self.width = letters, offsets, width

    @classmethod
    def from_list(cls, strings: Sequence[str | bytes]) -> Strings:
        """From Python strings; text is kept as UTF-8."""
        encoded = [s.encode() if isinstance(s, str) else bytes(s) for s in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(s) for s in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.letters) // self.width if self.offsets is None else len(self.offsets) - 1  # type: ignore[operator]

    def __getitem__(self, row: int) -> bytes:
        starts, ends = self.bounds(np.array([row]))
        return self.letters[starts[0] : ends[0]].tobytes()

    @property
    def nbytes(self) -> int:
        return self.letters.nbytes + (0 if self.offsets is None else self.offsets.nbytes)

    def bounds(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where each of these rows begins and ends in `letters`."""
        if self.offsets is None:
            assert self.width is not None
            starts = rows.astype(np.int64) * self.width
            return starts, starts + self.width
        return self.offsets[:-1][rows].astype(np.int64), self.offsets[1:][rows].astype(np.int64)

    def lengths(self) -> np.ndarray:
        """Letters in each row."""
        if self.offsets is None:
            return np.full(len(self), self.width, np.int64)
        return np.diff(self.offsets)

    def row_bytes(self) -> np.ndarray:
        return self.lengths()

    def take(self, rows: np.ndarray) -> Strings:
        if self.offsets is None:
            assert self.width is not None
            return Strings(self.letters.reshape(-1, self.width)[rows].ravel(), width=self.width)
        offsets, at = item_places(self.offsets, rows)
        return Strings(self.letters[at], offsets)

    def slice(self, first: int, stop: int) -> Strings:
        if self.offsets is None:
            assert self.width is not None
            return Strings(self.letters[first * self.width : stop * self.width], width=self.width)
        return Strings(self.letters, self.offsets[first : stop + 1])

    @classmethod
    def _joined(cls, batches: Iterator[Strings]) -> Strings:
        letters, offsets, width = Growing(np.empty(0, np.uint8)), GrowingOffsets(), None
        for number, batch in enumerate(batches):
            if number == 0:
                width = batch.width
            elif width is not None and batch.width != width:
                offsets.extend(np.arange(len(letters) // width + 1) * width)
                width = None
            if width is None:
                offsets.extend(batch.with_offsets().offsets)  # type: ignore[arg-type]
            letters.extend(batch._letters_used())
        return cls(letters.done(), width=width) if width is not None else cls(letters.done(), offsets.done())

    def _letters_used(self) -> np.ndarray:
        return self.letters if self.offsets is None else self.letters[self.offsets[0] : self.offsets[-1]]

    def with_offsets(self) -> Strings:
        if self.offsets is not None:
            return self
        assert self.width is not None
        return Strings(self.letters, np.arange(len(self) + 1, dtype=np.int64) * self.width)

    def to_arrow(self) -> pa.Array:
        import pyarrow as pa

        if self.offsets is None:
            return pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(self.width), len(self), [None, pa.py_buffer(self.letters)]
            )
        first, stop = int(self.offsets[0]), int(self.offsets[-1])
        offsets = self.offsets if first == 0 else self.offsets - first
        kind = pa.binary() if offsets.dtype == np.int32 else pa.large_binary()
        buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(self.letters[first:stop])]
        return pa.Array.from_buffers(kind, len(self), buffers)


def _numpy(array: pa.Array) -> np.ndarray:
    """The numbers of an array, without a copy. Arrow's own way to NumPy imports pandas where that is installed."""
    import pyarrow as pa

    if array.null_count:
        raise ValueError("column has missing values inside its lists; fill or drop them first")
    if pa.types.is_boolean(array.type):
        return array.to_numpy(zero_copy_only=False)
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return np.from_dlpack(array)
    raise ValueError(f"column holds {array.type} where numbers are expected")


def _offsets(array: pa.Array, dtype: type) -> np.ndarray:
    """A binary array's offsets, honouring that it may be a slice of a longer one."""
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array) + 1]


def from_arrow(array: pa.Array, *, n_features: int | None = None) -> Batch:
    """The batch over an Arrow array's memory; the inverse of `to_arrow`.

    Lists become sparse rows (`list<struct<index, value>>`, or `list<int>` for binary rows), lists of floats of one
    length, tensors and fixed-size lists dense rows or images, text and binary columns strings. `n_features` is the
    width of the space of sparse rows where it is known; otherwise it is taken from the largest index.
    """
    import pyarrow as pa

    if array.null_count:
        raise ValueError(f"column has {array.null_count} missing values; fill or drop them first")
    kind = array.type
    if isinstance(array, pa.FixedShapeTensorArray):
        values = array.to_numpy_ndarray()
        return Images(values) if values.ndim == 3 else DenseRows(values)
    if pa.types.is_fixed_size_list(kind):
        return DenseRows(_numpy(array.flatten()).reshape(len(array), kind.list_size))
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        if not width:
            raise ValueError("column holds strings of no letters")
        letters = np.frombuffer(array.buffers()[1], np.uint8)
        return Strings(letters[array.offset * width : (array.offset + len(array)) * width], width=width)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return Strings(_buffer(array.buffers()[2]), _offsets(array, np.int32))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return Strings(_buffer(array.buffers()[2]), _offsets(array, np.int64))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _from_lists(array, n_features)
    raise ValueError(f"cannot read a column of {kind} as examples")


def _from_lists(array: pa.Array, n_features: int | None) -> Batch:
    import pyarrow as pa

    items, offsets = array.values, _numpy(array.offsets)
    parts = [items]
    if pa.types.is_struct(items.type):
        if not {"index", "value"} <= {field.name for field in items.type}:
            raise ValueError(f"cannot read a column of {array.type}; expected list<struct<index, value>>")
        parts = [items.field("index"), items.field("value")]
    if any(part.null_count for part in (items, *parts)):
        raise ValueError("column has missing values inside its lists; fill or drop them first")
    if pa.types.is_floating(items.type):
        width = int(offsets[1] - offsets[0]) if len(array) else 0
        if not (np.diff(offsets) == width).all():
            raise ValueError("column has lists of numbers that differ in length")
        return DenseRows(_numpy(items)[offsets[0] : offsets[-1]].reshape(len(array), width))
    indices = _numpy(parts[0])
    if indices.dtype.kind not in "iu":
        raise ValueError(f"cannot read a column of {array.type} as sparse rows; expected list<struct<index, value>>")
    if indices.dtype not in (np.int32, np.int64):  # kernels know these
        indices = indices.astype(np.int32 if indices.dtype.itemsize < 4 else np.int64)
    if n_features is None:
        used = indices[offsets[0] : offsets[-1]]
        n_features = int(used.max()) + 1 if len(used) else 0
    return SparseRows(offsets, indices, _numpy(parts[1]) if len(parts) == 2 else None, n_features)


def _buffer(buffer: pa.Buffer | None) -> np.ndarray:
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
