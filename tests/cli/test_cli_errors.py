"""Anything wrong with what the user gives: one line on stderr, exit code 2, nothing half-written."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from dotadd.cli import run

DATA = "1 1:1 2:0.5\n-1 1:-1\n1 1:2\n-1 2:-1 3:1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.svm").write_text(DATA)
    (tmp_path / "label.svm").write_text("1 1:1\nyes 1:2\n")
    (tmp_path / "nan.svm").write_text("1 1:1\n-1 1:nan\n")
    (tmp_path / "one.svm").write_text("1 1:1\n1 1:2\n")
    (tmp_path / "empty.svm").write_text("")
    (tmp_path / "dna.csv").write_text("seq,y\nACGT,1\nACNT,0\n")
    (tmp_path / "foreign.csv").write_text("seq,y\nACNT,1\nNNNT,0\n")
    (tmp_path / "deep").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train", "--output"),
        ("train -o m", "give a data file"),
        ("train none.svm -o m", "none.svm"),
        ("train good.svm -o none/m", "the folder .* does not exist"),
        ("train good.svm -o deep", "is a folder"),
        ("train good.svm -o m --log none/log", "the folder .* does not exist"),
        ("train good.svm -o m --colour red", "--colour"),
        ("train good.svm -o m --loss cubic", "cubic"),
        ("train good.svm -o m --solver magic", "solver is 'magic'"),
        ("train good.svm -o m --solver newton", "newton needs a smooth loss"),
        ("train foreign.csv -o m --column seq --label y --features Spectrum(2) --on-bad-row skip", "no row is left"),
        ("train good.svm -o m -C minus", "minus"),
        ("train good.svm -o m -C -1", "C is -1"),
        ("train good.svm -o m --tol 0", "tol is 0"),
        ("train good.svm -o m --jobs 0", "n_jobs is 0"),
        ("train good.svm -o m --features Spectrum(", "column|expression|Spectrum"),
        ("train good.svm -o m --features Magic(3)", "Magic"),
        ("train good.svm -o m --features Spectrum(3)", "strings"),
        ("train good.svm -o m --test none.svm", "none.svm"),
        ("train label.svm -o m", "label.svm:2:1: "),
        ("train nan.svm -o m", "nan.svm:2:"),
        ("train one.svm -o m", "one class"),
        ("train empty.svm -o m", "empty.svm.*no examples"),
        ("train dna.csv --column seq --label y --features Spectrum(2) -o m", "dna.csv:3:3: letter 'N'"),
        ("train dna.csv --column text --label y --features Spectrum(2) -o m", "text"),
        ("predict good.svm good.svm", "not a model file"),
        ("predict none good.svm", "none: No such file"),
        ("evaluate none good.svm", "none: No such file"),
        ("inspect good.svm", "not a model file"),
        ("inspect good.svm --largest -1", "--largest -1"),
        ("convert none.svm out.arrow", "none.svm"),
        ("convert label.svm out.arrow", "label.svm:2:1: "),
        ("convert good.svm none/out.arrow", "the folder .* does not exist"),
        ("dance", "dance"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, capsys, arguments, words):
    before = sorted(os.listdir(folder))
    assert run(arguments.split()) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "compiling for this machine" not in line]
    assert out == ""
    assert len(lines) == 1
    assert lines[0].startswith("dotadd: error: ")
    assert re.search(words, lines[0]), lines[0]
    assert sorted(os.listdir(folder)) == before


def test_predict_and_evaluate_refuse_what_does_not_fit_the_model(folder, capsys):
    assert run(["train", "good.svm", "-o", "m", "-q"]) == 0
    (folder / "strange.svm").write_text("1 1:1\n7 1:2\n")
    (folder / "dense.csv").write_text("a,b\n1,2\n")
    capsys.readouterr()
    for arguments, words in {
        "evaluate m strange.svm": "strange.svm:2: label 7 is none of the model's classes (-1, 1)",
        "predict m": "give a data file",
        "predict m good.svm -o none/p": "does not exist",
        "predict m dense.csv": "X has 2 features, but Model is expecting 3",
        "evaluate m good.svm --log none/log": "does not exist",
    }.items():
        assert run(arguments.split()) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert err.count("\n") == 1


def test_a_failed_prediction_leaves_no_file(folder):
    assert run(["train", "good.svm", "-o", "m", "-q"]) == 0
    assert run(["predict", "m", "nan.svm", "-o", "p"]) == 2
    assert not [name for name in os.listdir(folder) if name.startswith(("p", ".p"))]


def test_debug_shows_the_traceback(folder, monkeypatch):
    monkeypatch.setenv("DOTADD_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        run(["predict", "none", "good.svm"])


def test_a_reader_that_stops_early_is_no_error(folder):
    np.savetxt(folder / "long.csv", np.column_stack([np.arange(20000) % 2, np.arange(20000)]), "%d", ",")
    text = (folder / "long.csv").read_text()
    (folder / "long.csv").write_text("y,a\n" + text)
    assert run(["train", "long.csv", "--label", "y", "-o", "m", "-q", "--max-passes", "1"]) == 0
    command = f"{sys.executable} -c 'from dotadd.cli import main; main()' predict m long.csv --label y | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("matplotlib", "compare good.svm -o c.html", "plots"),
        ("matplotlib", "compare good.svm -o c.svg", "plots"),
        ("matplotlib", "inspect m --poim p.svg", "plots"),
        ("distributed", "train good.svm -o m2 --workers 2", "dask"),
        ("distributed", "evaluate m good.svm --scheduler tcp://127.0.0.1:1", "dask"),
        ("distributed", "predict m good.svm -o p --workers 2", "dask"),
        ("PIL.Image", "train photos -o m2", "images"),
        ("PIL.Image", "train good.svm -o m2 --test photos", "images"),
        ("pybigtools", "scan genome.fa --model m --signal donor -o s.bw", "genomics"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra_before_any_work(
    folder, capsys, monkeypatch, module, arguments, extra
):
    def work(*_, **__):
        raise AssertionError("should not have come here")

    assert run(["train", "good.svm", "-o", "m", "-q"]) == 0
    (folder / "photos" / "a").mkdir(parents=True)
    (folder / "photos" / "a" / "1.png").write_bytes(b"")
    for name in ("estimators.linear.LinearSVM.fit", "model.file.Classifier.decision_chunks", "genome.scan.candidates"):
        monkeypatch.setattr(f"dotadd.{name}", work)
    monkeypatch.setitem(sys.modules, module, None)
    before = sorted(os.listdir(folder))
    capsys.readouterr()
    assert run(arguments.split()) == 2
    err = capsys.readouterr().err
    assert f"pip install 'dotadd[{extra}]'" in err
    assert err.count("\n") == 1
    assert sorted(os.listdir(folder)) == before
    run([arguments.split()[0], "--help"])
    assert f"pip install 'dotadd[{extra}]'" in " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize(
    ("train", "test", "options", "words"),
    [
        ("good.svm", "none.svm", "", "none.svm: no such file"),
        ("good.svm", "empty.svm", "", "empty.svm"),
        ("good.svm", "label.svm", "", "label.svm:2:1: "),
        ("dna.csv", "bare.csv", "--column seq --label y --features NGrams(2)", "bare.csv"),
        ("dna.csv", "text.csv", "--column seq --label y --features NGrams(2)", "text.csv.*labels are text"),
        ("wide.csv", "narrow.csv", "--label y", "narrow.csv"),
    ],
)
def test_a_test_file_is_looked_at_before_training(folder, capsys, monkeypatch, train, test, options, words):
    def work(*_, **__):
        raise AssertionError("training has begun")

    monkeypatch.setattr("dotadd.estimators.linear.LinearSVM.fit", work)
    (folder / "bare.csv").write_text("seq\nACGT\n")
    (folder / "text.csv").write_text("seq,y\nACGT,yes\n")
    (folder / "wide.csv").write_text("y,a,b\n1,2,3\n0,1,2\n")
    (folder / "narrow.csv").write_text("y,a\n1,2\n0,1\n")
    assert run(["train", train, "-o", "m", "--test", test, *options.split()]) == 2
    err = capsys.readouterr().err
    assert re.search(words, err), err
    assert err.count("\n") == 1
    assert not (folder / "m").exists()
