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


CHECKED = {check.__name__: check for check in (splice_sites, own_feature_map, customers)}


@pytest.mark.parametrize("example", sorted(path.stem for path in (ROOT / "examples").glob("*.py")))
def test_examples_print_what_is_true(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [example, "2000"])
    made = runpy.run_path(str(ROOT / "examples" / f"{example}.py"), run_name="__main__")
    CHECKED[example](capsys.readouterr().out, made)


def test_doctests_hold():
    assert doctest.testmod(dotadd.estimators.linear).failed == 0
