"""How good predictions of several labels a row are, as a reduction: micro and macro F1, and of each label.

Truth and predictions are indicator matrices, (rows, labels), dense or sparse. Micro F1 counts all pairs of a row and a
label alike; macro F1 is the mean over labels that truth or predictions have. Conventions are scikit-learn's. A row has
several pairs, which are not independent: the interval of micro F1 is that of a ratio of sums over rows (the limit of
drawing rows anew), on the scale of logarithms of odds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd.errors import DotaddError
from dotadd.model.confusion import of_all, share
from dotadd.model.intervals import Interval, between

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class LabelEvaluation(NamedTuple):
    """What is measured. Where rows have weights, all but their number counts by weight; lists are by label."""

    rows: int
    micro_f1: Interval
    macro_f1: float
    precision: list[float]
    recall: list[float]
    f1: list[float]
    exact: float
    """The share of rows all of whose labels are right."""


class LabelEvaluator:
    """Measures of rows that pass by, of so many labels."""

    def __init__(self, labels: int) -> None:
        self.rows = 0
        self._counts = np.zeros((3, labels))  # weight of pairs that are right, true and found
        self._sums = np.zeros(5)  # of w, w of exact rows, and of squares of what a row adds to micro F1 above and below

    def see(self, truth: object, predicted: object, weight: np.ndarray | None = None) -> None:
        """Some more rows, and what they weigh."""
        true, found = _indicators(truth), _indicators(predicted)
        if not true.shape == found.shape == (true.shape[0], self._counts.shape[1]):
            raise DotaddError(
                f"labels of shape {true.shape} and predictions of shape {found.shape} do not pair up for "
                f"{self._counts.shape[1]} labels"
            )
        each = np.ones(true.shape[0]) if weight is None else np.asarray(weight, np.float64)
        if each.shape != (true.shape[0],) or not ((each >= 0.0) & np.isfinite(each)).all():
            raise DotaddError("give a weight of at least 0 for each row")
        both = true.multiply(found).tocsr()
        self._counts += np.stack([each @ one for one in (both, true, found)])
        right, wanted, shown = (one.sum(axis=1) for one in (both, true, found))
        above, below = 2.0 * right * each, (wanted + shown) * each
        exact = each @ ((right == wanted) & (right == shown))
        self._sums += each.sum(), exact, above @ above, above @ below, below @ below
        self.rows += true.shape[0]

    def __add__(self, other: LabelEvaluator) -> LabelEvaluator:
        """What both have seen."""
        joined = LabelEvaluator(self._counts.shape[1])
        joined.rows = self.rows + other.rows
        joined._counts, joined._sums = self._counts + other._counts, self._sums + other._sums
        return joined

    def finish(self) -> LabelEvaluation:
        """The measures of all rows; NaN where there is nothing to share."""
        right, true, found = self._counts
        above, below = 2.0 * right.sum(), (true + found).sum()
        micro = float(share(above, below))
        total, exact, aa, ab, bb = self._sums
        spread = np.sqrt(max(0.0, aa - 2.0 * micro * ab + micro * micro * bb)) / below if below else np.nan
        return LabelEvaluation(
            self.rows,
            between(micro, float(spread)),
            float(of_all(right, true, found)["macro_f1"]),
            share(right, found).tolist(),
            share(right, true).tolist(),
            share(2.0 * right, true + found).tolist(),
            float(exact / total) if total else float("nan"),
        )


def _indicators(given: object) -> csr_array:
    """Ones where a row has a label."""
    from scipy.sparse import csr_array

    table = csr_array(given)
    if table.ndim != 2:
        raise DotaddError(f"labels of shape {table.shape}: give a matrix, a row for each example and a column a label")
    table = table.astype(bool).astype(np.float64)
    table.sum_duplicates()
    table.eliminate_zeros()
    table.data[:] = 1.0
    return table
