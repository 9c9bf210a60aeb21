"""Cutting planes: each lies below the risk, together they prove the answer, and they stay within their room."""

import shutil
import tempfile

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, noisy, problem

from dotadd._util.memory import Budget
from dotadd.core.losses import Loss, dual_at, total_dual_term
from dotadd.errors import DotaddError
from dotadd.solvers import planes as module
from dotadd.solvers.planes import Planes, Shares
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.table import SOLVERS

ROOM = 1 << 24
METHODS = ("ocas", "bmrm", "svmperf")


def solve(p, settings, method="ocas"):
    return SOLVERS[method](p, settings)


def cut(X, y, cost, loss, w, b):
    """The plane that touches the risk at (w, b): its vector, slope, height and dual variables."""
    alpha = dual_at(int(Loss.named(loss)), y * (X @ w + b), cost)
    return (alpha * y) @ X, alpha @ y, total_dual_term(int(Loss.named(loss)), alpha, cost), alpha


def filled(X, y, cost, loss, points, **how):
    rng = np.random.default_rng(0)
    planes = Planes(X.shape[1], len(y), np.dtype(np.float64), **{"nbytes": ROOM, "threads": 1, **how}, exact=True)
    for _ in range(points):
        a, slope, height, alpha = cut(X, y, cost, loss, rng.normal(size=X.shape[1]), rng.normal())
        planes.append(a, slope, height, Shares.of(alpha, cost))
        planes.solve(1e-9)
    return planes


def height_at(planes, w, b):
    """The highest plane at (w, b)."""
    n = planes.count
    return (planes.offsets[:n] - planes.vectors[:n] @ w - planes.slopes[:n] * b).max()


@pytest.mark.parametrize("loss", LOSSES)
def test_every_plane_lies_below_the_risk_and_touches_it_where_it_was_cut(loss):
    X, y = noisy()
    cost = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    rng = np.random.default_rng(1)
    w, b = rng.normal(size=X.shape[1]), 0.4
    a, slope, height, _ = cut(X, y, cost, loss, w, b)
    assert height - a @ w - slope * b == pytest.approx(cost @ naive.loss_value(loss, y * (X @ w + b)))
    for _ in range(50):
        v, c = 3.0 * rng.normal(size=X.shape[1]), rng.normal()
        assert height - a @ v - slope * c <= cost @ naive.loss_value(loss, y * (X @ v + c)) + 1e-9


@pytest.mark.parametrize("threads", [1, 2])
def test_the_lowest_point_above_the_planes_is_where_its_height_says(threads, monkeypatch):
    monkeypatch.setattr(module, "STRETCH", 3)  # so that threads share out 8 slots
    X, y = noisy()
    planes = filled(X, y, np.ones(len(y)), "hinge", 12, threads=threads)
    w = np.empty(X.shape[1])
    height = planes.solve(1e-12)
    b = planes.lowest(w)
    assert 0.5 * (w @ w + b * b) + height_at(planes, w, b) == pytest.approx(height, rel=1e-9), "strong duality"
    alpha = planes.alpha(np.ones(len(y)))
    np.testing.assert_allclose(w, (alpha * y) @ X, atol=1e-9)
    assert alpha.sum() - 0.5 * (w @ w + b * b) == pytest.approx(height, rel=1e-9)


