"""The solvers by name. Each takes (problem, settings, results of an earlier fit or None) and returns a Result for
each of the problem's binary problems."""

from __future__ import annotations

from collections.abc import Callable

from dotadd.errors import DotaddError
from dotadd.solvers.dcd import dcd
from dotadd.solvers.problem import Problem
from dotadd.solvers.result import Result
from dotadd.solvers.settings import Settings

Solver = Callable[[Problem, Settings, list[Result] | None], list[Result]]


def _dcd(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    if start is None:
        return dcd(problem, settings)
    alphas = [result.alpha for result in start if result.alpha is not None]
    if len(alphas) != len(problem) or any(len(alpha) != len(problem.examples) for alpha in alphas):
        raise DotaddError("start does not come from dcd on the same examples and classes")
    return dcd(problem, settings, alphas=alphas)


def _sgd(schedule: str) -> Solver:
    def solve(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
        if start is not None:
            raise DotaddError("sgd does not go on from an earlier fit: its step sizes begin anew; use solver='dcd'")
        from dotadd.solvers.sgd import sgd

        return sgd(problem, settings, schedule=schedule)

    return solve


SOLVERS: dict[str, Solver] = {"dcd": _dcd, "sgd": _sgd("calibrated"), "pegasos": _sgd("pegasos")}


def choose_solver(name: str) -> tuple[str, str]:
    """The solver to use, and why."""
    if name != "auto":
        return name, "asked for"
    return "dcd", "it proves its answer by the duality gap, for every loss and intercept"
