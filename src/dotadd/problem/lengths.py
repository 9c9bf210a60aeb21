"""How much the lengths |phi(z)| of rows differ.

Counts of long texts make rows many times as long as those of short ones. One C is then too large for the long rows and
too small for the short, and solvers creep; `.normalized()` makes all rows equally long.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dotadd.data.batches import Batch
from dotadd.features.base import FeatureMap

ROWS = 500  # that are looked at: enough for quantiles, and no pass over the data
READ = 1 << 20  # bytes of a stream to take these rows from
MUCH = 10.0


class Lengths:
    """By which factor rows differ in length; noted where a solver measures them anyway, and told as soon as it is."""

    def __init__(self, announce: Callable[[str], None] | None = None) -> None:
        self.announce = announce
        self.spread: float | None = None

    def note(self, squared: np.ndarray) -> None:
        """Squared lengths of rows; the first that are noted count."""
        if self.spread is None:
            self.spread = spread_of(squared[_some(len(squared))])
            if self.announce is not None and (told := length_advice(self.spread)) is not None:
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


def _some(rows: int) -> np.ndarray:
    """Numbers of rows, spread evenly over all."""
    return np.linspace(0, max(0, rows - 1), min(rows, ROWS)).astype(np.int64)
