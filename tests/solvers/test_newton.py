"""Newton's method: its gap is the length of the gradient, and it converges fast once it is near."""

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, noisy, problem

from dotadd.errors import DotaddError
from dotadd.solvers import newton as module
from dotadd.solvers.newton import newton
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.serving import serve
from dotadd.solvers.table import SOLVERS

SMOOTH = ["squared_hinge", "logistic"]


@pytest.fixture(autouse=True, params=["Hessian", "products with it"])
def _both_ways(request, monkeypatch):
    """Narrow data takes the Hessian as it is, other data products with it."""
    if request.param == "products with it":
        monkeypatch.setattr(module, "NARROW", 0)


def gradient(X, y, cost, loss, w, b, intercept):
    m = y * (X @ w + b)
    slope = 2.0 * np.minimum(m - 1.0, 0.0) if loss == "squared_hinge" else -1.0 / (1.0 + np.exp(m))
    in_b = {"none": 0.0, "free": 0.0, "regularized": b}[intercept]
    return np.append(w + (cost * slope * y) @ X, in_b + (0.0 if intercept == "none" else (cost * slope) @ y))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_gap_is_half_the_squared_length_of_the_gradient(loss, intercept):
    X, y = noisy(n=200)
    p = problem(X, y, loss=loss, intercept=intercept)
    result = serve(newton, p, Settings(tol=0.1))[0]
    g = gradient(X, y, p.columns.cost(0), loss, result.w, result.intercept, intercept)
    assert result.primal - result.dual == pytest.approx(0.5 * g @ g, rel=1e-6, abs=1e-12)
    assert result.primal == pytest.approx(
        naive.primal(X, y, p.columns.cost(0), loss, result.w, result.intercept, intercept)
    )
    assert result.gap == pytest.approx(result.trace[-1].gap, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_the_objective_never_rises_and_the_last_steps_gain_many_digits(loss, C):
    X, y = noisy(n=300, d=10)
    result = serve(newton, problem(X, y, loss=loss, cost=C), Settings(tol=4e-12))[0]  # rounding is counted
    primal = np.array([progress.primal for progress in result.trace])
    gaps = np.array([progress.gap for progress in result.trace])
    assert result.reason is Reason.CONVERGED
    assert (np.diff(primal) <= 1e-12 * primal[:-1]).all()
    assert gaps[-1] <= 1e-3 * gaps[-2]
    assert len(primal) <= 25


def test_the_hinge_is_refused_with_what_to_do():
    X, y = noisy()
    with pytest.raises(DotaddError, match="newton needs a smooth loss: use loss='squared_hinge'"):
        SOLVERS["newton"](problem(X, y, loss="hinge"), Settings())


def test_float32_weights_reach_a_small_gap():
    X, y = noisy(n=300, d=10)
    result = serve(newton, problem(X, y, loss="squared_hinge", dtype=np.float32), Settings(tol=1e-6))[0]
    assert result.w.dtype == np.float32
    assert result.gap <= 1e-6


def test_one_class_with_a_free_intercept_ends():
    X, _ = noisy()
    result = serve(newton, problem(X, np.ones(60), loss="squared_hinge", intercept="free"), Settings())[0]
    assert result.primal == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_both_ways_lead_to_one_optimum(monkeypatch, loss, intercept):
    X, y = noisy(n=200)
    X[:, 2:5] = np.round(X[:, 2:5])  # sparse in part
    found = [serve(newton, problem(X, y, loss=loss, intercept=intercept), Settings(tol=1e-9))[0]]
    monkeypatch.setattr(module, "NARROW", 0)
    found.append(serve(newton, problem(X, y, loss=loss, intercept=intercept), Settings(tol=1e-9))[0])
    np.testing.assert_allclose(found[0].w, found[1].w, rtol=1e-3, atol=1e-4)
    assert found[0].primal == pytest.approx(found[1].primal, rel=1e-8)
