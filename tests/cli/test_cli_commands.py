"""The commands do what the Python calls do, on files."""

import json
import re
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

import dotadd.cli
from dotadd.cli import options, run
from dotadd.cli.warmup import JOBS
from dotadd.kernel_svm import problem as kernel_machines
from dotadd.model import evaluation
from dotadd.model.linear import load
from dotadd.solvers import table
from dotadd.solvers.result import Reason
from dotadd.sources import formats
from dotadd.sources import open as open_source


def libsvm(X, y):
    rows = (" ".join(f"{j + 1}:{value:.4f}" for j, value in enumerate(row)) for row in X)
    return "".join(f"{label} {row}\n" for label, row in zip(y, rows, strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two classes and three classes, as LIBSVM text; sequences as CSV."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    (tmp_path / "two.svm").write_text(libsvm(X, np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1, -1)))
    (tmp_path / "three.svm").write_text(libsvm(X, X[:, :3].argmax(axis=1)))
    letters = rng.choice(list("ACGT"), (40, 12))
    letters[::2, 4:7] = list("GCG")
    lines = [f"{'yes' if k % 2 == 0 else 'no'},{''.join(row)}" for k, row in enumerate(letters)]
    (tmp_path / "dna.csv").write_text("label,seq\n" + "\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("name", ["two", "three"])
def test_predict_writes_the_labels_and_scores_of_the_model(folder, capsys, name):
    assert run(f"train {name}.svm -o m --quiet".split()) == 0
    assert capsys.readouterr().out == ""
    model = load("m")
    assert run(f"predict m {name}.svm".split()) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    scores = model.decision_function(f"{name}.svm").reshape(60, -1)
    assert [float(line[0]) for line in lines] == model.predict(f"{name}.svm").tolist()
    assert all("." not in line[0] for line in lines)
    assert np.array([line[1:] for line in lines], float) == pytest.approx(scores, rel=1e-8)

    assert run(f"predict m {name}.svm --scores -o scores --jobs 1".split()) == 0
    assert capsys.readouterr().out == ""
    assert np.loadtxt("scores").reshape(60, -1) == pytest.approx(scores, rel=1e-8)


@pytest.mark.parametrize("name", ["two", "three"])
def test_evaluate_reports_the_measures_of_the_scores(folder, capsys, name):
    run(f"train {name}.svm -o m -q".split())
    capsys.readouterr()
    assert run(f"evaluate m {name}.svm --log measures.json".split()) == 0
    shown = capsys.readouterr().out
    model, truth = load("m"), open_source(f"{name}.svm").load().y
    expected = evaluation.evaluate(truth, model.decision_function(f"{name}.svm"), model.classes)
    logged = json.loads((folder / "measures.json").read_text())
    assert logged["rows"] == 60
    assert logged["accuracy"] == expected.accuracy
    assert np.atleast_1d(logged["auroc"]).tolist() == pytest.approx(expected.auroc, rel=1e-12)
    assert np.atleast_1d(logged["auprc"]).tolist() == pytest.approx(expected.auprc, rel=1e-12)
    assert logged["confusion"] == expected.confusion.tolist()
    assert f"{expected.accuracy:.4f}" in shown
    assert all(f"{area:.4f}" in shown for area in expected.auroc + expected.auprc)


@pytest.mark.parametrize("name", ["two", "three"])
def test_train_logs_every_pass_and_a_summary(folder, capsys, name):
    assert run(f"train {name}.svm -o m --log log --test {name}.svm --tol 0.01".split()) == 0
    shown = capsys.readouterr().out
    *passes, last = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    for k in {record["class"] for record in passes}:
        numbers = [record["passes"] for record in passes if record["class"] == k]
        assert numbers == list(range(1, len(numbers) + 1))
    assert {"class", "seconds", "primal", "dual", "gap", "active"} <= set(passes[0])
    assert last["summary"]["training"]["gap"] <= 0.01
    assert last["summary"]["training"]["rows"] == 60
    for word in ("rows", "features", "primal", "dual", "gap", "stopped", "model", Reason.CONVERGED.value, "auROC"):
        assert word in shown


@pytest.mark.parametrize(
    "options",
    [
        "-C 0.01",
        "--loss logistic",
        "--intercept none",
        "--class-weight balanced",
        "--solver sgd",
        "--max-passes 1",
        "--features Polynomial(2)",
        "--seed 1",
        "--tol 1e-6",
    ],
)
def test_each_option_of_train_acts(folder, options):
    run(["train", "two.svm", "-o", "plain", "-q"])
    run(f"train two.svm -o other -q {options}".split())
    plain_w, other_w = load("plain").w, load("other").w
    assert plain_w.shape != other_w.shape or not np.array_equal(plain_w, other_w)


def test_the_same_seed_gives_the_same_model(folder):
    for name in "ab":
        run(f"train two.svm -o {name} -q --max-passes 2 --seed 7".split())
    assert np.array_equal(load("a").w, load("b").w)


def test_sequences_train_with_a_feature_expression_and_bad_rows_are_counted(folder, capsys):
    with open("dna.csv", "a") as file:
        file.write("yes,ACGTNNNNACGT\n")
    arguments = ["train", "dna.csv", "--column", "seq", "--label", "label", "-o", "m"]
    expression = "Spectrum(2, span=(0, 6)) + WeightedDegree(4).hashed(6)"
    assert run([*arguments, "--features", expression, "--on-bad-row", "skip"]) == 0
    out, err = capsys.readouterr()
    assert "left out 1 bad rows; the first: dna.csv:42:" in err
    assert "40 in 2 classes" in out
    assert load("m").classes.tolist() == ["no", "yes"]
    assert repr(load("m").phi) == expression.replace("Degree(4)", "Degree(4, length=12)")


def test_convert_keeps_the_rows(folder, capsys):
    assert run(["convert", "two.svm", "two.arrow"]) == 0
    assert "60" in capsys.readouterr().out
    run(["train", "two.svm", "-o", "a", "-q"])
    run(["train", "two.arrow", "-o", "b", "-q"])
    assert np.array_equal(load("a").w, load("b").w)
    columns = ["--column", "seq", "--label", "label"]
    assert run(["convert", "dna.csv", "packed.arrow", *columns]) == 0
    assert run(["convert", "dna.csv", "plain.arrow", "--no-pack", *columns]) == 0
    packed, plain = (open_source(f"{name}.arrow").load() for name in ("packed", "plain"))
    assert [packed.batch[k] for k in range(40)] == [plain.batch[k] for k in range(40)]


def test_inspect_shows_what_is_inside(folder, capsys):
    run(["train", "three.svm", "-o", "m", "-q", "-C", "0.25"])
    capsys.readouterr()
    assert run(["inspect", "m", "--largest", "2"]) == 0
    shown = capsys.readouterr().out
    for word in ("Linear(", "sparse rows", "0.25", "hinge", "60", "largest weights", "0, 1, 2"):
        assert word in shown
    assert run(["inspect", "m", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == [0, 1, 2]


def test_brackets_in_names_are_not_markup(folder, capsys):
    (folder / "x.csv").write_text("y,a\n[red]no,1\n[/b]yes,-1\n")
    assert run(["train", "x.csv", "--label", "y", "-o", "[bold]m"]) == 0
    assert "[bold]m" in capsys.readouterr().out
    assert run(["evaluate", "[bold]m", "x.csv", "--label", "y"]) == 0
    assert "[/b]yes" in capsys.readouterr().out
    assert run(["inspect", "[bold]m"]) == 0
    assert "[red]no" in capsys.readouterr().out


def test_ctrl_c_saves_the_model_so_far_and_exits_with_130(folder, capsys, monkeypatch):
    from dotadd.cli import progress

    def interrupt(self, done, which, classes):
        if done.passes == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Watch, "__call__", interrupt)
    assert run(["train", "two.svm", "-o", "m", "--tol", "1e-9"]) == 130
    out, err = capsys.readouterr()
    assert "gap" in out
    assert "interrupted; the model so far is saved in m" in err
    assert load("m").training["reason"] == Reason.INTERRUPTED.value


def test_ctrl_c_while_reading_writes_nothing(folder, capsys, monkeypatch):
    def interrupt(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dotadd.cli.options.Reading.open", interrupt)
    assert run(["train", "two.svm", "-o", "m"]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not (folder / "m").exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_warmup_names_what_it_compiles_and_complains_of_nothing(jobs, capfd, recwarn):
    assert run(["warmup", "--jobs", jobs]) == 0
    shown, said = capfd.readouterr()
    names = re.findall(r"^\d+/\d+ (.*) \d+\.\d s$", shown, re.MULTILINE)
    assert set(JOBS) <= set(names)
    assert "compiled in" in shown
    assert not said
    assert not list(recwarn)


def test_the_formats_on_offer_are_those_that_can_be_read():
    assert get_args(options.FormatName) == (*formats.FORMATS, *formats.FOLDERS)


def test_help_has_examples_and_names_every_option(capsys):
    for command in dotadd.cli.COMMANDS:
        assert run([command.__name__, "--help"]) == 0
        assert f"    dotadd {command.__name__}" in capsys.readouterr().out.replace(
            "DOTADD_CACHE_DIR=/var/cache/dotadd ", ""
        )
    run(["train", "--help"])
    shown = capsys.readouterr().out
    wanted = "--output --features -C --loss --solver --intercept --class-weight --tol --max-passes --max-time --seed "
    wanted += "--memory --checkpoint --checkpoint-every --resume --no-keep-cache "
    wanted += "--jobs --format --label --column --weight --labels --on-bad-row --zero-based --log --test --quiet"
    assert [option for option in wanted.split() if option not in shown] == []
    solvers = [*table.SOLVERS, *kernel_machines.SOLVERS]
    assert [solver for solver in solvers if not re.search(rf"\b{solver}\b", shown)] == []


def test_help_and_version_import_nothing_heavy():
    heavy = "{'numba', 'numpy', 'pyarrow', 'scipy', 'sklearn', 'safetensors', 'pandas', 'polars'}"
    for option in ("--help", "--version"):
        code = f"import sys; from dotadd.cli import run; run(['{option}']); print('heavy', {heavy} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "dotadd" in done.stdout
        assert done.stdout.splitlines()[-1] == "heavy set()"
