"""Arrow copies of text: the same examples, made once, used again only for the same text read in the same way."""

from __future__ import annotations

import dataclasses
import gzip
import os
import pickle
import random
import re
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from naive_genome import fasta, gff3, random_transcripts, with_signals
from naive_sources import rows_of

from dotadd import Windows
from dotadd.errors import DataError, DotaddError
from dotadd.sources import cached, text
from dotadd.sources import open as open_source
from dotadd.sources.around import Kept
from dotadd.sources.base import Source
from dotadd.sources.cached import CachedFile, as_arrow, remove
from dotadd.sources.convert import convert
from dotadd.sources.files import FileSource
from dotadd.sources.identity import Watched

TEXTS = {
    "x.svm": "1 1:2 3:4\n\n-1 2:1 # c\n",
    "x.csv": "a,b,label,w\n1,2,0,1\n3,4,1,0.5\n",
    "words.csv": "t,label\nhello,spam\nw\u00f6rld,ham\n",
    "x.tsv": "a\tlabel\n1\t2\n3\t4\n",
    "x.jsonl": '{"a": 1, "label": "u"}\n\n{"a": 3, "label": "v"}\n',
    "x.fa": ">a 1\nACGT\n>b 2\nCCAA\n",
    "small.fa": ">a 1\nacgt\n>b 2\nCCAA\n",
    "x.svm.gz": gzip.compress(b"1 1:2 3:4\n-1 2:1\n"),
}


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def all_of(source: Source) -> list:
    """Everything that a source tells of its rows, and of those it left out."""
    told = []
    for chunk in source.chunks(200):
        for row, example in enumerate(rows_of(chunk.batch)):
            label = None if chunk.y is None else chunk.y[row]
            weight = None if chunk.weight is None else chunk.weight[row]
            told.append((example, label, weight, chunk.first_row + row, str(chunk.error(row, "no"))))
    return [told, source.columns, source.skipped.count, source.skipped.first, source.name]


@pytest.mark.parametrize("name", TEXTS)
def test_a_copy_tells_what_the_text_does_and_is_made_once(tmp_path, name):
    path = write(tmp_path / name, TEXTS[name])
    options = {"weight": "w"} if name == "x.csv" else {}
    lines: list[str] = []
    for number in range(2):
        source = open_source(path, **options)
        fast, copies = as_arrow(source, announce=lines.append)
        assert isinstance(fast, CachedFile)
        assert len(copies) == 1
        assert re.fullmatch(rf"{re.escape(name)}{r'.[0-9a-f]{8}' if options else ''}.dotadd.arrow", copies[0].name)
        assert all_of(fast) == all_of(fast) == all_of(open_source(path, **options))
        assert len(lines) == number + 1
    assert lines[0].startswith(f"converting {path}, {path.stat().st_size} bytes, to {copies[0]};")
    assert lines[1] == f"reading {copies[0]} in place of {path}"
    assert {file.name for file in tmp_path.iterdir()} == {name, copies[0].name}
    remove(copies)
    remove(copies)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_rows_that_were_left_out_are_told_of_each_time(tmp_path):
    path = write(tmp_path / "x.svm", "1 1:1\nbad\n-1 2:1\nworse\n")
    for _ in range(2):
        source = open_source(path, on_bad_row="skip")
        fast, _ = as_arrow(source)
        for _ in range(2):
            assert len(fast.load()) == 2
            assert source.skipped.count == fast.skipped.count == 2
            assert source.skipped.first == f"{path}:2:1: label 'bad' is not a number"


def made_of(source: Source) -> tuple[list[str], list]:
    """What is announced, and what the fast source tells."""
    lines: list[str] = []
    fast, _ = as_arrow(source, announce=lines.append)
    return lines, all_of(fast)


