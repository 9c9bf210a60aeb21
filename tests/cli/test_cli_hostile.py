"""Labels, names and messages with anything in them: one line a row in files, nothing raw on a terminal."""

import bz2
import csv
import gzip
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotadd import LinearSVM, load
from dotadd.cli import run
from dotadd.errors import DataError, DotaddError, one_line, printable
from dotadd.model.predictions import PlainText, predictions

ESC = "\x1b[31mred\x1b[0m\x07"
LABELS = ["a\tb", "c\nd", "back\\slash", ESC, 'quo"te,d', "\u202egnp.exe", "[bold]x[/bold]", "e\r\nf\u2028g"]
RAW = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # all but the end of a line


def unescaped(text):
    """What Python means by the escapes."""
    return re.sub(
        r"\\(\\|x..|u....|U........|.)", lambda found: found[0].encode().decode("unicode_escape"), text, flags=re.ASCII
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model of eight classes with hostile names, its rows in a file, and their true labels."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    y = np.arange(40) % len(LABELS)
    X = np.eye(len(LABELS))[y] + 0.1 * rng.standard_normal((40, len(LABELS)))
    rows = [f"{k} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) for k, row in zip(y, X, strict=True)]
    (folder / "rows.svm").write_text("\n".join(rows) + "\n")
    records = [{"y": LABELS[k], "x": f"{'abcdefgh'[k] * 4}"} for k in y]
    (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    names = np.array(LABELS)[y]
    LinearSVM(random_state=0).fit(str(folder / "rows.svm"), names).save(folder / "m")
    return folder, names


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    shutil.copytree(trained[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_predict_writes_one_line_a_row_that_can_be_read_back(folder, trained, capsys):
    expected = load("m").predict("rows.svm").tolist()
    assert set(expected) == set(LABELS)
    assert run(["predict", "m", "rows.svm"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == shown.count("\n") == 40
    assert not RAW.search(shown.replace("\t", ""))
    fields = [line.split("\t") for line in shown.splitlines()]
    assert {len(line) for line in fields} == {1 + len(LABELS)}
    assert [unescaped(line[0]) for line in fields] == expected


@given(st.lists(st.text(max_size=8), min_size=2, max_size=2, unique=True))
def test_tab_separated_labels_come_back_whatever_they_are(labels):
    class Two:
        classes, several, two, read_as = np.array(labels, object), None, True, MappingProxyType({})

        def winners(self, score):
            return np.array([0, 1])

    import io

    file = io.StringIO()
    PlainText(Two(), file, labels=True).write(np.array([-1.0, 1.0]))
    lines = file.getvalue().splitlines()
    assert [unescaped(line.split("\t")[0]) for line in lines] == labels


READERS = {
    "p": lambda path: _tsv(path.read_text()),
    "p.tsv": lambda path: _under_header(path.read_text()),
    "p.tab.gz": lambda path: _under_header(gzip.decompress(path.read_bytes()).decode()),
    "p.gz": lambda path: _tsv(gzip.decompress(path.read_bytes()).decode()),
    "P.TXT.BZ2": lambda path: _tsv(bz2.decompress(path.read_bytes()).decode()),
    "p.xz": lambda path: _tsv(lzma.decompress(path.read_bytes()).decode()),
    "p.csv": lambda path: _csv(path.read_bytes().decode()),
    "p.csv.gz": lambda path: _csv(gzip.decompress(path.read_bytes()).decode()),
    "p.jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    "p.json.gz": lambda path: [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()],
    "p.parquet": lambda path: pq.read_table(path).to_pylist(),
    "p.arrow": lambda path: pyarrow.ipc.open_file(path).read_all().to_pylist(),
    "p.feather": lambda path: pyarrow.ipc.open_file(path).read_all().to_pylist(),
}
NAMES = [f"score_{label}" for label in sorted(LABELS)]


def _tsv(text):
    rows = [line.split("\t") for line in text.split("\n")[:-1]]
    with_labels = len(rows[0]) > len(NAMES)
    first = [{"label": unescaped(row[0])} if with_labels else {} for row in rows]
    scores = (map(float, row[with_labels:]) for row in rows)
    return [label | dict(zip(NAMES, score, strict=True)) for label, score in zip(first, scores, strict=True)]


def _under_header(text):
    header, _, body = text.partition("\n")
    found = _tsv(body)
    assert [unescaped(name) for name in header.split("\t")] == list(found[0])
    return found


def _csv(text):
    header, *rows = csv.reader(text.splitlines(keepends=True))
    return [{k: v if k == "label" else float(v) for k, v in zip(header, row, strict=True)} for row in rows]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("scores", [False, True])
def test_the_end_of_the_name_says_how_predictions_are_written(folder, capsys, name, scores):
    assert run(["predict", "m", "rows.svm", "-o", name, *["--scores"] * scores]) == 0
    assert capsys.readouterr() == ("", "")
    model = load("m")
    found = READERS[name](folder / name)
    assert [row.pop("label", None) for row in found] == ([None] * 40 if scores else model.predict("rows.svm").tolist())
    assert {tuple(row) for row in found} == {tuple(NAMES)}
    assert np.array([list(row.values()) for row in found]) == pytest.approx(
        model.decision_function("rows.svm"), rel=1e-8
    )


@pytest.mark.parametrize(
    "name", ["p.npy", "p.pred", "p.arrows", "p.zst", "p.csv.zst", "p.xlsx", "p.parquet.gz", "p.ARROW.xz"]
)
def test_endings_that_cannot_be_written_are_refused_before_anything_is_read(folder, capsys, name):
    assert run(["predict", "m", "none.svm", "-o", name]) == 2
    err = capsys.readouterr().err
    assert name in err
    assert "none.svm" not in err
    assert not (folder / name).exists()


def test_half_a_character_in_a_label_is_refused_or_written_as_an_escape(tmp_path):
    class Half:
        classes, several, two, read_as = np.array(["a", "\ud800"], object), None, True, MappingProxyType({})

        def winners(self, score):
            return np.array([0, 1])

    for name in ("p.tsv", "p.jsonl"):
        with predictions(tmp_path / name, Half()) as file:
            file.write(np.array([-1.0, 1.0]))
        assert "\\ud800" in (tmp_path / name).read_text()
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[1])["label"] == "\ud800"
    with pytest.raises(DotaddError, match="no proper text"), predictions(tmp_path / "p.parquet", Half()):
        pass
    assert not (tmp_path / "p.parquet").exists()


@given(st.text())
def test_printable_text_is_one_line_and_safe_and_stays_as_it_is_where_it_was(text):
    shown = printable(text)
    assert not RAW.search(shown)
    assert len(shown.splitlines()) <= 1
    shown.encode()
    if text.isprintable():
        assert shown == text
    assert printable(shown) == shown


def test_messages_of_several_lines_become_one():
    assert one_line("a\n   b\r\n\tc\n") == "a b c"
    error = DataError("said\nthat\x1b[2J", "na\nme\x1b", 3)
    assert str(error) == "na\\nme\\x1b:3: said that\\x1b[2J"
    assert error.path == "na\nme\x1b"


HOSTILE = "na\nme \x1b]0;owned\x07[red]\u202e"


@pytest.mark.parametrize("terminal", [False, True])
def test_no_command_prints_names_and_labels_raw(folder, capsys, monkeypatch, terminal):
    """Every name that a user can choose, hostile; everything that is told is looked at, also as on a terminal."""
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    data, model, out = Path(f"{HOSTILE}.jsonl"), f"{HOSTILE}.dotadd", f"out {HOSTILE}"
    data.write_bytes(Path("rows.jsonl").read_bytes())
    Path(f"{HOSTILE}.csv").write_text(
        f'y,"{HOSTILE}",b\n' + "".join(f'"{label.replace(chr(34), "")}",{k},{-k}\n' for k, label in enumerate(LABELS)),
        newline="",
    )
    reading = ["--column", "x", "--label", "y"]
    commands = {
        ("train", data, *reading, "-o", model, "--features", "NGrams(1)", "--test", data): 0,
        ("train", data, *reading, "-o", model, "--kernel", "NGrams(1)", "--test", data): 0,
        ("train", data, *reading, "-o", model, "--features", "NGrams(1, bits=8)", "--max-passes", 2): 0,
        ("evaluate", model, data, *reading, "--log", f"{HOSTILE}.json"): 0,
        ("predict", model, data, *reading, "-o", out): 0,
        ("inspect", model): 0,
        ("inspect", model, "--data", data, *reading): 0,
        ("convert", data, f"{HOSTILE}.arrow", *reading): 0,
        ("compare", data, *reading, "-o", f"{HOSTILE}.html", "--features", "NGrams(1, bits=8)", "--max-passes", 3): 0,
        ("train", f"{HOSTILE}.csv", "--label", "y", "-o", f"csv {model}"): 0,
        ("inspect", f"csv {model}", "--data", f"{HOSTILE}.csv", "--label", "y"): 0,
        ("train", f"none {HOSTILE}", "-o", model): 2,
        ("train", data, "--column", HOSTILE, "-o", model): 2,
        ("train", data, *reading, "-o", f"{HOSTILE}/m"): 2,
        ("train", data, *reading, "-o", model, "--features", HOSTILE): 2,
        ("train", data, *reading, "-o", model, "--loss", HOSTILE): 2,
        ("train", data, *reading, "-o", model, f"--{HOSTILE}"): 2,
        ("train", data, *reading, "-o", model, "--memory", HOSTILE): 2,
        ("predict", data, data): 2,
        ("predict", f"none {HOSTILE}", data): 2,
        ("evaluate", model, data, "--column", "x", "--label", "x"): 2,
        ("inspect", model, "--poim", f"{HOSTILE}.svg", "--class", HOSTILE): 2,
        ("compare", data, *reading, "-o", f"{HOSTILE}.docx"): 2,
        (HOSTILE,): 2,
    }
    for command, code in commands.items():
        assert run(list(map(str, command))) == code, command
        out_text, err = capsys.readouterr()
        colours = re.compile("\x1b\\[(0|1|2|3|22|3[0-9]|9[0-7]|;)*m|\x1b\\[(\\?25[lh]|2K|1A)|\r")
        told = colours.sub("", out_text + err) if terminal else out_text + err
        assert not RAW.search(told), (command, RAW.search(told), told)
        assert "owned" in told or command[0] in ("predict", "evaluate", "inspect"), command
        if code == 2:
            assert out_text == ""
            assert terminal or len(err.splitlines()) == 1, command


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_labels_that_the_screen_has_no_letters_for_are_escaped(folder, encoding):
    (folder / "u.jsonl").write_text('{"y": "caf\\u00e9 \\u4e2d", "x": "aa"}\n{"y": "b", "x": "bb"}\n')
    commands = [
        "train u.jsonl --label y --features NGrams(1) -o m2",
        "evaluate m2 u.jsonl --label y",
        "predict m2 u.jsonl",
    ]
    program = "import sys; from dotadd.cli import run\n"
    program += "for command in sys.argv[1:]:\n"
    program += "    print('--')\n"
    program += "    assert run([*command.split(), '--column', 'x']) == 0, command\n"
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", program, *commands], capture_output=True, env=environment, check=True)
    predicted = done.stdout.decode(encoding).rpartition("--\n")[2]
    assert unescaped(predicted).splitlines()[0].split("\t")[0] == "caf\u00e9 \u4e2d"
