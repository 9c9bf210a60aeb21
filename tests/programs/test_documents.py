"""What README and CONTRIBUTING show works, and so do the examples."""

import csv
import doctest
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

import dotadd.estimators.linear

ROOT = Path(__file__).parents[2]


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


def splice_sites(told, made):
    """The areas told are those of the scores, and far from chance and from nonsense."""
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", told)]
    windows, slots, passes, gap, auroc, auprc, others = numbers
    truth, scores, result = made["y_test"], made["scores"], made["result"]
    assert (windows, others, slots) == (len(made["train"]), len(scores), made["svm"].coef_.size)
    assert passes == result.passes >= 1
    assert gap == pytest.approx(result.gap, abs=1e-4)
    assert gap <= made["svm"].tol
    assert auroc == pytest.approx(sklearn_metrics.roc_auc_score(truth == 1, scores), abs=6e-4)
    assert auprc == pytest.approx(sklearn_metrics.average_precision_score(truth == 1, scores), abs=6e-4)
    assert 0.8 < auroc < 1
    assert 5 * np.mean(truth == 1) < auprc < 1


def own_feature_map(told, made):
    """Strings that go round as those it was trained on do."""
    assert re.findall(r"\w+", told) == ["forward", "back"]
    assert [made["svm"].predict([word])[0] for word in made["words"]] == made["labels"]


def customers(told, made):
    """Predictions of the rows of the file, by another reader of it."""
    with open("customers.csv", newline="", encoding="utf8") as file:
        truth = [row["label"] for row in csv.DictReader(file)]
    right = np.mean(made["svm"].predict("customers.csv") == np.array(truth))
    accuracy, gap = map(float, re.findall(r"[\d.]+(?:e-\d+)?", told))
    assert accuracy == pytest.approx(right, abs=6e-4)
    assert gap == pytest.approx(made["svm"].result_.gap, rel=0.1)
    assert right > 0.8


CHECKED = {check.__name__: check for check in (splice_sites, own_feature_map, customers)}


@pytest.mark.parametrize("example", sorted(path.stem for path in (ROOT / "examples").glob("*.py")))
def test_examples_print_what_is_true(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [example, "2000"])
    made = runpy.run_path(str(ROOT / "examples" / f"{example}.py"), run_name="__main__")
    CHECKED[example](capsys.readouterr().out, made)


def test_doctests_hold():
    assert doctest.testmod(dotadd.estimators.linear).failed == 0
