"""Two trees side by side: every case trains, and a tree is measured in a process of its own."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import trees  # noqa: E402


@pytest.fixture(autouse=True)
def made_up_data(monkeypatch, tmp_path):
    monkeypatch.setattr(trees, "FOLDER", tmp_path)


@pytest.mark.parametrize("case", trees.CASES)
def test_every_case_trains(case):
    assert trees.seconds(case, 400) > 0


def test_the_package_of_the_tree_is_what_runs(tmp_path, monkeypatch):
    package = tmp_path / "src" / "dotadd"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "class KernelSVM:\n    pass\nclass LinearSVM:\n    def __init__(self, **_): pass\n"
        "    def fit(self, X, y):\n        import time; time.sleep(0.05)\n"
    )
    monkeypatch.setitem(os.environ, "DOTADD_DATA", str(tmp_path))
    assert 0.05 <= trees.measured(tmp_path, "a9a, dcd", 400) < 5.0
