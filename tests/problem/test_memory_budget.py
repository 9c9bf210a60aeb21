"""Budgets of memory: how they are written, what is free, and that reading stays within them however large files are."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from problems import certified

from dotadd import LinearSVM, automata
from dotadd._util import compressed, memory
from dotadd.core.losses import Loss
from dotadd.errors import DataError, DotaddError
from dotadd.features.linear import Linear
from dotadd.genome.files import Annotation
from dotadd.problem.columns import PassingColumns
from dotadd.problem.on_disk import OnDisk, let_go
from dotadd.problem.problem import Intercept, Problem
from dotadd.problem.survey import Survey
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.sources import open as open_source
from dotadd.sources.around import Few, Kept
from dotadd.sources.base import TooLargeError
from dotadd.sources.convert import convert
from dotadd.sources.table import Layout


@pytest.mark.parametrize(
    ("size", "nbytes"),
    [
        ("500MB", 500 * 10**6), ("2GB", 2 * 10**9), ("1.5 GiB", 3 << 29), (" 3 kib ", 3 << 10), ("0.5TB", 5 * 10**11),
        ("7", 7), ("7 B", 7), ("12M", 12 * 10**6), (".5kB", 500), (64, 64), (np.int64(9), 9), (2e9, 2 * 10**9),
    ],
)  # fmt: skip
def test_sizes_are_read_as_people_write_them(size, nbytes):
    assert memory.parse_bytes(size) == nbytes


@pytest.mark.parametrize(
    "size", ["", "MB", "much", "0", "0MB", "-1GB", "1 PB", "1,5GB", "nan", "5 MBs", 0, -3, float("nan"), True, None, []]
)
def test_what_is_no_size_is_refused(size):
    with pytest.raises(DotaddError, match="is no size of memory; write it like 500MB"):
        memory.parse_bytes(size)


def test_sizes_are_told_in_words():
    told = [memory.words(n) for n in (0, 1, 999, 1000, 1549, 99_949, 999_600, 500e6, 1.25e9, 64 << 30, 3e15)]
    expected = "0 bytes|1 bytes|999 bytes|1 kB|1.5 kB|100 kB|1 MB|500 MB|1.2 GB|69 GB|3000 TB"
    assert told == expected.split("|")


def system(folder: Path, free_kb: int | None, group: str, files: dict[str, str]) -> int:
    """What is available where /proc and the control groups look like this."""
    (folder / "proc/self").mkdir(parents=True)
    if free_kb is not None:
        (folder / "proc/meminfo").write_text(f"MemTotal: 999999 kB\nMemAvailable:   {free_kb} kB\n")
    (folder / "proc/self/cgroup").write_text(group)
    for name, text in files.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return memory.available(folder / "proc", folder / "groups")


def test_what_is_free_is_bounded_by_the_machine_and_by_every_control_group(tmp_path):
    limits = {"a/b/memory.max": "max\n", "a/memory.max": "9000\n", "a/memory.current": "5000\n"}
    assert system(tmp_path / "1", 2, "0::/a/b\n", limits) == 2048
    assert system(tmp_path / "2", 100, "0::/a/b\n", limits) == 4000
    cached = {"a/memory.stat": "file 7\ninactive_file 3000\n"}
    assert system(tmp_path / "3", 100, "0::/a/b\n", limits | cached) == 7000
    assert system(tmp_path / "4", 100, "0::/a/b\n", limits | {"memory.max": "60", "memory.current": "80"}) == 0


def test_older_control_groups_count_even_where_a_container_hides_their_path(tmp_path):
    limits = {"memory/memory.limit_in_bytes": "9000", "memory/memory.usage_in_bytes": "1000"}
    assert system(tmp_path / "1", 100, "4:cpu:/\n3:memory:/docker/ab\n", limits) == 8000
    inner = {"memory/docker/ab/memory.limit_in_bytes": "500", "memory/docker/ab/memory.usage_in_bytes": "100"}
    assert system(tmp_path / "2", 100, "4:cpu:/\n3:memory,x:/docker/ab\n", limits | inner) == 400


def test_without_proc_something_is_free(tmp_path):
    assert memory.available(tmp_path, tmp_path) > 0
    assert memory.available() > 0


SPARSE = sp.random_array((4000, 50), density=0.2, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
ROWS = {"sparse": SPARSE, "dense": SPARSE.toarray(), "strings": [f"{k:40d}" for k in range(4000)]}


@pytest.mark.parametrize("kind", [*ROWS, "libsvm"])
def test_rows_are_loaded_only_if_they_take_no_more_than_the_limit(tmp_path, kind):
    path = tmp_path / "x.arrow"
    if kind == "libsvm":
        path = tmp_path / "x.svm"
        path.write_text("1 3:1 5:0.5\n-1 3:2 7:0.25\n" * 5000)
    else:
        convert(open_source(ROWS[kind], np.arange(4000) % 2), path)
    source = open_source(path)
    whole = source.load()
    beside = sum(array.nbytes for array in (whole.y, whole.lines) if array is not None)
    size = whole.batch.nbytes + beside
    slack = 8 * len(list(source.chunks(source.stride)))  # the offsets of each chunk begin anew
    assert len(source.load(size + slack)) == len(whole)
    for limit in (size - 1, size // 2, 1):
        with pytest.raises(TooLargeError):
            source.load(limit)
    assert open_source(str(path) + "*").load(size + slack).y.tolist() == whole.y.tolist()


@pytest.mark.parametrize(("limit", "most"), [(8, 0.6), (4, 0.2), (1, 0.1)])
def test_text_that_will_not_fit_is_not_read_to_see_it(tmp_path, limit, most):
    """The more it is beyond the limit, the sooner that is seen."""
    path = tmp_path / "x.csv"
    path.write_text("a,b,label\n" + "0.1,0.2,1\n0.3,0.4,0\n" * 800_000)
    source = open_source(path).asked(Layout.of_cells({"a": "both", "b": "both"}))
    told = []
    with source.telling(told.append):
        size = sum(chunk.nbytes for chunk in source.chunks(1 << 20))
    pieces, seen = len(told), []
    read = type(source).chunks
    source.chunks = lambda nbytes: (seen.append(len(chunk)) or chunk for chunk in read(source, nbytes))
    with pytest.raises(TooLargeError):
        source.load(size * limit // 10)
    assert pieces > 10
    assert sum(seen) <= most * 1_600_000


def test_rows_that_take_more_memory_than_most_may_come_first(tmp_path):
    """A megabyte of short lines takes more than twice as much in memory, and twenty of long ones hardly more."""
    path = tmp_path / "x.txt"
    lines = ["__label__b x"] * 80_000 + ["__label__a " + "x" * 1000] * 20_000
    path.write_text("\n".join(lines) + "\n")
    source = open_source(path)
    assert len(source.load(source.load().nbytes * 21 // 20)) == len(lines)


def test_a_limit_counts_the_rows_of_a_chunk_and_not_the_array_they_lie_in(tmp_path):
    table = pa.table({"x": open_source(SPARSE).load().batch.to_arrow()})
    with pa.ipc.new_file(
        str(tmp_path / "x.arrow"), table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
    ) as f:
        f.write_table(table)

    source = open_source(tmp_path / "x.arrow", column="x")
    chunks = list(source.chunks(20000))
    assert len(chunks) > 5
    assert sum(chunk.nbytes for chunk in chunks) < 1.1 * source.load().batch.nbytes


def test_what_is_in_memory_has_no_limit():
    assert len(open_source(SPARSE).load(1)) == 4000
    assert len(open_source(SPARSE, np.arange(4000)).load(1)) == 4000


def test_kept_rows_that_are_too_large_are_read_anew(tmp_path):
    (tmp_path / "x.svm").write_text("1 3:1 5:0.5\n-1 3:2 7:0.25\nbad\n" * 9)
    kept = Kept(open_source(tmp_path / "x.svm", on_bad_row="skip"))
    with pytest.raises(TooLargeError):
        kept.load(100)
    assert len(list(kept.chunks(50))) > 3
    assert kept.skipped.count == 9
    few = Few(kept, 5)
    assert few.load().lines.tolist() == [[1, 2][row % 2] + row // 2 * 3 for row in (0, 1, 2, 3, 4, 8, 12, 17)]
    with pytest.raises(TooLargeError):
        kept.load(10**9)
    assert len(kept.load()) == 18


def test_a_chunk_in_slices_is_the_chunk(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.svm").write_text("1 1:1\n\n-1 2:1\n")
    chunk = open_source(str(tmp_path / "*.svm")).load()
    for first in range(6):
        part = chunk.slice(first, 6)
        assert [str(part.error(row, "no")) for row in range(len(part))] == [
            str(chunk.error(row, "no")) for row in range(first, 6)
        ]
        assert part.y.tolist() == chunk.y[first:].tolist()
        assert part.first_row == first


MEGABYTES = 160
CHILD = """
import sys
import numpy as np
from dotadd.sources import open as open_source
from dotadd.genome.files import Annotation
from dotadd.sources.base import TooLargeError

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

