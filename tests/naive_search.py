"""Plain twins of the line search (the objective along a line and its one-sided derivatives, summed without rounding)
and of the QP on the simplex (an independent solver, and planes to try it on)."""

from __future__ import annotations

from math import fsum

import naive
import numpy as np


def along(loss, margins, slopes, cost, linear, quadratic, t):
    """f(t)."""
    return fsum([0.5 * quadratic * t * t, linear * t, *(cost * naive.loss_value(loss, margins + t * slopes))])


def derivatives(loss, margins, slopes, cost, linear, quadratic, t):
    """f' just left of t, just right of t, and the size of the terms that they sum up.

    Kinks within rounding of t count as on either side, whichever makes the interval between the two larger.
    """
    m = margins + t * slopes
    if loss == "logistic":
        terms = -cost * slopes * np.exp(-np.logaddexp(0.0, m))
        least = most = terms
    elif loss == "squared_hinge":
        least = most = -2.0 * cost * slopes * np.maximum(0.0, 1.0 - m)
    else:
        near = np.abs(1.0 - m) <= 1e-13 * (1.0 + np.abs(margins) + np.abs(t * slopes))
        terms = np.where(m < 1.0, -cost * slopes, 0.0)
        least = np.where(near, np.minimum(0.0, -cost * slopes), terms)
        most = np.where(near, np.maximum(0.0, -cost * slopes), terms)
    given = [linear, quadratic * t]
    size = fsum(np.abs([*given, *(cost * slopes * (1.0 + np.abs(margins) + np.abs(t * slopes)))]))
    return fsum([*given, *least]), fsum([*given, *most]), size


def candidates(margins, slopes, low):
    """All kinks in range, points between and beyond them, and `low`."""
    moving = slopes != 0.0
    kinks = np.unique((1.0 - margins[moving]) / slopes[moving])
    kinks = kinks[kinks > low]
    ends = [] if low == -np.inf else [low]
    points = np.concatenate([ends, kinks])
    if len(points) == 0:
        return np.zeros(1)
    beyond = [points[-1] + 1.0] if ends else [points[0] - 1.0, points[-1] + 1.0]
    return np.concatenate([points, 0.5 * (points[1:] + points[:-1]), beyond])


def simplex_qp(H, c):
    """The minimum of 1/2 b' H b - c' b over b >= 0, sum b = 1, by an active-set solver of general QPs."""
    import daqp

    n, scale = len(c), max(np.abs(H).max(), np.abs(c).max())
    upper, lower = np.append(np.full(n, 1e30), 1.0), np.append(np.zeros(n), 1.0)
    sense = np.append(np.zeros(n), 5).astype(np.int32)
    tight = {"primal_tol": 1e-12, "dual_tol": 1e-13, "eps_prox": 1e-3, "eta_prox": 1e-14, "iter_limit": 100000}
    b, _, flag, _ = daqp.solve(
        np.ascontiguousarray(H / scale), -c / scale, np.ones((1, n)), upper, lower, sense, **tight
    )
    assert flag > 0, f"the QP solver failed ({flag})"
    b = np.maximum(b, 0.0)
    return qp_objective(H, c, b / b.sum())


def qp_objective(H, c, b):
    return 0.5 * b @ H @ b - c @ b


def cutting_planes(X, y, cost, count):
    """The Gram matrix and offsets of the planes that a plain cutting plane method meets on the hinge loss."""
    planes, offsets = [], []
    w = np.zeros(X.shape[1])
    for k in range(count):
        inside = y * (X @ w) < 1.0
        planes.append(-(cost * y * inside) @ X)
        offsets.append((cost * inside).sum())
        w = w - (w + planes[-1]) / (2.0 + k)  # a subgradient step to a nearby point
    A = np.array(planes)
    return A @ A.T, np.array(offsets)
