"""The picture of a comparison: objective and gap of each solver, over seconds and over passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dotadd.errors import one_line
from dotadd.report import drawing
from dotadd.solvers.table import Needs, that_need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

    from dotadd.report.compare import Comparison, Point, SolverRun

INK = "#1c1c1c"
# For light paper and for dark; the same place is the same hue. Dashes and marks tell them apart without colour.
LIGHT = (
    "#0072b2", "#d55e00", "#00805d", "#a8407e", "#7a6200", "#5b3fa6", "#2390b5", "#5c5c5c",
    "#b3001e", "#4a7a00", "#8a4b2a",
)  # fmt: skip
DARK = (
    "#5ab4ec", "#ff8f47", "#2fd0a2", "#ea9dc9", "#e6d64a", "#b7a2ff", "#93dcf2", "#bdbdbd",
    "#ff7a85", "#a5d65a", "#d9a27e",
)  # fmt: skip
DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    "-", (0, (6, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.2)), (0, (9, 2, 3, 2)), (0, (3, 1.5)), (0, (4, 1, 1, 1, 1, 1)), "-",
    "-", (0, (5, 1)), (0, (2, 1)),
)  # fmt: skip
MARKS = "osD^vPX*p<>"
PLACES = tuple(that_need(Needs.ROWS, Needs.PASSES, Needs.PIECES))  # a solver looks the same on all pages
TOP = 10.0, 1.2  # shares at which objective and gap are cut off; beyond them a solver knows nothing yet

INKED: tuple[RcKeyType, ...] = (
    "text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color", "grid.color",
)  # fmt: skip
STYLE: dict[RcKeyType, object] = {
    **dict.fromkeys(INKED, INK), **drawing.STYLE, "axes.grid": True, "grid.alpha": 0.15, "grid.linewidth": 0.6,
}  # fmt: skip


def picture(comparison: Comparison, kind: str) -> bytes:
    """A file of its own, on white, with a title."""
    title = one_line(f"Solvers compared on {comparison.title}", 90)
    return drawing.drawn(lambda: convergence_figure(comparison, title), kind, STYLE)


def inline(comparison: Comparison) -> tuple[str, str]:
    """SVG to stand in a page, and the style that gives it the page's ink and colours for light and dark."""
    file = drawing.drawn(lambda: convergence_figure(comparison, ""), "svg", STYLE, transparent=True)
    drawn = drawing.inline_svg(file).replace(INK, "currentColor")
    for place, color in enumerate(LIGHT):
        drawn = drawn.replace(color, f"var(--line{place})")
    light, dark = ("; ".join(f"--line{k}: {color}" for k, color in enumerate(colors)) for colors in (LIGHT, DARK))
    return drawn, f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def convergence_figure(comparison: Comparison, title: str) -> Figure:
    """Two by two panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), layout="constrained")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13)
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    one_problem = all(len(run.results) == 1 for run in comparison.runs)
    ground = "the best objective" if comparison.bound is None else "the largest certified dual"
    rows: tuple[tuple[str, Callable[[Point], float]], ...] = (
        (f"objective above {ground}", lambda point: comparison.above(point.primal)),
        ("relative duality gap", lambda point: point.gap),
    )
    columns: tuple[tuple[str, Callable[[Point], float]], ...] = (
        ("seconds", lambda point: point.seconds),
        ("passes" if one_problem else "passes, mean over the binary problems", lambda point: point.passes),
    )
    for i, (name, height) in enumerate(rows):
        for j, (over, place) in enumerate(columns):
            ax = axes[i, j]
            shown = [(run, [(place(point), height(point)) for point in run.points]) for run in comparison.runs]
            _lines(ax, shown)
            ax.set_title(f"{name}, over {over.split(',')[0]}")
            if i:
                ax.set_xlabel(over)
                ax.axhline(comparison.problem["tol"], color=INK, linewidth=0.8, linestyle=":", alpha=0.7)
            if i and not j:
                ax.annotate(
                    "tolerance", (0.0, comparison.problem["tol"]), (4, 3), xycoords=("axes fraction", "data"),
                    textcoords="offset points", fontsize=8,
                )  # fmt: skip
    for i, (_, height) in enumerate(rows):
        shares = [height(point) for run in comparison.runs for point in run.points]
        _percent_axis(axes[i, 0], shares, [comparison.problem["tol"]] * i, TOP[i])
    for j, (_, place) in enumerate(columns):
        _number_axis(axes[0, j], [place(point) for run in comparison.runs for point in run.points], whole=j == 1)
    handles = {line.get_label(): line for line in axes[0, 0].get_lines()}
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower left" if title else "outside upper left", ncols=8,
        frameon=False, handlelength=4,
    )  # fmt: skip
    return figure


def _lines(ax: Axes, shown: Iterable[tuple[SolverRun, list[tuple[float, float]]]]) -> None:
    """A line for each run; the mark at its end is the certified value."""
    for place, (run, points) in enumerate(shown):
        k = PLACES.index(run.solver) if run.solver in PLACES else place % len(LIGHT)
        drawable = [(x, y if y > 0.0 and math.isfinite(y) else math.nan) for x, y in points]  # a logarithm has to exist
        certified = [len(points) - 1] if math.isfinite(run.primal) else []
        ax.plot(
            [x for x, _ in drawable], [y for _, y in drawable], label=run.solver, color=LIGHT[k], linestyle=DASHES[k],
            linewidth=1.7, marker=MARKS[k], markersize=6, markevery=certified,
        )  # fmt: skip


def _percent_axis(ax: Axes, values: Iterable[float], marked: list[float], top: float) -> None:
    """Shares on a logarithmic axis, told in percent."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    seen = [value for value in values if 0.0 < value < math.inf]
    if not seen:
        ax.text(0.5, 0.5, "not known for any of them", transform=ax.transAxes, ha="center")
    low, high = min([*seen, *marked], default=0.001), max([*seen, *marked], default=1.0)
    ax.set_ylim(low / 1.6, max(low * 2.0, min(top, high * 1.6)))
    narrow = high / low < 30
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.6g}%"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _number_axis(ax: Axes, values: Iterable[float], whole: bool) -> None:
    """Seconds or passes; logarithmic if they span more than a factor of 30."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    seen = [value for value in values if 0.0 < value < math.inf]
    if not seen or max(seen) / min(seen) <= 30:
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=whole))
        return
    ax.set_xscale("log")
    ax.set_xlim(min(seen) / 1.15, max(seen) * 1.15)
    narrow = max(seen) / min(seen) < 300
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
