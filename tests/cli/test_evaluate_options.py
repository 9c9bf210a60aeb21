"""Every option of `evaluate` acts, or is refused: weights of rows, threads, certificates."""

import json
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn import metrics

import dotadd
from dotadd.cli import run
from dotadd.cli.large import Cluster
from dotadd.cluster import predicting as partitioned
from dotadd.cluster.partitions import Partitions
from dotadd.model import evaluation, ranking
from dotadd.model.probability import calibrate
from dotadd.model.ranking import Ranked, Ranking
from dotadd.model.threshold import choose_threshold

MEASURES = ("accuracy", "auroc", "auprc", "confusion")


@pytest.fixture(params=[2, 3])
def folder(tmp_path, monkeypatch, request):
    """A model of some classes, rows with whole weights, and the same rows as often as they weigh."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(3)
    y = rng.integers(request.param, size=90) + (X[:, 0] > 1)
    y %= request.param
    weight = rng.integers(4, size=90)
    lines = [f"{label},{','.join(map(str, row))}" for label, row in zip(y, X.tolist(), strict=True)]
    (tmp_path / "train.csv").write_text("y,a,b,c\n" + "\n".join(lines) + "\n")
    weighted = [f"{line},{n / 2}" for line, n in zip(lines, weight, strict=True)]
    (tmp_path / "weighted.csv").write_text("y,a,b,c,n\n" + "\n".join(weighted) + "\n")
    repeated = [line for line, n in zip(lines, weight, strict=True) for _ in range(n)]
    (tmp_path / "repeated.csv").write_text("y,a,b,c\n" + "\n".join(repeated) + "\n")
    assert run(["train", "train.csv", "--label", "y", "-o", "m", "-q"]) == 0
    return tmp_path


def logged(*command):
    assert run(["evaluate", "m", *command, "--label", "y", "--log", "log"]) == 0
    with open("log") as file:
        found = json.load(file)
    return {name: np.array(found[name]) for name in MEASURES} | {"rows": found["rows"]}


def test_a_row_of_weight_three_counts_like_three_of_weight_one(folder, capsys):
    weighted, repeated, plain = logged("weighted.csv", "--weight", "n"), logged("repeated.csv"), logged("train.csv")
    assert weighted["rows"] == plain["rows"] == 90
    np.testing.assert_allclose(2.0 * weighted.pop("confusion"), repeated.pop("confusion"))
    for name in MEASURES[:-1]:
        np.testing.assert_allclose(weighted[name], repeated[name])
        assert (weighted[name] != plain[name]).any(), "which weights do change here"
    assert "by which rows count" in capsys.readouterr().out


def test_it_does_so_where_workers_measure_a_file_each(folder):
    model, data = dotadd.load("m"), Partitions.of(["weighted.csv"], label="y", weight="n")
    one = partitioned._evaluate(model, "weighted.csv", 0, data, 1)[0]
    expected = logged("weighted.csv", "--weight", "n")
    twice = (one + one).finish()
    np.testing.assert_allclose(twice.confusion, 2.0 * expected["confusion"])
    assert twice.rows == 180
    np.testing.assert_allclose(twice.accuracy, expected["accuracy"])
    np.testing.assert_allclose(twice.auroc, expected["auroc"].reshape(-1))
    np.testing.assert_allclose(twice.auprc, expected["auprc"].reshape(-1))


@pytest.mark.parametrize("held", [ranking.HELD, 20])
def test_rankings_of_rows_with_weights_have_their_areas(monkeypatch, held):
    monkeypatch.setattr(ranking, "HELD", held)
    rng = np.random.default_rng(1)
    positive, score, weight = rng.random(300) < 0.4, rng.integers(9, size=300), rng.integers(3, size=300) * 0.7
    weight[100:200] = 1.0
    ranked = Ranked()
    for first in range(0, 300, 50):
        some = slice(first, first + 50)
        ranked.add([positive[some]], [score[some]], None if 100 <= first < 200 else weight[some])
    (joined,) = ranked.rankings()
    for found in (joined, Ranking.of(positive, score, weight)):
        assert found.auroc() == pytest.approx(evaluation.auroc(positive, score, sample_weight=weight))
        assert found.auprc() == pytest.approx(evaluation.auprc(positive, score, sample_weight=weight))


def test_rows_without_any_weight_have_no_measures():
    nothing = np.zeros(4)
    ranking = Ranking.of(np.array([True, False, True, False]), np.arange(4.0), nothing)
    assert np.isnan([ranking.auroc(), ranking.auprc()]).all()
    found = evaluation.Evaluator(np.array([0, 1]))
    found.see(np.array([0, 1, 1, 0]), np.arange(4.0), np.ones(4, int), nothing)
    assert np.isnan([found.accuracy, *found.finish().auroc, *found.finish().auprc]).all()


@pytest.mark.parametrize("command", ["evaluate m train.csv", "predict m train.csv"])
def test_certificates_for_no_cluster_are_refused(folder, capsys, command):
    assert run([*command.split(), "--tls-ca", "a", "--tls-cert", "b", "--tls-key", "c"]) == 2
    assert "go together, and with --scheduler" in capsys.readouterr().err


@pytest.mark.parametrize("where", [["--scheduler", "tcp://nowhere:1"], ["--workers", "2"]])
def test_threads_are_those_of_each_file_unless_workers_are_started_with_them(folder, monkeypatch, where):
    asked = {}

    @contextmanager
    def client(self, jobs):
        asked["workers"] = jobs
        yield object()

    def evaluate(client, model, data, *, n_jobs, on_progress):
        asked["file"] = n_jobs
        return evaluation.Evaluator(model.classes).finish()

    monkeypatch.setattr(Cluster, "client", client)
    monkeypatch.setattr(partitioned, "evaluate", evaluate)
    assert run(["evaluate", "m", "train.csv", "--label", "y", "--jobs", "3", *where]) == 0
    assert asked == {"workers": 3, "file": 3 if "--scheduler" in where else None}


def test_probabilities_and_a_threshold_are_measured_where_the_model_has_them(folder, capsys):
    y, X = np.split(np.loadtxt("train.csv", delimiter=",", skiprows=1), [1], axis=1)
    y, model = y[:, 0], dotadd.load("m")
    scores = model.decision_function(X)
    model.calibration = calibrate(scores, y, model.classes)
    two = len(model.classes) == 2
    if two:
        model.threshold = choose_threshold(scores, y, model.classes, "recall=0.9")
    model.save("m")
    capsys.readouterr()
    assert run(["evaluate", "m", "train.csv", "--label", "y", "--log", "log"]) == 0
    with open("log") as file:
        found = json.load(file)
    shown = " ".join(capsys.readouterr().out.split())
    probability = model.predict_proba(X)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, probability))
    assert found["intervals"]["log_loss"][0] < found["log_loss"] < found["intervals"]["log_loss"][1]
    assert f"log loss {found['log_loss']:.4f} (" in shown
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(y, model.predict(X), average="macro"))
    if not two:
        assert found["threshold"] is found["at_zero"] is None
        return
    assert found["recall"] == pytest.approx(metrics.recall_score(y, scores > model.threshold.value))
    assert found["recall"] >= 0.9
    assert found["at_zero"] == metrics.confusion_matrix(y, scores > 0).tolist()
    assert found["threshold"]["value"] == model.threshold.value
    for words in ("for recall=0.9: precision", f"recall {metrics.recall_score(y, scores > 0):.4f}, F1"):
        assert words in shown


def test_intervals_of_a_file_are_those_of_its_parts_on_workers(folder):
    lines = (folder / "train.csv").read_text().splitlines()
    for name, some in (("a.csv", lines[:31]), ("b.csv", [lines[0], *lines[31:]])):
        (folder / name).write_text("\n".join(some) + "\n")
    model, data = dotadd.load("m"), Partitions.of(["a.csv", "b.csv"], label="y")
    parts = [partitioned._evaluate(model, name, 0, data, 1)[0] for name in ("a.csv", "b.csv")]
    whole = model.evaluated(dotadd.open("train.csv", label="y")).finish()
    assert (parts[1] + parts[0]).finish().intervals == whole.intervals
