"""DOT of many windows with a w that stands still: predictions, the gap, batch solvers.

Example by example, each window touches all of w. Position by position, the tables of one position stay in the cache
while all windows look up their k-mers in them (features/kmer_tables.py); the more windows a call takes, the less it
matters that the tables have to be fetched.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks.locality.measuring import Setting, in_turn, some_rows, table, weighted_degree, weights
from dotadd import WeightedSpectrum
from dotadd._util.threads import thread_count
from dotadd.core import block as blocks
from dotadd.data.batches import Strings
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.filling import Filling
from dotadd.problem.examples import InMemory


def report(given: Setting) -> str:
    """Nanoseconds a feature by map and by how w is touched."""
    batch = given.windows
    cores = thread_count(None)
    head = ["features", "example by example, one core"]
    head += [f"by position, {count:,} windows a call" for count in given.many]
    head += ["times as fast", f"by position, {cores} cores", "times as fast"]
    rows = []
    for bits in given.bits:
        positions = weighted_degree(bits, batch)
        for name, phi in [
            (f"{bits} bits", positions),
            (f"{bits} bits, short orders hashed too", weighted_degree(bits, batch, explicit=0)),
            (f"{bits} bits and two spectra", positions + spectra(batch)),
        ]:
            rows.append([name, *_cells(phi.prepared(batch, cores), given, cores)])
    return table(head, rows)


def spectra(batch: Strings) -> FeatureMap:
    """The two other maps of COFFIN's section 3.1, left and right of the site."""
    left, right = WeightedSpectrum(8, span=(0, 59)), WeightedSpectrum(8, span=(61, 141))
    return (left.normalized() + right.normalized()).resolve(Shape.of(batch))


def example_by_example(phi: FeatureMap, batch: Strings, rows: np.ndarray, w: np.ndarray) -> np.ndarray:
    """DOT through blocks that stay in the cache; w does not."""
    out, first = np.empty(len(rows)), 0
    for block, at, some in Filling(phi, batch).blocks(rows):
        blocks.dot(block.start, block.end, block.indices, block.values, at, w, out[first : first + len(some)])
        first += len(some)
    return out


def by_position(phi: FeatureMap, batch: Strings, rows: np.ndarray, w: np.ndarray, count: int) -> np.ndarray:
    """DOT position by position, so many windows a call."""
    out = np.zeros(len(rows))
    for first in range(0, len(rows), count):
        phi.dot(batch, rows[first : first + count], w, out[first : first + count])
    return out


def _cells(phi: FeatureMap, given: Setting, cores: int) -> list[str]:
    batch, w = given.windows, weights(phi.dim)
    rows = some_rows(given.many[-1], batch)
    fewer = rows[: given.many[-2]]  # enough of them: each block is like the other
    everywhere = InMemory(phi, batch, threads=cores)
    np.testing.assert_allclose(
        by_position(phi, batch, fewer, w, given.many[0]), example_by_example(phi, batch, fewer, w), rtol=1e-4
    )
    runs = {"examples": lambda: example_by_example(phi, batch, fewer, w)}
    runs |= {str(count): lambda count=count: by_position(phi, batch, rows, w, count) for count in given.many}
    seconds = in_turn(runs, given.repeat)
    seconds |= in_turn({"cores": lambda: everywhere.dot([w], rows)}, given.repeat, perf_counter)
    features = int(np.max(phi.bound(batch)))
    ns = {run: 1e9 * taken / (len(fewer if run == "examples" else rows) * features) for run, taken in seconds.items()}
    one, all_of_them = ns[str(given.many[-1])], ns["cores"]
    return [
        f"{ns['examples']:.2f}",
        *(f"{ns[str(count)]:.2f}" for count in given.many),
        f"**{ns['examples'] / one:.1f}x**",
        f"{all_of_them:.2f}",
        f"**{ns['examples'] / all_of_them:.1f}x**",
    ]
