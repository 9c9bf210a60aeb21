"""Cutting planes: OCAS (Franc and Sonnenburg 2009), BMRM (Teo et al. 2007), SVM-perf's 1-slack form (Joachims 2006).

Problem:  min_{w, b} P(w, b) = 1/2 |w|^2 + R(w, b), the risk R being a sum over all examples
Given:    DOT of all examples for the outputs, ADD of some of them for a subgradient of R
Returned: w, b; alpha, a weighted mean of the planes' dual variables, which proves the gap

The loop is one for all. R is replaced by the planes that are known to lie below it (planes.py); w_t is the lowest point
above them, and its height is below every P. Between the best w so far and w_t a better w is chosen, and between that
and w_t the point where the next plane touches R. The methods differ in these two choices:

    ocas      the lowest point of P on the line; the plane a little further on
    bmrm      w_t if it is better, the best w if not; the plane at w_t
    svmperf   w_t; the plane at w_t

A free intercept is minimised away: R(w) = min_b R(w, b) is convex, its subgradients are those at the best b with
sum_i alpha_i y_i = 0, and planes have no slope in b.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dotadd.core.block import inner_product
from dotadd.core.losses import Loss, dual_at, total_dual_term, total_loss
from dotadd.problem.problem import Intercept
from dotadd.solvers.free_intercept import balanced_dual, best_intercept
from dotadd.solvers.line_search import minimum_along
from dotadd.solvers.planes import Planes, Shares
from dotadd.solvers.points import ByRows, ByVectors, kind_of_points
from dotadd.solvers.serving import Asking, Asks, Steps

QP_SHARE = 0.05  # of the tolerated gap: so exact is the quadratic program over the planes


class Line(NamedTuple):
    """The objective on the line from the best w so far, t = 0, to the lowest point w_t above the planes, t = 1."""

    loss: int
    margins: np.ndarray
    slopes: np.ndarray
    cost: np.ndarray
    linear: float
    quadratic: float

    def __call__(self, t: float) -> float:
        """P at t, but for the constant |w|^2 / 2."""
        risk = total_loss(self.loss, self.margins + t * self.slopes, self.cost)
        return self.linear * t + 0.5 * self.quadratic * t * t + risk


BEST: dict[str, Callable[[Line], float]] = {  # where on the line the new best w is
    "the best of the line": lambda line: minimum_along(*line),
    "the better end": lambda line: float(line(1.0) < line(0.0)),
    "its end": lambda line: 1.0,
}


def bundle(run: Asking, best: str, touch: float) -> Steps:
    """Minimise the objective of one binary problem, from run.w: BEST says where the new best w is, and the plane
    touches R at `touch` of the way from there to w_t."""
    kind, rows, threads = kind_of_points(run), len(run.sign), run.problem.examples.threads
    dim, dtype = kind.of_a_plane(run)
    exact = run.problem.loss is Loss.HINGE
    with run.room(Planes.most_bytes(dim, rows, dtype, exact=exact)) as nbytes:
        planes = Planes(dim, rows, dtype, nbytes=nbytes, exact=exact, threads=threads)
        yield from _descend(run, BEST[best], touch, planes, kind(run, planes))


def _descend(
    run: Asking, best: Callable[[Line], float], touch: float, planes: Planes, points: ByVectors | ByRows
) -> Steps:
    problem, loss, cost = run.problem, int(run.problem.loss), run.cost
    signs = problem.columns.sign(run.k)
    penalty = 1.0 if problem.intercept is Intercept.REGULARIZED else 0.0
    origin = 0.0 if run.centre is None else run.centre.b

    def refit(margins: np.ndarray) -> float:
        """Move margins to where a free intercept is best, and say how far it went."""
        if problem.intercept is not Intercept.FREE:
            return 0.0
        shift = best_intercept(problem.loss, margins * run.sign, signs, cost)
        margins += shift * run.sign
        return shift

    def objective(margins: np.ndarray) -> float:
        """P at the best w."""
        with run.phase("sort"):
            return points.penalty(run.intercept) + total_loss(loss, margins, cost)

    def cut(touching: np.ndarray, primal: float) -> Asks[float]:
        """Take in the plane that touches R there; returns the height of the lowest point above all planes."""
        with run.phase("sort"):
            if problem.intercept is Intercept.FREE:
                alpha = balanced_dual(problem.loss, touching, signs, cost)
            else:
                alpha = dual_at(loss, touching, cost)
            slope = penalty * inner_product(alpha, run.sign)
            offset = total_dual_term(loss, alpha, cost) - slope * origin  # planes are over w - w0 and b - b0
            shares = Shares.of(alpha, cost)
        yield from points.cut(alpha * run.sign, slope, offset, shares)
        with run.phase("qp"):
            return planes.solve(QP_SHARE * run.settings.tol * primal)

    try:
        if run.resumed is not None and points.restore(run.resumed):
            margins, height = run.resumed["margins"], run.resumed["height"]
        else:
            margins = run.margins((yield from points.begin()), run.intercept)
            run.intercept += refit(margins)
            primal = objective(margins)
            if not run.goes_on(primal, 0.0):
                return
            height = yield from cut(margins, primal)
        while True:
            run.rest(points.state, margins=margins, height=height)
            lowest = yield from points.lowest()
            intercept = origin + lowest.intercept
            with run.phase("sort"):
                there = run.margins(lowest.output, intercept)
                intercept += refit(there)
                slopes, rise = there - margins, intercept - run.intercept
                linear = lowest.linear + penalty * (run.intercept - origin) * rise
                quadratic = lowest.quadratic + penalty * rise * rise
                t = best(Line(loss, margins, slopes, cost, linear, quadratic))
            points.move(t)
            with run.phase("sort"):
                run.intercept += t * rise
                margins += t * slopes
                run.intercept += refit(margins)
                touching = margins + touch * (there - margins)
                refit(touching)
            primal = objective(margins)
            if not run.goes_on(primal, height):
                return
            height = yield from cut(touching, primal)
    finally:
        run.alpha = planes.alpha(cost)
        points.leave()