first, path = sys.argv[1:]
for chunk in open_source(first, label="label", column="x").chunks(): pass
source = open_source(path, label="label", column="x")
before = peak()
rows = sum(len(chunk) for chunk in source.chunks(4 << 20))
print(rows, peak() - before)
try:
    source.load(20 << 20)
except TooLargeError:
    print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("kind", ["small batches", "one batch", "compressed", "parquet"])
def test_memory_stays_bounded_however_large_the_file_is(tmp_path, kind):
    rows = MEGABYTES * 1000
    base = np.random.default_rng(0).random((rows // 100, 256)).astype(np.float32)
    x = open_source(base).load().batch.to_arrow()
    some = pa.table({"x": x, "label": np.arange(len(base)) % 2})
    table = pa.concat_tables([some] * 100)
    for name, data in (("first", some), ("x", table)):
        path = tmp_path / name
        if kind == "parquet":
            pq.write_table(data, path, row_group_size=rows // 2)
            continue
        options = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "compressed" else None)
        with pa.ipc.new_file(str(path), data.schema, options=options) as writer:
            writer.write_table(data.combine_chunks() if kind == "one batch" else data, max_chunksize=None)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "first"), str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    read, in_pass, in_load = done.stdout.split()
    assert int(read) == rows
    assert float(in_pass) < MEGABYTES / 3
    assert float(in_load) < 20 + MEGABYTES / 2


TRAINED = """
import sys, warnings
from dotadd import LinearSVM
warnings.simplefilter("ignore")
svm = LinearSVM(sys.argv[2], memory=sys.argv[3], max_passes=1, n_jobs=2).fit(sys.argv[1])
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) * 1024, svm.coef_.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_a_row_larger_than_the_budget_takes_a_few_times_its_features_and_no_more(tmp_path):
    """Its features are in memory together, 8 bytes each, and no table that is as long as the row is beside them."""
    letters = 1_000_000
    long = bytes(np.random.default_rng(0).integers(97, 123, letters).astype(np.uint8)).decode()
    for name, row in {"short": long[:1000], "long": long}.items():
        rows = [*["abcd", "efgh"] * 20, row, "z"]
        convert(open_source(rows, np.arange(len(rows)) % 2), tmp_path / f"{name}.arrow")

    def peak(name, budget):
        command = [
            sys.executable,
            "-c",
            TRAINED,
            str(tmp_path / f"{name}.arrow"),
            "NGrams((3, 5)).normalized()",
            budget,
        ]
        return map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())

    peak("short", "100")  # what has to be compiled is compiled here
    without, _ = peak("short", "100")
    found, w = peak("long", "100kB")
    assert found <= without + 100_000 + w + 4 * letters * 3 * 8


def of_classes(classes, rows=3000):
    """A survey of so many classes, and what they are to be told apart by."""
    X = np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float32)
    survey = Survey.of(open_source(X, np.arange(rows) % classes), lambda _, shape: Linear().resolve(shape), 1 << 20)
    return survey, survey.tally.targets(1.0, None, "x")


def test_a_piece_has_the_fewer_rows_the_more_classes_there_are():
    for classes in (3, 100):
        survey, targets = of_classes(classes)
        for nbytes in (20_000, 1_000_000):
            pieces = list(survey.pieces(targets, nbytes))
            problem = survey.problem(targets, 10**9, Loss.HINGE, Intercept.FREE)
            found = list(problem.pieces(nbytes))
            assert [row for piece in found for row in range(piece.rows.start, piece.rows.stop)] == list(range(3000))
            largest = max(len(batch) for batch, _ in pieces)
            ks = range(len(targets.problems))
            assert all(len(columns.sign(k)) == len(batch) for batch, columns in pieces for k in ks)
            assert largest <= 256 or largest * (16 + 8 * len(targets.problems)) <= nbytes
    signs = np.concatenate([columns.sign(7) for _, columns in pieces])
    np.testing.assert_array_equal(signs > 0, np.arange(3000) % 100 == 7)


def test_what_is_kept_for_each_row_and_problem_is_in_memory_only_if_all_of_it_fits():
    def on_disk(problems, memory):
        examples = OnDisk(Linear(n_features=2), lambda nbytes: iter(()), 1000, memory)
        return isinstance(Problem(examples, PassingColumns(problems)).dual_variables().base, np.memmap)

    assert [on_disk(1, 8000), on_disk(1, 7999), on_disk(5, 40_000), on_disk(5, 8000)] == [False, True, False, True]


def test_a_free_intercept_is_the_same_whether_outputs_are_in_memory_or_on_disk():
    survey, targets = of_classes(3)
    rng = np.random.default_rng(1)
    ws = [rng.normal(size=4).astype(np.float32) for _ in range(3)]
    found = []
    for budget in (1000, 10**9):
        alphas = [0.5 * np.ones(3000) for _ in range(3)]
        problem = survey.problem(targets, budget, Loss.HINGE, Intercept.FREE)
        found.append(certified(problem, ws, [0.0] * 3, alphas))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_columns_in_a_file_keep_what_is_in_them_when_their_memory_is_given_back():
    for nbytes in (1, 10**9):  # in a file, and in memory
        column = OnDisk(Linear(n_features=2), lambda _: iter(()), 300_000, nbytes).column(np.float64)
        assert isinstance(column.base, np.memmap) == (nbytes == 1)
        column[:] = np.arange(300_000)
        let_go(column)
        np.testing.assert_array_equal(column, np.arange(300_000))


def test_a_checkpoint_is_read_without_a_second_copy_of_its_arrays(tmp_path):
    file = Checkpoint(str(tmp_path / "c"))
    alpha = np.random.default_rng(0).random(4_000_000)
    file.save({"alpha.0": alpha, "short": np.arange(3)}, {"memory": 7})
    out = np.zeros_like(alpha)
    tracemalloc.start()
    arrays, record = file.load()
    arrays.into("alpha.0", out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < alpha.nbytes / 2
    np.testing.assert_array_equal(out, alpha)
    assert (arrays["short"].tolist(), record) == ([0, 1, 2], {"memory": 7})
    with pytest.raises(DotaddError, match=r"damaged: short has the shape \(3,\)"):
        arrays.into("short", out)


@pytest.mark.parametrize("solver", ["stream", "block_minimization"])
def test_a_budget_of_one_byte_ends_and_says_what_is_used(tmp_path, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5)).astype(np.float32)
    y = np.where(X @ rng.normal(size=5) + rng.normal(size=3000) > 0, 1, -1)
    convert(open_source(X, y), tmp_path / "x.arrow")
    said = []
    svm = LinearSVM(memory=1, solver=solver, C=0.01, n_jobs=1).fit(tmp_path / "x.arrow", announce=said.append)
    assert "1 bytes of memory is too little for 3000 rows: 24 kB are used" in said
    assert svm.result_.gap <= 1e-3


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_parquet_of_values_that_are_alike_takes_no_more_memory_than_other_values(tmp_path):
    rows = 4_000_000  # 64 MB in memory, next to nothing on disk
    for name, count in (("first", 10), ("x", rows)):
        pq.write_table(pa.table({"x": np.zeros(count), "label": np.ones(count)}), tmp_path / name, row_group_size=rows)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "first"), str(tmp_path / "x")]
    read, in_pass, _ = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(read) == rows
    assert float(in_pass) < 30


BOMBS = {
    "x.svm": ("1 1:1\n-1 2:1\n", "1 ", "3:1 "),
    "x.csv": ("a,label\n1,0\n", "2,", "1"),
    "x.tsv": ("a\tlabel\n1\t0\n", "2\t", "1"),
    "quoted.csv": ("text,label\na,0\n", '"', "a\n"),
    "x.jsonl": ('{"text": "a", "label": 0}\n{"text": "b", "label": 0}\n', '{"text": "', "a"),
    "x.fa": (">a 0\nACGT\n", ">b 1\n", "ACGT\n"),
    "x.wcn": ("1\ta\ta:1:1.0\n0\tb\ta:1:1.0\n", "0\tc\t", "a:2:1.0 "),
    "x.ark": ("1\ta\n0 1 w 0.5\n1\n\n", "1\tb\n", "0 1 w 0.5\n"),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("opened", [open, gzip.open])
def test_a_record_without_an_end_is_refused_with_its_line(tmp_path, name, opened):
    good, begin, more = BOMBS[name]
    path = tmp_path / name
    with opened(path, "wt") as file:
        file.write(good + begin + more * (3_000_000 // len(more)))
    source = open_source(path)
    source.bound(1 << 20)
    with pytest.raises(DataError, match="takes more than the 1 MB that it may") as caught:
        list(source.chunks(64))
    assert (caught.value.path, caught.value.line) == (str(path), good.count("\n") + 1)
    source.bound(100 << 20)
    source.on_bad_row = "skip"
    assert sum(len(chunk) for chunk in source.chunks(64)) > 0


def test_lines_of_annotations_and_automata_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed, "LARGEST", 100_000)
    (tmp_path / "a.gff").write_text("##gff\nc\t" + "x" * 200_000 + "\n")
    with pytest.raises(DataError, match=r"a\.gff:2: .*takes more than"):
        Annotation(tmp_path / "a.gff")
    (tmp_path / "a.txt").write_text("0 1 a 0.5\n" + "1" * 200_000 + "\n")
    with pytest.raises(DataError, match=r"a\.txt:2: .*takes more than"):
        automata.read(tmp_path / "a.txt", format="text")


# The peak that getrusage tells is at first that of the process this one was started by.
BOMB = """
import sys
from dotadd import LinearSVM

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024

LinearSVM().fit(sys.argv[1])
before = peak()
try:
    LinearSVM(memory="10MB").fit(sys.argv[2])
except ValueError as error:
    print(error)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_compressed_line_without_an_end_takes_no_more_than_a_few_times_the_budget(tmp_path):
    (tmp_path / "good.svm").write_text("1 1:1\n-1 2:1\n")
    with gzip.open(tmp_path / "bomb.svm.gz", "wt") as file:
        file.write("1 1:1\n-1 2:1\n1 ")
        for _ in range(100):
            file.write("1:1 " * 250_000)
    command = [sys.executable, "-c", BOMB, str(tmp_path / "good.svm"), str(tmp_path / "bomb.svm.gz")]
    told, grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told.startswith(f"{tmp_path}/bomb.svm.gz:3: one line or record takes more than the 10 MB")
    assert float(grown) < 60


def long_rows(kind, size):
    """Rows of which number 5 takes so many bytes, as a column of an Arrow table."""
    letters = [b"ab", b"c", b"", b"d", b"e", b"f" * size, b"g"]
    if kind == "lists":
        return pa.array([[{"index": k, "value": 1.0} for k in range(len(row) // 12)] for row in letters],
                        pa.list_(pa.struct([("index", pa.int32()), ("value", pa.float64())])))  # fmt: skip
    if kind == "lists in lists":
        return pa.array([[[1.0] * (len(row) // 16)] * 2 for row in letters], pa.list_(pa.list_(pa.float64())))
    if kind == "dictionary":
        return pa.array(letters, pa.binary()).dictionary_encode()
    types = {"text": pa.string(), "large": pa.large_binary(), "view": pa.binary_view()}
    return pa.array([row.decode() if kind == "text" else row for row in letters], types[kind])


def written(path, table, format):
    if format == "parquet":
        return pq.write_table(table, path)
    options = pa.ipc.IpcWriteOptions(compression="lz4" if format == "compressed" else None)
    make = pa.ipc.new_stream if format == "stream" else pa.ipc.new_file
    with make(str(path), table.schema, options=options) as file:
        file.write_table(table)


@pytest.mark.parametrize("kind", ["text", "large", "view", "dictionary", "lists", "lists in lists"])
@pytest.mark.parametrize("format", ["file", "stream", "compressed", "parquet"])
def test_a_row_of_arrow_that_is_larger_than_it_may_be_is_refused_with_its_number(tmp_path, kind, format):
    x = long_rows(kind, 2_400_000)
    table = pa.table({"x": pa.chunked_array([x.slice(0, 2), x.slice(2)]), "label": np.arange(len(x)) % 2})
    written(tmp_path / "x", table, format)
    source = open_source(tmp_path / "x", column="x", label="label")
    for nbytes in (1 << 12, 64 << 20):
        source.bound(1 << 20)
        with pytest.raises(DataError, match=r"row 5: one row takes more than the 1 MB .* give more memory") as caught:
            list(source.chunks(nbytes))
        assert caught.value.path == str(tmp_path / "x")
        if kind != "lists in lists":  # which hold no examples
            source.bound(3 << 20)
            assert sum(len(chunk) for chunk in source.chunks(nbytes)) == len(x)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_arrays_of_rows_that_are_larger_than_they_may_be_are_refused(tmp_path, name):
    X = np.ones((3, 300_000), np.float32)
    np.save(tmp_path / name, X) if name == "x.npy" else np.savez(tmp_path / name, x=X)
    source = open_source(tmp_path / name)
    source.bound(1 << 20)
    with pytest.raises(DataError, match=r"row 0: one row takes more than the 1 MB"):
        list(source.chunks(64))
    source.bound(2 << 20)
    assert sum(len(chunk) for chunk in source.chunks(64)) == 3


LONG = """
import sys
import dotadd

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024

phi = "NGrams((3, 5))"
good, long = (dotadd.open(path, column="x", label="label") for path in sys.argv[1:3])
dotadd.LinearSVM(phi, solver="stream", max_passes=1).fit(good)
before = peak()
try:
    dotadd.LinearSVM(phi, memory="10MB", max_passes=1).fit(long)
except ValueError as error:
    print(error)
else:
    print("trained")
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("size", [5_000_000, 52_000_000])
@pytest.mark.parametrize("format", ["file", "parquet"])
def test_a_row_is_refused_beyond_the_budget_and_takes_a_few_times_its_features_below(tmp_path, format, size):
    """Refused before it is read, where the file tells; Parquet has to be decoded first."""
    for name, longest in (("good", 2), ("long", size)):
        rows = pa.array(["ab", "cd", "e" * longest, "f"] * 5)
        rows = rows if name == "good" else rows.slice(0, 4)
        written(tmp_path / name, pa.table({"x": rows, "label": np.arange(len(rows)) % 2}), format)
    command = [sys.executable, "-W", "ignore", "-c", LONG, str(tmp_path / "good"), str(tmp_path / "long")]
    told, grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    if size <= 10_000_000:
        assert told == "trained"
        assert float(grown) < 10e6 + 2 * 3 * 8 * size
    else:
        assert told.startswith(f"{tmp_path}/long: row 2: one row takes more than the 10 MB")
        assert float(grown) < 10e6 + (5 * size if format == "parquet" else 0)


CLASSES = """
import sys, warnings
import dotadd
warnings.simplefilter("ignore")
source = dotadd.open(sys.argv[1])
svm = dotadd.LinearSVM(memory="1MB", max_passes=1, solver="stream", n_jobs=1).fit(source)
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024, svm.coef_.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_many_classes_take_no_memory_for_every_row_and_class_but_for_dual_variables(tmp_path):
    """Outputs of all rows for all classes would take as much again as the dual variables, and break the bound."""
    rows, classes = 20_000, 500
    X = np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float32)
    convert(open_source(X[:1200], np.arange(1200) % 3), tmp_path / "few.arrow")
    convert(open_source(X, np.arange(rows) % classes), tmp_path / "x.arrow")

    def peak(name):
        command = [sys.executable, "-c", CLASSES, str(tmp_path / name)]
        return map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())

    peak("few.arrow")  # what has to be compiled is compiled here
    found, w = peak("x.arrow")
    assert found <= 1_000_000 + w + 8 * rows * classes + 300_000_000
