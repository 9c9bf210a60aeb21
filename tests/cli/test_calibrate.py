"""dotadd calibrate: the probabilities and the threshold that the library learns from the same rows, in a new model."""

import json

import numpy as np
import pytest

import dotadd
from dotadd import DataError, LinearSVM
from dotadd.cli import run
from dotadd.model.probability import calibrate
from dotadd.model.threshold import choose_threshold


@pytest.fixture(params=[2, 3])
def folder(tmp_path, monkeypatch, request):
    """A model, and labelled rows that it has not seen, with weights."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).round(3)
    y = np.argmax(X[:, : request.param] + rng.normal(size=(400, request.param)), axis=1)
    weight = rng.integers(1, 4, 400)
    for name, rows in (("train", slice(200)), ("more", slice(200, 400))):
        columns = zip(y[rows], X[rows], weight[rows], strict=True)
        lines = [",".join(map(str, (label, *row, n))) for label, row, n in columns]
        (tmp_path / f"{name}.csv").write_text("y,a,b,c,n\n" + "\n".join(lines) + "\n")
    assert run(["train", "train.csv", "--label", "y", "--weight", "n", "-o", "m", "-q"]) == 0
    return X[200:].astype(np.float32), y[200:], weight[200:]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_the_new_model_has_the_probabilities_of_the_rows(folder, capsys, method):
    X, y, weight = folder
    before = dotadd.load("m")
    assert run(f"calibrate m more.csv --label y --weight n -o sure --method {method}".split()) == 0
    assert f"by {method}" in capsys.readouterr().out
    model = dotadd.load("sure")
    scores = before.decision_function(X)
    expected = calibrate(scores, y, model.classes, method=method, weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), expected.probabilities(scores))
    assert np.array_equal(model.predict(X), before.predict(X))
    assert not hasattr(dotadd.load("m"), "predict_proba")
    twin = before.calibrate(X, y, weight, method=method)
    np.testing.assert_allclose(twin.predict_proba(X), model.predict_proba(X))


def test_the_new_model_predicts_by_the_threshold(folder, capsys):
    X, y, weight = folder
    options = "--weight n -o strict --method none --threshold recall=0.9"
    command = f"calibrate m more.csv --label y {options}".split()
    if len(np.unique(y)) > 2:
        assert run(command) == 2
        assert "a threshold tells two classes apart, and there are 3" in capsys.readouterr().err
        return
    assert run(command) == 0
    assert "for recall=0.9: precision" in capsys.readouterr().out
    model = dotadd.load("strict")
    scores = dotadd.load("m").decision_function(X)
    assert model.threshold == choose_threshold(scores, y, model.classes, "recall=0.9", weight=weight)
    assert np.array_equal(model.predict(X), (scores > model.threshold.value).astype(int))
    assert model.calibration is None


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("calibrate m -o n", "give a data file"),
        ("calibrate m more.csv --label y -o n --method none", "would change nothing"),
        ("calibrate m more.csv --label y -o n --threshold precision=2", "between 0 and 1"),
        ("calibrate m more.csv --label y -o n --threshold accuracy=1", "give precision="),
        ("calibrate m more.csv --label y -o n --threshold", "threshold"),
        ("calibrate m more.csv -o nowhere/n --label y", "nowhere"),
        ("calibrate nothing more.csv --label y -o n", "nothing"),
        ("calibrate m strange.csv --label y -o n", "none of the classes"),
        ("calibrate m bare.csv -o n", "label"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(folder, tmp_path, capsys, command, words):
    (tmp_path / "strange.csv").write_text("y,a,b,c\n7,1,2,3\n0,1,2,3\n")
    (tmp_path / "bare.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    capsys.readouterr()
    assert run(command.split()) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert not (tmp_path / "n").exists()


def test_labels_and_weights_have_to_pair_up_with_the_rows():
    X, y = np.eye(4), [0, 1, 0, 1]
    model = LinearSVM(random_state=0).fit(X, y).model_
    for more in ({"y": [0, 1]}, {"y": y, "sample_weight": [1.0, 2.0, 3.0, 4.0, 5.0]}):
        with pytest.raises(DataError, match="do not pair up"):
            model.calibrate(X, **more)
    assert model.calibration is None


def test_inspect_tells_of_probabilities_and_of_the_threshold(folder, capsys):
    command = ["calibrate", "m", "more.csv", "--label", "y", "-o", "n", "--method", "isotonic"]
    two = len(np.unique(folder[1])) == 2
    assert run(command + ["--threshold", "fp=5,fn=1"] * two) == 0
    capsys.readouterr()
    assert run(["inspect", "n", "--json", "--largest", "0"]) == 0
    inside = json.loads(capsys.readouterr().out)
    assert inside["probability"] == "isotonic"
    assert (inside["threshold"] or {}).get("purpose") == ("fp=5,fn=1" if two else None)
    assert run(["inspect", "n", "--largest", "0"]) == 0
    shown = capsys.readouterr().out
    assert "isotonic" in shown
    assert ("for fp=5,fn=1" in shown) == two
