"""The picture of positional oligomer importance: which orders matter where, which letters, and the strongest k-mers."""

from __future__ import annotations

import math
import os
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dotadd._util.atomic import replacing
from dotadd.errors import one_line
from dotadd.report import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

    from dotadd.genome.poim import Poim

FORMATS = ("svg", "png", "pdf", "html")
ROWS_DRAWN = 20  # letters or pairs of letters; more than this cannot be told apart
LISTED = 8  # strongest k-mers of each order
ON_WHITE = "figure svg { background: white }"  # the colours are made for it
CERTAIN = 0.999  # a letter that stands at its position in so many strings marks the site

STYLE: dict[RcKeyType, object] = {**drawing.STYLE, "axes.titlepad": 13}  # room for the letters of the site


def require_drawable(path: str | os.PathLike[str]) -> str:
    """The format of a picture of this name; raises if it is none of ours, or if nothing could draw it."""
    return drawing.require_format(path, FORMATS, "pictures")


def draw_poim(poim: Poim, path: str | os.PathLike[str], *, title: str = "", subtitle: str = "") -> None:
    """Write the picture; the end of the file's name says in which format. It appears whole or not at all."""
    kind = require_drawable(path)
    with replacing(path) as temporary:
        if kind == "html":
            picture = drawing.drawn(lambda: poim_figure(poim, "", one_line(subtitle, 135)), "svg", STYLE)
            body = f"<figure>{drawing.inline_svg(picture)}</figure>"
            temporary.write_text(drawing.page(drawing.text(title), body, ON_WHITE), encoding="utf-8")
        else:
            figure = partial(poim_figure, poim, one_line(title, 90), one_line(subtitle, 135))
            temporary.write_bytes(drawing.drawn(figure, kind, STYLE))


def poim_figure(poim: Poim, title: str, subtitle: str) -> Figure:
    """The picture as a figure of matplotlib."""
    from matplotlib.figure import Figure

    size, orders = len(poim.letters), len(poim.importance)
    detailed = [k for k in (1, 2) if k <= orders and size**k <= ROWS_DRAWN]
    heights = [0.3 * orders + 0.3, *(0.16 * size**k + 0.3 for k in detailed), 0.135 * (LISTED + 1)]
    figure = Figure(figsize=(11, sum(heights) + 0.35 * len(heights) + 0.8), layout="constrained")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13)
    axes = figure.subplots(len(heights), 1, height_ratios=heights)

    largest = poim.differential()
    _heat(axes[0], largest, [str(k) for k in range(1, orders + 1)], "cividis", (0.0, float(np.nanmax(largest)) or 1.0))
    heading = "largest |Q| among the k-mers of each length k"
    axes[0].set_title(f"{subtitle}\n\n{heading}" if subtitle else heading)
    axes[0].set_ylabel("k")
    for ax, k in zip(axes[1:-1], detailed, strict=True):
        q = np.full((size**k, poim.length), np.nan)
        q[:, : poim.length - k + 1] = np.where(poim.possible(k), poim.importance[k - 1], np.nan).T
        limit = float(np.nanmax(np.abs(q))) or 1.0
        _heat(ax, q, [poim.kmer(k, u) for u in range(size**k)], "PuOr_r", (-limit, limit))
        ax.set_title("Q of each letter" if k == 1 else "Q of each pair of letters, where the first of them stands")
        ax.set_facecolor("0.88")
        if not poim.possible(k).all():
            ax.set_title("gray: does not occur", loc="right", fontsize=8)
    for ax in axes[:-1]:
        _mark_site(ax, poim)
    axes[-2].set_xlabel("position in the string, counted from 1")
    _list(axes[-1], poim)
    return figure


def _heat(ax: Axes, matrix: np.ndarray, names: list[str], colors: str, limits: tuple[float, float]) -> None:
    extent = (0.5, matrix.shape[1] + 0.5, len(matrix) - 0.5, -0.5)
    image = ax.imshow(
        matrix, colors, aspect="auto", interpolation="none", extent=extent, vmin=limits[0], vmax=limits[1]
    )
    ax.set_yticks(range(len(names)), names, fontsize=9 if len(names) <= 8 else 7, family="monospace")
    ax.tick_params(axis="y", length=0)
    assert ax.figure is not None
    bar = ax.figure.colorbar(image, ax=ax, pad=0.01, aspect=8, fraction=0.03)
    bar.ax.locator_params(nbins=4)
    bar.outline.set_visible(False)


def _mark_site(ax: Axes, poim: Poim) -> None:
    """Lines around the letters that stand in all strings, such as the AG of an acceptor site."""
    certain = poim.chances.max(axis=1) > CERTAIN
    edges = np.flatnonzero(np.diff(np.r_[0, certain, 0]))
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        for edge in (first, stop):
            ax.axvline(edge + 0.5, color="0.35", linewidth=0.8, linestyle=":")
        text = "".join(poim.letters[a] for a in poim.chances[first:stop].argmax(axis=1))
        ax.annotate(
            text, ((first + stop + 1) / 2, 1.0), (0, 2), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="center", fontsize=8, family="monospace",
        )  # fmt: skip


def _list(ax: Axes, poim: Poim) -> None:
    """A column of the strongest k-mers for each order."""
    ax.axis("off")
    orders = len(poim.importance)
    digits = max(0, 2 - math.floor(math.log10(float(np.nanmax(poim.differential())) or 1.0)))
    shown = range(max(1, orders - 3), orders + 1)  # more do not fit beside each other
    for column, k in enumerate(shown):
        width = max(k, 5)
        lines = [f"{'k-mer':<{width}} {'at':>4} {'Q':>{digits + 4}}   std. error"]
        for position, text, importance, error in poim.strongest(k, LISTED):
            lines.append(
                f"{text:<{width}} {position + 1:>4} {importance:>+{digits + 4}.{digits}f} ± {error:.{digits}f}"
            )
        ax.text(column / max(3, len(shown)), 1.0, "\n".join(lines), va="top", family="monospace", fontsize=8)
