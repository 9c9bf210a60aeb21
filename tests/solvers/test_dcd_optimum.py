"""Dual coordinate descent: the optimum, the gap that proves it, and what must not change either."""

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, noisy, problem, squared_distances

from dotadd.core import block
from dotadd.core.block import row_numbers
from dotadd.solvers import certify
from dotadd.solvers.dcd import dcd
from dotadd.solvers.free_intercept import best_intercept
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings

TIGHT = Settings(tol=1e-7, max_passes=20000)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_reaches_the_optimum_of_an_independent_solver(loss, intercept, C):
    X, y = noisy()
    cost = C * np.random.default_rng(1).uniform(0.5, 3.0, len(y))
    best, w, _ = naive.solve(X, y, cost, loss, intercept)
    result = dcd(problem(X, y, cost=cost, loss=loss, intercept=intercept), TIGHT)[0]
    assert result.reason is Reason.CONVERGED
    assert result.primal == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(result.w, w, atol=2e-3 * np.abs(w).max())


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_primal_dual_and_gap_are_what_their_definitions_say(loss, intercept):
    X, y = noisy(seed=2)
    result = dcd(problem(X, y, loss=loss, intercept=intercept), Settings(tol=0.05))[0]
    cost = np.ones(len(y))
    assert result.primal == pytest.approx(naive.primal(X, y, cost, loss, result.w, result.intercept, intercept))
    w, b = (result.alpha * y) @ X, result.alpha @ y
    t = (w @ result.w) / (w @ w)  # what is returned may be a multiple of it (stretch.py)
    np.testing.assert_allclose(result.w, t * w, rtol=1e-9, atol=1e-12)
    length = w @ w
    if intercept == "regularized":
        assert 0.5 * (result.intercept - b) ** 2 <= result.primal - result.dual  # it lags behind (slow_intercept.py)
        length += b**2
    if intercept == "free":
        assert result.alpha @ y == pytest.approx(0.0, abs=1e-9)
    if loss == "hinge":
        terms = result.alpha
    elif loss == "squared_hinge":
        terms = result.alpha - result.alpha**2 / 4.0
    else:
        a = np.clip(result.alpha, 1e-300, 1.0 - 1e-16)
        terms = -(a * np.log(a) + (1.0 - a) * np.log(1.0 - a))
    assert result.dual == pytest.approx(terms.sum() - 0.5 * length, rel=1e-9)
    assert result.gap == pytest.approx((result.primal - result.dual) / result.primal, abs=1e-12)
    assert result.gap <= 0.05
    assert result.dual <= naive.solve(X, y, cost, loss, intercept)[0] <= result.primal * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_shrinking_does_not_change_the_optimum(loss):
    X, y = noisy(n=200, seed=3)
    with_shrinking, without = (dcd(problem(X, y, loss=loss), TIGHT, shrink=shrink)[0] for shrink in (True, False))
    assert with_shrinking.primal == pytest.approx(without.primal, rel=1e-6)


def test_weight_two_equals_row_twice():
    X, y = noisy()
    twice = np.arange(len(y)) % 3 == 0
    weighted = dcd(problem(X, y, cost=np.where(twice, 2.0, 1.0)), TIGHT)[0]
    repeated = dcd(problem(np.vstack([X, X[twice]]), np.append(y, y[twice])), TIGHT)[0]
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-6)


def test_weight_zero_equals_row_left_out():
    X, y = noisy()
    out = np.arange(len(y)) % 4 == 0
    weighted = dcd(problem(X, y, cost=np.where(out, 0.0, 1.0), intercept="free"), TIGHT)[0]
    removed = dcd(problem(X[~out], y[~out], intercept="free"), TIGHT)[0]
    assert weighted.primal == pytest.approx(removed.primal, rel=1e-6)
    assert not weighted.alpha[out].any()


def test_row_order_does_not_change_the_optimum():
    X, y = noisy()
    order = np.random.default_rng(5).permutation(len(y))
    one, other = (dcd(p, TIGHT)[0].primal for p in (problem(X, y), problem(X[order], y[order])))
    assert one == pytest.approx(other, rel=1e-6)


def test_dense_and_sparse_rows_take_the_same_path():
    X, y = noisy()
    sparse, dense = (dcd(problem(X, y, dense=dense), Settings(tol=1e-3))[0] for dense in (False, True))
    assert sparse.passes == dense.passes
    np.testing.assert_allclose(sparse.w, dense.w, rtol=1e-9, atol=1e-12)


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_path():
    X, y = noisy()
    a, b, c = (dcd(problem(X, y), Settings(tol=1e-2, seed=seed))[0] for seed in (7, 7, 8))
    np.testing.assert_array_equal(a.w, b.w)
    assert not np.array_equal(a.alpha, c.alpha)


def test_float32_weights_reach_the_default_tolerance():
    X, y = noisy(n=300, seed=9)
    result = dcd(problem(X, y, dtype=np.float32), Settings())[0]
    assert result.w.dtype == np.float32
    assert result.gap <= 1e-3
    assert result.primal <= naive.solve(X, y, np.ones(len(y)), "hinge", "regularized")[0] * 1.0011


