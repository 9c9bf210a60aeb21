"""Training on a sample that grows, only windows that would move being visited, against passes over all windows.

Both are the library's dcd to the same gap, on all cores. For the second it is told that DOT of many windows is worth no
more than visits; so it shrinks as LIBLINEAR does and looks at all margins only where it hopes to be done.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from benchmarks.locality.measuring import Setting, some_rows, table, weighted_degree
from dotadd._util.threads import thread_count
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory, Picked
from dotadd.problem.problem import Problem
from dotadd.solvers.dcd import dcd
from dotadd.solvers.run import Settings

TOL = 0.01


class Counted(InMemory):
    """An InMemory that counts how many rows are visited."""

    visits = 0

    def blocks(self, rows: np.ndarray | None = None, *, ahead: bool = False, focus: bool = False) -> Iterator[Picked]:
        for picked in super().blocks(rows, ahead=ahead, focus=focus):
            self.visits += len(picked.rows)
            yield picked


class Unaware(Counted):
    """An InMemory that does not tell how cheap DOT of many rows is."""

    bulk = False


def report(given: Setting) -> str:
    """Seconds and visits to the same gap."""
    head = ["windows", "training", "seconds", "of it visits", "of it DOT of many", "visits", "passes", "gap"]
    bits = given.bits[0]
    rows = []
    for count in given.whole:
        chosen = some_rows(count, given.windows)
        windows, signs = given.windows.take(chosen), given.signs[chosen]
        phi = weighted_degree(bits, windows)
        for name, kind in [("all windows, shrinking", Unaware), ("**a growing sample, movers alone**", Counted)]:
            few = windows.slice(0, min(64, len(windows)))
            dcd(
                Problem(kind(phi, few), Columns.of([signs[: len(few)]], np.ones(len(few)))), Settings(tol=TOL)
            )  # compiles
            examples = kind(phi, windows, threads=thread_count(None))
            began = perf_counter()
            result = dcd(Problem(examples, Columns.of([signs], np.ones(len(examples)))), Settings(tol=TOL))[0]
            parts = result.seconds
            seconds = [perf_counter() - began, parts["expand"] + parts["descend"], parts["certify"]]
            cells = [f"{examples.visits:,}", str(result.passes), f"{result.gap:.4f}"]
            rows.append([f"{len(windows):,}", name, *(f"{took:.1f}" for took in seconds), *cells])
    return f"{bits} bits, to a gap of {TOL}, one run each:\n\n" + table(head, rows)
