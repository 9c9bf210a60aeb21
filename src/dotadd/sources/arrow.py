"""Arrow IPC files and streams, and Parquet, read one record batch at a time.

Files are read, not mapped into memory: pages of a map count as memory of the process until the system takes them away,
and a file that is cut off while it is mapped ends the process. Measured, a pass over a file in the page cache is half
as fast as through a map where nothing is done with the numbers, and equally fast where they are decompressed.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dotadd._util import memory
from dotadd._util.compressed import reading
from dotadd.data.batches import DenseRows, SparseRows
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import CHUNK_BYTES, Chunk, Options
from dotadd.sources.files import TableFile
from dotadd.sources.slices import CUT_OFF, Place, RowLimit, Slices, blocks, next_block, width_of
from dotadd.sources.sound import with_distinct
from dotadd.sources.table import (
    LINES,
    Layout,
    chunk_of,
    is_nested,
    labels_beside,
    layout_of,
    names_of,
    numbers,
    unpacked,
)
from dotadd.sources.text import first_lines

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"ARROW1"  # which files begin with, and streams do not
WHOLE = 1 << 20  # record batches of so many bytes are not joined to larger ones, which would copy them
ABOUT = 1.25  # a chunk may be so many times larger than asked for, before it is cut
MANY = 4096  # rows of Parquet that are read at a time where they may be of any length
LARGEST = 64 << 20  # of a compressed record batch, where memory is bounded


@dataclass
class ArrowFile(TableFile):
    """An Arrow IPC file or stream, or a Parquet file (`format` says which), read one record batch at a time.

    With `bounded`, a record batch that can be read only as a whole and is too large for that is refused.
    """

    bounded: bool = field(default=False, kw_only=True, compare=False)

    @classmethod
    def opened(cls, path: str, format: str, options: Options) -> ArrowFile:
        stream = format == "arrow" and not first_lines(path, len(MAGIC)).startswith(MAGIC)
        return cls(path, format="arrow stream" if stream else format, **options)

    @property
    def quick(self) -> bool:
        return True

    @property
    def place(self) -> str:
        """Where the file is opened."""
        return self.path

    @property
    def stride(self) -> int:
        return 4 * WHOLE  # record batches are then joined once, by `load`

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with ExitStack() as stack, _reading_arrow(self.path):
            schema, n_features, batches = self._open(stack)
            layout = self._layout_of(schema)
            self.columns, self.layout = names_of(schema, layout)
            about = schema.metadata if b"dotadd" in (schema.metadata or {}) else {}
            lines = _line_column(about, schema)
            names = layout.columns if lines is None else [*layout.columns, lines]
            nbytes = max(1, nbytes // unpacked(schema.field(layout.features[0])))
            row = 0
            for table in _sized(batches(names, nbytes), nbytes):
                chunk = chunk_of(self, table, layout, n_features=n_features, path=self.path, first_row=row)
                if lines is not None:
                    chunk = dataclasses.replace(chunk, lines=numbers(table.column(lines)))
                row += len(table)
                yield with_distinct(chunk)

    def column_names(self) -> list[str] | None:
        with ExitStack() as stack, _reading_arrow(self.path):
            schema, _, _ = self._open(stack)
            own = b"dotadd" in (schema.metadata or {})
            return None if own or any(is_nested(field.type) for field in schema) else list(schema.names)

    def outline(self) -> Iterator[Chunk] | None:
        """Labels and weights are columns of their own, and of vectors the file says how wide they are."""
        import pyarrow as pa

        if self.format != "arrow" or self.on_bad_row == "skip":
            return None
        with ExitStack() as stack, _reading_arrow(self.path):
            schema, n_features, batches = self._open(stack)
            layout = self._layout_of(schema)
            kind = schema.field(layout.features[0]).type
            sparse = pa.types.is_list(kind) or pa.types.is_large_list(kind)
            dense = isinstance(kind, pa.FixedShapeTensorType) or pa.types.is_fixed_size_list(kind)
            if layout.dense or layout.label is None or not (dense or (sparse and n_features is not None)):
                return None
            first = next(batches(layout.columns, 1), None)
            if first is None:
                return None
            empty = chunk_of(self, first.slice(0, 0), layout, n_features=n_features, path=self.path)
        return self._labels(layout, empty) if isinstance(empty.batch, SparseRows | DenseRows) else None

    def _layout_of(self, schema: pa.Schema) -> Layout:
        return layout_of(schema, self.wanted, path=self.path, like=self.like, ids=self.ids)

    def _labels(self, layout: Layout, empty: Chunk) -> Iterator[Chunk]:
        names = [name for name in layout.columns if name not in layout.features]
        row = 0
        with ExitStack() as stack, _reading_arrow(self.path):
            for table in self._open(stack)[2](names, CHUNK_BYTES):
                beside = labels_beside(self, table, layout, self.path, row)
                row += len(table)
                yield dataclasses.replace(empty, y=beside[0], weight=beside[1])

    def _open(self, stack: ExitStack) -> tuple[pa.Schema, int | None, _Batches]:
        """The schema, the number of features where the file says it, and what yields the batches of some columns."""
        limit = RowLimit(self.path, self.largest)
        schema, n_features, batches = self._opened(stack, limit)
        return schema, n_features, lambda names, nbytes: limit.passing(batches(names, nbytes))

    def _opened(self, stack: ExitStack, limit: RowLimit) -> tuple[pa.Schema, int | None, _Batches]:
        if self.format == "parquet":
            return _open_parquet(self.place, stack)
        import pyarrow as pa
        import pyarrow.ipc

        file = stack.enter_context(pa.OSFile(os.fsencode(self.place)))
        if self.format == "arrow stream":
            stream = stack.enter_context(pa.ipc.open_stream(file))
            return stream.schema, None, lambda names, nbytes: _sound(self._stream(file, stream, names, nbytes, limit))
        reader = stack.enter_context(pa.ipc.open_file(file))
        count = reader.num_record_batches
        n_features = None
        if b"dotadd" in (reader.schema.metadata or {}) and count:
            # `convert` learns the number of features while it writes, so it stands with a last, empty batch.
            n_features = _n_features(reader.get_batch_with_custom_metadata(count - 1)[1])
        schema = reader.schema
        return schema, n_features, lambda names, nbytes: _sound(self._file(file, schema, names, nbytes, limit))

    def _file(
        self, file: pa.NativeFile, schema: pa.Schema, names: Sequence[str], nbytes: int, limit: RowLimit
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.ipc

        wanted = None if len(names) == len(schema) else [schema.get_field_index(name) for name in names]
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=wanted))
        for number, block in enumerate(blocks(file, self.path)):
            parts = self._parts(file, block, schema, names, nbytes, limit)
            yield from (reader.get_batch(number).select(names),) if parts is None else parts

    def _stream(
        self,
        file: pa.NativeFile,
        stream: pa.RecordBatchStreamReader,
        names: Sequence[str],
        nbytes: int,
        limit: RowLimit,
    ) -> Iterator[pa.RecordBatch]:
        while True:
            place, block = file.tell(), next_block(file, self.path)
            parts = None if block is None else self._parts(file, block, stream.schema, names, nbytes, limit)
            if block is not None and parts is not None:
                yield from parts
                file.seek(sum(block))
                continue
            file.seek(place)  # where the stream left it
            try:
                yield stream.read_next_batch().select(names)
            except StopIteration:
                return

    def _parts(
        self,
        file: pa.NativeFile,
        block: Place,
        schema: pa.Schema,
        names: Sequence[str],
        nbytes: int,
        limit: RowLimit,
    ) -> Iterator[pa.RecordBatch] | None:
        """A large record batch in parts, None if it is to be read as it is."""
        if block.body <= ABOUT * nbytes:
            return None
        slices = Slices.of(file, self.path, block, schema, names)
        if slices is None and self.bounded and block.body > LARGEST:
            raise DataError(
                f"has a record batch of {memory.words(block.body)} that can only be read as a whole: it is compressed, "
                "or has text that refers to other places; write it anew with smaller ones (dotadd convert)",
                self.path,
            )
        return None if slices is None else slices.parts(nbytes, limit.check)


_Batches = Callable[[Sequence[str], int], "Iterator[pa.RecordBatch]"]


def _open_parquet(path: str, stack: ExitStack) -> tuple[pa.Schema, int | None, _Batches]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    raw = stack.enter_context(pa.OSFile(os.fsencode(path)))
    # Read through small buffers, page by page, so that memory does not depend on the size of row groups.
    file = stack.enter_context(pq.ParquetFile(raw, pre_buffer=False, buffer_size=WHOLE))
    size = sum(file.metadata.row_group(g).total_byte_size for g in range(file.num_row_groups))

    def batches(names: Sequence[str], nbytes: int) -> Iterator[pa.RecordBatch]:
        # On disk, values that are alike take next to nothing: what counts is what they take in memory.
        widths = [width_of(file.schema_arrow.field(name).type) for name in names]
        row = max(1, size // max(1, file.metadata.num_rows), sum(width or 0 for width in widths))
        rows = min(nbytes, 4 * WHOLE) // row
        return file.iter_batches(batch_size=max(1, min(rows, MANY if None in widths else rows)), columns=names)

    return file.schema_arrow, _n_features(file.metadata.metadata), batches


def _n_features(metadata: dict[bytes, bytes] | None) -> int | None:
    value = (metadata or {}).get(b"n_features")
    if value is not None and not (value.isdigit() and len(value) < 19):
        raise ValueError("it does not say how many features it has")
    return None if value is None else int(value)


def _line_column(about: dict[bytes, bytes], schema: pa.Schema) -> str | None:
    """The column that tells on which line of a text an example stood."""
    import pyarrow as pa

    if LINES not in about:
        return None
    name = about[LINES].decode()
    if schema.names.count(name) != 1 or not pa.types.is_integer(schema.field(name).type):
        raise ValueError(f"its column {name!r} of line numbers is missing")
    return name


def _sound(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, but for damaged ones, of which even the size might be read from nowhere: they raise."""
    for batch in batches:
        batch.validate()
        yield batch
        del batch  # so that it is gone before the next one is read


