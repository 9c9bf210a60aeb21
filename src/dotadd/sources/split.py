"""Which windows of a genome are used: whole stretches of it held out, and a sample of fixed size."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dotadd.errors import DotaddError

STRETCH = 1_000_000
_BLOCK = 1 << 20


def stretches(length: int, stretch: int) -> np.ndarray:
    """The borders of the stretches of a sequence: equally long but for a letter, about `stretch` each."""
    count = max(1, round(length / stretch))
    return np.arange(count + 1) * length // count


class Holdout:
    """Holds out a share of the stretches of each sequence, chosen at random.

    Sequences are asked for in the order of the genome. Shares of stretches that do not come out even are carried over
    to the next sequence, so that many short sequences are divided as one long one is.
    """

    def __init__(self, share: float, stretch: int, seed: int) -> None:
        self.share, self.stretch = share, stretch
        self.rng = np.random.default_rng([seed, 0])
        self.due = self.rng.random()

    def parts(self, length: int) -> Iterator[tuple[int, int, bool]]:
        """First letter, stop, and whether held out; neighbouring stretches of one kind are joined."""
        borders = stretches(length, self.stretch)
        count = len(borders) - 1
        self.due += self.share * count
        taken = min(count, math.floor(self.due))
        self.due -= taken
        held = np.zeros(count, np.bool_)
        held[self.rng.permutation(count)[:taken]] = True
        changes = np.flatnonzero(held[1:] != held[:-1]) + 1
        starts = [0, *changes.tolist()]
        for start, stop in zip(starts, [*starts[1:], count], strict=True):
            yield int(borders[start]), int(borders[stop]), bool(held[start])


class Draw:
    """Draws `size` of `total` rows: those whose numbers hash to the smallest values.

    Each row knows by itself whether it is drawn, so that nothing but one threshold is kept. The hash is one to one:
    no two rows share a value, and exactly `size` lie below.
    """

    def __init__(self, size: int, total: int, seed: int) -> None:
        if size > total:
            raise DotaddError(f"sample is {size:,}, but there are {total:,} windows to draw from; leave it out")
        self.salt = np.random.default_rng([seed, 1]).integers(0, 1 << 64, dtype=np.uint64)
        smallest = np.empty(0, np.uint64)
        for first in range(0, total, max(_BLOCK, size)):
            more = self._values(first, min(first + max(_BLOCK, size), total))
            smallest = np.concatenate([smallest, more])
            if len(smallest) > size:
                smallest = np.partition(smallest, size - 1)[:size]
        self.threshold = smallest.max()

    def rows(self, first: int, stop: int) -> np.ndarray:
        """Which of the rows first..stop-1 are drawn, counted from first."""
        return np.flatnonzero(self._values(first, stop) <= self.threshold)

    def _values(self, first: int, stop: int) -> np.ndarray:
        """A mixing of 64 bits (splitmix64): each step, and so the whole, can be undone."""
        value = np.arange(first, stop, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + self.salt
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return value ^ (value >> np.uint64(31))
