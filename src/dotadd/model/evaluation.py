"""How good predictions are: accuracy, F1, areas under curves, confusion counts, losses of probabilities; and intervals.

All of it is a reduction: an `Evaluator` sees rows as they pass by, several of them are joined by +, and `finish`
returns the measures, in bounded memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dotadd.errors import DotaddError
from dotadd.model.confusion import intervals as confusion_intervals
from dotadd.model.confusion import of_each, summary
from dotadd.model.intervals import Interval
from dotadd.model.proper_scores import ProperScores
from dotadd.model.ranking import Ranked, Ranking


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

    Labels are booleans, 0 and 1, or -1 and 1; for any others, `positive` says which of them is the positive class, and
    all other labels are negative. NaN where only one class is there (or only one has a weight), for then there is
    nothing to compare.
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


class Evaluation(NamedTuple):
    """What an Evaluator finds. Areas, precision, recall and F1 are of the second of two classes, or of each class
    against the rest. Where rows have weights, all but their number counts by weight."""

    rows: int
    accuracy: float
    auroc: list[float]
    auprc: list[float]
    confusion: np.ndarray
    precision: list[float]
    recall: list[float]
    f1: list[float]
    macro_f1: float
    micro_f1: float
    balanced_accuracy: float
    matthews: float
    log_loss: float | None
    """This and the next two are there where there are probabilities."""
    brier: float | None
    calibration_error: float | None
    intervals: dict[str, Interval]
    """Of measures over all classes (of the second of two), where intervals were asked for."""
    at_zero: np.ndarray | None
    """The confusion matrix where scores above 0 are of the second class, if the model has another threshold."""

    def _repr_html_(self) -> str:
        from dotadd._util.wording import card

        names = ("accuracy", "balanced_accuracy", "macro_f1", "matthews", "log_loss", "brier", "calibration_error")
        told = {name.replace("_", " "): self.intervals.get(name, getattr(self, name)) for name in names}
        areas = {} if len(self.auroc) != 1 else {"auROC": self.auroc[0], "auPRC": self.auprc[0]}
        shown = {name: f"{value:.4f}" if isinstance(value, float) else value for name, value in (told | areas).items()}
        return card("Evaluation", {"rows": f"{self.rows:,}"} | {k: v for k, v in shown.items() if v is not None})


class Evaluator:
    """Measures of rows that pass by, in bounded memory. Without `areas`, scores are not looked at."""

    def __init__(self, classes: np.ndarray, *, areas: bool = True) -> None:
        self.classes = np.asarray(classes)
        self.rows = 0
        self.confusion = np.zeros((len(self.classes),) * 2, np.int64)
        self.strange = 0.0
        """Rows, or their weight, whose label is none of the classes: all of them are predicted wrong."""
        self._squares = np.zeros(len(self.classes))  # sums of squared weights of each class
        self._at_zero = self.confusion
        self._ranked = Ranked() if areas else None
        self._proper = ProperScores()

    def see(
        self,
        truth: np.ndarray,
        scores: np.ndarray,
        predicted: np.ndarray,
        weight: np.ndarray | None = None,
        probability: np.ndarray | None = None,
    ) -> None:
        """Some more rows: their labels, scores of shape (n,) for two classes and (n, classes) for more, the labels
        predicted, what the rows weigh, and probabilities of shape (n, classes)."""
        weight = _weights(weight, len(truth))
        predicted = _column(predicted, "predictions", len(truth))
        known = np.isin(truth, self.classes)
        if not known.all():
            self.strange += float((~known).sum() if weight is None else weight[~known].sum())
        some = slice(None) if known.all() else known
        each = None if weight is None else weight[some]
        self.confusion = self.confusion + confusion(truth[some], predicted[some], self.classes, sample_weight=each)
        self.rows += len(truth)
        if self._ranked is None:
            return
        two, codes = len(self.classes) == 2, _places(truth[some], self.classes)
        self._squares += np.bincount(codes, None if each is None else each * each, len(self.classes))
        positive, columns = (self.classes[1:], [scores]) if two else (self.classes, list(scores.T))
        self._ranked.add([truth == label for label in positive], columns, weight)
        if two:
            signs = self.classes[(scores[some] > 0.0).astype(np.int64)]
            self._at_zero = self._at_zero + confusion(truth[some], signs, self.classes, sample_weight=each)
        if probability is not None:
            self._proper.see(codes, probability[some], each)

    def __add__(self, other: Evaluator) -> Evaluator:
        """What both have seen."""
        joined = Evaluator(self.classes, areas=False)
        joined.rows, joined.strange = self.rows + other.rows, self.strange + other.strange
        joined.confusion = self.confusion + other.confusion
        if self._ranked is not None and other._ranked is not None:
            joined._squares, joined._at_zero = self._squares + other._squares, self._at_zero + other._at_zero
            joined._proper = self._proper + other._proper
            joined._ranked = Ranked()
            joined._ranked.join(self._ranked)
            joined._ranked.join(other._ranked)
        return joined

    def packed(self) -> Evaluator:
        """The same, its scores counted, so that it is small enough to travel."""
        if self._ranked is not None:
            self._ranked.pack()
        return self

    def rankings(self) -> list[Ranking]:
        """Rows by their scores: of the second of two classes, or of each class against the rest."""
        return [] if self._ranked is None else self._ranked.rankings()

    def reliability(self) -> np.ndarray | None:
        """What became of probabilities, by bins of them, as `ProperScores.bins` tells."""
        return self._proper.bins()

    @property
    def accuracy(self) -> float:
        """The share of rows, or of their weight, that are right; NaN where nothing has a weight."""
        total = self.confusion.sum() + self.strange
        return float(np.trace(self.confusion) / total) if total else float("nan")

    def finish(self, *, intervals: bool = True) -> Evaluation:
        """The measures of all rows. There are no areas where there were no rows."""
        rankings = self.rankings()
        areas = [ranking.auroc() for ranking in rankings], [ranking.auprc() for ranking in rankings]
        two, measures, proper = len(self.classes) == 2, summary(self.confusion), self._proper.intervals()
        each = {name: values[two:].tolist() for name, values in of_each(self.confusion).items()}
        found: dict[str, Interval] = {}
        if intervals and self._ranked is not None:
            found = confusion_intervals(self.confusion, self._squares) | proper
            if two and rankings:
                totals = self.confusion.sum(axis=1)
                false, true = np.where(totals > 0.0, self._squares, 1.0) / np.where(totals > 0.0, totals, 1.0)
                found |= rankings[0].intervals((float(true), float(false)))
        return Evaluation(
            self.rows,
            self.accuracy,
            *areas,
            self.confusion,
            **each,
            macro_f1=measures["macro_f1"],
            micro_f1=self.accuracy,
            balanced_accuracy=measures["balanced_accuracy"],
            matthews=measures["matthews"],
            log_loss=proper["log_loss"].value if proper else None,
            brier=proper["brier"].value if proper else None,
            calibration_error=self._proper.calibration_error(),
            intervals=found,
            at_zero=self._at_zero if two and (self._at_zero != self.confusion).any() else None,
        )


def evaluate(
    truth: np.ndarray,
    scores: np.ndarray,
    classes: np.ndarray,
    predicted: np.ndarray | None = None,
    *,
    sample_weight: np.ndarray | None = None,
    probability: np.ndarray | None = None,
    intervals: bool = True,
) -> Evaluation:
    """All measures at once. The labels predicted are those that the scores speak for, unless they are given."""
    found, classes = Evaluator(classes), np.asarray(classes)
    if predicted is None:
        predicted = classes[(scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)]
    found.see(np.asarray(truth), scores, predicted, sample_weight, probability)
    return found.finish(intervals=intervals)
