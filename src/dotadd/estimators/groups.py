"""Many classes or labels are trained in groups, as many at a time as there is room for the dual variables of; and
labels that all rows have, or none, are answered without training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers.clock import Clock
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.run import Settings
from dotadd.solvers.table import solve

BESIDE = 40  # bytes of a row in a problem that is being solved: alpha, output, margin, sign, active and so on
SHARE = 0.5  # of the memory that is left is for them, and the rest for features that are kept


def solve_in_groups(name: str, problem: Problem[InMemory], settings: Settings) -> tuple[str, str, list[Result]]:
    """The solver, why it was chosen, and the answers. Where problems come in several groups, dual variables are not
    kept: all of them together are what there is no room for."""
    examples, count = problem.examples, len(problem)
    each = BESIDE * len(examples)  # and w, which is part of the answer
    size = int(np.clip(SHARE * settings.budget.left // each, 1, count))
    if size == count or settings.checkpoint is not None:
        return solve(name, problem, settings)
    taken, clock = settings.budget.take(size * each), Clock(settings.max_time)
    solver, why, found = "", "", list[Result]()
    for first in range(0, count, size):
        ks = range(first, min(first + size, count))
        centres = None if problem.centres is None else [problem.centres[k] for k in ks]
        part = replace(problem, columns=problem.columns.only(ks), centres=centres)
        mine = replace(settings, max_time=clock.left(), on_progress=_later(settings, first))
        one, reason, results = solve(name, part, mine)
        solver, why = solver or one, why or reason
        found += [replace(result, duals=None) for result in results]
    settings.budget.release(taken)
    return solver, f"{why}; there is room for {size:,} of {count:,} problems at a time", found


def _later(settings: Settings, first: int) -> Callable[[Progress, int], None] | None:
    """Who is told of progress, of the problems from this one on."""

    def tell(progress: Progress, k: int) -> None:
        assert settings.on_progress is not None
        settings.on_progress(progress, first + k)

    return tell if settings.on_progress is not None else None


def with_constants(results: list[Result], constant: Mapping[int, float]) -> list[Result]:
    """The answers of all labels: those that were trained, and those that need no training, in their order."""
    trained = iter(results)
    like = results[0]
    return [
        replace(
            like, w=np.zeros_like(like.w), intercept=constant[k], duals=None, primal=0.0, dual=None, gap=None,
            reason=Reason.CONVERGED, passes=0, trace=[],
        )
        if k in constant
        else next(trained)
        for k in range(len(results) + len(constant))
    ]  # fmt: skip
