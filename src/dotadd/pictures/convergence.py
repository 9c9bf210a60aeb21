"""How training came to its end: the gap, or the violation of a kernel machine, over seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dotadd.pictures.picture import Axes, Curve, Picture, Scale


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
