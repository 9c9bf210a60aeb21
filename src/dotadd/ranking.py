"""Ranking: how many rows of each kind have each score. Rankings of parts join to that of all, in bounded memory.

Areas under curves need the scores of all rows in order, and no machine has them all. So each part counts its rows by
score. As long as there are few enough scores the areas are exact; beyond that, scores lose bits of their mantissa
until there are. Equal scores count half, so that what is lost is a matter of the rows within one part in 2^bits of
each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST = 1 << 20  # scores that are told apart
HELD = 1 << 24  # scores that are held as they are, of all columns together
COUNTED = 1 << 23  # scores that the rankings of all columns may tell apart together
FEWEST = 1 << 12  # and each of them in any case


@dataclass(frozen=True)
class Ranking:
    """Distinct scores from the highest to the lowest, and how many true and false rows have each."""

    score: np.ndarray
    true: np.ndarray
    false: np.ndarray

    @classmethod
    def of(cls, positive: np.ndarray, score: np.ndarray, most: int | None = None) -> Ranking:
        """Of these rows; so many scores (MOST) are told apart."""
        positive = np.asarray(positive, bool)
        true, false = positive.astype(np.int64), (~positive).astype(np.int64)
        return cls._of(np.asarray(score, np.float64), true, false, MOST if most is None else most)

    @classmethod
    def _of(cls, score: np.ndarray, true: np.ndarray, false: np.ndarray, most: int) -> Ranking:
        """Joined where scores are equal; they lose bits as long as there are too many."""
        lost = 0
        while True:
            rounded = score if not lost else _rounded(score, lost)
            distinct, place = np.unique(rounded, return_inverse=True)
            if len(distinct) <= most:
                counts = (np.bincount(place, n, len(distinct))[::-1] for n in (true, false))
                return cls(distinct[::-1], *counts)
            lost = max(24, lost + 1)

    def __add__(self, other: Ranking) -> Ranking:
        return self.joined(other, MOST)

    def joined(self, other: Ranking, most: int) -> Ranking:
        """The rows of both, so many scores told apart."""
        score = np.concatenate([self.score, other.score])
        return self._of(score, np.append(self.true, other.true), np.append(self.false, other.false), most)

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


class Ranked:
    """Rankings of the scores of rows that pass by, one for each column of scores, in bounded memory.

    Scores are held as they are while they are few, and the areas are then exact; beyond that they are counted.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]] = []
        self._held = 0
        self._counted: list[Ranking] = []

    def add(self, positive: Sequence[np.ndarray], score: Sequence[np.ndarray]) -> None:
        """Some more rows: of each column, which of them are positive, and their scores."""
        self._waiting.append((positive, score))
        self._held += sum(map(len, score))
        if self._held > HELD:
            self._counted = self._count(max(FEWEST, min(MOST, COUNTED // len(score))))
            self._waiting, self._held = [], 0

    def rankings(self) -> list[Ranking]:
        """One for each column; none if there were no rows at all."""
        return self._count(max(MOST, HELD)) if self._waiting else self._counted

    def _count(self, most: int) -> list[Ranking]:
        found = []
        for k in range(len(self._waiting[0][1])):
            positive = np.concatenate([some[k] for some, _ in self._waiting])
            score = np.concatenate([some[k] for _, some in self._waiting])
            new = Ranking.of(positive, score, most)
            found.append(self._counted[k].joined(new, most) if self._counted else new)
        return found


def _rounded(score: np.ndarray, lost: int) -> np.ndarray:
    """Scores without the last bits of their mantissa; the order stays."""
    bits = np.ascontiguousarray(score).view(np.uint64) & ~np.uint64((1 << lost) - 1)
    return bits.view(np.float64)
