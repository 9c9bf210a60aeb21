"""CSV and TSV: Arrow's parser on pieces cut between records; where it stumbles, Python's finds file, line and column.

CSV may quote a field, newlines included; TSV has no quotes. With names for columns the first line is the header; with
numbers for columns (counted from 0, or from the end with -1) there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dotadd.data.batches import Batch, DenseRows, Strings, from_arrow
from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Options
from dotadd.sources.files import TableFile
from dotadd.sources.layout import Layout, choose
from dotadd.sources.table import numbers, one_array, side_by_side
from dotadd.sources.text import (
    QUOTE,
    Records,
    after_last_line,
    after_last_record,
    fields_of,
    first_lines,
    pieces,
    records_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20  # bytes that one of Arrow's threads parses at a time
SAMPLE = 100  # so many records tell which columns are numbers, however small the chunks are
LOOK = 1 << 16  # bytes of them that are read at a time


@dataclass
class DelimitedFile(TableFile):
    """One CSV or TSV file."""

    format: str = field(default="csv", kw_only=True)
    column: str | int | None = field(default=None, kw_only=True)
    label: str | int | None = field(default=None, kw_only=True)
    weight: str | int | None = field(default=None, kw_only=True)
    dtype: type = field(default=np.float32, kw_only=True)

    @classmethod
    def opened(cls, path: str, format: str, options: Options) -> DelimitedFile:
        return cls(path, format=format, **options)

    def read(self, nbytes: int) -> Iterator[Chunk]:
        quote = QUOTE if self.format == "csv" else 0
        delimiter = "\t" if self.format == "tsv" else _delimiter(first_lines(self.path))
        cut = partial(after_last_record, delimiter=delimiter) if quote else after_last_line
        with closing(pieces(self.path, LOOK, cut, largest=self.largest)) as beginning:
            sample, line = _sample(self, (records_of(piece, quote, delimiter) for piece in beginning), delimiter)
        if not sample:
            return
        table = _Table.begin(self, sample, line, delimiter)
        header = not table.headless
        for piece in pieces(self.path, nbytes, cut, self.on_progress, self.largest):
            records = records_of(piece, quote, delimiter)
            if header and len(records):
                records, header = records.slice(1, len(records)), False
            if len(records):
                yield table.chunk(records)


class _Table:
    """What stays the same through a file: names, layout, delimiter; and how a piece becomes a chunk."""

    def __init__(self, source: DelimitedFile, names: list[str], layout: Layout, delimiter: str, headless: bool) -> None:
        self.source, self.names, self.layout = source, names, layout
        self.delimiter, self.headless = delimiter, headless

    @classmethod
    def begin(cls, source: DelimitedFile, sample: list[list[str]], line: int, delimiter: str) -> _Table:
        """From the first records: the header, which is on this line, and a look at which columns are numbers."""
        asked: dict[str, Any] = {"column": source.column, "label": source.label, "weight": source.weight}
        like = source.like
        headless = any(_is_place(name, sample[0]) for name in asked.values())
        if like is not None and not like.header and all(name is None for name in asked.values()):
            headless = True
        names = [str(k) for k in range(len(sample[0]))] if headless else [name.strip() for name in sample[0]]
        wanted = {key: _place(source, name, len(names)) if headless else name for key, name in asked.items()}
        body = [fields for fields in sample[0 if headless else 1 :] if len(fields) == len(names)]
        numeric = [name for k, name in enumerate(names) if _mostly_numbers([fields[k] for fields in body])]
        whole = [name for name in names if name not in numeric]
        if like is not None and headless:
            like = _placed(like, names)
        usual = None if headless else "label"
        layout = choose(names, numeric, whole, path=source.path, usual=usual, like=like, guessed=True, **wanted)
        if len(set(names)) < len(names):
            raise DataError("two columns have the same name", source.path, line)
        source.columns = layout.features if layout.dense else None
        source.layout = replace(layout, header=not headless)
        return cls(source, names, layout, delimiter, headless)

    def chunk(self, records: Records) -> Chunk:
        try:
            columns, lines = self._fast(records), records.lines
        except _Stumble:
            columns, lines = self._careful(records)
        layout = self.layout
        batch: Batch
        if layout.dense:
            dense = [numbers(columns[name]) for name in layout.features]
            batch = DenseRows(side_by_side(dense) if len(lines) else np.empty((0, len(dense)), self.source.dtype))
        else:
            batch = from_arrow(columns[layout.features[0]])
            assert isinstance(batch, Strings)
        weight = None
        if layout.weight is not None:
            weight = numbers(columns[layout.weight]).astype(np.float64)
        words = None if layout.label is None else columns[layout.label].to_pylist()
        return Chunk(batch, None, weight, 0, self.source.path, lines, words=words)

    def _types(self) -> dict[str, pa.DataType]:
        import pyarrow as pa

        number = pa.from_numpy_dtype(self.source.dtype)
        types = {name: number if self.layout.dense else pa.large_string() for name in self.layout.features}
        if self.layout.weight is not None:
            types[self.layout.weight] = pa.float64()
        if self.layout.label is not None:
            types[self.layout.label] = pa.large_string()
        return types

    def _fast(self, records: Records) -> dict[str, pa.Array]:
        """The columns by Arrow's parser, or _Stumble. It takes a quote that is never closed, which we do not."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv as arrow_csv

        if records.unclosed:
            raise _Stumble
        quoted = self.source.format == "csv"
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(pa.py_buffer(records.whole)),
                arrow_csv.ReadOptions(column_names=self.names, block_size=BLOCK),
                arrow_csv.ParseOptions(
                    delimiter=self.delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
                ),
                arrow_csv.ConvertOptions(
                    column_types=self._types(), include_columns=self.layout.columns, strings_can_be_null=False
                ),
            )
        except pa.ArrowException:
            raise _Stumble from None
        columns = {name: one_array(table.column(name)) for name in table.column_names}
        if len(table) != len(records) or any(column.null_count for column in columns.values()):
            raise _Stumble
        if not self.layout.dense:
            name = self.layout.features[0]
            columns[name] = pc.utf8_trim_whitespace(columns[name])
        return columns

    def _careful(self, records: Records) -> tuple[dict[str, pa.Array], np.ndarray]:
        """The columns by Python's parser, record by record, and the lines of the records that are sound."""
        import pyarrow as pa

        types = self._types()
        places = {name: self.names.index(name) for name in types}
        columns: dict[str, list[str | float]] = {name: [] for name in types}
        lines = []
        for record in range(len(records)):
            line = int(records.lines[record])
            try:
                fields = self._checked(records, record, line)
                row = {
                    name: fields[k].strip() if pa.types.is_large_string(types[name]) else self._number(fields, k, line)
                    for name, k in places.items()
                }
            except DataError as error:
                self.source.bad_row(error)
                continue
            lines.append(line)
            for name, value in row.items():
                columns[name].append(value)
        return {name: pa.array(columns[name], kind) for name, kind in types.items()}, np.array(lines, np.int64)

    def _checked(self, records: Records, record: int, line: int) -> list[str]:
        text = _decoded(self.source, records, record)
        try:
            fields = _fields(text, self.delimiter, self.source.format)
        except ValueError as error:
            raise DataError(str(error), self.source.path, line) from None
        if len(fields) != len(self.names):
            raise DataError(f"expected {len(self.names)} fields, found {len(fields)}", self.source.path, line)
        return fields

    def _number(self, fields: Sequence[str], k: int, line: int) -> float:
        what = f"column {self.names[k]!r}: "
        try:
            value = float(fields[k])
        except ValueError:
            message = f"{fields[k]!r} is not a number" if fields[k].strip() else "the value is missing"
            raise DataError(what + message, self.source.path, line, k + 1) from None
        if not math.isfinite(value):
            raise DataError(f"{what}{fields[k]!r} is not finite", self.source.path, line, k + 1)
        return value


