"""What README, CONTRIBUTING and the pages of docs show works, and so do the examples."""

import csv
import doctest
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cyclopts import MissingArgumentError
from sklearn import metrics as sklearn_metrics

import dotadd.estimators.linear
from dotadd import parse
from dotadd._util.standard_input import as_device
from dotadd.cli import app
from dotadd.kernel_svm.expression import parse as parse_kernel

ROOT = Path(__file__).parents[2]
TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}
PYTHON = r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?"
WITH_PYTHON = sorted(page for page, text in TEXTS.items() if "```python" in text)
WITH_COMMANDS = sorted(page for page, text in TEXTS.items() if "dotadd " in text and page != "CHANGELOG.md")
FOLDERS = sorted({str(Path(page).parent) for page in WITH_PYTHON})
END = "--- the end of a block ---"
# All blocks of a folder in one process, since starting takes longer than most of them; each has its own names, and each
# page a folder to write to.
RUN = f"""
import json, os, sys
for place, code in json.load(sys.stdin):
    os.makedirs(place, exist_ok=True)
    os.chdir(place)
    print(place, file=sys.stderr)
    exec(compile(code, "<block>", "exec"), {{"__name__": "__main__"}})
    print({END!r}, flush=True)
"""


@pytest.mark.parametrize("folder", FOLDERS)
def test_python_in_the_pages_runs_and_prints_what_they_show(folder, tmp_path):
    found = []
    for page in WITH_PYTHON:
        if str(Path(page).parent) == folder:
            found += [(page, *block) for block in re.findall(PYTHON, TEXTS[page], flags=re.DOTALL)]
    assert {page for page, _, _ in found} == {page for page in WITH_PYTHON if str(Path(page).parent) == folder}
    codes = json.dumps([(str(tmp_path / Path(page).stem), code) for page, code, _ in found])
    run = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, env=os.environ, input=codes)
    assert run.returncode == 0, run.stderr
    *printed, rest = run.stdout.split(END + "\n")
    assert (len(printed), rest) == (len(found), "")
    for (page, _, shown), out in zip(found, printed, strict=True):
        assert not shown or out == shown, page


def commands_shown(text):
    """What stands behind a prompt, with the lines on which it goes on, and all lines of blocks of shell."""
    for kind, block in re.findall(r"```(console|bash|sh)\n(.*?)```", text, flags=re.DOTALL):
        waiting = ""
        for line in block.splitlines():
            begins = kind != "console" or line.startswith("$ ")
            if not (waiting or begins):
                continue
            waiting += line if waiting or kind != "console" else line.removeprefix("$ ")
            if waiting.endswith("\\"):
                waiting = waiting[:-1]
            elif waiting.count('"') % 2 == 0:
                yield waiting
                waiting = ""
        assert not waiting


def commands_named(text):
    """What stands in backquotes within a sentence or a cell of a table."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        yield " ".join(code.replace("\\|", "|").split())


def calls(command):
    """The arguments of each dotadd in a line of shell, which may have variables before it and pipes around it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    call = []
    for token in [*lexer, ";"]:
        if set(token) <= set("();<>|&"):
            while call and re.fullmatch(r"[A-Z_]+=.*", call[0]):
                call.pop(0)
            if call[:1] == ["dotadd"]:
                yield call[1:]
            call = []
        else:
            call.append(token)


def understood(arguments):
    """The command takes these arguments, and the maps and kernels in them are such."""
    _, bound, _ = app.parse_args(as_device(arguments), exit_on_error=False, print_error=False)
    given = bound.arguments
    solving, machine = given.get("solving"), given.get("kernel")
    features = given.get("features") or [getattr(solving, "features", None)]
    for expression in filter(None, features):
        parse(expression)
    if machine is not None and "(" in (machine.kernel or ""):
        parse_kernel(machine.kernel)


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_in_the_pages_are_understood(page):
    """Those of blocks as they stand; in a sentence a command may be named without all that it needs."""
    for command in commands_shown(TEXTS[page]):
        for arguments in calls(command):
            understood(arguments)
    for command in commands_named(TEXTS[page]):
        if re.search(r"\bdotadd [a-z]", command):
            for arguments in calls(command):
                try:
                    understood(arguments)
                except MissingArgumentError:
                    continue


def test_a_command_that_is_wrong_is_found():
    block = '$ cat x | DOTADD_DEBUG=1 dotadd train a -o "b \nc" --oops 3\nrows 3'
    text = f"```console\n{block}\n```\n`dotadd tune --none 1`"
    (shown,) = commands_shown(text)
    assert list(calls(shown)) == [["train", "a", "-o", "b c", "--oops", "3"]]
    assert list(commands_named(text)) == ["dotadd tune --none 1"]
    for command in [*commands_shown(text), *commands_named(text)]:
        for arguments in calls(command):
            with pytest.raises(Exception, match=r"--oops|--none"):
                understood(arguments)


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


