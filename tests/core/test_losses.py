"""Losses against their definitions: slopes by differences, dual terms as conjugates, dual steps by search."""

import naive
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dotadd._jit import kernel
from dotadd.core.losses import Loss, dual_step, dual_term, slope, total_dual_term, total_loss, value


@kernel
def _value(loss, m):
    return value(loss, m)


@kernel
def _slope(loss, m):
    return slope(loss, m)


@kernel
def _dual_term(loss, alpha, cost):
    return dual_term(loss, alpha, cost)


@kernel
def _dual_step(loss, alpha, cost, margin, norm):
    return dual_step(loss, alpha, cost, margin, norm)


LOSSES = list(Loss)
MARGINS = [-800.0, -3.7, -1.0, 0.0, 0.4, 0.999, 1.001, 2.5, 40.0, 800.0]


@pytest.mark.parametrize("loss", LOSSES)
def test_value_is_the_definition_and_never_overflows(loss):
    for m in MARGINS:
        expected = float(naive.loss_value(loss.name.lower(), m))
        assert _value(int(loss), m) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("loss", LOSSES)
def test_slope_is_the_derivative_of_value(loss):
    for m in MARGINS:
        step = 1e-6 * max(1.0, abs(m))
        difference = (_value(int(loss), m + step) - _value(int(loss), m - step)) / (2 * step)
        assert _slope(int(loss), m) == pytest.approx(difference, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cost", [0.3, 2.0])
def test_dual_term_is_the_least_of_cost_times_loss_plus_alpha_times_margin(loss, cost):
    upper = 5.0 if loss is Loss.SQUARED_HINGE else cost
    for alpha in np.linspace(0.0, upper, 9)[1:-1]:
        least = minimize_scalar(
            lambda m, alpha=alpha: cost * naive.loss_value(loss.name.lower(), m) + alpha * m,
            bounds=(-60.0, 60.0),
            method="bounded",
            options={"xatol": 1e-10},
        ).fun
        assert _dual_term(int(loss), alpha, cost) == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_dual_step_goes_to_the_maximum_in_one_variable(loss):
    rng = np.random.default_rng(0)
    for _ in range(60):
        cost, norm, margin = 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-2, 2), 3.0 * rng.normal()
        alpha = rng.uniform(0, cost)
        new = _dual_step(int(loss), alpha, cost, margin, norm)

        def objective(a, alpha=alpha, cost=cost, norm=norm, margin=margin):
            return _dual_term(int(loss), a, cost) - (a - alpha) * margin - 0.5 * norm * (a - alpha) ** 2

        reach = cost if loss is not Loss.SQUARED_HINGE else 10.0 * (cost + 1.0)
        assert 0.0 <= new <= reach
        best = max(objective(a) for a in np.linspace(0.0, reach, 1001))
        assert objective(new) >= best - 1e-9 * max(1.0, abs(best))


def test_dual_step_of_an_empty_example_goes_to_a_bound():
    assert _dual_step(int(Loss.HINGE), 0.2, 1.0, 0.0, 0.0) == 1.0
    assert _dual_step(int(Loss.HINGE), 0.2, 1.0, 2.0, 0.0) == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_totals_are_sums_over_examples(loss):
    rng = np.random.default_rng(1)
    margins, cost = rng.normal(size=30), rng.uniform(0.5, 2.0, 30)
    alpha = cost * rng.uniform(size=30)
    assert total_loss(loss, margins, cost) == pytest.approx(cost @ naive.loss_value(loss.name.lower(), margins))
    terms = sum(_dual_term(int(loss), a, c) for a, c in zip(alpha, cost, strict=True))
    assert total_dual_term(loss, alpha, cost) == pytest.approx(terms)


def test_an_unknown_loss_is_refused_by_name():
    with pytest.raises(ValueError, match="unknown loss 'huber'; choose from hinge, squared_hinge, logistic"):
        Loss.named("huber")
