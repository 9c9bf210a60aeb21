"""Totals: what all training rows together have in each slot, as a reduction: note rows, join, finish.

Frequencies   how many rows have it
Largest       the largest |value|
Moments       mean and standard deviation, over all rows: those that have nothing there count with 0, or, where values
              may be missing (FeatureMap.holes), do not count
Quartiles     the same of median and quartiles, exactly (quartiles.py)

Counts and largest values do not depend on the order of rows. Sums carry their rounding errors along in a second float64
(Dekker 1971), and so have some 100 bits: whatever way rows are cut into chunks and parts, what is made of them is the
same float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from dotadd._jit import exact_kernel, kernel
from dotadd._util.memory import available, words
from dotadd.core.block import Block
from dotadd.errors import FeatureError

CONSTANT = 4.0 * np.finfo(np.float64).eps ** 2  # of the sum of squares: what rounding may leave of no variance


class Totals:
    """Of rows whose equal indices are merged. Arrays appear with the first rows; `joins` says how each is joined."""

    dtype: ClassVar[type] = np.float64
    """Of the values that are noted."""
    joins: ClassVar[dict[str, Callable[..., np.ndarray]]] = {}

    def __init__(self) -> None:
        self.rows = 0
        self.arrays: dict[str, np.ndarray] = {}
        self.holes = np.empty(0, np.int64)

    def begin(self, dim: int, holes: np.ndarray) -> None:
        """Make room for so many slots, if that was not done before. In the slots `holes`, rows without a value do not
        count."""
        self.holes = holes
        if not self.arrays:
            self.arrays = self.room(dim)

    def counted(self) -> np.ndarray:
        """Rows that count in each slot; for those who note in "stored" how many have something there."""
        counted = np.full(len(self.arrays["stored"]), self.rows)
        counted[self.holes] = self.arrays["stored"][self.holes]
        return counted

    def room(self, dim: int) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def note(self, block: Block) -> None:
        """See these rows."""
        raise NotImplementedError

    def again(self) -> bool:
        """Whether all rows have to be noted once more; asked when all have been."""
        return False

    def join(self, other: Totals) -> None:
        """Add what was noted elsewhere."""
        self.rows += other.rows
        if not self.arrays:
            self.arrays = other.arrays
        elif other.arrays:
            self.joined(other.arrays)

    def joined(self, others: dict[str, np.ndarray]) -> None:
        for name, join in self.joins.items():
            self.arrays[name] = join(self.arrays[name], others[name])


def required(nbytes: int, dim: int) -> None:
    """Refuse to number more slots than there is memory for."""
    if nbytes > available():
        raise FeatureError(
            f"numbers for {dim:.3g} slots take {words(nbytes)}, and {words(available())} are free: use .hashed(bits) "
            "or .indexed() first"
        )


class Frequencies(Totals):
    dtype = np.float32  # what training fills as well: nothing is compiled for this alone
    joins: ClassVar = {"counts": np.add}

    def room(self, dim: int) -> dict[str, np.ndarray]:
        required(8 * dim, dim)
        return {"counts": np.zeros(dim, np.int64)}

    def note(self, block: Block) -> None:
        self.rows += len(block)
        _count(block.start, block.end, block.indices, block.values, self.arrays["counts"])


class Largest(Totals):
    joins: ClassVar = {"largest": np.maximum, "stored": np.add}

    def room(self, dim: int) -> dict[str, np.ndarray]:
        required(16 * dim, dim)
        return {"largest": np.zeros(dim), "stored": np.zeros(dim, np.int64)}

    def note(self, block: Block) -> None:
        self.rows += len(block)
        _largest(block.start, block.end, block.indices, block.values, self.arrays["largest"], self.arrays["stored"])

    def factors(self) -> np.ndarray:
        return inverse(self.arrays["largest"])


class Moments(Totals):
    """Sums of values and of squares, each with the rounding errors of all its additions beside it."""

    def room(self, dim: int) -> dict[str, np.ndarray]:
        required(40 * dim, dim)
        return {"sums": np.zeros((4, dim)), "stored": np.zeros(dim, np.int64)}

    def note(self, block: Block) -> None:
        self.rows += len(block)
        _sum(block.start, block.end, block.indices, block.values, self.arrays["sums"], self.arrays["stored"])

    def joined(self, others: dict[str, np.ndarray]) -> None:
        mine, theirs = self.arrays["sums"], others["sums"]
        sums = np.empty_like(mine)
        for k in (0, 2):
            total, error = _two_sum(mine[k], theirs[k])
            sums[k], sums[k + 1] = _two_sum(total, mine[k + 1] + theirs[k + 1] + error)
        self.arrays = {"sums": sums, "stored": self.arrays["stored"] + others["stored"]}

    def means(self) -> np.ndarray:
        total, rest, _, _ = self.arrays["sums"]
        return (total + rest) / np.maximum(1, self.counted())

    def factors(self) -> np.ndarray:
        """1 / standard deviation, from n * variance = sum of squares - (sum)^2 / n."""
        total, rest, squares, squares_rest = self.arrays["sums"]
        n = np.maximum(1.0, self.counted())
        total, rest = _two_sum(total, rest)
        product, error = _two_product(total, total)
        error += 2.0 * total * rest
        quotient = product / n
        back, back_error = _two_product(quotient, n)
        quotient_rest = ((product - back) - back_error + error) / n
        left, left_error = _two_sum(squares, -quotient)
        variance = (left + (left_error + squares_rest - quotient_rest)) / n
        return inverse(np.sqrt(np.where(variance > CONSTANT * squares, variance, 0.0)))


def inverse(scales: np.ndarray) -> np.ndarray:
    """1 / scale as float32, and 1 where there is none."""
    within = np.clip(scales, np.finfo(np.float32).tiny, np.finfo(np.float32).max)
    return np.where(scales > 0.0, 1.0 / within, 1.0).astype(np.float32)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b, and what rounding takes of it (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b, and what rounding takes of it (Dekker)."""
    (high_a, low_a), (high_b, low_b) = _halves(a), _halves(b)
    product = a * b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a as a sum of two numbers of half the digits."""
    wide = 134217729.0 * a
    high = wide - (wide - a)
    return high, a - high


@kernel
def _count(start, end, indices, values, counts):
    for j in range(len(start)):
        for k in range(np.uint64(start[j]), np.uint64(end[j])):
            if values[k] != 0.0:
                counts[indices[k]] += 1


@kernel
def _largest(start, end, indices, values, largest, stored):
    for j in range(len(start)):
        for k in range(np.uint64(start[j]), np.uint64(end[j])):
            stored[indices[k]] += 1
            largest[indices[k]] = max(largest[indices[k]], abs(values[k]))


@exact_kernel
def _sum(start, end, indices, values, sums, stored):
    """sums[0] + sums[1] += x and sums[2] + sums[3] += x^2; see _two_sum and _two_product."""
    for j in range(len(start)):
        for k in range(np.uint64(start[j]), np.uint64(end[j])):
            slot, x = np.uint64(indices[k]), values[k]
            stored[slot] += 1
            wide = 134217729.0 * x
            high = wide - (wide - x)
            low = x - high
            square = x * x
            error = ((high * high - square) + 2.0 * high * low) + low * low
            for i in range(2):
                added, rest = (x, 0.0) if i == 0 else (square, error)
                before = sums[2 * i, slot]
                total = before + added
                part = total - before
                rest += sums[2 * i + 1, slot] + ((before - (total - part)) + (added - part))
                sums[2 * i, slot] = total + rest
                sums[2 * i + 1, slot] = rest - (sums[2 * i, slot] - total)
