"""The speed-up of OCAS by its parallel DOT, as in COFFIN's section 3.1.

OCAS asks for the outputs of all examples at once, so that threads can share them out. The paper had 50 million windows
on 16 cores, and computed outputs in 19 hours instead of 252: 13 times as fast. Here the same training, C = 1, hinge
loss, a relative duality gap of 0.01, runs with one thread and with more, in one process, the windows in memory.
"outputs" is the time of all DOT of all windows, and "planes" that of ADD; "training" is all of it with its proof. The
windows, their features and what is compiled before are those of table 2.

    python -m benchmarks.paper.coffin_parallel [--rows d20_12,d20_16] [--sizes 1e5,1e6] [--threads 1,2]
        [--write docs/results.md] [--tiny]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

import dotadd
from benchmarks.paper import coffin
from benchmarks.paper.coffin import Data, Features, Table, tell
from benchmarks.paper.coffin_table2 import ROWS, count
from dotadd._util.threads import thread_count
from dotadd.features.base import Shape
from dotadd.features.expression import parse
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers.run import Settings
from dotadd.solvers.table import SOLVERS

NAMES = ("d20_12", "d20_16")
SIZES, TINY_SIZES = (10**5, 10**6), (400,)
COLUMNS = ["features", "windows", "threads", "outputs, s", "planes, s", "training, s", "passes", "gap"]
COLUMNS += ["outputs, times as fast", "training, times as fast"]
PAPER = ("paper: d = 20, 12 bits", "50,000,000", "16", "68,400", "", "", "", "", "13x of 1 core", "")


class Timed(InMemory):
    """An InMemory that knows the seconds of its DOT of all rows, and of its ADD."""

    outputs = planes = 0.0

    def dot(self, ws: Sequence[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        began = perf_counter()
        found = super().dot(ws, rows)
        self.outputs += perf_counter() - began
        return found

    def add(
        self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray], squares: Sequence[np.ndarray] = ()
    ) -> None:
        began = perf_counter()
        super().add(coefficients, ws, squares)
        self.planes += perf_counter() - began


class Run(NamedTuple):
    """A training with so many threads."""

    threads: int
    outputs: float
    planes: float
    seconds: float
    passes: int
    gap: float


def measure(windows: Path, features: Features, threads: Sequence[int], warm: Path) -> Iterator[Run]:
    """The same training with each number of threads."""
    for number in threads:
        train(warm, features, number)
        tell(f"{features}: {number} threads")
        yield train(windows, features, number)


def train(windows: Path, features: Features, threads: int) -> Run:
    chunk = dotadd.open(windows).load()
    assert chunk.y is not None
    phi = parse(features.expression).resolve(Shape.of(chunk.batch))
    began = perf_counter()
    examples = Timed(phi, chunk.batch, threads=threads)
    columns = Columns.of([np.where(chunk.y > 0, 1, -1).astype(np.int8)], np.ones(len(chunk)))
    (found,) = SOLVERS["ocas"](Problem(examples, columns), Settings(coffin.TOLERANCE, max_passes=10**6))
    seconds = perf_counter() - began
    assert found.gap is not None
    return Run(threads, examples.outputs, examples.planes, seconds, found.passes, found.gap)


def cells_of(features: Features, size: int, run: Run, first: Run) -> list[str]:
    """A line of the table, beside the first one, which has one thread."""
    return [
        str(features), count(size), str(run.threads), f"{run.outputs:,.1f}", f"{run.planes:,.1f}",
        f"{run.seconds:,.1f}", str(run.passes), f"{run.gap:.4f}",
        f"**{first.outputs / run.outputs:.2f}x**", f"{first.seconds / run.seconds:.2f}x",
    ]  # fmt: skip


def main(
    *,
    tiny: bool = False,
    names: Sequence[str] = NAMES,
    sizes: Sequence[int] | None = None,
    threads: Sequence[int] | None = None,
    page: Path | None = None,
) -> None:
    """The table, printed as it comes and kept in the page."""
    threads = threads or sorted({1, thread_count(None)})
    some = [ROWS[name].tiny if tiny else ROWS[name].features for name in NAMES]
    order = [(str(one), count(size), str(k)) for one in some for size in (*TINY_SIZES, *SIZES) for k in range(1, 65)]
    table = Table("coffin_parallel", COLUMNS, [*order, PAPER[:3]], page)
    with tempfile.TemporaryDirectory() as folder:
        data = Data(Path(folder), tiny)
        for name in names:
            features = ROWS[name].tiny if tiny else ROWS[name].features
            for size in sizes or (TINY_SIZES if tiny else SIZES):
                first = None
                for run in measure(data.train(size), features, threads, data.warm):
                    first = first or run
                    table.add(*cells_of(features, size, run, first))
    table.add(*PAPER)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(NAMES), help="some of %(default)s")
    parser.add_argument("--sizes", default="1e5,1e6", help="numbers of windows; %(default)s")
    parser.add_argument("--threads", help="numbers of threads, the first of which the others are compared with")
    parser.add_argument("--write", type=Path, help="a page with marks for the table, to be kept up to date")
    parser.add_argument("--tiny", action="store_true", help="a few hundred simulated windows")
    arguments = parser.parse_args()
    names = arguments.rows.split(",")
    if unknown := sorted(set(names) - set(NAMES)):
        parser.error(f"there is no row {unknown[0]}; choose among {', '.join(NAMES)}")
    try:
        sizes = None if arguments.tiny else [int(float(size)) for size in arguments.sizes.split(",")]
        threads = [int(number) for number in arguments.threads.split(",")] if arguments.threads else None
    except ValueError:
        parser.error("--sizes and --threads: numbers with commas between them")
    main(tiny=arguments.tiny, names=names, sizes=sizes, threads=threads, page=arguments.write)
