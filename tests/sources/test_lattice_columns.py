"""A column of lattices in a table: the features of these lattices, from every format, in memory and on disk."""

import json
import math

import naive_automata as naive
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dotadd
from dotadd import DataError, FeatureError, LinearSVM, parse
from dotadd.automata import ngram
from dotadd.automata.symbols import HashedSymbols
from dotadd.cli import run
from dotadd.data.batches import Strings
from dotadd.data.lattices import Lattices, packed, unpacked
from dotadd.data.table import Cells, Table
from dotadd.features import Column
from dotadd.features.checks import check_feature_map, materialize
from dotadd.features.rational import Rational
from dotadd.sources import open as open_source
from dotadd.sources.table import Layout

HEARD = 'Column("heard", Rational((ngram(1) + ngram(2)), bits=10), holds="lattices")'
PHI = f'{HEARD} + Number("age").scaled("std") + Column("text", WordNGrams(1, bits=8))'


def cell(k, rng):
    """One of the forms of a lattice, in which one word is likely and another one less so; and what it means."""
    word, other = ("on", "off") if k % 2 else ("off", "on")
    p = round(float(rng.uniform(0.7, 0.9)), 3)
    cost, less = -math.log(p), -math.log(1 - p)
    form = k // 2 % 4
    if form == 0:
        nodes = f"('<s>', 0.0), ('{word}', {-cost!r}), ('{other}', {-less!r}), ('please', 0.0), ('</s>', 0.0)"
        text = f"[{nodes}],[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]"
    elif form == 1:
        text = f"0 1 {word} {cost!r}\n0 1 {other} {less!r}\n1 2 please\n2"
    elif form == 2:
        text = f"name u{k}\nnumaligns 2\nalign 0 {word} {p!r} {other} {1 - p!r}\nalign 1 please 1"
    else:
        return f"{word}  please", {(word, "please"): 1.0}
    return text, {(word, "please"): p, (other, "please"): 1 - p}


def table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    several = [cell(k, rng) for k in range(n)]
    columns = {
        "age": rng.normal(40, 10, n).round(2),
        "heard": [text for text, _ in several],
        "text": rng.choice(["a b", "c", ""], n),
        "label": ["light" if k % 2 else "dark" for k in range(n)],
    }
    return pd.DataFrame(columns), [meaning for _, meaning in several]


def write_lines(path, data):
    path.write_text("".join(json.dumps(row) + "\n" for row in json.loads(data.to_json(orient="records"))))


WRITERS = {
    "csv": lambda path, data: data.to_csv(path, index=False),
    "csv.gz": lambda path, data: data.to_csv(path, index=False),
    "jsonl": write_lines,
    "parquet": lambda path, data: pq.write_table(pa.Table.from_pandas(data), path),
    "arrow": lambda path, data: feather.write_feather(data, path),
}


@pytest.fixture(scope="module")
def expected():
    data, _ = table()
    return data, LinearSVM(PHI, C=1, random_state=0).fit(data.drop(columns="label"), data["label"])


def cells_of(data, phi=HEARD):
    return open_source(data, like=Layout.of_cells(parse(phi).reads)).load().batch


def test_cells_of_every_form_are_the_lattices_that_they_write(expected):
    data, meanings = table()
    batch = cells_of(data)
    lattices = batch.lattices("heard")
    for row, meaning in enumerate(meanings):
        found = {
            tuple(batch.words.name(label) for label in x): p
            for (x, _), p in naive.language(lattices.automaton(row)).items()
        }
        assert found == pytest.approx(meaning)


def test_a_column_has_the_features_of_its_lattices():
    data, _ = table()
    batch = cells_of(data)
    lattices = batch.lattices("heard")
    plain = lattices.take(np.arange(len(batch)))
    assert type(plain) is Lattices
    for phi in (Rational(ngram(2), bits=9), parse("Rational(ngram(1) + mismatch(2, 1), bits=12)").learn(plain)):
        column = Column("heard", phi, holds="lattices")
        found = materialize(column, batch)
        assert abs(found - materialize(phi, plain)).max() == 0.0
        assert abs(materialize(column.prepared(batch), batch) - found).max() == 0.0
        check_feature_map(column, batch)
        assert parse(repr(column)) == column
        assert column != Column("heard", phi)
    part = batch.slice(10, 31)
    assert abs(materialize(Column("heard", phi, "lattices"), part) - materialize(phi, plain)[10:31]).max() == 0.0


