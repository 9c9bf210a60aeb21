"""How good predictions are: accuracy, areas under the ROC and the precision-recall curve, confusion counts.

All of it is a reduction: an `Evaluator` sees some rows after others, what several of them saw is joined by +, and
`finish` has the measures. Areas under curves need the scores of all rows in order, and no machine has them all. So rows
are held as they are while they are few, and counted by score beyond that. As long as there are few enough scores the
areas are exact; after that, scores lose bits of their mantissa until there are. Equal scores count half, so that what
is lost is a matter of the rows within one part in 2^bits of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dotadd.errors import DotaddError

MOST = 1 << 20  # scores that are told apart
HELD = 1 << 24  # scores that are held as they are, of all columns together
COUNTED = 1 << 23  # scores that the rankings of all columns may tell apart together
FEWEST = 1 << 12  # and each of them in any case


def accuracy(truth: np.ndarray, predicted: np.ndarray, *, sample_weight: np.ndarray | None = None) -> float:
    """Share of rows, or of their weight, whose predicted label is the true one; NaN where there is nothing to share."""
    truth = _column(truth, "labels")
    right = truth == _column(predicted, "predictions", len(truth))
    weight = _weights(sample_weight, len(truth))
    total = len(truth) if weight is None else weight.sum()
    return float((right if weight is None else weight * right).sum() / total) if total else float("nan")


def confusion(
    truth: np.ndarray, predicted: np.ndarray, classes: np.ndarray, *, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """counts[i, j]: rows of class i that were taken for class j, or their weight. All labels must be among the (sorted)
    classes."""
    classes = np.asarray(classes)
    k = len(classes)
    truth = _column(truth, "labels")
    at = k * _places(truth, classes) + _places(_column(predicted, "predictions", len(truth)), classes)
    return np.bincount(at, _weights(sample_weight, len(truth)), minlength=k * k).reshape(k, k)


def auroc(
    truth: np.ndarray, score: np.ndarray, *, positive: object = None, sample_weight: np.ndarray | None = None
) -> float:
    """Area under the ROC curve: how often a positive row scores above a negative one, ties counting half.

    Labels are booleans, 0 and 1, or -1 and 1; of others, `positive` says which of them is the positive class, and all
    other labels are negative. NaN where only one class is there (or only one has a weight), for then there is nothing
    to compare.
    """
    return _exact(truth, score, positive, sample_weight).auroc()


def auprc(
    truth: np.ndarray, score: np.ndarray, *, positive: object = None, sample_weight: np.ndarray | None = None
) -> float:
    """Area under the precision-recall curve as average precision: sum over thresholds of precision * recall gained.

    Labels are those of `auroc`. Equal scores are one threshold, so the order of tied rows does not matter. NaN where no
    row is positive, for then there is nothing to recall; 1 where all are.
    """
    return _exact(truth, score, positive, sample_weight).auprc()


def _exact(truth: np.ndarray, score: np.ndarray, label: object, weight: np.ndarray | None) -> Ranking:
    """The ranking of all rows, with every score told apart."""
    positive = _positives(_column(truth, "labels"), label)
    score, weight = _column(score, "scores", len(positive)), _weights(weight, len(positive))
    if score.dtype.kind not in "biuf":
        raise DotaddError(f"scores have to be numbers, and not {score.dtype}")
    if score.dtype.kind == "f" and np.isnan(score).any():
        raise DotaddError(f"the score of row {int(np.isnan(score).argmax()) + 1} is not a number")
    return Ranking.of(positive, score, weight, most=len(score))


def _positives(truth: np.ndarray, label: object) -> np.ndarray:
    """Which rows are of the positive class."""
    if label is not None:
        return np.asarray(truth == label, bool)
    if truth.dtype == bool:
        return truth
    one = truth == 1
    if not ((one | (truth == 0)).all() or (one | (truth == -1)).all()):
        found = ", ".join(map(repr, list(dict.fromkeys(truth.tolist()))[:4]))
        hint = "give booleans, 0 and 1, or -1 and 1, or name that class by positive="
        raise DotaddError(f"labels such as {found} do not say which class is the positive one; {hint}")
    return np.asarray(one, bool)


def _column(values: np.ndarray, what: str, rows: int | None = None) -> np.ndarray:
    """One value a row."""
    values = np.asarray(values)
    if values.ndim != 1:
        raise DotaddError(f"{what} have the shape {values.shape}; give one a row")
    if rows is not None and len(values) != rows:
        raise DotaddError(f"{rows:,} labels and {len(values):,} {what} do not pair up")
    return values


def _weights(weight: np.ndarray | None, rows: int) -> np.ndarray | None:
    if weight is None:
        return None
    weight = _column(weight, "weights", rows).astype(np.float64)
    if not ((weight >= 0) & np.isfinite(weight)).all():
        raise DotaddError("a weight has to be a number of at least 0")
    return weight


def _places(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Which of the sorted classes each label is."""
    found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    strange = classes[found] != labels
    if strange.any():
        raise DotaddError(f"label {labels[strange.argmax()]} is none of the classes")
    return found


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
        each = 1.0 if weight is None else weight
        return cls._of(np.asarray(score, np.float64), each * positive, each * ~positive, MOST if most is None else most)

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

    def joined(self, other: Ranking, most: int | None = None) -> Ranking:
        """The rows of both; so many scores (MOST) are told apart."""
        score = np.concatenate([self.score, other.score])
        counts = np.append(self.true, other.true), np.append(self.false, other.false)
        return self._of(score, *counts, MOST if most is None else most)

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
        some = self.true > 0  # other scores add nothing, and where no row has a weight there is no precision
        return float(np.sum(self.true[some] * (true / np.where(some, true + false, 1.0))[some]) / true[-1])


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


