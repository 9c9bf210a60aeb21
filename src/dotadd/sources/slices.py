"""Some rows of a record batch that is too large to be read at once, straight from their places in an Arrow IPC file.

The file ends with the places of its record batches, and each batch begins with the places of its buffers (both are
FlatBuffers, of which a few fields are looked up here). So the bytes of some rows of an uncompressed batch can be read
one buffer after the other, and the rest is never touched. A row that takes more bytes than it may is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd._util.compressed import too_large
from dotadd.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

CUT_OFF = "cannot be read, it may be cut off or damaged"

_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])
_NODE = np.dtype([("length", "<i8"), ("nulls", "<i8")])
_BUFFER = np.dtype([("offset", "<i8"), ("size", "<i8")])
_RECORD_BATCH = 3  # type of a message


class Place(NamedTuple):
    """Where a message stands in the file, the bytes of its description, and those of the data that follow it."""

    offset: int
    metadata: int
    body: int


class _Fields:
    """A table inside a FlatBuffer: fields are found by their number."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.names = at - _int(data, at, "<i4")

    @classmethod
    def root(cls, data: bytes) -> _Fields:
        return cls(data, _int(data, 0, "<u4"))

    def place(self, number: int) -> int | None:
        """Where a field stands, None if it is not there."""
        entry = 4 + 2 * number
        shift = _int(self.data, self.names + entry, "<u2") if entry < _int(self.data, self.names, "<u2") else 0
        return self.at + shift if shift else None

    def number(self, number: int, kind: str) -> int:
        place = self.place(number)
        return 0 if place is None else _int(self.data, place, kind)

    def table(self, number: int) -> _Fields:
        place = self.place(number)
        if place is None:
            raise ValueError("a part of the description is missing")
        return _Fields(self.data, place + _int(self.data, place, "<u4"))

    def records(self, number: int, kind: np.dtype) -> np.ndarray:
        place = self.place(number)
        if place is None:
            return np.empty(0, kind)
        start = place + _int(self.data, place, "<u4")
        return np.frombuffer(self.data, kind, _int(self.data, start, "<u4"), start + 4)


def _int(data: bytes, at: int, kind: str) -> int:
    return int(np.frombuffer(data, kind, 1, at)[0])


def blocks(file: pa.NativeFile, path: str) -> list[Place]:
    """Where the record batches of a file stand."""
    size = file.size()
    length = _int(_read(file, path, size - 10, 4), 0, "<i4")
    places = _Fields.root(_read(file, path, size - 10 - length, length)).records(3, _BLOCK)
    return [Place(*(int(place[name]) for name in ("offset", "metadata", "body"))) for place in places]


def next_block(file: pa.NativeFile, path: str) -> Place | None:
    """The record batch that a stream goes on with, None if something else comes next."""
    offset = file.tell()
    start = file.read(8)
    marked = start[:4] == b"\xff\xff\xff\xff"
    length = _int(start, 4 if marked else 0, "<i4") if len(start) == 8 else 0
    if not length:
        return None
    prefix = 8 if marked else 4
    message = _Fields.root(_read(file, path, offset + prefix, length))
    if message.number(1, "<u1") != _RECORD_BATCH:
        return None
    return Place(offset, prefix + length, message.number(3, "<i8"))


def _read(file: pa.NativeFile, path: str, offset: int, size: int) -> pa.Buffer:
    if offset < 0 or size < 0:
        raise DataError(CUT_OFF, path)
    file.seek(offset)
    data = file.read_buffer(size)
    if data.size < size:
        raise DataError(CUT_OFF, path)
    return data


@dataclass
class _Column:
    """One column, or one level of a nested one: its type, rows, whether some are missing, and places of its buffers."""

    kind: pa.DataType
    missing: bool
    buffers: list[tuple[int, int]]
    children: list[_Column]


class _NotInParts(Exception):
    """The batch cannot be read in parts."""


