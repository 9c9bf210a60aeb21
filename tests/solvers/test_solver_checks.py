"""check_solver passes every solver of the table, and finds what is wrong with one that breaks its contract."""

from dataclasses import replace

import numpy as np
import pytest

from dotadd import check_solver
from dotadd.solvers.result import Reason
from dotadd.solvers.table import SOLVERS, Needs, Solver, that_need

DCD = SOLVERS["dcd"]


@pytest.mark.parametrize("name", that_need(Needs.ROWS, Needs.PASSES, Needs.PIECES))
def test_every_solver_of_the_table_keeps_the_contract(name):
    check_solver(SOLVERS[name])


def spoiled(change):
    """dcd, with each of its results changed."""

    def solve(problem, settings, start):
        return [change(result) for result in DCD(problem, settings, start)]

    return replace(DCD, solve=solve)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda r: replace(r, primal=0.9 * r.primal), "recompute it from scratch"),
        (lambda r: replace(r, dual=r.primal, gap=0.0), "never claim what is not proven"),
        (lambda r: replace(r, gap=0.5 * r.gap + 1e-6), r"gap is \(primal - dual\) / primal"),
        (lambda r: replace(r, duals=None), "no dual variables that prove it"),
        (lambda r: replace(r, duals=2.0 * r.alpha), "at most C|proves no more"),
        (lambda r: replace(r, duals=r.alpha - 1e-3), "dual variables are >= 0"),
        (lambda r: replace(r, w=r.w[:-1]), "one weight for each slot"),
        (lambda r: replace(r, passes=0), "count the readings"),
        (lambda r: replace(r, trace=[]), "the trace is empty"),
        (lambda r: replace(r, reason=Reason.MAX_TIME), "it ended with MAX_TIME"),
    ],
)
def test_a_false_result_is_found(change, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_solver(spoiled(change))


def test_a_missing_result_is_found():
    one = replace(DCD, solve=lambda problem, settings, start: DCD(problem, settings, start)[:1])
    with pytest.raises(AssertionError, match="give one for each"):
        check_solver(one)


def test_a_solver_that_tells_nothing_is_found():
    silent = replace(
        DCD, solve=lambda problem, settings, start: DCD(problem, replace(settings, on_progress=None), start)
    )
    with pytest.raises(AssertionError, match="told of every binary problem"):
        check_solver(silent)


def test_a_solver_that_ignores_the_limit_on_passes_is_found():
    def solve(problem, settings, start):
        return SOLVERS["bmrm"](problem, replace(settings, max_passes=10**6, tol=max(settings.tol, 1e-5)), start)

    with pytest.raises(AssertionError, match="max_passes is 2"):
        check_solver(replace(SOLVERS["bmrm"], solve=solve))


def test_a_solver_far_from_the_optimum_that_proves_nothing_is_found():
    def solve(problem, settings):
        results = SOLVERS["sgd"](problem, settings)
        moved = [replace(r, w=np.zeros_like(r.w), intercept=0.0) for r in results]
        return [replace(r, primal=problem.primal(r.w, 0.0, np.zeros(60), k)) for k, r in enumerate(moved)]

    with pytest.raises(AssertionError, match="can be reached"):
        check_solver(Solver("far", "stays at 0", Needs.ROWS, solve))


def test_a_solver_that_says_it_can_be_resumed_and_cannot_is_found():
    def anew(problem, settings, start):
        return DCD(problem, replace(settings, checkpoint=None, resume=False), start)

    def forgetful(problem, settings, start):
        return DCD(problem, replace(settings, resume=False), start)

    for solve, complaint in ((anew, "writes a last checkpoint"), (forgetful, "ends with the same bits")):
        with pytest.raises(AssertionError, match=complaint):
            check_solver(replace(DCD, solve=solve))


def test_solvers_of_parts_are_not_checked():
    with pytest.raises(AssertionError, match="takes an engine"):
        check_solver(SOLVERS["cocoa"])
