"""Grids of coloured cells: the confusion matrix, and rows of numbers along positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd._util.wording import text
from dotadd.pictures.picture import COLORS, Picture, element

MOST = 12  # classes whose counts can be read
NAME, CELL, HIGH, TOP = 112.0, 78.0, 40.0, 64.0  # of the confusion matrix: a name beside it, a cell, names above
FEWEST_LETTERS, SOME_LETTERS, LETTERS = 5, 10, 15  # of names above narrow columns and wide ones, and beside rows

WIDE, ROW, ASIDE, ABOVE, BELOW = 960.0, 22.0, 40.0, 26.0, 36.0  # of rows along positions, and room around them
STRETCHES = 480  # of positions that are told apart; of each, the strongest is drawn


def confusion(counts: np.ndarray, names: Sequence[str]) -> Picture:
    """counts[i, j] rows of class i were taken for class j. Of many classes, those with the most rows are drawn, and the
    others are counted together."""
    counts, names = gathered(np.asarray(counts, float), list(names))
    k = len(names)
    wide = max(34.0, min(CELL, 640.0 / k))
    letters = SOME_LETTERS if wide > 70.0 else FEWEST_LETTERS
    parts = [
        '<text x="0" y="14" font-weight="600">Confusion matrix</text>',
        f'<text x="{NAME + wide * k / 2:g}" y="34" text-anchor="middle" opacity="0.7">predicted</text>',
        f'<text x="{NAME - 8:g}" y="{TOP - 8:g}" text-anchor="end" opacity="0.7">true</text>',
    ]
    for j, name in enumerate(names):
        x = NAME + wide * (j + 0.5)
        parts.append(f'<text x="{x:g}" y="{TOP - 8:g}" text-anchor="middle">{_name(name, letters)}</text>')
        y = TOP + HIGH * (j + 0.5) + 4.0
        parts.append(f'<text x="{NAME - 8:g}" y="{y:g}" text-anchor="end">{_name(name, LETTERS)}</text>')
    totals = counts.sum(axis=1)
    for i in range(k):
        for j in range(k):
            share = counts[i, j] / totals[i] if totals[i] else 0.0
            x, y, color = NAME + wide * j, TOP + HIGH * i, COLORS[0 if i == j else 1]
            parts.append(
                f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{wide - 2:g}" height="{HIGH - 2:g}" rx="3" fill="{color}" '
                f'fill-opacity="{0.06 + 0.5 * share:.3f}"/>'
                f'<text x="{x + wide / 2:g}" y="{y + HIGH / 2 + 4:g}" text-anchor="middle">{_amount(counts[i, j])}'
                f"<title>{text(f'{names[i]} taken for {names[j]}: {share:.1%}')}</title></text>"
            )
    return Picture("Confusion matrix", element("".join(parts), NAME + wide * k + 6.0, TOP + HIGH * k + 8.0))


def gathered(counts: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """The classes with most rows, and all others as one."""
    if len(names) <= MOST:
        return counts, names
    kept = np.sort(np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable")[: MOST - 1])
    place = np.full(len(names), len(kept))
    place[kept] = np.arange(len(kept))
    joined = np.zeros((len(kept) + 1,) * 2)
    np.add.at(joined, (place[:, None], place[None, :]), counts)
    return joined, [*(names[k] for k in kept.tolist()), f"{len(names) - len(kept)} others"]


def _name(name: str, letters: int) -> str:
    return text(name, letters)


def _amount(count: float) -> str:
    return f"{count:,.0f}" if count == round(count) and count < 1e6 else f"{count:.3g}"


def heat(values: np.ndarray, names: Sequence[str], title: str, below: str) -> Picture:
    """values[k, i] of row k at position i; NaN is left empty. Above 0 is orange, below it blue."""
    rows, length = values.shape
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    every = max(1, -(-length // STRETCHES))
    cell = (WIDE - ASIDE) / length
    parts = [f'<text x="0" y="14" font-weight="600">{text(title, 100)}</text>']
    for k, name in enumerate(names):
        y = ABOVE + ROW * k
        parts.append(f'<text x="{ASIDE - 8:g}" y="{y + ROW / 2 + 4:g}" text-anchor="end">{text(name, 6)}</text>')
        for first in range(0, length, every):
            some = values[k, first : first + every]
            some = some[np.isfinite(some)]
            strongest = float(some[np.abs(some).argmax()]) if len(some) else 0.0
            if (opacity := abs(strongest) / largest) >= 0.01:
                color, x = COLORS[1 if strongest > 0.0 else 0], ASIDE + cell * first
                size = f'width="{cell * every + 0.3:.2f}" height="{ROW - 2:g}"'
                parts.append(f'<rect x="{x:.2f}" y="{y:g}" {size} fill="{color}" fill-opacity="{opacity:.2f}"/>')
    bottom = ABOVE + ROW * rows
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, length) if length / step <= 16)
    for at in range(step, length + 1, step):
        parts.append(f'<text x="{ASIDE + cell * (at - 0.5):.1f}" y="{bottom + 13:g}" text-anchor="middle">{at}</text>')
    parts.append(f'<text x="{(ASIDE + WIDE) / 2:g}" y="{bottom + 30:g}" text-anchor="middle">{text(below)}</text>')
    return Picture(title, element("".join(parts), WIDE, bottom + BELOW))
