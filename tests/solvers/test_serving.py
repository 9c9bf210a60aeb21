"""Batch solvers are served alike: together or alone, on one thread or two, cut short or begun from an earlier one."""

from itertools import pairwise

import numpy as np
import pytest
from problems import noisy, problem, streamed_of

from dotadd.core.losses import Loss
from dotadd.data.batches import Strings
from dotadd.errors import DotaddError
from dotadd.features import Shape, WeightedDegree
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers import newton as newton_module
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)

BATCH = ["ocas", "newton", "lbfgs"]


def strings(n=400, width=12, seed=0):
    letters = np.random.default_rng(seed).integers(0, 4, (n, width))
    batch = Strings(np.frombuffer(b"ACGT", np.uint8)[letters].ravel(), width=width)
    y = np.where((letters[:, 6] == 2) | (letters[:, 2] == 0), 1, -1)
    return batch, [y, np.where(letters[:, 3] < 2, 1, -1), -y]


def on_strings(*, threads=1, streamed=False, loss="squared_hinge", which=slice(None)):
    batch, ys = strings()
    phi = WeightedDegree(5).hashed(3).normalized().resolve(Shape.of(batch))
    if streamed:
        cuts = [0, 150, 150, 160, 400]
        chunks = [batch.take(np.arange(first, stop)) for first, stop in pairwise(cuts)]
        examples = streamed_of(phi, lambda: iter(chunks), 400, dtype=np.float64, threads=threads)
    else:
        examples = InMemory(phi, batch, dtype=np.float64, threads=threads)
    signs = [y.astype(np.int8) for y in ys[which]]
    return Problem(examples, Columns.of(signs, np.ones(400)), Loss.named(loss), Intercept.FREE)


@pytest.mark.parametrize("solver", BATCH)
def test_problems_solved_together_equal_those_solved_alone(solver):
    settings = Settings(tol=1e-4)
    together = SOLVERS[solver](on_strings(), settings, None)
    for k, result in enumerate(together):
        (alone,) = SOLVERS[solver](on_strings(which=slice(k, k + 1)), settings, None)
        assert alone.passes == result.passes
        assert alone.primal == pytest.approx(result.primal, rel=1e-12)


@pytest.mark.parametrize("solver", BATCH)
@pytest.mark.parametrize("how", [{"threads": 2}, {"threads": 3}, {"streamed": True}, {"streamed": True, "threads": 2}])
def test_threads_and_streams_do_not_change_the_answer(solver, how):
    for loss in ("squared_hinge", "hinge"):
        if loss == "hinge" and solver != "ocas":  # newton refuses it, and on its kinks lbfgs goes where rounding leads
            continue
        plain, other = (SOLVERS[solver](on_strings(loss=loss, **some), Settings(tol=1e-3), None) for some in ({}, how))
        for one, same in zip(plain, other, strict=True):
            assert same.primal == pytest.approx(one.primal, rel=1e-6)
            # few rows in memory hold planes by outputs, and rows from disk as vectors: both round in their own way
            rounded = 1e-5 if how.get("streamed") and solver == "ocas" else 1e-6
            np.testing.assert_allclose(same.w, one.w, rtol=rounded, atol=rounded * np.abs(one.w).max())


@pytest.mark.parametrize("solver", BATCH)
def test_an_earlier_answer_is_where_the_next_one_begins(solver):
    X, y = noisy(n=200)
    p = problem(X, y, loss="squared_hinge")
    cold = SOLVERS[solver](p, Settings(tol=1e-5), None)
    other = problem(X, y, loss="squared_hinge", cost=1.1)
    warm = SOLVERS[solver](other, Settings(tol=1e-5), cold)
    fresh = SOLVERS[solver](other, Settings(tol=1e-5), None)
    assert warm[0].trace[0].primal < 0.5 * fresh[0].trace[0].primal
    assert warm[0].primal == pytest.approx(fresh[0].primal, rel=1e-5)
    with pytest.raises(DotaddError, match="start does not come from a fit with the same features"):
        SOLVERS[solver](problem(X[:, :3], y, loss="squared_hinge"), Settings(), cold)


@pytest.mark.parametrize("solver", BATCH)
@pytest.mark.parametrize("ys", [1, 3])
def test_limits_and_interrupts_keep_what_there_is_with_a_true_gap(solver, ys):
    X, y = noisy(n=300)
    p = problem(X, [y, -y, np.where(X[:, 0] > 0, 1, -1)][:ys], loss="squared_hinge")

    def interrupt(progress, k):
        if progress.passes >= 6:
            raise KeyboardInterrupt

    cut = {
        Reason.MAX_PASSES: Settings(tol=1e-14, max_passes=7),
        Reason.MAX_TIME: Settings(tol=1e-14, max_time=1e-9),
        Reason.INTERRUPTED: Settings(tol=1e-14, on_progress=interrupt),
    }
    for reason, settings in cut.items():
        results = SOLVERS[solver](p, settings, None)
        assert len(results) == ys
        for k, result in enumerate(results):
            assert result.reason is reason
            m = p.columns.sign(k) * (X @ result.w + result.intercept)
            primal = 0.5 * (result.w @ result.w + result.intercept**2) + (np.maximum(0.0, 1.0 - m) ** 2).sum()
            assert result.primal == pytest.approx(primal)
            assert result.dual <= result.primal
            assert result.gap == pytest.approx(1.0 - result.dual / result.primal)
            if reason is Reason.MAX_PASSES:
                assert result.primal < len(y), "better than w = 0"


@pytest.mark.parametrize("product", ["dot_add", "add_products"])
def test_a_pass_is_a_run_over_the_data(monkeypatch, product):
    X, y = noisy()
    counted = []
    if product == "dot_add":
        monkeypatch.setattr(newton_module, "NARROW", 0)
    for name in ("dot", "add", product):
        plain = getattr(InMemory, name)
        monkeypatch.setattr(
            InMemory, name, lambda self, *given, plain=plain, name=name: (counted.append(name), plain(self, *given))[1]
        )
    told = []
    settings = Settings(tol=1e-2, on_progress=lambda progress, k: told.append((progress.passes, len(counted))))
    result = SOLVERS["newton"](problem(X, y, loss="logistic"), settings, None)[0]
    assert len(told) > 2
    assert all(passes == runs for passes, runs in told)
    assert result.passes == told[-1][0]
    assert set(counted) == {"dot", "add", product}