def spam(told, made):
    """Predictions of the rows of the file, by another reader of it; and the words are those of their kind."""
    with open("mails.csv", newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    right = np.mean(made["model"].predict("mails.csv") == np.array([row["label"] for row in rows]))
    first, *new = told.splitlines()
    assert f"{len(rows):,} mails, right on {right:.1%}" in first
    assert right > 0.85
    for label, line in zip(("spam", "ham"), new, strict=True):
        assert line.startswith(f"{label}: ")
        assert re.search("'(.*)'", line)[1].split()[0] in made["START"][label]


def peaks_and_variants(told, made):
    """Marked letters are those of the motif, and only a change within it does harm."""
    first, window, marks, within, outside = told.splitlines()
    assert made["svm"].score(made["test"]) > 0.95
    assert f"right on {made['svm'].score(made['test']):.1%}" in first
    motif = range(window.index(made["MOTIF"]), window.index(made["MOTIF"]) + len(made["MOTIF"]))
    marked = [at for at, mark in enumerate(marks) if mark == "^"]
    assert len(marked) > 5
    assert sum(at in motif for at in marked) >= 0.8 * len(marked)
    inside, elsewhere = (float(line.split()[-1]) for line in (within, outside))
    assert inside < -0.3 < -0.2 < elsewhere < 0.2


def larger_than_memory(told, made):
    """Both answers are within their gaps of the optimum, and were found as they say."""
    small, whole = made["small"].result_, made["whole"].result_
    assert (small.solver, whole.solver) == ("stream", "dcd")
    best = max(small.dual, whole.dual)
    for found in (small, whole):
        assert f"objective {found.primal:.2f}, gap {found.gap:.4f}" in told
        assert best <= found.primal * (1 + 1e-9)
        assert found.primal * (1 - 0.01) <= min(small.primal, whole.primal)
    assert float(told.rstrip("%\n").rsplit(maxsplit=1)[-1]) > 95
    assert sorted(path.name for path in Path().iterdir()) == ["rows.csv"]  # the copy is gone


def kernels(told, made):
    """A line is little better than a coin, and kernels are right; strings with like pairs of letters go together."""
    line, rbf, own = (float(re.search(r"([\d.]+)%", text)[1]) for text in told.splitlines()[:3])
    X, y = made["X"][made["test"]], made["y"][made["test"]]
    for name, percent in (("a line", line), ("RBF", rbf), ("a kernel of one's own", own)):
        assert percent == pytest.approx(100 * np.mean(made["machines"][name].predict(X) == y), abs=0.06)
    assert line < 70 < 90 < min(rbf, own)
    assert "{'havana': 'a', 'kittens': 'e'}" in told


def lattices(told, made):
    """Labels of the file, by another reader of it; and pairs counted by hand."""
    labels = [line.split("\t")[0] for line in Path("heard.sausage").read_text().splitlines()]
    right = np.mean(made["svm"].predict("heard.sausage") == np.array(labels))
    assert f"right on {right:.1%} of {len(labels)}" in told
    assert right > 0.9
    assert "b a occurs 1.5 times, a a 1.0 times" in told


def choose_c(told, made):
    """C is the best of those told, precision and recall are as scikit-learn has them, and probabilities are of use."""
    scores = {float(C): float(score) for C, score in re.findall(r"C = (\S+): average precision (\S+)", told)}
    chosen = float(re.search(r"C = (\S+):.*chosen", told)[1])
    assert scores[chosen] == max(scores.values())
    found, truth = made["svm"].predict(made["others"]), made["truth"]
    precision = sklearn_metrics.precision_score(truth, found)
    assert f"precision {precision:.2f}" in told
    assert f"recall {sklearn_metrics.recall_score(truth, found):.2f}" in told
    assert precision > 0.7
    shares = [float(share) for share in re.findall(r": ([\d.]+) of them are sites", told)]
    assert shares[0] < 0.1 < shares[1] < 0.5 < shares[2]


CHECKS = (
    splice_sites, own_feature_map, customers, spam, peaks_and_variants, larger_than_memory, kernels, lattices, choose_c,
)  # fmt: skip
CHECKED = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize("example", sorted(path.stem for path in (ROOT / "examples").glob("*.py")))
def test_examples_print_what_is_true(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [example, "2000"])
    made = runpy.run_path(str(ROOT / "examples" / f"{example}.py"), run_name="__main__")
    CHECKED[example](capsys.readouterr().out, made)


def test_the_gallery_shows_every_example_once_and_they_are_short():
    page = (ROOT / "docs" / "examples.md").read_text()
    names = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
    assert sorted(re.findall(r"^--8<-- \"examples/(.*)\"$", page, re.MULTILINE)) == names
    for name in names:
        text = (ROOT / "examples" / name).read_text()
        assert len(text.splitlines()) <= 42, name
        assert f"\npython examples/{name}" in text
        assert f"## {name.removesuffix('.py')}" not in page  # headings are for people


def test_doctests_hold():
    assert doctest.testmod(dotadd).failed == doctest.testmod(dotadd.estimators.linear).failed == 0
    assert all(re.search(rf"\b{name}\b", dotadd.__doc__) for name in dotadd.__all__ if name != "__version__")
