"""LIBSVM text: the compiled parser reads what a plain Python one reads, and refuses the rest by line and column."""

from __future__ import annotations

import bz2
import gzip
import lzma

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_sources import libsvm, rows_of

from dotadd import LinearSVM
from dotadd.data.batches import LARGEST_VALUE
from dotadd.errors import DataError
from dotadd.sources import open as open_source

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder, content, name="data.svm"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def load(folder, content, **options):
    return open_source(write(folder, content), **options).load()


def numbers(largest):
    """Ways to write numbers up to this one."""
    words = ["1", "+1", "-1", "0", "-0.0", "1.", ".5", "-.5e1", "1E3", "00012", "1e-60", "0e999", "1" * 30]
    finite = st.floats(-largest, largest, allow_nan=False)
    return st.one_of(
        st.sampled_from([word for word in words if abs(float(word)) <= largest]),
        st.integers(-int(min(largest, 1e20)), int(min(largest, 1e20))).map(str),
        finite.map(repr),
        finite.map("{:.2e}".format).filter(lambda word: abs(float(word)) <= largest),
        finite.map("{:.25e}".format),
        st.decimals(-1000, 1000, places=4).map(str),
    )


labels, values = numbers(3e38), numbers(LARGEST_VALUE)
blanks = st.sampled_from([" ", "\t", "  "])


@st.composite
def documents(draw):
    lines = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.integers(0, 5))
        if kind == 0:
            lines.append(draw(st.sampled_from(["", "  ", "# only a comment", "\t# 1:2"])))
            continue
        indices = sorted(draw(st.sets(st.integers(1, 200), max_size=6)))
        words = [draw(labels)] + [f"{index}:{draw(values)}" for index in indices]
        comment = draw(st.sampled_from(["", " # x", "#5:5"]))
        lines.append(draw(blanks).join(words) + draw(st.sampled_from(["", " "])) + comment)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return newline.join([*lines, "1 1:1"]) + draw(st.sampled_from(["", newline]))


@FEW
@given(text=documents(), nbytes=st.sampled_from([1, 7, 64, 1 << 20]))
def test_parser_agrees_with_plain_python_whatever_the_chunks(tmp_path, text, nbytes):
    rows, labels, lines = libsvm(text)
    chunks = list(open_source(write(tmp_path, text)).chunks(nbytes))
    read = [row for chunk in chunks for row in rows_of(chunk.batch)]
    assert [[index for index, _ in row] for row in read] == [[index for index, _ in row] for row in rows]
    for ours, theirs in zip(read, rows, strict=True):
        np.testing.assert_array_max_ulp(
            np.array([v for _, v in ours], np.float32), np.array([v for _, v in theirs], np.float32), maxulp=1
        )
    # whole numbers beyond 2^53 may come as int64, which test_source_labels.py is about
    assert [float(label) for chunk in chunks for label in chunk.y] == labels
    assert np.concatenate([chunk.lines for chunk in chunks]).tolist() == lines
    assert [chunk.first_row for chunk in chunks] == np.cumsum([0] + [len(chunk) for chunk in chunks])[:-1].tolist()


@FEW
@given(
    words=st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.builds("{}e{}".format, st.integers(-(2**64), 2**64), st.integers(-340, 280)),
            st.builds("{}.{}".format, st.integers(-(10**12), 10**12), st.integers(0, 10**25)),
        ).filter(lambda word: abs(float(word)) <= LARGEST_VALUE),
        min_size=1,
        max_size=50,
    )
)
def test_float64_values_are_rounded_as_python_rounds(tmp_path, words):
    chunk = load(tmp_path, "".join(f"0 1:{word}\n" for word in words), dtype=np.float64)
    values = np.ones(len(words)) if chunk.batch.values is None else chunk.batch.values
    assert values.tolist() == [float(word) for word in words]


def test_halfway_numbers_round_to_even(tmp_path):
    words = ["9007199254740993", "9007199254740995", "1.00000000000000011102230246251565404", "4503599627370497.5"]
    chunk = load(tmp_path, "".join(f"0 1:{word}\n" for word in words), dtype=np.float64)
    assert chunk.batch.values.tolist() == [float(word) for word in words]


def test_rows_of_ones_have_no_values(tmp_path):
    batch = load(tmp_path, "1 1:1 3:1.0\n-1 2:1e0\n").batch
    assert batch.values is None
    assert batch.indices.dtype == np.int32
    assert rows_of(batch) == [[(0, 1.0), (2, 1.0)], [(1, 1.0)]]


def test_indices_beyond_32_bits_become_int64(tmp_path):
    batch = load(tmp_path, "1 5:2 3000000000:4\n1 1:7\n").batch
    assert batch.indices.dtype == np.int64
    assert rows_of(batch) == [[(4, 2.0), (2999999999, 4.0)], [(0, 7.0)]]
    assert batch.n_features == 3000000000


