"""Newton's method with conjugate gradients (Lin, Weng and Keerthi 2008) for the squared hinge and the logistic loss.

Problem:  min_w P(w, b), with gradient g = w - sum_i alpha_i y_i phi(z_i), alpha_i = -C_i loss'(m_i),
          and Hessian H = I + sum_i D_i phi(z_i) phi(z_i)', D_i = C_i loss''(m_i)
Given:    DOT, ADD, and products with H, which are a DOT and an ADD of the examples with D_i > 0
Returned: w, b; alpha follows from them

Each iteration minimises the quadratic model g's + s'Hs / 2 by conjugate gradients, preconditioned by the diagonal of H
where it is cheap to have. They stop when the last of k steps has gained less than a share 1/k of eta of what all have
gained (Nash and Sofer's test); eta falls with the gradient, so the last iterations converge faster than linearly. Where
features are few, and rows have few of them, H itself takes no longer than some of these products, and the model is
minimised by its Cholesky decomposition.

Then w moves along s. The paper's trust region asks how far the model can be believed. Here that is known: once X s is,
so are the outputs of w + t s for every t, and the best t is found exactly without another pass over the data. A ball
beside the search only made for more passes.

At any w the duality gap is |g|^2 / 2: with alpha as above each local gap is 0 (problem.py), and w - w_alpha is g.

The intercept is one more number at the end of each vector, with a penalty or without. A free one is set to its best
value after each step, so that sum_i alpha_i y_i = 0 and the gap holds.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd._util.lapack import cholesky
from dotadd.core.block import inner_product, squared_length
from dotadd.core.losses import LOGISTIC, dual_at
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.free_intercept import best_intercept
from dotadd.solvers.line_search import minimum_along
from dotadd.solvers.serving import Add, Asking, Asks, Dot, DotAdd, Hessian, Steps

ETA = 0.5  # at most; 3 sqrt(|g| / |g at the start|) when that is less
ETA_FALL = 3.0
NARROW, SHORT = 512, 50.0  # features in all, and of a row: below, H takes no longer than ten products with it


def newton(run: Asking) -> Steps:
    """Minimise the objective of one binary problem, from run.w."""
    problem, w = run.problem, run.w
    loss, cost, signs = int(problem.loss), run.cost, problem.columns.sign(run.k)
    penalty = 1.0 if problem.intercept is Intercept.REGULARIZED else 0.0
    origin = 0.0 if run.centre is None else run.centre.b
    if run.resumed is None:
        output, steepest = (yield from run.first_outputs()), 0.0
    else:
        output, steepest = run.resumed["output"], run.resumed["steepest"]
    step_of = _whole_step if narrow(problem) else _step
    while True:
        if run.passes < run.settings.max_passes:  # otherwise that may have cut the step short, and is taken again
            run.rest(output=output, steepest=steepest)
        if problem.intercept is Intercept.FREE:
            run.intercept = best_intercept(problem.loss, output, signs, cost)
        margins = run.margins(output, run.intercept)
        primal = problem.primal(w, run.intercept, margins, run.k)
        alpha = dual_at(loss, margins, cost)
        g = np.append(w, np.float64(penalty * (run.intercept - origin)))
        if run.centre is not None:
            g[:-1] -= run.centre.w
        yield Add(-alpha * run.sign, g[:-1])
        if problem.intercept is not Intercept.NONE:
            g[-1] -= inner_product(alpha, run.sign)
        length = np.sqrt(g @ g)
        if not run.goes_on(primal, primal - 0.5 * length * length):
            return
        steepest = max(steepest, length)
        eta = min(ETA, ETA_FALL * np.sqrt(length / steepest))
        s = yield from step_of(run, g, _curvature(loss, margins, cost), penalty, eta)
        step = s[:-1].astype(w.dtype)
        change = yield Dot(step)
        linear = inner_product(w, step) + penalty * (run.intercept - origin) * s[-1]
        if run.centre is not None:
            linear -= inner_product(run.centre.w, step)
        quadratic = squared_length(step) + penalty * s[-1] ** 2
        t = minimum_along(loss, margins, run.margins(change, s[-1]), cost, linear, quadratic)
        w += w.dtype.type(t) * step
        run.intercept += t * s[-1]
        output += t * change


def narrow(problem: Problem) -> bool:
    """Whether the Hessian is had as fast as some products with it."""
    examples = problem.examples
    if examples.dim > NARROW or examples.bulk:
        return False
    return not isinstance(examples, InMemory) or examples.mean_length <= SHORT


def _whole_step(run: Asking, g: np.ndarray, curvature: np.ndarray, penalty: float, eta: float) -> Asks[np.ndarray]:
    """The minimum of the model, by the Hessian."""
    hessian = np.zeros((len(g), len(g)))
    products = np.zeros((len(g) - 1, len(g) - 1))
    yield Hessian(curvature, products)
    np.add(products, products.T, out=hessian[:-1, :-1])
    if run.problem.intercept is not Intercept.NONE:
        yield Add(curvature, hessian[-1, :-1])
        hessian[:-1, -1] = hessian[-1, :-1]
        hessian[-1, -1] = curvature.sum() + penalty - 1.0
    hessian[np.diag_indices_from(hessian)] += 1.0
    if hessian[-1, -1] <= 0.0:  # no example has curvature, and the intercept no penalty: nothing to learn about it
        hessian[-1, -1] = 1.0
    solve = cholesky(hessian)
    if solve is None:  # rounding
        return (yield from _step(run, g, curvature, penalty, eta))
    return solve(-g)


def _step(run: Asking, g: np.ndarray, curvature: np.ndarray, penalty: float, eta: float) -> Asks[np.ndarray]:
    """Conjugate gradients on the model."""
    crossed = np.zeros_like(g)  # the intercept's column of the Hessian
    diagonal = np.ones_like(g)
    if run.problem.examples.bulk:
        yield Add(curvature, crossed[:-1])
    else:
        yield Add(curvature, crossed[:-1], squares=diagonal[:-1])
    if run.problem.intercept is Intercept.NONE:
        crossed[:] = 0.0
    else:
        diagonal[-1] = crossed[-1] = curvature.sum() + penalty
    if diagonal[-1] <= 0.0:  # no example has curvature, and the intercept no penalty: nothing to learn about it
        diagonal[-1] = 1.0
    s, r = np.zeros_like(g), -g
    d = r / diagonal
    product = np.empty_like(g)
    size = r @ d
    gained, steps = 0.0, 0
    while size > 0.0 and run.passes < run.settings.max_passes:
        product[:-1] = d[:-1]
        yield DotAdd(curvature, d[:-1].astype(run.w.dtype), product[:-1])
        product[:-1] += d[-1] * crossed[:-1]
        product[-1] = crossed @ d
        t = size / (d @ product)
        s += t * d
        r -= t * product
        steps += 1
        before, gained = gained, 0.5 * (s @ (r - g))
        if steps * (gained - before) <= eta * gained:
            break
        np.divide(r, diagonal, out=product)
        size, old = r @ product, size
        d *= size / old
        d += product
    return s


@kernel
def _curvature(loss, margins, cost):
    """C_i loss''(m_i); the squared hinge has 2 on the side where it counts."""
    out = np.empty_like(margins)
    for i in range(len(margins)):
        if loss == LOGISTIC:
            share = 1.0 / (1.0 + np.exp(-abs(margins[i])))
            out[i] = cost[i] * share * (1.0 - share)
        else:
            out[i] = 2.0 * cost[i] if margins[i] < 1.0 else 0.0
    return out
