"""Coordinate descent against the batch solver of each loss: where the thresholds of `solvers/table.py` come from.

Nine data sets, tall and wide, for C = 0.01, 1 and 100: a9a, ijcnn1, w8a, sector (its first half of classes against the
rest), the eights of MNIST, SMS spam as hashed n-grams, KDD 99, and random numbers, sparse and dense. Both solvers run
to the same relative duality gap, on all cores, within a time limit; times are without reading the data or compiling,
the better of two runs where they are short. Beside them stand what the choice looks at, rows for each feature and the
mean of C |phi|^2, and what it chooses; "lost" is how many times as long that takes as the faster one.

    python -m benchmarks.choice [--loss hinge] [--tol 1e-3] [--max-time S] [--tiny] [name ...]
"""

from __future__ import annotations

import argparse
import gzip
import lzma
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import dotadd
from benchmarks import datasets, streams
from benchmarks.solvers import LOSSES
from dotadd._util.threads import thread_count
from dotadd.core.losses import Loss
from dotadd.features.base import Shape
from dotadd.features.linear import Linear
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers.run import Settings
from dotadd.solvers.table import SOLVERS, batch_solver, choose_solver

COSTS = (0.01, 1.0, 100.0)
TOLERANCE, MAX_TIME = 1e-3, 12.0
EASY = 0.01  # C |phi|^2 of a problem that any solver has solved in no time
SHORT = 1.0  # seconds: shorter runs are made twice
COLUMNS = ["data", "loss", "C", "rows / feature", "C \\|phi\\|^2", "dcd, s", "batch, s", "dcd / batch", "auto", "lost"]

Data = tuple[Any, np.ndarray]


def digits() -> Data:
    def read(name: str, header: int) -> np.ndarray:
        packed = datasets.existing(datasets.FOLDER / "mnist" / name).read_bytes()
        return np.frombuffer(gzip.decompress(packed), np.uint8, offset=header)

    images, labels = read("train-images-idx3-ubyte.gz", 16), read("train-labels-idx1-ubyte.gz", 8)
    return images.reshape(-1, 784)[:20_000].astype(np.float32) / 255, np.where(labels[:20_000] == 8, 1, 0)


def messages() -> Data:
    with lzma.open(
        datasets.existing(datasets.FOLDER / "sms_spam" / "SMSSpamCollection.xz"), "rt", encoding="utf8"
    ) as f:
        labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in f), strict=True)
    return list(texts), np.array(labels)


def connections() -> Data:
    _, numbers, normal = streams.read_connections("corrected.xz")
    return np.log1p(numbers[:60_000]), np.where(normal[:60_000], 1, 0)


def half_of_sector() -> Data:
    X, y = datasets.load("sector")
    return X, np.where(y <= 52, 1, 0)


def random_dense() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 100)).astype(np.float32)
    return X, np.where(X @ rng.normal(size=100) + 3 * rng.normal(size=30_000) > 0, 1, 0)


SETS: dict[str, Callable[[], Data]] = {
    "a9a": lambda: datasets.load("a9a"),
    "ijcnn1": lambda: datasets.load("ijcnn1"),
    "w8a": lambda: datasets.load("w8a"),
    "sector": half_of_sector,
    "mnist": digits,
    "sms": messages,
    "kdd99": connections,
    "sparse": lambda: datasets.synthetic(50_000, 2**17, 30),
    "dense": random_dense,
}
PHI = {"sms": "NGrams((2, 4)).hashed(18).normalized()"}


class Cell(NamedTuple):
    """Both solvers on one problem. Seconds are infinite where the time was not enough."""

    name: str
    loss: str
    C: float
    tall: float  # rows for each feature
    stiff: float  # the mean of C |phi|^2
    dcd: float
    batch: float
    auto: str

    @property
    def chosen(self) -> float:
        return self.dcd if self.auto == "dcd" else self.batch


