"""The automatic choice of a solver: by shape, loss and C, said in words, and never against what was asked for."""

import numpy as np
import pytest
from problems import LOSSES, noisy, problem

from dotadd import BagOfWords, LinearSVM
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import features_met
from dotadd.solvers.table import Needs, choose_solver, that_need
from dotadd.sources import open as open_source

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)


def chosen(loss, cost, size=1.0, n=400, d=8):
    X, y = noisy(n=n, d=d)
    return choose_solver("auto", problem(size * X, y, loss=loss, cost=cost))[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_tall_data_with_a_large_C_goes_to_a_batch_solver(loss):
    batch = "ocas" if loss == "hinge" else "newton"
    assert chosen(loss, 1e-2) == "dcd"
    assert chosen(loss, 1e2) == batch
    assert chosen(loss, 1e4) == ("dcd" if loss == "hinge" else batch), "by its tail"
    assert chosen(loss, 1e2, size=1e-2) == "dcd", "it is C |phi|^2 that counts"
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


def with_huge_rows(n=4000, d=6, seed=0):
    """Most rows short, a few very long: the mean of |phi|^2 tells little, and coordinate descent creeps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.where(rng.random(n) < 0.003, 40.0, 0.5)[:, None]
    return X, np.where(X @ rng.normal(size=d) + 2.0 * rng.normal(size=n) > 0, 1, -1)


def test_auto_changes_its_mind_when_coordinate_descent_creeps():
    """With a free intercept, where no tail is cut off."""
    X, y = with_huge_rows()
    told = []
    svm = LinearSVM(C=1.0, intercept="free", random_state=0)
    svm.fit(X, y, on_progress=lambda progress, *_: told.append(progress))
    result = svm.result_
    assert result.solver == "ocas"
    assert "crept" in result.why
    assert result.converged
    assert svm.model_.training["solver"] == "ocas"
    passes = [progress.passes for progress in told]
    assert passes == sorted(passes), "progress goes on where coordinate descent ended"
    assert [progress.passes for progress in result.trace] == passes
    assert result.passes >= passes[-1]
    asked = LinearSVM(C=1.0, intercept="free", solver="ocas", random_state=0).fit(X, y).result_
    assert result.primal == pytest.approx(asked.primal, rel=2e-3)
    assert (
        LinearSVM(C=1.0, intercept="free", solver="dcd", max_passes=100, random_state=0).fit(X, y).result_.solver
        == "dcd"
    )


@pytest.mark.filterwarnings("ignore::dotadd.NotConvergedWarning")
def test_a_limit_on_passes_holds_for_both_together():
    X, y = with_huge_rows()
    for most in (1, 19, 20, 21, 30):
        svm = LinearSVM(C=1.0, max_passes=most, random_state=0).fit(X, y)
        assert svm.result_.passes <= most
        assert svm.result_.gap is not None


def test_slots_that_no_row_has_do_not_make_data_wide():
    rng = np.random.default_rng(0)
    few = [f"{a} {b}" for a, b in zip(rng.choice(list("abc"), 4000), rng.choice(list("xyz"), 4000), strict=True)]
    many = [" ".join(f"w{k}" for k in rng.integers(0, 20_000, 6)) for _ in range(4000)]
    for texts, wide in ((few, False), (many, True)):
        batch = open_source(texts).load().batch
        examples = InMemory(BagOfWords(bits=18), batch)
        met = len(np.unique(BagOfWords(bits=18).transform(texts).indices))
        assert (features_met(examples) >= 400) == wide
        assert features_met(examples) == met or wide, "all that there are were seen"
