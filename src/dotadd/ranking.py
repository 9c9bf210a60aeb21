"""Ranking: how many rows of each kind have each score. Rankings of parts join to that of all, in bounded memory.

Areas under curves need the scores of all rows in order, and no machine has them all. So each part counts its rows by
score. As long as there are few enough scores the areas are exact; beyond that, scores lose bits of their mantissa
until there are. Equal scores count half, so that what is lost is a matter of the rows within one part in 2^bits of
each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST = 1 << 20  # scores that are told apart


@dataclass(frozen=True)
class Ranking:
    """Distinct scores from the highest to the lowest, and how many true and false rows have each."""

    score: np.ndarray
    true: np.ndarray
    false: np.ndarray

    @classmethod
    def of(cls, positive: np.ndarray, score: np.ndarray) -> Ranking:
        positive = np.asarray(positive, bool)
        return cls._of(np.asarray(score, np.float64), positive.astype(np.int64), (~positive).astype(np.int64))

    @classmethod
    def _of(cls, score: np.ndarray, true: np.ndarray, false: np.ndarray, lost: int = 0) -> Ranking:
        """Joined where scores are equal; `lost` bits are taken from scores, and more if there are too many."""
        while True:
            rounded = score if not lost else _rounded(score, lost)
            distinct, place = np.unique(rounded, return_inverse=True)
            if len(distinct) <= MOST:
                counts = (np.bincount(place, n, len(distinct))[::-1] for n in (true, false))
                return cls(distinct[::-1], *counts)
            lost = max(24, lost + 1)

    def __add__(self, other: Ranking) -> Ranking:
        score = np.concatenate([self.score, other.score])
        return self._of(score, np.append(self.true, other.true), np.append(self.false, other.false))

    def auroc(self) -> float:
        """How often a true row scores above a false one, ties counting half; NaN where only one kind is there."""
        true, false = np.append(0.0, np.cumsum(self.true)), np.append(0.0, np.cumsum(self.false))
        if true[-1] == 0 or false[-1] == 0:
            return float("nan")
        return float(np.trapezoid(true, false) / true[-1] / false[-1])

    def auprc(self) -> float:
        """Average precision; NaN where no row is true."""
        true, false = np.cumsum(self.true), np.cumsum(self.false)
        if not len(true) or true[-1] == 0:
            return float("nan")
        return float(np.sum(self.true * (true / (true + false))) / true[-1])


def _rounded(score: np.ndarray, lost: int) -> np.ndarray:
    """Scores without the last bits of their mantissa; the order stays."""
    bits = np.ascontiguousarray(score).view(np.uint64) & ~np.uint64((1 << lost) - 1)
    return bits.view(np.float64)
