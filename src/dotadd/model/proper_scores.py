"""How good probabilities are: log loss, Brier score and expected calibration error, as a reduction.

The log loss is the mean of -log p of the true class, where p is no less than 2^-52. The Brier score is the mean squared
error of the probabilities: of the second of two classes, or of all of more classes together (between 0 and 2). For the
expected calibration error, rows go by their probability into 15 bins of the same width; it is the mean over rows of the
distance between the mean probability in a bin and the share of rows there for which it came true: of the second of two
classes, of the most likely one of several (Guo et al., 2017).
"""

from __future__ import annotations

import numpy as np

from dotadd.model.intervals import Interval, mean

BINS = 15


class ProperScores:
    """Sums over rows that pass by, which are joined by +."""

    def __init__(self) -> None:
        self._sums = np.zeros((2, 5))  # of w, w x, w^2, w^2 x and w^2 x^2, where x are log losses and squared errors
        self._bins = np.zeros((3, BINS))  # weight, probability, and what has happened

    def see(self, codes: np.ndarray, probability: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Some more rows: the numbers of their classes, probabilities of shape (rows, classes), and weights."""
        each = np.ones(len(codes)) if weight is None else weight
        rows = np.arange(len(codes))
        of_truth, square = probability[rows, codes], each * each
        error = (probability * probability).sum(axis=1) - 2.0 * of_truth + 1.0
        if probability.shape[1] == 2:
            error, shown, happened = error / 2.0, probability[:, 1], codes == 1
        else:
            best = probability.argmax(axis=1)
            shown, happened = probability[rows, best], codes == best
        log_loss = -np.log(np.maximum(of_truth, np.finfo(np.float64).eps))
        for sums, x in zip(self._sums, (log_loss, error), strict=True):
            sums += each.sum(), each @ x, square.sum(), square @ x, square @ (x * x)
        places = np.minimum((shown * BINS).astype(np.int64), BINS - 1)
        for sums, x in zip(self._bins, (each, each * shown, each * happened), strict=True):
            sums += np.bincount(places, x, BINS)

    def __add__(self, other: ProperScores) -> ProperScores:
        joined = ProperScores()
        joined._sums, joined._bins = self._sums + other._sums, self._bins + other._bins
        return joined

    def intervals(self) -> dict[str, Interval]:
        """Log loss and Brier score; nothing where no row had probabilities."""
        if not self._sums[0, 0] > 0.0:
            return {}
        return {name: mean(*map(float, sums)) for name, sums in zip(("log_loss", "brier"), self._sums, strict=True)}

    def bins(self) -> np.ndarray | None:
        """Of rows in each bin of probabilities their weight, and sums of probabilities and of what has happened; None
        where no row had probabilities."""
        return self._bins.copy() if self._bins[0].sum() > 0.0 else None

    def calibration_error(self) -> float | None:
        """The expected calibration error, where rows had probabilities."""
        total, shown, happened = self._bins
        return float(np.abs(shown - happened).sum() / total.sum()) if total.sum() > 0.0 else None
