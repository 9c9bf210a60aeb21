"""The minimum along a line, against its optimality condition and against all kinks; intercepts and their duals."""

import naive
import naive_search
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr

from dotadd.core.losses import Loss, dual_at
from dotadd.solvers.free_intercept import balanced_dual, best_intercept
from dotadd.solvers.line_search import minimum_along

LOSSES = ["hinge", "squared_hinge", "logistic"]
HINGES = LOSSES[:2]


def search(loss, margins, slopes, cost, linear=0.0, quadratic=0.0, low=0.0):
    """The minimum that is found, after a check that it is one."""
    arrays = [np.asarray(a, np.float64) for a in (margins, slopes, cost)]
    t = minimum_along(Loss.named(loss), *arrays, linear, quadratic, low)
    assert t >= low
    before, after, size = naive_search.derivatives(loss, *arrays, linear, quadratic, t)
    tiny = 1e-13 * size + 1e-30
    assert t == low or before <= tiny
    assert after >= -tiny
    return t


@st.composite
def lines(draw):
    """A line: many kinks that coincide, slopes and costs of 0, sizes from 1e-3 to 1e3."""
    n = draw(st.integers(0, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    margins, slopes = rng.normal(size=(2, n)) * 10.0 ** rng.uniform(-3, draw(st.integers(-3, 3)), (2, n))
    if draw(st.booleans()):
        margins, slopes = np.round(margins), np.round(slopes)
    cost = rng.uniform(0.0, 2.0, n) * (rng.random(n) < 0.9)
    return margins, slopes, cost


@pytest.mark.parametrize("loss", LOSSES)
@given(
    line=lines(),
    linear=st.floats(-5, 5),
    quadratic=st.sampled_from([1e-3, 1.0, 50.0]),
    low=st.sampled_from([0.0, -2.5, 3.0, -np.inf]),
)
def test_the_minimum_has_a_zero_between_its_one_sided_derivatives(loss, line, linear, quadratic, low):
    search(loss, *line, linear, quadratic, low)


@pytest.mark.parametrize("loss", LOSSES)
@given(
    line=lines(),
    linear=st.floats(-5, 5),
    quadratic=st.sampled_from([1e-3, 1.0, 50.0]),
    low=st.sampled_from([0.0, -np.inf]),
)
def test_no_kink_and_no_point_between_kinks_is_lower(loss, line, linear, quadratic, low):
    t = minimum_along(Loss.named(loss), *line, linear, quadratic, low)
    values = [naive_search.along(loss, *line, linear, quadratic, s) for s in naive_search.candidates(*line[:2], low)]
    assert naive_search.along(loss, *line, linear, quadratic, t) <= min(values) + 1e-12 * (1.0 + abs(min(values)))


@pytest.mark.parametrize("low", [0.0, -np.inf])
@pytest.mark.parametrize("loss", HINGES)
def test_many_examples_are_no_different_from_few(loss, low):
    """Enough for a sample to narrow down the range first."""
    rng = np.random.default_rng(0)
    margins, slopes = rng.normal(size=(2, 20000))
    cost = rng.uniform(size=20000)
    search(loss, margins, slopes, cost, -1000.0, 100.0, low)
    search(loss, margins, slopes, cost, 1000.0, 0.0, low)
    search(loss, np.zeros(20000), np.sign(slopes), cost, 0.0, 0.0, low)
    search(loss, np.sort(margins), np.ones(20000), cost, 3000.0, 1.0, low)
    outlier = np.where(np.arange(20000) == 7, -1e7, margins)  # of which the sample knows nothing
    search(loss, outlier, slopes, cost, -1.0, 1.0, low)


@pytest.mark.parametrize("loss", HINGES)
@given(line=lines(), low=st.sampled_from([0.0, -2.5, -np.inf]))
def test_without_a_quadratic_term_it_is_a_minimum_too(loss, line, low):
    search(loss, *line, 0.0, 0.0, low)


@pytest.mark.parametrize("loss", LOSSES)
def test_all_kinks_in_one_point(loss):
    ones = np.ones(1000)
    t = search(loss, 0.0 * ones, 0.5 * ones, ones, 0.0, 1e-3)
    assert t == 2.0 or loss != "hinge"
    signs = np.where(np.arange(1000) < 700, 1.0, -1.0)
    b = search(loss, 0.0 * ones, signs, ones, low=-np.inf)
    assert b == pytest.approx({"hinge": 1.0, "squared_hinge": 0.4, "logistic": np.log(7 / 3)}[loss], rel=1e-12)


@pytest.mark.parametrize("loss", HINGES)
def test_where_the_objective_keeps_falling_the_last_kink_is_returned(loss):
    up, ones = np.array([1.0, 2.0, 4.0]), np.ones(3)
    last = 2.0
    assert minimum_along(Loss.named(loss), -ones, up, ones, -1.0, 0.0) == last
    assert minimum_along(Loss.named(loss), -ones, up, ones, 0.0, 0.0) == last
    assert minimum_along(Loss.named(loss), 3.0 * ones, up, ones, -1.0, 0.0) == 0.0  # all kinks are behind
    assert minimum_along(Loss.named(loss), 3.0 * ones, up, ones, -1.0, 0.0, low=1.5) == 1.5
    assert minimum_along(Loss.named(loss), ones, 0.0 * up, ones, -1.0, 0.0, low=-np.inf) == 0.0  # there are none


@pytest.mark.parametrize("loss", LOSSES)
def test_without_moving_examples_only_the_parabola_counts(loss):
    rows = np.array([0.3, 2.0]), np.zeros(2), np.ones(2)
    assert search(loss, *rows, linear=-3.0, quadratic=2.0) == 1.5
    assert search(loss, *rows, linear=3.0, quadratic=2.0) == 0.0
    assert search(loss, *rows, linear=3.0, quadratic=2.0, low=-np.inf) == -1.5
    none = np.zeros((3, 0))
    assert search(loss, *none, linear=-3.0, quadratic=2.0) == 1.5


@pytest.mark.parametrize("loss", LOSSES)
def test_examples_without_a_cost_do_not_count(loss):
    rng = np.random.default_rng(3)
    margins, slopes = rng.normal(size=(2, 50))
    cost = (rng.random(50) < 0.5).astype(np.float64)
    t = search(loss, margins, slopes, cost, 0.3, 0.5)
    kept = cost > 0.0
    assert search(loss, margins[kept], slopes[kept], cost[kept], 0.3, 0.5) == pytest.approx(t, rel=1e-12)


def test_the_logistic_minimum_is_found_far_away_and_close_by():
    one = np.ones(1)
    for odds in (1.001, 1e3, 1e12):
        for side in (one, -one):  # the loss's slope is -1 / (1 + exp(t)), or that of its mirror image
            t = search("logistic", 0.0 * one, side, one, side[0] / (1.0 + odds), 0.0, low=-np.inf)
            assert t == pytest.approx(side[0] * np.log(odds), rel=1e-11)
    assert np.isfinite(search("logistic", 0.0 * one, one, one, low=-np.inf))  # falls for ever


@pytest.mark.parametrize("linear", [-5e-324, 5e-324, -1e-310])
def test_a_derivative_that_is_next_to_nothing_leads_nowhere(linear):
    none = np.empty(0)
    for low in (0.0, -np.inf):
        assert abs(minimum_along(Loss.LOGISTIC, none, none, none, linear, 50.0, low)) <= 1e-300


@pytest.mark.parametrize("loss", HINGES)
def test_of_many_best_intercepts_the_middle_one_is_taken(loss):
    output, sign = np.array([5.0, 4.0, -3.0, -6.0]), np.array([1, 1, -1, -1], np.int8)
    cost = np.array([0.1, 0.3, 0.7, 0.9])
    assert best_intercept(Loss.named(loss), output, sign, cost) == pytest.approx(-0.5, abs=1e-5)  # -3 to 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("only", [1, -1])
def test_one_class_alone_is_put_on_its_side_by_a_finite_intercept(loss, only):
    output, sign, cost = np.array([0.5, -2.0, 3.0]), np.full(3, only, np.int8), np.ones(3)
    b = best_intercept(Loss.named(loss), output, sign, cost)
    assert np.isfinite(b)
    assert naive.loss_value(loss, sign * (output + b)).sum() <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 200), rounded=st.booleans())
