"""Running times of solvers: the objective over time, as in the lecture on large scale learning with strings (2008).

The lecture has a figure of the Large Scale Learning Challenge, from which it reads two things: Newton's method is quite
fast where examples have few features, stochastic gradient descent where they have many. Here all solvers that want
examples in memory minimise the same objective on two narrow and two wide problems: the squared hinge, since Newton's
method needs a smooth loss, C = 1, a regularised intercept, one thread.

A point is a fit of its own that was stopped after so many passes, 1, 2, 3, 4, 6, 9, ... of them, with the objective of
its answer recomputed from scratch: what solvers tell on their way is an estimate for some of them. Its seconds go from
raw examples, or the file of windows, to the end of the last pass, without compiling and without the proof. A solver
goes on until it has ended by itself, at a relative duality gap of 1e-5 if it knows one, or a fit has taken
`--max-time`.
`dcd` moves all active rows at once where it has no passes left for that, so a fit of fewer passes may take longer than
one of more.

The best objective is the lowest that any of them has found, the last three columns are of a solver's longest fit, and a
minus was not reached. bmrm and svmperf are cutting planes without the line search of ocas, and pegasos is sgd with its
first step sizes.

- ijcnn1: 49,990 x 22, of 13 non-zeros.
- a9a: 32,561 x 123, of 14.
- mails: 10,000 of Enron by words, in 2^20 slots.
- windows: 20,000 of chromosome 19 with the features of COFFIN's table 2, d = 20, 12 bits, in 11,725,480.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import datasets, everyday
from benchmarks.paper.coffin import Data, Features, Table, tell, with_section
from dotadd import LinearSVM
from dotadd._util.atomic import replacing
from dotadd.core.losses import Loss
from dotadd.report import curves, drawing
from dotadd.solvers.result import Reason, Result
from dotadd.solvers.table import Needs, that_need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOSS = Loss.SQUARED_HINGE
SOLVERS = [name for name, solver in that_need(Needs.ROWS, Needs.PASSES).items() if LOSS in solver.losses]
WINDOWS, TINY_WINDOWS = 20_000, 300
CLOSE = (0.1, 0.01, 0.001)  # above the best objective, of it
ENOUGH = 1e-5
GROWTH = 1.5  # of the passes from one fit to the next
WARM = 2  # passes of the fit that compiles
MAX_TIME = 3.0  # seconds
COLUMNS = ["data", "solver", *(f"s to {share:g}" for share in CLOSE), "above the best", "passes", "s"]
STYLE = drawing.STYLE | {"text.parse_math": True}  # powers of ten


class Point(NamedTuple):
    """Where a fit had come to when it was stopped."""

    seconds: float
    passes: int
    primal: float
    dual: float | None
    ended: bool
    """It was not stopped, but had come as far as it would, or its time was up."""


@dataclass(frozen=True)
class Curve:
    """A solver on a problem, from few passes to many, and the lowest objective that any solver has found there."""

    data: str
    solver: str
    points: list[Point]
    best: float

    def above(self, point: Point) -> float:
        return point.primal / self.best - 1.0

    def to(self, share: float) -> float | None:
        """Seconds until the objective was so close to the best one; None if it never was."""
        return next((point.seconds for point in self.points if self.above(point) <= share), None)


class Examples(NamedTuple):
    """Examples, labels, and features where the examples are no vectors."""

    X: Any
    y: Any
    phi: str | None = None


def load(name: str, windows: Data) -> Examples:
    if name == "mails":
        (X, y), _ = everyday.mails(windows.tiny)
        return Examples(X, y, everyday.TASKS["mails, words"].phi)
    if name == "windows":
        features = Features(6, 6, order=3) if windows.tiny else Features(20, 12)
        return Examples(str(windows.train(TINY_WINDOWS if windows.tiny else WINDOWS)), None, features.expression)
    return Examples(*datasets.load(name, windows.tiny))


NAMES = ("ijcnn1", "a9a", "mails", "windows")


def numbers_of_passes() -> Iterator[int]:
    """1, 2, 3, 4, 6, 9, ..."""
    passes = 1
    while True:
        yield passes
        passes = max(passes + 1, int(GROWTH * passes))


def fit(examples: Examples, solver: str, passes: int, max_time: float | None = None) -> Point | None:
    """A fit of so many passes; None if time was up before the first of them had ended."""
    svm = LinearSVM(
        examples.phi, loss=LOSS.name.lower(), solver=solver, tol=ENOUGH, max_passes=passes, max_time=max_time,
        random_state=0, n_jobs=1,
    )  # fmt: skip
    told: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was stopped is the point of it
        began = perf_counter()
        svm.fit(examples.X, examples.y, on_progress=lambda *_: told.append(perf_counter() - began))
    found = svm.result_
    assert isinstance(found, Result)
    ended = found.reason is not Reason.MAX_PASSES
    return Point(told[-1], found.passes, found.primal, found.dual, ended) if told else None


def follow(examples: Examples, solver: str, max_time: float) -> list[Point]:
    """Fits of more and more passes."""
    fit(examples, solver, WARM)
    points: list[Point] = []
    for passes in numbers_of_passes():
        point = fit(examples, solver, passes, max_time)
        if point is not None and (not points or point.passes > points[-1].passes):  # some pass over rows twice at least
            points.append(point)
        if point is None or point.ended:
            return points
    raise AssertionError("passes have no end")


def measure(data: Data, names: Sequence[str], solvers: Sequence[str], max_time: float) -> Iterator[list[Curve]]:
    """The curves of all solvers, problem by problem."""
    for name in names:
        examples, found = load(name, data), dict[str, list[Point]]()
        for solver in solvers:
            tell(f"{name}: {solver}")
            found[solver] = follow(examples, solver, max_time)
        best = min(point.primal for points in found.values() for point in points)
        yield [Curve(name, solver, points, best) for solver, points in found.items()]


def certainty(found: Sequence[Curve]) -> float:
    """By what share of the best objective the optimum can be below it at most."""
    duals = [point.dual for curve in found for point in curve.points if point.dual is not None]
    return 1.0 - max(duals, default=0.0) / found[0].best


def cells_of(curve: Curve, fastest: Sequence[float | None]) -> list[str]:
    """A line of the table; the fastest times are bold."""
    times = []
    for share, least in zip(CLOSE, fastest, strict=True):
        seconds = curve.to(share)
        told = "-" if seconds is None else f"{seconds:.2f}"
        times.append(f"**{told}**" if seconds is not None and seconds == least else told)
    last = curve.points[-1] if curve.points else None
    rest = ["-"] * 3 if last is None else [f"{curve.above(last):.1e}", str(last.passes), f"{last.seconds:.2f}"]
    return [curve.data, curve.solver, *times, *rest]


def draw(found: Sequence[Curve], path: Path) -> None:
    """How far objectives are above the best one over seconds, a picture for each problem."""
    names = list(dict.fromkeys(curve.data for curve in found))

    def figure() -> Figure:
        from matplotlib.figure import Figure

        whole = Figure(figsize=(2.6 * len(names) + 0.8, 3.4), layout="constrained")
        axes = whole.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for curve in found:
            axis, place = axes[names.index(curve.data)], curves.PLACES.index(curve.solver)
            axis.loglog(
                [point.seconds for point in curve.points],
                [max(curve.above(point), ENOUGH / 10) for point in curve.points],
                color=curves.LIGHT[place], linestyle=curves.DASHES[place], label=curve.solver,
            )  # fmt: skip
            axis.set_title(curve.data)
            axis.set_ylim(ENOUGH / 2, 10.0)
        whole.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=8, frameon=False)
        whole.supxlabel("seconds", fontsize="medium")
        whole.supylabel("objective above the best, of it", fontsize="medium")
        return whole

    with replacing(path) as temporary:
        temporary.write_bytes(drawing.drawn(figure, "svg", STYLE))


def section() -> str:
    """The section without its numbers, but with its picture."""
    assert __doc__ is not None
    _, _, about = __doc__.partition("\n\n")
    call = "    python -m benchmarks.paper.running_times --write docs/results.md --draw docs/running_times.svg"
    table = "<!-- running_times -->\n<!-- /running_times -->"
    parts = ["## Running times of solvers", call, about.rstrip(), table, "![Objective over time](running_times.svg)"]
    return "\n\n".join(parts) + "\n"


def main(
    *,
    tiny: bool = False,
    names: Sequence[str] = NAMES,
    solvers: Sequence[str] = tuple(SOLVERS),
    max_time: float = MAX_TIME,
    page: Path | None = None,
    picture: Path | None = None,
) -> None:
    """The table, printed as it comes and kept in the page, and the picture."""
    with_section(page, section())
    table = Table("running_times", COLUMNS, [(name, solver) for name in NAMES for solver in SOLVERS], page)
    every = []
    with tempfile.TemporaryDirectory() as folder:
        for found in measure(Data(Path(folder), tiny), names, solvers, max_time):
            times = [[curve.to(share) for curve in found] for share in CLOSE]
            fastest = [min((seconds for seconds in some if seconds is not None), default=None) for some in times]
            for curve in found:
                table.add(*cells_of(curve, fastest))
            tell(f"{found[0].data}: the optimum is below the best by {certainty(found):.1e} of it at most")
            every += found
    if picture is not None:
        draw(every, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="some of %(default)s")
    parser.add_argument("--max-time", type=float, default=MAX_TIME, help="seconds of the longest fit; %(default)g")
    parser.add_argument("--write", type=Path, help="a page with marks for the table, to be kept up to date")
    parser.add_argument("--draw", type=Path, help="the picture, as SVG")
    parser.add_argument("--tiny", action="store_true", help="a few hundred rows")
    arguments = parser.parse_args()
    names, solvers = arguments.names or NAMES, arguments.solvers.split(",")
    if unknown := sorted({*names} - {*NAMES} | {*solvers} - {*SOLVERS}):
        parser.error(f"there is no {unknown[0]}; choose among {', '.join(NAMES)} and {', '.join(SOLVERS)}")
    main(
        tiny=arguments.tiny, names=names, solvers=solvers, max_time=arguments.max_time, page=arguments.write,
        picture=arguments.draw,
    )  # fmt: skip
