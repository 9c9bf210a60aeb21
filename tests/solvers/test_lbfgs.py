"""L-BFGS: the inverse Hessian by its definition, directions on kinks that lead downhill, and what must not change."""

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, noisy, problem, sparse
from scipy.optimize import lsq_linear

from dotadd._util.memory import Budget
from dotadd.core.losses import Loss
from dotadd.features import Linear, Shape
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.box_qp import box_qp
from dotadd.solvers.lbfgs import History, Kinks, Proof
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)

lbfgs = SOLVERS["lbfgs"]


def pairs_of_a_quadratic(n, dim, seed=0):
    """Steps, and the changes of the gradient of a convex quadratic along them."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim))
    S = rng.normal(size=(n, dim)) * np.exp(rng.normal(size=(n, 1)))
    return S, S @ (root @ root.T / dim + np.eye(dim))


def bfgs_inverse(S, Y, dim):
    """H by the update that defines it, from s'y / y'y of the last pair times the identity."""
    H = np.eye(dim)
    if len(S):
        H *= S[-1] @ Y[-1] / (Y[-1] @ Y[-1])
    for s, y in zip(S, Y, strict=True):
        V = np.eye(dim) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_history_is_the_bfgs_inverse_of_the_last_pairs(n):
    dim, room = 7, 4
    S, Y = pairs_of_a_quadratic(n, dim)
    history = History(dim, np.dtype(np.float64), room)
    for s, y in zip(S, Y, strict=True):
        history.append(s, y)
    H = bfgs_inverse(S[-room:], Y[-room:], dim)
    rng = np.random.default_rng(1)
    q, Z = rng.normal(size=dim), rng.normal(size=(3, dim))
    np.testing.assert_allclose(history.times(q), H @ q, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(history.between(Z, Z @ Z.T), Z @ H @ Z.T, rtol=1e-10, atol=1e-12)


def test_history_in_float32_is_the_same_within_its_rounding():
    S, Y = pairs_of_a_quadratic(6, 20)
    q = np.random.default_rng(1).normal(size=20)
    history = History(20, np.dtype(np.float32))
    for s, y in zip(S, Y, strict=True):
        history.append(s, y)
    expected = bfgs_inverse(S, Y, 20) @ q
    np.testing.assert_allclose(history.times(q), expected, atol=1e-4 * np.abs(expected).max())


def test_history_leaves_out_a_pair_without_curvature():
    history = History(3, np.dtype(np.float64))
    history.append(np.array([1.0, 0.0, 0.0]), np.array([-1.0, 2.0, 0.0]))
    np.testing.assert_array_equal(history.times(np.arange(3.0)), np.arange(3.0))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "rank"), [(0, 1), (1, 1), (6, 9), (25, 6)])
def test_box_qp_fulfils_the_optimality_conditions(n, rank, seed):
    rng = np.random.default_rng(seed)
    A, b, upper = rng.normal(size=(rank, n)), rng.normal(size=rank), rng.uniform(0.1, 1.0, n)
    x = box_qp(A.T @ A, A.T @ b, upper, upper * rng.random(n))
    slope = A.T @ (A @ x - b)
    assert ((x >= 0.0) & (x <= upper)).all()
    assert (slope[x < upper] > -1e-10).all()
    assert (slope[x > 0.0] < 1e-10).all()
    if n:
        best = lsq_linear(A, b, (0.0, upper), method="bvls").cost
        assert 0.5 * np.sum((A @ x - b) ** 2) == pytest.approx(best, abs=1e-10)


def test_kinks_know_the_products_of_the_rows_that_are_left():
    Z = np.random.default_rng(0).normal(size=(6, 4))
    kinks = Kinks(4, np.dtype(np.float64), 1 << 20)
    kinks.append(np.arange(4), Z[:4])
    kinks.keep(np.array([True, False, True, True]))
    kinks.append(np.array([4, 5]), Z[4:])
    left = [0, 2, 3, 4, 5]
    np.testing.assert_array_equal(kinks.members, left)
    np.testing.assert_allclose(kinks.gram, Z[left] @ Z[left].T)


def test_the_proof_is_the_best_dual_variable_between_the_old_and_the_new():
    rng = np.random.default_rng(0)
    Z, proof = rng.normal(size=(5, 3)), Proof(np.zeros(3), 5)
    for _ in range(10):
        new, old = rng.random(5), proof.alpha.copy()
        between = [old + t * (new - old) for t in np.linspace(0.0, 1.0, 1001)]
        proof.offer(new, new @ Z)
        best = max(a.sum() - 0.5 * np.sum((a @ Z) ** 2) for a in between)
        assert best - 1e-12 <= proof.dual <= best + 1e-5
        assert proof.dual == pytest.approx(proof.alpha.sum() - 0.5 * np.sum((proof.alpha @ Z) ** 2))


def start_at(one, w):
    """The result of an earlier fit, with another w."""
    result = lbfgs(one, Settings(max_passes=1), None)[0]
    result.w[:] = w
    return [result]


@pytest.mark.parametrize("start", [(1.0, 0.0), (2.0, 0.0), (0.0, 0.0)])
def test_knows_a_minimum_on_two_kinks_by_a_mean_of_subgradients(start):
    """Each example pulls hard to its side, and only the right mean of both proves that (1, 0) is the minimum."""
    Z, cost, w = np.array([[1.0, 3.0], [1.0, -3.0]]), np.full(2, 10.0), np.array([1.0, 0.0])
    one = problem(Z, [1, 1], cost=cost, intercept="none")
    result = lbfgs(one, Settings(tol=1e-9), start_at(one, start))[0]
    assert result.reason is Reason.CONVERGED
    assert result.passes <= 8
    np.testing.assert_allclose(result.w, w, atol=1e-6)
    np.testing.assert_allclose(result.alpha, 0.5, atol=1e-6)


def test_goes_downhill_along_a_valley_of_kinks():
    """At the bottom of the valley 1 = w_0 + 3 w_1 the subgradients of both sides lead across it and up, and only the
    right mean of them leads along it."""
    Z, y, cost = np.array([[1.0, 3.0]]), np.ones(1), np.full(1, 10.0)
    one = problem(Z, y, cost=cost, intercept="none")
    w = np.array([1.0, 0.0])
    before = naive.primal(Z, y, cost, "hinge", w, 0.0, "none")
    for g in (w, w - 10.0 * Z[0]):
        for t in (1e-1, 1e-2, 1e-3):
            assert naive.primal(Z, y, cost, "hinge", w - t * g, 0.0, "none") > before
    result = lbfgs(one, Settings(tol=1e-9), start_at(one, w))[0]
    assert result.passes <= 8
    np.testing.assert_allclose(result.w, [0.1, 0.3], atol=1e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_reaches_the_optimum_and_never_gets_worse(loss, intercept):
    X, y = noisy(n=150, seed=3)
    cost = np.random.default_rng(1).uniform(0.0, 3.0, len(y)) * (np.arange(len(y)) % 5 > 0)
    used = cost > 0.0
    best = naive.solve(X[used], y[used], cost[used], loss, intercept)[0]
    result = lbfgs(problem(X, y, cost=cost, loss=loss, intercept=intercept), Settings(tol=1e-7), None)[0]
    assert result.reason is Reason.CONVERGED
    assert result.primal == pytest.approx(best, rel=1e-6)
    primals = np.array([step.primal for step in result.trace])
    assert (np.diff(primals) <= 1e-12 * primals[0]).all()
    assert result.trace[-1].primal == pytest.approx(result.primal, rel=1e-9)
    assert result.trace[-1].dual <= best * (1 + 1e-9)
    if intercept == "free":
        assert result.alpha @ y == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_float32_reaches_1e_4(loss, intercept):
    X, y = noisy(n=150, seed=4)
    best = naive.solve(X.astype(np.float32).astype(float), y, np.ones(len(y)), loss, intercept)[0]
    result = lbfgs(problem(X, y, loss=loss, intercept=intercept, dtype=np.float32), Settings(tol=1e-4), None)[0]
    assert result.w.dtype == np.float32
    assert result.reason is Reason.CONVERGED
    assert result.gap <= 1e-4
    assert result.primal == pytest.approx(best, rel=1e-4)


class Expanded(InMemory):
    """Examples that have to be expanded, so that all binary problems advance together."""

    in_memory = False


@pytest.mark.parametrize("loss", LOSSES)
def test_several_binary_problems_together_equal_each_alone(loss):
    X, y = noisy(n=80, seed=5)
    batch = sparse(X, np.float64)
    signs = [s.astype(np.int8) for s in (y, -y, np.where(X[:, 0] > 0, 1, -1))]
    examples = Expanded(Linear().resolve(Shape.of(batch)), batch, dtype=np.float64)

    def solve(some):
        costs = np.ones(len(y))
        return lbfgs(
            Problem(examples, Columns.of(some, costs), Loss.named(loss), Intercept.REGULARIZED),
            Settings(tol=1e-6),
            None,
        )

    together, alone = solve(signs), [solve([one])[0] for one in signs]
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a.w, b.w, rtol=1e-9, atol=1e-12)
        assert (a.passes, a.reason) == (b.passes, b.reason)


@pytest.mark.parametrize("loss", LOSSES)
def test_goes_on_from_an_earlier_fit(loss):
    X, y = noisy(n=150, seed=6)
    one = problem(X, y, loss=loss)
    first = lbfgs(one, Settings(tol=1e-6), None)[0]
    again = lbfgs(one, Settings(tol=1e-6), [first])[0]
    assert again.reason is Reason.CONVERGED
    assert again.passes < first.passes / 2


def test_says_so_where_there_is_no_room_for_the_kinks():
    """Every example twice: with room for one row of K, directions are not downhill for long, and nothing is claimed."""
    X, y = noisy(n=60, seed=7)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    best = naive.solve(X, y, np.ones(len(y)), "hinge", "regularized")[0]
    result = lbfgs(problem(X, y), Settings(tol=1e-9, budget=Budget(1)), None)[0]
    assert result.reason in (Reason.STALLED, Reason.MAX_PASSES)
    assert result.dual <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= result.primal <= 1.1 * best
