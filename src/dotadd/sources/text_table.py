"""Tables written as text: Arrow's parser reads a piece at once, and where it stumbles, Python's goes through it record
by record and finds file, line and column of what is wrong."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dotadd.data.batches import Batch, DenseRows, from_arrow
from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import TableFile
from dotadd.sources.labels import EXACT, without
from dotadd.sources.table import Layout, is_nested, is_text, numbers, side_by_side, table_of
from dotadd.sources.text import Records

if TYPE_CHECKING:
    import pyarrow as pa

NOT_UTF8 = "is not UTF-8 text; convert it, for example with iconv"

Row = dict[str, str | float | list[float] | list[str] | None]  # values by the names of columns


@dataclass
class TextTableFile(TableFile):
    """One file of text with columns."""

    dtype: type = field(default=np.float32, kw_only=True)


class Stumble(Exception):
    """Arrow's parser did not like a piece."""


class TextTable:
    """What stays the same through a file, and how a piece becomes a chunk. Subclasses implement `fast` and `row`."""

    def __init__(self, source: TextTableFile) -> None:
        self.source = source
        self.layout: Layout | None = None

    @property
    def cells(self) -> set[str]:
        """The columns in which a value may be missing, since the map says what that means, or nobody asks."""
        return set() if self.layout is None else {*(self.layout.kinds or ()), *self.carried}

    @property
    def carried(self) -> set[str]:
        """The columns that are carried along and read for nothing else."""
        return set() if self.layout is None else {*self.layout.ids} - {*self.layout.needed}

    def fast(self, records: Records) -> dict[str, pa.Array]:
        """The columns by Arrow's parser, or Stumble."""
        raise NotImplementedError

    def row(self, record: bytearray, line: int) -> Row:
        """The values of one record, none where it is to be passed over; DataError if something is wrong with it."""
        raise NotImplementedError

    def settle(self, layout: Layout, *, header: bool = True) -> Layout:
        """Read these columns from now on."""
        self.layout = layout
        self.source.columns = layout.features if layout.dense else None
        self.source.layout = dataclasses.replace(layout, header=header)
        return layout

    def types(self, layout: Layout) -> dict[str, pa.DataType]:
        """How columns are read; labels are words, unless the same column is something else as well."""
        import pyarrow as pa

        examples = pa.from_numpy_dtype(self.source.dtype) if layout.dense else pa.large_string()
        types = dict.fromkeys(layout.features, examples)
        if layout.kinds is not None:
            types |= {name: pa.float64() for name, kind in layout.kinds.items() if kind == "number"}
        if layout.weight is not None:
            types[layout.weight] = pa.float64()
        if layout.dense and layout.label in layout.features:
            types[layout.label] = pa.float64()
        elif layout.label is not None:
            types.setdefault(layout.label, pa.large_string())
        return {name: types.get(name, pa.large_string()) for name in layout.columns}

    def chunks(self, pieces: Iterable[Records]) -> Iterator[Chunk]:
        for records in pieces:
            chunk = self._chunk(records) if len(records) else None
            if chunk is not None:
                yield chunk

    def _chunk(self, records: Records) -> Chunk | None:
        try:
            columns, lines = self.fast(records), records.lines
        except Stumble:
            columns, lines = self._careful(records)
        layout = self.layout
        if layout is None or not len(lines):
            return None
        batch: Batch
        found: dict[int, str] = {}
        if layout.kinds is not None:
            batch, found = table_of({name: columns[name] for name in layout.features}, layout.kinds)
        elif layout.dense:
            batch = DenseRows(side_by_side([numbers(columns[name]) for name in layout.features]))
        else:
            batch = from_arrow(columns[layout.features[0]])
        if isinstance(batch, DenseRows):
            batch = DenseRows(batch.values.astype(self.source.dtype, copy=False))
        weight = None if layout.weight is None else numbers(columns[layout.weight])
        words = None if layout.label is None else _words(columns[layout.label])
        ids = _as_text({name: columns[name] for name in layout.ids}) if layout.ids else None
        chunk = Chunk(batch, None, weight, 0, self.source.path, lines, words=words, ids=ids)
        return without(self.source, chunk, found)

    def _careful(self, records: Records) -> tuple[dict[str, pa.Array], np.ndarray]:
        """The columns by Python's parser, and the lines of the records that are sound."""
        import pyarrow as pa

        columns: dict[str, list[object]] = defaultdict(list)
        lines: list[int] = []
        for record, line in enumerate(records.lines.tolist()):
            try:
                row = self.row(records[record], line)
            except DataError as error:
                self.source.bad_row(error)
                continue
            if row:
                lines.append(line)
            for name, value in row.items():
                columns[name].append(value)
        types = {} if self.layout is None else self.types(self.layout)
        return {name: pa.array(columns[name], kind) for name, kind in types.items()}, np.array(lines, np.int64)


def _as_text(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Columns as text, whatever a piece of the file makes of them, so that those of all pieces are alike."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = {name: pc.utf8_trim_whitespace(array.cast(pa.large_string())) for name, array in columns.items()}
    return pa.RecordBatch.from_pydict(texts)


def number_word(value: float) -> str:
    """A label that is a number as a word; a whole number has one, since Arrow does not tell 1 from 1.0."""
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer() and abs(value) < EXACT)
    return repr(int(value)) if whole else repr(value)


def _words(column: pa.Array) -> list[str] | list[tuple[str, ...]]:
    """Labels as words; each distinct number is turned once. Lists of labels are tuples of words."""
    values = column.to_pylist()
    if is_nested(column.type):
        return [tuple(one if isinstance(one, str) else number_word(one) for one in row or ()) for row in values]
    if is_text(column.type):
        return values
    word_of = {value: number_word(value) for value in set(values)}
    return [word_of[value] for value in values]
