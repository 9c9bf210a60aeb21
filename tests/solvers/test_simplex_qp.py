"""The QP of the cutting planes, against an independent QP solver and its own optimality condition."""

import naive_search
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import noisy

from dotadd.solvers.simplex_qp import solve_on_simplex

objective = naive_search.qp_objective


def solve(H, c, start=None, relative=1e-10):
    """The beta that is found, after a check that it is feasible and optimal."""
    n = len(c)
    beta = np.full(n, 1.0 / n) if start is None else start.copy()
    tol = relative * max(np.abs(H).max(), np.abs(c).max())
    steps = solve_on_simplex(H, c, beta, tol, 20000)
    assert steps >= 0
    assert (beta >= 0.0).all()
    assert beta.sum() == pytest.approx(1.0, abs=1e-14)
    gradient = H @ beta - c
    assert gradient[beta > 0.0].max() - gradient.min() <= 1.1 * tol
    return beta


def agree(H, c, beta):
    best = naive_search.simplex_qp(H, c)
    size = np.abs(H @ beta - c).max()
    assert objective(H, c, beta) == pytest.approx(best, rel=1e-9, abs=1e-12 * size)


@st.composite
def programs(draw):
    """Planes of any rank, some of them twice, lengths apart by a factor of up to 1e4."""
    n, rank = draw(st.integers(1, 30)), draw(st.integers(1, 35))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    A = rng.normal(size=(n, rank)) * 10.0 ** rng.uniform(-2, 2, (n, 1)) ** draw(st.integers(0, 1))
    c = rng.normal(size=n) * 10.0 ** draw(st.integers(-2, 2))
    if draw(st.booleans()):
        twin = rng.integers(n, size=n)
        A, c = A[twin], c[twin]
    return A @ A.T, c


@given(program=programs(), corner=st.booleans())
def test_reaches_the_minimum_of_an_independent_solver(program, corner):
    H, c = program
    agree(H, c, solve(H, c, np.eye(len(c))[0] if corner else None))


@pytest.mark.parametrize("count", [2, 20, 80])
def test_planes_of_a_cutting_plane_method_are_no_harder(count):
    X, y = noisy(n=300, d=30, seed=1)
    H, c = naive_search.cutting_planes(X, y, np.full(300, 5.0), count)
    agree(H, c, solve(H, c))
    agree(H, c, solve(H, c, np.eye(count)[0]))


def test_a_single_plane_has_all_the_weight():
    np.testing.assert_array_equal(solve(np.array([[3.0]]), np.array([2.0])), [1.0])


def test_planes_without_length_leave_the_weight_to_the_highest_offset():
    np.testing.assert_array_equal(solve(np.zeros((4, 4)), np.array([1.0, 3.0, 2.0, 2.9])), [0.0, 1.0, 0.0, 0.0])


def test_a_plane_that_dominates_all_others_has_all_the_weight():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 5))
    c = rng.normal(size=20)
    c[7] = 1e6
    np.testing.assert_array_equal(solve(A @ A.T, c), np.eye(20)[7])


def test_of_equal_planes_the_higher_one_wins():
    A = np.random.default_rng(1).normal(size=(6, 4))
    A[3] = A[5] = A[0]
    c = np.array([0.0, 0.1, 0.2, 1.0, 0.1, 2.0])
    beta = solve(A @ A.T, c)
    assert beta[0] == beta[3] == 0.0 < beta[5]


def test_a_start_at_the_optimum_takes_no_steps_and_one_more_plane_few():
    X, y = noisy(n=300, d=30, seed=2)
    H, c = naive_search.cutting_planes(X, y, np.ones(300), 40)
    inner, tol = np.ascontiguousarray(H[:-1, :-1]), 1e-9 * c.max()
    beta = np.eye(39)[0]
    cold = solve_on_simplex(inner, c[:-1], beta, tol, 20000)
    assert cold > 0
    assert solve_on_simplex(inner, c[:-1], beta, tol, 20000) == 0
    warm = solve_on_simplex(H, c, np.append(beta, 0.0), tol, 20000)
    assert 0 <= warm < cold


def test_the_tolerance_bounds_the_distance_to_the_best_objective():
    X, y = noisy(n=200, d=20, seed=3)
    H, c = naive_search.cutting_planes(X, y, np.ones(200), 30)
    best = naive_search.simplex_qp(H, c)
    for tol in (1e2, 1e1, 1e-1, 1e-3):
        beta = np.full(30, 1.0 / 30)
        assert solve_on_simplex(H, c, beta, tol, 20000) >= 0
        assert objective(H, c, beta) <= best + tol


def test_too_few_steps_are_reported_and_keep_what_is_gained():
    X, y = noisy(n=200, d=20, seed=3)
    H, c = naive_search.cutting_planes(X, y, np.ones(200), 30)
    beta = np.full(30, 1.0 / 30)
    before = objective(H, c, beta)
    assert solve_on_simplex(H, c, beta, 1e-9, 4) == -1
    assert objective(H, c, beta) < before
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(1.0)


def test_a_tolerance_below_rounding_ends_all_the_same():
    X, y = noisy(n=200, d=20, seed=4)
    H, c = naive_search.cutting_planes(X, y, np.full(200, 1e3), 60)
    beta = np.full(60, 1.0 / 60)
    solve_on_simplex(H, c, beta, 0.0, 10**9)
    agree(H, c, beta)
