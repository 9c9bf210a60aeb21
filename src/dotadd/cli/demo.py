"""dotadd demo: simulated splice sites, three feature maps, three sizes of training set."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd.cli.options import Flag, Seed, Whole
from dotadd.cli.train import save

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dotadd.model.linear import Model

SPECTRA = "WeightedSpectrum(8, span=(0, 59)) + WeightedSpectrum(8, span=(61, 141))"
MAPS = {
    "spectra": SPECTRA,
    "+ positions, order 6": f"{SPECTRA} + WeightedDegree(6)",
    "+ positions, order 20": f"{SPECTRA} + WeightedDegree(20).hashed(12)",
}
SIZES, TEST_ROWS = (2_000, 10_000, 40_000), 30_000
FAST_SIZES, FAST_TEST_ROWS = (500, 2_000, 8_000), 8_000


class Outcome(NamedTuple):
    """One trained model and how it did on the test set."""

    name: str
    rows: int
    auroc: float
    auprc: float
    seconds: float
    model: Model


def demo(
    *,
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None,
    seed: Seed = 0,
    fast: Flag = False,
    jobs: Whole | None = None,
) -> int:
    """Train and compare models on simulated splice sites.

    Windows of 141 letters, one in a hundred a true site; three feature maps, three
    sizes of training set. Two weighted spectrum maps count k-mers on both sides of
    the site; weighted degree maps see k-mers at their positions. Takes less than
    two minutes. The exit status is 0 if more data and higher order both helped,
    and 1 if not.

    Examples:

        dotadd demo
        dotadd demo --fast -o demo.dotadd

    Parameters
    ----------
    output
        Save the best model to this file.
    seed
        Start of the random numbers.
    fast
        Smaller sets, in seconds; the measures are rougher.
    jobs
        Threads; all cores by default.
    """
    saved = output
    if output is not None:
        require_writable(output)
    started = time.perf_counter()
    sizes, test_rows = (FAST_SIZES, FAST_TEST_ROWS) if fast else (SIZES, TEST_ROWS)
    sys.stdout.write(f"Simulated splice sites, 141 letters, 1 % true; tested on {test_rows:,} other windows.\n")
    for name, expression in MAPS.items():
        shown = expression if expression == SPECTRA else expression.replace(SPECTRA, "the same")
        sys.stdout.write(f"  {name:<22} {shown}\n")
    outcomes = show(train_all(sizes, test_rows, seed, jobs), len(MAPS) * len(sizes))
    helped = conclude(outcomes)
    if output is not None:
        best = max(outcomes, key=lambda outcome: outcome.auprc)
        saved = save(best.model, output)
        sys.stdout.write(f"The best model ({best.name}, {best.rows:,} rows) is in {saved}.\n")
    sys.stdout.write(f"All of it took {time.perf_counter() - started:.0f} s.\n")
    return 0 if helped and saved == output else 1


def train_all(sizes: tuple[int, ...], test_rows: int, seed: int, jobs: int | None) -> Iterator[Outcome]:
    """Every map at every size; smaller training sets are the beginnings of the largest."""
    import numpy as np

    from dotadd.estimators.linear import LinearSVM
    from dotadd.features.expression import parse
    from dotadd.genome.simulate import splice_windows
    from dotadd.model.evaluation import auprc, auroc
    from dotadd.sources.base import Chunk
    from dotadd.sources.memory import MemorySource

    train, y = splice_windows(sizes[-1], seed=2 * seed)
    test, truth = splice_windows(test_rows, seed=2 * seed + 1)
    held_out = MemorySource(Chunk(test, truth, None, 0))
    few = np.append(np.flatnonzero(y == 1)[:4], np.flatnonzero(y == -1)[:4])
    for name, expression in MAPS.items():
        svm = LinearSVM(parse(expression), C=0.01, tol=0.03, random_state=seed, n_jobs=jobs)
        svm.fit(MemorySource(Chunk(train.take(few), y[few], None, 0)))  # compiles, so that the times below do not
        for rows in sizes:
            started = time.perf_counter()
            svm.fit(MemorySource(Chunk(train.slice(0, rows), y[:rows], None, 0)))
            seconds = time.perf_counter() - started
            score = svm.model_.decision_function(held_out, n_jobs=jobs)
            yield Outcome(name, rows, auroc(truth == 1, score), auprc(truth == 1, score), seconds, svm.model_)


def show(outcomes: Iterator[Outcome], count: int) -> list[Outcome]:
    """A table that grows with each model on a terminal, and is printed at the end elsewhere."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    def table(title: str | None) -> Table:
        drawn = Table(box=SIMPLE_HEAD, pad_edge=False, caption=title, caption_justify="left")
        for name in ("feature map", "rows", "auROC", "auPRC", "seconds"):
            drawn.add_column(name, justify="left" if name == "feature map" else "right")
        for number, found in enumerate(done):
            measures = (f"{found.auroc:.3f}", f"{found.auprc:.3f}", f"{found.seconds:.1f}")
            last = number + 1 == len(done) or done[number + 1].name != found.name
            drawn.add_row(found.name, f"{found.rows:,}", *measures, end_section=last)
        return drawn

    done: list[Outcome] = []
    console = Console(file=sys.stdout, highlight=False)
    with ExitStack() as stack:
        live = Live(table(f"training {count} models"), console=console, auto_refresh=False, transient=True)
        if console.is_terminal:
            stack.enter_context(live)
        for outcome in outcomes:
            done.append(outcome)
            live.update(table(f"training, {count - len(done)} to go"), refresh=console.is_terminal)
    console.print(table(None))
    return done


def conclude(outcomes: list[Outcome]) -> bool:
    """Say what the table shows; True if more data and higher order both helped."""
    at = {(outcome.name, outcome.rows): outcome.auprc for outcome in outcomes}
    names, sizes = list(MAPS), sorted({outcome.rows for outcome in outcomes})
    low, high = at[names[-1], sizes[0]], at[names[-1], sizes[-1]]
    more_data = high > low
    sys.stdout.write(
        f"More data {'helps' if more_data else 'does not help'}: from {sizes[0]:,} to {sizes[-1]:,} rows the auPRC of "
        f'"{names[-1]}" goes from {low:.3f} to {high:.3f}.\n'
    )
    low, high = max(at[name, sizes[-1]] for name in names[:-1]), at[names[-1], sizes[-1]]
    higher_order = high > low
    sys.stdout.write(
        f"Higher order {'helps' if higher_order else 'does not help'}: with {sizes[-1]:,} rows it reaches {high:.3f}, "
        f"the best of the other maps {low:.3f}.\n"
    )
    return more_data and higher_order
