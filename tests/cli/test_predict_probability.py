"""predict --probability: the model's probabilities beside its scores, in every format and on parts of a cluster."""

import csv
import json

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest

import dotadd
from dotadd.cli import run
from dotadd.cluster import predicting as partitioned
from dotadd.cluster.partitions import Partitions


@pytest.fixture(params=[2, 3])
def model(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)).round(2), rng.integers(request.param, size=60)
    lines = [",".join(map(str, (label, *row))) for label, row in zip(y, X.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("y,a,b,c\n" + "\n".join(lines) + "\n")
    assert run(["train", "data.csv", "--label", "y", "--loss", "logistic", "-o", "m", "-q"]) == 0
    return dotadd.load("m")


def read(path):
    if path.suffix == ".csv":
        with open(path) as file:
            return list(csv.DictReader(file))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    table = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.feather.read_table(path)
    return table.to_pylist()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_files_have_columns_of_probabilities(model, tmp_path, ending):
    assert run(["predict", "m", "data.csv", "--probability", "-o", f"out.{ending}"]) == 0
    rows, expected = read(tmp_path / f"out.{ending}"), model.predict_proba("data.csv")
    two = len(model.classes) == 2
    names = ["probability"] if two else [f"probability_{label}" for label in model.classes]
    found = np.array([[float(row[name]) for name in names] for row in rows])
    np.testing.assert_allclose(found, expected[:, two:], rtol=1e-7)
    assert next(iter(rows[0])) == "label"
    assert list(rows[0])[-len(names) :] == names
    assert [int(row["label"]) for row in rows] == model.predict("data.csv").tolist()


def test_the_screen_has_them_after_the_scores(model, capsys):
    capsys.readouterr()
    assert run(["predict", "m", "data.csv", "--probability", "--scores"]) == 0
    found = np.array([line.split("\t") for line in capsys.readouterr().out.splitlines()], float)
    scores, sure = model.decision_function("data.csv").reshape(60, -1), model.predict_proba("data.csv")
    np.testing.assert_allclose(found, np.hstack([scores, sure[:, 1:] if len(model.classes) == 2 else sure]), rtol=1e-7)


def test_workers_write_them_too(model, tmp_path):
    data = Partitions.of(["data.csv"], label="y")
    partitioned._predict(model, "data.csv", 0, data, str(tmp_path / "parts"), True, 1)
    last = list(read(tmp_path / "parts" / "part-00000.parquet")[0])[-1]
    assert last == ("probability" if len(model.classes) == 2 else "probability_2")


def test_a_model_without_probabilities_says_so_before_it_writes(model, tmp_path, capsys):
    assert run(["train", "data.csv", "--label", "y", "-o", "m", "-q"]) == 0
    capsys.readouterr()
    assert run(["predict", "m", "data.csv", "--probability", "-o", "out.csv"]) == 2
    told = capsys.readouterr().err
    assert "scores and no probabilities" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()
