"""The block minimisers: the optimum of all examples from a tenth of them in memory, however training ends."""

import os
import signal
import weakref

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, flow_of, noisy, problem, sparse

from dotadd.data.batches import DenseRows, Strings
from dotadd.errors import DataError
from dotadd.features import Linear, Spectrum
from dotadd.problem import on_disk
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers.baselines import block_minimization as bm
from dotadd.solvers.baselines import selective_block_minimization as sbm
from dotadd.solvers.baselines.block_minimization import block_minimization
from dotadd.solvers.baselines.selective_block_minimization import selective_block_minimization
from dotadd.solvers.certify import Certificate
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.store import bytes_beside

SOLVERS = [block_minimization, selective_block_minimization]
N, C = 200, 0.03


def wide(n=N, seed=0):
    return noisy(n=n, d=20, seed=seed)


def optimum(X, ys, **options):
    return [one.primal for one in dcd(problem(X, ys, **options), Settings(tol=1e-5, max_passes=20000))]


def flow(X=None, ys=None, cost=C, **options):
    if X is None:
        X, ys = wide()
    return flow_of(sparse(X, np.float64), Linear(), ys, cost, **options)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_reaches_the_optimum_of_dcd(solver, loss, intercept):
    X, y = wide()
    cost = C * np.random.default_rng(1).uniform(0.5, 3.0, N)
    (result,) = solver(flow(X, y, cost, loss=loss, intercept=intercept), Settings(tol=1e-3))
    assert result.reason is Reason.CONVERGED
    assert result.gap <= 1e-3
    (best,) = optimum(X, y, cost=cost, loss=loss, intercept=intercept)
    assert result.primal == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_dense_rows_and_strings_reach_it_too(solver):
    X, y = wide()
    (dense,) = solver(flow_of(DenseRows(X), Linear(), y, C), Settings())
    assert dense.primal == pytest.approx(optimum(X, y, cost=C, dense=True)[0], rel=1e-3)
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ACGT"), rng.integers(60, 120))) for _ in range(N)]
    y = np.array([1 if word.count("AC") > 5 else -1 for word in words])
    streamed = flow_of(Strings.from_list(words), Spectrum(3), y, 1e-4, dtype=np.float32)
    examples = InMemory(streamed.examples.phi, Strings.from_list(words))
    (best,) = dcd(
        Problem(examples, Columns.of([y.astype(np.int8)], np.full(N, 1e-4))), Settings(tol=1e-5, max_passes=5000)
    )
    (strings,) = solver(streamed, Settings())
    assert strings.gap <= 1e-3
    assert strings.primal == pytest.approx(best.primal, rel=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_problems_share_the_blocks_and_weights_of_zero_leave_rows_out(solver):
    X, y = wide()
    ys = [y, -y, np.where(X[:, 0] > 0.3, 1, -1)]
    out = np.arange(N) % 4 == 0
    results = solver(flow(X, ys, np.where(out, 0.0, C)), Settings())
    best = optimum(X[~out], [y[~out] for y in ys], cost=C)
    for result, primal in zip(results, best, strict=True):
        assert result.reason is Reason.CONVERGED
        assert result.primal == pytest.approx(primal, rel=1e-3)
        assert not result.alpha[out].any()


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_primal_dual_and_gap_of_the_result_are_true(solver, intercept):
    X, y = wide()
    (result,) = solver(flow(X, y, intercept=intercept), Settings(tol=1e-2))
    cost = np.full(N, C)
    assert result.primal == pytest.approx(naive.primal(X, y, cost, "hinge", result.w, result.intercept, intercept))
    w, balance = (result.alpha * y) @ X, result.alpha @ y
    if intercept == "free":
        assert balance == pytest.approx(0.0, abs=1e-9)
    penalty = 0.5 * w @ w + (0.5 * balance**2 if intercept == "regularized" else 0.0)
    assert result.dual == pytest.approx(result.alpha.sum() - penalty)
    assert result.gap == pytest.approx(1.0 - result.dual / result.primal, abs=1e-12)
    assert (result.alpha >= 0.0).all()
    assert (result.alpha <= C).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_trace_has_a_row_for_each_pass_and_progress_one_for_each_block(solver):
    told = []
    settings = Settings(tol=1e-4, on_progress=lambda progress, k: told.append(progress))
    (result,) = solver(flow(), settings)
    assert [row.passes for row in result.trace] == list(range(1, result.passes + 1))
    assert [row for row in told if row.read == 1.0] == result.trace
    duals = np.array([row.dual for row in told])
    assert (np.diff(duals) >= -1e-9 * duals[-1]).all()
    assert duals[-1] == pytest.approx(result.dual, rel=1e-9)
    blocks = len(told) // result.passes
    assert blocks >= 10
    for number in range(result.passes):
        rows = told[number * blocks : (number + 1) * blocks]
        assert [row.passes for row in rows] == [number] * (blocks - 1) + [number + 1]
        assert (np.diff([row.read for row in rows]) > 0.0).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_seed_gives_the_same_bits_and_another_seed_another_path(solver, threads):
    a, b, c = (solver(flow(threads=threads), Settings(tol=1e-2, seed=seed))[0] for seed in (7, 7, 8))
    np.testing.assert_array_equal(a.w, b.w)
    assert not np.array_equal(a.alpha, c.alpha)


@pytest.mark.parametrize("solver", SOLVERS)
def test_examples_in_memory_stay_within_the_budget(solver, monkeypatch):
    streamed, alive, most = flow(), [], []
    plain_take, plain_read = bm.Held.take, streamed.examples.read

    def measure():
        most.append(sum(batch().row_bytes().sum() for batch in alive if batch() is not None))

    def take(self, at):
        held = plain_take(self, at)
        alive.append(weakref.ref(held.problem.examples.batch))
        measure()
        return held

    def read(nbytes):
        for piece in plain_read(nbytes):
            alive.append(weakref.ref(piece[0]))
            measure()
            yield piece
            del piece

    monkeypatch.setattr(bm.Held, "take", take)
    monkeypatch.setattr(on_disk, "SMALLEST", 1)
    streamed.examples.read = read
    told = []
    solver(streamed, Settings(max_passes=3, on_progress=lambda progress, k: told.append(progress)))
    assert 0.3 * streamed.examples.memory < max(most) <= streamed.examples.memory
    each = bytes_beside(1)
    assert all(row.cached * each <= streamed.examples.memory for row in told)


def test_what_is_kept_is_closest_to_the_margin_and_no_row_is_there_twice(monkeypatch):
    X, y = wide()
    kept, full = [], []

    def closest(parts, running, nbytes, check):
        (state,) = running
        rows = np.concatenate([part.rows for part in parts])
        assert len(np.unique(rows)) == len(rows)
        moves = np.concatenate([part.active[0] for part in parts]) > 0
        distance = np.abs(y[rows] * (X[rows] @ state.w + state.descent.b) - 1.0)
        sizes = dict(zip(rows, np.concatenate([part.row_bytes() for part in parts]), strict=True))
        found = sbm_closest(parts, running, nbytes, check)
        assert parts == []
        stay = np.concatenate([part.rows for part in found])
        assert sum(sizes[row] for row in stay) <= nbytes
        assert moves[np.isin(rows, stay)].all()
        others = distance[moves & ~np.isin(rows, stay)]
        full.append(len(others) > 0)
        if full[-1]:
            assert distance[np.isin(rows, stay)].max() <= others.min()
        for part in found:
            np.testing.assert_array_equal(part.problem.columns.sign(0), y[part.rows])
            np.testing.assert_array_equal(part.alphas[0], state.alpha[part.rows])
            (output,) = part.problem.outputs([state.w])
            np.testing.assert_allclose(output, X[part.rows] @ state.w)
        kept.append(len(stay))
        return found

    sbm_closest = sbm.closest
    monkeypatch.setattr(sbm, "closest", closest)
    selective_block_minimization(flow(cost=1.0, memory=6000), Settings(tol=1e-2))
    assert max(kept) > 8
    assert any(full), "not all that could stay"


def test_keeping_examples_saves_passes():
    X, y = wide()
    plain, selective = (solver(flow(X, y, 0.3), Settings(tol=1e-2))[0] for solver in SOLVERS)
    assert selective.passes < plain.passes


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_and_interrupts_keep_what_there_is_with_a_true_gap(solver, intercept):
    X, y = wide()

    def interrupt(progress, k):
        if progress.passes == 1 and progress.read > 0.5:
            os.kill(os.getpid(), signal.SIGINT)

    for reason, settings in {
        Reason.MAX_PASSES: Settings(tol=1e-12, max_passes=2),
        Reason.MAX_TIME: Settings(tol=1e-12, max_time=1e-9),
        Reason.INTERRUPTED: Settings(tol=1e-12, on_progress=interrupt),
    }.items():
        (result,) = solver(flow(X, y, intercept=intercept), settings)
        assert result.reason is reason
        assert result.primal == pytest.approx(
            naive.primal(X, y, np.full(N, C), "hinge", result.w, result.intercept, intercept)
        )
        assert result.gap == pytest.approx(1.0 - result.dual / result.primal)
        if reason is not Reason.MAX_TIME:
            assert 0.0 < result.gap < 0.5
            w = (result.alpha * y) @ X
            if intercept == "free":
                assert result.alpha @ y == pytest.approx(0.0, abs=1e-9)
            else:
                np.testing.assert_allclose(result.w, w, atol=1e-9)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_second_interrupt_leaves_without_the_proof(solver, monkeypatch):
    def interrupt(progress, k):
        os.kill(os.getpid(), signal.SIGINT)

    def certify(problem, judges, check, **_):
        os.kill(os.getpid(), signal.SIGINT)
        check()

    monkeypatch.setattr(bm, "certify", certify)
    (result,) = solver(flow(), Settings(tol=1e-12, on_progress=interrupt))
    assert result.reason is Reason.INTERRUPTED
    assert np.isnan([result.primal, result.dual, result.gap]).all()
    assert result.w.any()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_gap_that_is_rounding_ends_training_and_one_that_is_not_goes_on(solver, monkeypatch):
    seen = []

    def certify(flow, *_, **__):
        seen.append(1)
        return [Certificate(1.0, 0.98, 0.02, 0.0, 0.0 if len(seen) < 4 else 0.0199)]

    monkeypatch.setattr(bm, "certify", certify)
    (result,) = solver(flow(), Settings())
    assert result.reason is Reason.PRECISION
    assert result.gap == 0.02
    assert len(seen) == 4


@pytest.mark.parametrize(("more", "complaint"), [(-1, "had 199 rows.*brings more"), (1, "had 201 rows.*only 200")])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_flow_that_changes_its_length_is_refused(solver, more, complaint):
    streamed = flow()
    streamed.examples._rows = N + more
    with pytest.raises(DataError, match=complaint):
        solver(streamed, Settings())


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_budget_below_one_row_and_one_beyond_all_of_them_work(solver):
    X, y = wide(n=60)
    (best,) = optimum(X, y, cost=C)
    for memory in (1, 1 << 30):
        (result,) = solver(flow(X, y, memory=memory), Settings())
        assert result.primal == pytest.approx(best, rel=1e-3)
