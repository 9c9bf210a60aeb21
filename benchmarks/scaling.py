"""What training on many machines takes: rounds needed, what a round costs, and what both predict.

Rounds are counted with all parts in one process, which finds the same bits as any cluster would: CoCoA+ to a relative
duality gap of 0.1 %, examples shared out at random, hinge loss, C = 0.1. Beside them, how far above the best objective
the mean of the parts' own answers is (`average`).

What a round costs is measured with Dask workers on this machine, each a process with one thread and its own examples:

    seconds a round = local pass + levels * (2 |w| / bandwidth + latency),    levels = 1 + log2(K)

w goes from the driver to the first worker and from there down a tree, and sums come back the same way; each level waits
for the one before it. |w| is in bytes, four for each weight. The local pass is what the same rounds take without Dask,
times the processes that share a core. Bandwidth and latency are those with which the formula fits best. Of the rounds,
the one in the middle is told.

Predictions are for machines that each train on one part with one thread, on examples of 100 non-zeros (800 bytes) and
2^24 weights, with a network of 10 Gbit/s, or less if that is what was measured here. The local pass grows with the
examples of a machine; where they are more than 64 GB, it takes at least as long as reading them at 1 GB/s. Rounds
follow the power of K that fits what was counted.

    python -m benchmarks.scaling [--data a9a,w8a] [--parts 1,4,16] [--write docs/scaling.md] [--tiny]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import dotadd
from benchmarks import datasets
from benchmarks.paper.coffin import Table, tell
from dotadd.cluster.average import average
from dotadd.cluster.cocoa import cocoa
from dotadd.cluster.connection import local_workers
from dotadd.cluster.dask_engine import DaskEngine
from dotadd.cluster.engine import Engine, LocalEngine
from dotadd.cluster.fitting import agree
from dotadd.cluster.partitions import Partitions
from dotadd.cluster.shard import Shard, Task
from dotadd.features import Linear
from dotadd.solvers.run import Settings

DATA = ("a9a", "w8a", "synthetic")
PARTS = (1, 2, 4, 16, 64, 256)
PROCESSES = (1, 2, 4)
SIZES = ((2**10, 4_000), (2**20, 30_000), (2**22, 120_000))  # weights, and rows of each process that touch most of them
TINY_SIZES = ((2**8, 100), (2**12, 600))
NONZEROS = 64  # of these rows
ROUNDS = 8  # that are timed
TOL, C = 1e-3, 0.1
NETWORK, DISK, MEMORY = 10e9 / 8, 1e9, 64e9  # bytes a second, and of a machine
MACHINES, EXAMPLES = (10, 100, 1000), (1e9, 1e10, 1e11)
WIDTH, WEIGHTS = 100, 2**24  # non-zeros of an example and weights, of the predictions
COUNTED = [
    "data",
    "K",
    "rounds",
    "work, s",
    "size of a difference, of w",
    "average: above the best",
    "average: its gap",
]
TIMED = ["weights", "processes", "local pass, s", "round, s", "by the formula, s"]
FITTED = ["constant", "value"]
PREDICTED = ["examples", "machines", "rounds", "local pass, s", "network, s", "round, s", "training"]


@dataclass(frozen=True)
class Counted:
    """What K parts needed, and what averaging would have left."""

    name: str
    parts: int
    rounds: int
    work: float  # seconds of all parts together
    sent: float  # bytes of a difference, as a share of those of w
    above: float
    gap: float


@dataclass(frozen=True)
class Timed:
    """A round of so many processes."""

    weights: int
    processes: int
    local: float
    seconds: float

    @property
    def network(self) -> float:
        return max(0.0, self.seconds - self.local)


@dataclass(frozen=True)
class Cost:
    """The constants: seconds a non-zero and round, bytes a second, seconds a level; and rounds = base * K^power."""

    nonzero: float
    bandwidth: float
    latency: float
    base: float
    power: float

    def network(self, weights: int, parts: int) -> float:
        return levels(parts) * (2.0 * 4.0 * weights / self.bandwidth + self.latency)

    def local(self, examples: float, parts: int) -> float:
        nbytes = 8.0 * WIDTH * examples / parts
        reading = nbytes / DISK if nbytes > MEMORY else 0.0
        return max(self.nonzero * WIDTH * examples / parts, reading)

    def rounds(self, parts: int) -> float:
        return self.base * parts**self.power


def levels(parts: int) -> float:
    return 1.0 + float(np.ceil(np.log2(parts)))


def stated(engine: Engine) -> Task:
    return agree(engine, lambda chunk, shape: Linear().resolve(shape), C=C)


def count(name: str, X: Any, y: np.ndarray, parts: Sequence[int]) -> list[Counted]:
    """Rounds and the quality of averaging, for each number of parts."""
    found, best = [], np.inf
    owner = np.random.default_rng(0).permutation(len(y))
    for K in parts:
        tell(f"{name}: {K} parts")
        shares = [np.sort(owner[k::K]) for k in range(K)]
        engine = LocalEngine([Shard(dotadd.open(X[rows], y[rows]), 1 << 40, number=k) for k, rows in enumerate(shares)])
        task = stated(engine)
        begun = engine.traffic.rounds, engine.traffic.up, engine.traffic.work
        results = cocoa(engine, task, Settings(tol=TOL, max_passes=20_000))
        rounds = max(result.passes for result in results)
        sent = (engine.traffic.up - begun[1]) / (engine.traffic.rounds - begun[0]) / K / task.problems
        work = engine.traffic.work - begun[2]
        best = min(best, sum(result.primal for result in results))
        stated(engine)
        means = average(engine, task, Settings(tol=TOL))
        above = sum(result.primal for result in means) / best - 1.0
        gap = max(result.gap or 0.0 for result in means)
        found.append(Counted(name, K, rounds, work, sent / (4.0 * task.phi.dim), above, gap))
    return found


def middle(engine: Engine, clock: Callable[[], float]) -> float:
    """The median of the seconds of a round, by this clock."""
    for rounds in (1, ROUNDS):  # the first one compiles, and computes lengths
        task, seen = stated(engine), [clock()]
        told = Settings(tol=1e-12, max_passes=rounds, on_progress=lambda progress, k, seen=seen: seen.append(clock()))
        cocoa(engine, task, told)
    return float(np.median(np.diff(seen[: max(2, len(seen) - 1)])))  # the last is told after the proof


def time_rounds(weights: int, rows: int, processes: Sequence[int], folder: Path) -> list[Timed]:
    """Seconds of a round of parts in processes of their own, and of the slowest of the same parts in this one."""
    files = []
    for number in range(max(processes)):
        X, y = datasets.synthetic(rows, weights, NONZEROS)
        path = folder / f"{weights}-{number}.arrow"
        dotadd.convert(dotadd.open(X, np.roll(y, number)), path)
        files.append(str(path))
    found = []
    for K in processes:
        tell(f"{weights:,} weights: {K} processes")
        data = Partitions.of(files[:K])
        local = LocalEngine([Shard(data.source([path]), 1 << 40, number=k) for k, path in enumerate(files[:K])])
        slowest = middle(local, lambda local=local: local.traffic.slowest) * max(1.0, K / (os.cpu_count() or 1))
        with local_workers(K, K) as client, DaskEngine(client, data) as engine:
            found.append(Timed(weights, K, slowest, middle(engine, perf_counter)))
    return found


def fit(timed: Sequence[Timed], counted: Sequence[Counted]) -> Cost:
    """The constants that fit best."""
    from scipy.optimize import nnls

    steps = np.array([levels(one.processes) for one in timed])
    columns = np.column_stack([steps * 8.0 * np.array([one.weights for one in timed]), steps])
    network = np.array([one.network for one in timed])
    scale = 1.0 / np.array([one.seconds for one in timed])  # relative errors count
    (per_byte, latency), _ = nnls(columns * scale[:, None], network * scale)
    alone = [one for one in timed if one.processes == 1 and one.weights == max(t.weights for t in timed)]
    largest = dict(SIZES + TINY_SIZES)[alone[0].weights]
    several = [one for one in counted if one.parts > 1]
    power, base = np.polyfit(np.log([one.parts for one in several]), np.log([one.rounds for one in several]), 1)
    return Cost(
        nonzero=alone[0].local / (largest * NONZEROS),
        bandwidth=1.0 / max(per_byte, 1e-12),
        latency=float(latency),
        base=float(np.exp(base)),
        power=max(0.0, float(power)),
    )


def duration(seconds: float) -> str:
    for size, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {name}"
    return f"{seconds:,.0f} s"


def main(
    *, tiny: bool = False, names: Sequence[str] = DATA, parts: Sequence[int] = PARTS, page: Path | None = None
) -> Cost:
    processes, sizes = (PROCESSES[:2], TINY_SIZES) if tiny else (PROCESSES, SIZES)
    table = Table("scaling_rounds", COUNTED, [(name, str(K)) for name in DATA for K in PARTS], page)
    counted = []
    for name in names:
        for one in count(name, *datasets.load(name, tiny), parts):
            counted.append(one)
            share, above, gap = f"{one.sent:.0%}", f"{one.above:+.2%}", f"{one.gap:.2g}"
            table.add(name, str(one.parts), f"{one.rounds:,}", f"{one.work:,.1f}", share, above, gap)
    timed = []
    with tempfile.TemporaryDirectory() as folder:
        for weights, rows in sizes:
            timed += time_rounds(weights, rows, processes, Path(folder))
    cost = fit(timed, counted)
    table = Table("scaling_rounds_timed", TIMED, [(f"{w:,}", str(K)) for w, _ in SIZES for K in PROCESSES], page)
    for one in timed:
        model = one.local + cost.network(one.weights, one.processes)
        cells = (f"{one.local:.3f}", f"{one.seconds:.3f}", f"{model:.3f}")
        table.add(f"{one.weights:,}", str(one.processes), *cells)
    constants = {
        "local pass, ns a non-zero and round": f"{1e9 * cost.nonzero:.2f}",
        "bandwidth, MB/s": f"{cost.bandwidth / 1e6:,.0f}",
        "latency, ms a level": f"{1e3 * cost.latency:.1f}",
        "rounds": f"{cost.base:.1f} K^{cost.power:.2f}",
    }
    table = Table("scaling_constants", FITTED, [(name,) for name in constants], page)
    for name, value in constants.items():
        table.add(name, value)
    order = [(f"{n:.0e}", f"{K:,}") for n in EXAMPLES for K in MACHINES]
    table = Table("scaling_predictions", PREDICTED, order, page)
    there = Cost(cost.nonzero, min(cost.bandwidth, NETWORK), cost.latency, cost.base, cost.power)
    for n in EXAMPLES:
        for K in MACHINES:
            rounds, local, network = there.rounds(K), there.local(n, K), there.network(WEIGHTS, K)
            cells = (f"{rounds:.0f}", f"{local:,.1f}", f"{network:.1f}", f"{local + network:,.1f}")
            table.add(f"{n:.0e}", f"{K:,}", *cells, duration(rounds * (local + network)))
    return cost


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(DATA), help="data sets to count rounds on; %(default)s")
    parser.add_argument("--parts", default=",".join(map(str, PARTS)), help="numbers of parts; %(default)s")
    parser.add_argument("--write", type=Path, help="a page with marks for the tables, to be kept up to date")
    parser.add_argument("--tiny", action="store_true", help="a few hundred rows of the same kinds")
    arguments = parser.parse_args()
    main(
        tiny=arguments.tiny,
        names=arguments.data.split(","),
        parts=[int(K) for K in arguments.parts.split(",")],
        page=arguments.write,
    )
