"""The reliability diagram: how often something came true, over how probable it was said to be."""

from __future__ import annotations

import numpy as np

from dotadd._util.markup import text
from dotadd.pictures.picture import COLORS, Axes, Curve, Picture, Scale

LARGEST = 9.0  # radius of the mark of the bin that most rows are in


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
