"""Rows of numbers along positions as colours: which k-mers matter where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd._util.markup import text
from dotadd.pictures.picture import COLORS, Picture, element

WIDE, HIGH, LEFT, TOP, BELOW = 960.0, 22.0, 40.0, 26.0, 36.0
STRETCHES = 480  # of positions that are told apart; of each, the strongest is drawn


def heat(values: np.ndarray, names: Sequence[str], title: str, below: str) -> Picture:
    """values[k, i] of row k at position i; NaN is left empty. Above 0 is orange, below it blue."""
    rows, length = values.shape
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    every = max(1, -(-length // STRETCHES))
    cell = (WIDE - LEFT) / length
    parts = [f'<text x="0" y="14" font-weight="600">{text(title, 100)}</text>']
    for k, name in enumerate(names):
        y = TOP + HIGH * k
        parts.append(f'<text x="{LEFT - 8:g}" y="{y + HIGH / 2 + 4:g}" text-anchor="end">{text(name, 6)}</text>')
        for first in range(0, length, every):
            some = values[k, first : first + every]
            some = some[np.isfinite(some)]
            strongest = float(some[np.abs(some).argmax()]) if len(some) else 0.0
            if (opacity := abs(strongest) / largest) >= 0.01:
                color, x = COLORS[1 if strongest > 0.0 else 0], LEFT + cell * first
                size = f'width="{cell * every + 0.3:.2f}" height="{HIGH - 2:g}"'
                parts.append(f'<rect x="{x:.2f}" y="{y:g}" {size} fill="{color}" fill-opacity="{opacity:.2f}"/>')
    bottom = TOP + HIGH * rows
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, length) if length / step <= 16)
    for at in range(step, length + 1, step):
        parts.append(f'<text x="{LEFT + cell * (at - 0.5):.1f}" y="{bottom + 13:g}" text-anchor="middle">{at}</text>')
    parts.append(f'<text x="{(LEFT + WIDE) / 2:g}" y="{bottom + 30:g}" text-anchor="middle">{text(below)}</text>')
    return Picture(title, element("".join(parts), WIDE, bottom + BELOW))
