"""The table of solvers is what the pages and the docstring tell, and what solvers do."""

from pathlib import Path

import pytest
from problems import noisy, problem

from dotadd import LinearSVM
from dotadd.core.losses import Loss
from dotadd.errors import DotaddError
from dotadd.solvers import table
from dotadd.solvers.run import Settings
from dotadd.solvers.table import SOLVERS, Needs, that_need

ROOT = Path(__file__).parents[2]


def told():
    """The table as docs/design.md has it."""
    yield "| solver | what it is | needs | losses | starts warm | can be resumed | updates a model | to compare with |"
    yield "|---|---|---|---|---|---|---|---|"
    for solver in table._TABLE:  # in its own order, which tests that take solvers out of SOLVERS change
        losses = "all" if solver.losses == tuple(Loss) else ", ".join(loss.name.lower() for loss in solver.losses)
        flags = (solver.warm, solver.checkpoints, solver.updates, solver.baseline)
        ticks = ["yes" if flag else "" for flag in flags]
        yield f"| {' | '.join([f'`{solver.name}`', solver.what, solver.needs.value, losses, *ticks])} |"


def test_the_page_of_the_design_has_the_table():
    assert "\n".join(told()) in (ROOT / "docs" / "design.md").read_text()


def test_every_solver_is_named_in_the_page_of_what_is_there_and_in_the_docstring():
    page, docstring = (ROOT / "docs" / "reference" / "what_is_there.md").read_text(), LinearSVM.__doc__
    for name, solver in SOLVERS.items():
        assert f"`{name}`" in page, name
        if solver.needs is not Needs.PIECES or not solver.baseline:
            assert f'"{name}"' in docstring, name


@pytest.mark.parametrize("name", that_need(Needs.ROWS, Needs.PASSES))
def test_a_solver_starts_warm_exactly_if_the_table_says_so(name):
    X, y = noisy()
    one, solver = problem(X, y, loss="squared_hinge"), SOLVERS[name]
    earlier = solver(one, Settings(tol=0.1))
    if solver.warm:
        assert len(solver(one, Settings(tol=0.1), earlier)) == 1
    else:
        with pytest.raises(DotaddError, match="begins anew each time"):
            solver(one, Settings(tol=0.1), earlier)


def test_an_ancestor_is_there_to_be_compared_with():
    assert all(solver.baseline for solver in SOLVERS.values() if solver.ancestor)
