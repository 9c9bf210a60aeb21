"""SMO on a chunk and with a row cache: the optimum, feasible whenever it stops, and the cache within its bytes."""

import kernel_problems as kp
import numpy as np
import pytest

from dotadd.kernel_svm import problem as problem_module
from dotadd.kernel_svm import smo as smo_module
from dotadd.kernel_svm.cache import FEWEST, RowCache
from dotadd.kernel_svm.problem import KernelSettings
from dotadd.kernel_svm.smo import smo
from dotadd.kernel_svm.smo_steps import solve_chunk
from dotadd.solvers.result import Reason

PROBLEMS = [kp.blobs, kp.noisy, kp.duplicated, kp.rare]


def on_chunk(p, tol, alpha=None, max_steps=10**6):
    """alpha, steps and f of the whole problem taken as a chunk."""
    alpha = np.zeros(len(p)) if alpha is None else alpha.copy()
    f = p.gram.matrix @ (alpha * p.sign)
    steps = solve_chunk(p.gram.matrix.astype(np.float32), p.sign, p.cost, alpha, f, tol, max_steps)
    return alpha, steps, f


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("different", [False, True])
def test_chunk_and_cache_reach_the_optimum_of_a_qp_solver(make, C, different):
    X, y = make(60)
    p = kp.problem(X, y, cost=kp.several_costs(60, C=C) if different else C)
    best = kp.best_dual(p)
    result = smo(p, KernelSettings(tol=1e-6, memory=60 * 4 * 20))
    assert result.reason is Reason.CONVERGED
    for alpha in (on_chunk(p, 1e-6)[0], result.alpha):
        kp.assert_feasible(p, alpha)
        assert kp.violation(p, alpha) <= 1.001e-6
        assert kp.dual(p, alpha) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_agrees_with_libsvm(C):
    svm = pytest.importorskip("sklearn.svm")
    X, y = kp.noisy(200, d=5)
    p = kp.problem(X, y, cost=C)
    result = smo(p, KernelSettings(tol=1e-4))
    peer = svm.SVC(C=C, kernel="precomputed", tol=1e-4).fit(p.gram.matrix, y)
    theirs = np.zeros(200)
    theirs[peer.support_] = np.abs(peer.dual_coef_[0])
    assert result.dual == pytest.approx(kp.dual(p, theirs), rel=1e-4)
    np.testing.assert_array_equal(np.flatnonzero(result.alpha), np.sort(peer.support_))
    assert result.intercept == pytest.approx(peer.intercept_[0], abs=1e-3)


def test_results_are_what_their_definitions_say():
    X, y = kp.noisy(100)
    p = kp.problem(X, y, cost=kp.several_costs(100))
    result = smo(p, KernelSettings(tol=1e-2))
    f = p.gram.matrix @ (result.alpha * y)
    losses = p.cost @ np.maximum(0.0, 1.0 - y * (f + result.intercept))
    assert result.primal == pytest.approx(0.5 * (result.alpha * y) @ f + losses)
    assert result.dual == pytest.approx(kp.dual(p, result.alpha))
    assert result.violation == pytest.approx(kp.violation(p, result.alpha), abs=1e-12)
    assert 0.0 <= result.gap < 0.05
    assert not result.alpha[p.cost == 0.0].any()


def test_a_chunk_moves_within_what_the_others_leave():
    X, y = kp.noisy(80)
    p = kp.problem(X, y)
    alpha, _, f = on_chunk(p, 0.3)
    before, chunk = kp.dual(p, alpha), np.arange(10, 50)
    part, f_part = alpha[chunk], f[chunk]
    solve_chunk(p.gram.block(chunk, chunk), y[chunk], p.cost[chunk], part, f_part, 1e-6, 10**6)
    assert part @ y[chunk] == pytest.approx(alpha[chunk] @ y[chunk], abs=1e-12)
    alpha[chunk] = part
    f = p.gram.matrix @ (alpha * y)
    np.testing.assert_allclose(f_part, f[chunk], atol=1e-12)
    assert kp.dual(p, alpha) > before
    assert smo_violation(f[chunk], y[chunk], p.cost[chunk], part) <= 1.001e-6


def smo_violation(f, sign, cost, alpha):
    g = sign - f
    up = np.where(sign > 0, alpha < cost, alpha > 0.0)
    low = np.where(sign > 0, alpha > 0.0, alpha < cost)
    return g[up].max() - g[low].min()


