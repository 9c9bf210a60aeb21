"""How good predictions of several labels a row are, as a reduction: micro and macro F1, and of each label.

Truth and predictions are indicator matrices, (rows, labels), dense or sparse. Micro F1 counts all pairs of a row and a
label alike; macro F1 is the mean over labels that truth or predictions have. Conventions are scikit-learn's. A row has
several pairs, which are not independent: the interval of micro F1 is that of a ratio of sums over rows (the limit of
drawing rows anew), on the scale of logarithms of odds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd.errors import DataError, DotaddError, as_written
from dotadd.model.confusion import of_all, share
from dotadd.model.intervals import Interval, between
from dotadd.sources.label_sets import DENSE, SPARSE, are_sets, given_sets, members, sets_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix

    from dotadd.model.file import Classifier
    from dotadd.sources.base import Chunk, Source


class LabelEvaluation(NamedTuple):
    """What is measured. Where rows have weights, all but their number counts by weight; lists are by label."""

    rows: int
    micro_f1: Interval
    macro_f1: float
    precision: list[float]
    recall: list[float]
    f1: list[float]
    support: list[float]
    """Rows, or their weight, that have each label."""
    exact: float
    """The share of rows all of whose labels are right."""
    hamming_loss: float
    """The share of pairs of a row and a label that are wrong."""

    def told(self) -> dict[str, str]:
        """The measures of all labels together, each in words for people."""
        return {
            "micro F1": str(self.micro_f1),
            "macro F1": f"{self.macro_f1:.4f}",
            "all right": f"{self.exact:.4f} of the rows",
            "Hamming loss": f"{self.hamming_loss:.4f}",
        }


class LabelEvaluator:
    """Measures of rows that pass by, of so many labels."""

    def __init__(self, labels: int) -> None:
        self.rows = 0
        self._counts = np.zeros((3, labels))  # weight of pairs that are right, true and found
        # Of w, w of exact rows, w of wrong pairs, and of squares of what a row adds to micro F1 above and below.
        self._sums = np.zeros(6)

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
        exact, wrong = each @ ((right == wanted) & (right == shown)), each @ (wanted + shown - 2.0 * right)
        self._sums += each.sum(), exact, wrong, above @ above, above @ below, below @ below
        self.rows += true.shape[0]

    def see_sets(
        self,
        truth: np.ndarray,
        predicted: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        strange: bool = False,
    ) -> None:
        """The same with sets of labels as the truth. A label that is none of these is refused, unless it may be
        `strange`: then its row is not exact."""
        from scipy.sparse import csr_array

        offsets, numbers, others = members(truth, labels)
        if others and not strange:
            raise StrangeLabelError(*others[0])
        shape = (len(truth), len(labels))
        self.see(csr_array((np.ones(len(numbers)), numbers, offsets), shape), predicted, weight)
        rows = sorted({row for row, _ in others})
        if rows:
            true = _indicators(csr_array((np.ones(len(numbers)), numbers, offsets), shape))[rows]
            missed = (true != _indicators(predicted)[rows]).sum(axis=1) == 0  # but for what nobody can predict
            self._sums[1] -= np.sum((1.0 if weight is None else np.asarray(weight)[rows]) * missed)

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
        total, exact, wrong, aa, ab, bb = self._sums
        spread = np.sqrt(max(0.0, aa - 2.0 * micro * ab + micro * micro * bb)) / below if below else np.nan
        return LabelEvaluation(
            self.rows,
            between(micro, float(spread)),
            float(of_all(right, true, found)["macro_f1"]),
            share(right, found).tolist(),
            share(right, true).tolist(),
            share(2.0 * right, true + found).tolist(),
            true.tolist(),
            float(exact / total) if total else float("nan"),
            float(wrong / (total * len(right))) if total else float("nan"),
        )


class StrangeLabelError(DotaddError):
    """A label that the model does not have."""

    def __init__(self, row: int, label: object) -> None:
        super().__init__(f"label {as_written(label)} is none of the model's labels")
        self.row = row


def evaluated(
    model: Classifier, source: Source, n_jobs: int | None, seen: Callable[[Chunk, np.ndarray], None] | None = None
) -> LabelEvaluator:
    """What there is to measure of all rows of a source, which must have labels; chunks with their scores are shown to
    `seen`."""
    found = LabelEvaluator(len(model.classes))
    for chunk, scores in model.decision_chunks(source, n_jobs=n_jobs, labels=True):
        if chunk.y is None:
            raise DataError("there are no labels to compare with; name their column with --label", chunk.path)
        try:
            found.see_sets(as_sets(chunk.y), scores > 0.0, model.classes, chunk.weight)
        except StrangeLabelError as error:
            raise chunk.error(error.row, str(error)) from None
        if seen is not None:
            seen(chunk, scores)
    return found


def require_sets(y: object) -> np.ndarray:
    """Sets of labels that somebody has given to compare with."""
    given = given_sets(y)
    return as_sets(np.asarray(y)) if given is None else given.y


def as_sets(y: np.ndarray) -> np.ndarray:
    """Labels of rows as sets; where each row has one, it has no others."""
    return y if are_sets(y) or not len(y) else sets_of((label,) for label in y.tolist())


def as_given(found: np.ndarray, labels: np.ndarray, kind: str) -> list[list[object]] | np.ndarray | csr_matrix:
    """Which labels each row has, in the form in which they were given for training."""
    if kind == DENSE:
        return found.astype(np.int64)
    if kind == SPARSE:
        from scipy.sparse import csr_matrix

        return csr_matrix(found.astype(np.int64))
    names = labels.tolist()
    return [[names[k] for k in np.flatnonzero(row).tolist()] for row in found]


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
