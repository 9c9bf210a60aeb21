"""KeptRows: rows of phi that were made once and are read from then on, as many as the budget has room for.

Equal indices of a row are merged, and rows lie one after the other in one piece of memory, in the order in which they
came. The memory is as long as all rows can get at most, or as the budget allows; pages that nobody writes to cost
nothing. Rows that leave make room for others: those that stay slide together.
"""

from __future__ import annotations

from copy import copy
from threading import Lock

import numpy as np

from dotadd._jit import kernel
from dotadd._util.memory import Budget
from dotadd.core.block import LONG, Block, every_row, table_size

MOST = 0.75  # of what the budget has left: planes and other things that grow want some of it, too
LONG_ROWS = 1 << 10  # non-zeros on average, from which rows are laid out in two parts
LEAST_PAGES = 16
PAGE = np.uint64(10)  # 1024 slots, a page of memory: what a core fetches ahead of its turn then is its own half of w
WIDEST = 1 << 28  # slots of w, of which it is told one by one whether any row has them
EMPTY = 0.5  # of the slots of w have to be empty before it is worth numbering the others anew
LOOSE = 0.25  # of the bytes have to belong to rows that may leave before it is worth moving the others


class KeptRows:
    """Room for rows of phi over so many examples, which have at most `nonzeros` non-zeros altogether."""

    def __init__(self, rows: int, nonzeros: int, dim: int, dtype: type, budget: Budget) -> None:
        index = np.uint32 if dim <= 2**32 else np.uint64
        self._itemsize = np.dtype(index).itemsize + np.dtype(dtype).itemsize
        self._budget = budget
        wanted = max(1, nonzeros) * self._itemsize
        self._claimed = budget.take(min(wanted, int(MOST * budget.left)))
        capacity = self._claimed // self._itemsize
        try:
            arrays: list[np.ndarray] = [np.empty(capacity, kind) for kind in (index, dtype)]
        except MemoryError:  # this process may not even reserve it
            arrays = [np.empty(0, kind) for kind in (index, dtype)]
            budget.release(self._claimed)
            self._claimed = 0
        places = np.zeros((2, rows), np.int64)
        self.block = Block(places[0], places[1], *arrays, distinct=True, cold=True)
        """The rows that are kept, each under its own number."""
        if nonzeros >= LONG_ROWS * rows and dim >= LEAST_PAGES << int(PAGE):
            self.block.mid = np.zeros(rows, np.int64)
        self.whole = self._claimed >= wanted
        """Whether there is room for all rows, however few of their indices are equal."""
        self.here = np.zeros(rows, np.bool_)
        """Of each row, whether it is kept."""
        self.count = 0
        """How many are."""
        self.full = False
        """Whether rows were turned away for want of room."""
        self._used = 0
        self._lock = Lock()

    @property
    def complete(self) -> bool:
        """Whether all rows are kept."""
        return self.count == len(self.here)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are kept."""
        return self._used * self._itemsize

    @property
    def mean(self) -> float:
        """Non-zeros of a row that is kept, on average."""
        return max(1.0, self._used / max(1, self.count))

    def put(self, rows: np.ndarray, block: Block) -> int:
        """Keep these rows, which lie in the block from its first row on, as far as there is room; says how many.

        Equal indices are merged in the block, too.
        """
        if self.full:
            return 0
        if not block.distinct:
            merge(block.start, block.end, block.indices, block.values, len(rows))
        ends = np.cumsum(block.end[: len(rows)] - block.start[: len(rows)])
        with self._lock:
            first = self._used
            fit = int(np.searchsorted(ends, len(self._indices) - first, side="right"))
            self.full = fit < len(rows)
            self._used += int(ends[fit - 1]) if fit else 0
        rows = rows[:fit]
        self.block.start[rows] = self.block.end[rows] = first + ends[:fit] - np.diff(ends[:fit], prepend=0)
        if self.block.mid is None:
            copy_rows(block, every_row(fit), self.block, rows)
        else:
            _append_in_two(
                block.start, block.end, block.indices, block.values, rows,
                self.block.mid, self.block.end, self.block.indices, self.block.values,
            )  # fmt: skip
        with self._lock:
            self.count += int(np.count_nonzero(~self.here[np.unique(rows)]))
            self.here[rows] = True
            if self.complete:
                self._give_back()
        return fit

    @property
    def _indices(self) -> np.ndarray:
        assert self.block.indices is not None
        return self.block.indices

    def _give_back(self) -> None:
        """All rows are here: what equal indices have saved can be had by others."""
        self._budget.release(self._claimed - self.nbytes)
        self._claimed = self.nbytes

    def renumbered(self, dim: int) -> tuple[KeptRows, int] | None:
        """The same rows with the slots alone that they have, in their order, and how many these are; None where few of
        `dim` slots are empty, or the budget has no room for other indices."""
        indices = self._indices[: self._used]
        if dim > WIDEST or self._budget.left < indices.nbytes:
            return None
        met = np.zeros(dim, np.bool_)
        met[indices] = True
        if (count := int(np.count_nonzero(met))) > (1.0 - EMPTY) * dim:
            return None
        numbers = np.cumsum(met, dtype=indices.dtype)
        numbers -= 1
        other = copy(self)
        other._claimed = self._budget.take(indices.nbytes)
        other.block = copy(self.block)
        other.block.indices = numbers[indices]
        return other, count

    def let_go(self) -> None:
        """Give back what was claimed for them."""
        self._budget.release(self._claimed)

    def make_room(self, rows: np.ndarray) -> None:
        """Where there was none, let rows go that are not among these, if they take enough of it."""
        if not self.full or not self.count or self.here[rows].all():
            return
        leaves = self.here.copy()
        leaves[rows] = False
        lengths = self.block.end - self.block.start
        if lengths[leaves].sum() <= LOOSE * self._used:
            return
        self.here[leaves] = False
        stay = np.flatnonzero(self.here)
        stay = stay[np.argsort(self.block.start[stay], kind="stable")]
        first_parts = None if self.block.mid is None else self.block.mid[stay] - self.block.start[stay]
        self._used = int(_slide(stay, self.block.start, self.block.end, self._indices, self.block.values))
        if self.block.mid is not None:
            self.block.mid[stay] = self.block.start[stay] + first_parts
        self.count, self.full = len(stay), False


@kernel
def merge(start, end, indices, values, count):
    """Merge equal indices in each of the first so many rows of a block, where the first of them was."""
    longest = np.int64(0)
    for j in range(count):
        longest = max(longest, np.int64(end[j] - start[j]))
    room, factor, shift = table_size(longest), np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
    if longest > LONG:  # of which there may be more than slots: then each of these has a place of its own
        highest = np.uint64(0)
        for j in range(count):
            for k in range(np.uint64(start[j]), np.uint64(end[j])):
                highest = max(highest, np.uint64(indices[k]))
        slots = np.uint64(4)
        while slots < room and slots < highest + np.uint64(2):
            slots *= np.uint64(2)
        if slots < room:
            room, factor, shift = slots, np.uint64(1), np.uint64(0)
    keys = np.zeros(room, np.uint64)  # the index + 1; 0 is an empty place
    places = np.zeros(len(keys), np.uint64)  # where it was written to
    sums = np.zeros(len(keys), np.float64)
    for j in range(count):
        lo, hi = np.uint64(start[j]), np.uint64(end[j])
        size = min(table_size(hi - lo), np.uint64(len(keys)))  # a shorter row may ask for more than the longest
        to = lo
        for k in range(lo, hi):
            key = np.uint64(indices[k]) + np.uint64(1)
            place = (key * factor) >> shift & (size - np.uint64(1))
            while keys[place] != np.uint64(0) and keys[place] != key:
                place = (place + np.uint64(1)) & (size - np.uint64(1))
            if keys[place] == key:
                sums[place] += values[k]
                values[places[place]] = sums[place]
            else:
                keys[place], places[place], sums[place] = key, to, values[k]
                indices[to], values[to] = indices[k], values[k]
                to += np.uint64(1)
        keys[:size] = np.uint64(0)
        end[j] = to


def copy_rows(source: Block, at: np.ndarray, target: Block, to: np.ndarray) -> None:
    """Append row at[j] of one block to row to[j] of another, which has room for it."""
    _append(source.start, source.end, source.indices, source.values, at, to, target.end, target.indices, target.values)


@kernel
def _append(start, end, indices, values, at, to, cursor, out_indices, out_values):
    for j in range(len(at)):
        p = np.uint64(cursor[to[j]])
        for k in range(np.uint64(start[at[j]]), np.uint64(end[at[j]])):
            out_indices[p] = indices[k]
            out_values[p] = values[k]
            p += np.uint64(1)
        cursor[to[j]] = p


@kernel
def _append_in_two(start, end, indices, values, to, mid, cursor, out_indices, out_values):
    """The same of the first rows of a block, each in two parts, of which the second begins at mid[to[j]]."""
    for j in range(len(to)):
        lo, hi = np.uint64(start[j]), np.uint64(end[j])
        second = np.uint64(0)
        for k in range(lo, hi):
            second += np.uint64(indices[k]) >> PAGE & np.uint64(1)
        p = np.uint64(cursor[to[j]])
        q = p + (hi - lo - second)
        mid[to[j]], cursor[to[j]] = q, p + (hi - lo)
        for k in range(lo, hi):
            later = np.uint64(indices[k]) >> PAGE & np.uint64(1)
            place = q if later else p
            out_indices[place], out_values[place] = indices[k], values[k]
            q += later
            p += np.uint64(1) - later


@kernel
def _slide(rows, start, end, indices, values):
    """Move these rows, in the order in which they lie, to the front; returns how many non-zeros they have."""
    to = np.uint64(0)
    for j in range(len(rows)):
        lo, hi = np.uint64(start[rows[j]]), np.uint64(end[rows[j]])
        start[rows[j]] = to
        for k in range(lo, hi):
            indices[to] = indices[k]
            values[to] = values[k]
            to += np.uint64(1)
        end[rows[j]] = to
    return to