def _sized(batches: Iterator[pa.RecordBatch], nbytes: int) -> Iterator[pa.RecordBatch]:
    """Record batches of at most about so many bytes: large ones are sliced, small ones joined."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    size = 0

    def joined() -> list[pa.RecordBatch]:
        if len(waiting) < 2:
            return waiting
        return pa.Table.from_batches(waiting).combine_chunks().to_batches()

    for batch in batches:
        if not len(batch):
            continue
        if size + batch.nbytes > nbytes or batch.nbytes >= WHOLE:
            yield from joined()
            waiting, size = [], 0
        if batch.nbytes > ABOUT * nbytes:
            step = max(1, len(batch) * nbytes // batch.nbytes)
            yield from (batch.slice(first, step) for first in range(0, len(batch), step))
        elif batch.nbytes >= WHOLE:
            yield batch
        else:
            waiting.append(batch)
            size += batch.nbytes
        del batch  # so that it is gone before the next one is read
    yield from joined()


@contextmanager
def _reading_arrow(path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        with reading(path):
            try:
                yield
            except OSError as error:
                if error.errno is None:  # Arrow's own: there is less of the file than it tells
                    raise pa.ArrowInvalid(str(error)) from None
                raise
    except DotaddError:
        raise
    except (pa.ArrowException, ValueError, KeyError, IndexError, RecursionError) as error:
        raise DataError(f"{CUT_OFF}: {(str(error).splitlines() or [type(error).__name__])[0]}", path) from None
