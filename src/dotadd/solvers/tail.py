"""The tail of dual coordinate descent: when few examples still move, all of them are moved at once.

Problem:  max over the alpha_i of these examples of D(alpha), all others as they are
Given:    the examples that are still active, their margins
Returned: their alpha

Coordinate descent finds soon which examples matter, and takes hundreds of passes to find how much each of them does.
But when they are few, their Gram matrix Q_ij = y_i y_j (<phi(z_i), phi(z_j)> + 1 for the intercept) is small, and the
dual in their alpha is a quadratic program in a box, min a' Q a / 2 - r' a, solved by an interior point method.

Whether that is cheaper than going on is estimated in nanoseconds that do not depend on the clock, so that the same seed
gives the same bits: passes left by the rate at which the gap has been falling, times what a pass over these examples
takes; against the pairs of examples that share a feature, at most, and the Cholesky decompositions. A rate measured
over some passes may be far off, so no more passes are thought to be left than a few times those that were made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dotadd.core.losses import Loss
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.problem.row_products import row_products
from dotadd.solvers.interior_qp import interior_qp
from dotadd.solvers.result import Progress, passes_left

MOST = 3000  # examples: 72 MB of Gram matrix, and a second for a decomposition
ENTRY = 40  # bytes for two examples: the matrix, what it is made from, and its decomposition
LOOK_BACK = 5  # passes, over which the rate is measured
EARLIEST = 10  # passes: before, examples come and go
LATE = 0.25  # of the passes that are allowed: then coordinate descent has had its time, if it would not end in the rest
FORESEEN = 4  # times the passes made so far
STEADY = 0.7  # of the examples that were active then have to be so now
VISIT = 3.0  # ns a non-zero for DOT and ADD
PAIR = 0.5  # ns for two rows and a non-zero of one of them
DECOMPOSE = 0.35  # ns for the third power of the number of examples, in all decompositions together
ENOUGH = 0.01  # of the gap that is asked for may be left


def has_tail(problem: Problem[InMemory]) -> bool:
    """Whether a tail can be cut off: the logistic loss keeps all examples, a free intercept ties them together."""
    return problem.loss is not Loss.LOGISTIC and problem.intercept is not Intercept.FREE


def pays(trace: Sequence[Progress], nonzeros: float, tol: float, max_passes: int) -> bool:
    """Whether solving for the examples that are active is estimated to be cheaper than going on, or going on would not
    end in time; `nonzeros` is how many a row has on average."""
    if len(trace) < EARLIEST:
        return False
    before, now = trace[-LOOK_BACK], trace[-1]
    if not 1 < now.active <= MOST or now.active < STEADY * before.active or not tol < now.gap < math.inf:
        return False
    left, allowed = passes_left(trace, tol, LOOK_BACK), max_passes - now.passes
    if now.passes >= LATE * max_passes and left > allowed:
        return True
    going_on = min(left, allowed, FORESEEN * now.passes) * now.active * nonzeros * VISIT
    return going_on > now.active**2 * nonzeros * PAIR + now.active**3 * DECOMPOSE


def solved_together(
    problem: Problem[InMemory],
    k: int,
    rows: np.ndarray,
    start: np.ndarray,
    output: np.ndarray,
    gap: float,
    check: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """The best alpha of these rows in problem k, given the alpha to start from and the outputs <w, phi(z_i)> + b; their
    dual is below its maximum by a part of this gap at most. Now and then check() may raise."""
    sign, cost = problem.columns.sign(k, rows).astype(np.float64), problem.columns.cost(k, rows)
    constant = 1.0 if problem.intercept is Intercept.REGULARIZED else 0.0
    upper = cost
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        Q = (row_products(problem.examples, rows) + constant) * np.outer(sign, sign)
        r = 1.0 - sign * output + Q @ start
        if problem.loss is Loss.SQUARED_HINGE:
            Q[np.diag_indices_from(Q)] += 0.5 / cost
            upper = np.full(len(rows), np.inf)
        best = interior_qp(Q, r, upper, ENOUGH * gap, check)
        before, after = (0.5 * alpha @ Q @ alpha - r @ alpha for alpha in (start, best))
    return best if after <= before else start  # rounding may have spoiled it, or numbers are no numbers any more
