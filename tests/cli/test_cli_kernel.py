"""Kernel machines on the command line: what the Python calls do, on files."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from dotadd import KernelSVM, load
from dotadd.cli import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two and three classes as LIBSVM text; sequences as CSV."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    lines = [" ".join(f"{j + 1}:{value:.4f}" for j, value in enumerate(row)) for row in X]
    for name, y in (("two", np.where((X**2).sum(axis=1) > 3, 1, -1)), ("three", X[:, :3].argmax(axis=1))):
        text = "".join(f"{label} {line}\n" for label, line in zip(y, lines, strict=True))
        (tmp_path / f"{name}.svm").write_text(text)
    letters = rng.choice(list("ACGT"), (40, 12))
    letters[::2, 4:7] = list("GCG")
    rows = [f"{'yes' if k % 2 == 0 else 'no'},{''.join(row)}" for k, row in enumerate(letters)]
    (tmp_path / "dna.csv").write_text("label,seq\n" + "\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.parametrize("name", ["two", "three"])
def test_train_predict_and_evaluate_do_what_the_estimator_does(folder, capsys, name):
    command = f"train {name}.svm -o m --kernel rbf --gamma 0.3 -C 5 --memory 50MB --class-weight balanced"
    assert run([*command.split(), "--test", f"{name}.svm"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"kernel +RBF\(gamma=0.3\)", shown)
    assert re.search(r"support vectors: \d+ of ", shown)
    assert "the optimality conditions hold" in shown
    assert "accuracy" in shown
    svm = KernelSVM(gamma=0.3, C=5, class_weight="balanced", memory="50MB", random_state=0).fit(f"{name}.svm")
    assert run(f"predict m {name}.svm".split()) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [float(line[0]) for line in lines] == svm.predict(f"{name}.svm").tolist()
    scores = svm.decision_function(f"{name}.svm").reshape(80, -1)
    assert np.array([line[1:] for line in lines], float) == pytest.approx(scores, rel=1e-6, abs=1e-6)
    assert run(f"evaluate m {name}.svm --log measures".split()) == 0
    assert json.loads((folder / "measures").read_text())["accuracy"] == pytest.approx(svm.score(f"{name}.svm"))


def test_a_feature_map_is_a_kernel_of_strings(folder, capsys):
    arguments = ["train", "dna.csv", "-o", "m", "--column", "seq", "--label", "label", "--quiet"]
    assert run([*arguments, "--kernel", "Spectrum(3)"]) == 0
    assert capsys.readouterr().out == ""
    assert run(["evaluate", "m", "dna.csv", "--column", "seq", "--label", "label", "--log", "measures"]) == 0
    assert json.loads((folder / "measures").read_text())["accuracy"] > 0.9


def test_inspect_tells_of_kernel_and_support_vectors(folder, capsys):
    assert (
        run(
            [
                "train",
                "three.svm",
                "-o",
                "m",
                "--kernel",
                "poly",
                "--degree",
                "2",
                "--coef0",
                "1",
                "--quiet",
                "--solver",
                "smo",
            ]
        )
        == 0
    )
    assert run(["inspect", "m"]) == 0
    shown = capsys.readouterr().out
    assert "PolynomialKernel(degree=2, gamma=" in shown
    assert re.search(r"data +sparse rows of 4 features", shown)
    assert re.search(r"solver +smo", shown)
    counts = load("m").counts.tolist()
    assert ", ".join(f"{count} of {label}" for label, count in enumerate(counts)) in shown
    assert run(["inspect", "m", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["support"] == counts


def test_the_log_has_a_line_now_and_then_and_the_summary(folder):
    assert run(["train", "three.svm", "-o", "m", "--kernel", "rbf", "--quiet", "--log", "log"]) == 0
    *lines, last = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    assert {line["problem"] for line in lines} <= {0, 1, 2}
    assert all({"steps", "dual", "violation", "support", "seconds"} <= set(line) for line in lines)
    assert last["summary"]["kernel"].startswith("RBF(gamma=")
    assert sum(last["summary"]["support"]) == len(load("m").support)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--kernel gauss", "there is no kernel 'gauss'"),
        ("--kernel Spectrum(3)", "reads strings, and the data is sparse rows"),
        ("--kernel rbf --gamma wide", "--gamma wide: give a number"),
        ("--kernel rbf --gamma -1", "gamma has to be a number above 0"),
        ("--kernel rbf --degree 2", "--degree is for --kernel poly, and not for rbf"),
        ("--kernel linear --coef0 2", "--coef0 is for --kernel poly or sigmoid"),
        ("--gamma 1", "--gamma means nothing without --kernel"),
        ("--kernel rbf --loss logistic", "--loss means nothing with --kernel"),
        (
            "--kernel rbf --features Linear()",
            "--features means nothing with --kernel: write",
        ),
        ("--kernel rbf --intercept none", "--intercept means nothing with --kernel"),
        ("--kernel rbf --max-passes 3", "--max-passes means nothing with --kernel"),
        ("--kernel rbf --resume", "--resume means nothing with --kernel"),
        ("--kernel rbf --checkpoint c", "--checkpoint means nothing with --kernel"),
        ("--kernel rbf --no-keep-cache", "--keep-cache means nothing with --kernel"),
        ("--kernel rbf --solver dcd", "solver is 'dcd', and has to be one of double_chunking, chunking, smo"),
        ("--kernel rbf -C 0", "C is 0"),
        ("--kernel rbf --memory lots", "'lots' is no size of memory"),
    ],
)
def test_what_cannot_act_is_refused_in_one_line(folder, capsys, arguments, words):
    assert run(["train", "two.svm", "-o", "m", *arguments.split()]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert words in told
    assert not (folder / "m").exists()


def test_inspect_refuses_what_is_for_weights(folder, capsys):
    assert run(["train", "two.svm", "-o", "m", "--kernel", "rbf", "--quiet"]) == 0
    assert run(["inspect", "m", "--data", "two.svm"]) == 2
    assert "a kernel machine has no weights" in capsys.readouterr().err


def test_ctrl_c_saves_the_model_so_far(folder):
    rng = np.random.default_rng(0)  # labels that mean nothing, and no mistake allowed
    table = np.column_stack([rng.integers(0, 2, 4000), rng.normal(size=(4000, 5))])
    np.savetxt("hard.csv", table, fmt="%.3f", delimiter=",", header="label,a,b,c,d,e", comments="")
    arguments = "train hard.csv -o m --label label --kernel rbf -C 1e6 --tol 1e-9 --solver smo"
    command = [sys.executable, "-m", "dotadd", *arguments.split()]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        said = ""
        while not re.search(r"steps [1-9].*violation .*support vectors [1-9]", said):
            said += process.stderr.readline()
        os.kill(process.pid, signal.SIGINT)
        out, rest = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "the model so far is saved in m" in rest
    assert "training was interrupted" in out
    assert len(load("m").support) > 0
