"""The best multiple of an answer: coordinate descent's w is often a little too short.

Problem:  min_t P(t w, t b) for the hinge losses, w and b being an answer on its way
Given:    the margins of w and b, their primal and what their rows add up to
Returned: t, and the relative duality gap of t w and t b

While alpha is on its way, the margins of examples that should have 1 lie around it, and each that lies below costs C
times what it lacks. Where C is large that is most of the gap: w times 1.01 leaves next to nothing of it, and costs 2 %
of |w|^2 / 2. So the answer is as good as was asked for after a third of the passes (10,000 mails by words, C = 28, a
gap of 1 %: 240 passes instead of 690). The identity by which gaps are proved holds for any w and alpha. Coordinate
descent goes on with the w that belongs to alpha: only an answer is stretched, and its margins are computed anew.
"""

from __future__ import annotations

import numpy as np

from dotadd.core.losses import Loss, total_loss
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.line_search import minimum_along
from dotadd.solvers.proof import RowSums
from dotadd.solvers.result import relative_gap

ROUNDED = 1.01  # times the gap: t w is rounded, and nobody has looked at it yet


def stretch(problem: Problem, k: int, margins: np.ndarray, primal: float, sums: RowSums) -> tuple[float, float]:
    """t and the gap; 1 and the gap of w itself where that is not known to be any worse."""
    as_it_is = 1.0, relative_gap(primal, sums.gaps)
    if problem.loss is Loss.LOGISTIC or problem.intercept is Intercept.FREE or problem.centre(k) is not None:
        return as_it_is
    cost, penalty = problem.columns.cost(k), primal - sums.losses
    t = 1.0 + minimum_along(int(problem.loss), margins, margins, cost, 2.0 * penalty, 2.0 * penalty, -0.5)
    best = t * t * penalty + total_loss(problem.loss, t * margins, cost)
    gap = relative_gap(best, ROUNDED * (best - (primal - sums.gaps)))
    return (t, gap) if gap < as_it_is[1] else as_it_is