def test_a_text_that_has_changed_is_converted_again(tmp_path):
    path = write(tmp_path / "x.svm", "1 1:2\n-1 2:1\n")
    made_of(open_source(path))
    write(path, "1 1:2\n-1 3:1\n")  # as long as before
    lines, told = made_of(open_source(path))
    assert f"({path} has changed)" in lines[0]
    assert told == all_of(open_source(path))
    os.utime(path, ns=(1, 1))
    assert "has changed" in made_of(open_source(path))[0][0]
    assert made_of(open_source(path))[0][0].startswith("reading")


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("x.svm", {}, {"zero_based": True}),
        ("x.svm", {}, {"dtype": np.float64}),
        ("x.svm", {}, {"on_bad_row": "skip"}),
        ("x.csv", {"label": "label"}, {"label": "a"}),
        ("x.csv", {}, {"column": "a"}),
        ("x.csv", {"weight": "w"}, {"weight": "a"}),
        ("x.fa", {}, {"labels": "names"}),
    ],
)
def test_each_way_of_reading_a_text_has_a_copy_of_its_own(tmp_path, monkeypatch, name, first, second):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "names", "a 5\nb 6\n")
    path = write(tmp_path / name, TEXTS[name])
    for begin in ("converting", "reading"):
        for options in (first, second):
            lines, told = made_of(open_source(path, **options))
            assert lines[0].startswith(begin)
            assert told == all_of(open_source(path, **options))


def test_a_text_read_in_another_format_is_converted_again(tmp_path):
    path = write(tmp_path / "x.csv", "1\t2\n3\t4\n")
    made_of(open_source(path, format="csv", column="0", label="0"))
    lines, told = made_of(open_source(path, format="tsv", column="0", label="0"))
    assert "(other options were given then)" in lines[0]
    assert told == all_of(open_source(path, format="tsv", column="0", label="0"))


def test_labels_in_a_second_file_count(tmp_path):
    path, names = write(tmp_path / "x.fa", ">a\nACGT\n>b\nCC\n"), write(tmp_path / "names", "a 1\nb 2\n")
    made_of(open_source(path, labels=names))
    write(names, "a 1\nb 3\n")
    assert "has changed" in made_of(open_source(path, labels=names))[0][0]