class _Stumble(Exception):
    """Arrow's parser did not like a piece."""


def _decoded(source: DelimitedFile, records: Records, record: int) -> str:
    try:
        return records[record].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = int(records.lines[record]), error.start + 1
        raise DataError("is not UTF-8 text; convert it, for example with iconv", source.path, line, column) from None


def _fields(record: str, delimiter: str, format: str) -> list[str]:
    """The fields of one record. Raises ValueError where quotes are wrong."""
    if format != "csv":
        return record.rstrip("\r\n").split(delimiter)
    try:
        fields, end = fields_of(record, delimiter)
    except ValueError as error:
        raise ValueError(f"wrong quotes: {error}") from None
    if end < len(record):
        raise ValueError("a carriage return stands inside of a field that has no quotes")
    return fields


def _sample(source: DelimitedFile, pieces: Iterable[Records], delimiter: str) -> tuple[list[list[str]], int]:
    """The fields of the first records, those that can be read, and the line of the first; the header must be."""
    sample: list[list[str]] = []
    line, left = 1, SAMPLE
    for records in pieces:
        for record in range(min(left, len(records))):
            try:
                line = line if sample else int(records.lines[record])
                sample.append(_fields(_decoded(source, records, record), delimiter, source.format))
            except ValueError as error:
                if not sample:
                    raise error if isinstance(error, DataError) else DataError(str(error), source.path, 1) from None
        left -= min(left, len(records))
        if not left:
            break
    return sample, line


def _delimiter(beginning: bytes) -> str:
    header = beginning.lstrip().partition(b"\n")[0]
    return max(",;\t", key=lambda delimiter: header.count(delimiter.encode()))


def _is_place(name: str | int | None, header: Sequence[str]) -> bool:
    """Whether a column is asked for by its number, and not by a name that the header has."""
    if isinstance(name, str):
        return name.removeprefix("-").isdecimal() and name not in [word.strip() for word in header]
    return name is not None


def _place(source: DelimitedFile, name: str | int | None, count: int) -> str | None:
    if name is None:
        return None
    try:
        place = int(name)
    except ValueError:
        message = f"columns are asked for by number, so there is no header and no column {name!r}"
        raise DataError(message, source.path) from None
    if not -count <= place < count:
        raise DataError(f"there is no column {place}; there are {count}, counted from 0", source.path)
    return str(place % count)


def _placed(like: Layout, names: Sequence[str]) -> Layout | None:
    """The layout of an earlier file without a header for this one, which has none either; None if it tells nothing:
    that file had names, or this one has the features alone."""
    return None if like.header or len(names) == len(like.features) else replace(like, header=True)


def _mostly_numbers(words: Sequence[str]) -> bool:
    def is_number(word: str) -> bool:
        try:
            float(word)
        except ValueError:
            return False
        return True

    written = [word for word in words if word.strip()]
    return bool(written) and 2 * sum(map(is_number, written)) >= len(written)
