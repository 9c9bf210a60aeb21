"""Expansion: phi over a batch, handed out block by block in any order of rows.

This is the narrow waist: a solver, a prediction and a gap all read examples through `blocks`, and none of them knows
whether a block is a scratch just filled by a feature map or a view of rows that lay in memory anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dotadd.batch import Batch
from dotadd.block import Block
from dotadd.features.base import FeatureMap

SCRATCH_BYTES = 1 << 19  # a usual L2 cache; a half and twice of it measured slower by a fifth and more
CALL_NONZEROS = 1 << 22  # what one kernel call may do, so that Ctrl-C, progress and time limits are answered in time


class Picked(NamedTuple):
    """Some rows of a block: row at[j] of the block is example rows[j]."""

    block: Block
    at: np.ndarray
    rows: np.ndarray


class Expansion:
    """phi over one batch in memory. Not shared between threads: each makes its own."""

    def __init__(self, phi: FeatureMap, batch: Batch, *, dtype: type = np.float32) -> None:
        self.phi, self.batch, self.dtype = phi, batch, dtype
        self._view = phi.view(batch)
        if self._view is not None:
            self._mean = max(1.0, float(self._view.end[-1] - self._view.start[0]) / len(batch)) if len(batch) else 1.0
            return
        self._bound = phi.bound(batch)
        self._itemsize = np.dtype(dtype).itemsize + (4 if phi.dim <= 2**32 else 8)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def dim(self) -> int:
        return self.phi.dim

    @property
    def in_memory(self) -> bool:
        """Whether blocks are views of rows in memory, which cost nothing to hand out, but are not yet in the cache."""
        return self._view is not None

    def blocks(self, rows: np.ndarray | None = None) -> Iterator[Picked]:
        """The rows in this order (all of them, first to last, by default), a block at a time.

        A block is valid until the next one is asked for.
        """
        if rows is None:
            rows = np.arange(len(self.batch), dtype=np.int64)
        if self._view is not None:
            step = max(1, int(CALL_NONZEROS / self._mean))
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                yield Picked(self._view, some, some)
        elif isinstance(self._bound, int | np.integer):
            yield from self._even_blocks(rows, int(self._bound))
        else:
            yield from self._uneven_blocks(rows, self._bound)

    def _even_blocks(self, rows: np.ndarray, bound: int) -> Iterator[Picked]:
        step = max(1, SCRATCH_BYTES // max(1, bound * self._itemsize))
        block = self._scratch(np.full(min(step, len(rows)), bound, np.int64))
        at = np.arange(len(block))
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            block.end[:] = block.start
            self.phi.fill(self.batch, some, block)
            yield Picked(block, at[: len(some)], some)

    def _uneven_blocks(self, rows: np.ndarray, bound: np.ndarray) -> Iterator[Picked]:
        room = np.cumsum(bound[rows], dtype=np.int64)
        step = SCRATCH_BYTES // self._itemsize
        first, used = 0, 0
        while first < len(rows):
            stop = max(first + 1, int(np.searchsorted(room, used + step, side="right")))
            some = rows[first:stop]
            block = self._scratch(bound[some])
            self.phi.fill(self.batch, some, block)
            yield Picked(block, np.arange(len(some)), some)
            first, used = stop, int(room[stop - 1])

    def _scratch(self, bounds: np.ndarray) -> Block:
        return Block.scratch(bounds, self.dim, distinct=self.phi.distinct, dtype=self.dtype)
