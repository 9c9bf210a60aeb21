"""Kernel values that several pairs of classes share, and the Gram of one pair.

Examples stand in the order of their classes, so that the kernel matrix of all consists of blocks, one for each two
classes. The pair (a, b) wants the blocks aa, ab, ba and bb. Those within a class are wanted by all pairs that it is in,
and their rows are kept from one pair to the next; those between two classes are wanted by one pair alone.

Where classes are small, a block is made whole, and each value once: the other half is its mirror image. Where they are
large, a row of a block is made when an example first becomes a support vector, as far as there is room; those that were
used last stay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dotadd._jit import kernel
from dotadd.kernel_svm.gram import Gram

WHOLE = 4000  # examples of two classes: above, making all kernel values takes longer than making those that are wanted
PLAIN = 160.0  # sum of |coefficients| times the largest value, up to where values in float32 cost a sum 1e-5 at most
MIRRORED = 32  # rows and columns that are copied across the diagonal at a time: they stay in the cache
STRIP, FEWEST = 1 << 20, 64  # values, and at least rows, that are made at a time


class SharedRows:
    """Some rows of the block between two classes: k(z_i, z_j) for examples i of one and all j of the other.

    Classes are given as (first, stop); rows and columns are numbered from the first of their class.
    """

    def __init__(self, gram: Gram, rows: tuple[int, int], columns: tuple[int, int], nbytes: int) -> None:
        self.gram, self.first = gram, (rows[0], columns[0])
        height, width = rows[1] - rows[0], columns[1] - columns[0]
        self.shape = height, width
        places = min(height, nbytes // (4 * max(1, width)))
        self.values = np.empty((places, width), np.float32)  # pages that nobody writes to cost nothing
        self._place = np.full(height, -1, np.int64)
        self._owner = np.full(places, -1, np.int64)
        self._used = np.zeros(places, np.int64)
        self._clock = 0

    def keep(self, rows: np.ndarray) -> np.ndarray:
        """Have these rows, as far as there is room; says of each where it is among the values, -1 where it is not."""
        self._clock += 1
        here = self._place[rows]
        self._used[here[here >= 0]] = self._clock
        missing = np.unique(rows[here < 0])
        if len(missing):
            others = np.flatnonzero(self._used < self._clock)
            places = others[np.argsort(self._used[others], kind="stable")[: len(missing)]]
            self._put(missing[: len(places)], places)
        return self._place[rows]

    def make_whole(self, check: Callable[[], None]) -> None:
        """Have all rows of a block within one class."""
        everyone = np.arange(self.shape[0])
        mirrored(self.gram, self.first[0] + everyone, self.values, check)
        self._place[:] = self._owner[:] = everyone

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """These values, computed."""
        return self.gram.block(self.first[0] + rows, self.first[1] + columns)

    def block(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        """Write these values; nothing is kept that is not here already."""
        places = self._place[rows]
        missing = np.flatnonzero(places < 0)
        if len(missing):
            out[missing] = self.between(rows[missing], columns)
        _copy(self.values, places, columns, out)

    def add(self, rows: np.ndarray, factors: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        """out[j] += sum_i factors[i] k(z_i, z_j) for these rows, which are kept, and columns."""
        places = self.keep(rows)
        _add_rows(self.values, places, factors, columns, out)
        if len(left := np.flatnonzero(places < 0)):
            out += self.gram.times(self.first[0] + rows[left], factors[left], self.first[1] + columns)

    def _put(self, rows: np.ndarray, places: np.ndarray) -> None:
        """Make these rows, at the places of others."""
        before = self._owner[places]
        self._place[before[before >= 0]] = -1
        everyone, step = np.arange(self.shape[1]), _strip(self.shape[1])
        for start in range(0, len(rows), step):
            self.values[places[start : start + step]] = self.between(rows[start : start + step], everyone)
        self._owner[places], self._place[rows], self._used[places] = rows, places, self._clock


class PairGram(Gram):
    """The Gram of the examples of two classes, those of the first class first."""

    def __init__(self, within: tuple[SharedRows, SharedRows], nbytes: int) -> None:
        first, second = within
        self.gram, self.classes = first.gram, [(one.first[0], one.first[0] + one.shape[0]) for one in within]
        self.size = first.shape[0]
        self.shape = (self.size + second.shape[0],) * 2
        self.linadd, self.definite = self.gram.linadd, self.gram.definite
        one, two = self.classes
        self.between = SharedRows(self.gram, one, two, nbytes // 2), SharedRows(self.gram, two, one, nbytes // 2)
        self._blocks = (first, self.between[0]), (self.between[1], second)

    def diagonal(self) -> np.ndarray:
        diagonal = self.gram.diagonal()
        return np.concatenate([diagonal[slice(*one)] for one in self.classes])

    def numbers(self, rows: np.ndarray | None) -> np.ndarray:
        """What examples of the pair (all by default) are called among all."""
        rows = np.arange(self.shape[0]) if rows is None else rows
        return np.where(rows < self.size, rows + self.classes[0][0], rows - self.size + self.classes[1][0])

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        columns = np.arange(self.shape[1]) if columns is None else columns
        out = np.empty((len(rows), len(columns)), np.float32)
        for (at_row, some), blocks in zip(self._split(rows), self._blocks, strict=True):
            for (at, theirs), part in zip(self._split(columns), blocks, strict=True):
                if len(some) and len(theirs):
                    values = np.empty((len(some), len(theirs)), np.float32)
                    part.block(some, theirs, values)
                    _place(values, at_row, at, out)
        return out

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        if self.linadd:
            return self.gram.times(self.numbers(rows), coefficients, self.numbers(columns))
        columns = np.arange(self.shape[1]) if columns is None else columns
        out = np.zeros(len(columns))
        for (at_row, some), blocks in zip(self._split(rows), self._blocks, strict=True):
            for (at, theirs), part in zip(self._split(columns), blocks, strict=True):
                if len(some) and len(theirs):
                    sums = np.zeros(len(theirs))
                    part.add(some, np.ascontiguousarray(coefficients[at_row], np.float64), theirs, sums)
                    out[at] += sums
        return out

    def _split(self, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Which of these are of either class, and what they are called there."""
        first = rows < self.size
        one, two = np.flatnonzero(first), np.flatnonzero(~first)
        return [(one, rows[one]), (two, rows[two] - self.size)]


