"""A table of which nobody has said what to make of it: each column is taken for what it is, and that is told."""

import numpy as np
import pandas as pd
import pytest

import dotadd
from dotadd import LinearSVM, UnusedColumnsWarning, parse
from dotadd.cli import run
from dotadd.estimators.proposal import propose

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "runs", "away"]


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    jobs = np.array(["nurse", "cook", "pilot", "clerk"])[rng.integers(0, 4, n)]
    age = rng.normal(40, 12, n).round(1)
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(10 * n)[:n],
            "row": np.arange(n),
            "age": age,
            "size": rng.integers(0, 4, n),
            "job": jobs,
            "note": [" ".join(rng.choice(WORDS, 6)) for _ in range(n)],
            "url": [f"http://example.org/{rng.integers(1 << 40):x}" for _ in range(n)],
            "code": [f"{rng.integers(1 << 30):x}" for _ in range(n)],
            "sequence": ["".join(rng.choice(list("ACGT"), 30)) for _ in range(n)],
            "when": [f"2024-01-{1 + k % 31:02} 10:{k % 60:02}" for k in range(n)],
            "same": "x",
            "none": [None] * n,
            "label": np.where((jobs == "nurse") ^ (age > 44), "yes", "no"),
        }
    )


def test_each_column_is_taken_for_what_it_holds(tmp_path):
    data = table()
    found = propose(data.drop(columns="label"))
    phi = parse(found.expression)
    assert phi == parse(
        'Column("note", WordNGrams((1, 2)).log().tfidf()) + Column("url", NGrams((3, 5)).tfidf()) + '
        'Column("sequence", Spectrum(6).normalized()) + Number("age", "size").scaled("std") + '
        'Category("job").indexed() + Date("when")'
    )
    assert found.left_out == {
        "customer_id": "a number for each row",
        "row": "a number for each row",
        "code": "a name for each row",
        "same": "always the same",
        "none": "empty",
    }
    data.to_csv(tmp_path / "x.csv", index=False)
    assert propose(str(tmp_path / "x.csv")) == found, "and the label is not looked at"
    data.to_parquet(tmp_path / "x.parquet")
    assert propose(tmp_path / "x.parquet") == found
    data.to_json(tmp_path / "x.jsonl", orient="records", lines=True)
    assert propose(dotadd.open(tmp_path / "x.jsonl")) == found


def test_what_needs_no_map_gets_none(tmp_path):
    numbers = table()[["age", "size"]]
    numbers.to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "x.svm").write_text("1 1:2\n0 2:1\n")
    for given in (numbers, str(tmp_path / "x.csv"), np.eye(3), ["a text", "another"], str(tmp_path / "x.svm")):
        assert propose(given) is None
    data = table()
    data.to_csv(tmp_path / "y.csv", index=False)
    assert propose(dotadd.open(str(tmp_path / "y.csv"), column="note")) is None, "somebody has said which column"


def test_what_is_always_the_same_in_the_first_of_many_rows_is_read():
    data = pd.DataFrame({"flag": [0] * 5000, "kind": ["a", "b"] * 2500, "word": ["x"] * 5000})
    assert propose(data).expression == "Number('flag').scaled(\"std\") + Category('kind', 'word').indexed()"


def test_a_fit_without_a_map_tells_what_it_reads():
    data = table()
    svm = LinearSVM(C=0.1, random_state=0)
    with pytest.warns(UnusedColumnsWarning, match=r"features: Column\('note'.*left out: 'customer_id'"):
        svm.fit(data.drop(columns="label"), data["label"])
    assert svm.phi is None, "parameters stay what they were"
    assert svm.score(data.drop(columns="label"), data["label"]) > 0.8


def test_the_command_says_which_features_it_has_chosen(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = table()
    data.to_csv("x.csv", index=False)
    assert run(["train", "x.csv", "-o", "m.dotadd", "-C", "0.1", "--test", "x.csv"]) == 0
    out, err = capsys.readouterr()
    assert "features: Column('note', WordNGrams((1, 2)).log().tfidf()) + " in err
    assert "'same' (always the same)" in err
    assert "accuracy" in out
    assert run(["train", "x.csv", "-o", "m.dotadd", "-q"]) == 0
    assert "features:" not in capsys.readouterr().err


def test_a_file_without_a_header_has_columns_by_number(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table()[["age", "job", "label"]].to_csv("x.csv", index=False, header=False)
    assert run(["train", "x.csv", "-o", "m.dotadd", "--no-header", "--label", "2"]) == 0
    out, err = capsys.readouterr()
    assert "features: Number('0').scaled(\"std\") + Category('1').indexed()" in err
    assert "300 in 2 classes" in out
    assert run(["evaluate", "m.dotadd", "x.csv"]) == 0
    assert "300 in" in capsys.readouterr().out
    svm = LinearSVM("Number(0) + Category(1)", C=0.1, random_state=0)
    assert svm.fit(dotadd.open("x.csv", header=False, label=2)).model_.training["rows"] == 300
