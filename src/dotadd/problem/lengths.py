"""How much the lengths |phi(z)| of rows differ, and the scales of columns of numbers.

Counts of long texts make rows many times as long as those of short ones. One C is then too large for the long rows and
too small for the short, and solvers creep; `.normalized()` makes all rows equally long. The same where a column holds
bytes and another one a rate: w has to be small here and large there; `.scaled("std")` makes all columns alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dotadd.data.batches import Batch, DenseRows, Images, SparseRows
from dotadd.features.base import FeatureMap
from dotadd.features.linear import Linear, vectors

ROWS = 500  # that are looked at: enough for quantiles, and no pass over the data
READ = 1 << 20  # bytes of a stream to take these rows from
MUCH = 10.0
FAR_APART = 1e3
FEWEST = 5  # values that are not 0, of a column whose scale is told


class Lengths:
    """By which factor rows differ in length; noted where a solver measures them anyway, and told as soon as it is."""

    def __init__(self, announce: Callable[[str], None] | None = None) -> None:
        self.announce = announce
        self.spread: float | None = None
        self.scales: float | None = None
        """By which factor columns of numbers differ in scale."""

    def note(self, squared: np.ndarray) -> None:
        """Squared lengths of rows; the first that are noted count."""
        if self.spread is None:
            self.spread = spread_of(squared[_some(len(squared))])
            if self.announce is not None and (told := length_advice(self.spread)) is not None:
                self.announce(told)

    def look(self, phi: FeatureMap, batch: Batch) -> None:
        """Tell how far columns are apart, before training begins."""
        if isinstance(phi, Linear) and isinstance(batch, SparseRows | DenseRows) and not isinstance(batch, Images):
            self.scales = spread_of_columns(batch.take(_some(len(batch))))
            if self.announce is not None and (told := scale_advice(self.scales)) is not None:
                self.announce(told)

    def measure(self, phi: FeatureMap, batch: Batch) -> float:
        """The spread that was noted, or that of some rows of this batch."""
        if self.spread is None:
            self.note(phi.squared_norms(batch, _some(len(batch))))
        assert self.spread is not None
        return self.spread


def spread_of(squared: np.ndarray) -> float:
    """The 95 % quantile of the lengths over their 5 % quantile: a few outliers are left aside, and so are rows without
    features, which have no length."""
    lengths = np.sqrt(squared[squared > 0.0])
    if not len(lengths):
        return 1.0
    low, high = np.quantile(lengths, (0.05, 0.95))
    return float(high / low)


def length_advice(spread: float | None) -> str | None:
    """What to do about it, if there is something to do."""
    if spread is None or not spread > MUCH:
        return None
    return f"lengths of rows differ {spread:.0f}-fold, which slows training down: .normalized() makes them all 1"


def spread_of_columns(batch: SparseRows | DenseRows) -> float:
    """The largest root mean square of a column over the smallest; zeros are left aside, as sparse rows do."""
    rows = vectors(batch)
    if rows.values is None:
        return 1.0
    values = rows.values.astype(np.float64)
    columns = np.arange(len(values)) % batch.n_features if rows.indices is None else rows.indices
    numbers, at = np.unique(columns[values != 0.0], return_inverse=True)
    counts = np.bincount(at, minlength=len(numbers))
    squares = np.bincount(at, values[values != 0.0] ** 2, len(numbers))[counts >= FEWEST] / counts[counts >= FEWEST]
    return float(np.sqrt(squares.max() / squares.min())) if len(squares) else 1.0


def scale_advice(scales: float | None) -> str | None:
    """What to do about columns that are far apart."""
    if scales is None or not scales > FAR_APART:
        return None
    return f'scales of columns differ {scales:.2g}-fold, which slows training down: .scaled("std") evens them out'


def advice_of(training: Mapping[str, float | None]) -> str | None:
    """All that there is to do about lengths and scales that the record of a training tells."""
    told = length_advice(training.get("length_spread")), scale_advice(training.get("scale_spread"))
    return "; ".join(filter(None, told)) or None


def _some(rows: int) -> np.ndarray:
    """Numbers of rows, spread evenly over all."""
    return np.linspace(0, max(0, rows - 1), min(rows, ROWS)).astype(np.int64)
