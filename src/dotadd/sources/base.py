"""Source: where examples come from, in order, again and again, in chunks that fit in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dotadd._util.growing import Growing
from dotadd.data.batches import Batch, DenseRows
from dotadd.data.ragged import Ragged, joined
from dotadd.errors import DataError
from dotadd.sources.label_sets import are_sets

if TYPE_CHECKING:
    import pyarrow as pa

    from dotadd.sources.table import Layout

CHUNK_BYTES = 32 << 20
SHARE, LEAST = 128, 1 << 20  # of a limit, and bytes of a chunk at least: what is read becomes several times as large
CERTAIN = 8  # of a limit, an eighth is there when what comes is taken to be as long: then twice the limit is too much
Options = dict[str, Any]  # of `open`, by name
Rows = slice | np.ndarray  # numbers of rows
REMEMBERED = ("format", "label", "separator", "column", "zero_based", "dtype", "size", "symbols", "semiring")
# Options that say how data is written, and not which of it, nor what to do with bad rows.
CACHE = ".dotadd.arrow"  # how the name of an Arrow copy beside a text file ends


def remembered(record: object) -> Options:
    """What `read_as` gave, out of a file; TypeError if it is something else."""
    if not isinstance(record, dict) or not all(isinstance(value, str | int | list) for value in record.values()):
        raise TypeError("it does not say how its data was read")
    return {name: value for name, value in record.items() if name in REMEMBERED}


class TooLargeError(Exception):
    """The examples take more memory than they may. It is caught where they can be read in turns instead."""


@dataclass(frozen=True)
class Chunk:
    """Some consecutive examples. `y` and `weight` are None where the source has none.

    `path` and `lines` (line number of each row, from 1) tell where a row came from; None for arrays in memory. Where
    rows of several files were joined, `files` holds the first row and the path of each. What reads text gives labels as
    the `words` that are written there, and `FileSource` makes `y` of them (`labels.settled`). Where rows have several
    labels, `y` has tuples of these (`label_sets.py`). `ids` are columns that
    say which rows these are, on their way from the data to the predictions.
    """

    batch: Batch
    y: np.ndarray | None
    weight: np.ndarray | None
    first_row: int
    path: str | None = None
    lines: np.ndarray | None = None
    files: tuple[tuple[int, str | None], ...] | None = None
    words: list[str] | list[tuple[str, ...]] | None = None
    ids: pa.RecordBatch | None = None

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def from_file(self) -> bool:
        return self.path is not None or self.files is not None

    @property
    def nbytes(self) -> int:
        """Bytes of these rows and of what stands beside them, whatever larger arrays they are part of."""
        beside = sum(array.nbytes for array in (self.y, self.weight, self.lines) if array is not None)
        return batch_bytes(self.batch) + beside

    def path_of(self, row: int) -> str | None:
        """The file that row `row` of this chunk was read from."""
        if self.files is None:
            return self.path
        return next(path for first, path in reversed(self.files) if first <= row)

    def error(self, row: int, message: str, column: int | None = None) -> DataError:
        """A complaint about row `row` of this chunk, with file and line, or with the example's number."""
        if self.lines is not None:
            return DataError(message, self.path_of(row), int(self.lines[row]), column)
        where = f"row {self.first_row + row}" + (f", column {column}" if column is not None else "")
        return DataError(f"{where}: {message}", self.path_of(row))

    def take(self, rows: np.ndarray) -> Self:
        """These rows only, in order; used to drop rows that cannot be read."""
        files = None
        if self.files is not None:
            files = tuple((int(np.searchsorted(rows, first)), path) for first, path in self.files)
        words = None if self.words is None else [self.words[row] for row in rows.tolist()]
        beside = self._beside(rows)
        return dataclasses.replace(beside, batch=self.batch.take(rows), files=files, words=words)

    def _beside(self, rows: Rows) -> Self:
        """The same chunk, of which the arrays beside the batch are those of these rows."""
        y, weight, lines = (None if array is None else array[rows] for array in (self.y, self.weight, self.lines))
        return dataclasses.replace(self, y=y, weight=weight, lines=lines, ids=_taken(self.ids, rows))

    def slice(self, first: int, stop: int) -> Self:
        """Neighbouring rows, without a copy."""
        rows = slice(first, stop)
        files = None
        if self.files is not None:
            files = tuple((max(0, begin - first), path) for begin, path in self.files)
        words = None if self.words is None else self.words[rows]
        batch, first_row = self.batch.slice(first, stop), self.first_row + first
        return dataclasses.replace(self._beside(rows), batch=batch, first_row=first_row, files=files, words=words)


def _taken(ids: pa.RecordBatch | None, rows: Rows) -> pa.RecordBatch | None:
    if ids is None or isinstance(rows, np.ndarray):
        return None if ids is None else ids.take(rows)
    first, stop, _ = rows.indices(len(ids))
    return ids.slice(first, max(0, stop - first))


@dataclass
class Skipped:
    """How many rows were left out because they could not be read, and the first complaint."""

    count: int = 0
    first: str | None = None

    def add(self, error: DataError) -> None:
        self.count += 1
        self.first = self.first or str(error)

    def merge(self, other: Skipped) -> None:
        self.count += other.count
        self.first = self.first or other.first

    def clear(self) -> None:
        self.count, self.first = 0, None


