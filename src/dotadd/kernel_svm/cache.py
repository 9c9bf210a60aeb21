"""Kernel values that are kept: rows between some examples within a budget of bytes, and the matrix of a chunk.

RowCache: rows lie in one array that kernels read, each at a place of its own; the least recently used ones make room. A
row alone is computed at the speed of memory, many at once at that of arithmetic, so rows that will probably be wanted
come along. Examples are called by their position among those that the cache is for. These may change: rows of examples
that remain are kept, and only columns that are new are computed.

ChunkMatrix: the kernel matrix of a chunk whose examples come and go; only what is new is computed.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.kernel_svm.gram import Gram

TOGETHER = 16  # rows computed at once, at most: more of them are not wanted before they leave a small cache
FEWEST = 4  # rows in memory, however small the budget: a pair, and room to compute


class RowCache:
    """k(a_i, a_j) of examples i and j of a square Gram, in float32.

    Kernels read row i at rows[place[i]] (place is -1 where it is not here) and note its use by a higher last_use. What
    is in memory, the block that is just computed included, stays within nbytes, or FEWEST rows of the first examples.
    """

    def __init__(self, gram: Gram, examples: np.ndarray, nbytes: int) -> None:
        width = len(examples)
        numbers = max(nbytes // 4, FEWEST * width)
        self._reserve = min(TOGETHER * width, numbers // 4)  # for the block that is just computed
        self._store = np.empty(min(numbers - self._reserve, width * width), np.float32)
        self.gram = gram
        self.hits = 0
        """Rows that were wanted and here; kernels count them."""
        self.misses = 0
        """Rows that were wanted and not here."""
        self.computed = 0
        """Rows that were computed, some of them before they were wanted."""
        self._lay_out(examples)

    @property
    def together(self) -> int:
        """Rows that may be computed at once."""
        return max(1, min(TOGETHER, self._reserve // max(len(self.examples), 1)))

    def fetch(self, wanted: int, likely: np.ndarray) -> None:
        """Compute the row that is wanted, and those of the likely ones that are not here, the first ones first.

        No more than `together` in all; the rows used last stay.
        """
        others = likely[(self.place[likely] < 0) & (likely != wanted)]
        rows = np.append(wanted, others[: max(0, min(self.together, len(self.owner) - 1) - 1)])
        self.misses += 1
        self.computed += len(rows)
        places = np.argpartition(self.last_use, len(rows) - 1)[: len(rows)]
        left = self.owner[places]
        self.place[left[left >= 0]] = -1
        self.rows[places] = self.gram.block(self.examples[rows], self._columns())
        self.owner[places], self.place[rows] = rows, places
        self.last_use[places] = self.last_use.max()

    def change(self, examples: np.ndarray) -> None:
        """Be a cache for other examples, whose numbers rise as before, with the rows that remain and find room."""
        before, old_width = self.examples, len(self.examples)
        owner, last_use = self.owner, self.last_use
        column = np.full(self.gram.shape[0], -1, np.int64)
        column[before] = np.arange(old_width)
        source = column[examples]  # where each column is now
        self._lay_out(examples)

        row = np.full(old_width, -1, np.int64)
        row[source[source >= 0]] = np.flatnonzero(source >= 0)
        remain = np.flatnonzero((owner >= 0) & (row[owner] >= 0))
        if len(remain) > len(self.owner):
            latest = np.argpartition(last_use[remain], -len(self.owner))[-len(self.owner) :]
            remain = np.sort(remain[latest])
        kept = len(remain)
        self.owner[:kept], self.last_use[:kept] = row[owner[remain]], last_use[remain]
        self.place[self.owner[:kept]] = np.arange(kept)
        _rearrange(self._store, remain, old_width, source)

        new = np.flatnonzero(source < 0)
        if len(new):
            step = max(1, self._reserve // len(new))
            for first in range(0, kept, step):
                some = slice(first, min(first + step, kept))
                self.rows[some, new] = self.gram.block(examples[self.owner[some]], examples[new])

    def _columns(self) -> np.ndarray | None:
        """What to ask the Gram for: all columns in their order is less work than the same by number."""
        return None if len(self.examples) == self.gram.shape[1] else self.examples

    def _lay_out(self, examples: np.ndarray) -> None:
        """Be a cache for these examples without any row."""
        width = len(examples)
        places = min(width, len(self._store) // max(width, 1))
        self.examples = examples
        self.rows = self._store[: places * width].reshape(places, width)
        self.place = np.full(width, -1, np.int64)
        self.owner = np.full(places, -1, np.int64)
        self.last_use = np.full(places, -1, np.int64)


@kernel
def _rearrange(store, remain, old_width, source):
    """Move the rows at some places (in rising order) to the first places, and number source[k] of a row to k.

    It needs no second store: where rows become shorter none is overwritten before it has moved, going upwards; where
    they become longer they are moved together first, and then each to its place going downwards.
    """
    width = len(source)
    row = np.empty(old_width, np.float32)
    if width > old_width:
        for to in range(len(remain)):
            for k in range(old_width):
                store[to * old_width + k] = store[remain[to] * old_width + k]
    for turn in range(len(remain)):
        to = turn if width <= old_width else len(remain) - 1 - turn
        first = (remain[to] if width <= old_width else to) * old_width
        for k in range(old_width):
            row[k] = store[first + k]
        for k in range(width):
            if source[k] >= 0:
                store[to * width + k] = row[source[k]]


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
        m, whole = len(self.rows), self.gram.whole
        if whole is not None and m == len(whole):
            return whole
        return self._memory[: m * m].reshape(m, m)

    def become(self, rows: np.ndarray) -> None:
        """Be the matrix of these examples, in an order of its own; what both chunks share is moved."""
        if self.gram.whole is not None:  # there is nothing to be computed, and maybe nothing to be moved
            self.rows = np.sort(rows)
            if len(rows) < self.gram.shape[0]:
                self.values[:] = self.gram.block(self.rows, self.rows)
            return
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
