"""What README and CONTRIBUTING show works, and so do the examples."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dotadd.estimators

ROOT = Path(__file__).parent.parent


def run(arguments, folder):
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=os.environ)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_python_in_the_pages_runs_and_prints_what_they_show(page, tmp_path):
    text = (ROOT / page).read_text()
    found = re.findall(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", text, flags=re.DOTALL)
    assert found
    for code, shown in found:
        out = run(["-c", code], tmp_path)
        assert out.returncode == 0, out.stderr
        if shown:
            assert out.stdout == shown


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_examples_run(example, tmp_path):
    out = run([str(ROOT / "examples" / example), "2000"], tmp_path)
    assert out.returncode == 0, out.stderr
    assert out.stdout


def test_doctests_hold():
    assert doctest.testmod(dotadd.estimators).failed == 0
