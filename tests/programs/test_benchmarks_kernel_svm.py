"""The benchmark of kernel SVMs runs, on tiny data, and what it judges by is right."""

import sys
from pathlib import Path

import kernel_problems as kp
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import kernel_svm


def test_every_program_reaches_the_same_dual_objective():
    task = kernel_svm.noisy(200, 10)
    found = kernel_svm.measure(task, repeat=1)
    assert {"double_chunking", "chunking", "smo", "scikit-learn SVC"} <= set(found)
    best = kp.best_dual(kp.problem(task.X.astype(np.float64), task.y.astype(np.int8), task.C, task.gamma))
    for answer, dual in found.values():
        assert dual == pytest.approx(best, rel=1e-4)
        assert abs(answer.signed.sum()) < 1e-4
        assert answer.seconds > 0.0


def test_the_report_has_a_row_for_every_program():
    report = kernel_svm.report(["noisy", "digits"], tiny=True)
    for name in [*kernel_svm.programs(), *kernel_svm.machines(kernel_svm.few_classes())]:
        assert f"| {name} |" in report


def test_every_machine_reaches_the_same_sum_of_dual_objectives():
    task = kernel_svm.few_classes()
    found = kernel_svm.measure_classes(task, repeat=1)
    assert "scikit-learn SVC" in found
    matrix, best = kp.rbf(task.X.astype(np.float64), task.gamma), 0.0
    for i, j in kernel_svm.pairs(4):
        rows = np.flatnonzero((task.y == i) | (task.y == j))
        sign = np.where(task.y[rows] == i, 1, -1).astype(np.int8)
        best += kp.best_dual(kp.problem(None, sign, task.C, matrix=matrix[np.ix_(rows, rows)]))
    for seconds, dual, support in found.values():
        assert dual == pytest.approx(best, rel=1e-4)
        assert 0 < support <= 200
        assert seconds > 0.0


def test_small_images_are_means_of_large_ones(monkeypatch):
    images = np.random.default_rng(0).random((3, 784)).astype(np.float32)
    monkeypatch.setattr(kernel_svm, "digits", lambda path, rows: (images[:rows], np.arange(3)[:rows]))
    small = kernel_svm.usps(3).X.reshape(3, 16, 16)
    fine = np.repeat(np.repeat(images.reshape(3, 28, 28), 4, axis=1), 4, axis=2)  # 112 = 16 * 7
    np.testing.assert_allclose(small, fine.reshape(3, 16, 7, 16, 7).mean(axis=(2, 4)), atol=1e-6)
