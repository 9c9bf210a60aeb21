"""Kept: another source, read once and then kept in memory, for work that needs the same examples again and again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dotadd.sources.base import CHUNK_BYTES, Chunk, Source


@dataclass
class Kept(Source):
    """All examples of another source; it is read when they are first asked for."""

    source: Source

    def __post_init__(self) -> None:
        self.on_bad_row = self.source.on_bad_row
        self._chunk: Chunk | None = None

    @property
    def name(self) -> str:
        return self.source.name

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        if self._chunk is None:
            self._chunk = self.source.load()
            self.columns = self.source.columns
        self.skipped = dataclasses.replace(self.source.skipped)  # those that could not be read, in each pass again
        yield self._chunk


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

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        chunk = self.source.load()
        rows = np.linspace(0, len(chunk) - 1, min(self.rows, len(chunk)), dtype=np.int64)
        if chunk.y is not None:
            codes = np.unique(chunk.y, return_inverse=True)[1]
            order = np.argsort(codes, kind="stable")
            first = np.flatnonzero(np.diff(codes[order], prepend=-1))
            rows = np.union1d(rows, order[np.union1d(first, np.minimum(first + 1, len(order) - 1))])
        yield chunk.take(rows)