class Slices:
    """The rows of one record batch, uncompressed and in columns of types that can be read in parts."""

    def __init__(self, file: pa.NativeFile, path: str, block: Place, schema: pa.Schema, names: Sequence[str]) -> None:
        self.file, self.path, self.names, self.block = file, path, list(names), block
        self.schema = schema
        data = _read(file, path, block.offset, block.metadata)
        prefix = 8 if _int(data, 0, "<i4") == -1 else 4
        batch = _Fields.root(data.slice(prefix)).table(2)
        self.rows = batch.number(0, "<i8")
        if batch.place(3) is not None:
            raise _NotInParts
        nodes, buffers = iter(batch.records(1, _NODE)), iter(batch.records(2, _BUFFER))
        self.columns = {field.name: self._column(field.type, nodes, buffers) for field in schema}
        for name in names:
            _require_parts(self.columns[name])

    @classmethod
    def of(cls, file: pa.NativeFile, path: str, block: Place, schema: pa.Schema, names: Sequence[str]) -> Slices | None:
        """None where only the whole batch can be read."""
        try:
            return cls(file, path, block, schema, names)
        except _NotInParts:
            return None
        except StopIteration:  # there are fewer buffers than columns need
            raise DataError(CUT_OFF, path) from None

    def parts(self, nbytes: int, look: Callable[[np.ndarray], None] = lambda sizes: None) -> Iterator[pa.RecordBatch]:
        """All rows in order, in parts of about so many bytes. look(sizes) is told how many bytes each row of a column
        takes before these are read."""
        import pyarrow as pa

        step = max(1, self.rows * nbytes // max(1, self.block.body))
        schema = pa.schema([self.schema.field(name) for name in self.names])
        for first in range(0, self.rows, step):
            stop = min(first + step, self.rows)
            for name in self.names:
                look(self._sizes(self.columns[name], first, stop))
            yield pa.RecordBatch.from_arrays(
                [self._take(self.columns[n], first, stop) for n in self.names], schema=schema
            )

    def _column(self, kind: pa.DataType, nodes: Iterator[np.void], buffers: Iterator[np.void]) -> _Column:
        """The column of this type that comes next in the description."""
        import pyarrow as pa

        t = pa.types
        if isinstance(kind, pa.BaseExtensionType):
            return _Column(kind, False, [], [self._column(kind.storage_type, nodes, buffers)])
        if t.is_struct(kind) or t.is_fixed_size_list(kind):
            count, children = 1, [kind.field(k).type for k in range(kind.num_fields)]
        elif t.is_list(kind) or t.is_large_list(kind):
            count, children = 2, [kind.value_type]
        elif t.is_null(kind):
            count, children = 0, []
        elif t.is_primitive(kind) or t.is_fixed_size_binary(kind) or t.is_dictionary(kind) or t.is_decimal(kind):
            count, children = 2, []
        elif t.is_binary(kind) or t.is_large_binary(kind) or t.is_string(kind) or t.is_large_string(kind):
            count, children = 3, []
        else:
            raise _NotInParts
        node = next(nodes)
        places = [next(buffers) for _ in range(count)]
        own = [(int(place["offset"]), int(place["size"])) for place in places]
        return _Column(kind, bool(node["nulls"]), own, [self._column(child, nodes, buffers) for child in children])

    def _take(self, column: _Column, first: int, stop: int) -> pa.Array:
        """Rows of a column. They begin at a whole byte of what takes a bit a row, and the rows before are cut off."""
        import pyarrow as pa

        t, kind = pa.types, column.kind
        if isinstance(kind, pa.BaseExtensionType):
            return kind.wrap_array(self._take(column.children[0], first, stop))
        begin = first - first % 8
        rows = stop - begin
        buffers = [self._bits(column.buffers[0], begin, stop) if column.missing else None]
        children = []
        if t.is_struct(kind):
            children = [self._take(child, begin, stop) for child in column.children]
        elif t.is_fixed_size_list(kind):
            children = [self._take(column.children[0], begin * kind.list_size, stop * kind.list_size)]
        elif t.is_boolean(kind):
            buffers.append(self._bits(column.buffers[1], begin, stop))
        elif t.is_primitive(kind) or t.is_fixed_size_binary(kind):
            width = kind.bit_width // 8
            buffers.append(self._bytes(column.buffers[1], begin * width, stop * width))
        else:
            offsets = self._offsets(column, begin, stop)
            inside = int(offsets[0]), int(offsets[-1])
            buffers.append(pa.py_buffer(offsets - offsets[0]))
            if column.children:
                children = [self._take(column.children[0], *inside)]
            else:
                buffers.append(self._bytes(column.buffers[2], *inside))
        return pa.Array.from_buffers(kind, rows, buffers, children=children).slice(first - begin)

    def _offsets(self, column: _Column, begin: int, stop: int) -> np.ndarray:
        """Where rows of text or of lists begin, and where the last one ends."""
        import pyarrow as pa

        t, kind = pa.types, column.kind
        wide = t.is_large_list(kind) or t.is_large_binary(kind) or t.is_large_string(kind)
        dtype = np.dtype(np.int64 if wide else np.int32)
        return np.frombuffer(self._bytes(column.buffers[1], begin * dtype.itemsize, (stop + 1) * dtype.itemsize), dtype)

    def _sizes(self, column: _Column, first: int, stop: int) -> np.ndarray:
        """Bytes of these rows, as far as their own offsets tell."""
        import pyarrow as pa

        t, kind = pa.types, column.kind
        width = width_of(kind)
        if width is not None:
            return np.array([width])
        if t.is_struct(kind) or t.is_fixed_size_list(kind) or isinstance(kind, pa.BaseExtensionType):
            return np.zeros(1, np.int64)
        inside = width_of(column.children[0].kind) if column.children else 1
        return np.diff(self._offsets(column, first, stop).astype(np.int64)) * (inside or 1)

    def _bits(self, place: tuple[int, int], begin: int, stop: int) -> pa.Buffer:
        return self._bytes(place, begin // 8, (stop + 7) // 8)

    def _bytes(self, place: tuple[int, int], begin: int, stop: int) -> pa.Buffer:
        """These bytes of a buffer."""
        offset, size = place
        if not 0 <= begin <= stop <= size:
            raise DataError(CUT_OFF, self.path)
        return _read(self.file, self.path, self.block.offset + self.block.metadata + offset + begin, stop - begin)


def _require_parts(column: _Column) -> None:
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(column.kind) or t.is_null(column.kind) or t.is_decimal(column.kind):
        raise _NotInParts
    for child in column.children:
        _require_parts(child)


class RowLimit:
    """At most so many bytes for a row of one column of a file, or as many as there are if it is None."""

    def __init__(self, path: str, largest: int | None) -> None:
        self.path, self.largest = path, largest
        self.rows = 0  # that have passed

    def check(self, sizes: np.ndarray) -> None:
        """Refuse the rows that come next if one of them is too large."""
        if self.largest is not None and sizes.max(initial=0) > self.largest:
            raise too_large(self.largest, self.path, row=self.rows + int(np.argmax(sizes > self.largest)), budget=True)

    def passing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, of which each column is looked at."""
        for batch in batches:
            if self.largest is not None and batch.get_total_buffer_size() > self.largest:
                for column in batch.columns:
                    self.check(row_sizes(column))
            self.rows += len(batch)
            yield batch
            del batch  # so that it is gone before the next one is read


def width_of(kind: pa.DataType) -> int | None:
    """Bytes of a value, None if values differ in that."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return width_of(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        inner = width_of(kind.value_type)
        return None if inner is None else inner * kind.list_size
    if pa.types.is_struct(kind):
        inside = [width_of(kind.field(k).type) for k in range(kind.num_fields)]
        return None if None in inside else sum(width for width in inside if width is not None)
    if _is_view(kind):
        return None
    try:
        return (kind.bit_width + 7) // 8
    except ValueError:
        return None


def _is_view(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


def row_sizes(array: pa.Array) -> np.ndarray:
    """Bytes of each row, without those of offsets; 0 for types that no example is made of."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t, kind = pa.types, array.type
    if isinstance(array, pa.ExtensionArray):
        return row_sizes(array.storage)
    if t.is_dictionary(kind):
        return row_sizes(array.dictionary)[np.asarray(array.indices.fill_null(0))]
    if (width := width_of(kind)) is not None:
        return np.full(len(array), width, np.int64)
    if t.is_list(kind) or t.is_large_list(kind):
        offsets = np.asarray(array.offsets).astype(np.int64)
        if (width := width_of(kind.value_type)) is not None:
            return np.diff(offsets) * width
        before = np.zeros(len(array.values) + 1, np.int64)
        np.cumsum(row_sizes(array.values), out=before[1:])
        return np.diff(before[offsets])
    if t.is_struct(kind):
        return sum((row_sizes(array.field(k)) for k in range(kind.num_fields)), start=np.zeros(len(array), np.int64))
    if _is_view(kind):  # 16 bytes for each row, which begin with its length
        lengths = np.frombuffer(array.buffers()[1], np.int32)[::4][array.offset : array.offset + len(array)]
        return np.where(np.asarray(array.is_valid()), lengths, 0)
    try:
        return np.asarray(pc.binary_length(array).fill_null(0)).astype(np.int64)
    except pa.ArrowNotImplementedError:
        return np.zeros(len(array), np.int64)