def hard():
    """Thousands of steps, and most examples are no support vectors: they are left out on the way."""
    X, y = kp.noisy(400, d=2, noise=0.2)
    return kp.problem(X, y, cost=1e3, gamma=0.2)


def test_leaving_examples_out_does_not_change_the_optimum():
    p = hard()
    tol = 1e-4
    alpha, steps, f = on_chunk(p, tol)
    result = smo(p, KernelSettings(tol=tol, memory=20 * 400 * 4))
    assert steps > 2000
    assert any(columns < 400 for _, columns in p.gram.blocks)
    np.testing.assert_allclose(f, p.gram.matrix @ (alpha * p.sign), atol=1e-9 * alpha.sum())
    for one in (alpha, result.alpha):
        kp.assert_feasible(p, one)
        assert kp.violation(p, one) <= 1.001 * tol
    assert kp.dual(p, alpha) == pytest.approx(result.dual, rel=1e-5)


def test_in_pieces_a_chunk_comes_to_the_same_end():
    p = hard()
    alpha, taken = np.zeros(400), 0
    for _ in range(1000):
        alpha, steps, _ = on_chunk(p, 1e-2, alpha, max_steps=300)
        assert steps <= 300
        kp.assert_feasible(p, alpha)
        taken += steps
        if steps < 300:
            break
    assert taken > 300
    assert kp.violation(p, alpha) <= 1.001e-2


@pytest.mark.parametrize("tol", [1e-9, 0.0])
def test_a_tolerance_below_rounding_ends(tol):
    X, y = kp.noisy(60)
    p = kp.problem(X, y, cost=1e6)
    alpha, *_ = on_chunk(p, tol)
    result = smo(p, KernelSettings(tol=tol, max_steps=10**6))
    for one in (alpha, result.alpha):
        kp.assert_feasible(p, one)
        assert kp.violation(p, one) <= 1e-6


def test_an_indefinite_kernel_ends_at_a_stationary_point():
    X, y = kp.noisy(80)
    matrix = np.tanh(X @ X.T - 1.0).astype(np.float32)
    assert np.linalg.eigvalsh(matrix)[0] < -0.1
    p = kp.problem(X, y, matrix=matrix)
    result = smo(p, KernelSettings(tol=1e-3, max_steps=10**5))
    assert result.reason is Reason.CONVERGED
    assert result.dual > 0.0
    assert kp.violation(p, on_chunk(p, 1e-3)[0]) <= 1.001e-3


def test_nothing_moves_where_nothing_can():
    X, y = kp.noisy(20)
    for cost, sign in ((1.0, np.ones(20, np.int8)), (1.0, -np.ones(20, np.int8)), (0.0, y)):
        p = kp.problem(X, sign, cost=cost)
        result = smo(p, KernelSettings())
        assert result.reason is Reason.CONVERGED
        assert not result.alpha.any()
        assert result.violation == 0.0
        assert on_chunk(p, 1e-3)[1] == 0
    assert smo(kp.problem(X[:1], y[:1]), KernelSettings()).intercept == y[0]


def test_kernel_values_that_are_not_numbers_end_it():
    X, y = kp.noisy(20)
    matrix = kp.rbf(X, 0.5)
    matrix[3] = matrix[:, 3] = np.nan
    on_chunk(kp.problem(X, y, matrix=matrix), 1e-3)


def test_interrupts_and_limits_leave_a_feasible_alpha(monkeypatch):
    monkeypatch.setattr(problem_module, "SAY_EVERY", 0.0)
    monkeypatch.setattr(smo_module, "WORK", 400)  # the clock is looked at after each step
    p, told = hard(), []

    def interrupt(progress):
        told.append(progress)
        if progress.steps >= 700:
            raise KeyboardInterrupt

    cut = smo(p, KernelSettings(on_progress=interrupt))
    short = smo(p, KernelSettings(max_steps=700))
    late = smo(p, KernelSettings(max_time=0.0))
    assert (cut.reason, short.reason, late.reason) == (Reason.INTERRUPTED, Reason.MAX_PASSES, Reason.MAX_TIME)
    assert cut.steps == short.steps == 700
    for result in (cut, short, late):
        kp.assert_feasible(p, result.alpha)
        assert result.violation == pytest.approx(kp.violation(p, result.alpha), rel=1e-6)
        assert result.dual == pytest.approx(kp.dual(p, result.alpha))
    assert cut.trace == told
    assert told[-1].dual == pytest.approx(cut.dual, rel=1e-6)
    assert told[-1].support == np.count_nonzero(cut.alpha)
    assert (np.diff([progress.dual for progress in told]) >= 0.0).all()


