"""What the features of a row add to its score, and what that is for each letter or column that they are made of.

A score is b + sum over slots s of w_s phi_s(z), and w_s phi_s(z) is what slot s adds. Where a feature occurs several
times in the row, what it adds is shared out in proportion to what each occurrence adds to phi_s(z), before a map around
it (a logarithm, idf, a length of one) has changed all of them alike; and the share of each occurrence is divided evenly
over its letters. So letters, or columns, and the intercept sum to the score, except for what features add whose origin
nobody knows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dotadd.data.batches import Batch, Strings
from dotadd.data.table import Table
from dotadd.features.base import FeatureMap
from dotadd.features.occurrences import Occurrences, non_zeros


class Contributions(NamedTuple):
    """What each slot adds in which a row has something, in the order of the numbers of the slots."""

    slots: np.ndarray
    values: np.ndarray
    adds: np.ndarray
    nth: np.ndarray
    """The first non-zero that `fill` writes into the slot, by which the feature can be named."""

    @classmethod
    def of(cls, phi: FeatureMap, batch: Batch, row: int, w: np.ndarray) -> Contributions:
        slots, values = non_zeros(phi, batch, row)
        distinct, nth, at = np.unique(slots, return_index=True, return_inverse=True)
        sums = np.bincount(at, values, len(distinct))
        return cls(distinct, sums, sums * w[distinct].astype(np.float64), nth)

    def shares(self, found: Occurrences) -> np.ndarray:
        """What each occurrence adds."""
        if not len(self.slots):
            return np.zeros(len(found.slots))
        place = np.minimum(np.searchsorted(self.slots, found.slots), len(self.slots) - 1)
        here = self.slots[place] == found.slots
        totals = np.bincount(place[here], found.values[here], len(self.slots))
        times = np.bincount(place[here], minlength=len(self.slots))
        even = totals[place] == 0.0  # they cancel: none of them tells more than another
        part = np.where(even, 1.0 / np.maximum(times[place], 1), found.values / np.where(even, 1.0, totals[place]))
        return np.where(here, part * self.adds[place], 0.0)


def on_letters(found: Occurrences, shares: np.ndarray, length: int) -> np.ndarray:
    """What each letter of a row of this length adds, through the features that were made of letters."""
    placed = np.flatnonzero((found.first >= 0) & (found.stop > found.first))
    first, sizes = found.first[placed], (found.stop - found.first)[placed]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.bincount(np.repeat(first, sizes) + within, np.repeat(shares[placed] / sizes, sizes), length)


def texts_of(batch: Batch, row: int, found: Occurrences) -> dict[str, bytes]:
    """The strings that features were made of, by column; under "" where the row is a string."""
    if isinstance(batch, Strings):
        return {"": batch[row]}
    if not isinstance(batch, Table):
        return {}
    return {name: batch.strings(name)[row] for name in dict.fromkeys(found.column[found.first >= 0].tolist())}


def by_column(found: Occurrences, shares: np.ndarray) -> dict[str, float]:
    """What each column of a table adds."""
    names = [name for name in dict.fromkeys(found.column.tolist()) if name]
    return {name: float(shares[found.column == name].sum()) for name in names}
