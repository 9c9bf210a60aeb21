"""Two threads at one problem whose rows share few features: the optimum of one thread, whoever makes which half."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dotadd._util import threads
from dotadd.core.losses import Loss
from dotadd.data.batches import SparseRows
from dotadd.features import Linear
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers import rounds
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.rounds import Rounds
from dotadd.solvers.run import Settings

LOSSES = ["hinge", "squared_hinge", "logistic"]
INTERCEPTS = ["none", "regularized", "free"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Some hundred rows are worth a round."""
    monkeypatch.setattr(rounds, "LEAST", 1)
    monkeypatch.setattr(rounds, "ROUND", 0.5)


@pytest.fixture
def ended(monkeypatch):
    """What each sweep in rounds has said."""
    said, real = [], Rounds.sweep

    def noted(self, *args, **keywords):
        said.append(real(self, *args, **keywords))
        return said[-1]

    monkeypatch.setattr(Rounds, "sweep", noted)
    return said


def problem(count, loss="hinge", intercept="regularized", columns=4000, n=1500, dtype=np.float32):
    rng = np.random.default_rng(0)
    X = sp.random(n, columns, 10 / columns, "csr", np.float32, rng, rng.standard_normal)
    y = np.where(X @ rng.normal(size=columns) + 0.5 * rng.normal(size=n) > 0.3, 1, -1).astype(np.int8)
    batch = SparseRows(X.indptr, X.indices, X.data, columns)
    examples = InMemory(Linear(n_features=columns), batch, dtype=dtype, threads=count)
    return Problem(examples, Columns.of([y], np.full(n, 0.5)), Loss.named(loss), Intercept(intercept))


def same(one, two):
    assert one.w.tobytes() == two.w.tobytes()
    assert one.alpha.tobytes() == two.alpha.tobytes()
    assert (one.gap, one.passes, one.intercept) == (two.gap, two.passes, two.intercept)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_two_threads_reach_the_optimum_of_one(loss, intercept, ended):
    settings = Settings(tol=1e-5, max_passes=5000)
    (two,) = dcd(problem(2, loss, intercept, dtype=np.float64), settings)
    assert all(ended)
    assert (len(ended) > 1) == (intercept != "free")
    (one,) = dcd(problem(1, loss, intercept, dtype=np.float64), settings)
    assert two.reason is one.reason is Reason.CONVERGED
    assert two.primal == pytest.approx(one.primal, rel=2e-5)
    assert max(one.dual, two.dual) <= min(one.primal, two.primal)


def test_the_bits_do_not_depend_on_who_makes_which_half(ended, monkeypatch):
    settings = Settings(tol=1e-3)
    (two,) = dcd(problem(2), settings)
    (four,) = dcd(problem(4), settings)
    monkeypatch.setattr(rounds, "for_each", lambda items, work, count: threads.for_each(items, work, 1))
    (alone,) = dcd(problem(2), settings)
    assert any(ended)
    same(two, alone)
    assert four.alpha.tobytes() == two.alpha.tobytes()


@pytest.mark.parametrize("max_passes", [1, 3])
def test_a_resumed_run_has_the_same_bits(max_passes, tmp_path, ended, monkeypatch):
    monkeypatch.setattr("dotadd.solvers.dcd.pays", lambda *_: False)  # a limit on passes decides when a tail comes
    settings = Settings(tol=1e-5, max_passes=1000)
    (expected,) = dcd(problem(2), settings)
    where = Checkpoint(str(tmp_path / "c"), 1e9)
    dcd(problem(2), replace(settings, max_passes=max_passes, checkpoint=where))
    (again,) = dcd(problem(2), replace(settings, checkpoint=where, resume=True))
    assert any(ended)
    same(again, expected)


def test_where_rows_share_features_one_thread_goes_on(ended, monkeypatch):
    monkeypatch.setattr(rounds, "ROUND", 50.0)
    settings = Settings(tol=1e-4, max_passes=5000)
    (two,) = dcd(problem(2, columns=60), settings)
    assert ended == [False]
    (one,) = dcd(problem(1, columns=60), settings)
    assert two.reason is Reason.CONVERGED
    assert two.primal == pytest.approx(one.primal, rel=2e-4)
