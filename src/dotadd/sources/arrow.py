"""Arrow IPC files and streams, and Parquet. Uncompressed Arrow files are read in place, through a memory map."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.sound import with_distinct
from dotadd.sources.table import chunk_of, layout_of
from dotadd.sources.text import reading

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class ArrowFile(FileSource):
    """An Arrow IPC file or stream, or a Parquet file (`format` says which), read one record batch at a time."""

    format: str = field(kw_only=True)
    column: str | None = field(default=None, kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    weight: str | None = field(default=None, kw_only=True)

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with ExitStack() as stack, _reading_arrow(self.path):
            schema, n_features, batches = self._open(nbytes, stack)
            layout = layout_of(schema, column=self.column, label=self.label, weight=self.weight, path=self.path)
            self.columns = layout.features if layout.dense else None
            row = 0
            for table in _sized(batches(layout.columns), nbytes):
                chunk = chunk_of(self, table, layout, n_features=n_features, path=self.path, first_row=row)
                row += len(table)
                yield with_distinct(chunk)

    def _open(self, nbytes: int, stack: ExitStack):  # type: ignore[no-untyped-def]
        """The schema, the number of features where the file says it, and what yields the batches of some columns."""
        import pyarrow as pa
        import pyarrow.ipc

        if self.format == "parquet":
            import pyarrow.parquet as pq

            file = stack.enter_context(pq.ParquetFile(self.path))
            size = sum(file.metadata.row_group(g).total_byte_size for g in range(file.num_row_groups))
            rows = max(1, min(nbytes * file.metadata.num_rows // max(1, size), 1 << 24))
            schema = file.schema_arrow
            n_features = _n_features(file.metadata.metadata)
            return schema, n_features, lambda columns: file.iter_batches(batch_size=rows, columns=columns)
        source = stack.enter_context(pa.memory_map(self.path))
        if self.format == "arrow stream":
            stream = stack.enter_context(pa.ipc.open_stream(source))
            return stream.schema, None, lambda columns: (batch.select(columns) for batch in stream)
        reader = stack.enter_context(pa.ipc.open_file(source))
        count = reader.num_record_batches
        n_features = None
        if b"dotadd" in (reader.schema.metadata or {}) and count:
            # `convert` learns the number of features while it writes, so it stands with a last, empty batch.
            n_features = _n_features(reader.get_batch_with_custom_metadata(count - 1)[1])
        return reader.schema, n_features, lambda columns: (reader.get_batch(i).select(columns) for i in range(count))


def _n_features(metadata: dict[bytes, bytes] | None) -> int | None:
    value = (metadata or {}).get(b"n_features")
    return None if value is None else int(value)


def _sized(batches: Iterator[pa.RecordBatch], nbytes: int) -> Iterator[pa.RecordBatch]:
    """Record batches of about so many bytes: large ones are sliced, small ones joined."""
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
        if size + batch.nbytes > nbytes:
            yield from joined()
            waiting, size = [], 0
        if batch.nbytes > nbytes:
            step = max(1, len(batch) * nbytes // batch.nbytes)
            yield from (batch.slice(first, step) for first in range(0, len(batch), step))
        else:
            waiting.append(batch)
            size += batch.nbytes
    yield from joined()


@contextmanager
def _reading_arrow(path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        with reading(path):
            yield
    except DataError:
        raise
    except pa.ArrowException as error:
        first = str(error).splitlines()[0]
        raise DataError(f"cannot be read, it may be cut off or damaged: {first}", path) from None
