"""Sources around other sources: columns found by the names that a model knows them by; rows of numbers as images;
examples kept in memory once they were read; some of the rows; and examples that are made of others and never stored.

A classifier that has seen every example shifted, turned and scaled is not confused by it. With m examples and |T|
transformations there are m |T| virtual ones, too many to be stored; features are computed on demand anyway, so the
example itself may be as well.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from dotadd._util.memory import available, parse_bytes
from dotadd._util.threads import thread_count
from dotadd.data.batches import DenseRows, Images
from dotadd.data.transforms.base import Transforms
from dotadd.data.virtual import GROUP_BYTES, Changes, Originals, VirtualBatch, group_borders
from dotadd.errors import DataError, DotaddError
from dotadd.sources import open as open_source
from dotadd.sources.base import CHUNK_BYTES, Around, Chunk, Options, Source, TooLargeError, join_chunks
from dotadd.sources.table import Layout, require_names


def by_name(source: Source, like: Layout) -> Source:
    """The same examples with the columns of `like`, in its order. Where a table lacks one of them, reading raises.

    Tables in files are read so. Where all columns lie in memory, or `convert` has put them into one, they are put in
    order here. What has no names, such as an array or a LIBSVM file, stays as it is.
    """
    return _Ordered(source.asked(like), like, on_bad_row=source.on_bad_row, skipped=source.skipped)


@dataclass
class _Ordered(Around):
    """Another source with the features in the order of `like`, where both have names for them."""

    like: Layout

    def names(self) -> Layout | None:
        found = self.source.names()
        out_of_order = found is not None and self._by_names(found)
        return dataclasses.replace(found, features=self.like.features) if found is not None and out_of_order else found

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        for chunk in self.source.chunks(nbytes):
            found = self.source.names()
            if found is not None and type(chunk.batch) is DenseRows and self._by_names(found):
                require_names(self.like.features, found.features, chunk.path)
                place = {name: k for k, name in enumerate(found.features)}
                values = chunk.batch.values.take([place[name] for name in self.like.features], axis=1)
                chunk = dataclasses.replace(chunk, batch=DenseRows(values))
            yield chunk

    def _by_names(self, found: Layout) -> bool:
        """Whether there are names on both sides, and they do not agree already."""
        both = (found, self.like)
        return found.features != self.like.features and all(one.dense and one.header for one in both)


@dataclass
class Shaped(Around):
    """Another source whose rows are images of this height and width. If that is not `asked_for`, but known of earlier
    data, it is said of rows of numbers alone."""

    size: tuple[int, int]
    asked_for: bool = True

    def read_as(self) -> Options:
        return super().read_as() | {"size": self.size}

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        for chunk in self.source.chunks(nbytes):
            rows = type(chunk.batch) is DenseRows
            yield dataclasses.replace(chunk, batch=self._images(chunk)) if rows or self.asked_for else chunk

    def _images(self, chunk: Chunk) -> Images:
        batch, (height, width) = chunk.batch, self.size
        if isinstance(batch, Images):
            raise DataError(f"holds images already, and size={height}x{width} is for rows of numbers", chunk.path)
        if not isinstance(batch, DenseRows):
            raise DataError(f"holds {batch.kind}, and size={height}x{width} is for rows of numbers", chunk.path)
        if batch.n_features != height * width:
            raise DataError(
                f"has rows of {batch.n_features} numbers, and images of {height}x{width} have {height * width} pixels",
                chunk.path,
            )
        return Images(batch.values.reshape(-1, height, width))


def parse_size(size: str | Sequence[int | str]) -> tuple[int, int]:
    """Height and width, given as a pair or as text like "24x32"."""
    found = re.fullmatch(r"\s*(\d+)\s*[xX]\s*(\d+)\s*", size) if isinstance(size, str) else None
    pair = found.groups() if found else () if isinstance(size, str) else size
    try:
        height, width = (int(side) for side in pair)
        whole = all(isinstance(side, int | np.integer | str) for side in pair)
    except (TypeError, ValueError):
        whole = False
    if not whole or min(height, width) < 1:
        raise DotaddError(f"{size!r} is no size of images; write height and width, like 24x32")
    return height, width


@dataclass
class Kept(Around):
    """All examples of another source; it is read when they are first asked for.

    Once it has turned out to be larger than it may be, it is read anew each time.
    """

    def __post_init__(self) -> None:
        self.on_bad_row = self.source.on_bad_row
        self._chunk: Chunk | None = None
        self._too_large = False

    def asked(self, like: Layout) -> Self:
        if like.kinds is not None and self._chunk is None:
            self.source = self.source.asked(like)
        return self  # what is kept is put in order where it lies

    def candidates(self) -> list[str] | None:
        return None  # which columns are kept is decided

    def load(self, limit: int | None = None) -> Chunk:
        if self._too_large and limit is not None:
            raise TooLargeError
        if self._chunk is None:
            try:
                self._chunk = self.source.load(limit)
            except TooLargeError:
                self._too_large = True
                raise
        self._told()
        return self._chunk

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        if not self._too_large:
            yield self.load()
            return
        for chunk in self.source.chunks(nbytes):
            self._told()
            yield chunk
        self._told()

    def read_from(self, source: Source) -> None:
        """Read the same examples, which are too large to be kept, from another source from now on."""
        self.source, self._too_large = source, True

    def _told(self) -> None:
        """What the source tells of itself: names, and the rows that could not be read, in each pass again."""
        self.columns, self.layout = self.source.columns, self.source.names()
        self.skipped.clear()
        self.skipped.merge(self.source.skipped)


@dataclass
class Few(Around):
    """About so many rows of another source, from all over it, and two of each class, so that they can be trained on."""

    rows: int

    def __post_init__(self) -> None:
        self.on_bad_row = self.source.on_bad_row

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        rows = self._chosen(nbytes)
        taken = 0
        for chunk in self.source.chunks(nbytes):
            first, stop = np.searchsorted(rows, (chunk.first_row, chunk.first_row + len(chunk)))
            if first < stop:
                mine = chunk.take(rows[first:stop] - chunk.first_row)
                yield dataclasses.replace(mine, first_row=taken)
                taken += len(mine)

    def _chosen(self, nbytes: int) -> np.ndarray:
        """The numbers of the rows, from one pass over all."""
        count = 0
        of_class: dict[object, list[int]] = {}
        for chunk in self.source.chunks(nbytes):
            if chunk.y is not None:
                codes = np.unique(chunk.y, return_inverse=True)[1]
                order = np.argsort(codes, kind="stable")
                first = np.flatnonzero(np.diff(codes[order], prepend=-1))
                two = order[np.union1d(first, np.minimum(first + 1, len(order) - 1))]
                for row in two.tolist():
                    of_class.setdefault(chunk.y[row], []).append(count + row)
            count += len(chunk)
        spread = np.linspace(0, count - 1, min(self.rows, count), dtype=np.int64)
        return np.union1d(spread, [row for rows in of_class.values() for row in rows[:2]]).astype(np.int64)


@dataclass
class Virtual(Around):
    """Every transformation of every example of a source, with its label and weight.

    Parameters
    ----------
    source : anything that `dotadd.open` takes
    transforms : Transforms or str, such as "translate(2) * rotate(6, step=3) * scale(0.05)"
    memory : str, int or None
        What changed rows may take that are better kept than made again (rotation, scale), such as "500MB"; by default
        a quarter of what is free. The rest is made each time it is wanted; with 0 all of it.
    """

    source: Any
    transforms: Any
    memory: str | int | None = field(default=None, compare=False)

    labels_inside: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.source = open_source(self.source)
        if isinstance(self.transforms, str):
            from dotadd.data.transforms import parse

            self.transforms = parse(self.transforms)
        assert isinstance(self.transforms, Transforms)
        if self.memory is None:
            self._room = available() // 4
        else:
            self._room = 0 if self.memory == 0 else parse_bytes(self.memory)
        self.on_bad_row, self.skipped = self.source.on_bad_row, self.source.skipped

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        first_row = 0
        for chunk in self._groups(nbytes):
            virtual = self._virtual(chunk, 0)
            ends = np.cumsum(virtual.batch.row_bytes())
            first = 0
            while first < len(virtual):
                before = ends[first - 1] if first else 0
                stop = max(first + 1, int(np.searchsorted(ends, before + nbytes, side="right")))
                part = virtual.slice(first, stop)
                yield dataclasses.replace(part, first_row=first_row)
                first_row += len(part)
                first = stop

    def _groups(self, nbytes: int) -> Iterator[Chunk]:
        """The originals in groups that are the same in chunks of any size, so that virtual examples are."""
        held: list[Chunk] = []
        room = GROUP_BYTES
        for chunk in self.source.chunks(nbytes):
            sizes = chunk.batch.row_bytes()
            for first, stop in pairwise(group_borders(sizes, room)):
                held.append(chunk.slice(first, stop))
                room -= int(sizes[first:stop].sum())
                if room <= 0:
                    yield join_chunks(held)
                    held, room = [], GROUP_BYTES
        if held:
            yield join_chunks(held)

    def load(self, limit: int | None = None) -> Chunk:
        chunk = self.source.load(limit)
        room = self._room
        if limit is not None:
            beside = len(chunk) * len(self.transforms) * 8  # the numbers of original and change
            room = min(room, limit - chunk.nbytes - beside)
            if room < 0:
                raise TooLargeError
        return self._virtual(chunk, room)

    def _virtual(self, chunk: Chunk, room: int) -> Chunk:
        """All virtual examples of a chunk, with so many bytes for what is better kept."""
        self.transforms.check(chunk.batch)
        originals = Originals(chunk.batch, Changes(self.transforms))
        originals.make_ready(room, thread_count(None))

        batch = VirtualBatch.all_of(originals)

        def repeated(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[batch.rows]

        lines = chunk.lines
        if lines is not None and lines.max(initial=0) < 2**31:
            lines = lines.astype(np.int32)
        files = chunk.files
        if files is not None:
            of = np.searchsorted([first for first, _ in files], batch.rows, side="right") - 1
            begins = np.flatnonzero(np.diff(of, prepend=-1)).tolist()
            files = tuple((row, files[int(of[row])][1]) for row in begins)
        return Chunk(batch, repeated(chunk.y), repeated(chunk.weight), 0, chunk.path, repeated(lines), files)
