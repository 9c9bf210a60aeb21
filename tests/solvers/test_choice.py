"""The automatic choice of a solver: by shape, loss and C, said in words, and never against what was asked for."""

import numpy as np
import pytest
from problems import LOSSES, noisy, problem

from dotadd import LinearSVM
from dotadd.solvers.table import Needs, choose_solver, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)


def chosen(loss, cost, size=1.0, n=400, d=8):
    X, y = noisy(n=n, d=d)
    return choose_solver("auto", problem(size * X, y, loss=loss, cost=cost))[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_tall_data_with_a_large_C_goes_to_a_batch_solver(loss):
    batch = "ocas" if loss == "hinge" else "newton"
    assert chosen(loss, 1e-2) == "dcd"
    assert chosen(loss, 1e3) == batch
    assert chosen(loss, 1e3, size=1e-2) == "dcd", "it is C |phi|^2 that counts"
    assert chosen(loss, 1e3, n=60, d=50) == "dcd", "wide data"


def test_what_is_asked_for_is_what_runs_and_the_result_says_so():
    X, y = noisy(n=300)
    for solver in SOLVERS:
        svm = LinearSVM(solver=solver, loss="squared_hinge", tol=0.01, random_state=0).fit(X, y)
        assert (svm.result_.solver, svm.result_.why) == (solver, "asked for")
        assert svm.model_.training["solver"] == solver
    svm = LinearSVM(C=1e3, loss="logistic", random_state=0).fit(X, y)
    assert svm.result_.solver == "newton"
    assert "8 features" in svm.result_.why
    assert "creep" in svm.result_.why


def test_an_earlier_result_is_gone_on_from_by_its_own_solver():
    X, y = noisy(n=300)
    first = LinearSVM(C=1e-3, loss="squared_hinge", random_state=0).fit(X, y)
    assert first.result_.solver == "dcd"
    svm = LinearSVM(C=2.0, loss="squared_hinge", random_state=0).fit(X, y, start=first.result_)
    assert svm.result_.solver == "dcd"
    assert svm.result_.why == "goes on from its own earlier result"


def test_the_choice_does_not_change_the_answer():
    X, y = noisy(n=400)
    for loss in LOSSES:
        primal = [
            LinearSVM(C=100.0, loss=loss, solver=solver, tol=1e-4, max_passes=20000, random_state=0)
            .fit(X, y)
            .result_.primal
            for solver in ("auto", "dcd")
        ]
        assert primal[0] == pytest.approx(primal[1], rel=1e-4)
        assert np.isfinite(primal).all()
