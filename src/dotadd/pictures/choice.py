"""How C was chosen: scores of rows that were held out, over C, with their spread over the folds."""

from __future__ import annotations

import numpy as np

from dotadd.pictures.picture import COLORS, Axes, Curve, Picture, Scale


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
