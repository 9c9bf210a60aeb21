"""dotadd train --update: an earlier model file learns from new rows, and complaints are one line."""

import json
from pathlib import Path

import numpy as np
import pytest

import dotadd
from dotadd import LinearSVM
from dotadd.cli import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three files of rows of one kind, with a class more in the last, and a model of the first."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4)).round(3)
    y = np.array(["ham", "spam"])[(X[:, 0] + 0.5 * rng.normal(size=900) > 0).astype(int)]
    y[600:][X[600:, 1] > 1.0] = "news"
    for name, rows in (("old", slice(300)), ("new", slice(300, 600)), ("three", slice(600, 900))):
        lines = [",".join(map(str, (label, *row))) for label, row in zip(y[rows], X[rows], strict=True)]
        (tmp_path / f"{name}.csv").write_text("y,a,b,c,d\n" + "\n".join(lines) + "\n")
    assert (
        run(["train", "old.csv", "--label", "y", "-o", "old.dotadd", "-C", "0.3", "--loss", "squared_hinge", "-q"]) == 0
    )
    return X.astype(np.float32), y


def test_an_update_has_the_bits_of_the_library_and_options_of_the_model(folder, capsys):
    X, y = folder
    assert run(["train", "new.csv", "--update", "old.dotadd", "-o", "new.dotadd", "--log", "log"]) == 0
    assert "which stood for 300 rows and counts by" in (out := capsys.readouterr().out)
    assert "stands for 600 rows now" in out
    before, after = dotadd.load("old.dotadd"), dotadd.load("new.dotadd")
    assert (after.training["C"], after.training["loss"]) == (0.3, "squared_hinge")
    twin = LinearSVM(C=0.3, loss="squared_hinge", random_state=0).fit(X[300:600], y[300:600], start=before)
    np.testing.assert_array_equal(after.w, twin.coef_)
    assert json.loads(Path("log").read_text().splitlines()[-1])["summary"]["training"]["stands_for"] == 600


def test_what_is_said_goes_before_what_the_model_has(folder):
    assert (
        run(["train", "new.csv", "--update", "old.dotadd", "-o", "new.dotadd", "-C", "1", "--loss", "hinge", "-q"]) == 0
    )
    training = dotadd.load("new.dotadd").training
    assert (training["C"], training["loss"]) == (1.0, "hinge")


def test_columns_are_found_by_their_names(folder):
    rows = [line.split(",") for line in Path("new.csv").read_text().split()]
    lines = [",".join([*row[:0:-1], "z" if k == 0 else "7", row[0]]) for k, row in enumerate(rows)]
    Path("turned.csv").write_text("\n".join(lines) + "\n")
    for name in ("new", "turned"):
        assert run(f"train {name}.csv --update old.dotadd -o {name}.dotadd -q".split()) == 0
    np.testing.assert_array_equal(dotadd.load("new.dotadd").w, dotadd.load("turned.dotadd").w)


def test_from_disk_as_from_memory(folder):
    tight = "--tol 1e-6 --max-passes 5000 -q --update old.dotadd"
    assert run(f"train three.csv -o memory.dotadd {tight}".split()) == 0
    assert run(f"train three.csv -o disk.dotadd --solver stream {tight}".split()) == 0
    one, other = dotadd.load("memory.dotadd"), dotadd.load("disk.dotadd")
    assert other.training["solver"] == "stream"
    assert other.training["update"]["strength"] == pytest.approx(one.training["update"]["strength"], rel=1e-6)
    np.testing.assert_allclose(other.w, one.w, atol=1e-3)


def test_a_model_may_be_written_over_itself(folder):
    assert run(["train", "three.csv", "--update", "old.dotadd", "-o", "old.dotadd", "-q"]) == 0
    model = dotadd.load("old.dotadd")
    assert list(model.classes) == ["ham", "news", "spam"]
    assert model.training["stands_for"] == 600
    assert run(["inspect", "old.dotadd"]) == 0


def test_probabilities_that_have_to_be_learned_again_are_told(folder, capsys):
    assert run(["calibrate", "old.dotadd", "new.csv", "-o", "sure.dotadd"]) == 0
    assert run(["train", "new.csv", "--update", "sure.dotadd", "-o", "new.dotadd"]) == 0
    assert "its probabilities have to be learned again" in capsys.readouterr().out
    assert dotadd.load("new.dotadd").calibration is None


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("three.csv --update old.dotadd --no-new-classes", "the model has no class news: it has ham, spam"),
        ("new.csv --stands-for 5", "name it by --update"),
        ("new.csv --no-new-classes", "name it by --update"),
        ("new.csv --update old.dotadd --stands-for -1", "no number of rows"),
        ("new.csv --update old.dotadd --cv 3", "--update does not go with --cv and -C auto"),
        ("new.csv --update old.dotadd --kernel rbf", "--update does not go with --kernel"),
        ("new.csv --update old.dotadd --workers 2", "--update does not go with --scheduler and --workers"),
        ("new.csv --update old.dotadd --features Polynomial(2)", "which an update cannot change to"),
        ("new.csv --update old.dotadd --solver sgd", "sgd cannot update an earlier model"),
        ("new.csv --update nowhere.dotadd", "nowhere.dotadd"),
        ("new.csv --update new.csv", "new.csv"),
    ],
)
def test_bad_input_is_refused_in_a_line(folder, capsys, options, complaint):
    capsys.readouterr()
    assert run(["train", *options.split(), "-o", "out.dotadd", "--label", "y"]) != 0
    told = capsys.readouterr().err
    assert complaint in told
    assert len(told.strip().splitlines()) == 1
