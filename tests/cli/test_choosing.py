"""dotadd train -C auto and --cv, and dotadd tune."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dotadd
from dotadd import KernelSVMCV, LinearSVMCV
from dotadd.cli import run

LINES = 160


@pytest.fixture
def mails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with open("mails.csv", "w") as file:
        file.write("label,person,day,text\n")
        for k in range(LINES):
            spam = rng.random() < 0.4
            words = [f"w{w}" for w in rng.integers(0, 40, 8)] + ["offer"] * int(rng.random() < (0.8 if spam else 0.2))
            file.write(f"{'spam' if spam else 'ham'},p{k // 8},2024-01-{k // 8 + 1:02},{' '.join(words)}\n")
    return "mails.csv"


TEXT = ("--column", "text", "--features", "BagOfWords()")


def test_the_table_and_the_model_tell_what_was_chosen(mails, capsys):
    arguments = ["train", mails, *TEXT, "-o", "m.dotadd", "-C", "auto", "--cv", "3", "--Cs", "0.001,0.1,10"]
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "accuracy on rows held out by 3 folds" in out
    model = dotadd.load("m.dotadd")
    chosen = model.training["cross_validation"]
    assert chosen["C"] == [0.001, 0.1, 10.0]
    assert model.training["C"] == chosen["C"][int(np.argmax(chosen["mean"]))]
    marked = next(line for line in out.splitlines() if " * " in line)
    assert float(marked.split()[0]) == model.training["C"]
    svm = LinearSVMCV("BagOfWords()", Cs=[0.001, 0.1, 10.0], cv=3, random_state=0)
    svm.fit(dotadd.open(mails, column="text"))
    np.testing.assert_array_equal(svm.cv_results_["mean_test_score"], chosen["mean"])


def test_probabilities_and_a_threshold_come_with_the_folds(mails, capsys):
    purpose = ["--probability", "sigmoid", "--threshold", "recall=0.9"]
    assert run(["train", mails, *TEXT, "-o", "m.dotadd", "-C", "0.1", "--cv", "4", *purpose]) == 0
    model = dotadd.load("m.dotadd")
    assert model.calibration.method == "sigmoid"
    assert "recall=0.9" in str(model.threshold)
    capsys.readouterr()
    assert run(["predict", "m.dotadd", mails, "--probability", "-o", "p.csv"]) == 0
    assert len(Path("p.csv").read_text().splitlines()) == LINES + 1


@pytest.mark.parametrize("by", [["--group", "person"], ["--time", "day"]])
def test_folds_by_a_column(mails, by, capsys):
    assert run(["train", mails, *TEXT, "-o", "m.dotadd", "-C", "auto", "--Cs", "3", "--cv", "4", *by]) == 0
    assert "4 folds" in capsys.readouterr().out


def test_features_side_by_side_the_best_first(mails, capsys):
    pytest.importorskip("matplotlib")
    features = ["--features", "BagOfWords()", "--features", "NGrams((1, 1))"]
    assert run(["tune", mails, "--column", "text", *features, "--Cs", "4", "--cv", "3", "--plot", "t.svg"]) == 0
    out = capsys.readouterr().out
    means = [float(line.split()[-4]) for line in out.splitlines() if "BagOfWords()" in line or "NGrams" in line]
    assert len(means) == 2
    assert means[0] >= means[1]
    picture = Path("t.svg").read_text()
    assert picture.startswith("<?xml")
    assert "BagOfWords()" in picture


def test_a_table_is_tuned_without_features(mails, capsys):
    assert run(["tune", mails, "--Cs", "2", "--cv", "2"]) == 0
    out, err = capsys.readouterr()
    assert "features: " in err
    assert "WordNGrams" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scoring", "roc_auc"], "--scoring is for folds"),
        (["--threshold", "recall=0.9"], "--threshold is for folds"),
        (["-C", "1", "--cv", "3", "--Cs", "4"], "give -C auto with them"),
        (["-C", "auto", "--Cs", "a,b"], "no list of numbers"),
        (["-C", "auto", "--Cs", "0,1"], "Cs is"),
        (["-C", "auto", "--cv", "1"], "cv is 1"),
        (["-C", "auto", "--cv", "400"], "class (spam|ham) has .*, and 400 folds need 400 or more: give fewer folds"),
        (["-C", "auto", "--Cs=-1,2"], "Cs is"),
        (["-C", "auto", "--Cs", ","], "no list of numbers"),
        (["-C", "auto", "--group", "nobody"], "nobody"),
        (["-C", "auto", "--group", "person", "--time", "day"], "give one of them"),
        (["-C", "auto", "--checkpoint", "c.state"], "keeps no checkpoint"),
        (["-C", "auto", "--scoring", "beauty"], "scoring is 'beauty'"),
        (["-C", "huge"], "not a finite number"),
    ],
)
def test_what_cannot_be_is_one_line(mails, options, message, capsys):
    assert run(["train", mails, *TEXT, "-o", "m.dotadd", *options]) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert re.search(message, err[-1])
    assert not any(path.name.startswith("m.dotadd") for path in Path().iterdir())


def test_the_c_of_a_kernel_machine_is_chosen_as_well(mails, capsys):
    kernel = ["--kernel", "BagOfWords()", "-C", "auto", "--Cs", "0.01,0.1,1", "--cv", "3", "--group", "person"]
    assert run(["train", mails, "--column", "text", *kernel, "-o", "m.dotadd"]) == 0
    out = capsys.readouterr().out
    assert "accuracy on rows held out by 3 folds" in out
    assert "steps" in out
    model = dotadd.load("m.dotadd")
    people = np.array([f"p{k // 8}" for k in range(LINES)])
    svm = KernelSVMCV("BagOfWords()", Cs=[0.01, 0.1, 1.0], cv=3, random_state=0)
    svm.fit(dotadd.open(mails, column="text"), groups=people)
    assert model.training["cross_validation"]["mean"] == svm.cv_results_["mean_test_score"].tolist()
    assert model.training["C"] == svm.C_


def test_auto_is_for_training_alone(mails, capsys):
    assert run(["compare", mails, *TEXT, "-C", "auto", "-o", "x.html"]) == 2
    assert "give a number" in capsys.readouterr().err
