"""Training that begins on a sample ends where training on all examples does."""

import json
from dataclasses import replace

import naive
import numpy as np
import pytest

from dotadd.core.losses import Loss
from dotadd.data.batches import Strings
from dotadd.features import Shape, WeightedDegree, WeightedSpectrum
from dotadd.features.checks import materialize
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers import sample as module
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason, Support
from dotadd.solvers.run import Settings

N, WIDTH = 400, 12
PHI = WeightedDegree(3).normalized() + WeightedSpectrum(2).normalized()


def windows(seed=0):
    """Strings of which one in eight has a motif, most of the time."""
    rng = np.random.default_rng(seed)
    letters = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, (N, WIDTH))]
    y = np.where(rng.random(N) < 0.125, 1, -1).astype(np.int8)
    letters[(y > 0) & (rng.random(N) < 0.9), 5:8] = np.frombuffer(b"CAG", np.uint8)
    return Strings(letters.ravel(), width=WIDTH), y


def strings_problem(loss="hinge", intercept="regularized", cost=None, threads=1, ys=None):
    batch, y = windows()
    phi = PHI.resolve(Shape.of(batch))
    assert phi.bulk
    cost = np.ones(N) if cost is None else cost
    examples = InMemory(phi, batch, dtype=np.float64, threads=threads)
    return Problem(examples, Columns.of([y] if ys is None else ys, cost), Loss.named(loss), Intercept(intercept))


def two_problems():
    return strings_problem(ys=[windows()[1], np.where(np.arange(N) % 3 == 0, 1, -1).astype(np.int8)])


@pytest.fixture(autouse=True)
def _small_first_sample(monkeypatch):
    monkeypatch.setattr(module, "FIRST", 40)


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_reaches_the_optimum_of_an_independent_solver(loss, intercept):
    batch, y = windows()
    X = materialize(PHI, batch).toarray()
    cost = np.random.default_rng(1).uniform(0.5, 3.0, N)
    cost[::17] = 0.0
    best = naive.solve(X, y, cost, loss, intercept)[0]
    result = dcd(strings_problem(loss, intercept, cost), Settings(tol=1e-5, max_passes=20000))[0]
    assert result.reason is Reason.CONVERGED
    assert result.primal == pytest.approx(best, rel=1e-4)
    assert result.gap <= 1e-5


def test_the_sample_grows_until_it_is_all():
    result = dcd(strings_problem(), Settings(tol=1e-3))[0]
    sizes = [progress.sample for progress in result.trace]
    assert sizes[0] == 40
    assert sizes[-1] is None
    grown = [size for size in dict.fromkeys(sizes) if size is not None]
    assert grown == [40 * 2**k for k in range(len(grown))]
    assert all(progress.active <= (progress.sample or N) for progress in result.trace)


def test_estimates_on_the_way_are_those_of_a_problem():
    """The gap of a sample lies between 0 and 1, and its objective between that of w = 0 and 0."""
    for progress in dcd(strings_problem(), Settings(tol=1e-3))[0].trace:
        assert 0.0 <= progress.gap <= 1.0
        assert 0.0 <= progress.dual <= progress.primal
        assert progress.dual <= (progress.sample or N)


def test_only_examples_that_would_move_are_visited():
    """In all, far fewer visits than passes over all examples would make."""
    result = dcd(strings_problem(), Settings(tol=1e-3))[0]
    support = np.count_nonzero(result.alpha)
    assert support < N
    whole = [progress for progress in result.trace if progress.sample is None]
    assert whole[-1].active <= 1.5 * support


def test_stopped_on_a_sample_the_gap_is_that_of_the_whole_problem():
    result = dcd(strings_problem(), Settings(tol=1e-6, max_passes=2))[0]
    assert result.reason is Reason.MAX_PASSES
    assert result.trace[-1].sample == 40
    batch, y = windows()
    X = materialize(PHI, batch).toarray()
    assert result.primal == pytest.approx(
        naive.primal(X, y, np.ones(N), "hinge", result.w, result.intercept, "regularized"), rel=1e-6
    )
    dual = result.alpha.sum() - 0.5 * (result.w @ result.w + (result.alpha @ y) ** 2)
    assert result.dual == pytest.approx(dual, rel=1e-6)


