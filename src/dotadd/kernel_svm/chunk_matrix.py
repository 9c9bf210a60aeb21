"""ChunkMatrix: the kernel matrix of a chunk whose examples come and go; only what is new is computed."""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.kernel_svm.gram import Gram

PIECE = 1 << 21  # kernel values that are computed at a time


class ChunkMatrix:
    """K[rows, rows] in float32, for at most so many rows, in one piece of memory."""

    def __init__(self, gram: Gram, most: int) -> None:
        self.gram = gram
        self.rows = np.zeros(0, np.int64)
        self.computed = 0
        """Kernel values computed so far."""
        self._memory = np.empty(most * most, np.float32)

    @property
    def values(self) -> np.ndarray:
        m = len(self.rows)
        return self._memory[: m * m].reshape(m, m)

    def become(self, rows: np.ndarray) -> None:
        """Be the matrix of these examples, in an order of its own; what both chunks share is moved."""
        kept = np.flatnonzero(np.isin(self.rows, rows, assume_unique=True))
        _gather(self._memory, kept, len(self.rows))
        _spread(self._memory, len(kept), len(rows))
        new = np.setdiff1d(rows, self.rows[kept], assume_unique=True)
        self.rows = np.concatenate([self.rows[kept], new])
        step = max(1, PIECE // max(1, len(rows)))
        for first in range(len(kept), len(rows), step):
            stop = min(first + step, len(rows))
            block = self.gram.block(self.rows[first:stop], self.rows[:stop])
            self.values[first:stop, :stop] = block
            self.values[:first, first:stop] = block[:, :first].T
            self.computed += block.size


@kernel
def _gather(memory, kept, m):
    """Move these rows and columns (ascending) of an m x m matrix together: none moves up, so none is overwritten."""
    k = len(kept)
    for a in range(k):
        for b in range(k):
            memory[a * k + b] = memory[kept[a] * m + kept[b]]


@kernel
def _spread(memory, k, m):
    """Make a k x k matrix the upper left part of an m x m one, from its end: none moves down."""
    for a in range(k - 1, -1, -1):
        for b in range(k - 1, -1, -1):
            memory[a * m + b] = memory[a * k + b]
