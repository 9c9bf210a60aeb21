"""IRWLS on small chunks: the optimum, and never less than it began with."""

import kernel_problems as kp
import numpy as np
import pytest

from dotadd.kernel_svm.irwls import solve_small


def solve(p, tol, alpha=None):
    alpha = np.zeros(len(p)) if alpha is None else alpha.copy()
    f = p.gram.matrix @ (alpha * p.sign)
    steps = solve_small(p.gram.matrix.astype(np.float32), p.sign, p.cost, alpha, f, tol)
    np.testing.assert_allclose(f, p.gram.matrix @ (alpha * p.sign), rtol=0, atol=1e-9 * max(1.0, alpha.sum()))
    return alpha, steps


@pytest.mark.parametrize("make", [kp.blobs, kp.noisy, kp.duplicated, kp.rare])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("different", [False, True])
def test_reaches_the_optimum_of_a_qp_solver(make, C, different):
    X, y = make(40)
    p = kp.problem(X, y, cost=kp.several_costs(40, C=C) if different else C)
    alpha, _ = solve(p, 1e-6)
    kp.assert_feasible(p, alpha)
    assert kp.violation(p, alpha) <= 1.001e-6
    assert kp.dual(p, alpha) == pytest.approx(kp.best_dual(p), rel=1e-6)


def test_few_systems_do_where_most_support_vectors_are_free():
    X, y = kp.blobs(40)
    _, steps = solve(kp.problem(X, y, cost=1e4), 1e-6)
    assert steps <= 20


@pytest.mark.parametrize("seed", range(6))
def test_from_any_start_the_dual_does_not_fall_and_the_balance_stays(seed):
    X, y = kp.noisy(30, seed=seed)
    rng = np.random.default_rng(seed)
    p = kp.problem(X, y, cost=kp.several_costs(30, seed))
    start = p.cost * np.clip(rng.uniform(-1.0, 2.0, 30), 0.0, 1.0)
    alpha, _ = solve(p, 1e-4, start)
    assert alpha @ y == pytest.approx(start @ y, abs=1e-9)
    assert kp.dual(p, alpha) >= kp.dual(p, start)
    assert kp.violation(p, alpha) <= 1.001e-4
    assert ((alpha >= 0.0) & (alpha <= p.cost)).all()


def test_an_indefinite_kernel_ends_without_loss():
    X, y = kp.noisy(40)
    matrix = np.tanh(X @ X.T - 1.0).astype(np.float32)
    assert np.linalg.eigvalsh(matrix)[0] < -0.1
    p = kp.problem(X, y, matrix=matrix)
    alpha, _ = solve(p, 1e-3)
    assert kp.dual(p, alpha) > 0.0
    assert kp.violation(p, alpha) <= 1.001e-3


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_examples(n):
    p = kp.problem(np.array([[0.0], [1.0]])[:n], np.array([1, -1], np.int8)[:n])
    alpha, _ = solve(p, 1e-8)
    assert kp.violation(p, alpha) <= 1e-8
