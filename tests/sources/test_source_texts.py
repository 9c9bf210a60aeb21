"""Texts in folders and in lines: the bytes that were written, with their labels, as scikit-learn's load_files and
fastText read them; and one clear line for whatever is wrong."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_sources import rows_of
from sklearn.datasets import load_files

from dotadd import LinearSVM
from dotadd.data.batches import Strings
from dotadd.errors import DataError, DotaddError, UnusedFilesWarning
from dotadd.sources import open as open_source
from dotadd.sources.cached import as_arrow
from dotadd.sources.formats import format_of
from dotadd.sources.identity import fingerprint

TEXTS = {
    "ham/1.txt": b"see you",
    "ham/deep/er/2": "\u00e9t\u00e9 \u4e2d".encode(),
    "ham/3.eml": b"caf\xe9 in Latin 1",  # bytes that are no UTF-8
    "spam/1.txt": b"buy now\nlast chance\n",
    "spam/2.txt": b"",
    "spam/3.1999-12-10": b"x" * 300,
}


def written(root: Path, texts: dict[str, bytes] = TEXTS) -> Path:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text)
    return root


def flat(texts: dict[str, bytes]) -> dict[str, bytes]:
    """Without the folders inside of classes, which load_files does not look into."""
    return {f"{name.split('/')[0]}/{name.rpartition('/')[2]}": text for name, text in texts.items()}


# ---- folders


@pytest.mark.parametrize("nbytes", [1, 20, 1 << 20])
def test_a_folder_holds_what_load_files_finds_in_it(tmp_path, nbytes):
    root = written(tmp_path / "mails", flat(TEXTS))
    theirs = load_files(root, shuffle=False)
    expected = {
        (Path(path).relative_to(root).as_posix(), text, theirs.target_names[k])
        for path, text, k in zip(theirs.filenames, theirs.data, theirs.target, strict=True)
    }
    chunks = list(open_source(root, ids=["path"]).chunks(nbytes))
    found = [
        row
        for chunk in chunks
        for row in zip(chunk.ids.column("path").to_pylist(), rows_of(chunk.batch), chunk.y.tolist(), strict=True)
    ]
    assert set(found) == expected
    assert [name for name, _, _ in found] == sorted(name for name, _, _ in expected)
    assert len(chunks) == (6 if nbytes == 1 else 1 if nbytes > 300 else len(chunks))


def test_nested_files_have_the_label_of_the_topmost_folder(tmp_path):
    chunk = open_source(written(tmp_path)).load()
    assert type(chunk.batch) is Strings
    assert dict(zip(sorted(TEXTS), rows_of(chunk.batch), strict=True)) == TEXTS
    assert chunk.y.tolist() == [name.split("/")[0] for name in sorted(TEXTS)]


def test_compressed_texts_and_byte_order_marks_are_no_letters(tmp_path):
    root = written(tmp_path, {"a/1.gz": gzip.compress(b"see you"), "b/2": b"\xef\xbb\xbfbuy now"})
    assert rows_of(open_source(root).load().batch) == [b"see you", b"buy now"]


def test_folders_called_by_numbers_are_numbers_and_a_second_file_goes_before_them(tmp_path):
    root = written(tmp_path / "x", {"1/a": b"p", "-1/b": b"q"})
    assert open_source(root).load().y.tolist() == [-1, 1]
    (tmp_path / "labels.csv").write_text("1/a,up\n-1/b,down\n")
    assert open_source(root, labels=tmp_path / "labels.csv").load().y.tolist() == ["down", "up"]


def test_what_is_left_out_is_told_once_with_names(tmp_path):
    beside = {".git/x": b"", "ham/.DS_Store": b"\0", "Summary.txt": b"of what?", "ham/photo.jpg": b"\xff\xd8"}
    source = open_source(written(tmp_path, TEXTS | beside))
    with pytest.warns(UnusedFilesWarning) as told:
        chunks = [source.load() for _ in range(2)]
    assert rows_of(chunks[1].batch) == [TEXTS[name] for name in sorted(TEXTS)]
    (warning,) = told
    text = str(warning.message)
    assert ".git, ham/.DS_Store (hidden)" in text
    assert "ham/photo.jpg (images)" in text
    assert "Summary.txt (beside the subfolders)" in text


def test_those_who_want_predictions_get_all_texts_and_their_paths(tmp_path):
    texts = flat(TEXTS) | {"beside.txt": b"see"}
    root = written(tmp_path, texts)
    chunk = open_source(root).unlabelled().load()
    assert chunk.y is None
    assert chunk.ids.to_pydict() == {"path": sorted(texts)}
    assert rows_of(chunk.batch) == [texts[name] for name in sorted(texts)]
    one = open_source(root / "beside.txt", format="texts").unlabelled().load()
    assert (one.ids.to_pydict(), rows_of(one.batch)) == ({"path": ["beside.txt"]}, [b"see"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "is a folder without files"),
        ({"a/.hidden": b"x"}, "is a folder without files"),
        ({"a.csv": b"x", "b.csv": b"y"}, r"is a folder of data files; give them by a pattern like folder/\*\.csv"),
        ({"a/1": b"x\0y", "b/2": b"x"}, r"a/1: has zero bytes in it, so that it is no text; .*--on-bad-row skip"),
    ],
)
def test_folders_that_hold_no_texts_are_refused(tmp_path, texts, message):
    with pytest.raises(DataError, match=message):
        open_source(written(tmp_path / "x", texts | {"c/.keep": b""})).load()


def test_a_text_that_is_none_is_left_out_where_that_is_asked_for(tmp_path):
    source = open_source(written(tmp_path, TEXTS | {"ham/0.bin": b"a\0b"}), on_bad_row="skip")
    assert rows_of(source.load().batch) == [TEXTS[name] for name in sorted(TEXTS)]
    assert source.skipped.count == 1
    assert "ham/0.bin: has zero bytes" in source.skipped.first


def test_complaints_about_a_row_name_its_file(tmp_path):
    source = open_source(written(tmp_path, {"a/1": b"ACGT", "a/2": b"AXGT", "b/3": b"ACCC"}))
    with pytest.raises(DataError, match=r"a/2: row 1, column 2: letter 'X'"):
        LinearSVM("WeightedDegree(2)").fit(source)


def test_a_folder_of_one_class_and_a_flat_one_are_not_trained_on(tmp_path):
    with pytest.raises(DataError, match=r"one: all labels are a: one class only.*subfolder"):
        LinearSVM("NGrams(2)").fit(written(tmp_path / "one", {"a/1": b"x", "a/2": b"y"}))
    with pytest.raises(DataError, match=r"flat/1: has no labels to train on; .*subfolder for each class"):
        LinearSVM("NGrams(2)").fit(written(tmp_path / "flat", {"1": b"x", "2": b"y"}))


def test_a_folder_is_of_images_if_half_of_its_files_are_and_a_format_decides(tmp_path):
    root = written(tmp_path, {"a/1.png": b"x", "a/1.txt": b"caption", "b/2.png": b"y", "b/2.txt": b"caption"})
    with pytest.raises(DataError, match=r"1\.png: is not a PNG or JPEG image"):
        open_source(root).load()
    with pytest.warns(UnusedFilesWarning, match=r"a/1\.png, b/2\.png \(images\)"):
        assert rows_of(open_source(root, format="texts").load().batch) == [b"caption"] * 2
    with pytest.raises(DataError, match="is a file, and format='images' is for folders"):
        open_source(root / "a" / "1.txt", format="images")
    with pytest.raises(DataError, match="there is no column 'name'; a folder has the column 'path'"):
        open_source(root, format="texts", ids=["name"])


def test_texts_are_not_all_in_memory_at_once(tmp_path):
    root = written(tmp_path, {f"{'ab'[k % 2]}/{k:03}": b"x" * 200_000 for k in range(100)})
    source = open_source(root)
    tracemalloc.start()
    for chunk in source.chunks(1 << 20):
        assert chunk.nbytes < 1.5 * (1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20  # of 20 MB


def test_a_folder_that_is_read_again_and_again_trains_like_one_in_memory(tmp_path):
    texts = {f"{'ab'[k % 2]}/{k:03}": b"see you %d" % k if k % 2 else b"buy now %d" % k for k in range(200)}
    root = written(tmp_path / "x", texts)
    before = fingerprint(open_source(root))
    in_memory = LinearSVM("WordNGrams(1).tfidf()", tol=1e-4).fit(root)
    with pytest.warns(UserWarning, match="memory"):
        streamed = LinearSVM("WordNGrams(1).tfidf()", tol=1e-4, memory="3kB").fit(root)
    assert np.allclose(streamed.decision_function(root), in_memory.decision_function(root), atol=2e-2)
    assert streamed.model_.read_as == in_memory.model_.read_as == {"format": "texts"}
    copied, _ = as_arrow(open_source(root))
    assert rows_of(copied.load().batch) == [texts[name] for name in sorted(texts)]
    (root / "a" / "000").write_bytes(b"changed")
    assert fingerprint(open_source(root)) != before


# ---- lines


@given(st.lists(st.binary().filter(lambda line: not {0, 10, 13} & set(line) and not line.strip().startswith(b"__l"))))
def test_each_line_is_an_example_whatever_bytes_it_has(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "x.txt"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n")
    chunks = list(open_source(path, format="txt").chunks(16))
    assert [row for chunk in chunks for row in rows_of(chunk.batch)] == (lines or [b""])
    assert [line for chunk in chunks for line in chunk.lines.tolist()] == list(range(1, 1 + max(1, len(lines))))
    assert all(chunk.y is None for chunk in chunks)


def test_labels_stand_before_the_text_as_in_fasttext(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"__label__spam buy now \r\n\n __label__ham\tsee you\r\n__label__spam\n")
    after_blanks = tmp_path / "blanks.txt"
    after_blanks.write_bytes(b"\n" * 50 + path.read_bytes())
    for nbytes in (1, 30, 1000):
        labels = [label for chunk in open_source(after_blanks).chunks(nbytes) for label in chunk.y.tolist()]
        assert labels == ["spam", "ham", "spam"]
    for source in (open_source(path), open_source(path, format="txt")):
        chunk = source.load()
        assert rows_of(chunk.batch) == [b"buy now ", b"see you", b""]
        assert chunk.y.tolist() == ["spam", "ham", "spam"]
        assert chunk.lines.tolist() == [1, 3, 4]
        assert source.unlabelled().load().y is None
        assert rows_of(source.unlabelled().load().batch) == rows_of(chunk.batch)
    path.write_text("__label__1 a\n__label__-1 b\n")
    assert open_source(path).load().y.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"__label__a x\ny\n", r"x\.txt:2: has no label, and the first line has one; write __label__NAME"),
        (b"x\n__label__a y\n", r"x\.txt:2: has a label, and the first line has none"),
        (b"__label__a __label__b x\n", r"x\.txt:1: has two labels; an example has one"),
        (b"x\ny\0z\n", r"x\.txt:2: has zero bytes in it, so that it is no text; convert it to UTF-8"),
        (b"", r"x\.txt: has no examples"),
    ],
)
def test_lines_that_are_wrong_are_refused_or_left_out(tmp_path, text, message):
    (tmp_path / "x.txt").write_bytes(text)
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "x.txt", format="txt").load()
    if text and text[0] != ord("_"):
        source = open_source(tmp_path / "x.txt", format="txt", on_bad_row="skip")
        assert rows_of(source.load().batch) == [b"x"]
        assert source.skipped.count == 1


def test_lines_without_labels_are_not_trained_on(tmp_path):
    (tmp_path / "x.txt").write_text("a b\nc d\n")
    with pytest.raises(DataError, match=r"x\.txt: has no labels to train on; .*__label__"):
        LinearSVM("NGrams(2)").fit(tmp_path / "x.txt")
    with pytest.raises(DotaddError, match="label= has no meaning for txt files"):
        open_source(tmp_path / "x.txt", label="x")


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("Dear all, hello\nsee you\n", "txt"),
        ("Dear all, hello\n", "txt"),
        ("a b\nc, d\n", "txt"),
        ("a,b,label\n1,2,x\n3,4,y\n", "csv"),
        ("1;2\n3;4\n", "csv"),
        ("text\tlabel\na\tb\n", "tsv"),
        ("1 1:2 3:4\n", "libsvm"),
        ('{"a": 1}\n', "jsonl"),
        (">s 1\nACGT\n", "fasta"),
        ("__label__a x, y\n", "txt"),
    ],
)
def test_a_name_that_ends_in_txt_leaves_open_what_it_is_unless_it_can_only_be_text(tmp_path, text, format):
    (tmp_path / "x.txt").write_text(text)
    assert format_of(str(tmp_path / "x.txt")) == format
