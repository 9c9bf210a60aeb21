"""Small problems for the tests of kernel solvers, and a Gram that is nothing but a matrix."""

import numpy as np

from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.problem import KernelProblem


class MatrixGram(Gram):
    """A kernel matrix in float64, out of which blocks are cut. It remembers how large they were."""

    def __init__(self, matrix):
        self.matrix = np.asarray(matrix, np.float64)
        self.shape = self.matrix.shape
        self.blocks = []

    def diagonal(self):
        return np.diag(self.matrix).copy()

    def block(self, rows, columns=None):
        out = self.matrix[rows] if columns is None else self.matrix[np.ix_(rows, columns)]
        self.blocks.append(out.shape)
        return out.astype(np.float32)

    def times(self, rows, coefficients, columns=None):
        return coefficients @ (self.matrix[rows] if columns is None else self.matrix[np.ix_(rows, columns)])


def rbf(X, gamma):
    """The matrix of exp(-gamma |x - x'|^2), rounded to float32 so that every solver sees the same problem."""
    distances = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-gamma * distances).astype(np.float32).astype(np.float64)


def blobs(n=60, d=3, seed=0, shift=2.0):
    """Two clouds that hardly overlap."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1).astype(np.int8)
    return rng.normal(size=(n, d)) + shift * y[:, None], y


def noisy(n=60, d=3, seed=0, noise=1.0):
    """Inside or outside of a ball, with wrong labels near its surface: many alphas at both bounds and between."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where((X**2).sum(axis=1) - d + noise * rng.normal(size=n) > 0.0, 1, -1).astype(np.int8)
    y[:2] = [1, -1]
    return X, y


def duplicated(n=60, d=3, seed=0):
    """Every row twice, some of them with both labels."""
    X, y = noisy(n // 2, d, seed)
    again = y.copy()
    again[::5] *= -1
    return np.vstack([X, X]), np.concatenate([y, again])


def rare(n=60, d=3, seed=0):
    """All of one class but one."""
    X, _ = noisy(n, d, seed)
    y = np.full(n, -1, np.int8)
    y[n // 3] = 1
    return X, y


def problem(X, y, cost=1.0, gamma=0.5, matrix=None):
    costs = np.broadcast_to(np.asarray(cost, np.float64), len(y)).copy()
    return KernelProblem(MatrixGram(rbf(X, gamma) if matrix is None else matrix), y, costs)


def several_costs(n, seed=0, C=1.0):
    """Different costs, some of them 0."""
    cost = C * np.random.default_rng(seed).uniform(0.1, 4.0, n)
    cost[::7] = 0.0
    return cost


def best_dual(problem):
    """The maximum of the dual objective, by an active-set QP solver."""
    import daqp

    n, y, scale = len(problem), problem.sign.astype(np.float64), min(1.0, problem.cost.max())  # for alpha / scale
    H = scale * problem.gram.matrix * np.outer(y, y) + 1e-10 * np.eye(n)
    upper, lower = np.append(problem.cost / scale, 0.0), np.zeros(n + 1)
    kinds = np.append(np.zeros(n), 5).astype(np.int32)  # 5: an equality
    _, value, flag, _ = daqp.solve(H, -np.ones(n), y[None, :].copy(), upper, lower, kinds, primal_tol=1e-10)
    assert flag > 0, f"the QP solver failed ({flag})"
    return -scale * value


def dual(problem, alpha):
    """The dual objective by its definition."""
    signed = alpha * problem.sign
    return alpha.sum() - 0.5 * signed @ problem.gram.matrix @ signed


def primal(problem, alpha, b):
    """The primal objective by its definition."""
    signed = alpha * problem.sign
    f = problem.gram.matrix @ signed
    return 0.5 * signed @ f + problem.cost @ np.maximum(0.0, 1.0 - problem.sign * (f + b))


def violation(problem, alpha):
    """By how much the optimality conditions fail, by their definition."""
    g = problem.sign - problem.gram.matrix @ (alpha * problem.sign)
    positive = problem.sign > 0
    up = np.where(positive, alpha < problem.cost, alpha > 0.0)
    low = np.where(positive, alpha > 0.0, alpha < problem.cost)
    return max(0.0, g[up].max(initial=-np.inf) - g[low].min(initial=np.inf))


def assert_feasible(problem, alpha):
    assert (alpha >= 0.0).all()
    assert (alpha <= problem.cost).all()
    assert abs(alpha @ problem.sign) <= 1e-9 * max(1.0, alpha.sum())
