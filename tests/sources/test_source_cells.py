"""Tables of words and numbers: the same model from every format, from memory and from disk, and clear complaints."""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dotadd
from dotadd import DataError, FeatureError, LinearSVM, load, strongest_features
from dotadd.cli import run
from dotadd.data.table import Table
from dotadd.sources.table import Layout

PHI = 'Column("text", WordNGrams((1, 2), bits=10)) + Number("age", "height") + Category("job", "code") + Date("when")'


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    jobs = np.array(["nurse", "cook", "pi lot", "Zürcher", ""])[rng.integers(0, 5, n)]
    age = rng.normal(40, 10, n).round(2)
    texts = np.array(["good, very good", 'a "bad" one', "two\nlines", "plain"])[rng.integers(0, 4, n)]
    y = np.where((jobs == "nurse") ^ (age > 42), "yes", "no")
    missing = np.where(rng.random(n) < 0.1, np.nan, age)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": missing,
            "height": rng.integers(150, 200, n),
            "job": jobs,
            "code": rng.integers(0, 4, n),
            "text": texts,
            "when": [f"2024-{1 + k % 12:02}-{1 + k % 28:02} {k % 24:02}:30" for k in range(n)],
            "label": y,
        }
    )


def write_lines(path, data):
    rows = json.loads(data.to_json(orient="records"))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")


WRITERS = {
    "csv": lambda path, data: data.to_csv(path, index=False),
    "csv.gz": lambda path, data: data.to_csv(path, index=False),
    "jsonl": write_lines,
    "parquet": lambda path, data: pq.write_table(pa.Table.from_pandas(data), path),
    "arrow": lambda path, data: feather.write_feather(data, path),
}


@pytest.fixture(scope="module")
def expected():
    data = frame()
    svm = LinearSVM(PHI, C=0.1, random_state=0).fit(data.drop(columns="label"), data["label"])
    return data, svm


@pytest.mark.parametrize("ending", WRITERS)
def test_the_same_model_from_every_format(tmp_path, expected, ending):
    data, svm = expected
    path = tmp_path / f"people.{ending}"
    WRITERS[ending](path, data)
    found = LinearSVM(PHI, C=0.1, random_state=0).fit(str(path))
    assert np.array_equal(found.model_.w, svm.model_.w)
    assert found.predict(str(path)).tolist() == svm.predict(data.drop(columns="label")).tolist()


def test_the_same_model_from_tsv_without_line_breaks(tmp_path):
    data = frame()
    data["text"] = data["text"].str.replace("\n", " ")
    svm = LinearSVM(PHI, C=0.1, random_state=0).fit(data.drop(columns="label"), data["label"])
    data.to_csv(tmp_path / "people.tsv", sep="\t", index=False, quoting=3)
    found = LinearSVM(PHI, C=0.1, random_state=0).fit(str(tmp_path / "people.tsv"))
    assert np.array_equal(found.model_.w, svm.model_.w)


class OnlyArrow:
    """A table of some other library, of which nothing is known but Arrow's interface."""

    def __init__(self, table):
        self._table, self.columns = table, table.column_names

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def test_other_frames_and_types_say_the_same(expected):
    data, svm = expected
    table = pa.Table.from_pandas(data.drop(columns="label"), preserve_index=False)
    kinds = {"job": pa.dictionary(pa.int8(), pa.string()), "text": pa.large_string(), "height": pa.float32()}
    schema = pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in table.schema])
    times = pd.to_datetime(data["when"])
    frame = pl.from_pandas(data)
    typed = frame.with_columns(
        pl.col("job").cast(pl.Categorical), pl.col("text").cast(pl.Enum(data["text"].unique().tolist())),
        pl.col("when").str.to_datetime("%Y-%m-%d %H:%M"), pl.col("height").cast(pl.Decimal(10, 2)),
        pl.col("code").cast(pl.UInt8),
    )  # fmt: skip
    others = (
        table, table.cast(schema), data.assign(when=times), data.assign(code=data["code"].astype("float64")), frame,
        typed, OnlyArrow(table), data.convert_dtypes(dtype_backend="pyarrow"),
    )  # fmt: skip
    for other in others:
        assert svm.decision_function(other).tolist() == svm.decision_function(data).tolist()


