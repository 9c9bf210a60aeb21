"""Bundle methods hold their points as vectors or by what they say of the rows: both ways take the same steps."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, noisy, problem

from dotadd._util.memory import Budget
from dotadd.problem.problem import Centre
from dotadd.solvers import bundle
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.planes import Planes
from dotadd.solvers.points import ByRows, ByVectors, kind_of_points
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.serving import Asking
from dotadd.solvers.table import SOLVERS

METHODS = ("ocas", "bmrm", "svmperf")
TIGHT = Settings(tol=1e-5, max_passes=5000)


def wide(rows=60, **how):
    """A problem of more slots than rows."""
    X, y = noisy(n=rows, d=150)
    return X, y, problem(X, y, **how)


def solved(kind, p, settings, monkeypatch, method="ocas", start=None):
    with monkeypatch.context() as patch:
        patch.setattr(bundle, "kind_of_points", lambda run: kind)
        return SOLVERS[method](p, settings, start)[0]


def traced(result):
    return np.array([(one.primal, one.dual) for one in result.trace])


@pytest.mark.parametrize("begins", ["at 0", "at an earlier w", "at its centre", "away from its centre"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_both_ways_take_the_same_steps(loss, intercept, begins, monkeypatch):
    X, y = noisy(n=80, d=12)
    cost = np.random.default_rng(3).uniform(0.2, 2.0, len(y))
    cost[7] = 0.0
    p, start = problem(X, y, cost=cost, loss=loss, intercept=intercept), None
    if begins in ("at an earlier w", "away from its centre"):
        start = SOLVERS["ocas"](p, Settings(tol=0.3))
    if "centre" in begins:
        w0 = np.random.default_rng(7).normal(size=X.shape[1])
        p = replace(p, centres=[Centre(w0, 0.0 if intercept == "none" else -1.3)])
    for method in METHODS:
        settings = Settings(tol=1e-3, max_passes=2000)
        one, other = (solved(kind, p, settings, monkeypatch, method, start) for kind in (ByVectors, ByRows))
        assert one.reason is other.reason is Reason.CONVERGED
        steps = min(len(one.trace), len(other.trace), 12)  # rounding has little to say in the first steps
        assert steps > 3
        np.testing.assert_allclose(traced(one)[:steps], traced(other)[:steps], rtol=1e-6, atol=1e-6)
        assert other.primal == pytest.approx(one.primal, rel=2e-3)
        assert other.primal == pytest.approx(other.trace[-1].primal, rel=1e-7), "w is the best one that was found"
        assert other.dual >= other.trace[-1].dual * (1 - 1e-6), "a proof by rows is no worse"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_few_rows_and_a_large_w_have_the_optimum_of_an_independent_solver(method, intercept):
    X, y, p = wide(intercept=intercept)
    assert kind_of_points(Asking(p, 0, TIGHT, None, None)) is ByRows
    best, _, _ = naive.solve(X, y, p.columns.cost(0), "hinge", intercept)
    result = SOLVERS[method](p, replace(TIGHT, tol=1e-4))[0]
    assert result.reason is Reason.CONVERGED
    assert best * (1 - 1e-6) <= result.primal <= best * (1 + 1e-4)
    assert result.dual <= best * (1 + 1e-6)


def test_many_rows_and_a_small_w_are_held_as_vectors():
    assert kind_of_points(Asking(problem(*noisy()), 0, TIGHT, None, None)) is ByVectors


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("passes", [1, 2, 3, 8, 21])
def test_whenever_it_ends_w_is_the_best_that_was_found(loss, passes):
    X, y, p = wide(loss=loss)
    result = SOLVERS["ocas"](p, Settings(tol=1e-9, max_passes=passes))[0]
    assert result.reason is Reason.MAX_PASSES
    assert result.passes <= passes + 2
    found = naive.primal(X, y, np.ones(len(y)), loss, result.w, result.intercept, "regularized")
    assert result.primal == pytest.approx(found, rel=1e-9)
    assert result.primal == pytest.approx(result.trace[-1].primal, rel=1e-7)  # shares may be float32


def interrupted(p, settings, tells, start):
    """The result of a run that Ctrl-C ends when it has told so often how far it is."""
    heard = []

    def stop(progress, k):
        heard.append(k)
        if len(heard) == tells:
            raise KeyboardInterrupt

    return SOLVERS["ocas"](p, replace(settings, on_progress=stop), start)[0]


@pytest.mark.parametrize("tells", [1, 2, 7])
@pytest.mark.parametrize("begins", ["at 0", "away from its centre"])
def test_an_interrupted_run_keeps_its_w_and_goes_on_to_the_same_bits(tmp_path, tells, begins):
    X, _, p = wide(dtype=np.float32)
    start = None
    if begins != "at 0":
        start = SOLVERS["ocas"](p, Settings(tol=0.3))
        p = replace(p, centres=[Centre(np.random.default_rng(7).normal(size=X.shape[1]).astype(np.float32), 0.2)])
    expected = SOLVERS["ocas"](p, TIGHT, start)[0]
    where = Checkpoint(str(tmp_path / "c"), 1e9)
    before = interrupted(p, replace(TIGHT, checkpoint=where), tells, start)
    assert before.reason is Reason.INTERRUPTED
    assert before.primal == pytest.approx(before.trace[-1].primal, rel=1e-6)
    assert before.w.any() == (tells > 1 or start is not None)
    after = SOLVERS["ocas"](p, replace(TIGHT, checkpoint=where, resume=True), start)[0]
    assert after.w.tobytes() == expected.w.tobytes()
    assert after.alpha.tobytes() == expected.alpha.tobytes()
    assert after.trace[-1].passes == expected.trace[-1].passes


@pytest.mark.parametrize("kinds", [(ByVectors, ByRows), (ByRows, ByVectors)])
def test_a_checkpoint_of_the_other_way_is_gone_on_with_from_its_w(tmp_path, kinds, monkeypatch):
    """As an earlier version wrote it, or one on a machine with another type of numbers."""
    _, _, p = wide()
    where = Checkpoint(str(tmp_path / "c"), 1e9)
    before = solved(kinds[0], p, replace(TIGHT, max_passes=12, checkpoint=where), monkeypatch)
    after = solved(kinds[1], p, replace(TIGHT, checkpoint=where, resume=True), monkeypatch)
    assert before.reason is Reason.MAX_PASSES
    assert after.reason is Reason.CONVERGED


def test_few_planes_by_rows_are_enough_for_the_optimum():
    X, y, p = wide(cost=0.1)
    best, _, _ = naive.solve(X, y, p.columns.cost(0), "hinge", "regularized")
    size = Planes.most_bytes(len(X), len(X), np.dtype(np.float64), exact=True) // 1000
    with_few = SOLVERS["ocas"](p, Settings(tol=1e-3, max_passes=5000, budget=Budget(34 * size)))[0]
    assert with_few.reason is Reason.CONVERGED
    assert with_few.primal <= best * (1 + 1e-3)
