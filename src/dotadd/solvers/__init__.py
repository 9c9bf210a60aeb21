"""The solvers by name. Each takes (problem, settings, results of an earlier fit or None) and returns a Result for
each of the problem's binary problems; those for examples that pass by take (flow, settings)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dotadd.errors import DotaddError
from dotadd.solvers.choice import choose_solver
from dotadd.solvers.dcd import dcd
from dotadd.solvers.flow import Flow
from dotadd.solvers.problem import Problem
from dotadd.solvers.result import Result
from dotadd.solvers.settings import Settings

__all__ = ["SOLVERS", "STREAMING", "Solver", "StreamingSolver", "choose_solver"]

Solver = Callable[[Problem, Settings, list[Result] | None], list[Result]]
StreamingSolver = Callable[[Flow, Settings], list[Result]]


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


def _bundle(name: str) -> Solver:
    def solve(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
        from dotadd.solvers.bundle import METHODS, bundle
        from dotadd.solvers.serving import serve

        return serve(partial(bundle, method=METHODS[name]), problem, settings, start)

    return solve


def _newton(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    from dotadd.solvers.newton import newton
    from dotadd.solvers.serving import serve

    return serve(newton, problem, settings, start)


def _lbfgs(problem: Problem, settings: Settings, start: list[Result] | None) -> list[Result]:
    from dotadd.solvers.lbfgs import lbfgs
    from dotadd.solvers.serving import serve

    return serve(lbfgs, problem, settings, start)


SOLVERS: dict[str, Solver] = {
    "dcd": _dcd,
    "sgd": _sgd("calibrated"),
    "pegasos": _sgd("pegasos"),
    "ocas": _bundle("ocas"),
    "bmrm": _bundle("bmrm"),
    "svmperf": _bundle("svmperf"),
    "newton": _newton,
    "lbfgs": _lbfgs,
}


def _stream(flow: Flow, settings: Settings) -> list[Result]:
    from dotadd.solvers.stream import stream

    return stream(flow, settings)


def _block_minimization(flow: Flow, settings: Settings) -> list[Result]:
    from dotadd.solvers.block_minimization import block_minimization

    return block_minimization(flow, settings)


def _selective_block_minimization(flow: Flow, settings: Settings) -> list[Result]:
    from dotadd.solvers.selective_block_minimization import selective_block_minimization

    return selective_block_minimization(flow, settings)


STREAMING: dict[str, StreamingSolver] = {
    "stream": _stream,
    "block_minimization": _block_minimization,
    "selective_block_minimization": _selective_block_minimization,
}