@pytest.mark.parametrize("chunk", [300, 2000, 1 << 20])
def test_chunks_of_any_size_hold_the_same_rows(tmp_path, chunk):
    data = frame()
    path = tmp_path / "people.csv"
    data.to_csv(path, index=False)
    source = dotadd.open(str(path), like=Layout.of_cells(dotadd.parse(PHI).reads))
    batch = Table.concat([one.batch for one in source.chunks(chunk)])
    assert [batch.strings("job")[r].decode() for r in range(len(batch))] == data["job"].tolist()
    assert np.array_equal(batch.numbers("age"), data["age"], equal_nan=True)
    assert batch.names == ("text", "age", "height", "job", "code", "when")


@pytest.mark.filterwarnings("ignore::dotadd.errors.StreamingWarning")
def test_a_table_that_is_streamed_has_the_same_optimum(tmp_path, expected):
    data, _ = expected
    path = tmp_path / "people.csv"
    data.to_csv(path, index=False)
    for phi in ('Column("text", WordNGrams(1)) + 0.01 * Number("age") + Category("job")', 'Category("job", "code")'):
        streamed = LinearSVM(phi, solver="stream", memory="1MB", random_state=0).fit(str(path))
        memory = LinearSVM(phi, random_state=0).fit(str(path))
        assert streamed.result_.converged, "the second one reads a copy of its own: other columns"
        assert streamed.result_.primal == pytest.approx(memory.result_.primal, rel=2e-3)
        assert streamed.predict(str(path)).tolist() == memory.predict(str(path)).tolist()


def test_a_model_remembers_what_it_reads(tmp_path, expected):
    data, svm = expected
    svm.save(tmp_path / "model.dotadd")
    model = dotadd.load(tmp_path / "model.dotadd")
    shuffled = data[["when", "label", "text", "code", "height", "job", "age"]]
    assert model.decision_function(shuffled).tolist() == svm.decision_function(data).tolist()
    with pytest.raises(DataError, match="there is no column 'job'; the columns are"):
        model.predict(data.drop(columns="job"))
    with pytest.raises(DataError, match=r"there are no columns .*'job'.*; the columns are"):
        model.predict(data.drop(columns=["job", "age"]))
    (tmp_path / "lines.txt").write_text("one two\n")
    with pytest.raises(FeatureError, match=r"lines.txt: .* reads tables, and the data is strings"):
        model.predict(str(tmp_path / "lines.txt"))


def test_columns_of_a_file_without_a_header_have_numbers(tmp_path):
    data = frame()[["age", "job", "label"]]
    data.to_csv(tmp_path / "plain.csv", index=False, header=False)
    svm = LinearSVM("Number(0) + Category(1)", C=0.1, random_state=0)
    svm.fit(dotadd.open(str(tmp_path / "plain.csv"), label=-1))
    named = LinearSVM('Number("age") + Category("job")', C=0.1, random_state=0).fit(
        data.drop(columns="label"), data["label"]
    )
    assert svm.score(str(tmp_path / "plain.csv")) == pytest.approx(
        named.score(data.drop(columns="label"), data["label"]), abs=0.1
    )
    assert np.count_nonzero(svm.model_.w) == np.count_nonzero(named.model_.w)


