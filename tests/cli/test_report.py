"""dotadd report and dotadd train --report: a page, or one line and exit code 2."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dotadd.cli import run
from dotadd.model.linear import Model, load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        X = rng.standard_normal((80, 3))
        y = np.where(X[:, 0] + 0.6 * rng.standard_normal(80) > 0, "yes <&>", "no")
        lines = [f"{a:.4f},{b:.4f},{c:.4f},{label}" for (a, b, c), label in zip(X, y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("a,b,c,label\n" + "\n".join(lines) + "\n")
    assert run(["train", "train.csv", "--label", "label", "-o", "m", "--loss", "logistic", "-q"]) == 0
    return tmp_path


def words_of(path):
    return "".join(ElementTree.fromstring(path.read_text().replace("<!DOCTYPE html>", "")).itertext())


def test_report_tells_what_evaluate_tells(folder, capsys):
    assert run(["report", "m", "--data", "test.csv", "-o", "page.html"]) == 0
    capsys.readouterr()
    assert run(["evaluate", "m", "test.csv"]) == 0
    shown, page = capsys.readouterr().out, words_of(folder / "page.html")
    for name in ("accuracy", "auROC", "auPRC", "log loss"):
        assert re.search(rf"{name} +([\d.]+ \([\d.-]+\))", shown)[1] in page
    assert "yes <&>" in page
    assert "Convergence" not in page
    assert "test.csv" in page


def test_train_writes_the_page_with_the_way_of_training(folder, capsys):
    assert (
        run(["train", "train.csv", "--label", "label", "-o", "n", "--test", "test.csv", "--report", "page.html"]) == 0
    )
    assert "page.html" in capsys.readouterr().out
    page = words_of(folder / "page.html")
    assert "Convergence" in page
    assert "train.csv" in page
    assert f"{100 * load('n').training['gap']:.2g} %" in page


def test_a_cross_validation_is_measured_by_rows_that_were_held_out(folder, capsys):
    assert (
        run(
            [
                "train",
                "train.csv",
                "--label",
                "label",
                "-o",
                "n",
                "-C",
                "auto",
                "--cv",
                "3",
                "--report",
                "page.html",
                "-q",
            ]
        )
        == 0
    )
    assert capsys.readouterr().out == ""
    page = words_of(folder / "page.html")
    told = load("n").training["cross_validation"]
    best = told["pooled"][told["C"].index(load("n").training["C"])]
    assert f"{best:.4f}" in page
    assert "Values of C tried" in page


def test_without_rows_to_measure_on_the_page_says_how(folder):
    assert run(["report", "m", "-o", "page.html"]) == 0
    assert "Not measured: --data FILE" in words_of(folder / "page.html")
    assert run(["train", "train.csv", "--label", "label", "-o", "n", "--report", "other.html", "-q"]) == 0
    assert "Not measured: --test FILE or --cv" in words_of(folder / "other.html")


def test_columns_are_found_by_name_among_others(folder):
    lines = [f"{k},{'buy now' if k % 2 else 'see you'} w{k},{'spam' if k % 2 else 'ham'}" for k in range(30)]
    (folder / "mails.csv").write_text("number,text,label\n" + "\n".join(lines) + "\n")
    features = ["--features", "WordNGrams(1).hashed(10)"]
    assert run(["train", "mails.csv", "--column", "text", "-o", "n", "-q", *features]) == 0
    (folder / "other.csv").write_text("label,more,text\n" + "ham,x,buy now\nspam,y,see you\n" * 3)
    assert run(["report", "n", "--data", "other.csv", "-o", "page.html"]) == 0
    page = words_of(folder / "page.html")
    assert "ham taken for spam" in page
    assert re.search("for spam.*now.*for ham.*see", page, re.DOTALL)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("report m --data unlabelled.csv -o page.html", "label"),
        ("report m --data missing.csv -o page.html", "missing.csv"),
        ("report m --data test.csv -o page.txt", "a report is written as .html"),
        ("report m --data test.csv -o nowhere/page.html", "nowhere"),
        ("train train.csv --label label -o n --report nowhere/page.html", "nowhere"),
        ("train train.csv --label label -o n --report page.pdf", "a report is written as .html"),
        ("report bare -o page.html", "no record of its training"),
        ("report m -o page.html --largest=-1", "--largest -1"),
        ("report m -o page.html --label label", "without --data"),
        ("report m --data test.csv", "--output"),
    ],
)
def test_what_cannot_be_told_is_one_line(folder, capsys, command, complaint):
    (folder / "unlabelled.csv").write_text("a,b,c\n1,2,3\n")
    model = load("m")
    Model(model.phi, model.shape, model.w, model.intercept, model.classes, {}, model.columns).save("bare")
    before = sorted(path.name for path in folder.iterdir())
    assert run(command.split()) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert complaint in told
    assert sorted(path.name for path in folder.iterdir()) == before
