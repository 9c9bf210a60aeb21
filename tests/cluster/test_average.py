"""Averaging: the mean of what parts find alone is the w of a dual point of the whole, and its gap is proved."""

import naive
import numpy as np
import pytest
from naive import by_definition
from problems import LOSSES, noisy, problem
from test_cocoa import engine_of, engine_of_files, shares, stated

from dotadd.cluster.average import average
from dotadd.problem.on_disk import OnDisk
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings

TIGHT = Settings(tol=1e-8, max_passes=20000)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mean_is_that_of_the_parts_own_answers_weighted_by_rows(loss):
    X, y = noisy(n=120)
    rows = [*shares(120, 3), np.empty(0, np.int64)]
    engine = engine_of(X, y, rows)
    (result,) = average(engine, stated(engine, loss=loss), TIGHT)
    w, b = np.zeros(X.shape[1]), 0.0
    for mine in rows[:3]:
        share = len(mine) / 120
        (alone,) = dcd(problem(X[mine], y[mine], cost=1.0 / share, loss=loss), TIGHT)
        w, b = w + share * alone.w, b + share * alone.intercept
    np.testing.assert_allclose(result.w, w, atol=1e-3 * np.abs(w).max())
    assert result.intercept == pytest.approx(b, abs=1e-3)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_is_that_of_the_dual_point_that_the_shares_of_the_parts_make(loss, intercept):
    X, y = noisy(n=120, seed=2)
    rows = shares(120, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    engine = engine_of(X, y, rows, weight)
    task = stated(engine, loss=loss, intercept=intercept)
    (result,) = average(engine, task, Settings(tol=1e-3), gather=True)
    (unproved,) = average(engine, task, Settings(tol=1e-3), prove=False)
    order = np.concatenate(rows)
    best, _, _ = naive.solve(X, y, weight, loss, intercept)
    X, y, cost = X[order], y[order], weight[order]
    assert loss == "squared_hinge" or (result.alpha <= cost).all()
    np.testing.assert_allclose(result.w, (result.alpha * y) @ X, atol=1e-9)
    primal, dual = by_definition(X, y, cost, loss, intercept, result.w, result.intercept, result.alpha)
    assert result.primal == pytest.approx(primal, rel=1e-9)
    assert result.dual == pytest.approx(dual, rel=1e-9)
    assert result.gap == pytest.approx((primal - dual) / primal, abs=1e-9)
    assert result.dual <= best <= result.primal
    assert unproved.primal > best
    assert unproved.dual is None
    assert unproved.gap is None


def test_one_part_is_solved_and_several_are_told_to_be_short_of_the_tolerance():
    X, y = noisy(n=200)
    results = []
    for parts in (1, 5):
        engine = engine_of(X, y, shares(200, parts))
        results += average(engine, stated(engine), Settings(tol=1e-3))
    one, several = results
    assert one.reason is Reason.CONVERGED
    assert one.primal == pytest.approx(naive.solve(X, y, np.ones(200), "hinge", "regularized")[0], rel=1e-3)
    assert several.reason is Reason.AVERAGED
    assert several.gap > 1e-3
    assert several.primal < 200.0  # better than w = 0


def test_several_classes_are_averaged_one_against_the_rest():
    X, y = noisy(n=150)
    y = np.where(X[:, 0] > 0.9, 2, y)
    others = np.flatnonzero(y != 2)
    engine = engine_of(X, y, [others, np.flatnonzero(y == 2)])
    results = average(engine, stated(engine), Settings(tol=1e-4))
    for label, result in zip([-1, 1, 2], results, strict=True):
        best, _, _ = naive.solve(X, np.where(y == label, 1, -1), np.ones(150), "hinge", "regularized")
        assert result.dual <= best <= result.primal


def test_parts_larger_than_their_memory_are_solved_by_streaming_for_the_same_mean(tmp_path):
    X, y = noisy(n=300, d=20)
    rows = shares(300, 2)
    loaded, read = engine_of(X, y, rows), engine_of_files(X, y, rows, tmp_path)
    one, other = (average(engine, stated(engine, C=0.1), Settings(tol=1e-5))[0] for engine in (loaded, read))
    assert all(isinstance(part.rows.problem.examples, OnDisk) for part in read.members)
    assert other.primal == pytest.approx(one.primal, rel=1e-3)
    assert other.dual == pytest.approx(one.dual, rel=1e-3)
