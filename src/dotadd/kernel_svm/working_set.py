"""Which examples violate the optimality conditions, by how much, and what follows from f once they do not.

Everything here is a function of f, sign, cost and alpha as `problem.py` names them, in one pass over the examples. With
g = y - f, example i is in `up` if alpha_i y_i may rise and in `low` if it may fall; alpha is optimal if no g in `up` is
greater than one in `low`.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel


@inner
def may_rise(sign, cost, alpha):
    """Whether alpha y may rise: the example is in `up`."""
    return alpha < cost if sign > 0 else alpha > 0.0


@inner
def may_fall(sign, cost, alpha):
    """Whether alpha y may fall: the example is in `low`."""
    return alpha > 0.0 if sign > 0 else alpha < cost


@kernel
def violation(f, sign, cost, alpha):
    """max g over `up`, min g over `low`, and where they are: -inf, inf and -1 where a set is empty.

    The first minus the second is the violation.
    """
    up_max, low_min, i_up, i_low = -np.inf, np.inf, -1, -1
    for i in range(len(f)):
        g = sign[i] - f[i]
        if g > up_max and may_rise(sign[i], cost[i], alpha[i]):
            up_max, i_up = g, i
        if g < low_min and may_fall(sign[i], cost[i], alpha[i]):
            low_min, i_low = g, i
    return up_max, low_min, i_up, i_low


@kernel
def intercept(f, sign, cost, alpha):
    """b: the mean of g over the examples with 0 < alpha < C, on whose margin it lies.

    Without any, every b between max g over `up` and min g over `low` is as good: the middle, or the one bound there is.
    """
    total, free = 0.0, 0
    up_max, low_min = -np.inf, np.inf
    for i in range(len(f)):
        g = sign[i] - f[i]
        rises, falls = may_rise(sign[i], cost[i], alpha[i]), may_fall(sign[i], cost[i], alpha[i])
        if rises and falls:
            total += g
            free += 1
        if rises:
            up_max = max(up_max, g)
        if falls:
            low_min = min(low_min, g)
    if free > 0:
        return total / free
    if up_max == -np.inf:
        return low_min if low_min < np.inf else 0.0
    return up_max if low_min == np.inf else 0.5 * (up_max + low_min)


@kernel
def objectives(f, sign, cost, alpha, b):
    """Primal and dual objective; |w|^2 is sum_i alpha_i y_i f_i."""
    squared_norm, losses, total = 0.0, 0.0, 0.0
    for i in range(len(f)):
        squared_norm += alpha[i] * sign[i] * f[i]
        losses += cost[i] * max(0.0, 1.0 - sign[i] * (f[i] + b))
        total += alpha[i]
    return 0.5 * squared_norm + losses, total - 0.5 * squared_norm


def select(f: np.ndarray, sign: np.ndarray, cost: np.ndarray, alpha: np.ndarray, q: int) -> np.ndarray:
    """At most q different examples: the q / 2 of `up` with the highest g and the q / 2 of `low` with the lowest.

    The pair that violates the conditions most is among them. They are in the order of their numbers.
    """
    rises, falls = (alpha < cost, alpha > 0.0)
    up = np.where(sign > 0, rises, falls)
    low = np.where(sign > 0, falls, rises)
    g = sign - f
    chosen = np.zeros(len(f), np.bool_)
    chosen[_lowest(-g, up, q // 2)] = True
    chosen[_lowest(g, low & ~chosen, q - int(chosen.sum()))] = True
    if (room := q - int(chosen.sum())) > 0:  # `low` had fewer
        chosen[_lowest(-g, up & ~chosen, room)] = True
    return np.flatnonzero(chosen)


def _lowest(value: np.ndarray, among: np.ndarray, count: int) -> np.ndarray:
    """Where the lowest values are, of those that take part."""
    rows = np.flatnonzero(among)
    return rows if len(rows) <= count else rows[np.argpartition(value[rows], count)[:count]]
