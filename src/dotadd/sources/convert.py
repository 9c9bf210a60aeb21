"""convert: any source as an Arrow IPC file, or as Parquet, that reads back without parsing.

The columns are `x`, `label` and `weight` (where there are any). Windows of a genome are called `sequence`, not `x`, and
have their coordinates beside them. DNA of one length takes two bits a letter. How the examples are written is settled
by the first chunk; where a later one does not fit (a value other than 1, an index beyond 32 bits, a letter other than
ACGT), the work starts again with a wider form. An Arrow file is compressed with LZ4 if that makes its first record
batch smaller by a tenth: dense numbers and packed DNA are not, and reading them costs no decompression.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from dotadd._util.atomic import replacing
from dotadd._version import __version__
from dotadd.data.batches import Batch, SparseRows, Strings, arrow_of, fixed_width, pack
from dotadd.data.table import CELLS, Table, is_cells
from dotadd.errors import DataError
from dotadd.sources.base import CHUNK_BYTES, Chunk, Source, batch_bytes, is_text, require_alike
from dotadd.sources.formats import FORMATS, ending_tells
from dotadd.sources.label_sets import are_sets
from dotadd.sources.located import Located
from dotadd.sources.table import COLUMNS, EXAMPLES, LAYOUT, LENGTH, LINES, PACKED

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES = 4 << 20  # of examples in a record batch of Arrow: one is read at a time, and smaller ones read slowly
SYNC_BYTES = 64 << 20  # so much is written before it has to be on disk, so that the end does not wait for all of it


@dataclass(frozen=True)
class Converted:
    """What was written: rows, bytes of the file, and how many bad rows were left out."""

    rows: int
    bytes: int
    skipped: int


@dataclass(frozen=True)
class _Form:
    """How examples are written. `dna` is the length of the strings where two bits a letter do, `exact` that small
    letters need more."""

    binary: bool = False
    index: type = np.int32
    value: type = np.float32
    dna: int | None = None
    exact: bool = False
    fractions: bool = False  # among the labels
    numbers: bool = False  # as labels, where rows have several

    @classmethod
    def of(cls, batch: Batch, dna: bool | None, exact: bool = False) -> _Form:
        if isinstance(batch, SparseRows):
            value = np.float32 if batch.values is None else batch.values.dtype.type
            return cls(binary=batch.values is None, index=batch.indices.dtype.type, value=value)
        if isinstance(batch, Strings) and dna is not False:
            width = fixed_width(batch)
            if width is not None and pack(batch, width, capitals=exact) is not None:
                return cls(dna=width, exact=exact)
        if dna:
            raise DataError("cannot be packed: the strings are not ACGT of one length; leave dna=True (--pack) out")
        return cls()

    def wider(self, batch: Batch) -> _Form:
        """The form that takes this batch as well."""
        if isinstance(batch, Strings):
            return replace(self, dna=None)
        other = _Form.of(batch, False)
        return replace(
            self,
            binary=self.binary and other.binary,
            index=np.promote_types(self.index, other.index).type,
            value=other.value if self.binary else np.promote_types(self.value, other.value).type,
        )


class _DoesNotFit(Exception):
    """A chunk needs a wider form."""

    def __init__(self, form: _Form) -> None:
        self.form = form


def convert(
    source: Source,
    path: str | os.PathLike[str],
    *,
    dna: bool | None = None,
    parquet: bool | None = None,
    exact: bool = False,
    about: Mapping[str, str] | None = None,
    at_end: Callable[[], Mapping[str, str]] = dict,
) -> Converted:
    """Write all examples of the source to `path`: Parquet if it ends in .parquet or .pq, else Arrow IPC.

    `parquet` says so where the name does not.

    The file appears whole or not at all. With `dna` None, strings that are ACGT of one length throughout are packed
    into two bits a letter (and come back in capitals); True insists on it, False never does. With `exact`, small
    letters are not packed, and it is noted on which line of its text each example stood. `about` is more to write into
    the metadata of the schema, and `at_end()` what is known only when all has been read.
    """
    named_parquet = is_parquet(path)
    parquet = named_parquet if parquet is None else parquet
    with replacing(path) as temporary:
        return write(source, temporary, dna=dna, parquet=parquet, exact=exact, about=about, at_end=at_end)


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file says that Parquet is to be written, and not Arrow. Names of other formats are refused:
    what is written under them would not be read again."""
    named = ending_tells(path)
    if named is not None and not named.examples:
        written = " or ".join(format.endings[0] for format in FORMATS.values() if format.examples)
        raise DataError(f"Arrow or Parquet is written; give a name that ends in {written}", os.fspath(path))
    return named is not None and named.name == "parquet"