def _rounded(score: np.ndarray, lost: int) -> np.ndarray:
    """Scores without the last bits of their mantissa; the order stays."""
    bits = np.ascontiguousarray(score).view(np.uint64) & ~np.uint64((1 << lost) - 1)
    return bits.view(np.float64)


class Evaluation(NamedTuple):
    """What an Evaluator finds. Areas are of the second of two classes, or of each class against the rest. Where rows
    have weights, all but their number counts by weight."""

    rows: int
    accuracy: float
    auroc: list[float]
    auprc: list[float]
    confusion: np.ndarray


class Evaluator:
    """Measures of rows that pass by, in bounded memory. Without `areas`, scores are not looked at."""

    def __init__(self, classes: np.ndarray, *, areas: bool = True) -> None:
        self.classes = np.asarray(classes)
        self.rows = 0
        self.confusion = np.zeros((len(self.classes),) * 2, np.int64)
        self.strange = 0.0
        """Rows, or their weight, whose label is none of the classes: all of them are predicted wrong."""
        self._ranked = Ranked() if areas else None

    def see(
        self, truth: np.ndarray, scores: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None
    ) -> None:
        """Some more rows: their labels, scores of shape (n,) for two classes and (n, classes) for more, the labels
        predicted, and what the rows weigh."""
        weight = _weights(weight, len(truth))
        known = np.isin(truth, self.classes)
        if not known.all():
            self.strange += float((~known).sum() if weight is None else weight[~known].sum())
        some = slice(None) if known.all() else known
        each = None if weight is None else weight[some]
        self.confusion = self.confusion + confusion(truth[some], predicted[some], self.classes, sample_weight=each)
        self.rows += len(truth)
        if self._ranked is not None:
            two = len(self.classes) == 2
            positive, columns = (self.classes[1:], [scores]) if two else (self.classes, list(scores.T))
            self._ranked.add([truth == label for label in positive], columns, weight)

    def __add__(self, other: Evaluator) -> Evaluator:
        """What both have seen."""
        joined = Evaluator(self.classes, areas=False)
        joined.rows, joined.strange = self.rows + other.rows, self.strange + other.strange
        joined.confusion = self.confusion + other.confusion
        if self._ranked is not None and other._ranked is not None:
            joined._ranked = Ranked()
            joined._ranked.join(self._ranked)
            joined._ranked.join(other._ranked)
        return joined

    def packed(self) -> Evaluator:
        """The same, its scores counted, so that it is small enough to travel."""
        if self._ranked is not None:
            self._ranked.pack()
        return self

    @property
    def accuracy(self) -> float:
        """The share of rows, or of their weight, that are right; NaN where nothing has a weight."""
        total = self.confusion.sum() + self.strange
        return float(np.trace(self.confusion) / total) if total else float("nan")

    def finish(self) -> Evaluation:
        """The measures of all rows. There are no areas where there were no rows."""
        rankings = [] if self._ranked is None else self._ranked.rankings()
        areas = [ranking.auroc() for ranking in rankings], [ranking.auprc() for ranking in rankings]
        return Evaluation(self.rows, self.accuracy, *areas, self.confusion)


def evaluate(
    truth: np.ndarray, scores: np.ndarray, classes: np.ndarray, predicted: np.ndarray | None = None
) -> Evaluation:
    """All measures at once. The labels predicted are those that the scores speak for, unless they are given."""
    found, classes = Evaluator(classes), np.asarray(classes)
    if predicted is None:
        predicted = classes[(scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)]
    found.see(np.asarray(truth), scores, predicted)
    return found.finish()