def test_without_room_planes_are_dropped_or_merged_and_the_height_never_falls(monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 1)
    X, y = noisy()
    size = 8 * X.shape[1] + len(y) // 8
    rng = np.random.default_rng(0)
    planes = Planes(X.shape[1], len(y), np.dtype(np.float64), nbytes=4 * size, exact=True, threads=1)
    assert planes.capacity == 4
    heights, merged = [0.0], 0
    w, cost = np.zeros(X.shape[1]), np.ones(len(y))
    for _ in range(40):
        a, slope, height, alpha = cut(X, y, cost, "hinge", w + 0.1 * rng.normal(size=len(w)), planes.lowest(w))
        merged += planes.count == planes.capacity and not planes.idle[1 : planes.count].any()
        planes.append(a, slope, height, Shares.of(alpha, cost))
        assert planes.count <= planes.capacity
        heights.append(planes.solve(1e-12))
        b = planes.lowest(w)
        n = planes.count
        gram = planes.vectors[:n] @ planes.vectors[:n].T + np.outer(planes.slopes[:n], planes.slopes[:n])
        np.testing.assert_allclose(planes.gram[:n, :n], gram, rtol=1e-9, atol=1e-9)
        alpha = planes.alpha(cost)
        np.testing.assert_allclose(w, (alpha * y) @ X, atol=1e-6)
        assert b == pytest.approx(alpha @ y, abs=1e-6)
    assert merged > 3
    assert (np.diff(heights) >= -1e-9).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_few_planes_are_enough_for_the_optimum(method, intercept, monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 1)
    X, y = noisy()
    p = problem(X, y, cost=0.1, intercept=intercept)
    best, _, _ = naive.solve(X, y, p.columns.cost(0), "hinge", intercept)
    size = 8 * X.shape[1] + len(y) // 8
    result = solve(p, Settings(tol=1e-3, max_passes=5000, budget=Budget(8 * size)), method)[0]
    assert result.reason is Reason.CONVERGED
    assert best * (1 - 1e-9) <= result.primal <= best * (1 + 1e-3)


def test_where_few_planes_fit_into_memory_they_lie_in_a_file():
    X, y = noisy()
    roomy, tight = (
        solve(problem(X, y), Settings(tol=1e-5, max_passes=5000, budget=Budget(nbytes)))[0] for nbytes in (ROOM, 1)
    )
    assert tight.passes == roomy.passes
    assert tight.primal == pytest.approx(roomy.primal, rel=1e-12)
    inside = Planes(8, 60, np.dtype(np.float32), nbytes=1, exact=True, threads=1)
    assert isinstance(inside.vectors.base, np.memmap)
    assert inside.capacity == 2 * module.ENOUGH


def test_a_disk_without_room_is_one_clear_line(monkeypatch):
    usage = shutil.disk_usage(tempfile.gettempdir())
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100))
    X, y = noisy()
    with pytest.raises(DotaddError, match=r"no room for 3 cutting planes.*TMPDIR"):
        solve(problem(X, y), Settings(budget=Budget(1)))


def test_shares_are_kept_exactly_where_they_are_few_and_to_float32_otherwise():
    rng = np.random.default_rng(0)
    cost = rng.uniform(0.5, 2.0, 1000) * (rng.random(1000) < 0.9)
    for odd, rtol in ((5, 1e-15), (500, 1e-7)):
        shares = (rng.random(1000) < 0.4).astype(float)
        shares[:odd] = rng.random(odd)
        total = np.ones(1000)
        Shares.of(shares * cost, cost).add_to(total, 0.5)
        np.testing.assert_allclose(total, 1.0 + 0.5 * np.where(cost > 0, shares, 0.0), rtol=rtol)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_of_ocas_never_rises_and_the_height_never_falls(loss):
    X, y = noisy(n=200)
    result = solve(problem(X, y, loss=loss, intercept="free"), Settings(tol=1e-6, max_passes=3000))[0]
    primal, dual = (np.array([getattr(progress, name) for progress in result.trace]) for name in ("primal", "dual"))
    assert (np.diff(primal) <= 1e-9 * primal[-1]).all()
    assert (np.diff(dual) >= -1e-6 * primal[-1]).all()
    assert result.gap <= 1e-6


def test_ocas_needs_fewer_planes_than_the_plain_methods():
    X, y = noisy(n=500, d=10)
    passes = {method: solve(problem(X, y), Settings(tol=1e-3), method)[0].passes for method in METHODS}
    assert 2 * passes["ocas"] < min(passes["bmrm"], passes["svmperf"])


def test_svmperf_returns_the_lowest_point_above_its_planes():
    X, y = noisy()
    result = solve(problem(X, y), Settings(tol=1e-12, max_passes=20), "svmperf")[0]
    assert result.reason is Reason.MAX_PASSES
    np.testing.assert_allclose(result.w, (result.alpha * y) @ X, atol=1e-9)


def test_seconds_are_told_by_phase():
    X, y = noisy()
    seconds = solve(problem(X, y), Settings())[0].seconds
    assert set(seconds) == {"output", "sort", "add", "w", "qp", "certify"}
    assert all(spent > 0.0 for spent in seconds.values())
