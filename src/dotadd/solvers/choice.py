"""Which solver suits a problem, by its loss, its C and the shape of its data."""

from __future__ import annotations

from dotadd.solvers.problem import Problem


def choose_solver(name: str, problem: Problem) -> tuple[str, str]:
    """The solver to use, and why."""
    if name != "auto":
        return name, "asked for"
    return "dcd", "it proves its answer by the duality gap, for every loss and intercept"
