"""Curves: ROC, precision-recall, calibration, convergence, and the values of C that were tried."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dotadd._util.wording import text
from dotadd.pictures.picture import COLORS, Axes, Curve, Picture, Scale

LARGEST = 9.0  # radius of the mark of the bin that most rows are in


def roc(curves: Sequence[Curve]) -> Picture:
    """Shares of false rows (x) and of true ones (y) above each score; equal scores are joined by a straight line, as
    the area under the curve counts them."""
    axes = Axes("ROC curve", Scale.share(), Scale.share(), "false positive rate", "true positive rate (recall)")
    axes.diagonal()
    for number, curve in enumerate(curves):
        axes.line(curve, number)
    return axes.picture()


def precision_recall(curves: Sequence[Curve]) -> Picture:
    """Recall (x) and precision (y) at each score, from the highest. The line goes in steps, so that what is below it is
    the average precision."""
    axes = Axes("Precision-recall curve", Scale.share(), Scale.share(), "recall", "precision")
    for number, curve in enumerate(curves):
        axes.line(curve._replace(x=steps(curve.x), y=np.repeat(curve.y, 2)), number)
    return axes.picture()


def steps(recall: np.ndarray) -> np.ndarray:
    """Where each step begins and ends: at the recall before it, and at its own."""
    return np.repeat(np.r_[0.0, recall], 2)[1:-1]


def calibration(weight: np.ndarray, probability: np.ndarray, happened: np.ndarray, what: str) -> Picture:
    """For each bin the weight of its rows, and the sums of their probabilities and of what has happened. The area of a
    mark tells how many rows there are."""
    axes = Axes("Calibration", Scale.share(), Scale.share(), f"probability of {text_of(what)}", "share that came true")
    axes.diagonal()
    some = weight > 0.0
    said, true, rows = probability[some] / weight[some], happened[some] / weight[some], weight[some]
    axes.line(Curve("rows by probability", said, true), 0)
    for x, y, count in zip(*axes.places(said, true), rows, strict=True):
        radius = max(2.5, LARGEST * float(np.sqrt(count / rows.max())))
        tip = f"<title>{text(f'{count:,.6g} rows')}</title>"
        axes.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{COLORS[0]}">{tip}</circle>')
    return axes.picture()


def text_of(what: str) -> str:
    """A name that leaves room for others beside it."""
    return what if len(what) <= 30 else f"{what[:29]}…"


def convergence(curves: Sequence[Curve], what: str, tol: float) -> Picture:
    """Seconds (x) and gaps (y) of binary problems; what is proved at the end is marked, and the tolerance is a line,
    unless it is NaN."""
    seconds = np.concatenate([np.zeros(1), *(curve.x for curve in curves)])
    gaps = np.concatenate([np.array([tol]), *(curve.y for curve in curves)])
    axes = Axes("Convergence", Scale.linear(seconds, zero=True), Scale.log(gaps), "seconds", what)
    if math.isfinite(tol):
        axes.level(tol, "tolerance")
    for number, curve in enumerate(curves):
        axes.line(curve, number)
    return axes.picture()


def choice(C: np.ndarray, mean: np.ndarray, spread: np.ndarray, chosen: float, scoring: str) -> Picture:
    """The mean over folds as a line, one standard deviation to each side, and a ring around the C that was taken."""
    edges = np.concatenate([mean - spread, mean + spread])
    axes = Axes("Values of C tried", Scale.log(C), Scale.linear(edges), "C", f"{scoring}, held-out rows")
    x, low = axes.places(C, mean - spread)
    _, high = axes.places(C, mean + spread)
    known = np.isfinite(low) & np.isfinite(high)
    way = [*zip(x[known], low[known], strict=True), *zip(x[known][::-1], high[known][::-1], strict=True)]
    if way:
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in way)
        axes.parts.append(f'<polygon points="{points}" fill="{COLORS[0]}" fill-opacity="0.15"/>')
    at = np.flatnonzero(np.isclose(C, chosen, rtol=1e-9))
    mark = (float(C[at[0]]), float(mean[at[0]])) if len(at) else None
    axes.line(Curve("mean and standard deviation over folds", C, mean, mark), 0)
    return axes.picture()