def test_the_dual_at_the_best_intercept_is_balanced_and_closes_the_local_gaps(loss, seed, n, rounded):
    rng = np.random.default_rng(seed)
    output, cost = 2.0 * rng.normal(size=n), rng.uniform(0.1, 3.0, n)
    if rounded:  # many kinks in one point
        output, cost = np.round(output), np.ones(n)
    sign = np.where(rng.random(n) < 0.3, 1, -1).astype(np.int8)
    sign[:2] = [1, -1]
    b = best_intercept(Loss.named(loss), output, sign, cost)
    margins = sign * (output + b)
    alpha = balanced_dual(Loss.named(loss), margins, sign, cost)
    assert abs(alpha @ sign) <= 1e-13 * cost.sum()
    assert (alpha >= 0.0).all()
    assert loss == "squared_hinge" or (alpha <= cost).all()
    terms = {
        "hinge": alpha,
        "squared_hinge": alpha - alpha**2 / (4.0 * cost),
        "logistic": cost * (entr(alpha / cost) + entr(1.0 - alpha / cost)),
    }[loss]
    gaps = cost * naive.loss_value(loss, margins) - terms + alpha * margins  # each 0 where alpha is a subgradient
    assert gaps.sum() <= 1e-8 * cost.sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_at_some_margins_is_the_slope_of_the_loss(loss):
    margins, cost = np.linspace(-3.0, 3.0, 62), np.linspace(0.0, 2.0, 62)
    h = 1e-6
    slopes = (naive.loss_value(loss, margins + h) - naive.loss_value(loss, margins - h)) / (2.0 * h)
    np.testing.assert_allclose(dual_at(Loss.named(loss), margins, cost), -cost * slopes, atol=1e-8)
    assert dual_at(Loss.HINGE, np.ones(1), np.ones(1))[0] == 0.0
