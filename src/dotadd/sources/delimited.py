"""CSV and TSV.

CSV may quote a field, newlines included; TSV has no quotes. With names for columns the first line is the header; with
numbers for columns (counted from 0, or from the end with -1) there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.table import NOTHING, Layout, Wanted, choose, one_array
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
from dotadd.sources.text_table import NOT_UTF8, Row, Stumble, TextTable, TextTableFile

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20  # bytes that one of Arrow's threads parses at a time
SAMPLE = 100  # so many records tell which columns are numbers, however small the chunks are
LOOK = 1 << 16  # bytes of them that are read at a time


@dataclass
class DelimitedFile(TextTableFile):
    """One CSV or TSV file. `header` False says that the first line is an example; columns then have numbers, from 0."""

    header: bool | None = field(default=None, kw_only=True)

    def read(self, nbytes: int) -> Iterator[Chunk]:
        sample, line, delimiter = self._beginning()
        if not sample:
            return
        table = _Delimited(self, sample, line, delimiter)
        whole = pieces(self.path, nbytes, self._cut(delimiter), self.on_progress, self.largest, self.first_line)
        yield from table.chunks(table.below_header(records_of(piece, self._quote, delimiter) for piece in whole))

    def candidates(self) -> list[str] | None:
        sample = self._beginning()[0]
        if not sample or not self.headless(sample[0]):
            return super().candidates()
        if self.column is not None or self.cells is not None:
            return None
        count = len(sample[0])
        beside = {_place(self, name, count) for name in (self.label, self.weight)}
        return [str(k) for k in range(count) if str(k) not in beside]

    def column_names(self) -> list[str] | None:
        sample = self._beginning()[0]
        return [name.strip() for name in sample[0]] if sample else None

    def headless(self, first: Sequence[str]) -> bool:
        """Whether a file that begins with this record has no header."""
        if self.header is False or any(_is_place(name, first) for name in (*self.wanted, *self.ids)):
            return True
        like = self.like
        return like is not None and self.wanted == Wanted() and (not like.header or _by_number(like, first))

    def heading(self) -> bytes:
        delimiter = "\t" if self.format == "tsv" else _delimiter(first_lines(self.path))
        with closing(pieces(self.path, LOOK, self._cut(delimiter), largest=self.largest)) as beginning:
            several = (records_of(piece, self._quote, delimiter) for piece in beginning)
            first = next((bytes(records[0]) for records in several if len(records)), b"")
        sample = self._beginning()[0]
        return b"" if not sample or self.headless(sample[0]) else first

    def whole_records(self, text: bytearray) -> int:
        return self._cut("\t" if self.format == "tsv" else _delimiter(first_lines(self.path)))(text, len(text))

    @property
    def _quote(self) -> int:
        return QUOTE if self.format == "csv" else 0

    def _cut(self, delimiter: str) -> Callable[[bytearray, int], int]:
        return partial(after_last_record, delimiter=delimiter) if self._quote else after_last_line

    def _beginning(self) -> tuple[list[list[str]], int, str]:
        """The first records, the line of the first of them, and what stands between their fields."""
        delimiter = "\t" if self.format == "tsv" else _delimiter(first_lines(self.path))
        with closing(pieces(self.path, LOOK, self._cut(delimiter), largest=self.largest)) as beginning:
            records = (records_of(piece, self._quote, delimiter) for piece in beginning)
            return *_sample(self, records, delimiter), delimiter


class _Delimited(TextTable):
    """From the first records: the header, which is on this line, and a look at which columns are numbers."""

    def __init__(self, source: DelimitedFile, sample: list[list[str]], line: int, delimiter: str) -> None:
        super().__init__(source)
        self.delimiter, like, wanted, ids = delimiter, source.like, source.wanted, source.ids
        self.headless = source.headless(sample[0])
        names = [name.strip() for name in sample[0]]
        if self.headless:
            names = [str(k) for k in range(len(sample[0]))]
            wanted = Wanted(*(_place(source, name, len(names)) for name in wanted))
            ids = tuple(place for name in ids if (place := _place(source, name, len(names))) is not None)
            like = None if like is None else _placed(like, names)
        self.names = names
        body = [fields for fields in sample[0 if self.headless else 1 :] if len(fields) == len(names)]
        numeric = [name for k, name in enumerate(names) if _mostly_numbers([fields[k] for fields in body])]
        whole = [name for name in names if name not in numeric]
        usual = None if self.headless else "label"
        layout = choose(names, numeric, whole, wanted, path=source.path, usual=usual, like=like, guessed=True, ids=ids)
        if len(set(names)) < len(names):
            raise DataError("two columns have the same name", source.path, line)
        self.settle(layout, header=not self.headless)
        self.places = {name: (names.index(name), kind) for name, kind in self.types(layout).items()}

    def below_header(self, several: Iterable[Records]) -> Iterator[Records]:
        header = not self.headless
        for records in several:
            yield records.slice(1, len(records)) if header and len(records) else records
            header = header and not len(records)

    def fast(self, records: Records) -> dict[str, pa.Array]:
        """Arrow takes a quote that is never closed, which we do not."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv as arrow_csv

        if records.unclosed:
            raise Stumble
        quoted = self.source.format == "csv"
        types = {name: kind for name, (_, kind) in self.places.items()}
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(pa.py_buffer(records.whole)),
                arrow_csv.ReadOptions(column_names=self.names, block_size=BLOCK),
                arrow_csv.ParseOptions(
                    delimiter=self.delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
                ),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    strings_can_be_null=False,
                    null_values=sorted(NOTHING),
                ),
            )
        except pa.ArrowException:
            raise Stumble from None
        columns = {name: one_array(table.column(name)) for name in table.column_names}
        cells = self.cells
        if len(table) != len(records) or any(columns[name].null_count for name in columns.keys() - cells):
            raise Stumble
        if self.layout is not None and not self.layout.dense:
            for name in self.layout.features:
                if pa.types.is_large_string(columns[name].type):
                    columns[name] = pc.utf8_trim_whitespace(columns[name])
        return columns

    def row(self, record: bytearray, line: int) -> Row:
        import pyarrow as pa

        try:
            fields = _fields(_decoded(self.source.path, record, line), self.delimiter, self.source.format)
        except ValueError as error:
            raise error if isinstance(error, DataError) else DataError(str(error), self.source.path, line) from None
        if len(fields) != len(self.names):
            raise DataError(f"expected {len(self.names)} fields, found {len(fields)}", self.source.path, line)
        return {
            name: fields[k].strip() if pa.types.is_large_string(kind) else self._number(fields[k], k, line)
            for name, (k, kind) in self.places.items()
        }

    def _number(self, word: str, k: int, line: int) -> float:
        what = f"column {self.names[k]!r}: "
        if self.names[k] in self.cells and word.strip() in NOTHING:
            return math.nan
        try:
            value = float(word)
        except ValueError:
            message = f"{word!r} is not a number" if word.strip() else "the value is missing"
            raise DataError(what + message, self.source.path, line, k + 1) from None
        if not math.isfinite(value):
            raise DataError(f"{what}{word!r} is not finite", self.source.path, line, k + 1)
        return value


def _decoded(path: str, record: bytearray, line: int) -> str:
    try:
        return record.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(NOT_UTF8, path, line, error.start + 1) from None


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
                text = _decoded(source.path, records[record], int(records.lines[record]))
                sample.append(_fields(text, delimiter, source.format))
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


def _by_number(like: Layout, header: Sequence[str]) -> bool:
    """Whether a map reads columns by their numbers alone."""
    return like.kinds is not None and all(_is_place(name, header) for name in like.features)


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
    if like.kinds is not None:
        return like
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
