"""A free intercept: the b that is best for given outputs, and dual variables that fit it."""

from __future__ import annotations

import numpy as np

from dotadd.core.losses import Loss, dual_at
from dotadd.solvers.line_search import minimum_along

ON_KINK = 1e-9  # how far from 1 a margin may be, relative to its size, to count as on the kink of the hinge
TILT = 1e-12  # of the sum of costs: above the rounding of the sums, below anything that matters


def best_intercept(loss: Loss, output: np.ndarray, sign: np.ndarray, cost: np.ndarray) -> float:
    """The b that minimises sum_i C_i loss(y_i (output_i + b)); where many do, the middle between them.

    The ends of a flat stretch are the minima of the sum tilted a little to one side and to the other.
    """
    slopes = sign.astype(np.float64)
    margins = slopes * output
    if loss is Loss.LOGISTIC:
        return minimum_along(loss, margins, slopes, cost, 0.0, 0.0, low=-np.inf)
    tilt = TILT * float(cost.sum())
    first, last = (minimum_along(loss, margins, slopes, cost, slant, 0.0, low=-np.inf) for slant in (tilt, -tilt))
    return 0.5 * (first + last)


def balanced_dual(loss: Loss, margins: np.ndarray, sign: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Dual variables alpha_i = -C_i loss'(m_i) with sum_i alpha_i y_i = 0, at margins whose intercept is the best one.

    At the best intercept the smooth losses need no more than the rounding put right. Where the hinge has its kink any
    alpha_i in [0, C_i] is as good as another: positive examples take one share of their C_i, negative ones the rest.
    """
    alpha = dual_at(int(loss), margins, cost)
    if loss is Loss.HINGE:
        kink = np.flatnonzero(np.abs(1.0 - margins) <= ON_KINK * (1.0 + np.abs(margins)))
        room, positive = cost[kink], sign[kink] > 0
        if room.any():
            alpha[kink] = 0.0
            share = (room[~positive].sum() - float((alpha * sign).sum())) / room.sum()
            share = min(max(share, 0.0), 1.0)
            alpha[kink] = room * np.where(positive, share, 1.0 - share)
    balance(alpha, sign)
    return alpha


def balance(alpha: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Scale down the heavier side so that sum_i alpha_i y_i = 0, within the bounds; returns the changes, times y."""
    before = alpha.copy()
    positive, negative = alpha[sign > 0].sum(), alpha[sign < 0].sum()
    if positive > negative:
        alpha[sign > 0] *= negative / positive
    elif negative > positive:
        alpha[sign < 0] *= positive / negative
    return (alpha - before) * sign
