"""Probabilities: how sure a score is, learned from the scores of rows that training has not seen.

A calibration has a curve for each column of scores: of the second of two classes, or of each class against the rest.
The curve says which share of the rows with such a score is of the class.

- "sigmoid": 1 / (1 + exp(-(slope score + offset))), by Newton's method (Lin, Lin and Weng: A note on Platt's
  probabilistic outputs for support vector machines, 2007, Algorithm 1), on Platt's targets (n + 1) / (n + 2) and
  1 / (n + 2), so that a class that is told apart without a mistake is not taken for certain.
- "isotonic": the increasing curve that is closest to the labels, straight between its points (Zadrozny and Elkan,
  2002). It takes any shape, and needs about a thousand rows. Where n rows are all of one class, it is no surer of it
  than Platt's targets are; scikit-learn's is certain there, and loses without bound when the next row is of the other.

The logistic loss has no need of it: its sigmoid is that of slope 1. The probabilities of several classes are those of
the curves divided by their sum, as scikit-learn's CalibratedClassifierCV and LogisticRegression (one against the rest)
have them. Rows count by their weights; weights of classes are for training and not for this, since they change how
often a class seems to occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dotadd.errors import DotaddError, ModelError

METHODS = ("sigmoid", "isotonic")
LEVELS = 1 << 10  # probabilities that an isotonic curve tells apart where it has more than twice as many points
STEPS = 100  # of Newton's method, which takes about ten
LEAST = 1e-290  # smaller scores are 0: the slope between two of them would be more than there are numbers
RIDGE = 1e-12  # so that the Hessian of one score, or of none, has an inverse


@dataclass(frozen=True)
class Calibration:
    """A curve for each column of scores, as an array of two rows: slope and offset of a sigmoid, or scores and
    probabilities of the points of an isotonic one."""

    method: str
    curves: tuple[np.ndarray, ...]

    @classmethod
    def of_logistic(cls, columns: int) -> Calibration:
        """That of the logistic loss, whose scores are logarithms of odds."""
        return cls("sigmoid", (np.array([[1.0], [0.0]]),) * columns)

    def probabilities(self, scores: np.ndarray, *, together: bool = True) -> np.ndarray:
        """An array of shape (rows, classes) whose rows sum to one, from scores as `decision_function` returns them. A
        class that was not trained has the score -inf and the probability 0. Labels of which a row may have several do
        not sum to one: they are not taken `together`."""
        scores = np.asarray(scores, np.float64)
        if scores.ndim == 1:
            return np.stack(self._curve(0, scores)[::-1], axis=1)
        out = np.stack([self._curve(k, column)[0] for k, column in enumerate(scores.T)], axis=1)
        possible = scores > -np.inf
        out[~possible] = 0.0
        if not together:
            return out
        total = out.sum(axis=1, keepdims=True)
        nothing = total[:, 0] == 0.0  # the score of no class speaks for it: all are as likely
        out[nothing] = possible[nothing]
        return out / np.where(nothing[:, None], np.maximum(1, possible.sum(axis=1, keepdims=True)), total)

    def _curve(self, k: int, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities for and against the class of column k."""
        first, second = self.curves[k]
        if self.method == "isotonic":
            # A quarter of both, for the difference of two numbers may be more than there are numbers.
            found = np.interp(0.25 * score, 0.25 * first, second)
            return found, 1.0 - found
        from scipy.special import expit

        with np.errstate(over="ignore", invalid="ignore"):
            odds = first[0] * score + second[0] if first[0] else np.full(len(score), second[0])
        return expit(odds), expit(-odds)

    def tensors(self) -> dict[str, np.ndarray]:
        """The curves as arrays for the model file."""
        offsets = np.cumsum([0, *(curve.shape[1] for curve in self.curves)])
        return {"offsets": offsets.astype(np.int64), "curves": np.concatenate(self.curves, axis=1)}

    @classmethod
    def from_tensors(cls, method: object, tensors: Mapping[str, np.ndarray], columns: int) -> Calibration:
        """The same again; what cannot be a calibration of so many columns is refused."""
        offsets, curves = (np.array(tensors[name]) for name in ("offsets", "curves"))
        sound = curves.ndim == 2 and len(curves) == 2 and np.isfinite(curves).all() and offsets.shape == (columns + 1,)
        sound = sound and offsets.dtype == np.int64 and offsets[0] == 0 and offsets[-1] == curves.shape[1]
        if not sound or (np.diff(offsets) < 1).any() or method not in METHODS:
            raise ModelError(f"a calibration by {method!r} does not fit {columns} columns of scores")
        found = cls(str(method), tuple(curves[:, a:b] for a, b in pairwise(offsets)))
        for first, second in found.curves if method == "isotonic" else ():
            if (np.diff(first) <= 0).any() or (np.diff(second) < 0).any() or second[0] < 0 or second[-1] > 1:
                raise ModelError("the curve of a calibration does not rise from 0 to 1")
        return found