def test_a_warm_start_takes_fewer_steps():
    p = hard()
    settings = KernelSettings(tol=1e-3)
    cold = smo(p, settings)
    assert smo(p, settings, cold.alpha).steps == 0
    more = kp.problem(None, p.sign, cost=p.cost * 1.1, matrix=p.gram.matrix)
    warm = smo(more, settings, cold.alpha)
    fresh = smo(more, settings)
    assert warm.steps < 0.7 * fresh.steps
    assert warm.dual == pytest.approx(fresh.dual, rel=1e-4)


def test_a_start_beyond_the_bounds_is_made_feasible():
    X, y = kp.noisy(60)
    p = kp.problem(X, y)
    result = smo(p, KernelSettings(max_steps=0), np.linspace(-1.0, 3.0, 60))
    kp.assert_feasible(p, result.alpha)
    assert result.alpha.any()
    assert result.violation == pytest.approx(kp.violation(p, result.alpha))


@pytest.mark.parametrize("rows", [0, 7, 40, 1000])
def test_the_answer_does_not_depend_on_the_memory_and_memory_stays_within_its_budget(rows):
    p = hard()
    nbytes = rows * 400 * 4
    result = smo(p, KernelSettings(tol=1e-3, memory=nbytes))
    assert result.reason is Reason.CONVERGED
    assert kp.violation(p, result.alpha) <= 1e-3
    assert result.dual == pytest.approx(smo(hard(), KernelSettings(tol=1e-3)).dual, rel=1e-4)
    cache = RowCache(p.gram, np.arange(400), nbytes)
    p.gram.blocks.clear()
    rng = np.random.default_rng(0)
    for _ in range(30):
        cache.fetch(int(rng.choice(np.flatnonzero(cache.place < 0))), rng.permutation(len(cache.examples)))
        cache.change(np.flatnonzero(rng.random(400) < 0.6))
    largest = max(height * width for height, width in p.gram.blocks)
    assert 4 * (cache.rows.base.size + largest) <= max(nbytes, FEWEST * 400 * 4)


def test_the_cache_returns_the_rows_of_the_gram_whatever_happens_to_it():
    rng = np.random.default_rng(3)
    gram = kp.MatrixGram(rng.normal(size=(50, 50)))
    cache = RowCache(gram, np.arange(50), 20 * 50 * 4)
    clock = 0
    for turn in range(300):
        missing = np.flatnonzero(cache.place < 0)
        if len(missing) and turn % 10 != 9:
            wanted, latest = int(rng.choice(missing)), int(np.argmax(cache.last_use))
            holder = cache.owner[latest]
            cache.fetch(wanted, rng.permutation(len(cache.examples))[:8])
            assert cache.place[wanted] >= 0
            if holder >= 0:
                assert cache.owner[latest] == holder  # the row used last stays
            clock += 1
            cache.last_use[cache.place[wanted]] = clock
        else:
            before = set(cache.examples[cache.owner[cache.owner >= 0]])
            cache.change(np.flatnonzero(rng.random(50) < rng.choice([0.3, 0.6, 1.0])))
            after = set(cache.examples[cache.owner[cache.owner >= 0]])
            assert after <= before
            assert len(after) == min(len(before & set(cache.examples)), len(cache.owner))
        here = np.flatnonzero(cache.place >= 0)
        np.testing.assert_array_equal(np.sort(cache.owner[cache.owner >= 0]), here)
        rows = cache.rows[cache.place[here]]
        np.testing.assert_array_equal(rows, gram.block(cache.examples[here], cache.examples))


def test_rows_are_computed_once_where_all_fit_and_several_at_a_time():
    X, y = kp.noisy(300)
    p = kp.problem(X, y)
    result = smo(p, KernelSettings(memory=10**6))
    assert result.counts["rows"] <= 300
    assert result.counts["misses"] < result.counts["rows"] / 4
    assert result.counts["hits"] == 2 * result.steps
