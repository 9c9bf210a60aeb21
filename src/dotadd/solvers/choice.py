"""Which solver suits a problem, by its loss, its C and the shape of its data.

Coordinate descent is at its best where few steps are needed for each example: in wide spaces, and for small C. With
many more rows than features the examples pull w to and fro, the more the larger C |phi|^2 is, and then a method that
sees them all at once needs far fewer passes. The thresholds are where the two meet on a9a, ijcnn1, w8a, sector, MNIST,
SMS spam, KDD 99 and random numbers, dense and sparse, for C from 0.01 to 100: `python -m benchmarks.choice`.
"""

from __future__ import annotations

from dotadd.block import inner_product
from dotadd.losses import Loss
from dotadd.solvers.problem import Problem
from dotadd.solvers.result import Result

TALL = 10  # rows for each feature
STIFF = {Loss.HINGE: 50.0, Loss.SQUARED_HINGE: 3.0, Loss.LOGISTIC: 10.0}  # C |phi|^2, on average
BATCH = {Loss.HINGE: "ocas", Loss.SQUARED_HINGE: "newton", Loss.LOGISTIC: "newton"}


def choose_solver(name: str, problem: Problem, start: list[Result] | None = None) -> tuple[str, str]:
    """The solver to use, and why, in words for people."""
    if name != "auto":
        return name, "asked for"
    if start and start[0].solver:
        return start[0].solver, "goes on from its own earlier result"
    rows, dim = len(problem.examples), problem.examples.dim
    if rows < TALL * dim:
        return "dcd", f"fewer than {TALL} rows for each of {dim:,} features, where coordinate descent is fastest"
    stiff = inner_product(problem.cost, problem.examples.squared_norms()) / rows
    how = f"rows are many times the {dim:,} features, and C |phi|^2 is {stiff:.3g} on average"
    if stiff < STIFF[problem.loss]:
        return "dcd", f"{how}: small enough for coordinate descent to be fastest"
    return BATCH[problem.loss], f"{how}: coordinate descent would creep"
