"""Some rows of a record batch that is too large to be read at once, straight from their places in an Arrow IPC file.

The file ends with the places of its record batches, and each batch begins with the places of its buffers (both are
FlatBuffers, of which a few fields are looked up here). So the bytes of some rows of an uncompressed batch can be read
one buffer after the other, and the rest is never touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

CUT_OFF = "cannot be read, it may be cut off or damaged"

_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])
_NODE = np.dtype([("length", "<i8"), ("nulls", "<i8")])
_BUFFER = np.dtype([("offset", "<i8"), ("size", "<i8")])
_RECORD_BATCH = 3  # type of a message


class Block(NamedTuple):
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


def blocks(file: pa.NativeFile, path: str) -> list[Block]:
    """Where the record batches of a file stand."""
    size = file.size()
    length = _int(_read(file, path, size - 10, 4), 0, "<i4")
    places = _Fields.root(_read(file, path, size - 10 - length, length)).records(3, _BLOCK)
    return [Block(*(int(place[name]) for name in ("offset", "metadata", "body"))) for place in places]


def next_block(file: pa.NativeFile, path: str) -> Block | None:
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
    return Block(offset, prefix + length, message.number(3, "<i8"))


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

    def __init__(self, file: pa.NativeFile, path: str, block: Block, schema: pa.Schema, names: Sequence[str]) -> None:
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
    def of(cls, file: pa.NativeFile, path: str, block: Block, schema: pa.Schema, names: Sequence[str]) -> Slices | None:
        """None where only the whole batch can be read."""
        try:
            return cls(file, path, block, schema, names)
        except _NotInParts:
            return None
        except StopIteration:  # there are fewer buffers than columns need
            raise DataError(CUT_OFF, path) from None

    def parts(self, nbytes: int) -> Iterator[pa.RecordBatch]:
        """All rows in order, in parts of about so many bytes."""
        import pyarrow as pa

        step = max(1, self.rows * nbytes // max(1, self.block.body))
        schema = pa.schema([self.schema.field(name) for name in self.names])
        for first in range(0, self.rows, step):
            stop = min(first + step, self.rows)
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
            wide = t.is_large_list(kind) or t.is_large_binary(kind) or t.is_large_string(kind)
            dtype = np.dtype(np.int64 if wide else np.int32)
            data = self._bytes(column.buffers[1], begin * dtype.itemsize, (stop + 1) * dtype.itemsize)
            offsets = np.frombuffer(data, dtype)
            inside = int(offsets[0]), int(offsets[-1])
            buffers.append(pa.py_buffer(offsets - offsets[0]))
            if column.children:
                children = [self._take(column.children[0], *inside)]
            else:
                buffers.append(self._bytes(column.buffers[2], *inside))
        return pa.Array.from_buffers(kind, rows, buffers, children=children).slice(first - begin)

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