def write(
    source: Source,
    path: Path,
    *,
    dna: bool | None = None,
    parquet: bool = False,
    exact: bool = False,
    about: Mapping[str, str] | None = None,
    at_end: Callable[[], Mapping[str, str]] = dict,
) -> Converted:
    """The same, into a file that somebody else has made, and names and removes."""
    form: _Form | None = None
    while True:
        with _Writer(str(path), parquet) as writer:
            try:
                rows, n_features = _write(source, writer, form, dna, exact, about or {})
            except _DoesNotFit as wider:
                form = wider.form
                continue
            if rows:
                skipped = {"skipped": str(source.skipped.count), "first": source.skipped.first or ""}
                writer.finish({"rows": str(rows), "n_features": str(n_features), **skipped, **at_end()})
        return Converted(rows, os.path.getsize(path), source.skipped.count)


def _write(
    source: Source, writer: _Writer, form: _Form | None, dna: bool | None, exact: bool, about: Mapping[str, str]
) -> tuple[int, int]:
    """Write all rows; how many there are, and how many features they have."""
    rows, n_features = 0, 0
    first: Chunk | None = None
    size = CHUNK_BYTES if writer.parquet else BATCH_BYTES
    for chunk in source.chunks(size):
        if exact:  # plain examples, without coordinates
            chunk = Chunk(chunk.batch, chunk.y, chunk.weight, chunk.first_row, chunk.path, chunk.lines)
        else:
            chunk = replace(chunk, lines=None)
        if first is None or form is None:
            first = chunk
            form = form or _Form.of(chunk.batch, dna, exact)
            if chunk.y is not None and chunk.y.dtype.kind == "f":
                form = replace(form, fractions=True)
            names = {"kind": chunk.batch.kind}
            if source.columns is not None:
                names[COLUMNS.decode()] = json.dumps(source.columns)
            if (layout := source.names()) is not None:
                names[LAYOUT.decode()] = json.dumps(layout.to_dict())
        require_alike(first, chunk)
        for part in _parts(chunk, size):
            columns = _columns(part, form, dna)
            if writer.schema is None:
                cells = part.batch.names if isinstance(part.batch, Table) else ()
                writer.schema = _schema(columns, cells, form, {**names, **about})
            writer.write(list(columns.values()))
        rows += len(chunk)
        n_features = max(n_features, getattr(chunk.batch, "n_features", 0))
    return rows, n_features


