"""Filling: phi over a batch, handed out in blocks that stay in the cache, rows in any order; and rows that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd.core.block import Block, every_row, row_type
from dotadd.data.batches import Batch

if TYPE_CHECKING:
    from dotadd.features.base import FeatureMap

SCRATCH_BYTES = 1 << 19  # a usual L2 cache; a half and twice of it measured slower by a fifth and more
AHEAD_BYTES = 1 << 21  # of blocks that another thread fills: they do not come from this core's L2 cache anyway
HUGE_BYTES = 1 << 24  # of a row: one block of it in memory is enough
CALL_NONZEROS = 1 << 22  # what one kernel call may do, so that Ctrl-C, progress and time limits are answered in time


class Picked(NamedTuple):
    """Some rows of a block: row at[j] of the block is example rows[j]."""

    block: Block
    at: np.ndarray
    rows: np.ndarray


class Filling:
    """Blocks of phi over one batch: views where the rows lie in memory as they should be, scratch otherwise."""

    def __init__(self, phi: FeatureMap, batch: Batch, dtype: type = np.float32) -> None:
        self.phi, self.batch, self.dtype = phi, batch, dtype
        self.view = phi.view(batch)
        if self.view is not None:
            self._mean = max(1.0, float(self.view.end[-1] - self.view.start[0]) / len(batch)) if len(batch) else 1.0
            return
        self._bound = phi.bound(batch)
        self._itemsize = np.dtype(dtype).itemsize + (4 if phi.dim <= 2**32 else 8)

    def blocks(self, rows: np.ndarray, *, ahead: bool = False) -> Iterator[Picked]:
        """The rows in this order, a block at a time. A block is valid until the next one is asked for.

        With `ahead`, a thread of its own fills the next block while this one is in use.
        """
        rows = rows.astype(row_type(len(self.batch)), copy=False)
        if self.view is not None:
            step = max(1, int(CALL_NONZEROS / self._mean))
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                yield Picked(self.view, some, some)
        elif ahead and self._largest(rows) * self._itemsize <= HUGE_BYTES:
            yield from self._ahead(self._cut(rows, AHEAD_BYTES))
        else:
            block: Block | None = None
            for some in self._cut(rows, SCRATCH_BYTES):
                block = self._filled(some, block)
                yield Picked(block, every_row(len(some)), some)

    def _largest(self, rows: np.ndarray) -> int:
        """Non-zeros that the longest of these rows may have."""
        bound = np.asarray(self._bound)
        return int(np.max(bound if bound.ndim == 0 else bound[rows], initial=0))

    def _ahead(self, pieces: Iterator[np.ndarray]) -> Iterator[Picked]:
        with ThreadPoolExecutor(1) as pool:
            spare: Block | None = None
            pending: tuple[Future[Block], np.ndarray] | None = None
            for some in chain(pieces, (None,)):
                filling = None if some is None else (pool.submit(self._filled, some, spare), some)
                if pending is not None:
                    block, theirs = pending[0].result(), pending[1]
                    yield Picked(block, every_row(len(theirs)), theirs)
                    spare = block
                pending = filling

    def _cut(self, rows: np.ndarray, nbytes: int) -> Iterator[np.ndarray]:
        """The rows in pieces whose non-zeros fit into so many bytes."""
        if isinstance(self._bound, int | np.integer):
            step = max(1, nbytes // max(1, int(self._bound) * self._itemsize))
            yield from (rows[first : first + step] for first in range(0, len(rows), step))
            return
        room = np.cumsum(self._bound[rows], dtype=np.int64)
        first, used = 0, 0
        while first < len(rows):
            stop = max(first + 1, int(np.searchsorted(room, used + nbytes // self._itemsize, side="right")))
            yield rows[first:stop]
            first, used = stop, int(room[stop - 1])

    def _filled(self, rows: np.ndarray, block: Block | None) -> Block:
        """These rows in a block; where rows have all the same bound, in the memory of an earlier one."""
        if (view := self.phi.view_rows(self.batch, rows, self.dtype)) is not None:
            return view
        if not isinstance(self._bound, int | np.integer):
            block = self._scratch(self._bound[rows])
        elif block is None or len(block) < len(rows):
            block = self._scratch(np.full(len(rows), int(self._bound), np.int64))
        else:
            block.end[:] = block.start
        self.phi.fill(self.batch, rows, block)
        return block

    def _scratch(self, bounds: np.ndarray) -> Block:
        return Block.scratch(bounds, self.phi.dim, distinct=self.phi.distinct, dtype=self.dtype)


class PlacedRows(NamedTuple):
    """Row r is indices[offsets[r] : offsets[r + 1]] with the values beside them."""

    offsets: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @classmethod
    def joined(cls, parts: list[PlacedRows]) -> PlacedRows:
        """The rows of all parts, one part after the other."""
        if not parts:
            return cls(np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32))
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        indices, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        return cls(np.concatenate([[0], np.cumsum(lengths)]), indices, values)


class Keeping:
    """The parts of some rows, which threads bring in any order: all are kept, or, if there is no room, none."""

    def __init__(self, count: int, room: float) -> None:
        self._parts: list[PlacedRows | None] = [None] * count
        self._room = room
        self._lock = Lock()

    def put(self, number: int, part: PlacedRows) -> None:
        size = part.indices.nbytes + part.values.nbytes
        with self._lock:
            self._room -= size
            if self._room < 0:
                self._parts = []  # what is there is of no use without the rest
            else:
                self._parts[number] = part

    def rows(self) -> PlacedRows | None:
        """All rows once every part was put, or None."""
        if self._room < 0:
            return None
        parts = [part for part in self._parts if part is not None]
        assert len(parts) == len(self._parts), "a part is missing"
        return PlacedRows.joined(parts)


class KeptRows(NamedTuple):
    """How many non-zeros each row of a batch has, and the rows, if there is room for them."""

    batch: Batch
    lengths: np.ndarray
    rows: PlacedRows | None
