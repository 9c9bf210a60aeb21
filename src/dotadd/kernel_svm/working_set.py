"""Which examples violate the optimality conditions, by how much, and what follows from f once they do not.

Everything here is a function of f, sign, cost and alpha as `problem.py` names them, in one pass over the examples. With
g = y - f, example i is in `up` if alpha_i y_i may rise and in `low` if it may fall; alpha is optimal if no g in `up` is
greater than one in `low`.

A large chunk that has been solved leaves an interval of g: its members in `up` lie below, those in `low` above, but for
the tolerance. An example outside violates the conditions with the chunk if its g lies on the wrong side. `next_chunk`
chooses by that which examples come next.
"""

from __future__ import annotations

from typing import NamedTuple

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


def widest(f: np.ndarray, sign: np.ndarray, cost: np.ndarray, alpha: np.ndarray) -> float:
    """The violation; below 0 there is none."""
    up_max, low_min, *_ = violation(f, sign, cost, alpha)
    return float(up_max - low_min)


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


class Limits(NamedTuple):
    """g of examples in `up` has to be `high` at most, that of examples in `low` at least `low`."""

    low: float
    high: float

    @classmethod
    def of(cls, f: np.ndarray, sign: np.ndarray, cost: np.ndarray, alpha: np.ndarray, tol: float) -> Limits:
        """Limits that hold within a solved chunk, with half of the tolerance on either side.

        An example beyond them violates the conditions by half of tol or more together with some member of the chunk.
        """
        up_max, low_min, *_ = violation(f, sign, cost, alpha)
        middle = 0.5 * (up_max + low_min)
        return cls(min(middle, up_max) - 0.5 * tol, max(middle, low_min) + 0.5 * tol)


@kernel
def margins(f, sign, cost, alpha, low, high):
    """How far each example is from breaking the limits: by how much g may move; below 0 it breaks them already."""
    out = np.full(len(f), np.inf)
    for i in range(len(f)):
        g = sign[i] - f[i]
        if may_rise(sign[i], cost[i], alpha[i]):
            out[i] = high - g
        if may_fall(sign[i], cost[i], alpha[i]):
            out[i] = min(out[i], g - low)
    return out


def next_chunk(
    f: np.ndarray,
    sign: np.ndarray,
    cost: np.ndarray,
    alpha: np.ndarray,
    size: int,
    newcomers: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """At most `size` of these examples; f is as of now.

    The pair that violates the conditions most is among them, so every chunk makes progress. Free support vectors stay,
    as far as they leave room for this many newcomers; the rest of the room is for those that violate most, and then for
    those nearest to it, as many of `up` as of `low`.
    """
    free = np.flatnonzero((alpha > 0.0) & (alpha < cost))
    if len(free) > (places := size - max(2, newcomers)):
        free = rng.choice(free, places, replace=False)
    chosen = np.zeros(len(f), np.bool_)
    chosen[free] = True
    others = rng.permutation(np.flatnonzero(~chosen))  # at first all are alike: a random sample of both classes
    room = size - len(free)
    chosen[others[select(f[others], sign[others], cost[others], alpha[others], room)]] = True
    return np.flatnonzero(chosen)
