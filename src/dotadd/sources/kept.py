"""Kept: another source, read once and then kept in memory, for work that needs the same examples again and again.
Few: some rows of another source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dotadd.sources.base import CHUNK_BYTES, Chunk, Source, TooLargeError
from dotadd.sources.layout import Layout


@dataclass
class Kept(Source):
    """All examples of another source; it is read when they are first asked for.

    Once it has turned out to be larger than it may be, it is read anew each time.
    """

    source: Source

    def __post_init__(self) -> None:
        self.on_bad_row = self.source.on_bad_row
        self._chunk: Chunk | None = None
        self._too_large = False

    @property
    def name(self) -> str:
        return self.source.name

    def files(self) -> list[str]:
        return self.source.files()

    def bound(self, nbytes: int) -> None:
        self.source.bound(nbytes)

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
class Few(Source):
    """About so many rows of another source, from all over it, and two of each class, so that they can be trained on."""

    source: Source
    rows: int

    def __post_init__(self) -> None:
        self.on_bad_row = self.source.on_bad_row

    @property
    def name(self) -> str:
        return self.source.name

    def files(self) -> list[str]:
        return self.source.files()

    def names(self) -> Layout | None:
        return self.source.names()

    def bound(self, nbytes: int) -> None:
        self.source.bound(nbytes)

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
        of_class: dict[Any, list[int]] = {}
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
