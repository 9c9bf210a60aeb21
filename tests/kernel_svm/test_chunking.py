"""Chunking: the optimum for every working set, and the same by kernel rows and by linadd."""

import os
import signal

import kernel_problems as kp
import numpy as np
import pytest

from dotadd.data.batches import Strings
from dotadd.errors import DotaddError
from dotadd.features.spectrum import Spectrum
from dotadd.kernel_svm.chunking import chunking
from dotadd.kernel_svm.double_chunking import double_chunking
from dotadd.kernel_svm.kernels import FeatureKernel
from dotadd.kernel_svm.problem import KernelProblem, KernelSettings
from dotadd.solvers.result import Reason


class LinaddGram(kp.MatrixGram):
    """A matrix that sums rows up as cheaply as those do that go through w."""

    linadd = True


def linadd_problem(p):
    return KernelProblem(LinaddGram(p.gram.matrix), p.sign, p.cost)


def assert_optimal(p, result, tol=1e-3):
    assert result.reason is Reason.CONVERGED
    kp.assert_feasible(p, result.alpha)
    assert kp.violation(p, result.alpha) <= 1.001 * tol
    assert result.dual == pytest.approx(kp.dual(p, result.alpha), rel=1e-6, abs=1e-9)
    assert result.dual == pytest.approx(kp.best_dual(p), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("make", [kp.blobs, kp.noisy, kp.duplicated, kp.rare])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_it_reaches_the_optimum_of_a_qp_solver(make, C):
    p = kp.problem(*make(80), cost=kp.several_costs(80, C=C))
    assert_optimal(p, chunking(p, KernelSettings(tol=1e-4), q=8), tol=1e-4)
    assert_optimal(p, chunking(linadd_problem(p), KernelSettings(tol=1e-4), q=8), tol=1e-4)


@pytest.mark.parametrize("q", [2, 3, 10, 1000])
def test_the_size_of_the_working_set_does_not_change_the_answer(q):
    p = kp.problem(*kp.noisy(100), cost=1.0)
    assert_optimal(p, chunking(p, KernelSettings(), q=q))


@pytest.mark.parametrize("rows", [4, 20])
def test_it_ends_where_the_cache_holds_fewer_rows_than_the_working_set(rows):
    p = kp.problem(*kp.noisy(100), cost=10.0)
    assert_optimal(p, chunking(p, KernelSettings(memory=4 * (rows * 100 + 40**2)), q=40))


def test_linadd_computes_no_kernel_row():
    p = linadd_problem(kp.problem(*kp.noisy(200), cost=1.0))
    chunking(p, KernelSettings(), q=20)
    assert max(max(shape) for shape in p.gram.blocks) <= 20
    with pytest.raises(DotaddError, match="linadd needs a kernel with a feature map"):
        chunking(kp.problem(*kp.noisy(20)), KernelSettings(), linadd=True)


@pytest.mark.parametrize("solver", [chunking, double_chunking])
def test_strings_by_linadd_and_by_kernel_rows(solver):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(150) % 3 == 0, 1, -1).astype(np.int8)
    letters = rng.choice(list("ACGT"), size=(150, 40))
    letters[y > 0, 10:13] = list("GAT")
    gram = FeatureKernel(Spectrum(3)).gram(Strings.from_list(["".join(row) for row in letters]))
    everyone = np.arange(150)
    matrix = gram.block(everyone, everyone).astype(np.float64)
    plain = KernelProblem(kp.MatrixGram(matrix), y, np.full(150, 0.1))
    through_w = solver(KernelProblem(gram, y, plain.cost), KernelSettings())
    assert_optimal(plain, through_w)
    assert through_w.dual == pytest.approx(solver(plain, KernelSettings()).dual, rel=1e-4)


def test_a_warm_start_at_the_optimum_takes_no_step():
    p = kp.problem(*kp.noisy(100), cost=1.0)
    cold = chunking(p, KernelSettings(tol=1e-4), q=10)
    again = chunking(p, KernelSettings(), cold.alpha)
    assert again.steps == 0
    assert_optimal(p, again)


def test_when_it_is_stopped_alpha_is_feasible_and_its_numbers_are_true():
    p = kp.problem(*kp.noisy(200), cost=10.0)

    def interrupt(progress):
        os.kill(os.getpid(), signal.SIGINT)

    few = chunking(p, KernelSettings(max_steps=3), q=4)
    stopped = chunking(p, KernelSettings(on_progress=interrupt), q=4)
    late = chunking(p, KernelSettings(max_time=0.0), q=4)
    assert [r.reason for r in (few, stopped, late)] == [Reason.MAX_PASSES, Reason.INTERRUPTED, Reason.MAX_TIME]
    for result in (few, stopped, late):
        kp.assert_feasible(p, result.alpha)
        assert result.alpha.any()
        assert result.dual == pytest.approx(kp.dual(p, result.alpha), rel=1e-6)
        assert result.violation == pytest.approx(kp.violation(p, result.alpha), rel=1e-5)


def test_the_dual_objective_on_the_way_never_falls(monkeypatch):
    monkeypatch.setattr("dotadd.kernel_svm.problem.SAY_EVERY", 0.0)
    p = kp.problem(*kp.noisy(200), cost=1.0)
    told = []
    result = chunking(p, KernelSettings(on_progress=told.append), q=10)
    duals = [progress.dual for progress in told]
    assert len(told) > 3
    assert duals == sorted(duals)
    assert duals[-1] == pytest.approx(result.dual, rel=1e-5)