@dataclass
class Source:
    """Examples that can be read again and again, first to last.

    Subclasses implement `chunks`. Bad rows raise DataError, or with on_bad_row="skip" are left out and counted in
    `skipped` (which tells of the latest pass). `columns` names the features where names are known, and `layout` also
    the label; files know theirs once reading has begun. `given` are the options that a file was opened with, its format
    among them. `on_progress` is called now and then with the share of the pass that is done, where reading takes long
    enough for somebody to wait.
    """

    copied_by: ClassVar[str] = "convert"
    """The command that writes such a copy."""

    on_bad_row: str = field(default="error", kw_only=True)
    skipped: Skipped = field(default_factory=Skipped, kw_only=True)
    columns: list[str] | None = field(default=None, kw_only=True)
    layout: Layout | None = field(default=None, kw_only=True, repr=False, compare=False)
    given: Options = field(default_factory=dict, kw_only=True, repr=False, compare=False)
    on_progress: Callable[[float], None] | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def name(self) -> str:
        """What to call this source in messages."""
        return type(self).__name__

    @property
    def quick(self) -> bool:
        """Whether it takes no parsing and no decompressing, so that reading it again and again needs no Arrow copy."""
        return True

    @property
    def stride(self) -> int:
        """The size of chunks that `load` asks for."""
        return CHUNK_BYTES

    def files(self) -> list[str]:
        """The files that are read for it."""
        return []

    @property
    def home(self) -> str:
        """The file or folder beside which its Arrow copy lies."""
        return self.files()[0]

    def bound(self, nbytes: int) -> None:
        """Refuse from now on a line or record of text, or a row, that takes more than so many bytes, as soon as that
        is known."""

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        """All examples in order, in chunks of about so many bytes. Each call starts a new pass."""
        raise NotImplementedError

    def names(self) -> Layout | None:
        """Which columns of a table the examples are, where they come from one and reading has begun."""
        return self.layout

    def asked(self, like: Layout) -> Self:
        """The same source, in which these columns are looked for where it has columns. See `by_name`."""
        return self

    def read_as(self) -> Options:
        """How to read other data like it, as far as `names` does not tell: options of `open`."""
        known = {name: value for name, value in self.given.items() if name in REMEMBERED}
        return {name: np.dtype(value).name if name == "dtype" else value for name, value in known.items()}

    def unlabelled(self) -> Self:
        """The same source, in which examples need no labels, for those who ask for predictions. Most need none anyway,
        and stay what they are."""
        return self

    def candidates(self) -> list[str] | None:
        """The names of all columns but label and weight, where examples are rows of a table and nobody has said which
        of the columns they are."""
        return None

    def outline(self) -> Iterator[Chunk] | None:
        """The labels and weights of all examples beside batches of none, as wide as they all are, where that can be
        told without reading examples."""
        return None

    def column_of(self, path: str, line: int, index: int) -> int | None:
        """Where in its line of text an index (from 0) of a sparse row stands, from 1, if the text can be looked up."""
        return None

    def load(self, limit: int | None = None) -> Chunk:
        """All examples in one chunk. A source that yields one chunk gives it as it is; others are joined as they come,
        so that the rows are never in memory twice.

        As soon as they turn out to take more than `limit` bytes, or those that were read say so of the rest, they are
        let go and TooLargeError is raised.
        """
        nbytes = self.stride if limit is None else min(self.stride, max(LEAST, limit // SHARE))
        beside = _Joined(limit)
        with self.telling(beside.expect):
            chunks = iter(self.chunks(nbytes))
            first = next(chunks, None)
            if first is None:
                raise DataError("has no examples", self.name)
            return beside.all_of(chain((first,), chunks))

    @contextmanager
    def telling(self, on_progress: Callable[[float], None]) -> Iterator[None]:
        """While this lasts, somebody else is told, too, how much of the source has been read."""
        told = self.on_progress

        def both(share: float) -> None:
            on_progress(share)
            if told is not None:
                told(share)

        self.on_progress = both
        try:
            yield
        finally:
            self.on_progress = told

    def bad_row(self, error: DataError) -> None:
        """Raise the complaint, or count it where bad rows are to be skipped."""
        if self.on_bad_row != "skip":
            raise error
        self.skipped.add(error)


@dataclass
class Around(Source):
    """Another source with something changed: its labels, or its examples."""

    source: Source

    labels_inside: ClassVar[bool] = False
    """Whether labels given for the examples belong to those of the source inside."""

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def stride(self) -> int:
        return self.source.stride

    @contextmanager
    def telling(self, on_progress: Callable[[float], None]) -> Iterator[None]:
        with self.source.telling(on_progress):
            yield

    def files(self) -> list[str]:
        return self.source.files()

    def names(self) -> Layout | None:
        return self.source.names()

    def asked(self, like: Layout) -> Self:
        inner = self.source.asked(like)
        return self if inner is self.source else dataclasses.replace(self, source=inner)

    def read_as(self) -> Options:
        return self.source.read_as()

    def unlabelled(self) -> Self:
        inner = self.source.unlabelled()
        return self if inner is self.source else dataclasses.replace(self, source=inner)

    def candidates(self) -> list[str] | None:
        return self.source.candidates()

    def bound(self, nbytes: int) -> None:
        self.source.bound(nbytes)

    def column_of(self, path: str, line: int, index: int) -> int | None:
        return self.source.column_of(path, line, index)


def join_chunks(chunks: Iterable[Chunk], limit: int | None = None) -> Chunk:
    """Chunks that follow each other as one; TooLargeError if they take more than so many bytes."""
    return _Joined(limit).all_of(chunks)


class _Joined:
    """What stands beside the batches of several chunks, joined while they pass: y, weights, lines and files."""

    def __init__(self, limit: int | None) -> None:
        self.limit = self.left = limit
        self.first: Chunk | None = None
        self.arrays: dict[str, Growing] = {}
        self.files: list[tuple[int, str | None]] = []
        self.ids: list[pa.RecordBatch] = []
        self.rows = 0
        self.shared: object = None  # of the latest batch, and its bytes
        self.beyond = 0

    def all_of(self, chunks: Iterable[Chunk]) -> Chunk:
        batch = joined(self.note(chunk) for chunk in chunks)
        return self.chunk(batch)

    def expect(self, share: float) -> None:
        """What was noted is at most this share of all. The less that is, the larger all of it has to look."""
        if self.limit is not None and self.left is not None:
            taken = self.limit - self.left
            if taken * taken > self.limit * (taken + self.limit / CERTAIN) * share:
                raise TooLargeError

    def note(self, chunk: Chunk) -> Batch:
        """Remember what belongs to this chunk, and hand on its batch."""
        if self.left is not None:
            self.left -= chunk.nbytes
            if chunk.batch.shared is not None:  # it may have grown since the last chunk
                beyond = chunk.batch.nbytes - batch_bytes(chunk.batch)
                self.left -= beyond - (self.beyond if chunk.batch.shared is self.shared else 0)
                self.shared, self.beyond = chunk.batch.shared, beyond
            if self.left < 0:
                raise TooLargeError
        if self.first is None:
            self.first = chunk
            beside = {"y": chunk.y, "weight": chunk.weight, "lines": chunk.lines}
            self.arrays = {name: Growing(array) for name, array in beside.items() if array is not None}
        else:
            require_alike(self.first, chunk)
            if chunk.lines is None:
                self.arrays.pop("lines", None)
            for name, growing in self.arrays.items():
                growing.extend(getattr(chunk, name))
        for first, path in chunk.files or ((0, chunk.path),):
            if not self.files or self.files[-1][1] != path:
                self.files.append((self.rows + first, path))
        if chunk.ids is not None:
            self.ids.append(chunk.ids)
        self.rows += len(chunk)
        return chunk.batch

    def chunk(self, batch: Batch) -> Chunk:
        assert self.first is not None
        if len(self.first) == self.rows:
            return self.first
        y, weight, lines = (self.arrays[n].done() if n in self.arrays else None for n in ("y", "weight", "lines"))
        files = tuple(self.files) if len(self.files) > 1 else None
        path = self.files[0][1] if files is None else None
        ids = None
        if self.ids:
            import pyarrow as pa

            ids = pa.concat_batches(self.ids)
        return Chunk(batch, y, weight, self.first.first_row, path, lines, files, ids=ids)


def batch_bytes(batch: Batch) -> int:
    """Bytes of the rows of a batch, whatever larger arrays they are part of."""
    fixed = isinstance(batch, Ragged) and not batch.parts().offsets
    offsets = 0 if fixed else 8 * (len(batch) + 1)
    return int(batch.row_bytes().sum()) + offsets


def require_alike(first: Chunk, chunk: Chunk) -> None:
    """Refuse a chunk that cannot stand in one data set with an earlier one: another kind, width, or sort of label."""

    def refuse(what: str) -> None:
        raise DataError(f"{what}; all files of one data set must agree", chunk.path)

    a, b = first.batch, chunk.batch
    if type(a) is not type(b):
        refuse(f"holds {b.kind}, and what came before holds {a.kind}")
    if isinstance(a, DenseRows) and isinstance(b, DenseRows) and a.values.shape[1:] != b.values.shape[1:]:
        refuse(f"has rows of shape {b.values.shape[1:]}, and what came before {a.values.shape[1:]}")
    if (first.y is None) != (chunk.y is None):
        refuse("has labels, and what came before has none" if first.y is None else "has no labels, unlike the rest")
    if len(first) and len(chunk) and are_sets(first.y) != are_sets(chunk.y):
        refuse("only some parts have several labels a row")
    if first.y is not None and chunk.y is not None and is_text(first.y) != is_text(chunk.y):
        refuse("its labels are text, and before they were numbers" if is_text(chunk.y) else "its labels are not text")
    if (first.weight is None) != (chunk.weight is None):
        refuse("only some parts have weights")


def is_text(y: np.ndarray) -> bool:
    """Whether labels are names and not numbers."""
    return y.dtype.kind not in "iufb"
