"""Data to be streamed: Arrow files that are written once, part by part, with a fifth held out for testing.

- chr19: windows of 200 letters around every AG of human chromosome 19, 2 bits a letter; which are acceptor sites?
  Features are those of weighted degree 8, expanded on the fly.
- dna: the same windows, and which letter stands where: 800 columns, a quarter of them 1, as in the paper's set.
- kdd99: connections of KDD 99, shuffled, normal ones against all attacks. A column for each symbol, and numbers as
  logarithms between 0 and 1.
- ocr: dense, 1156 pixels. Two classes of glyphs of 34 x 34, moved and noisy; rows have length one. A linear classifier
  errs on one in ten or so.
- kddb: very sparse and wide. 29 of 1.5 columns for each row, Zipf-distributed; six rows of one class for one of the
  other; rows have length one.

The first three are real, and come from the folder DOTADD_DATA; kdd99 is repeated, in another order, where more rows are
asked for than it has. The others are made up, with the shapes of the sets of these names in the StreamSVM paper.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import dotadd
from benchmarks import datasets
from dotadd._util.atomic import replacing
from dotadd.data.batches import Batch, DenseRows, SparseRows
from dotadd.genome import simulate
from dotadd.genome.windows import Windows
from dotadd.model import evaluation
from dotadd.model.linear import Model
from dotadd.sources.base import CHUNK_BYTES, Chunk, Source
from dotadd.sources.convert import convert

PIECE = 1 << 20  # bytes of raw examples that are made and written at a time
HELD_OUT = 0.2
LETTERS = 200
SIDE = 34  # pixels
GLYPHS, SHIFT = 12, 2  # glyphs of a class, and by how many pixels they are moved at most
FIELDS, FILLED = 32, 29 / 32  # columns of kddb-like rows come from so many fields, so large a share of which is filled
COMMON = 6  # rows of the common class for each of the rare one

Rows = tuple[Batch, np.ndarray]


@dataclass(frozen=True)
class Stream:
    """A data set on disk. `nbytes` is what its training examples would take in memory, raw."""

    name: str
    train: Path
    test: Path
    rows: int
    nbytes: int

    @property
    def phi(self) -> str | None:
        return KINDS[self.name].phi

    @property
    def metric(self) -> str:
        return KINDS[self.name].metric

    def budget(self, share: float) -> int:
        """Bytes of so large a share of the training examples."""
        return max(1, int(self.nbytes * share))

    def score(self, model: Model) -> float:
        """How good a model is on the held-out examples, by the measure that suits them."""
        found = [(chunk.y, scores) for chunk, scores in model.decision_chunks(dotadd.open(self.test))]
        truth, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return judged(self.metric, truth, scores)


def judged(metric: str, truth: np.ndarray, scores: np.ndarray) -> float:
    """Accuracy, or area under the precision-recall curve where one class is rare; labels are -1 and 1."""
    return evaluation.accuracy(truth > 0, scores > 0) if metric == "accuracy" else evaluation.auprc(truth > 0, scores)


class Kind(NamedTuple):
    """How examples of a kind are made: from a number of rows (None is all there are), whether they are to be held
    out, and whether they are tiny."""

    make: Callable[[int | None, bool, bool], Iterator[Rows]]
    rows: int | None  # by default
    metric: str
    phi: str | None = None
    file: str | None = None  # another kind whose files it shares


@dataclass
class Made(Source):
    """Examples that are made anew in each pass. What has passed is counted."""

    parts: Callable[[], Iterator[Rows]]
    rows: int = 0
    nbytes: int = 0

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        self.rows = self.nbytes = 0
        for batch, y in self.parts():
            yield Chunk(batch, y, None, self.rows)
            self.rows += len(batch)
            self.nbytes += batch.nbytes


def write(name: str, folder: Path, rows: int | None = None, *, tiny: bool = False) -> Stream:
    """The files of a data set in this folder; those of an earlier run with the same parameters are used again."""
    kind = KINDS[name]
    rows = rows or (TINY_ROWS if tiny else kind.rows)
    stem = f"{kind.file or name}_{'tiny_' if tiny else ''}{rows or 'all'}"
    train, test, record = (folder / f"{stem}{suffix}" for suffix in (".arrow", ".test.arrow", ".json"))
    if not record.exists():  # it is written last
        folder.mkdir(parents=True, exist_ok=True)
        for path, held_out in ((test, True), (train, False)):
            source = Made(lambda held_out=held_out: kind.make(rows, held_out, tiny))  # type: ignore[misc]
            convert(source, path)
        with replacing(record) as temporary:
            temporary.write_text(json.dumps({"rows": source.rows, "nbytes": source.nbytes}))
    return Stream(name, train, test, **json.loads(record.read_text()))


def _held_out(rows: int) -> int:
    """How many examples to hold out beside so many to train on."""
    return round(rows * HELD_OUT / (1.0 - HELD_OUT))


def _windows(rows: int | None, held_out: bool, tiny: bool) -> Iterator[Rows]:
    """Windows of the chromosome; a fifth of it, in whole stretches, is held out."""
    if tiny:
        assert rows is not None
        wanted = _held_out(rows) if held_out else rows
        source = dotadd.open(*simulate.splice_windows(wanted, positives=0.1, seed=int(held_out)))
    else:
        source = _chromosome()
        if held_out:
            source = source.held_out()
        if rows is not None:
            genome, annotation = source.genome, source.annotation  # read once
            source = replace(source, sample=_held_out(rows) if held_out else rows)
            source.genome, source.annotation = genome, annotation
    for chunk in source.chunks(PIECE):
        assert chunk.y is not None
        yield chunk.batch, chunk.y


@cache
def _chromosome() -> Windows:
    folder = datasets.FOLDER / "human_chr19"
    files = [datasets.existing(folder / name) for name in ("chr19.fa.xz", "chr19.gff3.xz")]
    return Windows(*files, signal="acceptor", length=LETTERS, part="train", holdout=HELD_OUT, seed=0)


def _connections(rows: int | None, held_out: bool, tiny: bool) -> Iterator[Rows]:
    """Rows of KDD 99. The table is small enough to be shuffled in memory; repetitions of it are made as they go."""
    X, y = _kdd_table(tiny)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    cut = round(len(y) * HELD_OUT)
    order = order[:cut] if held_out else order[cut:]
    left = len(order) if held_out or rows is None else rows
    step = max(1, PIECE * len(y) // (8 * X.nnz))
    while left:
        for first in range(0, min(left, len(order)), step):
            some = order[first : min(first + step, left)]
            part = X[some]
            yield SparseRows(part.indptr.astype(np.int64), part.indices, part.data, X.shape[1]), y[some]
        left -= min(left, len(order))
        order = rng.permutation(order)


@cache
def _kdd_table(tiny: bool) -> tuple[sp.csr_matrix, np.ndarray]:
    """A column for each symbol, and one for each number: log(1 + x) over its largest value."""
    symbols, numbers, normal = _random_connections() if tiny else read_connections()
    columns = [sp.csr_matrix(np.log1p(numbers) / np.maximum(np.log1p(numbers).max(axis=0), 1e-12))]
    for column in symbols:
        codes = np.unique(column, return_inverse=True)[1]
        columns.append(sp.csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes))))
    return sp.hstack(columns, format="csr", dtype=np.float32), np.where(normal, 1, -1)


def read_connections(name: str = "kddcup.data_10_percent.xz") -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """A table of KDD 99: the columns of symbols, those of numbers, and whether each connection is a normal one."""
    import pyarrow.csv as csv

    with lzma.open(datasets.existing(datasets.FOLDER / "kdd99" / name)) as file:
        table = csv.read_csv(file, csv.ReadOptions(autogenerate_column_names=True))
    *columns, labels = (column.to_numpy() for column in table.columns)
    symbols = [columns.pop(1) for _ in range(3)]  # protocol, service, flag
    return symbols, np.column_stack(columns).astype(np.float32), labels == "normal."


def _random_connections() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = 2 * TINY_ROWS
    symbols = [rng.integers(0, count, rows) for count in (3, 10, 5)]
    numbers = rng.poisson(1.0, (rows, 10)).astype(np.float32)
    return symbols, numbers, numbers[:, :3].sum(axis=1) + symbols[0] + rng.normal(size=rows) > 4.0


def _glyphs(rows: int | None, held_out: bool, tiny: bool) -> Iterator[Rows]:
    """A glyph of its class, moved by a pixel or two, under smooth and under white noise; 256 shades of gray."""
    assert rows is not None
    bank, noise = _bank()
    for rng, count in _parts(rows, held_out, 4 * SIDE * SIDE):
        y = np.where(rng.random(count) < 0.49, 1, -1)
        which = rng.integers(0, bank.shape[1], count)
        pixels = bank[(y > 0).astype(int), which]
        pixels += 0.8 * rng.standard_normal((count, len(noise)), np.float32) @ noise
        pixels += 0.4 * rng.standard_normal(pixels.shape, np.float32)
        gray = np.rint(255.0 * np.clip(0.25 + 0.5 * pixels, 0.0, 1.0)).astype(np.float32)
        yield DenseRows(gray / np.linalg.norm(gray, axis=1, keepdims=True)), y


@cache
def _bank() -> tuple[np.ndarray, np.ndarray]:
    """All glyphs of both classes in all places, and smooth patterns for noise; each with pixels of size one or so.

    Both classes are variations of the same shape, so that they are not told apart at a glance.
    """
    rng = np.random.default_rng(0)
    wide = SIDE + 2 * SHIFT

    def smooth(count: int, width: float) -> np.ndarray:
        """Random patterns that change over so many pixels."""
        at = np.arange(wide)
        blur = np.exp(-0.5 * ((at[:, None] - at) / width) ** 2)
        patterns = blur @ rng.standard_normal((count, wide, wide)) @ blur
        return patterns / patterns.std(axis=(1, 2), keepdims=True)

    shape, classes, single = smooth(1, 4.0), smooth(2, 3.0), smooth(2 * GLYPHS, 2.0).reshape(2, GLYPHS, wide, wide)
    glyphs = np.tanh(1.5 * (shape + 0.3 * classes[:, None] + 0.8 * single))  # ink, paper, and a soft edge between them
    moved = [
        glyphs[..., i : i + SIDE, j : j + SIDE].reshape(2, GLYPHS, SIDE * SIDE)
        for i in range(2 * SHIFT + 1)
        for j in range(2 * SHIFT + 1)
    ]
    noise = smooth(60, 3.0)[:, :SIDE, :SIDE].reshape(60, SIDE * SIDE) / np.sqrt(60)
    return np.concatenate(moved, axis=1).astype(np.float32), noise.astype(np.float32)


def _answers(rows: int | None, held_out: bool, tiny: bool) -> Iterator[Rows]:
    """Rows with one column of each field that is filled, the k-th most frequent with a chance like 1 / k.

    The label is a sparse linear model's, under noise; the rarer class is 1.
    """
    assert rows is not None
    width = 3 * rows // (2 * FIELDS)  # columns of a field
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(FIELDS * width, np.float32) * (rng.random(FIELDS * width, np.float32) < 0.2)
    threshold: float | None = None
    starts = np.arange(FIELDS) * width
    for rng, count in _parts(rows, held_out, round(8 * FIELDS * FILLED)):
        columns = starts + np.minimum(
            np.exp(rng.random((count, FIELDS)) * np.log(width + 1)).astype(int) - 1, width - 1
        )
        filled = rng.random((count, FIELDS)) < FILLED
        filled[:, 0] = True
        lengths = filled.sum(axis=1)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        values = np.repeat(1.0 / np.sqrt(lengths), lengths).astype(np.float32)
        output = (weights[columns] * filled).sum(axis=1) / np.sqrt(lengths)
        output += 0.25 * rng.standard_normal(count)
        if threshold is None:
            threshold = float(np.quantile(output, COMMON / (COMMON + 1)))
        indices = columns[filled].astype(np.int32)
        yield SparseRows(offsets, indices, values, FIELDS * width), np.where(output > threshold, 1, -1)


def _parts(rows: int, held_out: bool, row_bytes: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Random numbers of its own, and a number of rows, for each part of these rows."""
    left = _held_out(rows) if held_out else rows
    step = max(1, PIECE // row_bytes)
    for part in range(-(-left // step)):
        yield np.random.default_rng([int(held_out), part]), min(step, left - part * step)


TINY_ROWS = 600
KINDS = {
    "chr19": Kind(_windows, 200_000, "auPRC", "WeightedDegree(8).normalized()"),
    "dna": Kind(_windows, 1_000_000, "auPRC", "WeightedDegree(1).normalized()", file="chr19"),
    "kdd99": Kind(_connections, None, "accuracy"),
    "ocr": Kind(_glyphs, 60_000, "accuracy"),
    "kddb": Kind(_answers, 1_000_000, "auPRC"),
}
