"""How far a measure of some rows may be from that of all rows like them: intervals that hold it 95 times of 100.

A share of rows is binomial, and its interval that of Clopper and Pearson, which is exact. The others come from rows
drawn anew: in the Poisson bootstrap a row is there Poisson(1) times, independent of all others, so that c rows that
count alike are there Poisson(c) times. So the counts of a confusion matrix or of a ranking are all that is needed: rows
pass by once, and memory, disk and cluster have the same intervals. The spread of a measure over the draws makes an
interval on the scale of logarithms of odds, which stays between 0 and 1. In simulations of areas it held the truth more
often than quantiles of the draws did (with 20 positive rows 90 of 100 times, and 88).

A row with a weight counts for more, but is not more rows. Rows of the same kind whose weights have the sum s and their
squares the sum q are taken for s^2 / q rows of weight q / s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
NORMAL = 1.959963984540054  # so many standard deviations to either side
DRAWS = 200  # which tell a standard deviation to 5 %
AT_ONCE = 1 << 20  # numbers that are drawn at a time


class Interval(NamedTuple):
    """A measure, and the bounds of that of all rows like these; NaN where the rows do not tell."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = (f"{x:.2g}" if 0.0 < x < 0.001 else f"{x:.4f}" for x in self)
        return value if np.isnan(self.low) else f"{value} ({low}-{high})"


def proportion(hits: float, total: float, squares: float | None = None) -> Interval:
    """A share of rows, or of their weight, whose squares have this sum: the exact interval of Clopper and Pearson."""
    from scipy.special import betaincinv

    if not total > 0.0:
        return Interval(*[float("nan")] * 3)
    rows = total if squares is None else total * total / squares
    share, tail = min(1.0, hits / total), (1.0 - LEVEL) / 2
    yes, no = share * rows, (1.0 - share) * rows
    low = 0.0 if yes <= 0.0 else float(betaincinv(yes, no + 1.0, tail))
    high = 1.0 if no <= 0.0 else float(betaincinv(yes + 1.0, no, 1.0 - tail))
    return Interval(share, low, high)


def mean(total: float, first: float, squares: float, mixed: float, second: float) -> Interval:
    """The mean of what rows lose, from sums over them of w, w x, w^2, w^2 x and w^2 x^2."""
    middle = first / total
    spread = np.sqrt(max(0.0, second - 2.0 * middle * mixed + middle * middle * squares)) / total
    return Interval(middle, max(0.0, middle - NORMAL * spread), middle + NORMAL * spread)


def between(value: float, spread: float, least: float = 0.0) -> Interval:
    """The interval of a measure between `least` and 1 whose draws have this standard deviation."""
    share = (value - least) / (1.0 - least)
    if not (spread > 0.0 and 0.0 < share < 1.0):
        return Interval(value, float("nan"), float("nan"))  # all rows were right, or none: draws are all alike
    from scipy.special import expit, logit

    way = NORMAL * spread / (1.0 - least) / (share * (1.0 - share))
    low, high = least + (1.0 - least) * expit(logit(share) + np.array([-way, way]))
    return Interval(value, float(low), float(high))


def spreads(
    counts: np.ndarray, unit: np.ndarray, measures: Callable[[np.ndarray], dict[str, np.ndarray]], seed: int = 0
) -> dict[str, float]:
    """The standard deviations of measures over draws of counts: rows of one kind each, of which `unit` is the weight.

    `measures` is given an array of draws, of shape (draws, kinds), and has an array of as many for each measure.
    """
    random, found = np.random.default_rng(seed), []
    step = max(1, AT_ONCE // max(1, len(counts)))
    for first in range(0, DRAWS, step):
        draws = min(step, DRAWS - first)
        found.append(measures(unit * random.poisson(counts / unit, (draws, len(counts)))))
    joined = {name: np.concatenate([some[name] for some in found]) for name in found[0]}
    sound = {name: values[~np.isnan(values)] for name, values in joined.items()}
    return {name: float(np.std(values, ddof=1)) if len(values) > 1 else np.nan for name, values in sound.items()}
