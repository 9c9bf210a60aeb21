"""Batches: some raw examples in memory, columnar and compact, in Arrow's layout.

A batch is what a source yields and what a feature map reads. Each kind says which arrays it is made of, and how they
become an Arrow array and come back without a copy; `data/ragged.py` then takes rows, slices, joins and counts bytes.
Offsets are int64, whatever came: kernels are compiled for them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.data.ragged import Batch, Parts, Ragged, as_offsets

if TYPE_CHECKING:
    import pyarrow as pa


LARGEST_VALUE = 1e16
"""The largest number that a vector may hold, or a feature map be scaled by. w and sums of gradients may be float32,
which ends at 3.4e38: of squares of values, 1e32, C n = 3 million can then be added up. Whole numbers are exact in
float64 up to 9e15, so that what is refused could not be told apart anyway."""


class SparseRows(Ragged):
    """Sparse vectors: row r has the indices `indices[offsets[r]:offsets[r+1]]` and the values beside them.

    `values` is None for binary rows (every value is 1). Neither is copied or converted: int32 or int64 indices and
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
        self.offsets, self.indices, self.values = as_offsets(offsets), indices, values
        self.n_features, self.distinct = int(n_features), distinct

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def parts(self) -> Parts:
        if self.values is None:
            return Parts((self.offsets,), (self.indices,), (1,))
        return Parts((self.offsets,), (self.indices, self.values), (1, 1))

    @classmethod
    def of(cls, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        return cls(offsets[0], arrays[0], arrays[1] if len(arrays) == 2 else None, 0)

    def made(self, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        values = arrays[1] if len(arrays) == 2 else None
        return type(self)(offsets[0], arrays[0], values, self.n_features, distinct=self.distinct)

    def alike(self, other: Self) -> tuple[Self, Self]:
        mine, theirs = ((batch.n_features, batch.distinct, batch.values is None) for batch in (self, other))
        if mine == theirs:
            return self, other
        n_features, distinct = max(self.n_features, other.n_features), self.distinct and other.distinct
        dtype = np.result_type(*(batch.values.dtype for batch in (self, other) if batch.values is not None), np.bool_)

        def widened(batch: Self) -> Self:
            values = batch.values
            if values is None and dtype != np.bool_:
                values = np.broadcast_to(np.ones((), dtype), batch.indices.shape)
            return type(self)(batch.offsets, batch.indices, values, n_features, distinct=distinct)

        return widened(self), widened(other)

    def to_arrow(self) -> pa.Array:
        import pyarrow as pa

        first, stop = int(self.offsets[0]), int(self.offsets[-1])
        items = arrow_of(self.indices[first:stop])
        if self.values is not None:
            items = pa.StructArray.from_arrays([items, arrow_of(self.values[first:stop])], ["index", "value"])
        offsets = self.offsets if first == 0 else self.offsets - first
        return pa.LargeListArray.from_arrays(arrow_of(offsets), items)


class DenseRows(Ragged):
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

    def parts(self) -> Parts:
        return Parts((), (self.values,), (0,))

    @classmethod
    def of(cls, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        return cls(arrays[0])

    def to_arrow(self) -> pa.Array:
        import pyarrow as pa

        return pa.FixedShapeTensorArray.from_numpy_ndarray(self.values)


class Images(DenseRows):
    """Gray images of one size: an array of shape (images, height, width)."""

    kind = "images"

    @property
    def n_features(self) -> int:
        return self.values.shape[1] * self.values.shape[2]


class Strings(Ragged):
    """Byte strings one after the other in `letters`.

    Either `offsets` says where each begins, or all have the same `width` and no offsets are kept.
    """

    kind = "strings"

    def __init__(self, letters: np.ndarray, offsets: np.ndarray | None = None, *, width: int | None = None) -> None:
        if (offsets is None) == (width is None):
            raise ValueError("give offsets or a width, and not both")
        self.letters, self.width = letters, width
        self.offsets = None if offsets is None else as_offsets(offsets)

    @classmethod
    def from_list(cls, strings: Sequence[str | bytes]) -> Strings:
        """From Python strings; text is kept as UTF-8."""
        encoded = [s.encode() if isinstance(s, str) else bytes(s) for s in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(s) for s in encoded], out=offsets[1:])
        return cls(np.frombuffer(bytearray().join(encoded), np.uint8), offsets)  # which kernels take as it is

    def __len__(self) -> int:
        if self.offsets is not None:
            return len(self.offsets) - 1
        assert self.width is not None
        return len(self.letters) // self.width

    def parts(self) -> Parts:
        if self.offsets is not None:
            return Parts((self.offsets,), (self.letters,), (1,))
        assert self.width is not None
        return Parts((), (self.letters.reshape(-1, self.width),), (0,))

    @classmethod
    def of(cls, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        letters = arrays[0]
        return cls(letters, offsets[0]) if offsets else cls(letters.reshape(-1), width=letters.shape[1])

    def alike(self, other: Self) -> tuple[Self, Self]:
        return (self, other) if self.width == other.width else (self.with_offsets(), other.with_offsets())

    def __getitem__(self, row: int) -> bytes:
        starts, ends = self.bounds(np.array([row]))
        return self.letters[starts[0] : ends[0]].tobytes()

    def bounds(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where each of these rows begins and ends in `letters`."""
        if self.offsets is None:
            assert self.width is not None
            starts = rows.astype(np.int64) * self.width
            return starts, starts + self.width
        return self.offsets[:-1][rows].astype(np.int64, copy=False), self.offsets[1:][rows].astype(np.int64, copy=False)

    def lengths(self) -> np.ndarray:
        """Letters in each row."""
        if self.offsets is None:
            return np.full(len(self), self.width, np.int64)
        return self.offsets[1:] - self.offsets[:-1]

    def together(self) -> Strings:
        """The same strings, their letters one after the other and nothing between them."""
        return self

    def with_offsets(self) -> Self:
        if self.offsets is not None:
            return self
        assert self.width is not None
        return type(self)(self.letters, np.arange(len(self) + 1, dtype=np.int64) * self.width)

    def to_arrow(self) -> pa.Array:
        import pyarrow as pa

        if self.offsets is None:
            return pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(self.width), len(self), [None, pa.py_buffer(self.letters)]
            )
        first, stop = int(self.offsets[0]), int(self.offsets[-1])
        offsets = self.offsets if first == 0 else self.offsets - first
        buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(self.letters[first:stop])]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)


# DNA of one length in two bits a letter: four letters a byte, the first in the lowest bits; A C G T are 0 1 2 3.
_CODES = np.full(256, 255, np.uint8)
for _code, _letters in enumerate((b"Aa", b"Cc", b"Gg", b"Tt")):
    for _letter in _letters:
        _CODES[_letter] = _code
_CAPITALS = np.where(np.arange(256) < ord("a"), _CODES, 255).astype(np.uint8)
_LETTERS = np.uint32(int.from_bytes(b"ACGT", "little"))


def fixed_width(strings: Strings) -> int | None:
    """The length of every string, None where they differ or are empty."""
    if strings.width is not None:
        return strings.width
    lengths = strings.lengths()
    return int(lengths[0]) if len(lengths) and lengths[0] > 0 and (lengths == lengths[0]).all() else None


def pack(strings: Strings, width: int, *, capitals: bool = False) -> np.ndarray | None:
    """An array of shape (rows, bytes a row), or None if some string has another length or another letter than ACGT.

    With `capitals`, small letters are others.
    """
    if fixed_width(strings) != width:
        return None
    strings = strings.together()
    first = 0 if strings.offsets is None else int(strings.offsets[0])
    packed = np.zeros((len(strings), (width + 3) // 4), np.uint8)
    codes = _CAPITALS if capitals else _CODES
    sound = _pack(plain(strings.letters[first : first + len(strings) * width]), width, codes, packed)
    return packed if sound else None


def unpack(packed: np.ndarray, width: int) -> Strings:
    """The strings again, in capital letters."""
    letters = np.empty(len(packed) * width, np.uint8)
    _unpack(plain(packed), width, letters)
    return Strings(letters, width=width)


@kernel
def _pack(letters, width, codes, packed):
    wrong = np.uint8(0)
    for row in range(len(packed)):
        base = np.uint64(row * width)
        for k in range(np.uint64(width)):
            code = codes[letters[base + k]]
            wrong |= code
            packed[row, k >> np.uint64(2)] |= code << (np.uint8(2) * np.uint8(k & np.uint64(3)))
    return wrong < np.uint8(4)


@kernel
def _unpack(packed, width, letters):
    whole = np.uint64(width // 4)
    for row in range(len(packed)):
        base = np.uint64(row * width)
        for b in range(whole):
            byte = np.uint32(packed[row, b])
            for j in range(np.uint64(4)):
                code = (byte >> np.uint32(2 * j)) & np.uint32(3)
                letters[base + np.uint64(4) * b + j] = np.uint8(_LETTERS >> (np.uint32(8) * code))
        for k in range(np.uint64(4) * whole, np.uint64(width)):
            code = (np.uint32(packed[row, k >> np.uint64(2)]) >> np.uint32(2 * (k & np.uint64(3)))) & np.uint32(3)
            letters[base + k] = np.uint8(_LETTERS >> (np.uint32(8) * code))


def numpy_of(array: pa.Array) -> np.ndarray:
    """The numbers of an array, without a copy. Arrow's own way to NumPy imports pandas where that is installed."""
    import pyarrow as pa

    if array.null_count:
        raise ValueError("column has missing values inside its lists; fill or drop them first")
    if pa.types.is_boolean(array.type):
        return array.to_numpy(zero_copy_only=False)
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return np.from_dlpack(array)
    raise ValueError(f"column holds {array.type} where numbers are expected")


def arrow_of(numbers: np.ndarray) -> pa.Array:
    """The inverse: `pa.array` imports pandas, too."""
    import pyarrow as pa

    kind, memory = pa.from_numpy_dtype(numbers.dtype), pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(kind, len(numbers), [None, memory])


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
        return DenseRows(numpy_of(array.flatten()).reshape(len(array), kind.list_size))
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

    items, offsets = array.values, numpy_of(array.offsets)
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
        return DenseRows(numpy_of(items)[offsets[0] : offsets[-1]].reshape(len(array), width))
    indices = numpy_of(parts[0])
    if indices.dtype.kind not in "iu":
        raise ValueError(f"cannot read a column of {array.type} as sparse rows; expected list<struct<index, value>>")
    if indices.dtype not in (np.int32, np.int64):  # kernels know these
        indices = indices.astype(np.int32 if indices.dtype.itemsize < 4 else np.int64)
    if n_features is None:
        used = indices[offsets[0] : offsets[-1]]
        n_features = int(used.max()) + 1 if len(used) else 0
    return SparseRows(offsets, indices, numpy_of(parts[1]) if len(parts) == 2 else None, n_features)


def _buffer(buffer: pa.Buffer | None) -> np.ndarray:
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