@pytest.mark.parametrize("damage", ["cut off", "emptied", "foreign", "version", "no end"])
def test_a_damaged_copy_is_made_again(tmp_path, monkeypatch, damage):
    path = write(tmp_path / "x.svm", TEXTS["x.svm"])
    (copy,) = as_arrow(open_source(path))[1]
    whole = copy.read_bytes()
    if damage == "foreign":
        convert(open_source(np.eye(3)), copy)
    elif damage == "version":
        monkeypatch.setattr(cached, "VERSION", cached.VERSION + 1)
    elif damage == "no end":
        with pa.ipc.open_file(copy) as old, pa.ipc.new_file(str(tmp_path / "n"), old.schema) as new:
            new.write_batch(old.get_batch(0))
        os.replace(tmp_path / "n", copy)
    else:
        copy.write_bytes(whole[: len(whole) // 2] if damage == "cut off" else b"")
    lines, told = made_of(open_source(path))
    assert ("is of another version" if damage == "version" else "is damaged") in lines[0]
    assert told == all_of(open_source(path))


def test_many_files_have_a_copy_each_and_empty_ones_need_none(tmp_path):
    for k in range(3):
        write(tmp_path / f"{k}.svm", f"{k} {k + 1}:1\nbad\n")
    write(tmp_path / "1b.svm", "\n")
    convert(open_source(tmp_path / "2.svm", on_bad_row="skip"), tmp_path / "2.arrow")
    paths = [tmp_path / name for name in ("0.svm", "1.svm", "1b.svm", "2.svm", "2.arrow")]
    for begin in ("converting", "reading"):
        source = open_source(paths, on_bad_row="skip")
        lines: list[str] = []
        shares: list[float] = []
        fast, copies = as_arrow(source, announce=lines.append, on_progress=shares.append)
        assert [re.sub(r"\.[0-9a-f]{8}\.", ".", copy.name) for copy in copies] == [
            f"{k}.svm.dotadd.arrow" for k in range(3)
        ]
        assert lines[0].startswith(begin)
        assert len(lines) <= 2
        assert all_of(fast) == all_of(open_source(paths, on_bad_row="skip"))
        assert fast.skipped.count == 3
        assert shares == sorted(shares)
        assert shares[-1] == 1
    # Copies are not data of their own.
    assert len(open_source(str(tmp_path / "*"), on_bad_row="skip").files()) == 5
    assert len(open_source(str(tmp_path / "*.dotadd.arrow")).files()) == 3


def test_labels_beside_a_text_stay_beside_its_copy(tmp_path):
    path = write(tmp_path / "x.svm", TEXTS["x.svm"])
    fast, copies = as_arrow(open_source(path, ["u", "v"], [1.0, 2.0]))
    assert len(copies) == 1
    assert all_of(fast) == all_of(open_source(path, ["u", "v"], [1.0, 2.0]))


def test_kept_rows_are_read_from_the_copy(tmp_path):
    path = write(tmp_path / "x.svm", TEXTS["x.svm"])
    kept = Kept(open_source(path))
    fast, copies = as_arrow(kept)
    assert fast is kept
    assert len(copies) == 1
    assert kept.files() == [str(copies[0])]
    assert all_of(kept) == all_of(open_source(path))


@pytest.mark.parametrize("kind", ["arrow", "parquet", "npy", "memory"])
def test_what_is_quick_to_read_has_no_copy(tmp_path, kind):
    x = np.arange(6.0).reshape(3, 2)
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, x)
    elif kind != "memory":
        convert(open_source(x), path)
    fast, copies = as_arrow(open_source(x if kind == "memory" else path))
    assert copies == []
    assert len(list(tmp_path.iterdir())) <= 1
    assert fast.load().batch.values.tolist() == x.tolist()


@pytest.fixture
def genome(tmp_path):
    rng = random.Random(1)
    made = {f"chr{k}": "".join(rng.choices("ACGT", k=3000)) for k in range(2)}
    transcripts = random_transcripts(rng, made, 20)
    write(tmp_path / "g.fa", fasta(with_signals(made, transcripts)))
    write(tmp_path / "g.gff3", gff3(transcripts, rng))
    return tmp_path / "g.fa", tmp_path / "g.gff3"


def test_windows_of_a_genome_have_a_copy_for_genome_annotation_and_parameters(genome):
    windows = Windows(*genome, signal="acceptor", length=20, places=False)
    lines, told = made_of(windows)
    assert lines[0].startswith(f"converting {genome[0]}, ")
    assert told[0] == all_of(windows)[0]
    assert made_of(Windows(*genome, signal="acceptor", length=20, places=False))[0][0].startswith("reading")
    assert made_of(Windows(*genome, signal="donor", length=20, places=False))[0][0].startswith("converting")
    assert made_of(Windows(*genome, signal="acceptor", length=20, places=False))[0][0].startswith("reading")
    with open(genome[1], "a") as file:
        file.write("# one more line\n")
    assert "has changed" in made_of(Windows(*genome, signal="donor", length=20, places=False))[0][0]
    made_of(open_source(genome[0], format="fasta", labels=write(genome[0].with_name("l"), "chr0 1\nchr1 2\n")))
    assert made_of(Windows(*genome, signal="donor", length=20, places=False))[0][0].startswith("reading")


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path, monkeypatch):
    path = write(tmp_path / "x.svm", TEXTS["x.svm"])
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DotaddError, match=r"x\.svm\.dotadd\.arrow: cannot be written \(.*`dotadd convert`") as caught:
        as_arrow(open_source(path))
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["x.svm"]


