"""Violations of the optimality conditions, the intercept and the objectives, against their definitions."""

import kernel_problems as kp
import numpy as np
import pytest

from dotadd.kernel_svm.working_set import intercept, objectives, select, violation


def some_state(seed, n=40):
    """f, sign, cost and alpha that belong to no problem; alphas at both bounds and between, some costs 0."""
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1, 1], n).astype(np.int8)
    cost = kp.several_costs(n, seed)
    alpha = cost * np.clip(rng.uniform(-0.5, 1.5, n), 0.0, 1.0)
    return rng.normal(size=n), sign, cost, alpha


def sets(sign, cost, alpha):
    up = [i for i in range(len(sign)) if (alpha[i] < cost[i] if sign[i] > 0 else alpha[i] > 0)]
    low = [i for i in range(len(sign)) if (alpha[i] > 0 if sign[i] > 0 else alpha[i] < cost[i])]
    return up, low


@pytest.mark.parametrize("seed", range(5))
def test_the_violation_is_that_of_the_worst_pair(seed):
    f, sign, cost, alpha = some_state(seed)
    up, low = sets(sign, cost, alpha)
    up_max, low_min, i, j = violation(f, sign, cost, alpha)
    assert up_max == max(sign[k] - f[k] for k in up) == sign[i] - f[i]
    assert low_min == min(sign[k] - f[k] for k in low) == sign[j] - f[j]
    assert i in up
    assert j in low


def test_an_empty_set_has_no_extreme():
    ones, zeros = np.ones(3), np.zeros(3)
    sign = np.ones(3, np.int8)
    assert violation(zeros, sign, ones, zeros)[1::2] == (np.inf, -1)
    assert violation(zeros, -sign, ones, zeros)[::2] == (-np.inf, -1)
    assert violation(zeros, sign, zeros, zeros) == (-np.inf, np.inf, -1, -1)


def test_the_intercept_puts_free_examples_on_their_margin_on_average():
    f, sign, cost, alpha = some_state(1)
    free = (alpha > 0) & (alpha < cost)
    b = intercept(f, sign, cost, alpha)
    assert np.mean((f + b - sign)[free]) == pytest.approx(0.0, abs=1e-12)


def test_without_free_examples_the_intercept_is_the_middle_of_what_is_allowed():
    f, sign = np.array([0.3, -0.2, 0.9]), np.array([1, -1, 1], np.int8)
    cost, zeros = np.ones(3), np.zeros(3)
    assert intercept(f, sign, cost, zeros) == pytest.approx(0.5 * (max(0.7, 0.1) + -0.8))
    assert intercept(f, np.ones(3, np.int8), cost, zeros) == pytest.approx(1.2)  # only `up`: the least b allowed
    assert intercept(f, -np.ones(3, np.int8), cost, zeros) == pytest.approx(-1.9)
    assert intercept(f, sign, zeros, zeros) == 0.0


def test_objectives_are_what_their_definitions_say():
    X, y = kp.noisy(30)
    p = kp.problem(X, y, cost=kp.several_costs(30))
    alpha = p.cost * np.random.default_rng(0).random(30)
    f = p.gram.matrix @ (alpha * y)
    primal, dual = objectives(f, y, p.cost, alpha, 0.3)
    norm = (alpha * y) @ p.gram.matrix @ (alpha * y)
    losses = [p.cost[i] * max(0.0, 1.0 - y[i] * (f[i] + 0.3)) for i in range(30)]
    assert primal == pytest.approx(0.5 * norm + sum(losses))
    assert dual == pytest.approx(kp.dual(p, alpha))


@pytest.mark.parametrize("q", [2, 7, 10, 30])
@pytest.mark.parametrize("seed", range(3))
def test_selected_are_the_most_violating_of_both_sets(seed, q):
    f, sign, cost, alpha = some_state(seed)
    up, low = sets(sign, cost, alpha)
    g = sign - f
    chosen = select(f, sign, cost, alpha, q)
    assert len(chosen) == len(set(chosen)) == min(q, len(set(up) | set(low)))
    best_up = sorted(up, key=lambda k: -g[k])[: q // 2]
    best_low = sorted(low, key=lambda k: g[k])[: q // 2]
    assert set(best_up) <= set(chosen)
    assert set(best_low) <= set(chosen)


def test_no_more_are_selected_than_can_move():
    f, sign, cost, alpha = some_state(0)
    movable = np.flatnonzero(cost > 0)
    np.testing.assert_array_equal(select(f, sign, cost, alpha, 1000), movable)
    assert len(select(f, np.ones(40, np.int8), cost, np.zeros(40), 10)) == 10  # none of `low`: all from `up`