def test_zero_based_indices_are_kept(tmp_path):
    batch = load(tmp_path, "1 0:2 4:3\n", zero_based=True).batch
    assert rows_of(batch) == [[(0, 2.0), (4, 3.0)]]
    assert batch.n_features == 5


def test_width_grows_with_the_file_and_load_takes_the_largest(tmp_path):
    source = open_source(write(tmp_path, "1 9:1\n1 2:1\n1 12:1\n"))
    assert [chunk.batch.n_features for chunk in source.chunks(6)] == [9, 9, 12]
    assert source.load().batch.n_features == 12


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_compressed_text_reads_the_same_whatever_its_name(tmp_path, suffix, compress):
    text = "".join(f"{k % 2} {k + 1}:{k}.5\n" for k in range(500))
    for name in (f"data.svm.{suffix}", f"data.{suffix}", "data.svm"):
        source = open_source(write(tmp_path, compress(text.encode()), name))
        assert rows_of(source.load().batch) == libsvm(text)[0]
        assert sum(len(chunk) for chunk in source.chunks(100)) == 500


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("x 1:1", 1, "label 'x' is not a number"),
        ("nan 1:1", 1, "label 'nan' is not a number"),
        ("1,2 1:1", 1, "label '1,2' is not a number"),
        ("1e999 1:1", 1, "label '1e999' is not a number"),
        ("1 2:1 2:1", 7, "must increase"),
        ("1 3:1 2:1", 7, "must increase"),
        ("1 0:1", 3, "--zero-based"),
        ("1 -2:1", 3, "expected index:value"),
        ("1 7", 3, "expected index:value"),
        ("1 a:1", 3, "expected index:value"),
        ("1 99999999999999999999:1", 3, "too large"),
        ("1 1:abc", 5, "value 'abc' is not a number"),
        ("1 1:1x", 5, "value '1x' is not a number"),
        ("1 1:", 5, "is not a number"),
        ("1 1: 2", 5, "is not a number"),
        ("1 1:1e", 5, "is not a number"),
        ("1 1:nan", 5, "not finite"),
        ("1 1:-inf", 5, "not finite"),
        ("1 1:1e39", 5, "not finite"),
        ("1 1:1e999", 5, "not finite"),
        ("1 qid:3 1:1", 3, "qid"),
    ],
)
def test_bad_lines_are_refused_by_place_and_can_be_skipped(tmp_path, line, column, message):
    path = write(tmp_path, f"1 1:1 5:2\n\n{line}\n-1 2:3\n")
    with pytest.raises(DataError) as caught:
        open_source(path).load()
    assert str(caught.value).startswith(f"{path}:3:{column}: ")
    assert message in str(caught.value)
    for nbytes in (1, 1 << 20):
        source = open_source(path, on_bad_row="skip")
        chunks = list(source.chunks(nbytes))
        assert [row for c in chunks for row in rows_of(c.batch)] == [[(0, 1.0), (4, 2.0)], [(1, 3.0)]]
        assert [line for c in chunks for line in c.lines] == [1, 4]
        assert max(c.batch.n_features for c in chunks) == 5
        assert source.skipped.count == 1
        assert source.skipped.first == str(caught.value)


@pytest.mark.parametrize("solver", ["auto", "stream", "lbfgs"])
def test_an_index_that_asks_for_more_weights_than_fit_is_named_with_line_and_column(tmp_path, solver):
    path = write(tmp_path, "1 1:1\n-1 2:1\n\n1 3:5\t100000000000:1 # 100000000000:1\n-1 2:2\n")
    message = r"data\.svm:4:7: index 100,000,000,000 \(counted from 1\) asks for .* 400 GB, .*\.hashed\(24\)"
    with pytest.raises(DataError, match=message):
        LinearSVM(solver=solver, loss="squared_hinge").fit(path)
    assert LinearSVM("Linear().hashed(10)").fit(path).score(path) == 1.0


@pytest.mark.parametrize("solver", ["dcd", "stream"])
def test_the_column_is_found_among_several_files_and_where_indices_start_at_0(tmp_path, solver):
    (tmp_path / "a.svm").write_text("1 0:1\n-1 1:1\n")
    with gzip.open(tmp_path / "b.svm", "wt") as file:
        file.write("1 0:1\n  -1 1:1 00100000000000:1\n")
    source = open_source(str(tmp_path / "*.svm"), zero_based=True)
    with pytest.raises(DataError, match=r"b\.svm:2:10: index 100,000,000,001 \(counted from 1\)"):
        LinearSVM(solver=solver).fit(source)
