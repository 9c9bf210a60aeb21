"""Dual coordinate descent over the rows of one block: the step that dcd, stream and the block minimisers share.

Each step takes one example, DOTs it with w, moves its alpha to the exact optimum and ADDs the change to w. Examples
whose alpha sits at a bound and wants to stay there, by more than the thresholds, become inactive.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel, prefetch
from dotadd.block import row_add, row_dot
from dotadd.losses import HINGE, LOGISTIC, SQUARED_HINGE, dual_step, dual_term, value
from dotadd.solvers.problem import Intercept

# The running numbers of one binary problem, in one array so that a kernel call leaves them consistent.
INTERCEPT, BALANCE, DUAL_TERMS, HALF_NORM, GAP, PG_MAX, PG_MIN, OLD_PG_MAX, OLD_PG_MIN, ACTIVE = range(10)
N_NUMBERS = 10
AHEAD = 3  # rows: the next but two is fetched into the cache while this one is worked on


def begin_sweep(numbers: np.ndarray) -> None:
    """Forget what the last sweep has summed up."""
    numbers[GAP], numbers[ACTIVE] = 0.0, 0
    numbers[PG_MAX], numbers[PG_MIN] = -np.inf, np.inf


def end_sweep(numbers: np.ndarray) -> None:
    """Make the largest projected gradients of this sweep the thresholds of the next one."""
    numbers[OLD_PG_MAX] = numbers[PG_MAX] if numbers[PG_MAX] > 0.0 else np.inf
    numbers[OLD_PG_MIN] = numbers[PG_MIN] if numbers[PG_MIN] < 0.0 else -np.inf


def forget_thresholds(numbers: np.ndarray) -> None:
    """Let no example become inactive in the next sweep."""
    numbers[OLD_PG_MAX], numbers[OLD_PG_MIN] = np.inf, -np.inf


def dual_objective(numbers: np.ndarray, intercept: Intercept) -> float:
    """D(alpha), as far as rounding lets the running numbers tell."""
    dual = float(numbers[DUAL_TERMS] - numbers[HALF_NORM])
    return dual - 0.5 * float(numbers[INTERCEPT] * numbers[INTERCEPT]) if intercept is Intercept.REGULARIZED else dual


def multiplier_term(numbers: np.ndarray, intercept: Intercept) -> float:
    """What a free intercept takes from the sum of the local gaps while sum_i alpha_i y_i is not 0."""
    return float(numbers[INTERCEPT] * numbers[BALANCE]) if intercept is Intercept.FREE else 0.0


def move_multiplier(numbers: np.ndarray, intercept: Intercept, step: float) -> None:
    """The method of multipliers for a free intercept, after a pass. Moved more often it runs away."""
    if intercept is Intercept.FREE:
        numbers[INTERCEPT] += step * numbers[BALANCE]


@kernel
def descend(
    start, end, indices, values, at, rows, cold,
    sign, cost, norms, step, loss, shrink,
    alpha, active, w, numbers,
):  # fmt: skip
    """Algorithm 3 over the rows of one block. `cold`: the rows lie far away, so fetch them ahead of their turn."""
    b, balance = numbers[INTERCEPT], numbers[BALANCE]
    dual_terms, half_norm, gap = numbers[DUAL_TERMS], numbers[HALF_NORM], numbers[GAP]
    pg_max, pg_min, kept = numbers[PG_MAX], numbers[PG_MIN], numbers[ACTIVE]
    old_pg_max, old_pg_min = numbers[OLD_PG_MAX], numbers[OLD_PG_MIN]
    n = len(at)
    for j in range(n):
        if cold and j + 2 * AHEAD < n:
            far = np.uint64(rows[j + 2 * AHEAD])
            prefetch(start, far)
            prefetch(alpha, far)
            prefetch(norms, far)
            prefetch(cost, far)
            prefetch(sign, far)
            near = np.uint64(at[j + AHEAD])
            first, stop = np.uint64(start[near]), np.uint64(end[near])
            for k in range(first, min(stop, first + np.uint64(128)), np.uint64(16)):  # a line of the cache at a time
                if indices is not None:
                    prefetch(indices, k)
                if values is not None:
                    prefetch(values, k)
        i = np.uint64(rows[j])
        if active[i] == 0:
            continue
        lo, hi = start[np.uint64(at[j])], end[np.uint64(at[j])]
        y, c, a = np.float64(sign[i]), cost[i], alpha[i]
        m = y * (row_dot(indices, values, lo, hi, w) + b)
        old_term = dual_term(loss, a, c)
        gap += c * value(loss, m) - old_term + a * m
        if loss != LOGISTIC:
            pg = m - 1.0
            if loss == SQUARED_HINGE:
                pg += 0.5 * a / c
            if a == 0.0:
                if shrink and pg > old_pg_max:
                    active[i] = 0
                    continue
                pg = min(pg, 0.0)
            elif a == c and loss == HINGE:
                if shrink and pg < old_pg_min:
                    active[i] = 0
                    continue
                pg = max(pg, 0.0)
            pg_max, pg_min = max(pg_max, pg), min(pg_min, pg)
            if abs(pg) <= 1e-12:
                kept += 1
                continue
        kept += 1
        new = dual_step(loss, a, c, m, norms[i])
        change = new - a
        if change != 0.0:
            alpha[i] = new
            half_norm += change * (m - y * b) + 0.5 * change * change * (norms[i] - step)
            dual_terms += dual_term(loss, new, c) - old_term
            row_add(indices, values, lo, hi, w.dtype.type(change * y), w)
            b += step * change * y
            balance += change * y
    numbers[INTERCEPT], numbers[BALANCE] = b, balance
    numbers[DUAL_TERMS], numbers[HALF_NORM], numbers[GAP] = dual_terms, half_norm, gap
    numbers[PG_MAX], numbers[PG_MIN], numbers[ACTIVE] = pg_max, pg_min, kept
