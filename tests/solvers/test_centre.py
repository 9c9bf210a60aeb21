"""w drawn to an earlier one instead of 0: every solver that says it can has the optimum, and its proof."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, flow_of, noisy, problem, sparse

from dotadd.core.losses import Loss
from dotadd.errors import DotaddError
from dotadd.features.linear import Linear
from dotadd.problem.problem import Centre
from dotadd.solvers.dcd import dcd
from dotadd.solvers.run import Settings
from dotadd.solvers.table import SOLVERS, Needs

TIGHT = Settings(tol=1e-5, max_passes=5000)
CAN = [solver for solver in SOLVERS.values() if solver.updates]
MEETS = [(solver, loss) for solver in CAN for loss in LOSSES if Loss.named(loss) in solver.losses]


def drawn(solver, loss, intercept, *, dtype=np.float64, scale=1.0):
    """Two binary problems over the same rows, each with a centre of its own, and what the centres are."""
    X, y = noisy(n=80, seed=4)
    rng = np.random.default_rng(7)
    signs, cost = np.stack([y, np.where(X[:, 0] > 0.2, 1, -1)]), rng.uniform(0.2, 2.0, len(y))
    cost[7] = 0.0
    bs = [0.0, 0.0] if intercept == "none" else [0.7, -1.3]
    centres = [Centre((scale * rng.normal(size=X.shape[1])).astype(dtype), b) for b in bs]
    if solver.needs is Needs.PIECES:
        task = flow_of(sparse(X, dtype), Linear(), signs, cost, 4000, dtype=dtype, loss=loss, intercept=intercept)
    else:
        task = problem(X, signs, cost=cost, loss=loss, intercept=intercept, dtype=dtype)
    return X, signs, cost, replace(task, centres=centres)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(("solver", "loss"), MEETS, ids=lambda one: getattr(one, "name", one))
def test_the_optimum_around_a_centre_is_that_of_an_independent_solver(solver, loss, intercept):
    X, signs, cost, task = drawn(solver, loss, intercept)
    for k, result in enumerate(solver(task, TIGHT)):
        centre = (task.centres[k].w, task.centres[k].b)
        best, w, b = naive.solve(X, signs[k], cost, loss, intercept, centre)
        assert result.converged
        assert result.gap <= TIGHT.tol
        assert result.primal == pytest.approx(best, rel=1e-4)
        assert result.dual <= best * (1.0 + 1e-6)  # it is a bound from below
        found = naive.primal(X, signs[k], cost, loss, result.w, result.intercept, intercept, centre)
        assert result.primal == pytest.approx(found, rel=1e-9)
        np.testing.assert_allclose(result.w, w, atol=2e-2 * np.abs(w).max())
        if intercept == "regularized":
            assert result.intercept == pytest.approx(b, abs=2e-2)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", [SOLVERS[name] for name in ("dcd", "stream")], ids=lambda one: one.name)
def test_the_gap_is_what_alpha_proves_by_the_definition_of_the_dual(solver, loss, intercept):
    """D(alpha) = sum_i dual_term(alpha_i) - |v|^2 / 2 - sum_i alpha_i y_i o_i, v = sum_i alpha_i y_i phi(z_i), and o_i
    what the centre gives row i; with a short run, whose alpha is far from the best one."""
    X, signs, cost, task = drawn(solver, loss, intercept)
    for k, result in enumerate(solver(task, Settings(tol=1e-9, max_passes=2))):
        w0, b0 = task.centres[k]
        counts = cost > 0.0
        y, a, c = signs[k][counts], result.alpha[counts], cost[counts]
        share = np.clip(a / c, 1e-300, 1.0)
        entropy = -share * np.log(share) - (1.0 - share) * np.log1p(-np.minimum(share, 1.0 - 1e-16))
        terms = {"hinge": a, "squared_hinge": a - a * a / (4.0 * c), "logistic": c * entropy}[loss]
        v, balance = X[counts].T @ (a * y), float(a @ y)
        dual = terms.sum() - 0.5 * v @ v - (a * y) @ (X[counts] @ w0)
        if intercept == "regularized":
            dual -= 0.5 * balance**2 + balance * b0
        if intercept == "free":
            assert balance == pytest.approx(0.0, abs=1e-9)
        assert result.dual == pytest.approx(dual, rel=1e-6, abs=1e-6 * result.primal)
        assert result.dual <= dual + 1e-9 * result.primal


def test_running_numbers_around_a_centre_agree_with_those_from_scratch():
    """What a pass tells of primal and dual is what they are."""
    _, _, _, task = drawn(SOLVERS["dcd"], "hinge", "regularized")
    told = {}
    results = dcd(task, replace(TIGHT, on_progress=lambda progress, k: told.__setitem__(k, progress)))
    for k, result in enumerate(results):
        assert told[k].dual == pytest.approx(result.dual, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_centre_of_zero_changes_no_bit(loss):
    X, y = noisy(n=80, seed=4)
    plain = problem(X, y, loss=loss, dtype=np.float32)
    zero = replace(plain, centres=[Centre(np.zeros(X.shape[1], np.float32), 0.0)])
    one, other = dcd(plain, TIGHT)[0], dcd(zero, TIGHT)[0]
    np.testing.assert_array_equal(one.w, other.w)
    np.testing.assert_array_equal(one.alpha, other.alpha)
    assert one.primal == other.primal


@pytest.mark.parametrize("solver", CAN, ids=lambda one: one.name)
def test_float32_around_a_far_centre_is_proved_too(solver):
    X, signs, cost, task = drawn(solver, "squared_hinge", "regularized", dtype=np.float32, scale=30.0)
    for k, result in enumerate(solver(task, Settings(tol=1e-3, max_passes=5000))):
        centre = (task.centres[k].w.astype(np.float64), task.centres[k].b)
        best, _, _ = naive.solve(
            X.astype(np.float32).astype(float), signs[k], cost, "squared_hinge", "regularized", centre
        )
        assert result.gap <= 1e-3
        assert result.dual <= best * (1.0 + 1e-6) <= result.primal * (1.0 + 2e-6)


@pytest.mark.parametrize("name", [solver.name for solver in SOLVERS.values() if solver.solve and not solver.updates])
def test_a_solver_that_knows_no_centre_refuses(name):
    _, _, _, task = drawn(SOLVERS[name], "squared_hinge", "regularized")
    with pytest.raises(DotaddError, match=f"{name} cannot update an earlier model"):
        SOLVERS[name](task, TIGHT)
