"""--class-weight: weights of single classes, whose labels are written as in the file."""

import numpy as np
import pytest

import dotadd
from dotadd import DotaddError, LinearSVM
from dotadd.cli import run
from dotadd.cli.options import class_weights


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Makes a file of rows with these labels, three numbers each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)

    def write(labels):
        X, codes = rng.normal(size=(60, 3)).round(3), rng.integers(len(labels), size=60)
        lines = [f'"{labels[code]}",{",".join(map(str, row))}' for code, row in zip(codes, X.tolist(), strict=True)]
        (tmp_path / "data.csv").write_text("y,a,b,c\n" + "\n".join(lines) + "\n")
        return X, codes

    return write


@pytest.mark.parametrize(
    ("labels", "option", "weights"),
    [
        (["ham", "spam"], "spam=3,ham=0.5", [0.5, 3.0]),
        (["ham", "spam"], "spam=3", [1.0, 3.0]),
        (["-1", "1"], "+1=3, -1.0=2", [2.0, 3.0]),
        (["0", "1", "2"], "2=1e1,0=2", [2.0, 1.0, 10.0]),
        (["a,b", "c=d", "e"], '"a,b"=4,c=d=2', [4.0, 2.0, 1.0]),
        (["1", "one", "two"], "1=4,two=2", [4.0, 1.0, 2.0]),
    ],
)
@pytest.mark.parametrize("kernel", [[], ["--kernel", "linear"]])
def test_classes_weigh_what_is_written(rows, labels, option, weights, kernel):
    X, codes = rows(labels)
    assert run(["train", "data.csv", "--label", "y", "-o", "m", "-q", "--class-weight", option, *kernel]) == 0
    found = dotadd.load("m")
    assert [str(label) for label in found.classes.tolist()] == labels
    svm = dotadd.KernelSVM("linear", random_state=0) if kernel else LinearSVM(random_state=0)
    svm.fit(X, codes, sample_weight=np.array(weights)[codes])
    np.testing.assert_allclose(found.decision_function(X), svm.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("cat=2", "labels that the data has not: ['cat']; it has ham, spam"),
        ("spam", "'spam' is no label=weight"),
        ("spam=", "'spam=' is no label=weight"),
        ("=3", "'=3' is no label=weight"),
        ("spam=3,ham=many", "'ham=many' is no label=weight"),
        ("spam=0", "above 0"),
        ("spam=-1", "above 0"),
        ("spam=nan", "above 0"),
        ("spam=inf", "above 0"),
        ("spam=1,spam=2", "spam has two weights"),
        ("", "is empty"),
        ("Balanced", "write balanced"),
    ],
)
def test_what_is_no_weight_of_a_class_is_told_in_a_line(rows, capsys, option, words):
    rows(["ham", "spam"])
    assert run(["train", "data.csv", "--label", "y", "-o", "m", "-q", "--class-weight", option]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_the_same_class_written_in_two_ways_is_refused():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(DotaddError, match="class 1 two weights"):
        LinearSVM(class_weight={1: 2.0, "1.0": 3.0}).fit(X, y)


def test_the_two_words_mean_what_they_did():
    assert class_weights("none") is None
    assert class_weights("balanced") == "balanced"
