"""What every file of examples has in common: a path, rows numbered as they come, bad rows skipped or refused."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from dotadd._util.compressed import largest_record, too_large
from dotadd.errors import DataError
from dotadd.sources.base import CHUNK_BYTES, Chunk, Options, Source, require_alike
from dotadd.sources.labels import settled
from dotadd.sources.sound import sound_rows
from dotadd.sources.table import Layout, Wanted
from dotadd.sources.text import after_last_line

SMALLEST = 1 << 20  # bytes that a line may have however little memory there is for examples


@dataclass
class FileSource(Source):
    """Examples in one file. Subclasses implement `read`, which need not care for row numbers and soundness, nor for
    whether the words that labels are written as are numbers.

    `largest` is what a record of text or a row may take, in bytes; by default it is a share of what is free for records
    of text, and rows may take what they take.
    """

    path: str
    largest: int | None = field(default=None, kw_only=True, repr=False, compare=False)
    first_line: int = field(default=1, kw_only=True, repr=False, compare=False)
    """The number of the first line, of a file that is a piece of a longer text."""
    labelled: bool = field(default=True, kw_only=True, repr=False, compare=False)
    """Whether labels are looked for; those who want predictions need none."""

    @classmethod
    def opened(cls, path: str, format: str, options: Options) -> Source:
        """The source that `open` makes of a file of this format; a class that reads several is told which."""
        return cls(path, **options)

    @property
    def name(self) -> str:
        return self.path

    @property
    def quick(self) -> bool:
        return False

    @property
    def home(self) -> str:
        return self.path

    def bound(self, nbytes: int) -> None:
        self.largest = min(max(nbytes, SMALLEST), largest_record())

    def unlabelled(self) -> Self:
        other = copy.copy(self)
        other.labelled = False
        return other

    def require_rows_of(self, nbytes: int) -> None:
        """Refuse a file in which every row takes so many bytes, if that is too much."""
        if self.largest is not None and nbytes > self.largest:
            raise too_large(self.largest, self.path, row=0, budget=True)

    def files(self) -> list[str]:
        return [self.path]

    def heading(self) -> bytes:
        """What a text begins with that each piece of it has to, to be read alone."""
        return b""

    def whole_records(self, text: bytearray) -> int:
        """Where the last whole example of a piece of text ends, 0 if none does."""
        return after_last_line(text, len(text))

    def read(self, nbytes: int) -> Iterator[Chunk]:
        """Chunks of about so many bytes, as they stand in the file."""
        raise NotImplementedError

    def sound(self, chunk: Chunk) -> Chunk:
        """The chunk without its bad rows."""
        return sound_rows(self, chunk)

    def rows(self, nbytes: int) -> Iterator[Chunk]:
        """Like `chunks`, but a file without examples is no error: it may be one of many."""
        self.skipped.clear()
        first_row = 0
        for chunk in self._named(settled(self, self.read(nbytes))):
            sound = self.sound(dataclasses.replace(chunk, first_row=first_row))
            if len(sound):
                yield sound
                first_row += len(sound)

    def _named(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks; complaints of those who do not know what they read name the file."""
        try:
            yield from chunks
        except DataError as error:
            if error.path is None:
                raise DataError(str(error), self.path) from None
            raise

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        empty = True
        for chunk in self.rows(nbytes):
            empty = False
            yield chunk
        if empty:
            raise no_examples(self)


@dataclass
class TableFile(FileSource):
    """One file whose columns may have names. With `like`, those of an earlier table are looked for."""

    format: str = field(kw_only=True)
    column: str | int | None = field(default=None, kw_only=True)
    label: str | int | None = field(default=None, kw_only=True)
    weight: str | int | None = field(default=None, kw_only=True)
    separator: str | None = field(default=None, kw_only=True)
    """What stands between labels, where rows have several in one cell."""
    like: Layout | None = field(default=None, kw_only=True, repr=False, compare=False)
    cells: tuple[tuple[str, str], ...] | None = field(default=None, kw_only=True)
    """The columns that a map reads, and as what: what it does not read is not in the rows."""
    ids: tuple[str | int, ...] = field(default=(), kw_only=True, compare=False)
    """The columns that are carried along, by name or number."""

    @classmethod
    def opened(cls, path: str, format: str, options: Options) -> Source:
        return cls(path, format=format, **options)

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.column, self.label, self.weight)

    def read_as(self) -> Options:
        return {name: value for name, value in super().read_as().items() if name not in Wanted._fields}

    def candidates(self) -> list[str] | None:
        names = None if self.column is not None or self.cells is not None else self.column_names()
        if names is None:
            return None
        usual = "label" if self.label is None else None
        return [name for name in names if name not in (self.label, self.weight, usual)]

    def column_names(self) -> list[str] | None:
        """The names of all columns; None where there is no header, or examples lie in one of the columns."""
        raise NotImplementedError

    def asked(self, like: Layout) -> Self:
        cells = None if like.kinds is None else tuple(like.kinds.items())
        return dataclasses.replace(self, like=like, cells=cells)


@dataclass
class ManyFiles(Source):
    """Several files read one after the other as if they were one."""

    parts: list[FileSource]

    @property
    def name(self) -> str:
        return f"{self.parts[0].name} and {len(self.parts) - 1} more"

    @property
    def stride(self) -> int:
        return self.parts[0].stride

    def files(self) -> list[str]:
        return [path for part in self.parts for path in part.files()]

    def names(self) -> Layout | None:
        return next((found for part in self.parts if (found := part.names()) is not None), None)

    def asked(self, like: Layout) -> Self:
        return dataclasses.replace(self, parts=[part.asked(like) for part in self.parts])

    def read_as(self) -> Options:
        return self.parts[0].read_as()

    def unlabelled(self) -> Self:
        return dataclasses.replace(self, parts=[part.unlabelled() for part in self.parts])

    def candidates(self) -> list[str] | None:
        return self.parts[0].candidates()

    def bound(self, nbytes: int) -> None:
        for part in self.parts:
            part.bound(nbytes)

    def column_of(self, path: str, line: int, index: int) -> int | None:
        return next((part.column_of(path, line, index) for part in self.parts if part.name == path), None)

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        self.skipped.clear()
        first: Chunk | None = None
        row = 0
        for part in self.parts:
            with self._counting(part):
                for chunk in part.rows(nbytes):
                    if first is None:
                        first, self.columns = chunk, part.columns
                    require_alike(first, chunk)
                    self._require_columns(part)
                    yield dataclasses.replace(chunk, first_row=row)
                    row += len(chunk)
        if first is None:
            raise no_examples(self)

    @contextmanager
    def _counting(self, part: FileSource) -> Iterator[None]:
        try:
            yield
        finally:
            self.skipped.merge(part.skipped)

    def _require_columns(self, part: FileSource) -> None:
        if part.columns != self.columns:
            raise DataError(f"has the columns {part.columns}, and the first file has {self.columns}", part.path)


class NoExamplesError(DataError):
    """A file turned out to be empty."""


def no_examples(source: Source) -> NoExamplesError:
    """The complaint about a source that turned out to be empty."""
    message = "has no examples"
    if source.skipped.count:
        message = f"has no example that can be read; the first complaint: {source.skipped.first}"
    return NoExamplesError(message, source.name)