def written(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return str(path)


@pytest.mark.parametrize(
    ("lines", "phi", "complaint"),
    [
        (["age,label", "1,a", "old,b"], 'Number("age")', r"people.csv:3:1: column 'age': 'old' is not a number"),
        (["age,label", "1,a", "inf,b"], 'Number("age")', r"people.csv:3: column 'age': value inf is not finite"),
        (["age,label", "1,a", "1e300,b"], 'Number("age")', r"people.csv:3: column 'age': value 1e\+300 is too large"),
        (["age,label", "1,a", "2,b"], 'Number("size")', r"there is no column 'size'; the columns are 'age', 'label'"),
        (["age,label", "1,a", "2,b"], 'Number("age") + Category("label")', "has no labels to train on"),
        (
            ["age,label", "1,a", ",b"],
            'Number("age", missing="refuse")',
            "people.csv:3: column 'age': the value is missing",
        ),
        (["when,label", "2024-01-01,a", "soon,b"], 'Date("when")', r"people.csv:3: column 'when': 'soon' is no date"),
        (["dna,label", "ACGT,a", "AXGT,b"], 'Column("dna", Spectrum(3))', r"people.csv:3: column 'dna': letter 'X'"),
    ],
)
def test_bad_input_is_told_with_its_line(tmp_path, lines, phi, complaint):
    with pytest.raises(DataError, match=complaint):
        LinearSVM(phi).fit(written(tmp_path / "people.csv", lines))


def test_a_column_that_changes_its_type_late_is_told_with_its_line(tmp_path):
    lines = ["age,label", *(f"{k},{'ab'[k % 2]}" for k in range(5000)), "forty,a"]
    with pytest.raises(DataError, match=r"people.csv:5002:1: column 'age': 'forty' is not a number"):
        LinearSVM('Number("age")').fit(written(tmp_path / "people.csv", lines))


def test_bad_rows_can_be_skipped(tmp_path):
    path = written(tmp_path / "people.csv", ["age,label", "1,a", "old,b", "3,b", "4,a"])
    source = dotadd.open(path, on_bad_row="skip")
    svm = LinearSVM('Number("age")', random_state=0).fit(source)
    assert svm.model_.training["rows"] == 3


def test_json_lines_may_lack_fields_and_change_their_types(tmp_path):
    lines = ['{"n": 1, "c": 7, "label": "a"}', '{"n": null, "c": "x", "label": "b"}', '{"c": true, "label": "a"}']
    path = written(tmp_path / "people.jsonl", lines)
    source = dotadd.open(path, like=Layout.of_cells({"n": "number", "c": "text"}))
    batch = source.load().batch
    assert np.array_equal(batch.numbers("n"), [1.0, np.nan, np.nan], equal_nan=True)
    assert [batch.strings("c")[r] for r in range(3)] == [b"7", b"x", b"true"]


def test_columns_of_one_kind_that_hold_another_are_told(tmp_path):
    data = frame()[["job", "label"]]
    with pytest.raises(DataError, match="row 1: column 'job': 'Zürcher' is not a number"):
        LinearSVM('Number("job")').fit(data[["job"]], data["label"])


def test_a_compressed_table_is_read(tmp_path):
    with gzip.open(tmp_path / "people.csv.gz", "wt") as file:
        file.write("age,label\n1,a\n2,b\n,b\n")
    assert LinearSVM('Number("age")', random_state=0).fit(str(tmp_path / "people.csv.gz")).model_.training["rows"] == 3


def test_inspection_of_an_index_needs_no_data(tmp_path, capsys):
    data = frame()
    path = str(tmp_path / "m.dotadd")
    LinearSVM('(Category("job") * Category("code")).indexed() + Category("job").indexed()').fit(
        data.drop(columns="label"), data["label"]
    ).save(path)
    assert run(["inspect", path, "--largest", "1000"]) == 0
    shown = capsys.readouterr().out
    found = [feature.names[0][0].text for feature in strongest_features(load(path), largest=100)[0]]
    assert set(found) <= {*("job=" + data["job"]), *("job=" + data["job"] + " x code=" + data["code"].astype(str))}
    assert len(set(found)) == len(found) > 20
    assert all(name in shown for name in found)
    assert "slot" not in shown.partition("largest weights")[2]