def calibrate(
    scores: np.ndarray,
    y: Sequence[object] | np.ndarray,
    classes: Sequence[object] | np.ndarray,
    *,
    method: str = "sigmoid",
    weight: np.ndarray | None = None,
) -> Calibration:
    """Learn probabilities from scores of rows that training has not seen, such as those of a cross-validation, each
    held out in its turn: of shape (rows,) or (rows, 1) for two classes, (rows, classes) for more, as in
    `decision_function`. `y` are the labels, and `weight` says how much each row counts, by default all the same. The
    answer is kept as `model.calibration`."""
    if method not in METHODS:
        raise DotaddError(f"probabilities are made by {' or '.join(METHODS)}, and not by {method!r}")
    table, labels, each = held_out(scores, y, classes, weight)
    fit = sigmoid if method == "sigmoid" else isotonic
    classes = np.asarray(classes)
    curves = []
    for label, column in zip(classes[1:] if len(classes) == 2 else classes, table.T, strict=True):
        some = np.isfinite(column) & (each > 0.0)  # of classes that training did not come to there are no scores
        column = np.where(np.abs(column) < LEAST, 0.0, column)
        curves.append(fit(column[some], labels[some] == label, each[some]))
    return Calibration(method, tuple(curves))


def held_out(
    scores: np.ndarray, y: Sequence[object] | np.ndarray, classes: Sequence[object] | np.ndarray, weight: object
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of shape (rows, columns), labels and weights, if they are sound and belong together."""
    table, labels, classes = np.asarray(scores, np.float64), np.asarray(y), np.asarray(classes)
    columns = 1 if len(classes) == 2 else len(classes)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[1] != columns:
        raise DotaddError(f"{len(classes)} classes do not fit scores of shape {np.shape(scores)}")
    each = np.ones(len(table)) if weight is None else np.asarray(weight, np.float64)
    if labels.shape != (len(table),) or each.shape != (len(table),):
        raise DotaddError(
            f"scores of {len(table):,} rows, labels of shape {labels.shape} and weights of shape {each.shape} do not "
            "pair up"
        )
    if np.isnan(table).any():
        raise DotaddError(f"the score of row {int(np.isnan(table).any(axis=1).argmax()) + 1} is not a number")
    if not (np.isfinite(each) & (each >= 0.0)).all():
        raise DotaddError("a weight has to be a number of at least 0")
    if not (each > 0.0).any():
        raise DotaddError("there is no row, or none that has a weight, to learn from")
    if not np.isin(labels, classes).all():
        raise DotaddError(f"label {labels[~np.isin(labels, classes)][0]} is none of the classes")
    return table, labels, each


def sigmoid(score: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Slope and offset of Platt's sigmoid, as a curve."""
    from scipy.special import expit

    if not len(score):
        return np.zeros((2, 1))
    # In units of their mean, scores of any size make a Hessian of about the number of rows: none is larger than n.
    top = max(float(np.abs(score).max()), LEAST)
    unit = float(np.mean(np.abs(score / top))) or 1.0
    f = score / top / unit
    plus, minus = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (plus + 1.0) / (plus + 2.0), 1.0 / (minus + 2.0))

    def loss(a: float, b: float) -> float:
        odds = a * f + b
        return float(weight @ (np.logaddexp(0.0, odds) - target * odds))

    a, b = 0.0, float(np.log((plus + 1.0) / (minus + 1.0)))
    value = loss(a, b)
    for _ in range(STEPS):
        p = expit(a * f + b)
        first, second = weight * (p - target), weight * p * (1.0 - p)
        g, h = (float(first @ f), float(first.sum())), second @ f
        aa, bb = float((second * f) @ f) + RIDGE, float(second.sum()) + RIDGE
        det = aa * bb - h * h
        da, db = -(bb * g[0] - h * g[1]) / det, -(aa * g[1] - h * g[0]) / det
        step, gain = 1.0, g[0] * da + g[1] * db
        if -gain <= 1e-10 * value:  # rounding would hide it: the last step, which squares the error, is not looked at
            a, b = a + da, b + db
            break
        while (new := loss(a + step * da, b + step * db)) > value + 1e-4 * step * gain and step > 1e-10:
            step /= 2.0
        a, b, value = a + step * da, b + step * db, new
    return np.array([[a / unit / top], [b]])


def isotonic(score: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Points of the increasing curve with the least squared error, scores and probabilities. Rows of the same score are
    one; of rows with the same probability, the first and the last are points."""
    from scipy.optimize import isotonic_regression

    if not len(score):
        return np.zeros((2, 1))
    distinct, place = np.unique(score, return_inverse=True)
    total = np.bincount(place, weight)
    share = np.clip(isotonic_regression(np.bincount(place, weight * positive) / total, weights=total).x, 0.0, 1.0)
    never, always = share == 0.0, share == 1.0
    low = min(1.0 / (total[never].sum() + 2.0), np.min(share[~never], initial=1.0)) if never.any() else 0.0
    high = max(1.0 - 1.0 / (total[always].sum() + 2.0), np.max(share[~always], initial=0.0)) if always.any() else 1.0
    share = np.clip(share, low, high)
    curve = np.stack([distinct, share])[:, _ends(share)]
    # Above that, points of nearly the same probability are left out, and no probability moves by more than a level.
    return curve if curve.shape[1] <= 2 * LEVELS else curve[:, _ends(np.floor(curve[1] * LEVELS))]


def _ends(values: np.ndarray) -> np.ndarray:
    """Where stretches of equal values begin and end."""
    change = values[1:] != values[:-1]
    return np.append(True, change) | np.append(change, True)
