"""The table of linear solvers: what each is, what it needs of the data, and which one suits a problem.

Estimators, `auto`, the command line, error messages and the pages read it here. A solver is a function (problem,
settings, results of an earlier fit or None) that returns a Result for each binary problem; it is imported when it is
first called.

Coordinate descent is at its best where few steps are needed for each example: in wide spaces, and for small C. With
many more rows than features the examples pull w to and fro, the more the larger C |phi|^2 is, and then a method that
sees them all at once needs far fewer passes. The thresholds are where the two meet on a9a, ijcnn1, w8a, sector, MNIST,
SMS spam, KDD 99 and random numbers, dense and sparse, for C from 0.01 to 100: `python -m benchmarks.choice`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from dotadd.core.block import inner_product
from dotadd.core.losses import Loss
from dotadd.errors import DotaddError
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import TALL, Examples, Intercept, Problem, features_met

if TYPE_CHECKING:
    from dotadd.solvers.result import Progress, Result
    from dotadd.solvers.run import Settings

Solve = Callable[..., "list[Result]"]

CREEPS = 40.0  # visits for each example that seem to be left: then a batch solver ends sooner on tall data
VERY_STIFF = 500.0  # C |phi|^2, from which on cutting planes take longer than the tail of coordinate descent
STIFF = {Loss.HINGE: 50.0, Loss.SQUARED_HINGE: 3.0, Loss.LOGISTIC: 10.0}  # C |phi|^2, on average
STIFF_NARROW = {Loss.SQUARED_HINGE: 0.4, Loss.LOGISTIC: 3.0}  # where newton takes the Hessian as it is


class Needs(Enum):
    """What a solver asks of the examples."""

    ROWS = "rows in memory, which it visits one by one"
    PASSES = "DOT and ADD of all rows, in memory or on disk"
    PIECES = "rows on disk that pass by, some of which it keeps"
    PARTS = "parts of the data, each of which trains on its own"


@dataclass(frozen=True)
class Solver:
    """A line of the table. `solve` is None for those that are asked through an engine (cluster/fitting.py)."""

    name: str
    what: str
    """In words for people."""
    needs: Needs
    solve: Solve | None = None
    losses: tuple[Loss, ...] = tuple(Loss)
    warm: bool = False
    """Whether it can start from an earlier result."""
    checkpoints: bool = False
    """Whether it can be resumed."""
    updates: bool = False
    """Whether it can draw w to an earlier model instead of 0."""
    baseline: bool = False
    """Whether it is there to be compared with."""
    ancestor: bool = False
    """Whether another one here has come from it, so that nobody runs it without asking for it."""

    def __call__(
        self, problem: Problem[Examples], settings: Settings, start: list[Result] | None = None
    ) -> list[Result]:
        assert self.solve is not None
        if problem.loss not in self.losses:
            smooth = " or ".join(repr(loss.name.lower()) for loss in self.losses)
            raise DotaddError(f"{self.name} needs a smooth loss: use loss={smooth}, or another solver")
        if problem.centres is not None and not self.updates:
            know = ", ".join(other.name for other in that_need(self.needs).values() if other.updates)
            raise DotaddError(f"{self.name} cannot update an earlier model: use solver='auto', or one of {know}")
        if start is not None and not self.warm:
            raise DotaddError(f"{self.name} begins anew each time, and takes no earlier fit: use solver='dcd'")
        return self.solve(problem, settings, start) if self.warm else self.solve(problem, settings)


def _dcd(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    from dotadd.solvers.dcd import dcd

    if start is None:
        return dcd(problem, settings)
    alphas = [result.alpha for result in start if result.alpha is not None]
    if len(alphas) != len(problem) or any(len(alpha) != len(problem.examples) for alpha in alphas):
        raise DotaddError("start does not come from dcd on the same examples and classes")
    return dcd(problem, settings, alphas=alphas, intercepts=[result.intercept for result in start])


def _sgd(schedule: str, problem: Problem, settings: Settings) -> list[Result]:
    from dotadd.solvers.baselines.sgd import sgd

    return sgd(problem, settings, schedule=schedule)


def _bundle(best: str, touch: float, problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    from dotadd.solvers.bundle import bundle
    from dotadd.solvers.serving import serve

    return serve(partial(bundle, best=best, touch=touch), problem, settings, start)


def _newton(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    from dotadd.solvers.newton import newton
    from dotadd.solvers.serving import serve

    return serve(newton, problem, settings, start)


def _lbfgs(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    from dotadd.solvers.lbfgs import lbfgs
    from dotadd.solvers.serving import serve

    return serve(lbfgs, problem, settings, start)


def _stream(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    from dotadd.solvers.stream import stream

    return stream(problem, settings, start)


def _block_minimization(problem: Problem, settings: Settings) -> list[Result]:
    from dotadd.solvers.baselines.block_minimization import block_minimization

    return block_minimization(problem, settings)


def _selective_block_minimization(problem: Problem, settings: Settings) -> list[Result]:
    from dotadd.solvers.baselines.selective_block_minimization import selective_block_minimization

    return selective_block_minimization(problem, settings)


_SMOOTH = (Loss.SQUARED_HINGE, Loss.LOGISTIC)
_TABLE = (
    Solver(
        "dcd", "dual coordinate descent, one example after the other", Needs.ROWS, _dcd,
        warm=True, checkpoints=True, updates=True,
    ),
    Solver(
        "sgd", "averaged stochastic gradient descent", Needs.ROWS, partial(_sgd, "calibrated"),
        checkpoints=True, baseline=True,
    ),
    Solver(
        "pegasos", "the same with the step sizes of Pegasos", Needs.ROWS, partial(_sgd, "pegasos"),
        checkpoints=True, baseline=True, ancestor=True,
    ),
    Solver(
        "newton", "Newton's method with conjugate gradients", Needs.PASSES, _newton, _SMOOTH,
        warm=True, checkpoints=True, updates=True,
    ),
    Solver(
        "ocas", "optimized cutting planes", Needs.PASSES, partial(_bundle, "the best of the line", 0.1),
        warm=True, checkpoints=True, updates=True,
    ),
    Solver("lbfgs", "L-BFGS, also for the hinge", Needs.PASSES, _lbfgs, warm=True, checkpoints=True, updates=True),
    Solver(
        "bmrm", "cutting planes without a line search", Needs.PASSES, partial(_bundle, "the better end", 1.0),
        warm=True, checkpoints=True, updates=True, baseline=True, ancestor=True,
    ),
    Solver(
        "svmperf", "cutting planes as SVM-perf adds them", Needs.PASSES, partial(_bundle, "its end", 1.0),
        warm=True, checkpoints=True, updates=True, baseline=True, ancestor=True,
    ),
    Solver(
        "stream", "coordinate descent on what is kept of what passes by", Needs.PIECES, _stream,
        warm=True, checkpoints=True, updates=True,
    ),
    Solver("block_minimization", "one block after the other", Needs.PIECES, _block_minimization, baseline=True),
    Solver(
        "selective_block_minimization", "the same, keeping what lies near the margin", Needs.PIECES,
        _selective_block_minimization, baseline=True,
    ),
    Solver("cocoa", "the optimum of all parts, in rounds", Needs.PARTS, checkpoints=True),
    Solver("average", "the mean of the parts' own optima, after one round", Needs.PARTS, baseline=True),
)  # fmt: skip
SOLVERS: dict[str, Solver] = {solver.name: solver for solver in _TABLE}
TOLD = "\n".join(f'        "{name}": {solver.what}; needs {solver.needs.value}' for name, solver in SOLVERS.items())
"""The lines of a docstring."""


def that_need(*needs: Needs) -> dict[str, Solver]:
    """The solvers that ask this of the examples."""
    return {name: solver for name, solver in SOLVERS.items() if solver.needs in needs}


def solve(
    name: str, problem: Problem[InMemory], settings: Settings, start: list[Result] | None = None
) -> tuple[str, str, list[Result]]:
    """The solver that was used for examples in memory, why, in words for people, and what it has found."""
    from dotadd.solvers.dcd import CreepingError, dcd
    from dotadd.solvers.tail import solves

    solver, why = choose_solver(name, problem, start)
    checkpoint = settings.checkpoint
    if checkpoint is not None and settings.resume and (wrote := checkpoint.solver_on_disk()) != solver:
        solver, why = wrote, "goes on from its own checkpoint"
    if checkpoint is not None:
        checkpoint.problem = {"solver": solver, **checkpoint.problem}
    if name != "auto" or solver != "dcd" or start is not None or not tall(problem):
        before = Before.on_disk(settings)
        return solver, why, before.then(SOLVERS[solver], problem, settings, start)
    began = perf_counter()
    try:
        ends = stiffness(problem) >= VERY_STIFF and solves(problem, settings.budget.left)
        return solver, why, dcd(problem, settings, most_left=math.inf if ends else CREEPS)
    except CreepingError as creeping:
        first = creeping.results
    solver, took = batch_solver(problem.loss), perf_counter() - began
    before = Before([result.passes for result in first], [result.trace for result in first])
    if checkpoint is not None:
        checkpoint.problem = {**checkpoint.problem, "solver": solver}
        checkpoint.beside = asdict(before)
    left = None if settings.max_time is None else max(0.0, settings.max_time - took)
    later = replace(settings, max_time=left, resume=False)
    why = f"{why}; but it crept, and after {max(before.passes)} passes this one went on"
    return solver, why, before.then(SOLVERS[solver], problem, later, first)


@dataclass(frozen=True)
class Before:
    """What another solver has done before this one goes on: passes and trace of each binary problem."""

    passes: list[int] = field(default_factory=list)
    traces: list[list[Progress]] = field(default_factory=list)

    @classmethod
    def on_disk(cls, settings: Settings) -> Before:
        """What a checkpoint to go on from tells of it."""
        from dotadd.solvers.result import Progress

        if settings.checkpoint is None or not settings.resume:
            return cls()
        settings.checkpoint.beside = told = settings.checkpoint.beside_on_disk()
        return cls(told.get("passes", []), [[Progress(*row) for row in rows] for rows in told.get("traces", ())])

    def then(
        self, solver: Solver, problem: Problem[InMemory], settings: Settings, start: list[Result] | None
    ) -> list[Result]:
        """What the solver finds, all of it counted."""
        if not self.passes:
            return solver(problem, settings, start)
        passes, took = max(self.passes), max(row.seconds for trace in self.traces for row in trace)

        def on_progress(progress: Progress, k: int) -> None:
            if settings.on_progress is not None:
                settings.on_progress(progress.later(passes, took), k)

        later = replace(settings, on_progress=on_progress, max_passes=settings.max_passes - passes)
        return [
            replace(
                result,
                passes=before + result.passes,
                seconds=result.seconds | {"before": took},
                trace=trace + [progress.later(passes, took) for progress in result.trace],
            )
            for before, trace, result in zip(self.passes, self.traces, solver(problem, later, start), strict=True)
        ]


def choose_solver(name: str, problem: Problem[Examples], start: list[Result] | None = None) -> tuple[str, str]:
    """The solver to use for examples in memory, and why, in words for people."""
    if name != "auto":
        return name, "asked for"
    if start and start[0].solver:
        return start[0].solver, "goes on from its own earlier result"
    if isinstance(problem.examples, InMemory) and problem.examples.whole:
        how = f"rows have {problem.examples.mean_length:,.0f} features, and w is touched for all of them at once"
        return batch_solver(problem.loss), f"{how}: coordinate descent would take long for each"
    rows, dim = len(problem.examples), features_met(problem.examples)
    if rows < TALL * dim:
        return "dcd", f"fewer than {TALL} rows for each of {dim:,} features, where coordinate descent is fastest"
    stiff = stiffness(problem)
    how = f"rows are many times the {dim:,} features, and C |phi|^2 is {stiff:.3g} on average"
    if stiff < (STIFF_NARROW if problem.loss is not Loss.HINGE and _narrow(problem) else STIFF)[problem.loss]:
        return "dcd", f"{how}: small enough for coordinate descent to be fastest"
    if problem.loss is Loss.HINGE and stiff >= VERY_STIFF and problem.intercept is not Intercept.FREE:
        return "dcd", f"{how}: after some passes it solves for all rows at once, feature by feature"
    return batch_solver(problem.loss), f"{how}: coordinate descent would creep"


def _narrow(problem: Problem[Examples]) -> bool:
    from dotadd.solvers.newton import narrow

    return narrow(problem)


def stiffness(problem: Problem[Examples]) -> float:
    """C |phi|^2 on average: how far examples push each other's outputs."""
    costs, norms = problem.columns.cost(0), problem.examples.squared_norms()
    return inner_product(costs, norms) / len(problem.examples)


def tall(problem: Problem[Examples]) -> bool:
    """Whether there are many more rows than features."""
    return len(problem.examples) >= TALL * features_met(problem.examples)


def batch_solver(loss: Loss) -> str:
    """The fastest solver that sees all examples at once."""
    return "ocas" if loss is Loss.HINGE else "newton"
