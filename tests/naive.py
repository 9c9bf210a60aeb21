"""Plain NumPy twins of the compiled functions, and independent solvers of the same problem on small data."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def matrix(block, dim):
    """A block as a dense matrix, entry by entry; indices that occur twice add up."""
    out = np.zeros((len(block), dim))
    for r in range(len(block)):
        for k in range(int(block.start[r]), int(block.end[r])):
            slot = k - int(block.start[r]) if block.indices is None else int(block.indices[k])
            out[r, slot] += 1.0 if block.values is None else float(block.values[k])
    return out


def loss_value(name, m):
    m = np.asarray(m, np.float64)
    return {
        "hinge": lambda: np.maximum(0.0, 1.0 - m),
        "squared_hinge": lambda: np.maximum(0.0, 1.0 - m) ** 2,
        "logistic": lambda: np.logaddexp(0.0, -m),
    }[name]()


def primal(X, y, cost, loss, w, b, intercept, centre=(0.0, 0.0)):
    away, far = w - centre[0], b - centre[1]
    penalty = 0.5 * away @ away + (0.5 * far * far if intercept == "regularized" else 0.0)
    return penalty + cost @ loss_value(loss, y * (X @ w + b))


def primal_qp(X, y, cost, loss, intercept, centre):
    """w and b of a hinge loss by the primal with its slacks."""
    import daqp

    n, d = X.shape
    # variables w, b, xi; m + xi >= 1, xi >= 0
    H = np.zeros((d + 1 + n, d + 1 + n))
    H[:d, :d] = np.eye(d)
    H[d, d] = 1.0 if intercept == "regularized" else 1e-9
    f = np.zeros(d + 1 + n)
    f[:d] = -centre[0]
    f[d] = -centre[1] if intercept == "regularized" else 0.0
    if loss == "hinge":
        f[d + 1 :] = cost
        H[range(d + 1, d + 1 + n), range(d + 1, d + 1 + n)] = 1e-9
    else:
        H[range(d + 1, d + 1 + n), range(d + 1, d + 1 + n)] = 2.0 * cost
    A = np.hstack([y[:, None] * X, y[:, None] if intercept != "none" else np.zeros((n, 1)), np.eye(n)])
    far = 1e20
    lower_xi = np.hstack([np.zeros((n, d + 1)), np.eye(n)])
    A = np.ascontiguousarray(np.vstack([A, lower_xi]))
    upper = np.full(2 * n, far)
    lower = np.concatenate([np.ones(n), np.zeros(n)])
    x, _, flag, _ = daqp.solve(H, f, A, upper, lower, np.zeros(2 * n, dtype=np.int32))
    assert flag > 0, f"the QP solver failed ({flag})"
    return x[:d], (0.0 if intercept == "none" else x[d])


def dual_qp(X, y, cost, loss, intercept, centre):
    """The same by the dual: of some hundred rows in a hundredth of the time."""
    import daqp

    used = np.flatnonzero(cost > 0.0)
    signs, most = y[used].astype(np.float64), cost[used]
    Z = signs[:, None] * X[used]
    H = Z @ Z.T + (np.outer(signs, signs) if intercept == "regularized" else 0.0)
    H[np.diag_indices_from(H)] += 1e-10 if loss == "hinge" else 0.5 / most
    centre_w, centre_b = centre[0], (centre[1] if intercept == "regularized" else 0.0)
    missing = 1.0 - signs * (X[used] @ np.broadcast_to(centre_w, X.shape[1]) + centre_b)
    lower, upper = np.zeros(len(used)), most if loss == "hinge" else np.full(len(used), 1e20)
    A, kinds = np.zeros((0, len(used))), np.zeros(len(used), np.int32)
    if intercept == "free":
        A, kinds = signs[None], np.append(kinds, 5).astype(np.int32)  # an equation
        lower, upper = np.append(lower, 0.0), np.append(upper, 0.0)
    alpha, _, flag, about = daqp.solve(H, -missing, np.ascontiguousarray(A), upper, lower, kinds)
    assert flag > 0, f"the QP solver failed ({flag})"
    w = centre_w + alpha @ Z
    b = {"none": 0.0, "regularized": centre_b + alpha @ signs, "free": about["lam"][-1]}[intercept]
    return w, b


def solve(X, y, cost, loss, intercept, centre=(0.0, 0.0)):
    """The minimum of the objective and its w and b: an active-set QP solver for hinge losses, BFGS for the logistic.
    The penalty is on how far w and b are from `centre`."""
    n, d = X.shape
    if loss == "logistic":

        def f(v):
            w, b = v[:d], (0.0 if intercept == "none" else v[d])
            m = y * (X @ w + b)
            s = -cost * y / (1.0 + np.exp(m))
            grad_b = {"none": 0.0, "free": s.sum(), "regularized": s.sum() + b - centre[1]}[intercept]
            return primal(X, y, cost, loss, w, b, intercept, centre), np.append(w - centre[0] + X.T @ s, grad_b)

        v = minimize(f, np.zeros(d + 1), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 10000}).x
        w, b = v[:d], (0.0 if intercept == "none" else v[d])
        return primal(X, y, cost, loss, w, b, intercept, centre), w, b
    by = dual_qp if n <= d else primal_qp  # each as small as it can be; of wide data the dual is strictly convex
    w, b = by(X, y, cost, loss, intercept, centre)
    return primal(X, y, cost, loss, w, b, intercept, centre), w, b


def sgd(X, y, cost, loss_step, eta_0, order, average_after, rate, intercept):
    """The steps of averaged implicit SGD, with w and its average written out in full. Returns both."""
    w, b = np.zeros(X.shape[1]), 0.0
    mean_w, mean_b, count = np.zeros(X.shape[1]), 0.0, 0
    decay, normalizer = 1.0 / cost.sum(), len(cost) / cost.sum()
    for t, i in enumerate(order):
        eta = eta_0 / (1.0 + decay * eta_0 * t)
        w = (1.0 - eta * decay) * w
        if intercept == "regularized":
            b = (1.0 - eta * rate * decay) * b
        norm = X[i] @ X[i] + rate
        change = y[i] * loss_step(eta * cost[i] * normalizer, y[i] * (X[i] @ w + b), norm)
        w = w + change * X[i]
        b += rate * change
        if t + 1 > average_after:
            count += 1
            mean_w, mean_b = mean_w + (w - mean_w) / count, mean_b + (b - mean_b) / count
    return (w, b), (mean_w, mean_b)


def dual_terms(loss, alpha, cost):
    if loss == "hinge":
        return alpha
    used = cost > 0
    a, c = alpha[used], cost[used]
    if loss == "squared_hinge":
        return a - a**2 / (4.0 * c)
    share = np.clip(a / c, 1e-300, 1.0 - 1e-16)
    return -c * (share * np.log(share) + (1.0 - share) * np.log1p(-share))


def by_definition(X, y, cost, loss, intercept, w, b, alpha):
    """Primal and dual objective."""
    w_alpha, balance = (alpha * y) @ X, alpha @ y
    if intercept == "free":
        assert abs(balance) <= 1e-9
    penalty = 0.5 * w_alpha @ w_alpha + (0.5 * balance**2 if intercept == "regularized" else 0.0)
    return primal(X, y, cost, loss, w, b, intercept), dual_terms(loss, alpha, cost).sum() - penalty
