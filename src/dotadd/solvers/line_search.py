"""The minimum of the objective along a line, exact for the hinge losses, without sorting.

Problem:  min_t f(t) = quadratic/2 t^2 + linear t + sum_i C_i loss(margins_i + t slopes_i),  t >= low
Given:    the margins at t = 0 and how fast each of them changes
Returned: t

The derivative f' never falls. For the hinge losses it is a chain of straight pieces that meet at the kinks
t_i = (1 - margins_i) / slopes_i: at its kink an example's hinge makes f' jump by C_i |slopes_i|, and its squared hinge,
whose share of f' is a (t - t_i) with a = 2 C_i slopes_i^2 on one side and 0 on the other, turns f' by a. So the zero is
found as quickselect finds a rank: sum f' up to a pivot kink, drop the kinks on the side where the zero is not, carry
the sum of those passed. Half of the kinks go each time, and where there are many, a sample tells first between which
two points the zero most likely lies. All of it takes a few passes over the arrays; nothing is sorted.

For the logistic loss it is Newton's method on f', kept within a bracket.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.core.losses import HINGE, Loss

FEW_KINKS = 15  # of which the pivot is the median
SAMPLE = 4096  # examples; from four times as many on, a sample narrows down the range
SIGMAS = 3.0  # of the sampled derivative, on either side
SAME_PIECE = 1e-9  # relative; a correction below this changes nothing more than rounding
ROUNDING = 4.0 * np.finfo(np.float64).eps
MAX_NEWTON = 200  # passes; five are common, many only where f falls for ever


def minimum_along(
    loss: int,
    margins: np.ndarray,
    slopes: np.ndarray,
    cost: np.ndarray,
    linear: float,
    quadratic: float,
    low: float = 0.0,
) -> float:
    """The t >= low (which may be -inf) that minimises f; all arrays float64.

    Where f keeps falling, which it can only if quadratic = 0, the last kink (for hinge losses), or `low`, or else 0.
    """
    arrays = plain(margins), plain(slopes), plain(cost)
    if loss != Loss.LOGISTIC:
        return float(_over_pieces(int(loss), *arrays, float(linear), float(quadratic), float(low)))
    steepest = max(float(slopes.max(initial=0.0)), -float(slopes.min(initial=0.0)))

    def sums(t: float, derivative: float, rise: float, size: float) -> tuple[float, float, float]:
        return logistic_sums(*arrays, t, derivative, rise, size)

    return logistic_minimum(sums, steepest, float(linear), float(quadratic), float(low))


@kernel
def _over_pieces(loss, margins, slopes, cost, linear, quadratic, low):
    """The hinge losses. f' < 0 right of `left`, and f' >= 0 right of `right`; the zero is in ]left, right]."""
    left, right = low, np.inf
    rise, level = _piece_after(loss, margins, slopes, cost, linear, quadratic, low)
    if low > -np.inf and rise * low + level >= 0.0:
        return low
    if len(margins) >= 4 * SAMPLE:
        for t in _likely_range(loss, margins, slopes, cost, linear, quadratic, low):
            if left < t < right:
                new_rise, new_level = _piece_after(loss, margins, slopes, cost, linear, quadratic, t)
                if new_rise * t + new_level < 0.0:
                    left, rise, level = t, new_rise, new_level
                else:
                    right = t
    left, right = _quickselect(loss, margins, slopes, cost, left, right, rise, level)
    return max(low, _zero_between(loss, margins, slopes, cost, linear, quadratic, left, right))


@inner
def _piece_after(loss, margins, slopes, cost, linear, quadratic, t):
    """The piece of f' that begins at t: f'(t) = rise t + level."""
    rise, level = quadratic, linear
    for i in range(len(margins)):
        c, s, slack = cost[i], slopes[i], 1.0 - margins[i]
        c = c if (slack / s > t) == (s > 0.0) else 0.0
        if loss == HINGE:
            level -= c * s
        else:
            rise += 2.0 * c * s * s
            level -= 2.0 * c * s * slack
    return rise, level


@inner
def _likely_range(loss, margins, slopes, cost, linear, quadratic, low):
    """Two points that most likely have the zero between them: the zeros of a sample's f' plus and minus its error."""
    m, s, c = np.empty(SAMPLE), np.empty(SAMPLE), np.empty(SAMPLE)
    share = len(margins) / SAMPLE
    for k in range(SAMPLE):
        i = np.int64((k + 0.5) * share)
        m[k], s[k], c[k] = margins[i], slopes[i], share * cost[i]
    t = _sampled_zero(loss, m, s, c, linear, quadratic, low)
    variance = 0.0
    for k in range(SAMPLE):
        slack = 1.0 - m[k] - t * s[k]
        if slack > 0.0:
            term = c[k] * s[k] if loss == HINGE else 2.0 * c[k] * s[k] * slack
            variance += term * term
    error = SIGMAS * np.sqrt(variance)
    first = _sampled_zero(loss, m, s, c, linear + error, quadratic, low)
    last = _sampled_zero(loss, m, s, c, linear - error, quadratic, low)
    return first, last


@inner
def _sampled_zero(loss, margins, slopes, cost, linear, quadratic, low):
    rise, level = _piece_after(loss, margins, slopes, cost, linear, quadratic, low)
    left, right = _quickselect(loss, margins, slopes, cost, low, np.inf, rise, level)
    return _zero_between(loss, margins, slopes, cost, linear, quadratic, left, right)


@inner
def _quickselect(loss, margins, slopes, cost, left, right, rise, level):
    """Narrow ]left, right] until no kink lies between; `rise` and `level` are of the piece that begins at left."""
    kinks, weights = np.empty(len(margins)), np.empty(len(margins))
    n = 0
    for i in range(len(margins)):  # here and below, writing first and counting later does without a branch
        s = slopes[i]
        kink = (1.0 - margins[i]) / s
        kinks[n] = kink
        weights[n] = cost[i] * abs(s) if loss == HINGE else -2.0 * cost[i] * s * abs(s)
        n += left < kink < right
    while n > 0:
        pivot = _median_of_few(kinks, n)
        weight, moment = 0.0, 0.0
        for i in range(n):
            passed = weights[i] if kinks[i] <= pivot else 0.0
            weight += passed
            moment += passed * kinks[i]
        if loss == HINGE:
            new_rise, new_level = rise, level + weight
        else:
            new_rise, new_level = rise + weight, level - moment
        m = 0
        if new_rise * pivot + new_level < 0.0:
            left, rise, level = pivot, new_rise, new_level
            for i in range(n):
                kink, weight = kinks[i], weights[i]
                kinks[m], weights[m] = kink, weight
                m += kink > pivot
        else:
            right = pivot
            for i in range(n):
                kink, weight = kinks[i], weights[i]
                kinks[m], weights[m] = kink, weight
                m += kink < pivot
        n = m
    return left, right


@inner
def _median_of_few(kinks, n):
    size = min(n, FEW_KINKS)
    few = np.empty(FEW_KINKS)
    for k in range(size):
        kink = kinks[(2 * k + 1) * n // (2 * size)]
        j = k
        while j > 0 and few[j - 1] > kink:
            few[j] = few[j - 1]
            j -= 1
        few[j] = kink
    return few[size // 2]


@inner
def _zero_between(loss, margins, slopes, cost, linear, quadratic, left, right):
    """The zero of the straight piece of f' between two neighbouring kinks, or the end of it where f' jumps over 0.

    The piece is summed anew, as the sums that led here hold the rounding of all examples that were passed. For the
    squared hinge, further steps of Newton find the right piece if that rounding led to a neighbour of it.
    """
    derivative, rise = _piece(loss, margins, slopes, cost, linear, quadratic, left, right, 0.0)
    if rise <= 0.0:
        if left == -np.inf or (derivative < 0.0 and right < np.inf):
            return right if right < np.inf else 0.0
        return left
    t = min(max(-derivative / rise, left), right)
    for _ in range(4 if loss != HINGE else 0):
        derivative, rise = _piece(loss, margins, slopes, cost, linear, quadratic, t, t, t)
        if rise <= 0.0:
            break
        t -= derivative / rise
        if abs(derivative) <= SAME_PIECE * abs(t) * rise:
            break
    return t


@inner
def _piece(loss, margins, slopes, cost, linear, quadratic, left, right, t):
    """Value at t, and slope, of the straight piece of f' between `left` and `right`."""
    derivative, rise = linear + quadratic * t, quadratic
    for i in range(len(margins)):
        c, s, slack = cost[i], slopes[i], 1.0 - margins[i]
        kink = slack / s
        c = c if (kink >= right if s > 0.0 else kink <= left) else 0.0
        if loss == HINGE:
            derivative -= c * s
        else:
            derivative -= 2.0 * c * s * (slack - t * s)
            rise += 2.0 * c * s * s
    return derivative, rise


