"""Measures of a confusion matrix: F1, balanced accuracy, Matthews' coefficient, and their intervals.

Conventions are scikit-learn's: macro F1 is the mean over classes that are there, among labels or predictions; balanced
accuracy that of recall over classes that labels have; where each row has one class, micro F1 is accuracy. Matthews'
coefficient of several classes is Gorodkin's, and 0 where all rows are, or are taken for, one class.
"""

from __future__ import annotations

import numpy as np

from dotadd.model.intervals import Interval, between, proportion, spreads

SPREAD = {"f1": 0.0, "macro_f1": 0.0, "balanced_accuracy": 0.0, "matthews": -1.0}  # the least that each can be


def of_each(confusion: np.ndarray) -> dict[str, np.ndarray]:
    """Precision, recall and F1 of each class; NaN where no row is found, is there, or either."""
    right, true, found = (x.astype(np.float64) for x in (confusion.diagonal(), confusion.sum(1), confusion.sum(0)))
    return {
        "precision": share(right, found),
        "recall": share(right, true),
        "f1": share(2.0 * right, true + found),
    }


def of_all(right: np.ndarray, true: np.ndarray, found: np.ndarray) -> dict[str, np.ndarray]:
    """Measures over all classes, from how many rows of each are right, are there and were found; the last axis is that
    of classes. `f1` is that of the last class."""
    f1, total = share(2.0 * right, true + found), true.sum(axis=-1)
    rest = (total**2 - (true**2).sum(axis=-1)) * (total**2 - (found**2).sum(axis=-1))
    covariance = right.sum(axis=-1) * total - (true * found).sum(axis=-1)
    return {
        "macro_f1": _mean(f1),
        "balanced_accuracy": _mean(share(right, true)),
        "matthews": np.where(rest > 0.0, covariance / np.sqrt(np.where(rest > 0.0, rest, 1.0)), 0.0),
        "f1": f1[..., -1],
    }


def summary(confusion: np.ndarray) -> dict[str, float]:
    """Measures over all classes of a confusion matrix; `f1` is that of the last class."""
    parts = (x.astype(np.float64) for x in (confusion.diagonal(), confusion.sum(1), confusion.sum(0)))
    return {name: float(value) for name, value in of_all(*parts).items()}


def intervals(confusion: np.ndarray, squares: np.ndarray) -> dict[str, Interval]:
    """Measures with their intervals; `squares` are sums of the squared weights of the rows of each class. Precision,
    recall and F1 are those of the second of two classes."""
    confusion = confusion.astype(np.float64)
    total, two = confusion.sum(), len(confusion) == 2
    accuracy = proportion(float(np.trace(confusion)), float(total), float(squares.sum()) or None)
    found = {"accuracy": accuracy, "micro_f1": accuracy}
    if not total:
        return found
    unit = np.where(squares > 0.0, squares, 1.0) / np.where(squares > 0.0, confusion.sum(axis=1), 1.0)
    if two:
        hits = float(confusion[1, 1])
        found["precision"] = proportion(hits, float(confusion[:, 1].sum()), float(unit @ confusion[:, 1]) or None)
        found["recall"] = proportion(hits, float(confusion[1].sum()), float(squares[1]) or None)
    spread = _spreads(confusion, unit)
    values = summary(confusion)
    return found | {name: between(values[name], spread[name], SPREAD[name]) for name in list(SPREAD)[not two :]}


def _spreads(confusion: np.ndarray, unit: np.ndarray) -> dict[str, float]:
    """The standard deviations of measures where rows are drawn anew."""
    from scipy.sparse import csr_array

    true, found = np.nonzero(confusion)
    some, ones = np.arange(len(true)), np.ones(len(true))
    shape = (len(true), len(confusion))
    by_truth, by_finding, by_both = (
        csr_array((kept, (some, classes)), shape)
        for kept, classes in ((ones, true), (ones, found), (ones * (true == found), true))
    )
    return spreads(
        confusion[true, found], unit[true], lambda drawn: of_all(drawn @ by_both, drawn @ by_truth, drawn @ by_finding)
    )


def share(some: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Some of these; NaN where there are none."""
    return np.where(of > 0.0, some / np.where(of > 0.0, of, 1.0), np.nan)


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean over the last axis of those that are numbers."""
    there = ~np.isnan(values)
    return share(np.where(there, values, 0.0).sum(axis=-1), there.sum(axis=-1).astype(np.float64))
