"""Files as they come: folders, lines of text and standard input into the commands, predictions out of them with what
they are about, and no option that the model could have remembered."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from dotadd import LinearSVM, load
from dotadd._util import standard_input
from dotadd.cli import run
from dotadd.errors import DotaddError
from dotadd.model.file import Classifier
from dotadd.sources import open as open_source

PHI = ["--features", "WordNGrams(1).tfidf()"]
TEXTS = [
    ("buy pills now, cheap", "spam"),
    ("see you at lunch", "ham"),
    ("cheap pills", "spam"),
    ("lunch, at noon?", "ham"),
]
ROWS = [(f"id {k}", f"{text} {k % 7}", label, 3.5 * k) for k, (text, label) in enumerate(TEXTS * 10)]


def fed(monkeypatch, data: bytes) -> None:
    """Standard input with this in it."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The same mails in every form."""
    monkeypatch.chdir(tmp_path)
    for name, text, label, _ in ROWS:
        Path("mails", label).mkdir(parents=True, exist_ok=True)
        Path("mails", label, f"{name}.txt").write_text(text)
        Path("inbox").mkdir(exist_ok=True)
        Path("inbox", f"{name}.txt").write_text(text)
    Path("lines.txt").write_text("".join(f"__label__{label} {text}\n" for _, text, label, _ in ROWS))
    Path("plain.txt").write_text("".join(f"{text}\n" for _, text, _, _ in ROWS))
    with open("mails.csv", "w", newline="") as file:
        csv.writer(file).writerows([("who", "text", "label", "size"), *ROWS])
    with open("bare.csv", "w", newline="") as file:
        csv.writer(file).writerows(ROWS)
    records = [dict(zip(("who", "text", "label", "size"), row, strict=True)) for row in ROWS]
    Path("mails.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    pq.write_table(pa.Table.from_pylist(records), "mails.parquet")
    Path("mails.fa").write_text("".join(f">{row[0].replace(' ', '_')} {row[2]}\nACGT\n" for row in ROWS))
    return tmp_path


def predicted(model: str, texts: list[str]) -> list[tuple[str, float]]:
    """Label and score of each text, by the model itself."""
    found = load(model)
    return list(zip(found.predict(texts).tolist(), found.decision_function(texts).tolist(), strict=True))


def assert_predicted(rows: list[list[str]], expected: list[tuple[str, float]]) -> None:
    assert [row[-2] for row in rows] == [label for label, _ in expected]
    assert np.array([float(row[-1]) for row in rows]) == pytest.approx([score for _, score in expected], rel=1e-6)


def shown(capsys) -> list[list[str]]:
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


# ---- folders and lines


def test_a_folder_trains_as_its_texts_do_and_predictions_tell_which_file(folder, capsys):
    assert run(["train", "mails", "-o", "m", "-q", *PHI]) == 0
    paths = sorted(f"{label}/{name}.txt" for name, _, label, _ in ROWS)
    texts = [Path("mails", path).read_text() for path in paths]
    svm = LinearSVM("WordNGrams(1).tfidf()", random_state=0).fit(texts, [path.split("/")[0] for path in paths])
    assert load("m").decision_function(texts) == pytest.approx(svm.decision_function(texts), abs=1e-6)
    assert run(["evaluate", "m", "mails"]) == 0
    assert "accuracy  1.0000" in capsys.readouterr().out
    assert run(["predict", "m", "inbox"]) == 0
    rows, names = shown(capsys), sorted(f"{row[0]}.txt" for row in ROWS)
    assert [row[0] for row in rows] == names
    assert_predicted(rows, predicted("m", [Path("inbox", name).read_text() for name in names]))
    assert run(["predict", "m", "inbox", "--scores"]) == 0
    assert {len(row) for row in shown(capsys)} == {1}
    assert run(["predict", "m", "inbox/id 0.txt"]) == 0
    assert [row[:2] for row in shown(capsys)] == [["id 0.txt", "spam"]]


def test_the_nth_prediction_is_about_the_nth_line(folder, capsys):
    assert run(["train", "lines.txt", "-o", "m", "-q", *PHI]) == 0
    assert run(["evaluate", "m", "lines.txt"]) == 0
    assert "accuracy  1.0000" in capsys.readouterr().out
    for text in (["cheap, pills", "", "a\tb", "> quoted", "5"], ["{", "1 2:3"]):
        for name in ("new.txt", "new"):
            Path(name).write_text("\n".join(text))
            assert run(["predict", "m", name]) == 0
            assert_predicted(shown(capsys), predicted("m", text))


# ---- standard input


@pytest.mark.parametrize("name", ["lines.txt", "mails.csv", "mails.jsonl", "mails.parquet"])
def test_standard_input_is_read_as_the_file_would_be(folder, capsys, monkeypatch, name):
    data = Path(name).read_bytes()
    column = [] if name == "lines.txt" else ["--column", "text"]
    assert run(["train", name, "-o", "m", "-q", *PHI, *column]) == 0
    for packed in (data, gzip.compress(data)) if name != "mails.parquet" else (data,):
        fed(monkeypatch, packed)
        assert run(["train", "-", "-o", "n", "-q", *PHI, *column]) == 0
        assert np.array_equal(load("m").w, load("n").w)
        fed(monkeypatch, packed)
        assert run(["evaluate", "n", "-"]) == 0
        assert "accuracy  1.0000" in capsys.readouterr().out
        fed(monkeypatch, packed)
        assert run(["predict", "n", "-"]) == 0
        assert_predicted(shown(capsys), predicted("m", [row[1] for row in ROWS]))


def test_standard_input_has_the_format_of_the_models_data_unless_it_says_otherwise(folder, capsys, monkeypatch):
    texts = ["cheap, pills", "see, you"]
    for data in ("mails", "lines.txt"):
        assert run(["train", data, "-o", "m", "-q", *PHI]) == 0
        fed(monkeypatch, "\n".join(texts).encode())
        assert run(["predict", "m", "-"]) == 0
        assert_predicted(shown(capsys), predicted("m", texts))
    fed(monkeypatch, Path("mails.parquet").read_bytes())
    assert run(["predict", "m", "-", "--column", "text"]) == 0
    assert len(shown(capsys)) == len(ROWS)
    fed(monkeypatch, b"text,who\ncheap pills,me\n")
    assert run(["predict", "m", "-", "--format", "csv", "--column", "text"]) == 0
    assert_predicted(shown(capsys), predicted("m", ["cheap pills"]))


def test_plain_lines_for_a_model_of_a_column_are_told_how_to_be_read(folder, capsys, monkeypatch):
    assert run(["train", "mails.csv", "-o", "m", "-q", *PHI, "--column", "text"]) == 0
    fed(monkeypatch, b"cheap, pills\nsee you\n")
    assert run(["predict", "m", "-"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "--format txt" in told
    fed(monkeypatch, b"cheap, pills\nsee you\n")
    assert run(["predict", "m", "-", "--format", "txt"]) == 0
    assert_predicted(shown(capsys), predicted("m", ["cheap, pills", "see you"]))


@pytest.mark.parametrize("small", [10, 1 << 24])
def test_standard_input_is_private_and_gone_afterwards(folder, monkeypatch, small):
    monkeypatch.setattr(standard_input, "SMALL", small)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    fed(monkeypatch, Path("lines.txt").read_bytes())
    path = Path(standard_input.standard_input())
    assert path.read_bytes() == Path("lines.txt").read_bytes()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.parent.parent == (folder if small == 10 else Path(standard_input.IN_MEMORY))
    assert standard_input.standard_input() == str(path)
    standard_input.forget()
    assert not path.parent.exists()
    fed(monkeypatch, b"__label__a x\ny\n")
    assert run(["train", "-", "-o", "m", *PHI]) == 2
    assert standard_input._folder is None
    assert not list(folder.glob("dotadd-*"))


def test_standard_input_that_is_no_text_is_moved_to_disk_when_it_grows(folder, monkeypatch, capsys):
    run(["train", "lines.txt", "-o", "m", "-q", *PHI])
    data = Path("mails.parquet").read_bytes()
    small = data.index(b"\n") + 101  # so that it is in memory when its format is told
    assert len(data) > small
    monkeypatch.setattr(standard_input, "SMALL", small)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    places = []
    real = standard_input.Arriving.put_all

    def noted(self):
        places.append(Path(self.path).parent.parent)
        real(self)
        places.append(Path(self.path).parent.parent)

    monkeypatch.setattr(standard_input.Arriving, "put_all", noted)
    monkeypatch.setattr(sys, "stdin", Piped(Trickle(data, [100])))
    assert run(["predict", "m", "-", "--column", "text"]) == 0
    assert len(shown(capsys)) == len(ROWS)
    assert places == [Path(standard_input.IN_MEMORY), folder]
    assert not list(folder.glob("dotadd-*"))


def test_what_a_killed_command_has_left_is_removed_and_what_is_in_use_is_not(folder, monkeypatch):
    monkeypatch.setattr(standard_input, "IN_MEMORY", str(folder))
    run(["train", "lines.txt", "-o", "m", "-q", *PHI])
    code = (
        "import sys; from dotadd._util import standard_input as s; s.IN_MEMORY = sys.argv[1];"
        "s.standard_input(); print(flush=True); import time; time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdin.write(b"secret")
        other.stdin.close()
        other.stdout.readline()
        (left,) = folder.glob("dotadd-*")
        for killed in (False, True):
            if killed:
                other.kill()
                other.wait()
            fed(monkeypatch, b"cheap pills\n")
            assert run(["predict", "m", "-"]) == 0
            assert list(folder.glob("dotadd-*")) == ([] if killed else [left])
            assert killed or (left / standard_input.NAME).read_bytes() == b"secret"


def test_training_on_standard_input_that_takes_more_than_memory_leaves_nothing(folder, monkeypatch, capsys):
    monkeypatch.setattr(standard_input, "SMALL", 10)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    fed(monkeypatch, Path("lines.txt").read_bytes())
    assert run(["train", "-", "-o", "m", "--memory", "1kB", *PHI]) == 0
    err = capsys.readouterr().err
    assert "dotadd: standard input takes more than 1 kB of memory" in err
    assert "converting standard input, " in err
    assert not list(folder.glob("dotadd-*"))
    assert load("m").predict(["cheap pills", "lunch at noon"]).tolist() == ["spam", "ham"]


@pytest.mark.parametrize(
    ("arguments", "data", "message"),
    [
        ("predict m -", b"", "standard input: is empty"),
        ("predict m - plain.txt", b"x", "standard input (-) is read alone"),
        ("predict m - --workers 2 -o out", b"x", "workers read files, and cannot read standard input"),
        ("predict m - --format csv --column a", b"a,b\nx,y,z\n", "standard input:2: expected 2 fields, found 3"),
        ("train - -o n", b"what is this\n", "standard input: has no known format"),
        ("train - -o n", b"1 1:2 3:x\n", "standard input:1:9: value 'x' is not a number"),
    ],
)
def test_what_is_wrong_with_standard_input_is_one_line(folder, capsys, monkeypatch, arguments, data, message):
    run(["train", "lines.txt", "-o", "m", "-q", *PHI])
    capsys.readouterr()
    fed(monkeypatch, data)
    assert run(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert "/" not in err
    assert not Path("n").exists()


def test_a_terminal_is_not_waited_for(folder, capsys, monkeypatch):
    run(["train", "lines.txt", "-o", "m", "-q", *PHI])
    pair = os.openpty()
    with open(pair[1]) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert run(["predict", "m", "-"]) == 2
    assert "standard input: is a terminal; pipe or redirect" in capsys.readouterr().err
    os.close(pair[0])


def test_a_dash_reaches_a_command_of_its_own_process(folder):
    run(["train", "lines.txt", "-o", "m", "-q", *PHI])
    done = subprocess.run(
        [sys.executable, "-m", "dotadd", "predict", "m", "-"], input=b"cheap pills\n", capture_output=True, check=True
    )
    assert done.stdout.startswith(b"spam\t")


class Trickle:
    """A pipe into which pieces of these sizes are written, one after the other."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data, self.sizes = data, sizes * (1 + len(data))

    def read1(self, _: int = -1) -> bytes:
        size = self.sizes.pop(0)
        found, self.data = self.data[:size], self.data[size:]
        return found

    read = read1

    def fileno(self) -> int:
        raise io.UnsupportedOperation


class Piped:
    """Standard input."""

    def __init__(self, buffer: Trickle) -> None:
        self.buffer = buffer

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    "name", ["plain.txt", "lines.txt", "mails.csv", "bare.csv", "mails.tsv", "mails.jsonl", "x.svm"]
)
@pytest.mark.parametrize("sizes", [[1], [7], [30, 1], [1000], [1 << 20]])
def test_lines_are_answered_alike_however_they_come(folder, capsys, monkeypatch, name, sizes):
    rows = list(csv.reader(Path("mails.csv").read_text().splitlines()))
    Path("mails.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    rows[5][1] += ', "quoted"\nwith a line break'
    with open("mails.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    Path("x.svm").write_text("".join(f"{k % 2} {1 + k % 2}:1 {3 + k % 5}:0.5\n" for k in range(40)))
    options = {"x.svm": [], "bare.csv": ["--column", "1", "--label", "2", *PHI]}.get(name, PHI)
    options = [*options, "--column", "text"] if name.startswith("mails") else options
    assert run(["train", "lines.txt" if name == "plain.txt" else name, "-o", "m", "-q", *options]) == 0
    ids = {"mails.csv": ["--id", "who"], "bare.csv": ["--id", "0"]}.get(name, [])
    capsys.readouterr()
    assert run(["predict", "m", name, *ids]) == 0
    expected = capsys.readouterr().out
    data = Path(name).read_bytes()
    for text in (data, data.removesuffix(b"\n")):
        monkeypatch.setattr(sys, "stdin", Piped(Trickle(text, sizes)))
        assert run(["predict", "m", "-", *ids]) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("sizes", [[1], [9], [1000]])
@pytest.mark.parametrize(
    ("name", "bad"), [("mails.csv", "x,y\n"), ("mails.jsonl", "{\n"), ("x.svm", "1 1:x\n"), ("lines.txt", "a\0b\n")]
)
def test_complaints_name_the_line_of_all_that_came(folder, capsys, monkeypatch, name, bad, sizes):
    Path("x.svm").write_text("".join(f"{k % 2} {1 + k % 2}:1\n" for k in range(40)))
    options = {"x.svm": [], "lines.txt": PHI}.get(name, [*PHI, "--column", "text"])
    assert run(["train", name, "-o", "m", "-q", *options]) == 0
    lines = Path(name).read_text().splitlines(keepends=True)
    lines[20] = bad
    Path(name).write_text("".join(lines))
    for skipping in ([], ["--on-bad-row", "skip"]):
        capsys.readouterr()
        codes = [run(["predict", "m", name, *skipping])]
        out, said = capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", Piped(Trickle("".join(lines).encode(), sizes)))
        codes.append(run(["predict", "m", "-", *skipping]))
        found, told = capsys.readouterr()
        assert told.replace("standard input", name) == said
        assert f"{name}:21:" in said
        assert codes == ([0, 0] if skipping else [2, 2])
        assert found == out if skipping else found.startswith(out)


def test_an_answer_comes_before_the_next_question(folder):
    assert run(["train", "lines.txt", "-o", "m", "-q", *PHI]) == 0
    command = [sys.executable, "-m", "dotadd", "predict", "m", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for text, label in (("cheap pills", b"spam"), ("at noon", b"ham")) * 2:
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().split(b"\t")[0] == label  # or it would wait for ever
        process.stdin.close()
        assert process.wait() == 0


# ---- predictions, with what they are about

OUTPUTS = {
    "p.csv": lambda path: list(csv.DictReader(path.open(newline=""))),
    "p.tsv": lambda path: [
        dict(zip(path.read_text().split("\n")[0].split("\t"), line.split("\t"), strict=True))
        for line in path.read_text().split("\n")[1:-1]
    ],
    "p.jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    "p.parquet": lambda path: pq.read_table(path).to_pylist(),
    "p.arrow": lambda path: pyarrow.ipc.open_file(path).read_all().to_pylist(),
}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("data", ["mails.csv", "mails.jsonl", "mails.parquet"])
def test_columns_are_carried_along_row_by_row(folder, data, output):
    assert run(["train", data, "--column", "text", "-o", "m", "-q", *PHI]) == 0
    assert run(["predict", "m", data, "--id", "who", "--id", "label", "--id", "size", "-o", output]) == 0
    rows = OUTPUTS[output](folder / output)
    assert {tuple(row) for row in rows} == {("who", "data_label", "size", "label", "score")}
    assert [(row["who"], row["data_label"]) for row in rows] == [(row[0], row[2]) for row in ROWS]
    assert [float(row["size"]) for row in rows] == [row[3] for row in ROWS]
    assert_predicted([[row["label"], row["score"]] for row in rows], predicted("m", [row[1] for row in ROWS]))


@pytest.mark.parametrize("data", ["mails.csv", "mails.jsonl", "mails.parquet"])
def test_ids_stay_with_their_rows_where_others_are_left_out(folder, data):
    table = pa.Table.from_pylist(
        [{"who": f"w{k}", "x": None if k % 3 == 1 else float(k), "y": k % 2} for k in range(9)]
    )
    if data.endswith("csv"):
        Path(data).write_text("who,x,y\n" + "".join(f"w{k},{'' if k % 3 == 1 else k},{k % 2}\n" for k in range(9)))
    elif data.endswith("jsonl"):
        Path(data).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        pq.write_table(table, data)
    for nbytes in (1, 40, 1 << 20):
        source = open_source(data, column="x", label="y", ids=["who"], on_bad_row="skip")
        chunks = list(source.chunks(nbytes))
        assert [name for chunk in chunks for name in chunk.ids.column("who").to_pylist()] == [
            f"w{k}" for k in range(9) if k % 3 != 1
        ]
        whole = source.load()
        part = whole.take(np.array([1, 3])).slice(1, 2)
        assert (part.ids.column("who").to_pylist(), part.batch.values.tolist()) == (["w5"], [[5.0]])


def test_ids_may_be_missing_and_of_any_type(folder):
    Path("x.jsonl").write_text(
        '{"t": "a", "i": null}\n{"t": "b", "i": 7}\n{"t": "c", "i": [1, {"q": 2}]}\n{"t": "d"}\n'
    )
    chunk = open_source("x.jsonl", column="t", ids=["i"]).load()
    assert chunk.ids.column("i").to_pylist() == [None, "7", '[1, {"q": 2}]', None]
    when = pa.array([1, None, 3], pa.timestamp("s"))
    pq.write_table(pa.table({"t": ["a", "b", "c"], "when": when, "tags": [["x"], [], None]}), "x.parquet")
    assert run(["train", "lines.txt", "-o", "m", "-q", *PHI]) == 0
    for name in OUTPUTS:
        assert run(["predict", "m", "x.parquet", "--column", "t", "--id", "when", "--id", "tags", "-o", name]) == 0
        assert len(OUTPUTS[name](folder / name)) == 3
    assert pq.read_table("p.parquet").column("when").to_pylist() == when.to_pylist()
    assert OUTPUTS["p.csv"](folder / "p.csv")[1]["when"] == ""


def test_sequences_have_names_and_columns_without_a_header_numbers(folder, capsys):
    assert run(["train", "mails.fa", "-o", "d", "-q", "--features", "Spectrum(2)"]) == 0
    assert run(["predict", "d", "mails.fa", "--id", "name"]) == 0
    assert [row[0] for row in shown(capsys)] == [row[0].replace(" ", "_") for row in ROWS]
    assert run(["predict", "d", "mails.fa"]) == 0
    assert {len(row) for row in shown(capsys)} == {2}
    assert run(["train", "bare.csv", "-o", "b", "-q", "--column", "1", "--label", "2", *PHI]) == 0
    assert run(["predict", "b", "bare.csv", "--id", "0", "-o", "p.csv"]) == 0
    assert [row["0"] for row in OUTPUTS["p.csv"](folder / "p.csv")] == [row[0] for row in ROWS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("m mails.csv --id nobody", "there is no column 'nobody'; the columns are 'who', 'text', 'label', 'size'"),
        ("m mails.jsonl --id nobody", "there is no column 'nobody'; the columns are 'who', 'text', 'label', 'size'"),
        ("m mails.parquet --id nobody", "there is no column 'nobody'; the columns are 'who', 'text', 'label', 'size'"),
        ("m bare.csv --no-header --column 1 --id 9", "there is no column 9; there are 4, counted from 0"),
        ("m mails.fa --id who", "there is no column 'who'; sequences have the column 'name'"),
        ("m inbox --id who", "there is no column 'who'; a folder has the column 'path'"),
        ("m plain.txt --id who", "ids= (--id) has no meaning for txt files, which have no columns"),
    ],
)
def test_a_column_that_is_not_there_is_refused_and_nothing_is_written(folder, capsys, arguments, message):
    assert run(["train", "mails.csv", "--column", "text", "-o", "m", "-q", *PHI]) == 0
    for output in ("p.csv", "p.parquet"):
        before = sorted(os.listdir())
        assert run(["predict", *arguments.split(), "-o", output]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
        assert sorted(os.listdir()) == before


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_interrupt_leaves_nothing_half_written(folder, monkeypatch, output):
    assert run(["train", "mails.csv", "--column", "text", "-o", "m", "-q", *PHI]) == 0
    real = Classifier.decision_chunks

    def interrupted(self, *arguments, **options):
        yield from real(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Classifier, "decision_chunks", interrupted)
    before = sorted(os.listdir())
    assert run(["predict", "m", "mails.csv", "--id", "who", "-o", output]) == 130
    assert sorted(os.listdir()) == before


# ---- what a model remembers


def test_a_model_needs_no_options_to_read_what_is_like_its_data(folder, capsys):
    def right(*arguments: str) -> bool:
        code = run(["evaluate", *arguments])
        return code == 0 and "accuracy  1.0000" in capsys.readouterr().out

    assert run(["train", "bare.csv", "--no-header", "--column", "1", "--label", "2", "-o", "m", "-q", *PHI]) == 0
    assert right("m", "bare.csv")
    assert run(["train", "mails.parquet", "--column", "text", "--label", "label", "-o", "m", "-q", *PHI]) == 0
    assert all(right("m", name) for name in ("mails.parquet", "mails.csv", "mails.jsonl"))

    rows = [(0.0, 1.0), (1.0, 0.0)] * 6
    Path("x.svm").write_text("".join(f"{int(a)} 0:{a} 1:{b}\n" for a, b in rows))
    assert run(["train", "x.svm", "--zero-based", "-o", "m", "-q"]) == 0
    assert load("m").read_as == {"format": "libsvm", "zero_based": True}
    assert right("m", "x.svm")
    Path("x").write_text(Path("x.svm").read_text())
    assert right("m", "x")
    Path("x.csv").write_text("a,b,label\n" + "".join(f"{a},{b},{int(a)}\n" for a, b in rows))
    assert right("m", "x.csv")  # of which no option of the other format has a meaning

    Path("x.fa").write_text("".join(f">r{k} class={k % 2} end\n{'ACGT' if k % 2 else 'TTTT'}\n" for k in range(12)))
    assert run(["train", "x.fa", "--label", "class", "-o", "m", "-q", "--features", "Spectrum(2)"]) == 0
    assert right("m", "x.fa")
    Path("new.fa").write_text(">r without a class\nACGT\n")
    assert run(["predict", "m", "new.fa"]) == 0
    assert [row[0] for row in shown(capsys)] == ["1"]

    x = np.random.default_rng(0).normal(size=(20, 6))
    np.savez("x.npz", pixels=x, other=x[:3], sex=(x[:, 0] > 0).astype(int))
    arguments = ["--column", "pixels", "--label", "sex", "--size", "2x3", "-C", "100"]
    assert run(["train", "x.npz", "-o", "m", "-q", *arguments]) == 0
    assert right("m", "x.npz")
    np.save("x.npy", x)
    np.save("images.npy", x.reshape(-1, 2, 3))
    assert load("m").predict("x.npy").tolist() == load("m").predict("images.npy").tolist() == (x[:, 0] > 0).tolist()
    assert run(["predict", "m", "x.npz", "--column", "other"]) == 0  # what is given goes before what is remembered
    assert len(shown(capsys)) == 3


def test_what_is_remembered_is_plain_json_and_what_is_damaged_is_refused(folder):
    svm = LinearSVM().fit(open_source(_wide(folder), dtype=np.float64))
    svm.model_.save("m")
    assert load("m").read_as == {"format": "libsvm", "dtype": "float64"}
    again = open_source("wide.svm", read_as=load("m").read_as)
    assert again.load().batch.values.dtype == np.float64
    for damaged in ({"format": {"a": 1}}, {"format": None}):
        svm.model_.read_as = damaged
        svm.model_.save("m")
        with pytest.raises(DotaddError, match=r"header is damaged .*how its data was read"):
            load("m")


def _wide(folder: Path) -> Path:
    (folder / "wide.svm").write_text("1 1:0.1 2:1\n-1 1:0.2 2:3\n")
    return folder / "wide.svm"


# ---- one rule for the label


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "arrow", "parquet"])
@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_a_column_called_label_is_the_label_of_every_table(tmp_path, ending, kind):
    values = [1.5, 2.5] if kind == "numbers" else ["ab", "cd"]
    table = pa.table({"x": values, "label": [0, 1]})
    path = tmp_path / f"x.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending == "arrow":
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        mark = "," if ending == "csv" else "\t"
        rows = [("x", "label"), *zip(values, (0, 1), strict=True)]
        path.write_text("".join(mark.join(map(str, row)) + "\n" for row in rows))
    source = open_source(path)
    chunk = source.load()
    assert chunk.y.tolist() == [0, 1]
    assert source.names().features == ["x"]
    assert open_source(path, label="x", column="label").load().y.tolist() == values
