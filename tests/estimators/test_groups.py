"""Many classes are trained in groups that the memory has room for."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dotadd import LinearSVM


def rows(n=600, classes=9):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    return X, np.argmax(X @ rng.normal(size=(6, classes)) + rng.normal(size=(n, classes)), axis=1)


def test_classes_in_groups_have_the_answers_of_all_at_once():
    X, y = rows()
    options = {"C": 0.1, "tol": 1e-6, "dtype": "float64", "random_state": 0, "solver": "dcd", "max_passes": 3000}
    whole, parts = (LinearSVM(**options, memory=memory).fit(X, y) for memory in ("100MB", "170kB"))
    assert "problems at a time" not in whole.result_[0].why
    assert "of 9 problems at a time" in parts.result_[0].why
    assert all(result.gap <= 1e-6 for result in parts.result_)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-2 * np.abs(whole.coef_).max())
    np.testing.assert_allclose([one.primal for one in parts.result_], [one.primal for one in whole.result_], rtol=1e-5)


PEAK = """
import sys, warnings
import numpy as np
from dotadd import LinearSVM
warnings.simplefilter("ignore")
rows, classes = map(int, sys.argv[1:])
X = np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float32)
svm = LinearSVM(memory="20MB", max_passes=1, solver="dcd", n_jobs=1).fit(X, np.arange(rows) % classes)
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_dual_variables_of_many_classes_are_not_held_together():
    def peak(count, classes):
        command = [sys.executable, "-c", PEAK, str(count), str(classes)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    few, count, classes = peak(1000, 3), 100_000, 150
    assert 8 * count * classes == 120_000_000  # dual variables alone, were they there at once
    assert peak(count, classes) <= few + 60_000_000
