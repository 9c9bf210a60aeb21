"""A small dense QP on the simplex, for the weights of cutting planes.

Problem:  min_beta 1/2 beta' H beta - c' beta,  beta >= 0, sum_j beta_j = 1
Given:    H (n, n) positive semi-definite, possibly singular; c; a feasible beta to start from
Returned: beta, in place, with max {g_j : beta_j > 0} - min_j g_j <= tol for the gradient g = H beta - c

Moving weight from one plane to another (SMO, the pair chosen by the second-order rule of Fan, Chen and Lin 2005) soon
finds out which beta_j are positive, but then creeps along, since the planes that a cutting plane method meets are
nearly parallel. So after a few such moves come steps to the minimum over the positive beta_j (the face), by a Cholesky
factorization, each cut short where a beta_j becomes 0.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel

MOVES = 20  # between steps on the face
EPS = np.finfo(np.float64).eps
TINY = np.finfo(np.float64).tiny
SINGULAR = 32.0 * EPS  # a curvature this small beside the squared lengths of its planes is rounding
MAX_STALLED = 3  # rounds without progress: what is left is rounding


@kernel
def solve_on_simplex(H, c, beta, tol, max_steps):
    """Improve beta until the optimality condition holds to `tol`; the objective is then within tol of the best one.

    Returns the number of steps, or -1 where max_steps were too few or where rounding lets beta come no closer.
    """
    n = len(c)
    gradient, lengths = np.empty(n), np.diag(H).copy()
    steps, stalled, best = 0, 0, np.inf
    while True:
        # From scratch, so that the rounding of many updates cannot pass for convergence.
        beta /= beta.sum()
        objective, size = 0.0, 0.0
        for i in range(n):
            product = _product(H[i], beta)
            gradient[i] = product - c[i]
            objective += beta[i] * (0.5 * product - c[i])
            size += beta[i] * (0.5 * abs(product) + abs(c[i]))
        if _violation(gradient, beta) <= tol:
            return steps
        stalled = 0 if objective < best - EPS * size else stalled + 1
        best = min(best, objective)
        if steps >= max_steps or stalled > MAX_STALLED:
            return -1
        moves = 0
        while moves < min(MOVES, max_steps - steps) and _move(H, lengths, beta, gradient, tol):
            moves += 1
        steps += moves
        while steps < max_steps:
            steps += 1
            if not _step_on_face(H, c, beta):
                break


@inner
def _product(row, beta):
    total = 0.0
    for j in range(len(beta)):
        total += row[j] * beta[j]
    return total


@inner
def _violation(gradient, beta):
    lowest, highest = np.inf, -np.inf
    for j in range(len(beta)):
        lowest = min(lowest, gradient[j])
        if beta[j] > 0.0:
            highest = max(highest, gradient[j])
    return highest - lowest


@inner
def _move(H, lengths, beta, gradient, tol):
    """Move weight to the plane i of the lowest gradient, from the plane j that gains most by it; False if none does."""
    i = np.argmin(gradient)
    j, most, amount = -1, 0.0, 0.0
    for k in range(len(beta)):
        excess = gradient[k] - gradient[i]
        if beta[k] > 0.0 and excess > tol:
            both = lengths[i] + lengths[k]
            curvature = max(both - 2.0 * H[i, k], SINGULAR * both, TINY)
            if excess * excess / curvature > most:
                j, most, amount = k, excess * excess / curvature, min(beta[k], excess / curvature)
    if j < 0:
        return False
    beta[i] += amount
    beta[j] = beta[j] - amount if amount < beta[j] else 0.0
    for k in range(len(beta)):
        gradient[k] += amount * (H[i, k] - H[j, k])
    return True


@inner
def _step_on_face(H, c, beta):
    """Step towards the minimum over the positive beta_j, as far as they stay so; True if one of them became 0.

    The largest of them is 1 minus the others, so the others are free but for their bounds. Their Hessian is factorized
    row by row. A row that depends on those before it means a direction without curvature, and along that, downhill,
    some beta_j can be brought to 0.
    """
    face = np.flatnonzero(beta > 0.0)
    n = len(face) - 1
    largest = np.argmax(beta[face])
    face[largest], face[n] = face[n], face[largest]
    r = face[n]
    base = _product(H[r], beta) - c[r]
    L, y, p = np.empty((n, n)), np.zeros(n), np.zeros(n + 1)
    end, uphill = n, 0.0
    for i in range(n):
        a = face[i]
        gradient = _product(H[a], beta) - c[a] - base
        for j in range(i):
            entry = H[a, face[j]] - H[a, r] - H[r, face[j]] + H[r, r]
            L[i, j] = (entry - _product(L[i, :j], L[j, :j])) / L[j, j]
        descent = -gradient - _product(L[i, :i], y[:i])
        both = H[a, a] + H[r, r]
        pivot = both - 2.0 * H[a, r] - _product(L[i, :i], L[i, :i])
        if pivot <= SINGULAR * both:
            end, y[:i], p[i] = i, -L[i, :i], 1.0  # L' p = -l
            uphill = descent
            break
        L[i, i] = np.sqrt(pivot)
        y[i] = descent / L[i, i]
    for i in range(end - 1, -1, -1):
        total = y[i]
        for j in range(i + 1, end):
            total -= L[j, i] * p[j]
        p[i] = total / L[i, i]
    if end < n and uphill < 0.0:
        p = -p
    p[n] = -p[:n].sum()

    t, blocked = 1.0 if end == n else np.inf, -1
    for i in range(n + 1):
        if p[i] < 0.0 and beta[face[i]] < -t * p[i]:
            t, blocked = -beta[face[i]] / p[i], i
    for i in range(n + 1):
        beta[face[i]] = max(0.0, beta[face[i]] + t * p[i])
    if blocked >= 0:
        beta[face[blocked]] = 0.0
    return blocked >= 0
