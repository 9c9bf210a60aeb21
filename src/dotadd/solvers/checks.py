"""Conformance checks for users' own solvers.

    def test_my_solver_keeps_the_contract():
        check_solver(Solver("mine", "what it does", Needs.ROWS, my_solver))

Each check raises AssertionError with a sentence that says what is wrong and what the contract asks for.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dotadd.core.losses import Loss, dual_term, value
from dotadd.data.batches import Batch, DenseRows
from dotadd.features.base import Shape
from dotadd.features.linear import Linear
from dotadd.problem.columns import Columns, PassingColumns
from dotadd.problem.examples import InMemory
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, Solver

ROWS, FEATURES, COST = 60, 5, 0.3
TOL = 1e-3
CLOSE = 1e-9  # relative: what float64 leaves of a sum over so few rows
STEP = 20  # passes that one step of a batch solver may take, so that a limit is passed by no more
LOOSE = 0.02  # of the objective, by which a solver that proves nothing may miss the optimum


def check_solver(solver: Solver, *, seed: int = 0) -> None:
    """Check that a solver keeps its contract, and what its line of the table says, on small problems of every loss it
    takes. Solvers of parts are not among those that can be checked."""
    assert solver.needs is not Needs.PARTS, "check_solver hands problems to a solver, and one of parts takes an engine"
    X, ys = _data(seed)
    for loss in solver.losses:
        for intercept in Intercept:
            problem = _problem(solver, X, ys, np.full(ROWS, COST), loss, intercept)
            told: list[int] = []
            results = solver(problem, Settings(tol=TOL, max_passes=5000, on_progress=_noting(told)))
            assert len(results) == len(ys), f"{len(results)} results for {len(ys)} binary problems: give one for each"
            assert set(told) == set(range(len(ys))), "on_progress is told of every binary problem, by its k"
            for k, result in enumerate(results):
                _check_result(solver, result, X, ys[k], np.full(ROWS, COST), loss, intercept)
    loss, intercept = solver.losses[0], Intercept.REGULARIZED
    _check_alone(solver, X, ys, loss, intercept)
    _check_cost_zero(solver, X, ys, loss, intercept)
    _check_limit(solver, X, ys, loss, intercept)
    if solver.warm:
        _check_warm(solver, X, ys, loss, intercept)
    if solver.checkpoints:
        _check_resumed(solver, X, ys, loss, intercept)


def _noting(told: list[int]) -> Callable[[Progress, int], None]:
    """Whoever is told of progress, and notes of which problem it was."""
    return lambda _, k: told.append(k)


def _data(seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, FEATURES)) * (rng.random((ROWS, FEATURES)) < 0.7)
    X[0] = 0.0
    directions = rng.normal(size=(3, FEATURES))
    return X, [np.where(X @ one + 0.7 * rng.normal(size=ROWS) > 0.2, 1, -1).astype(np.int8) for one in directions]


def _problem(
    solver: Solver, X: np.ndarray, ys: list[np.ndarray], cost: np.ndarray, loss: Loss, intercept: Intercept
) -> Problem[InMemory] | Problem[OnDisk]:
    batch, columns = DenseRows(X), Columns.of(ys, cost)
    phi = Linear().resolve(Shape.of(batch))
    if solver.needs is not Needs.PIECES:
        return Problem(InMemory(phi, batch, dtype=np.float64), columns, loss, intercept)

    def read(nbytes: int) -> Iterator[tuple[Batch, Columns]]:  # pieces of a few rows, whatever is asked for
        for first in range(0, len(X), 7):
            some = slice(first, min(first + 7, len(X)))
            yield batch.slice(some.start, some.stop), columns.take(some)

    examples = OnDisk(phi, read, len(X), 4000, dtype=np.float64)
    return Problem(examples, PassingColumns(len(ys)), loss, intercept)


def _check_result(
    solver: Solver, result: Result, X: np.ndarray, y: np.ndarray, cost: np.ndarray, loss: Loss, intercept: Intercept
) -> None:
    where = f"with the {loss.name.lower()} loss and intercept={intercept.value!r}"
    assert result.w.shape == (X.shape[1],), f"w has shape {result.w.shape} {where}: one weight for each slot"
    assert np.isfinite(result.w).all(), f"w has numbers that are none {where}"
    assert intercept is not Intercept.NONE or result.intercept == 0.0, "without an intercept, b is 0"
    primal = _primal(X, y, cost, loss, intercept, result.w, result.intercept)
    assert np.isclose(result.primal, primal, rtol=CLOSE), (
        f"primal is told as {result.primal}, and w and b have {primal} {where}: recompute it from scratch at the end"
    )
    assert result.passes > 0, f"passes is {result.passes} {where}: count the readings that found the answer"
    assert result.trace, f"the trace is empty {where}: note how far it is after each pass"
    assert result.converged, f"it ended with {result.reason.name} {where}: {result.reason.value}"
    if result.gap is None:
        assert result.alpha is None, "who returns dual variables proves the gap with them"
        best = _optimum(X, y, cost, loss, intercept)
        assert primal <= (1.0 + LOOSE) * best, f"the objective is {primal} {where}, and {best} can be reached"
        return
    assert result.dual is not None
    assert result.gap <= TOL, f"it says that it converged, and its gap is {result.gap} {where}"
    assert np.isclose(result.gap, (result.primal - result.dual) / result.primal, atol=1e-12), (
        "gap is (primal - dual) / primal"
    )
    assert result.alpha is not None, f"{solver.name} tells a gap, and no dual variables that prove it"
    dual = _dual(X, y, cost, loss, intercept, result.alpha)
    assert result.dual <= dual + CLOSE * abs(dual), (
        f"dual is told as {result.dual}, and alpha proves no more than {dual} {where}: never claim what is not proven"
    )


def _check_alone(solver: Solver, X: np.ndarray, ys: list[np.ndarray], loss: Loss, intercept: Intercept) -> None:
    cost = np.full(ROWS, COST)
    together = solver(_problem(solver, X, ys, cost, loss, intercept), Settings(tol=TOL, max_passes=5000))
    for k, y in enumerate(ys):
        (alone,) = solver(_problem(solver, X, [y], cost, loss, intercept), Settings(tol=TOL, max_passes=5000))
        assert np.isclose(alone.primal, together[k].primal, rtol=2 * LOOSE), (
            f"problem {k} has another answer among others ({together[k].primal}) than alone ({alone.primal})"
        )


def _check_cost_zero(solver: Solver, X: np.ndarray, ys: list[np.ndarray], loss: Loss, intercept: Intercept) -> None:
    cost = np.full(ROWS, COST)
    cost[::3] = 0.0
    results = solver(_problem(solver, X, ys[:1], cost, loss, intercept), Settings(tol=TOL, max_passes=5000))
    kept = cost > 0.0
    (few,) = solver(
        _problem(solver, X[kept], [ys[0][kept]], cost[kept], loss, intercept), Settings(tol=TOL, max_passes=5000)
    )
    assert np.isclose(results[0].primal, few.primal, rtol=2 * LOOSE), "rows of cost 0 must not count"


def _check_limit(solver: Solver, X: np.ndarray, ys: list[np.ndarray], loss: Loss, intercept: Intercept) -> None:
    settings = Settings(tol=1e-15, max_passes=2)
    for result in solver(_problem(solver, X, ys, np.full(ROWS, 1e3 * COST), loss, intercept), settings):
        assert result.passes <= 2 + STEP, f"max_passes is 2, and it took {result.passes} passes"
        ends = (Reason.MAX_PASSES, Reason.STALLED, Reason.CONVERGED, Reason.PRECISION)
        assert result.reason in ends, f"at the limit on passes the reason is {result.reason.name}"
        assert np.isfinite(result.primal), "the answer so far is judged, too"


def _check_warm(solver: Solver, X: np.ndarray, ys: list[np.ndarray], loss: Loss, intercept: Intercept) -> None:
    problem = _problem(solver, X, ys, np.full(ROWS, COST), loss, intercept)
    settings = Settings(tol=TOL, max_passes=5000)
    cold = solver(problem, settings)
    for before, after in zip(cold, solver(problem, replace(settings), cold), strict=True):
        assert after.primal <= (1.0 + TOL) * before.primal + 1e-12, "a warm start must not lead away from the answer"
        assert after.passes <= before.passes, "from its own answer it takes no more passes than from nothing"


def _check_resumed(solver: Solver, X: np.ndarray, ys: list[np.ndarray], loss: Loss, intercept: Intercept) -> None:
    def solve(settings: Settings) -> list[Result]:
        return solver(_problem(solver, X, ys, np.full(ROWS, COST), loss, intercept), settings)

    settings = Settings(tol=1e-6, max_passes=500)
    with tempfile.TemporaryDirectory() as folder:
        where = Checkpoint(os.path.join(folder, "c"))
        solve(replace(settings, max_passes=2, checkpoint=where))
        assert os.path.exists(where.path), "at the limit on passes it writes a last checkpoint, from which it can go on"
        resumed = solve(replace(settings, seed=1, checkpoint=where, resume=True))
    for whole, result in zip(solve(settings), resumed, strict=True):
        assert np.array_equal(whole.w, result.w), "training that was cut short and resumed ends with the same bits"


def _margins(X: np.ndarray, y: np.ndarray, w: np.ndarray, b: float) -> np.ndarray:
    return y * (X @ np.asarray(w, np.float64) + b)


def _primal(
    X: np.ndarray, y: np.ndarray, cost: np.ndarray, loss: Loss, intercept: Intercept, w: np.ndarray, b: float
) -> float:
    losses = sum(c * value(int(loss), m) for c, m in zip(cost, _margins(X, y, w, b), strict=True))
    return 0.5 * float(w @ w) + (0.5 * b * b if intercept is Intercept.REGULARIZED else 0.0) + float(losses)


def _dual(X: np.ndarray, y: np.ndarray, cost: np.ndarray, loss: Loss, intercept: Intercept, alpha: np.ndarray) -> float:
    assert (alpha >= 0.0).all(), "dual variables are >= 0"
    assert loss is Loss.SQUARED_HINGE or (alpha <= cost).all(), "dual variables are at most C"
    balance = float(alpha @ y)
    if intercept is Intercept.FREE:
        assert abs(balance) <= 1e-9 * max(1.0, float(alpha.sum())), "with a free intercept, sum_i alpha_i y_i is 0"
    v = (alpha * y) @ X
    terms = sum(dual_term(int(loss), a, c) for a, c in zip(alpha, cost, strict=True))
    return float(terms) - 0.5 * float(v @ v) - (0.5 * balance**2 if intercept is Intercept.REGULARIZED else 0.0)


def _optimum(X: np.ndarray, y: np.ndarray, cost: np.ndarray, loss: Loss, intercept: Intercept) -> float:
    from dotadd.solvers.dcd import dcd

    batch = DenseRows(X)
    examples = InMemory(Linear().resolve(Shape.of(batch)), batch, dtype=np.float64)
    problem = Problem(examples, Columns.of([y], cost), loss, intercept)
    return dcd(problem, Settings(tol=1e-6, max_passes=100_000))[0].primal
