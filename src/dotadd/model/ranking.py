"""Rankings: rows counted by score, for areas under the ROC and the precision-recall curve, in bounded memory.

Areas need the scores of all rows in order, and no machine has them all. So rows are held as they are while they are
few, and counted by score beyond that. As long as there are few enough scores, the areas are exact. Beyond that, scores
lose bits of their mantissa until there are few enough. Equal scores count half, so that only the order of rows whose
scores are within one part in 2^bits of each other is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dotadd.model.intervals import Interval, between, spreads

MOST = 1 << 20  # scores that are told apart
HELD = 1 << 23  # scores that are held as they are, of all columns together
COUNTED = 1 << 23  # scores that the rankings of all columns may tell apart together
FEWEST = 1 << 12  # and each of them in any case
BINS = 1 << 12  # scores that intervals tell apart


@dataclass(frozen=True)
class Ranking:
    """Distinct scores from the highest to the lowest, and how many true and false rows have each, or their weight."""

    score: np.ndarray
    true: np.ndarray
    false: np.ndarray

    @classmethod
    def of(
        cls, positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None, *, most: int | None = None
    ) -> Ranking:
        """Of these rows; so many scores (MOST) are told apart."""
        positive = np.asarray(positive, bool)
        true, false = positive, ~positive
        if weight is not None:
            true, false = weight * true, weight * false
        return cls._of(np.asarray(score, np.float64), true, false, MOST if most is None else most)

    @classmethod
    def _of(cls, score: np.ndarray, true: np.ndarray, false: np.ndarray, most: int) -> Ranking:
        """Joined where scores are equal; they lose bits, which keeps their order, as long as there are too many."""
        order = np.argsort(score)[::-1]
        score, lost = score[order], 0
        first = _first_of_each(score)
        while len(first) > most:
            lost = max(24, lost + 1)
            first = _first_of_each(_rounded(score, lost))
        kept = score[first] if not lost else _rounded(score[first], lost)
        return cls(kept, *(_sums(counts, order, first) for counts in (true, false)))

    def joined(self, other: Ranking, most: int | None = None) -> Ranking:
        """The rows of both; so many scores (MOST) are told apart."""
        score = np.concatenate([self.score, other.score])
        counts = np.append(self.true, other.true), np.append(self.false, other.false)
        return self._of(score, *counts, MOST if most is None else most)

    def auroc(self) -> float:
        """How often a true row scores above a false one, ties counting half; NaN where only one kind is there."""
        return float(_areas(self.true, self.false)["auroc"])

    def auprc(self) -> float:
        """Average precision; NaN where no row is true."""
        return float(_areas(self.true, self.false)["auprc"])

    def roc(self) -> tuple[np.ndarray, np.ndarray]:
        """Shares of false and of true rows at each score or above it, from (0, 0) on; NaN where a kind is not there."""
        false, true = (np.r_[0.0, np.cumsum(counts)] for counts in (self.false, self.true))
        with np.errstate(invalid="ignore"):
            return false / false[-1], true / true[-1]

    def precision_recall(self) -> tuple[np.ndarray, np.ndarray]:
        """Recall and precision at each score that a true row has, from the highest on."""
        true, false, some = np.cumsum(self.true), np.cumsum(self.false), self.true > 0.0
        return true[some] / self.true.sum(), true[some] / (true + false)[some]

    def above(self, threshold: float) -> tuple[float, float]:
        """How many true and false rows have a score above this one, or their weight."""
        some = self.score > threshold
        return float(self.true[some].sum()), float(self.false[some].sum())

    def intervals(self, units: tuple[float, float] = (1.0, 1.0), most: int = BINS) -> dict[str, Interval]:
        """The areas with their intervals; `units` is what a true and a false row weigh. Beyond `most` scores, the
        intervals take neighbours together."""
        true, false = self.true, self.false
        if len(true) > most and true.sum() > 0.0 and false.sum() > 0.0:
            before = np.cumsum(true) / true.sum() + np.cumsum(false) / false.sum()  # each kind is told apart as finely
            place = np.minimum((before * (most / 2)).astype(np.int64), most - 1)
            true, false = np.bincount(place, true, most), np.bincount(place, false, most)
        counts, unit = np.concatenate([true, false]), np.repeat(units, len(true))
        spread = spreads(counts, unit, lambda drawn: _areas(*np.split(drawn, 2, axis=1)))
        return {name: between(float(area), spread[name]) for name, area in _areas(self.true, self.false).items()}


def _areas(true: np.ndarray, false: np.ndarray) -> dict[str, np.ndarray]:
    """Under both curves, of rows by falling score along the last axis."""
    above, wrong = np.cumsum(true, axis=-1), np.cumsum(false, axis=-1)
    if not above.shape[-1]:
        return dict.fromkeys(("auroc", "auprc"), np.full(above.shape[:-1], np.nan))
    some = true > 0.0  # other scores add nothing, and where no row has a weight there is no precision
    precision = np.where(some, above, 0.0) / np.where(some, above + wrong, 1.0)
    steps = np.sum(false * (above - 0.5 * true), axis=-1)  # below the middle of each step to the right
    positive, negative = above[..., -1], wrong[..., -1]
    none, single = positive == 0.0, (positive == 0.0) | (negative == 0.0)
    return {
        "auroc": np.where(single, np.nan, steps / np.where(single, 1.0, positive) / np.where(single, 1.0, negative)),
        "auprc": np.where(none, np.nan, np.sum(true * precision, axis=-1) / np.where(none, 1.0, positive)),
    }


class Ranked:
    """Rankings of the scores of rows that pass by, one for each column of scores, in bounded memory.

    Scores are held as they are while they are few, and the areas are then exact; beyond that they are counted.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Sequence[np.ndarray], Sequence[np.ndarray], np.ndarray | None]] = []
        self._held = 0
        self._counted: list[Ranking] = []

    def add(
        self, positive: Sequence[np.ndarray], score: Sequence[np.ndarray], weight: np.ndarray | None = None
    ) -> None:
        """Some more rows: of each column, which of them are positive, and their scores; and what the rows weigh."""
        self._waiting.append((positive, score, weight))
        self._held += sum(map(len, score))
        if self._held > HELD:
            self.pack()

    def pack(self) -> None:
        """Count all scores that are held, so that what is left is small."""
        if self._waiting:
            self._counted = self._count(_most(len(self._waiting[0][1])))
            self._waiting, self._held = [], 0

    def join(self, other: Ranked) -> None:
        """Have the rows of another one, too; the scores of both are counted."""
        self.pack()
        other.pack()
        if not self._counted:
            self._counted = other._counted
        elif other._counted:
            most = _most(len(self._counted))
            pairs = zip(self._counted, other._counted, strict=True)
            self._counted = [mine.joined(theirs, most) for mine, theirs in pairs]

    def rankings(self) -> list[Ranking]:
        """One for each column; none if there were no rows at all."""
        return self._count(max(MOST, HELD)) if self._waiting else self._counted

    def _count(self, most: int) -> list[Ranking]:
        found, weight = [], None
        if any(some is not None for _, _, some in self._waiting):
            each = [np.ones(len(score[0])) if some is None else some for _, score, some in self._waiting]
            weight = np.concatenate(each)
        for k in range(len(self._waiting[0][1])):
            positive = np.concatenate([some[k] for some, _, _ in self._waiting])
            score = np.concatenate([some[k] for _, some, _ in self._waiting])
            new = Ranking.of(positive, score, weight, most=most)
            found.append(self._counted[k].joined(new, most) if self._counted else new)
        return found


def _most(columns: int) -> int:
    """How many scores the ranking of each of so many columns tells apart."""
    return max(FEWEST, min(MOST, COUNTED // columns))


def _first_of_each(score: np.ndarray) -> np.ndarray:
    """Where the equal ones among sorted scores begin; what is not a number counts as one score."""
    new = np.ones(len(score), np.bool_)
    new[1:] = (score[1:] != score[:-1]) & (score[1:] == score[1:])
    return np.flatnonzero(new)


def _sums(counts: np.ndarray, order: np.ndarray, first: np.ndarray) -> np.ndarray:
    """What they add up to, in this order, from each place to the next one."""
    return np.add.reduceat(counts[order], first, dtype=np.float64) if len(first) else np.zeros(0)


def _rounded(score: np.ndarray, lost: int) -> np.ndarray:
    """Scores without the last bits of their mantissa; the order stays."""
    bits = np.ascontiguousarray(score).view(np.uint64) & ~np.uint64((1 << lost) - 1)
    return bits.view(np.float64)
