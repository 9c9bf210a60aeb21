"""Stochastic gradient descent: its steps against a plain twin, and its answers against the optimum."""

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, noisy, problem

from dotadd.solvers.baselines.sgd import _pass, _State, sgd
from dotadd.solvers.clock import Clock
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings


def hinge_step(cost, margin, norm):
    return min(max((1.0 - margin) / norm, 0.0), cost) if norm > 0.0 else float(margin < 1.0) * cost


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_lazy_scaling_and_averaging_equal_the_plain_steps(intercept):
    X, y = noisy(n=50)
    cost = np.random.default_rng(0).uniform(0.5, 2.0, 50)
    p = problem(X, y, cost=cost, intercept=intercept)
    state = _State(p, 0)
    rate = 0.0 if intercept == "none" else 0.4
    norms = p.examples.squared_norms() + rate
    rng = np.random.default_rng(1)
    orders = [rng.permutation(50).astype(np.int32) for _ in range(3)]
    for order in orders:
        assert sum(_pass(p, [state], norms, rate, order, 3.0, True, Clock())) == len(order)
    last, mean = naive.sgd(X, y, cost, hinge_step, 3.0, np.concatenate(orders), 50, rate, intercept)
    for found, expected in ((state.last(), last), (state.average(), mean)):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-12)
        assert found[1] == pytest.approx(expected[1], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("schedule", ["calibrated", "pegasos"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("size", "C"), [(0.01, 1e3), (1.0, 1e-3), (1.0, 1.0), (100.0, 1e-5)])
def test_comes_close_to_the_optimum_whatever_the_size_of_the_features(loss, size, C, schedule):
    X, y = noisy(n=1000, d=20, seed=3)
    X = size * X
    p = problem(X, y, cost=C, loss=loss)
    best = dcd(p, Settings(tol=1e-4, max_passes=3000))[0].primal
    result = sgd(p, Settings(seed=1), schedule=schedule)[0]
    assert result.converged
    assert result.primal <= 1.05 * best
    assert result.primal == pytest.approx(
        naive.primal(X, y, p.columns.cost(0), loss, result.w, result.intercept, "regularized"), rel=1e-6
    )


def test_the_free_intercept_is_not_penalised():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.where(X[:, 0] + 5.0 + 0.3 * rng.normal(size=500) > 4.2, 1, -1)
    found = {kind: sgd(problem(X, y, cost=0.01, intercept=kind), Settings())[0].intercept for kind in INTERCEPTS}
    assert found["none"] == 0.0
    assert found["free"] > found["regularized"] > 0.0


def test_the_average_beats_or_equals_the_last_iterate():
    X, y = noisy(n=500, d=10)
    p = problem(X, y)
    averaged, last = (sgd(p, Settings(max_passes=4, tol=1e-9), average=average)[0] for average in (True, False))
    assert averaged.primal <= last.primal


def test_an_interrupt_keeps_what_there_is():
    X, y = noisy(n=500)

    def interrupt(progress, k):
        if progress.passes == 2:
            raise KeyboardInterrupt

    result = sgd(problem(X, y), Settings(on_progress=interrupt))[0]
    assert result.reason is Reason.INTERRUPTED
    assert result.primal < len(y)


def test_an_unknown_schedule_is_refused():
    X, y = noisy()
    with pytest.raises(ValueError, match="unknown schedule 'fast'"):
        sgd(problem(X, y), Settings(), schedule="fast")
