"""The benchmarks run, on tiny data, so that they cannot rot; and what they judge by is right."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import datasets, forms, memory, reading, solvers, startup  # noqa: E402
from dotadd import LinearSVM  # noqa: E402


@pytest.mark.parametrize("name", ["a9a", "sector"])
def test_the_objective_of_the_benchmark_is_the_sum_of_the_primals(name):
    X, y = datasets.load(name, tiny=True)
    svm = LinearSVM(tol=1e-3, random_state=0).fit(X, y)
    results = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    primal = sum(result.primal for result in results)
    assert solvers.objective(X, y, (svm.coef_, svm.intercept_)) == pytest.approx(primal, rel=1e-5)


def test_every_program_reaches_the_same_objective():
    for name, times in solvers.measure(["synthetic", "sector"], tiny=True, repeat=1):
        for program, timed in times.items():
            assert timed is not None, f"{program} does not get there on {name}"
            assert -1e-3 <= timed.excess <= solvers.WITHIN


def test_the_benchmark_of_forms_runs():
    rows = [row.split("|") for row in forms.report(tiny=True).splitlines() if row.startswith("| ")]
    measured = [row for row in rows if row[1].strip() != "form" and row[7].strip()]
    assert len(measured) == 2 * len(forms.FORMS) - 1, "all but a dense w of degree 20"
    assert all(float(row[7]) > 0 and float(row[8]) > 0 for row in measured)


def test_the_reading_benchmark_runs():
    assert "| scikit-learn |" in reading.report(tiny=True, repeat=1)


def test_the_startup_benchmark_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = startup.report(tiny=True).splitlines()[2:]
    assert len(rows) == 5
    assert all(np.isfinite(float(row.split("|")[2])) for row in rows)


def test_the_memory_benchmark_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    grown = {row.split("|")[1].strip(): row for row in memory.report(tiny=True).splitlines()[2:]}
    assert set(grown) == {"dotadd", "scikit-learn"}


def test_the_peak_of_memory_is_seen():
    before = memory.peak()
    held = np.ones(50_000_000)
    assert memory.peak() - before > 0.9 * held.nbytes
