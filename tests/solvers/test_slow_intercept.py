"""An intercept that moves slowly: the optimum and the proof stay what they are, and fewer visits lead there."""

import naive
import numpy as np
import pytest
from naive import solve
from problems import LOSSES, noisy, problem

from dotadd.core.losses import Loss
from dotadd.problem.problem import Centre, Intercept
from dotadd.solvers import slow_intercept
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.slow_intercept import SlowDescent, step_of
from dotadd.solvers.sweep import BALANCE, INTERCEPT


def short(n=200, d=40, seed=0, length=1.0, shift=0.0):
    """Rows of one length, most of one class if shifted."""
    X, y = noisy(n, d, seed)
    y = np.where((np.arange(n) % 10 < 10 * shift) & (y < 0), 1, y).astype(y.dtype)
    return length * X / np.maximum(np.sqrt((X**2).sum(1)), 1e-9)[:, None], y


@pytest.mark.parametrize("cost", [1e-3, 1.0, 4.0])
@pytest.mark.parametrize("length", [1e-3, 1.0, 3.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_a_quadratic_program_and_the_gap_is_proved(loss, length, cost):
    X, y = short(length=length, shift=0.6)
    (result,) = dcd(problem(X, y, loss=loss, cost=cost), Settings(tol=1e-5, max_passes=50_000))
    assert result.reason is Reason.CONVERGED
    best, _, _ = solve(X, y, np.full(len(y), cost), loss, "regularized")
    assert best * (1.0 - 1e-9) <= result.primal <= best * (1.0 + 2e-5)
    assert result.dual <= best * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_settles_at_the_sum_or_stays_whichever_has_the_lower_objective(loss):
    rng = np.random.default_rng(0)
    output, sign, cost = rng.normal(size=50), rng.choice([-1, 1], 50).astype(np.int8), rng.uniform(size=50)
    moved = set()
    for b, balance in ((0.3, -3.0), (0.3, 3.0), (-3.0, 0.1), (3.0, -0.1)):
        descent = SlowDescent(np.zeros(2), Intercept.REGULARIZED, Centre(np.zeros(2), 0.2))
        descent.numbers[[BALANCE, INTERCEPT]] = balance, b
        losses = {t: cost @ naive.loss_value(loss, sign * (output + t)) for t in (b, 0.2 + balance)}
        best = min(losses, key=lambda t: 0.5 * (t - 0.2) ** 2 + losses[t])
        descent.settle(Loss.named(loss), output, sign, cost)
        assert descent.b == pytest.approx(best)
        moved.add(descent.b != b)
    assert moved == {True, False}


def test_where_all_dual_variables_are_at_their_bound_the_intercept_is_their_sum():
    X, y = short(shift=0.6)
    (result,) = dcd(problem(X, y, cost=1e-4), Settings(tol=1e-2))
    assert result.intercept == pytest.approx(1e-4 * y.sum(), rel=1e-6)
    assert result.gap < 1e-9


def test_rows_of_length_one_are_visited_less_often(monkeypatch):
    X, y = short(2000, 500)
    settings = Settings(tol=1e-3, max_passes=1000)
    (slow,) = dcd(problem(X, y), settings)
    monkeypatch.setattr(slow_intercept, "FAR", 0.0)
    (exact,) = dcd(problem(X, y), settings)
    visits = [sum(progress.active for progress in one.trace) for one in (slow, exact)]
    assert visits[0] < 0.8 * visits[1]


@pytest.mark.parametrize("intercept", Intercept)
def test_where_rows_are_long_nothing_is_slow(intercept):
    norms = np.full(3, 20.0)
    assert step_of(intercept, norms) == {"none": 0.0, "regularized": 1.0, "free": 20.0}[intercept.value]
    assert 0.0 < step_of(Intercept.REGULARIZED, np.zeros(3)) < step_of(Intercept.REGULARIZED, np.ones(3)) < 1.0


def test_it_goes_to_meet_the_sum_in_longer_strides_until_it_is_there():
    descent = SlowDescent(np.zeros(2), Intercept.REGULARIZED, Centre(np.zeros(2), 0.5))
    descent.numbers[BALANCE] = 2.0
    assert descent.apart == 2.0
    assert descent.multiplier_term == -2.0
    before = []
    while descent.apart > 1e-9 and len(before) < 20:
        before.append(descent.apart)
        descent.move_multiplier(0.02)
    assert len(before) < 10
    assert descent.b == pytest.approx(2.5)
    descent.numbers[INTERCEPT] += 1.0  # beyond it: as slow as in the beginning
    descent.lag = 1.0
    descent.move_multiplier(0.02)
    assert descent.b == pytest.approx(3.5 - 0.02)
    descent.meet()
    assert descent.b == pytest.approx(2.5)


def test_a_warm_start_with_its_intercept_is_at_the_optimum_at_once():
    X, y = short()
    (cold,) = dcd(problem(X, y), Settings(tol=1e-4, max_passes=5000))
    warm = {"alphas": [cold.alpha], "intercepts": [cold.intercept]}
    assert dcd(problem(X, y), Settings(tol=1e-4, max_passes=5000), **warm)[0].passes == 0


def test_where_many_examples_are_looked_at_at_once_steps_are_exact():
    assert step_of(Intercept.REGULARIZED, np.ones(3), exact=True) == 1.0
    assert step_of(Intercept.NONE, np.ones(3), exact=True) == 0.0
