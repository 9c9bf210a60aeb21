"""Double chunking: the optimum whatever the sizes of chunks, feasible whenever it stops, and few kernel values."""

import os
import signal

import kernel_problems as kp
import numpy as np
import pytest

from dotadd.kernel_svm import double_chunking as module
from dotadd.kernel_svm.cache import ChunkMatrix
from dotadd.kernel_svm.double_chunking import KernelOutputs, double_chunking
from dotadd.kernel_svm.problem import KernelSettings
from dotadd.kernel_svm.working_set import Limits, margins, next_chunk
from dotadd.solvers.result import Reason

MAKERS = [kp.blobs, kp.noisy, kp.duplicated, kp.rare]


def assert_optimal(p, result, tol=1e-3, best=None):
    best = kp.best_dual(p) if best is None else best
    assert result.reason is Reason.CONVERGED
    kp.assert_feasible(p, result.alpha)
    assert kp.violation(p, result.alpha) <= 1.001 * tol
    assert result.violation == pytest.approx(kp.violation(p, result.alpha), rel=1e-3, abs=1e-7)
    assert result.dual == pytest.approx(kp.dual(p, result.alpha), rel=1e-6, abs=1e-9)
    assert result.dual == pytest.approx(best, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("different", [False, True])
def test_it_reaches_the_optimum_of_a_qp_solver(make, C, different):
    p = kp.problem(*make(80), cost=kp.several_costs(80, C=C) if different else C)
    assert_optimal(p, double_chunking(p, KernelSettings(tol=1e-4), large=20), tol=1e-4)


@pytest.mark.parametrize(
    ("large", "small", "C"),
    [
        (2, None, 1.0),
        (7, None, 100.0),
        (50, None, 1.0),
        (10**6, None, 100.0),
        (60, 2, 1.0),
        (60, 10, 100.0),
        (9, 40, 1.0),
    ],
)
def test_sizes_of_chunks_do_not_change_the_answer(large, small, C):
    p = kp.problem(*kp.noisy(120), cost=C)
    assert_optimal(p, double_chunking(p, KernelSettings(), large=large, small=small))


@pytest.mark.parametrize("room", [10, 50, 90])
def test_more_free_support_vectors_than_fit_into_the_chunk(room):
    p = kp.problem(*kp.noisy(300, d=8), cost=100.0, gamma=0.3)
    result = double_chunking(p, KernelSettings(memory=4 * room**2))
    assert np.count_nonzero((result.alpha > 0.0) & (result.alpha < 100.0)) > 100
    assert_optimal(p, result)
    assert max(max(shape) for shape in p.gram.blocks) <= room


@pytest.mark.parametrize("matrix", [lambda X: X @ X.T, lambda X: (X @ X.T + 1.0) ** 3, lambda X: np.eye(len(X))])
def test_other_kernels(matrix):
    X, y = kp.noisy(150)
    K = matrix(X).astype(np.float32).astype(np.float64)
    p = kp.problem(X, y, cost=0.5, matrix=K)
    assert_optimal(p, double_chunking(p, KernelSettings(), large=40))


def test_agrees_with_libsvm_where_chunks_grow(monkeypatch):
    svm = pytest.importorskip("sklearn.svm")
    monkeypatch.setattr(module, "FIRST", 30)
    X, y = kp.noisy(600, d=5)
    p = kp.problem(X, y, cost=2.0)
    sizes = []
    become = ChunkMatrix.become
    monkeypatch.setattr(ChunkMatrix, "become", lambda self, rows: (sizes.append(len(rows)), become(self, rows)))
    result = double_chunking(p, KernelSettings(tol=1e-4))
    peer = svm.SVC(C=2.0, kernel="precomputed", tol=1e-4).fit(p.gram.matrix, y)
    theirs = np.zeros(600)
    theirs[peer.support_] = np.abs(peer.dual_coef_[0])
    assert_optimal(p, result, tol=1e-4, best=kp.dual(p, theirs))
    assert result.intercept == pytest.approx(peer.intercept_[0], abs=1e-3)
    assert sizes[0] == 30
    assert max(sizes) > 60
    free = np.count_nonzero((result.alpha > 0.0) & (result.alpha < 2.0))
    assert sizes[-1] >= min(600, free / (1.0 - module.NEWCOMERS))


def test_costs_of_zero_and_a_single_class_leave_nothing_to_do():
    X, y = kp.noisy(40)
    for p in (kp.problem(X, y, cost=np.where(y > 0, 0.0, 1.0)), kp.problem(X, np.ones(40, np.int8))):
        result = double_chunking(p, KernelSettings())
        assert result.reason is Reason.CONVERGED
        assert not result.alpha.any()


def test_a_kernel_that_is_none_ends_all_the_same():
    X, y = kp.noisy(120)
    p = kp.problem(X, y, cost=10.0, matrix=np.tanh(X @ X.T - 1.0))
    result = double_chunking(p, KernelSettings(max_time=20.0), large=40)
    assert result.reason in (Reason.CONVERGED, Reason.PRECISION)
    kp.assert_feasible(p, result.alpha)


def test_a_warm_start_at_the_optimum_takes_no_chunk_and_one_nearby_few():
    p = kp.problem(*kp.noisy(300), cost=1.0)
    cold = double_chunking(p, KernelSettings(tol=1e-4), large=60)
    again = double_chunking(p, KernelSettings(), cold.alpha)
    assert again.steps == 0
    assert_optimal(p, again)
    wider = kp.problem(*kp.noisy(300), cost=1.1)
    near = double_chunking(wider, KernelSettings(tol=1e-4), cold.alpha, large=60)
    assert_optimal(wider, near, tol=1e-4)
    assert near.steps < double_chunking(wider, KernelSettings(tol=1e-4), large=60).steps


def test_an_alpha_that_is_not_feasible_is_no_start_but_no_trouble():
    p = kp.problem(*kp.noisy(100), cost=1.0)
    assert_optimal(p, double_chunking(p, KernelSettings(), np.linspace(-1.0, 3.0, 100), large=20))


@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("make", [kp.noisy, kp.blobs])
def test_when_it_is_stopped_alpha_is_feasible_and_its_numbers_are_true(make, steps, definite):
    p = kp.problem(*make(300), cost=10.0)
    p.gram.definite = definite
    result = double_chunking(p, KernelSettings(max_steps=steps), large=20)
    assert result.reason is Reason.MAX_PASSES
    assert result.steps == steps
    kp.assert_feasible(p, result.alpha)
    assert result.dual == pytest.approx(kp.dual(p, result.alpha), rel=1e-6, abs=1e-9)
    assert result.primal == pytest.approx(kp.primal(p, result.alpha, result.intercept), rel=1e-6)
    assert result.violation == pytest.approx(kp.violation(p, result.alpha), rel=1e-5)


def test_a_proof_leaves_out_examples_beyond_doubt_where_the_kernel_is_an_inner_product():
    X, y = kp.blobs(1000, shift=2.5)
    taken = {}
    for definite in (False, True):
        p = kp.problem(X, y)
        p.gram.definite = definite
        result = double_chunking(p, KernelSettings(), large=100)
        assert_optimal(p, result, best=result.dual)
        assert result.primal == pytest.approx(kp.primal(p, result.alpha, result.intercept), rel=1e-6)
        taken[definite] = result.counts["values"]
    assert taken[False] - taken[True] > 0.4 * 1000 * np.count_nonzero(result.alpha)


def test_ctrl_c_and_the_clock_keep_what_there_is():
    p = kp.problem(*kp.noisy(300), cost=10.0)

    def interrupt(progress):
        if progress.steps == 3:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = double_chunking(p, KernelSettings(on_progress=interrupt), large=20)
    assert stopped.reason is Reason.INTERRUPTED
    late = double_chunking(p, KernelSettings(max_time=0.0), large=20)
    assert late.reason is Reason.MAX_TIME
    for result in (stopped, late):
        kp.assert_feasible(p, result.alpha)
        assert result.dual == pytest.approx(kp.dual(p, result.alpha), rel=1e-6, abs=1e-9)
    assert stopped.dual > 0.0


def test_progress_tells_the_true_dual_objective_and_it_never_falls():
    p = kp.problem(*kp.noisy(300), cost=1.0)
    told = []
    result = double_chunking(p, KernelSettings(on_progress=told.append), large=40)
    duals = [progress.dual for progress in told]
    assert len(told) == result.steps == told[-1].steps
    assert duals == sorted(duals)
    assert duals[-1] == pytest.approx(kp.dual(p, result.alpha), rel=1e-5)
    assert told[-1].seen == 300
    assert told[-1].support == np.count_nonzero(result.alpha)


def test_the_same_seed_gives_the_same_answer():
    p = kp.problem(*kp.noisy(200), cost=1.0)
    first, second = (double_chunking(p, KernelSettings(seed=3), large=30) for _ in range(2))
    np.testing.assert_array_equal(first.alpha, second.alpha)


def test_bounds_on_outputs_save_kernel_values(monkeypatch):
    X, y = kp.blobs(1000, shift=4.0)
    p = kp.problem(X, y, cost=1.0)
    result = double_chunking(p, KernelSettings(tol=1e-5), large=100)
    drift = KernelOutputs.drift
    monkeypatch.setattr(
        KernelOutputs, "drift", lambda self: np.where(drift(self) > 0.0, np.inf, 0.0)
    )  # as if all was possible
    without = double_chunking(p, KernelSettings(tol=1e-5), large=100)
    assert result.dual == pytest.approx(without.dual, rel=1e-4)
    assert result.counts["values"] < 0.8 * without.counts["values"]


def test_bounds_on_outputs_hold_and_looks_make_them_exact():
    rng = np.random.default_rng(0)
    X, y = kp.noisy(50)
    p = kp.problem(X, y)
    outputs = KernelOutputs(p.gram, np.zeros(50))
    everyone = np.arange(50)
    for step in range(10):
        rows = outputs.fresh()[:10] if step else everyone[:10]
        signed = outputs.signed[rows] + rng.normal(size=len(rows)) * 0.1**step
        change = np.zeros(50)
        change[rows] = signed - outputs.signed[rows]
        assert outputs.move(rows, signed, outputs.f[rows] + (p.gram.matrix @ change)[rows])
        truth = p.gram.matrix @ outputs.signed
        assert (np.abs(outputs.f - truth) <= outputs.drift() + 1e-9).all()
        looked = rng.choice(50, 15, replace=False)
        outputs.look(looked)
        np.testing.assert_allclose(outputs.f[looked], truth[looked], atol=1e-9)
        assert np.isin(looked, outputs.fresh()).all()
    outputs.prove(everyone)
    np.testing.assert_allclose(outputs.f, truth, atol=1e-12)
    assert not outputs.drift().any()


def test_only_those_are_beyond_doubt_whom_w_cannot_have_come_to():
    rng = np.random.default_rng(0)
    X, y = kp.blobs(80, shift=1.0)
    p, few, everyone = kp.problem(X, y), np.arange(20), np.arange(80)
    certain, lost = 0, 0
    for size in np.repeat([0.01, 0.1, 1.0], 20):
        outputs = KernelOutputs(p.gram, 0.3 * y * rng.uniform(size=80))
        outputs.prove(everyone)
        before = outputs.f.copy()
        signed = outputs.signed.copy()
        signed[few] += size * rng.normal(size=20)
        truth = p.gram.matrix @ signed
        outputs.move(few, signed[few], truth[few])
        beyond = outputs.beyond_doubt(y, 0.1, 1e-3)
        assert not beyond[few].any(), "these were not computed from scratch"
        assert (y * (truth + 0.1) > 1.0)[beyond].all()
        certain += np.count_nonzero(beyond)
        lost += np.count_nonzero((y * (before + 0.1) > 1.001) & (y * (truth + 0.1) <= 1.0))
    assert certain > 100
    assert lost > 100


def test_a_look_costs_no_more_kernel_values_than_alphas_have_changed():
    p = kp.problem(*kp.noisy(100))
    outputs = KernelOutputs(p.gram, np.linspace(-1.0, 1.0, 100))
    outputs.prove(np.arange(100))
    few = np.arange(3)
    outputs.move(few, np.zeros(3), outputs.f[few])
    before = outputs.values
    outputs.look(np.arange(50, 60))
    assert outputs.values - before == 10 * 3


def test_the_matrix_of_a_chunk_is_the_kernel_between_its_examples_wherever_they_came_from():
    rng = np.random.default_rng(0)
    p = kp.problem(*kp.noisy(60))
    chunk = ChunkMatrix(p.gram, 40)
    for size in (10, 40, 3, 25, 39, 39, 2):
        rows = np.sort(rng.choice(60, size, replace=False))
        known, before = len(np.intersect1d(rows, chunk.rows)), chunk.computed
        chunk.become(rows)
        np.testing.assert_array_equal(np.sort(chunk.rows), rows)
        np.testing.assert_array_equal(chunk.values, p.gram.matrix[np.ix_(chunk.rows, chunk.rows)])
        assert chunk.computed - before <= (size - known) * size


@pytest.mark.parametrize("size", [2, 10, 30, 60])
def test_a_chunk_has_the_worst_pair_and_the_free_ones_as_far_as_there_is_room(size):
    rng = np.random.default_rng(size)
    _, y = kp.noisy(60)
    alpha = rng.choice([0.0, 0.5, 1.0], 60)
    f = rng.normal(size=60)
    chosen = next_chunk(f, y, np.ones(60), alpha, size, int(0.6 * size), rng)
    assert len(np.unique(chosen)) == len(chosen) <= size
    g = y - f
    up, low = np.where(y > 0, alpha < 1.0, alpha > 0.0), np.where(y > 0, alpha > 0.0, alpha < 1.0)
    assert np.argmax(np.where(up, g, -np.inf)) in chosen
    assert np.argmin(np.where(low, g, np.inf)) in chosen
    free = np.flatnonzero(alpha == 0.5)
    assert np.isin(free, chosen).sum() >= min(len(free), size - max(2, int(0.6 * size)))


def test_examples_within_the_limits_do_not_violate_the_conditions_with_the_chunk():
    X, y = kp.noisy(200)
    p = kp.problem(X, y)
    rows = np.arange(80)
    part = kp.problem(X[:80], y[:80])
    alpha = np.zeros(200)
    alpha[:80] = double_chunking(part, KernelSettings(tol=1e-3)).alpha
    f = p.gram.matrix @ (alpha * y)
    limits = Limits.of(f[rows], y[rows], p.cost[rows], alpha[rows], 1e-3)
    margin = margins(f, y, p.cost, alpha, *limits)
    assert (margin[:80] >= 0.0).all()
    assert (margin[80:] < 0.0).any()
    for i in range(80, 200):
        both = kp.violation(
            kp.problem(X, y, cost=np.where((np.arange(200) < 80) | (np.arange(200) == i), 1.0, 0.0)), alpha
        )
        assert (both > 1e-3) <= (margin[i] < 0.0) <= (both > 0.5e-3)
