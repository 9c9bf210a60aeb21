"""Small problems that the solver tests share."""

import numpy as np

from dotadd.core.losses import Loss
from dotadd.data.batches import DenseRows, SparseRows, Strings
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.linear import Linear
from dotadd.problem.columns import Columns, PassingColumns
from dotadd.problem.examples import InMemory
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.certify import Judge, certify, judges_of

LOSSES = ["hinge", "squared_hinge", "logistic"]
INTERCEPTS = ["none", "regularized", "free"]


def noisy(n=60, d=8, seed=0, shift=0.7):
    """Two overlapping classes, unbalanced and away from the origin, with empty rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = np.where(X @ rng.normal(size=d) + 0.8 * rng.normal(size=n) + shift > 0, 1, -1)
    X[:2] = 0.0
    y[:2] = [1, -1]
    return X, y


def sparse(X, dtype=np.float32):
    """Dense numbers as sparse rows."""
    rows, columns = np.nonzero(X)
    offsets = np.searchsorted(rows, np.arange(len(X) + 1))
    return SparseRows(offsets, columns.astype(np.int32), X[rows, columns].astype(dtype), X.shape[1])


def problem(X, ys, *, cost=1.0, loss="hinge", intercept="regularized", dtype=np.float64, dense=False):
    batch = DenseRows(X.astype(dtype)) if dense else sparse(X, dtype)
    examples = InMemory(Linear().resolve(Shape.of(batch)), batch, dtype=dtype)
    signs = [np.asarray(y, np.int8) for y in np.atleast_2d(ys)]
    costs = np.broadcast_to(np.asarray(cost, np.float64), len(X)).copy()
    return Problem(examples, Columns.of(signs, costs), Loss.named(loss), Intercept(intercept))


def flow_of(
    batch, phi, signs, cost=1.0, memory=None, *, dtype=np.float64, threads=1, loss="hinge", intercept="regularized"
):
    """The same examples as if they were on disk; the memory is a tenth of theirs by default."""
    signs = [np.asarray(y, np.int8) for y in np.atleast_2d(signs)]
    cost = np.broadcast_to(np.asarray(cost, np.float64), len(batch)).copy()
    columns, ends = Columns.of(signs, cost), np.cumsum(batch.row_bytes())

    def read(nbytes):
        first = 0
        while first < len(batch):
            before = ends[first - 1] if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + nbytes, side="right")))
            yield batch.slice(first, stop), columns.take(slice(first, stop))
            first = stop

    memory = int(ends[-1]) // 10 if memory is None else memory
    examples = OnDisk(phi.resolve(Shape.of(batch)), read, len(batch), memory, dtype=dtype, threads=threads)
    return Problem(examples, PassingColumns(len(signs)), Loss.named(loss), Intercept(intercept))


def streamed_of(phi, chunks, rows, **options):
    """Examples on disk without labels, of which chunks() brings the batches; pieces are as it cuts them."""

    def read(nbytes):
        for batch in chunks():
            yield batch, Columns.of([], np.zeros(len(batch)))

    return OnDisk(phi, read, rows, 1 << 20, **options)


def certified(problem, ws, bs, alphas, check=lambda: None, *, which=None, **options):
    """The certificates of these answers."""
    ks = range(len(ws)) if which is None else which
    return certify(problem, judges_of(problem, ks, ws, bs, alphas), check, **options)


def squared_distances(examples, coefficients, ws):
    """|w - sum_i coefficient_i phi(z_i)|^2 for each of several w, as a proof finds it."""
    ones = np.ones(len(examples))
    problem = Problem(examples, Columns.of([ones for _ in ws], ones))
    judges = [Judge(problem, k, w, some, 0.0) for k, (w, some) in enumerate(zip(ws, coefficients, strict=True))]
    for judge in judges:
        judge.conclude()
    certify(problem, judges)
    return [judge.distance for judge in judges]


def words(n=600):
    rng = np.random.default_rng(2)
    return Strings.from_list([bytes(rng.integers(97, 105, k % 40, dtype=np.uint8)) for k in range(n)])


def dna(n=900, width=25):
    letters = np.random.default_rng(3).integers(0, 4, n * width)
    return Strings(np.frombuffer(b"ACGT", np.uint8)[letters], width=width)


def arrow(path, rows, width, *, seed=0, batch=2000):
    """Dense rows of two overlapping classes, written without ever being in memory together."""
    import pyarrow as pa
    import pyarrow.ipc

    rng = np.random.default_rng(seed)
    direction = rng.normal(size=width).astype(np.float32)
    fields = [("x", pa.list_(pa.float32(), width)), ("label", pa.int64())]
    schema = pa.schema(fields, metadata={"dotadd": "", "column": "x"})
    with pa.ipc.new_file(path, schema) as writer:
        for first in range(0, rows, batch):
            n = min(batch, rows - first)
            X = rng.normal(size=(n, width)).astype(np.float32)
            y = np.where(X @ direction + 3.0 * rng.normal(size=n) > 0, 1, -1)
            x = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), width)
            writer.write_batch(pa.record_batch([x, pa.array(y)], schema=schema))
    return str(path)


WORDS = ["buy", "now", "cheap", "see", "you", "at", "noon", "meeting", "a", "the", "offer", "report", "money", "lunch"]


def texts(count, seed=0, longest=40, repeat=True):
    """Lines of words, in which none comes twice unless `repeat`."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(rng.choice(WORDS, rng.integers(1, longest if repeat else 9), replace=repeat)) for _ in range(count)
    ]


def labels(lines):
    """Whether a line wants to sell something, with a tenth of them wrong."""
    noise = np.random.default_rng(9).random(len(lines)) < 0.1
    return np.where((np.array([line.count("buy") + line.count("offer") for line in lines]) > 0) ^ noise, 1, -1)


class Counting(FeatureMap):
    """The letters of a string, one slot for each byte; counts how often each row is made."""

    takes = (Strings,)

    def __init__(self, made):
        self.made = made

    dim = 256

    def bound(self, batch):
        return batch.lengths().astype(np.int64)

    def fill(self, batch, rows, block):
        for j, row in enumerate(rows):
            self.made[row] += 1
            block.append(j, np.frombuffer(batch[row], np.uint8), 1.0)
