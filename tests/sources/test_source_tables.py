"""CSV, TSV, JSON lines and FASTA: what is written is read, with the line of every row, whatever the chunks."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_sources import fasta, rows_of

from dotadd.errors import DataError, UnusedColumnsWarning
from dotadd.sources import open as open_source
from dotadd.sources.text import fields_of

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SIZES = st.sampled_from([1, 20, 1 << 20])


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(path, nbytes=1 << 20, **options):
    """Rows, labels and lines over all chunks."""
    chunks = list(open_source(path, **options).chunks(nbytes))
    rows = [row for chunk in chunks for row in rows_of(chunk.batch)]
    labels = None if chunks[0].y is None else [label for chunk in chunks for label in chunk.y.tolist()]
    return rows, labels, [line for chunk in chunks for line in chunk.lines.tolist()]


words = st.text(st.sampled_from('ab ,;"\u00e9\n'), max_size=6)


@FEW
@given(texts=st.lists(words, min_size=1, max_size=8), nbytes=SIZES, newline=st.sampled_from(["\n", "\r\n"]))
def test_quoted_csv_reads_back_with_the_line_of_each_record(tmp_path, texts, nbytes, newline):
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator=newline)
    writer.writerow(["label", "other", "text"])
    lines = []
    for text in texts:
        lines.append(file.getvalue().count("\n") + 1)
        writer.writerow(["spam", "7", text])
    path = write(tmp_path, "data.csv", file.getvalue())
    rows, labels, read_lines = read(path, nbytes, column="text")
    assert rows == [text.strip().encode() for text in texts]
    assert labels == ["spam"] * len(texts)
    assert read_lines == lines


def test_numeric_columns_are_features(tmp_path):
    path = write(tmp_path, "d.csv", "a,name,b,label,w\n1,x,2.5,-1,2\n\n-3e2,y,4,+1,0.5\n")
    source = open_source(path, weight="w")
    chunk = source.load()
    assert rows_of(chunk.batch) == [[1, 2.5], [-300, 4]]
    assert chunk.batch.values.dtype == np.float32
    assert source.columns == ["a", "b"]
    assert chunk.y.tolist() == [-1.0, 1.0]
    assert chunk.weight.tolist() == [2.0, 0.5]
    assert chunk.lines.tolist() == [2, 4]
    assert open_source(path, dtype=np.float64).load().batch.values.dtype == np.float64
    assert rows_of(open_source(path, column="b").load().batch) == [[2.5], [4]]


def test_semicolons_and_tabs_separate_too(tmp_path):
    assert read(write(tmp_path, "d.csv", "x;label\n1;a\n2;b\n"))[:2] == ([[1], [2]], ["a", "b"])
    text = 'label\ttext\nham\t"Hi" he said\nspam\t"5\n'
    assert read(write(tmp_path, "d.tsv", text))[:2] == ([b'"Hi" he said', b'"5'], ["ham", "spam"])


@pytest.mark.parametrize("label", [0, "0", -2])
def test_columns_by_number_mean_no_header(tmp_path, label):
    path = write(tmp_path, "messages", "ham\thello, you\nspam\tbuy\n")
    assert read(path, column=1, label=label) == ([b"hello, you", b"buy"], ["ham", "spam"], [1, 2])


def test_a_lone_text_column_needs_no_name(tmp_path):
    assert read(write(tmp_path, "d.csv", "label,text\n1,ab\n2,cd\n"))[:2] == ([b"ab", b"cd"], [1.0, 2.0])


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("1,2", ":4: ", "expected 3 fields, found 2"),
        ("1,2,3,4", ":4: ", "expected 3 fields, found 4"),
        ("1,abc,a", ":4:2: ", "column 'b': 'abc' is not a number"),
        ("1,,a", ":4:2: ", "column 'b': the value is missing"),
        ("1,nan,a", ":4:2: ", "not finite"),
        ("1,-inf,a", ":4:2: ", "not finite"),
        ("1,2,", ":4: ", "label is missing"),
        ("1,2,\udcff", ":4:5: ", "UTF-8"),
    ],
)
def test_bad_csv_rows_are_refused_by_line_and_can_be_skipped(tmp_path, line, place, message):
    text = "a,b,label\n1,2,a\n3,4,b\n" + line + "\n5,6,a\n"
    path = write(tmp_path, "d.csv", text.encode(errors="surrogateescape"))
    with pytest.raises(DataError) as caught:
        open_source(path).load()
    assert str(caught.value).startswith(f"{path}{place}")
    assert message in str(caught.value)
    source = open_source(path, on_bad_row="skip")
    chunk = source.load()
    assert rows_of(chunk.batch) == [[1, 2], [3, 4], [5, 6]]
    assert chunk.lines.tolist() == [2, 3, 5]
    assert chunk.y.tolist() == ["a", "b", "a"]
    assert source.skipped.count == 1


def test_a_quote_that_never_closes_is_refused_at_its_line(tmp_path):
    path = write(tmp_path, "d.csv", 'label,text\na,b\nc,"d\ne,f\n')
    with pytest.raises(DataError, match=r"d\.csv:3: wrong quotes"):
        open_source(path, column="text").load()


def test_a_label_that_is_no_number_among_numbers_is_refused(tmp_path):
    body = "".join(f"{k},{k % 2}\n" for k in range(50))
    path = write(tmp_path, "d.csv", f"a,label\n{body}7,zwei\n")
    with pytest.raises(DataError, match=r"d\.csv:52: label 'zwei' is not a number"):
        open_source(path).load()


def test_missing_columns_are_listed(tmp_path):
    path = write(tmp_path, "d.csv", "a,label\n1,2\n")
    with pytest.raises(DataError, match=r"no column 'text'; the columns are 'a', 'label'"):
        open_source(path, column="text").load()
    path = write(tmp_path, "d.jsonl", '{"a": 1, "label": 2}\n')
    with pytest.raises(DataError, match=r"no column 'text'; the columns are 'a', 'label'"):
        open_source(path, column="text").load()


@FEW
@given(texts=st.lists(st.text(max_size=6).filter(lambda t: t.isprintable()), min_size=1, max_size=8), nbytes=SIZES)
def test_json_lines_read_back(tmp_path, texts, nbytes):
    lines = [json.dumps({"id": k, "text": text, "label": k % 2}) for k, text in enumerate(texts)]
    path = write(tmp_path, "d.jsonl", "\n\n".join(lines))
    rows, labels, read_lines = read(path, nbytes, column="text")
    assert rows == [text.encode() for text in texts]
    assert labels == [float(k % 2) for k in range(len(texts))]
    assert read_lines == [2 * k + 1 for k in range(len(texts))]


def test_json_numbers_and_lists_are_dense(tmp_path):
    path = write(tmp_path, "d.jsonl", '{"a": 1, "b": 2.5, "c": "s", "w": 2}\n{"a": true, "b": 4, "w": 1}\n')
    source = open_source(path, weight="w")
    assert rows_of(source.load().batch) == [[1, 2.5], [1, 4]]
    assert source.load().weight.tolist() == [2.0, 1.0]
    path = write(tmp_path, "v.jsonl", '{"v": [1, 2], "label": "x"}\n{"v": [3, 4], "label": "y"}\n')
    assert read(path, column="v")[:2] == ([[1, 2], [3, 4]], ["x", "y"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"x": 1', "is not JSON"),
        ("[1]", "not a JSON object"),
        ('{"label": 1}', "field 'x' is missing; the fields are 'label'"),
        ('{"x": null, "label": 1}', "field 'x' is missing"),
        ('{"x": "one", "label": 1}', "field 'x' is not a number"),
        ('{"x": NaN, "label": 1}', "NaN"),
        ('{"x": 1, "label": null}', "field 'label' is missing"),
        ('{"x": 1, "label": "\udcff"}', "UTF-8"),
        ("null", "not a JSON object"),
        ("[" * 30_000, "nested too deeply"),
        ('{"x": ' + "[" * 30_000 + "1" + "]" * 30_000 + ', "label": 1}', "nested too deeply"),
        ('{"x": 1' + "0" * 5000 + ', "label": 1}', "not finite"),
        ('{"x": 1' + "0" * 400 + ', "label": 1}', "not finite"),
        ('{"x": [1' + "0" * 400 + '], "label": 1}', "field 'x' is not a number"),
        ('{"x": 1e400, "label": 1}', "not finite"),
        ('{"x": 1, "label": [1]}', "field 'label' is neither text nor a number: [1]"),
        ('{"x": 1, "label": {"a": 1}}', "field 'label' is neither text nor a number"),
        ('{"x": 1, "label": "\\ud800"}', "half of a surrogate pair"),
        ('{"x": 1, "label": 1} {"x": 2, "label": 1}', "is not JSON"),
    ],
)
def test_bad_json_lines_are_refused_by_line_and_can_be_skipped(tmp_path, line, message):
    good = '{"x": 5, "label": 1}\n'
    path = write(tmp_path, "d.jsonl", (good + line + "\n" + good).encode(errors="surrogateescape"))
    with pytest.raises(DataError) as caught:
        open_source(path).load()
    assert str(caught.value).startswith(f"{path}:2:")
    assert message in str(caught.value)
    assert read(path, on_bad_row="skip") == ([[5], [5]], [1.0, 1.0], [1, 3])


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("1" + "0" * 5000, "thousands of digits"),
        ("1" + "0" * 400, "too large"),
        ("[1]", "not a number"),
        ("1e400", "inf"),
    ],
)
def test_bad_numbers_in_lists_are_refused_by_line_and_can_be_skipped(tmp_path, item, message):
    path = write(tmp_path, "d.jsonl", f'{{"v": [1, 2]}}\n{{"v": [1, {item}]}}\n')
    with pytest.raises(DataError, match=rf"d\.jsonl:2:.*{message}"):
        open_source(path).load()
    assert read(path, on_bad_row="skip")[0] == [[1, 2]]


@pytest.mark.parametrize("line", ["null", "[" * 30_000, '{"deep": ' + "[" * 30_000 + "]" * 30_000 + "}"])
@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
def test_no_json_ends_the_process(tmp_path, line, on_bad_row):
    path = write(tmp_path, "d.jsonl", f'{line}\n{{"x": 5, "label": 1, "deep": 2}}\n' + line)
    code = f"from dotadd import open; open({str(path)!r}, on_bad_row={on_bad_row!r}).load()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == (1 if on_bad_row == "error" else 0), ran.stderr
    if on_bad_row == "error":
        assert ran.stderr.splitlines()[-1].startswith(f"dotadd.errors.DataError: {path}:1: is n")


def test_fields_that_are_not_read_may_be_anything(tmp_path):
    others = ["1", '"s"', "null", "{}", '"2020-01-01"', "[" * 30_000 + "]" * 30_000]
    path = write(tmp_path, "d.jsonl", "".join(f'{{"x": 1, "label": 0, "z": {other}}}\n' for other in others))
    assert read(path, column="x")[0] == [[1.0]] * 6


def test_json_labels_that_look_like_dates_are_names(tmp_path):
    path = write(tmp_path, "d.jsonl", '{"x": 1, "label": "2020-01-01"}\n{"x": 2, "label": "2020-01-02"}\n')
    assert read(path)[1] == ["2020-01-01", "2020-01-02"]


@FEW
@given(
    records=st.lists(st.lists(st.text("ACGTacgtN", min_size=1, max_size=9), min_size=1, max_size=3), min_size=1),
    nbytes=SIZES,
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_fasta_reads_what_a_plain_reader_reads(tmp_path, records, nbytes, newline):
    text = newline + "".join(
        newline.join([f">seq{k} some words {k % 3}", *lines, ""]) + newline * (k % 2) for k, lines in enumerate(records)
    )
    rows, last, lines = fasta(text.replace("\r", "")[1:])
    assert read(write(tmp_path, "d.fa", text.rstrip("\r\n")), nbytes) == (
        rows,
        [float(word) for word in last],
        [line + 1 for line in lines],
    )


@pytest.mark.parametrize("header", ["s1 label=up", "s1 x label:up", "s1 up", "s1 length=3 up"])
def test_fasta_labels_stand_last_in_the_header(tmp_path, header):
    assert read(write(tmp_path, "d.fa", f">{header}\nACG\n"))[:2] == ([b"ACG"], ["up"])


def test_fasta_labels_by_field_or_file_or_none(tmp_path):
    path = write(tmp_path, "d.fa", ">a class=1 x\nAC\n>b class=2 x\nGT\n")
    assert read(path, label="class")[1] == [1.0, 2.0]
    table = write(tmp_path, "labels.txt", "b\tno\r\na\tyes\n\n")
    assert read(path, labels=table)[1] == ["yes", "no"]
    assert read(write(tmp_path, "e.fa", ">a\nAC\n>b\nGT\n"))[1] is None
    with pytest.raises(DataError, match=r"d\.fa:1: .*no field q="):
        open_source(path, label="q").load()
    with pytest.raises(DataError, match=r"labels\.txt:2: expected a name"):
        open_source(path, labels=write(tmp_path, "labels.txt", "a\t1\nb\n")).load()
    with pytest.raises(DataError, match=r"labels\.txt:2: 'a' has another label"):
        open_source(path, labels=write(tmp_path, "labels.txt", "a\t1\na\t2\n")).load()


def test_bad_fasta_records_are_refused_by_line_and_can_be_skipped(tmp_path):
    text = ">a 1\nAC\n>b 2\n\n>c\nGG\n>d 2\nTT\n"
    path = write(tmp_path, "d.fa", text)
    with pytest.raises(DataError, match=r"d\.fa:3: the sequence has no letters"):
        open_source(path).load()
    assert read(path, on_bad_row="skip") == ([b"AC", b"TT"], [1.0, 2.0], [1, 7])
    path = write(tmp_path, "e.fa", text.replace(">b 2\n\n", ""))
    with pytest.raises(DataError, match=r"e\.fa:3: the header has no label"):
        open_source(path).load()
    with pytest.raises(DataError, match=r"f\.fa:2:1: expected a header"):
        open_source(write(tmp_path, "f.fa", "\nACGT\n>a 1\nAC\n")).load()


def test_columns_of_text_beside_numbers_are_said_to_be_left_out(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text("label,size,colour\n1,2.5,red\n0,1.5,blue\n")
    with pytest.warns(UnusedColumnsWarning, match=r"mixed\.csv: only columns of numbers are read; left out: 'colour'"):
        batch = open_source(path).load().batch
    assert batch.n_features == 1


@FEW
@given(rows=st.lists(st.lists(st.text(st.sampled_from('ab,;"\n\t\u00e9'), max_size=5), min_size=1, max_size=4)))
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_fields_of_csv_are_those_of_pythons_reader(rows, delimiter):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    at, found = 0, []
    while at < len(text.getvalue()):
        fields, at = fields_of(text.getvalue(), delimiter, at)
        found.append(fields)
    assert found == list(csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter, strict=True))


def test_long_fields_in_many_threads_leave_pythons_limit_alone(tmp_path):
    limit = csv.field_size_limit()
    long = "a" * (limit + 1)
    path = write(tmp_path, "d.csv", "text,label\n" + f'"{long}",1\nb,1,2\n' * 2)
    seen = []

    def read_all():
        for _ in range(5):
            source = open_source(path, column="text", on_bad_row="skip")
            rows = [row for chunk in source.chunks() for row in rows_of(chunk.batch)]
            seen.append((len(rows), source.skipped.count, csv.field_size_limit()))

    threads = [threading.Thread(target=read_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {(2, 2, limit)}
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("nbytes", [1, 20, 1000])
def test_columns_are_numbers_or_text_whatever_the_size_of_chunks(tmp_path, nbytes):
    """The header may fill a chunk, and the first record may look like text."""
    path = tmp_path / "x.csv"
    path.write_text("first,second,label\n,3,a\n" + "1,2,b\n" * 20)
    source = open_source(path, on_bad_row="skip")
    assert all(chunk.batch.n_features == 2 for chunk in source.chunks(nbytes))
    assert source.columns == ["first", "second"]