def measure(
    names: Sequence[str],
    losses: Sequence[str],
    *,
    tol: float = TOLERANCE,
    max_time: float = MAX_TIME,
    tiny: bool = False,
) -> Iterator[Cell]:
    """Both solvers on each data set, for each loss and C."""
    for name in names:
        X, y = datasets.synthetic(300, 100, 10) if tiny else SETS[name]()
        batch = dotadd.open(X).load().batch
        phi = Linear() if tiny or name not in PHI else dotadd.parse(PHI[name])
        examples = InMemory(phi.resolve(Shape.of(batch)), batch, threads=thread_count(None))
        for loss in losses:
            for C in COSTS:
                yield compare(name, examples, y, loss, C, tol, max_time)


def compare(name: str, examples: InMemory, y: np.ndarray, loss: str, C: float, tol: float, max_time: float) -> Cell:
    """Both solvers on one problem, and what the choice between them is and looks at."""
    kind, norm = Loss.named(loss), float(examples.squared_norms().mean())
    signs = np.where(y == np.unique(y)[-1], 1, -1).astype(np.int8)
    easy, problem = (Problem(examples, Columns.of([signs], np.full(len(y), cost)), kind) for cost in (EASY / norm, C))

    def run(solver: str) -> tuple[float, bool]:
        began = perf_counter()
        (found,) = SOLVERS[solver](problem, Settings(tol, max_passes=10**6, max_time=max_time), None)
        return perf_counter() - began, found.converged

    def time(solver: str) -> float:
        SOLVERS[solver](easy, Settings(0.1), None)  # compiles
        seconds, converged = run(solver)
        if seconds < SHORT:
            seconds = min(seconds, run(solver)[0])
        return seconds if converged else np.inf

    auto, _ = choose_solver("auto", problem)
    return Cell(name, loss, C, len(y) / examples.dim, C * norm, time("dcd"), time(batch_solver(kind)), auto)


def cells_of(cell: Cell, max_time: float) -> list[str]:
    """A line of the table; the faster time is bold."""

    def told(seconds: float, other: float) -> str:
        if np.isinf(seconds):
            return f"not in {max_time:g}"
        return f"**{seconds:.3f}**" if seconds <= other else f"{seconds:.3f}"

    faster = min(cell.dcd, cell.batch)
    both = np.isfinite(cell.dcd) and np.isfinite(cell.batch)
    lost = "" if np.isinf(faster) else f"{cell.chosen / faster:.2f}x"
    if np.isinf(cell.chosen) and lost:
        lost = f"over {max_time / faster:.2f}x"
    return [
        cell.name,
        cell.loss,
        f"{cell.C:g}",
        f"{cell.tall:.3g}",
        f"{cell.stiff:.3g}",
        told(cell.dcd, cell.batch),
        told(cell.batch, cell.dcd),
        f"{cell.dcd / cell.batch:.2f}" if both else "",
        cell.auto,
        lost,
    ]


def report(
    names: Sequence[str] = tuple(SETS),
    losses: Sequence[str] = tuple(LOSSES),
    *,
    tol: float = TOLERANCE,
    max_time: float = MAX_TIME,
    tiny: bool = False,
) -> Iterator[str]:
    """The table in Markdown, line by line."""
    yield _line(COLUMNS)
    yield "|---" * len(COLUMNS) + "|"
    for cell in measure(names, losses, tol=tol, max_time=max_time, tiny=tiny):
        yield _line(cells_of(cell, max_time))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(SETS)}")
    parser.add_argument("--loss", action="append", choices=LOSSES, help="one of %(choices)s; may be given again")
    parser.add_argument("--tol", type=float, default=TOLERANCE, help="relative duality gap; %(default)g")
    parser.add_argument("--max-time", type=float, default=MAX_TIME, help="seconds for each run; %(default)g")
    parser.add_argument("--tiny", action="store_true", help="a few hundred rows")
    arguments = parser.parse_args()
    names = arguments.names or list(SETS)
    if unknown := sorted(set(names) - set(SETS)):
        parser.error(f"there is no {unknown[0]}; choose among {', '.join(SETS)}")
    losses = arguments.loss or list(LOSSES)
    for line in report(names, losses, tol=arguments.tol, max_time=arguments.max_time, tiny=arguments.tiny):
        print(line, flush=True)