Sums = Callable[[float, float, float, float], tuple[float, float, float]]


def logistic_minimum(sums: Sums, steepest: float, linear: float, quadratic: float, low: float) -> float:
    """The t for the logistic loss. sums(t, derivative, rise, size) adds to these what the examples add to f'(t), to
    f''(t), and to the sum of the absolute values of what f'(t) is a sum of; `steepest` is max |slopes|.

    As f's third derivative is at most max |slopes| f'', a step leaves an error of its square.
    """
    t = low if low > -math.inf else 0.0
    left, right, step, previous = low, math.inf, 0.0, math.inf
    for _ in range(MAX_NEWTON):
        derivative, rise, size = sums(t, linear + quadratic * t, quadratic, abs(linear) + quadratic * abs(t))
        if abs(derivative) <= ROUNDING * size or (t == low and derivative >= 0.0):
            break
        if derivative < 0.0:
            left = t
        else:
            right = t
        slow = abs(derivative) > 0.25 * previous
        previous = abs(derivative)
        newton = -derivative / rise if rise != 0.0 else math.copysign(math.inf, -derivative)
        if t + newton == t:  # where f' is next to nothing, it may be too short for a number
            break
        ahead = right if derivative < 0.0 else left
        if abs(ahead) == math.inf and (slow or abs(newton) == math.inf):
            # Far out Newton's steps are short. Double them until they have passed the zero.
            reach = max(2.0 * abs(step), abs(newton) if abs(newton) < math.inf else 0.0)
            step = math.copysign(reach if reach > 0.0 else 1.0, newton)
        elif slow or not left < t + newton < right:
            step = 0.5 * (left + right) - t
        elif abs(newton) <= abs(t + newton) and steepest * newton * newton <= ROUNDING * abs(t + newton):
            return t + newton
        else:
            step = newton
        if t + step == t:
            break
        t += step
    return t


@kernel
def logistic_sums(margins, slopes, cost, t, derivative, rise, size):
    """These three, and what the examples add to them at t."""
    for i in range(len(margins)):
        s = slopes[i]
        share = 1.0 / (1.0 + np.exp(margins[i] + t * s))
        term = cost[i] * s * share
        derivative -= term
        size += abs(term)
        rise += term * s * (1.0 - share)
    return derivative, rise, size