def test_several_problems_share_the_sample():
    _, y = windows()
    other = np.where(np.arange(N) % 3 == 0, 1, -1).astype(np.int8)
    together = dcd(strings_problem(ys=[y, other]), Settings(tol=1e-5, max_passes=20000))
    for ys, result in zip([y, other], together, strict=True):
        alone = dcd(strings_problem(ys=[ys]), Settings(tol=1e-5, max_passes=20000))[0]
        assert result.primal == pytest.approx(alone.primal, rel=1e-4)


def test_the_answer_does_not_depend_on_the_number_of_threads():
    one, two = (dcd(strings_problem(threads=threads), Settings(tol=1e-3))[0] for threads in (1, 2))
    assert (one.alpha == two.alpha).all()
    assert (one.w == two.w).all()


@pytest.mark.parametrize("max_passes", [2, 10000])
def test_dual_variables_are_held_for_visited_examples_alone_and_prove_the_whole(max_passes):
    result = dcd(strings_problem(), Settings(tol=1e-3, max_passes=max_passes))[0]
    assert isinstance(result.duals, Support)
    assert len(result.duals.rows) == len(result.duals.values) < N
    assert result.duals.total == len(result.alpha) == N
    batch, y = windows()
    X, alpha = materialize(PHI, batch).toarray(), result.alpha
    w, b = (alpha * y) @ X, (alpha * y).sum()
    primal = naive.primal(X, y, np.ones(N), "hinge", result.w, result.intercept, "regularized")
    assert result.primal == pytest.approx(primal, rel=1e-6)
    assert result.dual == pytest.approx(alpha.sum() - 0.5 * (w @ w + b * b), rel=1e-6)


def test_rows_looked_at_in_pieces_have_the_same_answer(monkeypatch):
    whole = dcd(strings_problem(), Settings(tol=1e-3))[0]
    monkeypatch.setattr(module, "LOOKED_AT", 37)
    monkeypatch.setattr(module, "PREPARED", 0)
    problem = strings_problem()
    pieces = dcd(problem, Settings(tol=1e-3))[0]
    assert np.array_equal(pieces.duals.rows, whole.duals.rows)
    assert "phi" not in vars(problem.examples), "nothing was prepared for all rows, such as their lengths"
    np.testing.assert_allclose(pieces.w, whole.w, rtol=1e-9, atol=1e-12)
    assert pieces.gap == pytest.approx(whole.gap, rel=1e-6)


def saved_after(max_passes, folder):
    """A checkpoint of training that was cut short, and what it came to."""
    where = Checkpoint(str(folder / "c"), 1e9)
    settings = Settings(tol=1e-5, max_passes=max_passes, checkpoint=where)
    return where, dcd(two_problems(), settings)


@pytest.mark.parametrize("max_passes", [1, 4, 30])
def test_resumed_on_a_sample_or_after_it_is_bit_equal(tmp_path, max_passes, monkeypatch):
    monkeypatch.setattr("dotadd.solvers.dcd.pays", lambda *_: False)  # a limit on passes decides when a tail comes
    settings = Settings(tol=1e-5, max_passes=20000)
    expected = dcd(two_problems(), settings)
    where, before = saved_after(max_passes, tmp_path)
    assert not all(result.converged for result in before)
    again = dcd(
        two_problems(),
        replace(settings, checkpoint=where, resume=True),
    )
    for one, other in zip(again, expected, strict=True):
        assert np.array_equal(one.w, other.w)
        assert np.array_equal(one.alpha, other.alpha)
        assert one.gap == other.gap


@pytest.mark.parametrize("max_passes", [1, 30])
def test_a_checkpoint_of_an_earlier_version_which_had_variables_of_all_examples_is_gone_on_from(tmp_path, max_passes):
    where, before = saved_after(max_passes, tmp_path)
    with np.load(tmp_path / "c") as file:
        arrays = dict(file)
    rows = arrays.pop("rows")
    assert len(rows) < N
    for name in ("alpha", "active"):
        for k in range(len(before)):
            short = arrays[f"{k}.{name}"]
            arrays[f"{k}.{name}"] = np.zeros(N, short.dtype)
            arrays[f"{k}.{name}"][rows] = short
    if json.loads(arrays["record"].tobytes())["state"]["size"] == N:
        del arrays["order"]
    with open(tmp_path / "c", "wb") as file:
        np.savez(file, **arrays)
    settings = Settings(tol=1e-5, max_passes=20000, checkpoint=where, resume=True)
    for result in dcd(two_problems(), settings):
        assert result.converged
        assert result.gap <= 1e-5
