"""DOT, ADD and products with a Hessian over all rows, with one thread and with two.

DOT is the output of all rows, ADD the sum of all rows with a coefficient each, and the product both in one pass, as
Newton's method asks for it. Nanoseconds for a non-zero of phi(z), the best of several runs that take turns; w is
float32, sums are float64. Text and DNA are simulated; "bits" are those of the hash.

    python -m benchmarks.parallel [--tiny]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from benchmarks import datasets
from dotadd._util.threads import for_each
from dotadd.data.batches import Batch, DenseRows, SparseRows, Strings
from dotadd.features import FeatureMap, Linear, NGrams, Shape, WeightedDegree, WeightedSpectrum
from dotadd.genome.simulate import splice_windows
from dotadd.problem.examples import InMemory

THREADS = 2


def sparse(name: str, tiny: bool) -> SparseRows:
    X, _ = datasets.load(name, tiny)
    return SparseRows(X.indptr, X.indices, X.data, X.shape[1])


def dense(rows: int, columns: int) -> DenseRows:
    return DenseRows(np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32))


def text(rows: int) -> Strings:
    """Lines of up to sixty words, few of which are frequent."""
    rng = np.random.default_rng(0)
    words = [rng.integers(97, 123, length, np.uint8).tobytes() for length in rng.integers(2, 10, 5000)]
    picks = [(20 * rng.pareto(1.0, count)).astype(np.int64) % len(words) for count in rng.integers(5, 60, rows)]
    return Strings.from_list([b" ".join(words[k] for k in pick) for pick in picks])


def cases(tiny: bool) -> Iterator[tuple[str, FeatureMap, Batch]]:
    """What the rows are called, phi and the rows; made one after the other, as some are large."""
    size = 100 if tiny else 1
    yield "a9a, 123 columns", Linear(), sparse("a9a", tiny)
    yield "synthetic, 2^20 columns", Linear(), sparse("synthetic", tiny)
    yield "dense, 500 columns", Linear(), dense(50_000 // size, 500)
    yield "text, 3-grams, 18 bits", NGrams(3, bits=8 if tiny else 18), text(50_000 // size)
    yield "DNA, spectra of degree 8", WeightedSpectrum(8), splice_windows(100_000 // size)[0]
    for bits in (12, 16):
        phi = WeightedDegree(20).hashed(4 if tiny else bits)
        yield f"DNA, weighted degree 20, {bits} bits", phi, splice_windows(100_000 // size)[0]


def operations(examples: InMemory) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(1)
    w = rng.normal(size=examples.dim).astype(np.float32)
    numbers, out = rng.normal(size=len(examples)), np.zeros(examples.dim)
    return {
        "DOT": lambda: examples.dot([w]),
        "ADD": lambda: examples.add([numbers], [out]),
        "product": lambda: examples.dot_add([numbers], [w], [out]),
    }


def best(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The shortest time of each call. They take turns for so many seconds, and three times at least."""
    times: list[list[float]] = [[] for _ in calls]
    began = perf_counter()
    while len(times[0]) < 4 or perf_counter() - began < seconds:
        for call, mine in zip(calls, times, strict=True):
            at = perf_counter()
            call()
            mine.append(perf_counter() - at)
    return [min(mine[1:]) for mine in times]


def ceiling(seconds: float) -> float:
    """How many times as fast two threads are here at arithmetic that touches no memory beyond the nearest cache."""
    numbers = np.linspace(0.0, 1.0, 2000)

    def work(_: int) -> None:
        for _ in range(50):
            np.sin(numbers)

    one, two = best([lambda t=threads: for_each(range(16), work, t) for threads in (1, THREADS)], seconds)
    return one / two


def report(*, tiny: bool = False) -> str:
    """The table, in Markdown."""
    lines = [
        f"| rows | non-zeros | operation | ns with 1 thread | ns with {THREADS} | times as fast |",
        "|---|---|---|---|---|---|",
    ]
    for name, phi, batch in cases(tiny):
        phi = phi.resolve(Shape.of(batch))
        nonzeros = int(np.broadcast_to(phi.bound(batch), len(batch)).sum())
        alone, together = (operations(InMemory(phi, batch, threads=threads)) for threads in (1, THREADS))
        for operation in alone:
            one, two = best([alone[operation], together[operation]], 0.0 if tiny else 2.0)
            cells = [
                name,
                f"{nonzeros:,}",
                operation,
                *(f"{1e9 * t / nonzeros:.2f}" for t in (one, two)),
                f"{one / two:.2f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    most = ceiling(0.0 if tiny else 2.0)
    return "\n".join(lines) + f"\n\nOn a machine of {os.cpu_count()} cores, where arithmetic alone gains {most:.2f}.\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    print(report(tiny=parser.parse_args().tiny))
