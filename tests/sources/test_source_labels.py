"""Labels stay apart: what is written differently is another class, in every format."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotadd import LinearSVM, check_source, load
from dotadd.errors import DataError
from dotadd.sources import open as open_source
from dotadd.sources.convert import convert

IDS = [2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 7]  # float64 takes the first two for one


def opened(path):
    return open_source(path, label="label" if path.suffix == ".parquet" else None)


def write(folder, kind, labels):
    """A file of one number and one label a row, as they are written."""
    path = folder / f"x.{kind}"
    rows = list(enumerate(labels))
    if kind == "svm":
        path.write_text("".join(f"{y} 1:{x + 1}\n" for x, y in rows))
    elif kind == "csv":
        path.write_text("a,label\n" + "".join(f"{x},{y}\n" for x, y in rows))
    elif kind == "jsonl":
        path.write_text("".join(f'{{"a": {x}, "label": {json.dumps(y)}}}\n' for x, y in rows))
    elif kind == "fa":
        path.write_text("".join(f">s{x} label={y}\nACGT\n" for x, y in rows))
    elif kind == "ark":
        path.write_text("".join(f"{y}\ts{x}\n0 1 a a 0.5\n1\n\n" for x, y in rows))
    elif kind == "npz":
        np.savez(path, x=np.arange(len(labels)).reshape(-1, 1), label=np.array(labels))
    elif kind == "parquet":
        pq.write_table(pa.table({"a": [float(x) for x, _ in rows], "label": labels}), path)
    else:
        convert(open_source(write(folder, "csv", labels)), path)
    return path


KINDS = ["svm", "csv", "jsonl", "fa", "npz", "parquet", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nbytes", [8, 1 << 20])
def test_whole_numbers_beyond_float64_stay_apart(tmp_path, kind, nbytes):
    chunks = list(opened(write(tmp_path, kind, IDS)).chunks(nbytes))
    assert [label for chunk in chunks for label in chunk.y.tolist()] == IDS


@pytest.mark.parametrize("kind", ["svm", "csv", "jsonl", "arrow"])
def test_a_model_names_labels_of_64_bits_as_they_were_written(tmp_path, kind):
    path = write(tmp_path, kind, IDS[:3] * 4)
    svm = LinearSVM().fit(path)
    assert svm.classes_.tolist() == sorted(IDS[:3])
    svm.model_.save(tmp_path / "m")
    assert set(load(tmp_path / "m").predict(path).tolist()) <= set(IDS[:3])
    assert load(tmp_path / "m").classes.tolist() == sorted(IDS[:3])


@pytest.mark.parametrize("kind", ["svm", "csv"])
def test_however_a_whole_number_is_written_it_is_one_label(tmp_path, kind):
    y = open_source(write(tmp_path, kind, ["1", "1.0", "+1", "1e0", "10e-1"])).load().y
    assert (y == 1).all()


@pytest.mark.parametrize("kind", ["svm", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("nbytes", [8, 1 << 20])
def test_fractions_among_labels_are_kept_and_written_back(tmp_path, kind, nbytes):
    labels = [1.0, 2.0, 0.5, 4.0]
    source = opened(write(tmp_path, kind, labels))
    assert [label for chunk in source.chunks(nbytes) for label in chunk.y.tolist()] == labels
    convert(source, tmp_path / "out.arrow")
    assert open_source(tmp_path / "out.arrow").load().y.tolist() == labels


@pytest.mark.parametrize("labels", [[2.0**53, 2.0**60, 1.0], np.array([2**64 - 1, 2**64 - 2, 1], np.uint64)])
def test_labels_that_may_have_been_rounded_are_refused_for_training(tmp_path, labels):
    pq.write_table(pa.table({"a": [0.0, 1.0, 2.0], "label": labels}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet: row 0: label [\d.e+]+ is too large"):
        LinearSVM().fit(opened(tmp_path / "x.parquet"))
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "label": labels})
    for x, y in ((frame[["a"]], frame["label"].astype(float)), (open_source(frame, label="label"), None)):
        with pytest.raises(DataError, match=r"row 0: label [\d.e+]+ is too large"):
            LinearSVM().fit(x, y)


def test_identifiers_beyond_64_bits_are_refused_with_advice(tmp_path):
    path = write(tmp_path, "csv", [10**20, 10**20 + 1] * 3)
    with pytest.raises(DataError, match=r"x\.csv:2: label 1e\+20 is too large; give labels .* as integers or names"):
        LinearSVM().fit(path)


def labels_in_chunks(path, nbytes):
    """All labels of a file, or the complaint about it."""
    try:
        return [label for chunk in opened(path).chunks(nbytes) for label in chunk.y.tolist()]
    except DataError as error:
        return str(error)


WORDS = ["csv", "jsonl", "fa", "ark"]  # formats whose labels are written as words


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("nbytes", [8, 60, 1 << 20])
@pytest.mark.parametrize("labels", [[1, 2, "x"], [1, "x", 2.5, "y", 2], ["x", 1, 2]])
def test_a_name_among_few_numbers_makes_all_labels_names_in_chunks_of_any_size(tmp_path, kind, nbytes, labels):
    path = write(tmp_path, kind, labels)
    assert labels_in_chunks(path, nbytes) == [str(label) for label in labels]


def test_a_source_with_a_name_among_few_numbers_keeps_the_contract(tmp_path):
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(f"{'a' * 100},{label}\n" for label in (1, 2, "x", 1)))
    check_source(open_source(tmp_path / "x.csv"))


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("nbytes", [8, 60, 1 << 20])
@pytest.mark.parametrize("place", [0, 7, 29])
def test_a_name_among_many_numbers_is_refused_with_its_line_in_chunks_of_any_size(tmp_path, kind, nbytes, place):
    lines = {"csv": place + 2, "jsonl": place + 1, "fa": 2 * place + 1, "ark": 4 * place + 1}
    labels = [1, 2] * 15
    labels[place] = "x"
    path = write(tmp_path, kind, labels)
    message = f"{path}:{lines[kind]}: label 'x' is not a number, unlike the others"
    assert labels_in_chunks(path, nbytes) == message
    source = open_source(path, on_bad_row="skip")
    found = [label for chunk in source.chunks(nbytes) for label in chunk.y.tolist()]
    assert (found, source.skipped.count) == (labels[:place] + labels[place + 1 :], 1)


@pytest.mark.parametrize("nbytes", [1 << 14, 1 << 20, 1 << 24])
def test_a_name_after_a_long_beginning_of_numbers_is_refused_in_chunks_of_any_size(tmp_path, nbytes):
    text = "a" * 1000
    rows = ["1"] * 1100 + ["x"] * 400  # a fourth of all, behind what decides
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for label in rows))
    with pytest.raises(DataError, match=r"x\.csv:1102: label 'x' is not a number, unlike the others"):
        open_source(tmp_path / "x.csv").load()
    with pytest.raises(DataError, match=r"x\.csv:1102: label 'x' is not a number, unlike the others"):
        list(open_source(tmp_path / "x.csv").chunks(nbytes))