@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_needs_fewer_passes_for_the_same_optimum(loss):
    X, y = noisy(n=200)
    cold = dcd(problem(X, y, loss=loss), Settings(tol=1e-5, max_passes=5000))[0]
    again = dcd(problem(X, y, loss=loss), Settings(tol=1e-5), alphas=[cold.alpha], intercepts=[cold.intercept])[0]
    assert again.passes == 0
    assert again.primal == pytest.approx(cold.primal, rel=1e-4)
    smaller = dcd(
        problem(X, y, loss=loss, cost=0.5),
        Settings(tol=1e-6, max_passes=5000),
        alphas=[cold.alpha],
        intercepts=[cold.intercept],
    )[0]
    fresh = dcd(problem(X, y, loss=loss, cost=0.5), Settings(tol=1e-6, max_passes=5000))[0]
    assert smaller.primal == pytest.approx(fresh.primal, rel=1e-5)


def test_binary_problems_solved_together_equal_those_solved_alone():
    X, y = noisy(n=120)
    other = np.where(X[:, 0] > 0, 1, -1)
    together = dcd(problem(X, [y, other]), TIGHT)
    for result, labels in zip(together, [y, other], strict=True):
        assert result.primal == pytest.approx(dcd(problem(X, labels), TIGHT)[0].primal, rel=1e-6)


def test_a_limit_on_passes_ends_with_a_true_gap():
    X, y = noisy(n=200)
    result = dcd(problem(X, y), Settings(tol=1e-12, max_passes=3))[0]
    assert result.reason is Reason.MAX_PASSES
    assert result.passes == 3
    true = naive.primal(X, y, np.ones(200), "hinge", result.w, result.intercept, "regularized")
    assert result.primal == pytest.approx(true)
    assert result.gap == pytest.approx(1.0 - result.dual / result.primal)


def test_a_time_limit_and_an_interrupt_keep_what_there_is():
    X, y = noisy(n=200)
    late = dcd(problem(X, y), Settings(tol=1e-12, max_time=1e-9))[0]
    assert late.reason is Reason.MAX_TIME

    def interrupt(progress, k):
        if progress.passes == 4:
            raise KeyboardInterrupt

    cut = dcd(problem(X, y), Settings(tol=1e-12, on_progress=interrupt))[0]
    assert cut.reason is Reason.INTERRUPTED
    assert cut.passes == 4
    assert 0.0 < cut.gap < 1.0
    assert cut.primal < len(y)  # better than w = 0


def test_the_trace_has_a_row_for_each_pass_and_the_dual_never_falls():
    X, y = noisy(n=200)
    result = dcd(problem(X, y), Settings(tol=1e-6, max_passes=3000))[0]
    assert [progress.passes for progress in result.trace] == list(range(1, result.passes + 1))
    duals = np.array([progress.dual for progress in result.trace])
    assert (np.diff(duals) >= -1e-9 * abs(duals[-1])).all()
    assert duals[-1] == pytest.approx(result.dual, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_best_intercept_is_the_minimum_over_a_grid(loss):
    X, y = noisy()
    p = problem(X, y, loss=loss)
    output = X @ np.random.default_rng(4).normal(size=X.shape[1])

    def risk(b):
        return naive.loss_value(loss, y * (output + b)).sum()

    b = best_intercept(p.loss, output, p.columns.sign(0), p.columns.cost(0))
    assert risk(b) <= min(risk(g) for g in np.linspace(-8, 8, 4001)) + 1e-9


def test_what_w_differs_from_its_support_vectors_counts_in_the_gap(monkeypatch):
    X, y = noisy(n=200)
    true = dcd(problem(X, y), Settings(tol=1e-3))[0]
    drifted = 0.02 * true.primal
    monkeypatch.setattr(certify, "squared_distance", lambda w, sums: 2.0 * drifted)
    result = dcd(problem(X, y), Settings(tol=1e-3))[0]
    assert result.gap == pytest.approx(true.gap + 0.02)
    assert result.reason is Reason.PRECISION


def test_distances_are_those_of_the_sum_built_by_hand_however_the_slots_are_cut(monkeypatch):
    X, y = noisy(n=80)
    p = problem(X, [y, -y])
    rng = np.random.default_rng(0)
    coefficients, ws = list(rng.normal(size=(2, 80))), list(rng.normal(size=(2, X.shape[1])))
    expected = [((w - c @ X) ** 2).sum() for c, w in zip(coefficients, ws, strict=True)]
    for nbytes in (1 << 20, 3 * 8 * 2):  # all slots at once; three at a time
        monkeypatch.setattr(certify, "SUM_BYTES_IN_MEMORY", nbytes)
        np.testing.assert_allclose(squared_distances(p.examples, coefficients, ws), expected, rtol=1e-12)


def test_row_numbers_stay_apart_where_there_are_more_than_32_bits_can_tell(monkeypatch):
    wanted = np.array([True, False, True])
    assert row_numbers(wanted).dtype == np.uint32
    monkeypatch.setattr(block, "MOST_ROWS", 2)
    assert row_numbers(wanted).dtype == np.uint64
    assert row_numbers(wanted).tolist() == [0, 2]
    assert np.iinfo(np.uint32).max >= block.MOST_ROWS - 1
