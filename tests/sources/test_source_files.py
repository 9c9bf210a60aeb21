"""Files: formats found by name and content, many files as one, and every bad file refused in one line."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from naive_sources import rows_of

from dotadd.errors import DataError, DotaddError
from dotadd.sources import open as open_source
from dotadd.sources.convert import convert
from dotadd.sources.formats import format_of

TEXTS = {
    "libsvm": "1 1:2 3:4\n-1 2:1\n",
    "csv": "a,label\n1,2\n3,4\n",
    "tsv": "a\tlabel\n1\t2\n3\t4\n",
    "jsonl": '{"a": 1, "label": 2}\n{"a": 3, "label": 4}\n',
    "fasta": ">a 1\nACGT\n>b 2\nCC\n",
}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("name", TEXTS)
def test_content_tells_the_format_where_the_name_does_not(tmp_path, name):
    assert format_of(str(write(tmp_path / "data", TEXTS[name]))) == name
    assert format_of(str(write(tmp_path / "data.xz", lzma.compress(TEXTS[name].encode())))) == name
    assert len(open_source(tmp_path / "data").load()) == 2


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_binary_formats_are_told_by_their_first_bytes(tmp_path, ending):
    convert(open_source(["ACGT", "AAAA"]), tmp_path / f"x.{ending}")
    (tmp_path / f"x.{ending}").rename(tmp_path / "data")
    assert format_of(str(tmp_path / "data")) == ending
    assert rows_of(open_source(tmp_path / "data").load().batch) == [b"ACGT", b"AAAA"]


@pytest.mark.parametrize(
    ("text", "name"),
    [("# note\n1\n-1 2:1\n", "libsvm"), ("+1 3:4 # c\n", "libsvm"), ("0.5,1,2\n", "csv"), ("\n>a\nAC\n", "fasta")],
)
def test_first_lines_of_many_shapes(tmp_path, text, name):
    assert format_of(str(write(tmp_path / "data", text))) == name


def test_format_overrides_the_name(tmp_path):
    path = write(tmp_path / "data.csv", TEXTS["libsvm"])
    assert rows_of(open_source(path, format="libsvm").load().batch) == [[(0, 2.0), (2, 4.0)], [(1, 1.0)]]
    with pytest.raises(DotaddError, match="unknown format 'excel'"):
        open_source(path, format="excel")


def test_many_files_are_read_as_one_in_order(tmp_path, monkeypatch):
    paths = [write(tmp_path / f"part-{k}.svm", f"{k} {k + 1}:1\n\n{k} 1:2 9:1\n") for k in range(3)]
    write(tmp_path / "part-1b.svm", "\n")  # an empty part among others is no harm
    whole = [[(0, 1.0)], [(0, 2.0), (8, 1.0)], [(1, 1.0)], [(0, 2.0), (8, 1.0)], [(2, 1.0)], [(0, 2.0), (8, 1.0)]]
    monkeypatch.chdir(tmp_path)
    for x in (paths, [str(path) for path in paths], "part-*.svm", tmp_path / "part-*.svm"):
        source = open_source(x)
        for _ in range(2):
            chunks = list(source.chunks(8))
            assert [row for c in chunks for row in rows_of(c.batch)] == whole
            assert [c.first_row for c in chunks] == np.cumsum([0] + [len(c) for c in chunks])[:-1].tolist()
        chunk = source.load()
        assert rows_of(chunk.batch) == whole
        assert chunk.y.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_joined_chunk_still_knows_file_and_line_of_each_row(tmp_path):
    for k in range(3):
        write(tmp_path / f"{k}.svm", "1 1:1\n" + "\n" * k + "1 2:1\n")
    chunk = open_source(str(tmp_path / "*.svm")).load()
    places = [f"{tmp_path}/{k}.svm:{line}: no" for k in range(3) for line in (1, k + 2)]
    assert [str(chunk.error(row, "no")) for row in range(6)] == places
    assert [str(chunk.take(np.array([1, 5])).error(row, "no")) for row in range(2)] == [places[1], places[5]]


def test_skipped_rows_of_many_files_add_up_and_start_anew_with_each_pass(tmp_path):
    for k in range(2):
        write(tmp_path / f"{k}.svm", "1 1:1\nx\ny\n")
    source = open_source(str(tmp_path / "*.svm"), on_bad_row="skip")
    for _ in range(2):
        assert len(source.load()) == 2
        assert source.skipped.count == 4
        assert "0.svm:2:1: label 'x'" in source.skipped.first


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (("a.csv", "a,label\n1,2\n"), ("b.csv", "b,label\n1,2\n"), r"b\.csv: has the columns \['b'\]"),
        (("a.csv", "a,label\n1,2\n"), ("b.csv", "a,b,label\n1,1,2\n"), r"b\.csv: has rows of shape \(2,\)"),
        (("a.csv", "a,label\n1,2\n"), ("b.csv", "a,label\n1,x\n"), r"b\.csv: its labels are text"),
        (("a.csv", "a,label\n1,2\n"), ("b.csv", "a,c\n1,x\n"), r"b\.csv: has no labels"),
        (("a.csv", "a,label\n1,2\n"), ("b.svm", "1 1:1\n"), r"b\.svm: holds sparse rows"),
    ],
)
def test_files_that_do_not_agree_are_refused(tmp_path, first, second, message):
    paths = [write(tmp_path / name, text) for name, text in (first, second)]
    with pytest.raises(DataError, match=message):
        open_source(paths).load()


@pytest.mark.parametrize("name", ["a.svm", "a.csv", "a.tsv", "a.jsonl", "a.fa", "a.txt", "a.svm.gz"])
@pytest.mark.parametrize("text", ["", "\n\n"])
def test_empty_files_are_refused(tmp_path, name, text):
    path = write(tmp_path / name, gzip.compress(text.encode()) if name.endswith("gz") else text)
    with pytest.raises(DataError, match=f"{name}: has no examples"):
        open_source(path).load()


def test_a_header_alone_is_no_example(tmp_path):
    with pytest.raises(DataError, match="no examples"):
        open_source(write(tmp_path / "a.csv", "a,label\n")).load()


def test_a_file_of_bad_rows_alone_tells_the_first_complaint(tmp_path):
    path = write(tmp_path / "a.svm", "x\ny\n")
    with pytest.raises(DataError, match=r"no example that can be read; .*a\.svm:1:1: label 'x'"):
        open_source(path, on_bad_row="skip").load()


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["a.svm", "a.fa", "a.csv"])
def test_archives_that_were_cut_off_are_refused(tmp_path, name, compress):
    text = {"a.svm": "1 1:0.{}\n", "a.fa": ">a {}\nACGT\n", "a.csv": "a,{}\n"}[name]
    whole = compress("".join(text.format(k * 7919 % 10007) for k in range(20000)).encode())
    path = write(tmp_path / name, whole[: len(whole) // 2])
    with pytest.raises(DataError, match=rf"{name}: the compressed file ends too early"):
        open_source(path, on_bad_row="skip").load()


def test_a_damaged_archive_is_refused(tmp_path):
    whole = bytearray(gzip.compress(b"1 1:1\n" * 1000))
    whole[20:30] = b"\x00" * 10
    with pytest.raises(DataError, match=r"a\.svm: cannot be read"):
        open_source(write(tmp_path / "a.svm", bytes(whole))).load()


def test_paths_that_lead_nowhere_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.svm: no such file"):
        open_source(tmp_path / "nothing.svm")
    with pytest.raises(DataError, match="is a folder"):
        open_source(tmp_path)
    with pytest.raises(DataError, match="no file matches"):
        open_source(str(tmp_path / "*.svm"))
    for text in ("what is this\n", "# a remark\n", "\ufeff\n", "\ufeff# a remark alone"):
        with pytest.raises(DataError, match=r"noise: has no known format; .*format="):
            open_source(write(tmp_path / "noise", text))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("libsvm", {"column": "x"}), ("libsvm", {"label": "x"}), ("libsvm", {"labels": "x"}),
        ("csv", {"zero_based": True}), ("csv", {"labels": "x"}), ("fasta", {"column": "x"}),
        ("fasta", {"dtype": np.float64}), ("jsonl", {"labels": "x"}),
    ],
)  # fmt: skip
def test_an_option_without_meaning_for_the_format_is_refused(tmp_path, name, options):
    path = write(tmp_path / "data", TEXTS[name])
    with pytest.raises(DotaddError, match=f"{next(iter(options))}= has no meaning for {name}"):
        open_source(path, **options)
