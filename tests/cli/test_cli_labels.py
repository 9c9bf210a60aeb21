"""Several labels a row on the command line: the same model from every format, predictions as the data has labels."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import accuracy_score, f1_score, hamming_loss
from sklearn.preprocessing import MultiLabelBinarizer

import dotadd
from dotadd.cli import run

TOPICS = {"acq": "buys stake merger", "corn": "bushel farm", "oil": "barrel crude opec", "gold": "ounce mine"}
FEATURES = ["--features", "WordNGrams(1, bits=12).tfidf()", "--column", "text", "--label", "topics"]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Texts and their topics, some of which nobody can guess, in three formats."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    topics = [sorted(rng.choice(list(TOPICS), rng.integers(0, 4), replace=False).tolist()) for _ in range(200)]
    texts = []
    for some in topics:
        told = [name for name in some if rng.random() < 0.9]
        words = [word for name in told for word in TOPICS[name].split()]
        texts.append(" ".join([*rng.choice(["the", "said", "on", "of"], 5), *words]))
    with open("x.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerows([("text", "topics"), *zip(texts, map(",".join, topics), strict=True)])
    lines = [json.dumps({"text": text, "topics": some}) for text, some in zip(texts, topics, strict=True)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    pq.write_table(pa.table({"text": texts, "topics": topics}), "x.parquet")
    return texts, topics


def test_every_format_makes_the_same_model_which_remembers_the_separator(rows):
    assert run(["train", "x.csv", *FEATURES, "--separator", ",", "-o", "csv", "-q"]) == 0
    one = dotadd.load("csv")
    assert one.read_as["separator"] == ","
    assert one.several == "lists"
    for name in ("jsonl", "parquet"):
        assert run(["train", f"x.{name}", *FEATURES, "-o", name, "-q"]) == 0
        np.testing.assert_array_equal(dotadd.load(name).w, one.w)
    assert run(["train", "x.csv", *FEATURES, "--separator", ",", "-o", "disk", "-q", "--memory", "9kB"]) == 0
    assert run(["train", "x.csv", *FEATURES, "--separator", ",", "-o", "disk", "-q", "--solver", "stream"]) == 0
    disk = dotadd.load("disk")
    assert disk.read_as["separator"] == ","
    np.testing.assert_allclose(disk.w, one.w, atol=0.05)


def test_predictions_are_written_as_labels_were(rows, capsys):
    texts, _ = rows
    run(["train", "x.csv", *FEATURES, "--separator", ",", "-o", "m", "-q", "--loss", "logistic"])
    model = dotadd.load("m")
    expected, scores = model.predict(texts), model.decision_function(texts)
    assert run(["predict", "m", "x.csv"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == [",".join(some) for some in expected]
    np.testing.assert_allclose(np.array([line[1:] for line in lines], float), scores, rtol=1e-6)
    for output in ("p.csv", "p.jsonl", "p.parquet"):
        assert run(["predict", "m", "x.csv", "-o", output, "--probability"]) == 0
    with open("p.csv", newline="") as file:
        header, *cells = csv.reader(file)
    kinds = [f"{kind}_{name}" for kind in ("score", "probability") for name in sorted(TOPICS)]
    assert header == ["label", *kinds]
    assert [cell[0] for cell in cells] == [",".join(some) for some in expected]
    assert [json.loads(line)["label"] for line in Path("p.jsonl").read_text().splitlines()] == expected
    table = pq.read_table("p.parquet")
    assert table["label"].to_pylist() == expected
    sure = np.stack([table[name].to_numpy() for name in kinds[4:]], axis=1)
    np.testing.assert_allclose(sure, model.predict_proba(texts), atol=1e-12)


def test_evaluate_tells_what_scikit_learn_measures(rows, capsys):
    texts, topics = rows
    run(["train", "x.csv", *FEATURES, "--separator", ",", "-o", "m", "-q"])
    binary = MultiLabelBinarizer().fit(topics)
    truth, found = binary.transform(topics), binary.transform(dotadd.load("m").predict(texts))
    for data in ("x.csv", "x.jsonl", "x.parquet"):
        assert run(["evaluate", "m", data, "--label", "topics", "--log", "e.json"]) == 0
        told = json.loads(Path("e.json").read_text())
        assert told["micro_f1"] == pytest.approx(f1_score(truth, found, average="micro"))
        assert told["macro_f1"] == pytest.approx(f1_score(truth, found, average="macro"))
        assert told["f1"] == pytest.approx(f1_score(truth, found, average=None))
        assert told["exact"] == pytest.approx(accuracy_score(truth, found))
        assert told["hamming_loss"] == pytest.approx(hamming_loss(truth, found))
        out = capsys.readouterr().out
        assert f"{told['hamming_loss']:.4f}" in out
        assert "macro F1" in out
    assert run(["train", "x.csv", *FEATURES, "--separator", ",", "-o", "m", "--test", "x.jsonl"]) == 0
    assert "200 with 4 labels, several a row" in capsys.readouterr().out
    assert run(["inspect", "m"]) == 0
    assert "several a row, with ',' between them: acq, corn, gold, oil" in capsys.readouterr().out


def test_what_does_not_go_with_several_labels_says_so(rows, capsys):
    several = ["train", "x.csv", *FEATURES, "--separator", ","]
    assert run(["train", "x.csv", "--column", "text", "--label", "topics", "--kernel", "WordNGrams(1, bits=12)",
                "--separator", ",", "-o", "k"]) == 2  # fmt: skip
    assert "there are several labels a row: LinearSVM" in capsys.readouterr().err
    assert run([*several, "-o", "c", "-C", "auto"]) == 2
    assert "there are several labels a row: LinearSVM" in capsys.readouterr().err
    assert run([*several, "-o", "m", "-q"]) == 0
    assert run(["calibrate", "m", "x.csv", "--label", "topics", "-o", "sure"]) == 2
    assert "several labels a row are not calibrated" in capsys.readouterr().err
    with open("one.csv", "w") as file:
        file.write("text,topics\n" + "buys,acq\nfarm,corn\n" * 5)
    assert run(["train", "one.csv", *FEATURES, "-o", "one", "-q"]) == 0
    for command in ("predict", "evaluate"):
        assert run([command, "one", "x.csv", "--separator", ","]) == 2
        assert (
            "--separator is for several labels a row, and the model was trained on one each" in capsys.readouterr().err
        )
    with open("strange.csv", "w") as file:
        file.write('text,topics\nbuys,acq\nfarm,"corn,rice"\n')
    assert run(["evaluate", "m", "strange.csv"]) == 2
    assert "strange.csv:3: label rice is none of the model's labels" in capsys.readouterr().err
    Path("x.svm").write_text("1 1:1\n-1 2:1\n")
    assert run(["train", "x.svm", "--separator", ",", "-o", "m"]) == 2
    assert "separator= has no meaning for libsvm files" in capsys.readouterr().err