def _strip(width: int) -> int:
    """Rows of this width that are made at a time."""
    return max(FEWEST, STRIP // max(1, width))


def mirrored(gram: Gram, rows: np.ndarray, out: np.ndarray, check: Callable[[], None]) -> None:
    """Write the kernel between these rows of a square Gram, each value made once."""
    step = _strip(len(rows))
    for first in range(0, len(rows), step):
        stop = min(first + step, len(rows))
        out[first:stop, first:] = gram.block(rows[first:stop], rows[first:])
        _mirror(out, first, stop, stop)
        if stop < len(rows):
            check()


class WholeGram(Gram):
    """Some rows of a square Gram, whose matrix is in memory. Sums above `plain` are made of the Gram's own values."""

    def __init__(self, gram: Gram, rows: np.ndarray, matrix: np.ndarray, plain: float = PLAIN) -> None:
        self.gram, self.rows, self.whole, self.plain = gram, rows, matrix, plain
        self.shape, self.linadd, self.doubles = matrix.shape, gram.linadd, gram.doubles
        self.definite = gram.definite

    @classmethod
    def of(cls, gram: Gram, check: Callable[[], None], plain: float = PLAIN) -> WholeGram:
        """All rows."""
        matrix = np.empty(gram.shape, np.float32)
        mirrored(gram, np.arange(len(matrix)), matrix, check)
        return cls(gram, np.arange(len(matrix)), matrix, plain)

    @classmethod
    def of_pair(cls, within: tuple[SharedRows, SharedRows], memory: np.ndarray, check: Callable[[], None]) -> WholeGram:
        """Two classes whose blocks are whole; what lies between them is made. The matrix lies in `memory`."""
        (first, second), gram = within, within[0].gram
        size, rows = first.shape[0], np.concatenate([one.first[0] + np.arange(one.shape[0]) for one in within])
        matrix = memory[: len(rows) ** 2].reshape(len(rows), len(rows))
        matrix[:size, :size], matrix[size:, size:] = first.values, second.values
        step = _strip(len(rows) - size)
        for start in range(0, size, step):
            some = slice(start, min(start + step, size))
            matrix[some, size:] = gram.block(rows[some], rows[size:])
            if some.stop < size:
                check()
        _mirror(matrix, 0, size, size)
        return cls(gram, rows, matrix)

    @cached_property
    def _diagonal(self) -> np.ndarray:
        return self.gram.diagonal()[self.rows]

    def diagonal(self) -> np.ndarray:
        return self._diagonal

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        columns = np.arange(self.shape[1]) if columns is None else columns
        out = np.empty((len(rows), len(columns)), np.float32)
        _copy(self.whole, rows, columns, out)
        return out

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        columns = np.arange(self.shape[1]) if columns is None else columns
        if self.gram.doubles and np.abs(coefficients).sum() * self._diagonal.max(initial=0.0) > self.plain:
            return self.gram.times(self.rows[rows], coefficients, self.rows[columns])
        out = np.zeros(len(columns))
        _add_rows(self.whole, rows, np.ascontiguousarray(coefficients, np.float64), columns, out)
        return out


@kernel
def _mirror(values, first, stop, corner):
    """values[j, i] = values[i, j] for rows i from first to stop and columns j from the corner on, in small tiles."""
    for lo in range(first, stop, MIRRORED):
        hi = min(lo + MIRRORED, stop)
        for left in range(corner, values.shape[1], MIRRORED):
            for j in range(left, min(left + MIRRORED, values.shape[1])):
                for i in range(lo, hi):
                    values[j, i] = values[i, j]


@kernel
def _copy(values, places, columns, out):
    """out[i, j] = values[places[i], columns[j]]; rows without a place are left as they are."""
    for i in range(len(places)):
        if places[i] >= 0:
            row = values[places[i]]
            for j in range(np.uint64(len(columns))):
                out[i, j] = row[np.uint64(columns[j])]


@kernel
def _place(values, rows, columns, out):
    """out[rows[i], columns[j]] = values[i, j]"""
    for i in range(len(rows)):
        row = out[rows[i]]
        for j in range(np.uint64(len(columns))):
            row[np.uint64(columns[j])] = values[i, j]


@kernel
def _add_rows(values, places, factors, columns, out):
    """out[j] += sum_i factors[i] values[places[i], columns[j]], of rows that have a place."""
    for i in range(len(places)):
        if places[i] >= 0:
            row, factor = values[places[i]], factors[i]
            for j in range(np.uint64(len(columns))):
                out[j] += factor * np.float64(row[np.uint64(columns[j])])
