"""Quartiles: median and quartiles of each slot over all rows, exactly, by histograms refined from pass to pass.

A quantile between two rows is a mean of both, so that three quantiles are six order statistics. Of each one the numbers
are known between which it lies, and its rank among the values between them. A pass counts those in some hundred
buckets, with the smallest and the largest of each; the bucket that has the rank is what is looked at in the next one.
It ends when smallest and largest are the same. Numbers are compared as 64-bit integers of the same order, so that
buckets of equal width halve any float64 in the end; four passes are usual, and two if there are few different values.
Zeros that are not written down are counted at the end of a pass, as the rows without a value; where values may be
missing (FeatureMap.holes), such rows do not count.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dotadd._jit import kernel
from dotadd.core.block import Block
from dotadd.features.totals import Totals, inverse, required

LEVELS = (0.25, 0.5, 0.75)
BYTES = 1 << 25  # of histograms: more of them make fewer passes
FEWEST, MOST = 16, 1 << 16  # buckets
ZERO = np.uint64(1 << 63)  # 0.0 as an integer
LAST = np.uint64(2**64 - 1)


class Quartiles(Totals):
    """Order statistic t of slot s lies in limits[0, t, s] to limits[1, t, s]; a bucket is 2**limits[2, t, s] wide."""

    joins: ClassVar = {"counts": np.add, "least": np.minimum, "most": np.maximum, "stored": np.add}

    def __init__(self) -> None:
        super().__init__()
        self._limits: np.ndarray | None = None
        self._buckets = 0
        self._ranks: np.ndarray | None = None  # None in the first pass, when the number of rows is not known

    def begin(self, dim: int, holes: np.ndarray) -> None:
        if self._limits is None:
            self._look_at(np.array([[[0]], [[LAST]], [[0]]], np.uint64).repeat(dim, 2))
        super().begin(dim, holes)

    def _look_at(self, limits: np.ndarray) -> None:
        """Buckets for the next pass."""
        per_bucket = 24 * max(1, limits[0].size)
        self._buckets = max(FEWEST, min(MOST, 1 << int(np.log2(max(1, BYTES // per_bucket)))))
        required(per_bucket * self._buckets, limits.shape[2])
        spread = limits[1] - limits[0]
        while (wide := (spread >> limits[2]) >= np.uint64(self._buckets)).any():
            limits[2] += wide
        self._limits = limits

    def room(self, dim: int) -> dict[str, np.ndarray]:
        assert self._limits is not None
        shape = (*self._limits[0].shape, self._buckets)
        return {
            "counts": np.zeros(shape, np.int64), "least": np.full(shape, LAST), "most": np.zeros(shape, np.uint64),
            "stored": np.zeros(dim, np.int64),
        }  # fmt: skip

    def note(self, block: Block) -> None:
        assert block.values is not None
        self.rows += len(block)
        a = self.arrays
        keys = block.values.view(np.uint64)
        _count(
            block.start, block.end, block.indices, keys, self._limits, a["counts"], a["least"], a["most"], a["stored"]
        )

    def again(self) -> bool:
        if not self.rows or not self.arrays:
            return False
        counts, least, most = (self.arrays[name] for name in ("counts", "least", "most"))
        assert self._limits is not None
        self._add_zeros(counts, least, most)
        if self._ranks is None:  # the same histogram serves all
            at = self._places()
            self._ranks = np.stack([np.floor(at), np.ceil(at)], 1).reshape(2 * len(at), -1).astype(np.int64)
            counts, least, most = (
                np.broadcast_to(array, (len(self._ranks), *array.shape[1:])) for array in (counts, least, most)
            )
        limits = np.zeros((3, *self._ranks.shape), np.uint64)
        for t, ranks in enumerate(self._ranks):
            until = np.cumsum(counts[t], axis=1)
            bucket = np.argmax(until > ranks[:, None], axis=1)[:, None]
            here = np.take_along_axis(counts[t], bucket, 1)
            self._ranks[t] = ranks - (np.take_along_axis(until, bucket, 1) - here)[:, 0]
            limits[0, t] = np.take_along_axis(least[t], bucket, 1)[:, 0]
            limits[1, t] = np.take_along_axis(most[t], bucket, 1)[:, 0]
        limits[:2, :, self.counted() == 0] = ZERO  # nobody knows, and 0 does no harm
        self._limits = limits
        if (limits[0] == limits[1]).all():
            return False
        self._look_at(limits)
        self.rows, self.arrays = 0, {}
        return True

    def _add_zeros(self, counts: np.ndarray, least: np.ndarray, most: np.ndarray) -> None:
        assert self._limits is not None
        low, high, shift = self._limits
        missing = self.counted() - self.arrays["stored"]
        t, slot = np.nonzero((low <= ZERO) & (high >= ZERO) & (missing > 0))
        place = (t, slot, ((ZERO - low[t, slot]) >> shift[t, slot]).astype(np.int64))
        counts[place] += missing[slot]
        least[place], most[place] = np.minimum(least[place], ZERO), np.maximum(most[place], ZERO)

    def _places(self) -> np.ndarray:
        """Where quantiles stand among the values of each slot that are in order, counted from 0."""
        return np.array(LEVELS)[:, None] * np.maximum(0, self.counted() - 1)

    def _quantiles(self) -> np.ndarray:
        assert self._limits is not None
        keys = self._limits[0]
        bits = np.where(keys >= ZERO, keys ^ ZERO, ~keys)
        below, above = bits.view(np.float64).reshape(len(LEVELS), 2, -1).transpose(1, 0, 2)
        part = self._places() % 1.0
        step = above - below
        return np.where(part < 0.5, below + part * step, above - (1.0 - part) * step)

    def means(self) -> np.ndarray:
        return self._quantiles()[1] if self.rows else np.zeros(self.arrays["stored"].shape)

    def factors(self) -> np.ndarray:
        if not self.rows:
            return np.ones(self.arrays["stored"].shape, np.float32)
        low, _, high = self._quantiles()
        return inverse(high - low)


@kernel
def _count(start, end, indices, keys, limits, counts, least, most, stored):
    """keys are the bits of float64 values."""
    for j in range(len(start)):
        for k in range(np.uint64(start[j]), np.uint64(end[j])):
            slot, key = np.uint64(indices[k]), keys[k]
            stored[slot] += 1
            if key & ZERO == np.uint64(0) or key == ZERO:  # -0.0 is 0.0
                key |= ZERO
            else:
                key = ~key
            for t in range(limits.shape[1]):
                low = limits[0, t, slot]
                if low <= key <= limits[1, t, slot]:
                    bucket = (key - low) >> limits[2, t, slot]
                    counts[t, slot, bucket] += 1
                    least[t, slot, bucket] = min(least[t, slot, bucket], key)
                    most[t, slot, bucket] = max(most[t, slot, bucket], key)
