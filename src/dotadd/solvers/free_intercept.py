"""A free intercept: the b that is best for given outputs, and dual variables that fit it."""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.losses import Loss, slope


def balance(alpha: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Scale down the heavier side so that sum_i alpha_i y_i = 0, within the bounds; returns the changes, times y."""
    before = alpha.copy()
    positive, negative = alpha[sign > 0].sum(), alpha[sign < 0].sum()
    if positive > negative:
        alpha[sign > 0] *= negative / positive
    elif negative > positive:
        alpha[sign < 0] *= positive / negative
    return (alpha - before) * sign


def best_intercept(loss: Loss, output: np.ndarray, sign: np.ndarray, cost: np.ndarray) -> float:
    """The b that minimises sum_i C_i loss(y_i (output_i + b)): where the derivative, which rises, changes sign."""
    reach = float(np.abs(output).max(initial=0.0)) + 1.0
    while loss is Loss.LOGISTIC and (
        _intercept_slope(loss, output, sign, cost, -reach) > 0.0
        or _intercept_slope(loss, output, sign, cost, reach) < 0.0
    ):
        reach *= 2.0
    low, high = -reach, reach
    while high - low > 1e-12 * reach:
        middle = 0.5 * (low + high)
        if _intercept_slope(loss, output, sign, cost, middle) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@kernel
def _intercept_slope(loss, output, sign, cost, intercept):
    total = 0.0
    for i in range(len(output)):
        total += cost[i] * sign[i] * slope(loss, sign[i] * (output[i] + intercept))
    return total
