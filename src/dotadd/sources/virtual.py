"""Virtual: a source of examples made from those of another one, and never stored.

A classifier that has seen every example shifted, turned and scaled is not confused by it. With m examples and |T|
transformations there are m |T| virtual ones, too many to be stored; features are computed on demand anyway, so the
example itself may be as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dotadd._util.memory import available, parse_bytes
from dotadd._util.threads import thread_count
from dotadd.data.transforms.base import Transforms
from dotadd.data.virtual import GROUP_BYTES, Changes, Originals, VirtualBatch, group_borders
from dotadd.sources import open as open_source
from dotadd.sources.base import CHUNK_BYTES, Around, Chunk, TooLargeError, join_chunks


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
