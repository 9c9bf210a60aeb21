"""Figures 2 to 4 of Matsushima, Vishwanathan and Smola (2012): StreamSVM beside block minimization, BM and SBM.

All three are dotadd's own, over the same reader, so that little differs but the method. Hinge loss, a regularised
intercept, all cores. A run stops at a relative duality gap of 1e-4 or when its time is up. Seconds are from before the
file is opened, compiling apart; each run has a process of its own.

The measure is the paper's, (D* - D) / D*, of the dual objective on the way; D* is the largest dual objective known, of
these runs and of one in memory and in float64, which the paper does not have. The gap is recomputed from scratch at the
end; on the way, in the pictures, it is an estimate. `benchmarks/streams.py` tells what the data is.

Figure 2: C from 1e-4 to 1e3 on the letters of DNA windows, with memory for a tenth of them. Figure 3: C = 1 and a tenth
on the other data. Figure 4: C = 1 and stream alone, with memory for 1/64 of the examples up to all of them.

    python -m benchmarks.paper.streamsvm [--figures 2,3,4] [--data ocr,kddb] [--rows N] [--max-time S] [--work DIR]
        [--write docs/results.md] [--draw docs] [--tiny]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import runs, streams
from benchmarks.paper.coffin import Table, tell
from benchmarks.runs import SHORT, STREAMING, Outcome
from benchmarks.streaming import work_folder
from dotadd._util.atomic import replacing
from dotadd.report import curves, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
SHARES = {"1/64": 1 / 64, "1/16": 1 / 16, "1/10": 1 / 10, "1/4": 1 / 4, "all": 1.0}
WIDE = ("kddb", "ocr", "kdd99", "chr19")
CLOSE = (1e-1, 1e-2, 1e-3, 1e-4)  # (D* - D) / D* that seconds are told to
TOLERANCE = 1e-4
MAX_TIME = 15.0  # seconds of a run
STYLE = drawing.STYLE | {"text.parse_math": True}  # powers of ten
COLUMNS = ["data", "C", "memory", "method", *(f"s to {share:g}" for share in CLOSE)]
COLUMNS += ["(D* - D) / D*", "gap", "s", "passes", "peak, MB"]


@dataclass(frozen=True)
class Case:
    """A run of a figure."""

    data: str
    C: float
    memory: str
    solver: str

    @property
    def method(self) -> str:
        return SHORT.get(self.solver, self.solver)

    @property
    def key(self) -> tuple[str, ...]:
        return self.data, f"{self.C:g}", self.memory, self.method


def cases(figure: int) -> list[Case]:
    """The runs of a figure, in order."""
    if figure == 2:
        return [Case("dna", C, "1/10", solver) for C in COSTS for solver in STREAMING]
    if figure == 3:
        return [Case(name, 1.0, "1/10", solver) for name in WIDE for solver in STREAMING]
    return [Case(name, 1.0, memory, "stream") for name in ("dna", *WIDE) for memory in SHARES if memory != "1/10"]


@dataclass(frozen=True)
class Measured:
    """A run and the largest dual objective of its problem."""

    case: Case
    outcome: Outcome
    best: float

    def difference(self, dual: float) -> float:
        return (self.best - dual) / self.best


def measure(
    some: Sequence[Case], folder: Path, *, rows: int | None = None, max_time: float = MAX_TIME, tiny: bool = False
) -> Iterator[Measured]:
    """All runs on a problem, and then, as the best dual objective is known, what they have found."""
    for data, C in dict.fromkeys((case.data, case.C) for case in some):
        stream = streams.write(data, folder, rows, tiny=tiny)
        tell(f"{data}, C = {C:g}: the best objective")
        best = runs.best(stream, C, folder=folder, max_time=max_time).dual
        found = []
        for case in (case for case in some if (case.data, case.C) == (data, C)):
            tell(f"{data}, C = {C:g}: {case.solver} with memory for {case.memory}")
            budget = stream.budget(SHARES[case.memory])
            outcome = runs.fit(
                stream, case.solver, folder=folder, budget=budget, C=C, tol=TOLERANCE, max_time=max_time
            )  # fmt: skip
            found.append((case, outcome))
        best = max(best, *(outcome.dual for _, outcome in found))
        yield from (Measured(case, outcome, best) for case, outcome in found)


def cells_of(measured: Measured) -> list[str]:
    """A line of a table."""
    outcome = measured.outcome
    reached = [outcome.within(share, measured.best) for share in CLOSE]
    return [
        *measured.case.key,
        *("-" if seconds is None else f"{seconds:.2f}" for seconds in reached),
        f"{max(0.0, measured.difference(outcome.dual)):.1e}",
        f"{outcome.gap:.1e}",
        f"{outcome.seconds:.2f}",
        str(outcome.passes),
        f"{outcome.peak / 1e6:,.0f}",
    ]


def draw(found: Sequence[Measured], path: Path, columns: int = 4) -> None:
    """A picture for each problem: the difference to the best dual and, thin, the gap over seconds."""
    problems = list(dict.fromkeys((one.case.data, one.case.C) for one in found))
    lines = list(dict.fromkeys((one.case.memory, one.case.method) for one in found))
    named = [method if len({memory for memory, _ in lines}) == 1 else memory for memory, method in lines]

    def figure() -> Figure:
        from matplotlib.figure import Figure
        from matplotlib.ticker import NullFormatter

        deep = -(-len(problems) // columns)
        whole = Figure(figsize=(2.6 * min(columns, len(problems)) + 0.8, 2.3 * deep + 0.8), layout="constrained")
        axes = whole.subplots(deep, min(columns, len(problems)), sharey=True, squeeze=False).ravel()
        for one in found:
            axis = axes[problems.index((one.case.data, one.case.C))]
            place = lines.index((one.case.memory, one.case.method))
            trace = one.outcome.trace
            seconds = [point.seconds for point in trace]
            color = curves.LIGHT[place]
            above = [max(one.difference(point.dual), 1e-7) for point in trace]
            axis.loglog(seconds, above, color=color, linestyle=curves.DASHES[place], label=named[place])
            axis.loglog(seconds, [point.gap for point in trace], color=color, linewidth=0.8, alpha=0.5)
            axis.xaxis.set_minor_formatter(NullFormatter())  # numbers between the powers of ten would overlap
            axis.set_title(f"{one.case.data}, C = {one.case.C:g}")
            axis.set_ylim(1e-5, 2.0)
        for axis in axes[len(problems) :]:
            axis.remove()
        axes[0].legend(frameon=False)
        whole.supxlabel("seconds", fontsize="medium")
        whole.supylabel("(D* - D) / D*; thin: relative duality gap", fontsize="medium")
        return whole

    with replacing(path) as temporary:
        temporary.write_bytes(drawing.drawn(figure, "svg", STYLE))


def main(
    folder: Path,
    *,
    tiny: bool = False,
    figures: Sequence[int] = (2, 3, 4),
    names: Sequence[str] | None = None,
    rows: int | None = None,
    max_time: float = MAX_TIME,
    page: Path | None = None,
    pictures: Path | None = None,
) -> None:
    """The tables, printed as they come and kept in the page, and the pictures."""
    for number in figures:
        all_cases = cases(number)
        some = [case for case in all_cases if names is None or case.data in names]
        if not some:
            continue
        table = Table(f"streamsvm_figure{number}", COLUMNS, [case.key for case in all_cases], page)
        found = []
        for measured in measure(some, folder, rows=rows, max_time=max_time, tiny=tiny):
            table.add(*cells_of(measured))
            found.append(measured)
        if pictures is not None:
            draw(found, pictures / f"streamsvm_figure{number}.svg")
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", default="2,3,4", help="some of %(default)s")
    parser.add_argument("--data", help=f"some of dna,{','.join(WIDE)}")
    parser.add_argument("--rows", type=int, help="examples to train on, of each data set")
    parser.add_argument("--max-time", type=float, default=MAX_TIME, help="seconds for each run; %(default)g")
    parser.add_argument("--work", type=Path, help="a folder for the data, to be used again; by default it goes away")
    parser.add_argument("--write", type=Path, help="a page with marks for the tables, to be kept up to date")
    parser.add_argument("--draw", type=Path, help="the folder for the pictures, as SVG")
    parser.add_argument("--tiny", action="store_true", help="a few hundred rows of the same kinds")
    arguments = parser.parse_args()
    names = arguments.data.split(",") if arguments.data else None
    if unknown := sorted(set(names or ()) - {"dna", *WIDE}):
        parser.error(f"there is no {unknown[0]}; choose among dna, {', '.join(WIDE)}")
    figures = [int(number) for number in arguments.figures.split(",")]
    if set(figures) - {2, 3, 4}:
        parser.error(f"--figures {arguments.figures}: some of 2,3,4")
    with work_folder(arguments.work) as folder:
        main(
            folder, tiny=arguments.tiny, figures=figures, names=names, rows=arguments.rows,
            max_time=arguments.max_time, page=arguments.write, pictures=arguments.draw,
        )  # fmt: skip
