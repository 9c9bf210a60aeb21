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
    report = kernel_svm.report(["noisy"], tiny=True)
    for name in kernel_svm.programs():
        assert f"| {name} |" in report
