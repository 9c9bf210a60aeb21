"""A time limit and many classes: no class stays untrained while others are polished, and one without an answer shows.

Time is made by the test: a second passes each time a solver looks at its clock.
"""

import itertools
import os
import signal

import numpy as np
import pytest
from problems import flow_of, problem, sparse

from dotadd import KernelSVM
from dotadd.features import filling
from dotadd.features.linear import Linear
from dotadd.kernel_svm import chunking, double_chunking, one_against_one, smo
from dotadd.solvers import clock
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)
STREAMING = that_need(Needs.PIECES)

CLASSES, ROWS, BLOCKS = 20, 200, 10


@pytest.fixture
def looks(monkeypatch):
    """Each look at the clock takes a second. Counts them."""
    count = itertools.count()
    monkeypatch.setattr(clock, "perf_counter", lambda: float(next(count)))
    return count


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(filling, "CALL_NONZEROS", ROWS * 6 // BLOCKS)


def one_against_the_rest(seed=0):
    """Labels that mean little, so that there is always more to do."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(ROWS, 6)), rng.integers(0, CLASSES, ROWS)
    return X, np.where(y == np.arange(CLASSES)[:, None], 1, -1)


def solved(solver, max_time, **limits):
    X, ys = one_against_the_rest()
    settings = Settings(tol=1e-14, max_time=max_time, **limits)
    loss = "squared_hinge" if solver in ("newton", "lbfgs") else "hinge"
    if solver in STREAMING:
        return STREAMING[solver](flow_of(sparse(X), Linear(), ys, 10.0), settings)
    return SOLVERS[solver](problem(X, ys, cost=10.0, loss=loss), settings, None)


@pytest.mark.parametrize("solver", [*SOLVERS, *STREAMING])
def test_every_class_gets_its_share_of_the_time(solver, looks):
    results = solved(solver, 5.0 * CLASSES * BLOCKS)
    assert Reason.MAX_TIME in {result.reason for result in results}
    assert all(result.w.any() for result in results)
    passes = [result.passes for result in results if result.reason is Reason.MAX_TIME]
    assert min(passes) >= 1
    assert max(passes) <= 2 * min(passes) + 4


def test_no_class_ends_its_pass_while_others_have_to_be_cut_short(looks):
    """There is as much time as half of the first pass takes."""
    whole, half = solved("dcd", None, max_passes=1), solved("dcd", CLASSES * BLOCKS / 2)
    for one, other in zip(whole, half, strict=True):
        assert 0 < np.count_nonzero(other.alpha) < np.count_nonzero(one.alpha)
        assert other.passes == 1


@pytest.mark.parametrize("solver", ["ocas", "newton", "lbfgs"])
def test_a_class_that_time_did_not_reach_has_no_passes_and_no_other_has_none(solver, looks):
    results = solved(solver, 100.0)
    assert {result.reason for result in results} == {Reason.MAX_TIME}
    reached = [result.passes > 0 for result in results]
    assert reached == [bool(result.w.any()) for result in results]
    assert not all(reached)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("solver", ["dcd", "ocas"])
def test_a_class_that_was_not_reached_before_ctrl_c_has_no_passes_and_no_other_has_none(solver, monkeypatch):
    looks = itertools.count()

    def pressed():
        if next(looks) == 60:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.0

    monkeypatch.setattr(clock, "perf_counter", pressed)
    results = solved(solver, None)
    assert {result.reason for result in results} == {Reason.INTERRUPTED}
    reached = [result.passes > 0 for result in results]
    assert reached == [bool(result.w.any()) for result in results]
    assert any(reached)
    assert not all(reached)


def test_a_class_that_starts_from_an_earlier_answer_has_one(looks):
    X, ys = one_against_the_rest()
    first = SOLVERS["dcd"](problem(X, ys, cost=10.0), Settings(max_passes=2), None)
    again = SOLVERS["dcd"](problem(X, ys, cost=10.0), Settings(tol=1e-14, max_time=1e-9), first)
    assert all(result.passes > 0 for result in again)


@pytest.mark.filterwarnings("ignore::dotadd.errors.NotConvergedWarning")
@pytest.mark.parametrize(("solver", "max_time"), [("smo", 800.0), ("chunking", 800.0), ("double_chunking", 525.0)])
def test_every_pair_of_classes_gets_its_share_of_the_time(solver, max_time, looks, monkeypatch):
    monkeypatch.setattr(one_against_one, "WHOLE", 0)
    monkeypatch.setattr(smo, "WORK", 1)
    monkeypatch.setattr(chunking, "Q_ROWS", 4)
    monkeypatch.setattr(double_chunking, "FIRST", 8)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ROWS, 6)), rng.integers(0, 5, ROWS)
    # On one thread: looks of two at once would take two seconds, and not one.
    svm = KernelSVM("rbf", C=1e4, tol=1e-12, solver=solver, max_time=max_time, random_state=0, n_jobs=1).fit(X, y)
    assert Reason.MAX_TIME in {result.reason for result in svm.result_}
    assert all(result.alpha.any() for result in svm.result_)