def test_what_is_packed_is_unpacked_again():
    data, _ = table()
    batch = cells_of(data).lattices("heard").take(np.arange(80))
    empty = Lattices.from_automata([])
    for some in (batch, batch.slice(3, 9), batch.take(np.array([5, 5, 0])), empty, batch.slice(4, 4)):
        again = unpacked(packed(some))
        assert len(again) == len(some)
        for mine, theirs in zip(again.parts()[:2], some.take(np.arange(len(some))).parts()[:2], strict=True):
            assert all(np.array_equal(one, other) for one, other in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("text", ["", "12345678", "a sentence of words", "\0" * 7 + "\x7f" + "\0" * 16])
def test_what_was_never_packed_is_refused(text):
    batch = Table.from_columns({"heard": Cells(strings=Strings.from_list([text]))})
    with pytest.raises(DataError, match="to hold lattices"):
        materialize(parse(HEARD), batch)


@pytest.mark.parametrize("ending", WRITERS)
def test_the_same_model_from_every_format(tmp_path, expected, ending):
    data, svm = expected
    path = tmp_path / f"said.{ending}"
    WRITERS[ending](path, data)
    found = LinearSVM(PHI, C=1, random_state=0).fit(str(path))
    assert np.array_equal(found.model_.w, svm.model_.w)
    assert found.predict(str(path)).tolist() == data["label"].tolist()


def test_polars_and_columns_of_lattices_of_arrow_are_read_alike(expected):
    data, svm = expected
    frame = pl.from_pandas(data)
    found = LinearSVM(PHI, C=1, random_state=0).fit(frame.drop("label"), frame["label"].to_list())
    assert np.array_equal(found.model_.w, svm.model_.w)
    lattices = cells_of(data).lattices("heard").take(np.arange(len(data))).to_arrow()
    arrow = pa.table({"heard": lattices, "age": data["age"], "text": data["text"]})
    assert np.array_equal(svm.decision_function(arrow), svm.decision_function(data))


def test_streamed_and_from_a_saved_model(tmp_path, expected):
    data, svm = expected
    data.to_csv(tmp_path / "said.csv", index=False)
    streamed = LinearSVM(PHI, C=1, tol=1e-4, memory="100KB", random_state=0).fit(str(tmp_path / "said.csv"))
    assert streamed.result_.primal == pytest.approx(svm.result_.primal, rel=1e-2)
    svm.save(str(tmp_path / "m"))
    again = dotadd.load(str(tmp_path / "m"))
    assert again.decision_function(str(tmp_path / "said.csv")) == pytest.approx(svm.decision_function(data))


def test_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data, _ = table()
    data.to_csv("said.csv", index=False)
    assert run(["train", "said.csv", "--features", PHI, "-o", "m", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["predict", "m", "said.csv", "--id", "age"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[1] for line in lines[-80:]] == data["label"].tolist()
    assert run(["inspect", "m", "--data", "said.csv"]) == 0
    shown = capsys.readouterr().out
    assert "on please" in shown
    assert "off please" in shown
    data.loc[3, "heard"] = "0 1 on 0.5\n1 0 off\n1"
    data.to_csv("bad.csv", index=False)
    assert run(["train", "bad.csv", "--features", PHI, "-o", "n", "--quiet"]) == 2
    assert "column 'heard': the lattice has a cycle through state" in capsys.readouterr().err
    assert not (tmp_path / "n").exists()
    assert run(["train", "bad.csv", "--features", PHI, "-o", "n", "--on-bad-row", "skip"]) == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("[('<s>', 0, 0), ('a', 0.5, 0), ('</s>', 0, 0)], [(0, 1), (1, 2)]", "0.5 is not the logarithm"),
        ("0 1 a 0.5\n0 1 b c d e f\n1", "line 2 of the cell: an arc has from 3 to 5 columns"),
        ("0 1 a 0.5\n1 0 b\n1", "the lattice has a cycle"),
        ("u\n0 1 a\n1\n\nv\n0 1 a\n1", "a cell holds one lattice, and this one has 2"),
        ("lattices/u17.fst.gz", "'lattices/u17.fst.gz' names a file"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_bad_cell_is_told_with_file_row_and_column(tmp_path, wrong, said, ending):
    data = pd.DataFrame({"heard": ["on", wrong, "off"], "label": [1, 0, 0]})
    path = tmp_path / f"t.{ending}"
    WRITERS[ending](path, data)
    where = f"{path}:3: " if ending == "csv" else f"{path}: row 1: "
    with pytest.raises(DataError) as error:
        LinearSVM(HEARD).fit(str(path))
    assert str(error.value).startswith(f"{where}column 'heard': {said}")
    source = open_source(path, label="label", like=Layout.of_cells(parse(HEARD).reads), on_bad_row="skip")
    chunk = source.load()
    assert (len(chunk), chunk.y.tolist(), source.skipped.count) == (2, [1, 0], 1)


def test_names_are_words_and_tables_that_are_joined_know_all_of_them():
    batches = [cells_of(pd.DataFrame({"heard": [text]})) for text in ("turn it on", "turn it off")]
    batch = Table.concat(batches)
    names, _ = parse('Column("heard", Rational(ngram(3)), holds="lattices")').origins(
        batch, np.array([0, 1]), np.array([0, 0])
    )
    assert names.text.tolist() == [b"turn it on", b"turn it off"]
    assert HashedSymbols(["off"]).number("off") in batch.lattices("heard").take(np.array([1])).labels


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ('Column("heard", WordNGrams(1), holds="lattices")', "needs a map of lattices, and not WordNGrams"),
        ('Column("heard", Rational(ngram(1)), holds="files")', "holds has to be one of text, lattices"),
    ],
)
def test_what_cannot_be_is_refused(expression, complaint):
    with pytest.raises(FeatureError, match=complaint):
        parse(expression)


def test_a_column_is_lattices_or_something_else_and_not_both():
    with pytest.raises(FeatureError, match="column 'heard' is read as lattices by one map, and by another"):
        LinearSVM(f'{HEARD} + Category("heard")').fit(table()[0].drop(columns="label"), [0, 1] * 40)