def test_a_full_disk_is_told_and_nothing_is_left_behind(tmp_path):
    path = write(tmp_path / "x.svm", "".join(f"1 {k + 1}:{k / 7}\n" for k in range(20000)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, before[1]))
    try:
        with pytest.raises(DotaddError, match=r"x\.svm\.dotadd\.arrow: cannot be written \(") as caught:
            as_arrow(open_source(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["x.svm"]


def test_bad_rows_and_ctrl_c_leave_nothing_behind(tmp_path, monkeypatch):
    path = write(tmp_path / "x.svm", "1 1:1\n" * 99 + "bad\n")
    with pytest.raises(DataError, match=r"x\.svm:100:1: label 'bad'"):
        as_arrow(open_source(path))
    write(path, "1 1:1\n" * 99)

    def interrupted(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        as_arrow(open_source(path), on_progress=interrupted)
    assert os.listdir(tmp_path) == ["x.svm"]


def changed_unseen(path: Path) -> None:
    """Change a byte in the middle, and set the time back."""
    before = path.stat()
    with open(path, "rb+") as file:
        file.seek(before.st_size // 2)
        byte = file.read(1)
        file.seek(before.st_size // 2)
        file.write(b"7" if byte != b"7" else b"8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns


WIDE = "1 " + " ".join(f"{feature}:1111111" for feature in range(1, 61)) + "\n"


def test_a_change_in_the_middle_is_seen_although_size_and_time_are_the_same(tmp_path):
    path = write(tmp_path / "x.svm", WIDE * 1000)  # long, and its middle is a label
    made_of(open_source(path))
    for ago in (0.0, 1000.0):  # the copy is as new as the change, or older
        copy = tmp_path / "x.svm.dotadd.arrow"
        os.utime(copy, (time.time() - ago,) * 2)
        changed_unseen(path)
        lines, told = made_of(open_source(path))
        assert f"({path} has changed)" in lines[0]
        assert told == all_of(open_source(path))


def test_a_text_that_was_moved_or_got_another_mode_keeps_its_copy_and_is_looked_at_once(tmp_path, monkeypatch):
    path = write(tmp_path / "x.svm", WIDE * 1000)
    made_of(open_source(path))
    looks: list[int] = []
    real = cached.Checksum.finished
    monkeypatch.setattr(cached.Checksum, "finished", lambda self: looks.append(1) or real(self))
    copy = tmp_path / "x.svm.dotadd.arrow"
    os.utime(copy, (time.time() - 1000,) * 2)
    path.chmod(0o600)
    for _ in range(2):
        assert made_of(open_source(path))[0][0].startswith("reading")
        assert looks == [1]
        monkeypatch.setattr(cached, "TICK", 0.0)


def test_what_is_being_read_stays_what_it_was_when_another_process_replaces_or_removes_it(tmp_path):
    path = write(tmp_path / "x.svm", "1 1:1\n" * 5000)
    fast, copies = as_arrow(open_source(path))
    before, watched = all_of(fast), Watched(fast)
    again = pickle.loads(pickle.dumps(fast))
    chunks = fast.chunks(1000)
    next(chunks)
    write(path, "-1 1:1\n" * 50)
    made_of(open_source(path))
    assert len(list(chunks)) > 1
    for _ in range(2):
        assert all_of(fast) == before
        watched.check()
        remove(copies)
    assert all_of(again) == before


def test_a_text_that_changes_while_it_is_converted_is_refused(tmp_path):
    path = write(tmp_path / "x.svm", "1 1:1\n" * 99)
    with pytest.raises(DataError, match=r"x\.svm: has changed while it was read"):
        as_arrow(open_source(path), on_progress=lambda share: write(path, "1 1:1\n" * 50) and None)
    assert os.listdir(tmp_path) == ["x.svm"]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_text_tells_how_much_of_it_has_been_read(tmp_path, compress):
    rng = random.Random(0)
    path = write(tmp_path / "x", compress("".join(f"1 1:{rng.random()}\n" for _ in range(40000)).encode()))
    shares: list[float] = []
    for _ in text.pieces(str(path), 1 << 16, on_progress=shares.append):
        pass
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert 0 < shares[0] < 0.3
    assert shares[-1] == 1


def test_every_text_format_tells_of_its_progress(tmp_path):
    for name, content in TEXTS.items():
        source = open_source(write(tmp_path / name, content))
        assert isinstance(source, FileSource)
        shares: list[float] = []
        source.on_progress = shares.append
        source.load()
        assert shares[-1] == 1, name


def test_a_copy_that_is_cut_off_while_it_is_read_is_named(tmp_path):
    path = write(tmp_path / "x.svm", "".join(f"1 {k + 1}:{k / 7}\n" for k in range(200000)))
    fast, (copy,) = as_arrow(open_source(path))
    chunks = dataclasses.replace(fast).chunks(100000)
    next(chunks)
    with open(copy, "rb+") as file:
        file.truncate(copy.stat().st_size // 2)
    with pytest.raises(DataError, match=r"x\.svm\.dotadd\.arrow: "):
        list(chunks)
