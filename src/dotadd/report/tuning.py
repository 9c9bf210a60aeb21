"""The picture of what was tried: scores of held-out rows over C with their spread, and the passes that it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dotadd.errors import one_line
from dotadd.report import curves, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dotadd.estimators.choosing import ChoosesC


def picture(tried: Mapping[str, ChoosesC], title: str, kind: str) -> bytes:
    """A file of this kind; each name has a line."""
    return drawing.drawn(
        lambda: tuning_figure(tried, one_line(f"Values of C tried on {title}", 90)), kind, curves.STYLE
    )


def tuning_figure(tried: Mapping[str, ChoosesC], title: str) -> Figure:
    """Scores above, passes below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6.4), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=13)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    for place, (name, svm) in enumerate(tried.items()):
        color, mark = curves.LIGHT[place % len(curves.LIGHT)], curves.MARKS[place % len(curves.MARKS)]
        found = svm.cv_results_
        C, mean, spread = found["param_C"], found["mean_test_score"], found["std_test_score"]
        above.fill_between(C, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0)
        above.plot(C, mean, color=color, marker=mark, markersize=4, label=one_line(name, 70))
        above.plot([svm.C_], [svm.best_score_], "o", markersize=11, markerfacecolor="none", markeredgecolor=color)
        below.plot(C, found["max_passes"], color=color, marker=mark, markersize=4)
    first = next(iter(tried.values()))
    above.set_ylabel(str(first.scoring or "accuracy") + f", {len(first.scores_)} folds")
    above.set_title("held-out rows: mean over folds, and one standard deviation to each side")
    below.set_title("passes over the rows, of the slowest fold")
    below.set_xlabel("C")
    below.set_xscale("log")
    below.set_yscale("log")
    for axis in (below.xaxis, below.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    above.legend(loc="best", frameon=False)
    return figure
