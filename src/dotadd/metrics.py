"""How good predictions are: accuracy, areas under the ROC and the precision-recall curve, confusion counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dotadd.errors import DotaddError


def accuracy(truth: np.ndarray, predicted: np.ndarray, *, sample_weight: np.ndarray | None = None) -> float:
    """Share of rows, or of their weight, whose predicted label is the true one; NaN where there is nothing to share."""
    truth = _column(truth, "labels")
    right = truth == _column(predicted, "predictions", len(truth))
    weight = _weights(sample_weight, len(truth))
    total = len(truth) if weight is None else weight.sum()
    return float((right if weight is None else weight * right).sum() / total) if total else float("nan")


def confusion(truth: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """counts[i, j]: rows of class i that were taken for class j. All labels must be among the (sorted) classes."""
    classes = np.asarray(classes)
    k = len(classes)
    truth = _column(truth, "labels")
    at = k * _places(truth, classes) + _places(_column(predicted, "predictions", len(truth)), classes)
    return np.bincount(at, minlength=k * k).reshape(k, k)


def auroc(
    truth: np.ndarray, score: np.ndarray, *, positive: object = None, sample_weight: np.ndarray | None = None
) -> float:
    """Area under the ROC curve: how often a positive row scores above a negative one, ties counting half.

    Labels are booleans, 0 and 1, or -1 and 1; of others, `positive` says which of them is the positive class, and all
    other labels are negative. NaN where only one class is there (or only one has a weight), for then there is nothing
    to compare.
    """
    true, false = _thresholds(truth, score, positive, sample_weight)
    if true[-1] == 0 or false[-1] == 0:
        return float("nan")
    return float(np.trapezoid(true, false) / true[-1] / false[-1])


def auprc(
    truth: np.ndarray, score: np.ndarray, *, positive: object = None, sample_weight: np.ndarray | None = None
) -> float:
    """Area under the precision-recall curve as average precision: sum over thresholds of precision * recall gained.

    Labels are those of `auroc`. Equal scores are one threshold, so the order of tied rows does not matter. NaN where no
    row is positive, for then there is nothing to recall; 1 where all are.
    """
    true, false = _thresholds(truth, score, positive, sample_weight)
    if true[-1] == 0:
        return float("nan")
    gained = np.diff(true)
    some = gained > 0  # other thresholds add nothing, and where no row has a weight there is no precision
    precision = true[1:][some] / (true + false)[1:][some]
    return float(np.sum(gained[some] * precision) / true[-1])


class _Thresholds(NamedTuple):
    """Weight of the rows at or above each distinct score, from none and the highest score to the lowest."""

    true: np.ndarray
    false: np.ndarray


def _thresholds(truth: np.ndarray, score: np.ndarray, label: object, weight: np.ndarray | None) -> _Thresholds:
    positive = _positives(_column(truth, "labels"), label)
    score, weight = _column(score, "scores", len(positive)), _weights(weight, len(positive))
    if score.dtype.kind not in "biuf":
        raise DotaddError(f"scores have to be numbers, and not {score.dtype}")
    if score.dtype.kind == "f" and np.isnan(score).any():
        raise DotaddError(f"the score of row {int(np.isnan(score).argmax()) + 1} is not a number")
    order = np.argsort(score, kind="stable")[::-1]
    positive, score = positive[order], score[order]
    weight = np.ones(len(score)) if weight is None else weight[order]
    last = np.append(score[1:] != score[:-1], True)[: len(score)]  # equal scores are one threshold
    return _Thresholds(*(np.append(0.0, np.cumsum(weight * rows)[last]) for rows in (positive, ~positive)))


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
    """What `evaluate` finds. Areas are of the second of two classes, or of each class against the rest."""

    rows: int
    accuracy: float
    auroc: list[float]
    auprc: list[float]
    confusion: np.ndarray


def evaluate(
    truth: np.ndarray, scores: np.ndarray, classes: np.ndarray, predicted: np.ndarray | None = None
) -> Evaluation:
    """All measures at once, from scores of shape (n,) for two classes and (n, classes) for more.

    The labels predicted are those that the scores speak for, unless they are given.
    """
    classes = np.asarray(classes)
    if predicted is None:
        predicted = classes[(scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)]
    if scores.ndim == 1:
        pairs = [(truth == classes[1], scores)]
    else:
        pairs = [(truth == label, scores[:, k]) for k, label in enumerate(classes)]
    return Evaluation(
        len(truth),
        accuracy(truth, predicted),
        [auroc(positive, score) for positive, score in pairs],
        [auprc(positive, score) for positive, score in pairs],
        confusion(truth, predicted, classes),
    )
