"""How good predictions are: accuracy, areas under the ROC and the precision-recall curve, confusion counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def accuracy(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Share of rows whose predicted label is the true one."""
    return float(np.mean(np.asarray(truth) == np.asarray(predicted)))


def confusion(truth: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """counts[i, j]: rows of class i that were taken for class j. All labels must be among the (sorted) classes."""
    classes = np.asarray(classes)
    k = len(classes)
    at = np.searchsorted(classes, truth) * k + np.searchsorted(classes, predicted)
    return np.bincount(at, minlength=k * k).reshape(k, k)


class _Thresholds(NamedTuple):
    """Rows at or above each distinct score, from the highest score to the lowest."""

    true: np.ndarray
    false: np.ndarray


def _thresholds(positive: np.ndarray, score: np.ndarray) -> _Thresholds:
    positive, score = np.asarray(positive, bool), np.asarray(score)
    order = np.argsort(-score, kind="stable")
    positive, score = positive[order], score[order]
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # equal scores are one threshold
    true = np.cumsum(positive)[last]
    return _Thresholds(true, last + 1 - true)


def auroc(positive: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve: how often a positive row scores above a negative one, ties counting half.

    NaN where only one class is there.
    """
    true, false = _thresholds(positive, score)
    if true[-1] == 0 or false[-1] == 0:
        return float("nan")
    area = np.trapezoid(np.append(0, true).astype(np.float64), np.append(0, false).astype(np.float64))
    return float(area / true[-1] / false[-1])


def auprc(positive: np.ndarray, score: np.ndarray) -> float:
    """Area under the precision-recall curve as average precision: sum over thresholds of precision * recall gained.

    Equal scores are one threshold, so the order of tied rows does not matter. NaN where no row is positive.
    """
    true, false = _thresholds(positive, score)
    if true[-1] == 0:
        return float("nan")
    gained = np.diff(true, prepend=0)
    return float(np.sum(gained * (true / (true + false))) / true[-1])


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