def _parts(chunk: Chunk, nbytes: int) -> Iterator[Chunk]:
    """The chunk in equal parts of at most about so many bytes."""
    count = -(-batch_bytes(chunk.batch) // nbytes)
    bounds = np.linspace(0, len(chunk), max(1, min(count, len(chunk))) + 1, dtype=np.int64).tolist()
    for first, stop in pairwise(bounds):
        yield chunk if stop - first == len(chunk) else chunk.slice(first, stop)


def _columns(chunk: Chunk, form: _Form, dna: bool | None) -> dict[str, pa.Array]:
    """The columns of a record batch by their names, that of the examples first."""
    x = _examples(chunk.batch, form)
    if x is None:
        if dna:
            message = "the strings are not all ACGT of one length, so they cannot be packed; pass dna=False (--no-pack)"
            raise DataError(message, chunk.path)
        raise _DoesNotFit(form.wider(chunk.batch))
    columns = {"sequence" if isinstance(chunk, Located) else "x": x}
    if chunk.y is not None:
        columns["label"] = _labels(chunk, chunk.y, form)
    if chunk.weight is not None:
        columns["weight"] = arrow_of(chunk.weight.astype(np.float64, copy=False))
    if chunk.lines is not None:
        columns["line"] = arrow_of(chunk.lines.astype(np.int64, copy=False))
    return columns | chunk.coordinates.to_arrow() if isinstance(chunk, Located) else columns


def _schema(columns: Mapping[str, pa.Array], names: Sequence[str], form: _Form, about: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    own = {"dotadd": __version__, EXAMPLES.decode(): fields[0].name}
    if form.dna is not None:
        fields[0] = fields[0].with_metadata({PACKED: b"1", LENGTH: str(form.dna).encode()})
    if is_cells(fields[0].type):
        fields[0] = fields[0].with_metadata({CELLS: json.dumps(names).encode()})
    if "line" in columns:
        own[LINES.decode()] = "line"
    return pa.schema(fields, metadata={**own, **about})


def _labels(chunk: Chunk, y: np.ndarray, form: _Form) -> pa.Array:
    import pyarrow as pa

    if y.dtype.kind == "f" and not form.fractions:
        raise _DoesNotFit(replace(form, fractions=True))
    if are_sets(y):
        words = any(isinstance(label, str) for labels in y for label in labels[:1])
        numbers = any(isinstance(label, int) for labels in y for label in labels[:1])
        if numbers and not form.numbers:
            raise _DoesNotFit(replace(form, numbers=True))
        if words and form.numbers:
            raise DataError("has labels that are numbers, and labels that are text", chunk.path)
        return pa.array(y.tolist(), pa.large_list(pa.int64() if form.numbers else pa.large_string()))
    if is_text(y):
        return Strings.from_list(y.tolist()).to_arrow().cast(pa.large_string())
    if y.dtype == (np.float64 if form.fractions else np.int64):
        return arrow_of(y)
    try:
        return pa.array(y, pa.float64() if form.fractions else pa.int64())
    except pa.ArrowInvalid:
        raise DataError(
            "has fractions among its labels, and whole numbers that are too large for that", chunk.path
        ) from None


def _examples(batch: Batch, form: _Form) -> pa.Array | None:
    """The batch in this form, None if it does not fit."""
    import pyarrow as pa

    if isinstance(batch, SparseRows):
        if form.wider(batch) != form:
            return None
        values = batch.values
        if not form.binary:
            values = np.ones(len(batch.indices)) if values is None else values
            values = values.astype(form.value, copy=False)
        offsets = batch.offsets.astype(np.int64, copy=False)
        indices: np.ndarray = batch.indices.astype(form.index, copy=False)
        return SparseRows(offsets, indices, values, batch.n_features).to_arrow()
    if isinstance(batch, Strings) and form.dna is not None:
        packed = pack(batch, form.dna, capitals=form.exact)
        if packed is None:
            return None
        return Strings(packed.reshape(-1), width=packed.shape[1]).to_arrow()
    if isinstance(batch, Strings):
        return batch.with_offsets().to_arrow().cast(pa.large_binary())
    return batch.to_arrow()


class _Writer:
    """An Arrow IPC or Parquet file that is being written. What is known only at the end stands at the end."""

    def __init__(self, path: str, parquet: bool) -> None:
        import pyarrow as pa

        self.parquet = parquet
        self.schema: pa.Schema | None = None  # known with the first batch, and needed then
        self._file = pa.OSFile(os.fsencode(path), "wb")
        self._synced, self._regular = 0, os.path.isfile(path)  # a pipe has no place and no disk
        self._writer: pa.ipc.RecordBatchWriter | None = None  # opened with the first batch

    def write(self, columns: list[pa.Array]) -> None:
        import pyarrow as pa

        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if self._writer is None:
            self._writer = self._open(batch)
        self._writer.write_batch(batch)
        self._empty = batch.slice(0, 0)
        written = self._file.tell() if self._regular else 0
        if written - self._synced > SYNC_BYTES:
            self._synced = written
            os.fsync(self._file.fileno())

    def _open(self, first: pa.RecordBatch) -> pa.ipc.RecordBatchWriter:
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet as pq

        if self.parquet:
            return pq.ParquetWriter(self._file, self.schema)
        # Names of sequences are met as they come, so the dictionary of the column grows.
        compression = "lz4" if _size(first, "lz4") < 0.9 * _size(first, None) else None
        options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
        return pa.ipc.new_file(self._file, self.schema, options=options)

    def finish(self, metadata: dict[str, str]) -> None:
        assert self._writer is not None
        if self.parquet:
            self._writer.add_key_value_metadata(metadata)
        else:  # the schema is written first, so these stand with a last, empty batch
            self._writer.write_batch(self._empty, custom_metadata=metadata)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()
        self._file.close()


def _size(batch: pa.RecordBatch, compression: str | None) -> int:
    """Bytes that a record batch takes on disk."""
    import pyarrow as pa
    import pyarrow.ipc

    sink = pa.MockOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_batch(batch)
    return sink.size()
