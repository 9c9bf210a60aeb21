"""The tail of dual coordinate descent: when few examples still move, all of them are moved at once.

Problem:  max over the alpha_i of these examples of D(alpha), all others as they are
Given:    the examples that are still active, their margins
Returned: their alpha

Coordinate descent finds soon which examples matter, and takes hundreds of passes to find how much each of them does.
The dual in their alpha is a quadratic program in a box, min a' Q a / 2 - r' a, with their Gram matrix Q_ij = y_i y_j
(<phi(z_i), phi(z_j)> + 1 for the intercept), solved by an interior point method. When they are few, Q is small; when
they have few features among them, however many they are, Q has a low rank (low_rank.py).

Whether that is cheaper than going on is estimated in nanoseconds that do not depend on the clock, so that the same seed
gives the same bits: passes left by the rate at which the gap has been falling, times what a pass over these examples
takes; against the pairs of examples that share a feature, at most, and the Cholesky decompositions, or the steps by
features if these are fewer. A rate measured over some passes may be far off, so no more passes are thought to be left
than a few times those that were made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dotadd._util.threads import one_blas_thread
from dotadd.core.losses import Loss
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem, features_met
from dotadd.problem.row_products import gathered, row_products
from dotadd.solvers.interior_qp import Full, Quadratic, interior_qp
from dotadd.solvers.low_rank import LowRank
from dotadd.solvers.result import Progress, passes_left

MOST = 3000  # examples: 72 MB of Gram matrix, and a second for a decomposition
ENTRY = 40  # bytes for two examples: the matrix, what it is made from, and its decomposition
EXAMPLE, NONZERO = 300, 32  # bytes for an example and for each of its features, where Q has a low rank
LOOK_BACK = 5  # passes, over which examples should not have become much fewer
EARLIEST = 10  # passes: before, examples come and go
LATE = 0.25  # of the passes that are allowed: then coordinate descent has had its time, if it would not end in the rest
FORESEEN = 4  # times the passes made so far
STEADY = 0.7  # of the examples that were active then have to be so now
VISIT = 3.0  # ns a non-zero for DOT and ADD
PAIR = 0.25  # ns for two rows and a non-zero of one of them
DECOMPOSE = 0.08  # ns for the third power of the number of examples, in all decompositions together
STEPS = 40  # by features
BESIDE = 200.0  # ns for an example and a step
TWO = 1.0  # ns for two features of an example, if it is sparse
FLOP = 0.2  # ns for two features of an example, if it is dense, and for the third power of the features
LONGEST = 100  # times as long as all passes that are allowed: somebody who allows few of them wants an answer soon
ENOUGH = 0.1  # of the gap that is asked for may be left


def has_tail(problem: Problem[InMemory]) -> bool:
    """Whether a tail can be cut off: the logistic loss keeps all examples, a free intercept ties them together."""
    return problem.loss is not Loss.LOGISTIC and problem.intercept is not Intercept.FREE


def by_rows(active: float, nonzeros: float) -> float:
    """Nanoseconds for the tail of these examples by their Gram matrix; `nonzeros` is how many a row has on average."""
    return active**2 * nonzeros * PAIR + active**3 * DECOMPOSE if active <= MOST else math.inf


def by_features(active: float, nonzeros: float, features: float) -> float:
    """Nanoseconds for the tail of these examples if they have so many features among them."""
    pairs = min(0.5 * nonzeros**2 * TWO, features**2 * FLOP) + nonzeros * VISIT
    return STEPS * (active * (pairs + BESIDE) + features**3 * FLOP) if features < active else math.inf


def room(active: float, nonzeros: float, features: float) -> float:
    """Bytes that the cheaper of the two takes."""
    if by_rows(active, nonzeros) <= by_features(active, nonzeros, features):
        return ENTRY * active**2
    return active * (EXAMPLE + NONZERO * min(nonzeros, features)) + ENTRY * features**2


def solves(problem: Problem[InMemory], room_left: float) -> bool:
    """Whether the whole of a tall problem could be solved by features."""
    examples = problem.examples
    rows, nonzeros, features = len(examples), examples.mean_length, features_met(examples)
    return has_tail(problem) and features < rows and room(rows, nonzeros, features) <= room_left


def pays(trace: Sequence[Progress], nonzeros: float, features: float, tol: float, max_passes: int) -> bool:
    """Whether solving for the examples that are active is estimated to be cheaper than going on, or going on would not
    end in time; rows have so many non-zeros on average, and so many features among them. The trace is that since
    examples were last woken."""
    if len(trace) < EARLIEST:
        return False
    before, now = trace[-LOOK_BACK], trace[-1]
    cost = min(by_rows(now.active, nonzeros), by_features(now.active, nonzeros, features))
    if now.active <= 1 or now.active < STEADY * before.active or not tol < now.gap < math.inf:
        return False
    left, allowed = passes_left(_lowest(trace), tol, 2), max_passes - now.passes
    a_pass = now.active * nonzeros * VISIT
    if now.passes >= LATE * max_passes and left > allowed:
        return cost < LONGEST * max_passes * a_pass
    return min(left, allowed, FORESEEN * now.passes) * a_pass > cost


def _lowest(trace: Sequence[Progress]) -> list[Progress]:
    """The passes with the lowest gaps in either half: gaps jump up and down."""
    half = len(trace) // 2
    return [min(some, key=lambda progress: progress.gap) for some in (trace[:half], trace[half:])]


def solved_together(
    problem: Problem[InMemory],
    k: int,
    rows: np.ndarray,
    start: np.ndarray,
    output: np.ndarray,
    gap: float,
    check: Callable[[float], None] = lambda share: None,
) -> np.ndarray:
    """The best alpha of these rows in problem k, given the alpha to start from and the outputs <w, phi(z_i)> + b; their
    dual is below its maximum by a part of this gap at most. Now and then check(share that is done) may raise."""
    examples = problem.examples
    nonzeros, features = examples.mean_length, features_met(examples)  # by which room for it was found
    sign, cost = problem.columns.sign(k, rows).astype(np.float64), problem.columns.cost(k, rows)
    constant = 1.0 if problem.intercept is Intercept.REGULARIZED else 0.0
    upper, ridge = cost, np.zeros(len(rows))
    if problem.loss is Loss.SQUARED_HINGE:
        upper, ridge = np.full(len(rows), np.inf), 0.5 / cost
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # told below
        Q: Quadratic
        if by_features(len(rows), nonzeros, features) < by_rows(len(rows), nonzeros):
            Q = LowRank(gathered(examples, rows), sign, constant, ridge)
        else:
            products = row_products(examples, rows)
            products += constant
            products *= sign
            products *= sign[:, None]
            products[np.diag_indices_from(products)] += ridge
            Q = Full(products)
        r = 1.0 - sign * output + Q.times(start) - ridge * start
        best = interior_qp(Q, r, upper, start, ENOUGH * gap, check)
        before, after = (0.5 * alpha @ Q.times(alpha) - r @ alpha for alpha in (start, best))
    return best if after <= before else start  # rounding may have spoiled it, or numbers are no numbers any more
