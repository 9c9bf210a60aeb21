"""Filling: phi over a batch, handed out in blocks that stay in the cache, rows in any order; and rows that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd._util.memory import Budget
from dotadd.core.block import Block, every_row, row_numbers, row_type
from dotadd.core.kept import KeptRows, copy_rows
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
    """Blocks of phi over one batch: views where the rows lie in memory as they should be, scratch otherwise.

    With a budget, rows are kept as far as that has room, if phi takes longer to make them than they take to be read.
    """

    def __init__(self, phi: FeatureMap, batch: Batch, dtype: type = np.float32, budget: Budget | None = None) -> None:
        self.phi, self.batch, self.dtype = phi, batch, dtype
        self.given = phi.view(batch)
        """A block of all rows, where they lie in memory as they should be."""
        self.kept: KeptRows | None = None
        if self.given is not None:
            self._mean = _mean_length(self.given)
            return
        self._bound = phi.bound(batch)
        self._itemsize = np.dtype(dtype).itemsize + (4 if phi.dim <= 2**32 else 8)
        if budget is not None and phi.keeps and len(batch):
            most = int(np.broadcast_to(self._bound, len(batch)).sum(dtype=np.int64))
            self.kept = KeptRows(len(batch), most, phi.dim, dtype, budget)

    @property
    def view(self) -> Block | None:
        """A block of all rows, where they lie in memory, or have come to lie there by being kept."""
        return self.kept.block if self.kept is not None and self.kept.complete else self.given

    @property
    def stays(self) -> bool:
        """Whether there is such a block, or will be once all rows were made."""
        return self.given is not None or (self.kept is not None and self.kept.whole)

    def blocks(self, rows: np.ndarray, *, ahead: bool = False, focus: bool = False) -> Iterator[Picked]:
        """The rows in this order, a block at a time. A block is valid until the next one is asked for.

        With `ahead`, a thread of its own fills the next block while this one is in use. With `focus`, these rows are
        wanted again soon: where there is no room to keep them, others leave that are not among them.
        """
        rows = rows.astype(row_type(len(self.batch)), copy=False)
        if focus and self.kept is not None:
            self.kept.make_room(rows)
        view = self.view
        if view is None and self.kept is not None and self.kept.here[rows].all():
            view = self.kept.block
        if view is not None:
            step = max(1, int(CALL_NONZEROS / (self._mean if self.kept is None else self.kept.mean)))
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                yield Picked(view, some, some)
        elif ahead and self._largest(rows) * self._itemsize <= HUGE_BYTES:
            yield from self._ahead(self._cut(rows, AHEAD_BYTES))
        else:
            spare: Block | None = None
            for some in self._cut(rows, SCRATCH_BYTES):
                picked, spare = self._made(some, spare)
                yield picked

    def _largest(self, rows: np.ndarray) -> int:
        """Non-zeros that the longest of these rows may have."""
        bound = np.asarray(self._bound)
        return int(np.max(bound if bound.ndim == 0 else bound[rows], initial=0))

    def _ahead(self, pieces: Iterator[np.ndarray]) -> Iterator[Picked]:
        with ThreadPoolExecutor(1) as pool:
            spare: Block | None = None
            pending: Future[_Filled] | None = None
            for some in chain(pieces, (None,)):
                making = None if some is None else pool.submit(self._made, some, spare)
                if pending is not None:
                    picked, spare_of_it = pending.result()
                    yield picked
                    spare = spare_of_it  # not before: it may be the one that was handed out
                pending = making

    def _cut(self, rows: np.ndarray, nbytes: int) -> Iterator[np.ndarray]:
        """The rows in pieces whose non-zeros fit into so many bytes."""
        if len(rows) == 1:
            yield rows
            return
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

    def _made(self, rows: np.ndarray, spare: Block | None) -> _Filled:
        """These rows in blocks: those that are kept where they are, the others in a block that is filled now."""
        kept = self.kept
        missing = rows if kept is None else rows[~kept.here[rows]]
        if not len(missing):
            assert kept is not None
            return _Filled(Picked(kept.block, rows, rows), spare)
        block = self._filled(missing, spare)
        fit = 0 if kept is None else kept.put(missing, block)
        if kept is not None and fit == len(missing):
            return _Filled(Picked(kept.block, rows, rows), block)
        if kept is not None and len(missing) - fit < len(rows):
            return _Filled(Picked(self._mixed(kept, rows, block, fit), every_row(len(rows)), rows), block)
        return _Filled(Picked(block, every_row(len(rows)), rows), block)

    def _mixed(self, kept: KeptRows, rows: np.ndarray, made: Block, first: int) -> Block:
        """A block of these rows, of which some are kept, and the others were just made: from this row of `made` on."""
        here = kept.here[rows]
        missing = row_numbers(~here)
        others = every_row(first + len(missing))[first:]
        lengths = kept.block.end[rows] - kept.block.start[rows]
        lengths[missing] = (made.end - made.start)[others]
        block = self._scratch(lengths)
        copy_rows(kept.block, rows[here], block, row_numbers(here))
        copy_rows(made, others, block, missing)
        return block

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


class _Filled(NamedTuple):
    """Some rows, and a block whose memory may be used again once they are done with."""

    picked: Picked
    spare: Block | None


def _mean_length(view: Block) -> float:
    return max(1.0, float(view.end[-1] - view.start[0]) / len(view)) if len(view) else 1.0


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


class ExpandedRows(NamedTuple):
    """How many non-zeros each row of a batch has, and the rows, if there is room for them."""

    batch: Batch
    lengths: np.ndarray
    rows: PlacedRows | None
