"""The answers to many binary problems over the same examples in memory, along a path of C.

Problem:  for each C of a list, and each column of a problem, the answer that a fit of its own would give
Given:    a problem whose costs are those for C = 1, and the list in rising order
Returned: each answer as it is found; nothing of it is kept here but what the next C starts from

Where all rows of phi lie in memory, problems are independent work for threads: each is solved on one of them, so that
the bits do not depend on how many there are. Otherwise each block of phi is made once for as many problems as there is
room for.

Batch solvers start from the w of the C before, coordinate descent from its alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event

import numpy as np

from dotadd._util.interrupts import Interrupts, following
from dotadd._util.threads import for_each, one_blas_thread
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.result import Reason, Result, Support
from dotadd.solvers.run import Settings
from dotadd.solvers.table import SOLVERS, Needs, solve, tall

BESIDE = 32  # bytes of a row in a problem that is being solved: alpha, output, margin, active and so on

Take = Callable[[int, int, Result], None]


@dataclass(frozen=True)
class Left:
    """What the answer at one C leaves for the next: the solver that found it, and its w, or its alpha in short."""

    solver: str
    result: Result

    @classmethod
    def by(cls, solver: str, result: Result) -> Left | None:
        """What this answer leaves; None where there is nothing to start from."""
        if SOLVERS[solver].needs is Needs.PASSES:
            return cls(solver, replace(result, duals=None, trace=[]))
        if not SOLVERS[solver].warm or result.duals is None:
            return None
        short = result.duals if isinstance(result.duals, Support) else Support.of(result.duals)
        return cls(solver, replace(result, w=result.w[:0], duals=short, trace=[]))


def path(
    name: str, problem: Problem[InMemory], Cs: Sequence[float], settings: Settings, take: Take, clock: Clock
) -> None:
    """Solve by the solver of this name (or "auto"), and hand over each answer: take(number of C, k, result).

    Several threads may do so at a time. StoppedError is raised when training has to end before all of it is done.
    """
    examples = problem.examples
    if not examples.ready:
        examples.make_kept()
    examples.hold_norms()
    if not examples.ready:
        _together(name, problem, Cs, settings, take, clock)
        return
    count = len(problem)
    done = {(i, k): Event() for i in range(len(Cs)) for k in range(count)}
    left: list[list[Left] | None] = [None] * count
    asked = Interrupts().outermost()

    def work(item: tuple[int, int]) -> None:
        i, k = item
        try:
            if i:  # it was begun before, so that waiting for it comes to an end
                done[i - 1, k].wait()
            clock.peek()
            columns = problem.columns.only([k]).times(Cs[i])
            one = replace(problem, examples=examples.alone(), columns=columns)
            with following(asked):
                results, left[k] = _solved(name, one, settings, left[k], clock)
            take(i, k, results[0])
        finally:
            done[item].set()

    with one_blas_thread():
        for_each(list(done), work, examples.threads)


def _together(
    name: str, problem: Problem[InMemory], Cs: Sequence[float], settings: Settings, take: Take, clock: Clock
) -> None:
    """The same, with each block of phi made once for as many problems as there is room for."""
    examples = problem.examples
    nbytes = BESIDE * len(examples) + examples.dim * np.dtype(examples.dtype).itemsize
    size = int(np.clip(settings.budget.left // nbytes, 1, len(problem)))
    for first in range(0, len(problem), size):
        ks = range(first, min(first + size, len(problem)))
        left: list[Left] | None = None
        for i, C in enumerate(Cs):
            clock.check()
            one = replace(problem, columns=problem.columns.only(ks).times(C))
            results, left = _solved(name, one, settings, left, clock)
            for k, result in zip(ks, results, strict=True):
                take(i, k, result)


def require_ended(results: list[Result]) -> None:
    """Raise StoppedError where there was no time to find one of these."""
    for result in results:
        if result.reason in (Reason.INTERRUPTED, Reason.MAX_TIME):
            raise StoppedError(result.reason)


def _solved(
    name: str, problem: Problem[InMemory], settings: Settings, left: list[Left] | None, clock: Clock
) -> tuple[list[Result], list[Left] | None]:
    """The answers, and what they leave; StoppedError where there was no time to find them.

    Where "auto" has taken a batch solver at a smaller C, it would do so at any larger one.
    """
    start: list[Result] | None = None
    if left is not None:
        name = left[0].solver if SOLVERS[left[0].solver].needs is Needs.PASSES else name
        if name != "auto" or not tall(problem):  # otherwise coordinate descent may creep, and begins where it can tell
            start = [one.result for one in left]
    settings = replace(settings, max_time=clock.left(), on_progress=None)
    solver, _, results = solve(name, problem, settings, start)
    require_ended(results)
    found = [Left.by(solver, result) for result in results]
    leave = [one for one in found if one is not None]
    return results, leave if len(leave) == len(found) else None
