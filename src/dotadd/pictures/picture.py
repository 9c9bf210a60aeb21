"""Picture, which notebooks show and pages hold; and Axes, on which most pictures are drawn.

Ink is the colour of the text around (`currentColor`) and lines have colours of middle lightness, so that one picture
serves on light paper, on dark and in print. Lines differ by dashes too. Whatever a user named is escaped.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dotadd._util.atomic import replacing
from dotadd._util.wording import text
from dotadd.errors import DotaddError

COLORS = ("#2f7fc1", "#d4641a", "#1f9066", "#a15bb5", "#9a7b1c", "#7a7f87")
DASHES = ("", "7 3", "2 2.5", "8 3 2 3", "4 2", "1 3")
MOST_LINES = len(COLORS)
WIDTH, HIGH = 420.0, 270.0  # of the picture, and of what is drawn within its frame
LEFT, RIGHT, TOP, BELOW = 52.0, 14.0, 26.0, 40.0  # room around that
LINE = 17.0  # a line of the legend
LETTERS = 52  # of a name in the legend
COLUMNS = 400  # of points that are told apart
STANDALONE = "svg{color:#1c1c1c}@media(prefers-color-scheme:dark){svg{color:#e4e4e4}}"


@dataclass(frozen=True)
class Picture:
    """A picture: `svg` is the element, `title` what it shows, in a line."""

    title: str
    svg: str

    def __repr__(self) -> str:
        return f"<picture: {self.title}>"

    def _repr_svg_(self) -> str:
        return self._alone()

    def _repr_html_(self) -> str:
        return f"<figure>{self.svg}</figure>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an SVG file; it appears whole or not at all."""
        if not os.fspath(path).lower().endswith(".svg"):
            raise DotaddError(f"{os.fspath(path)}: pictures are written as .svg")
        with replacing(path) as temporary:
            temporary.write_text(self._alone(), encoding="utf-8")

    def _alone(self) -> str:
        """As a file of its own, where no page says which ink there is."""
        opening, closed, rest = self.svg.partition(">")
        return f"{opening}{closed}<style>{STANDALONE}</style>{rest}\n"


class Curve(NamedTuple):
    """A line, its name, and where it is marked."""

    name: str
    x: np.ndarray
    y: np.ndarray
    mark: tuple[float, float] | None = None


class Scale(NamedTuple):
    """Numbers along an axis, and those that it is labelled with."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    @classmethod
    def share(cls) -> Scale:
        """From 0 to 1."""
        return cls(0.0, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))

    @classmethod
    def linear(cls, values: np.ndarray, *, zero: bool = False) -> Scale:
        """An axis around all of these numbers that are finite, with labels at round numbers."""
        finite = np.clip(values[np.isfinite(values)], -1e290, 1e290)
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        low = min(low, 0.0) if zero else low
        if not high - low > max(1e-9 * max(abs(low), abs(high)), 1e-290):  # nothing, or nothing but rounding
            room = 0.5 * max(abs(low), abs(high))
            low, high = low - (room if room > 1e-280 else 1.0), high + (room if room > 1e-280 else 1.0)
        step = 10.0 ** math.floor(math.log10((high - low) / 2.0))
        step *= next(factor for factor in (1.0, 2.0, 5.0, 10.0) if (high - low) / (step * factor) <= 6.0)
        first = math.ceil(low / step - 1e-9)
        ticks = tuple(k * step for k in range(first, math.floor(high / step + 1e-9) + 1))
        return cls(low, high, ticks)

    @classmethod
    def log(cls, values: np.ndarray) -> Scale:
        """An axis around the logarithms of those above 0, with labels at powers of ten."""
        finite = values[np.isfinite(values) & (values > 0.0)]
        finite = np.clip(finite, 1e-290, 1e290)
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.1, 1.0)
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        last = max(last, first + 1)
        every = max(1, -(-(last - first) // 6))
        return cls(10.0**first, 10.0**last, tuple(10.0**k for k in range(first, last + 1, every)), True)

    def at(self, values: np.ndarray) -> np.ndarray:
        """Where numbers stand, from 0 to 1; NaN where they cannot."""
        if self.logarithmic:
            with np.errstate(divide="ignore", invalid="ignore"):
                place = (np.log(values) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
            return np.where(np.asarray(values) > 0.0, place, np.nan)
        return (values - self.low) / (self.high - self.low)


@dataclass
class Axes:
    """A frame with two scales. What is drawn stands in `parts`, in the order in which it is drawn."""

    title: str
    x: Scale
    y: Scale
    below: str
    beside: str
    parts: list[str] = field(default_factory=list)
    legend: list[str] = field(default_factory=list)

    def places(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where points are in the picture."""
        wide = WIDTH - LEFT - RIGHT
        return LEFT + wide * self.x.at(np.asarray(x, float)), TOP + HIGH * (1.0 - self.y.at(np.asarray(y, float)))

    def line(self, curve: Curve, number: int) -> None:
        """A curve and its mark, in the manner of this number, and its name below."""
        color, dash = COLORS[number % MOST_LINES], DASHES[number % MOST_LINES]
        manner = f'stroke="{color}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else "")
        self.path(*thinned(*self.places(curve.x, curve.y)), manner)
        if curve.mark is not None:
            self.mark(*curve.mark, color)
        y = LINE * len(self.legend)
        self.legend.append(
            f'<path d="M0 {y:g}h22" fill="none" {manner}/><text x="28" y="{y + 4:g}">{text(curve.name, LETTERS)}</text>'
        )

    def diagonal(self) -> None:
        """Where chance, or a perfect forecast, would be."""
        x, y = self.places(np.array([self.x.low, self.x.high]), np.array([self.y.low, self.y.high]))
        self.path(x, y, 'stroke="currentColor" stroke-opacity="0.4" stroke-dasharray="3 4"')

    def level(self, y: float, name: str) -> None:
        """A line from left to right at this height, with a name above it."""
        x, at = self.places(np.array([self.x.low, self.x.high]), np.array([y, y]))
        self.path(x, at, 'stroke="currentColor" stroke-opacity="0.5" stroke-dasharray="3 4"')
        self.parts.append(f'<text x="{x[1] - 4:.1f}" y="{at[0] - 4:.1f}" text-anchor="end">{text(name)}</text>')

    def path(self, x: np.ndarray, y: np.ndarray, manner: str) -> None:
        """A line through places in the picture, with a gap where one is not known."""
        words, pen = [], "M"
        for here, there in zip(x.tolist(), y.tolist(), strict=True):
            if not (math.isfinite(here) and math.isfinite(there)):
                pen = "M"
                continue
            words.append(f"{pen}{here:.1f} {there:.1f}")
            pen = "L"
        if words:
            self.parts.append(f'<path d="{"".join(words)}" fill="none" {manner}/>')

    def mark(self, x: float, y: float, color: str) -> None:
        """A ring around a point."""
        (at_x,), (at_y,) = self.places(np.array([x]), np.array([y]))
        if math.isfinite(at_x) and math.isfinite(at_y):
            ring = f'stroke="{color}" stroke-width="2.5" fill="none"'
            self.parts.append(f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="6" {ring}/>')

    def picture(self) -> Picture:
        """All that was drawn, in its frame."""
        right, bottom = WIDTH - RIGHT, TOP + HIGH
        parts = [f'<text x="0" y="14" font-weight="600">{text(self.title, 60)}</text>']
        for tick in self.x.ticks:
            (at,), _ = self.places(np.array([tick]), np.array([self.y.low]))
            parts.append(_rule(f"M{at:.1f} {TOP:g}V{bottom:g}"))
            parts.append(f'<text x="{at:.1f}" y="{bottom + 15:g}" text-anchor="middle">{_short(tick)}</text>')
        for tick in self.y.ticks:
            _, (at,) = self.places(np.array([self.x.low]), np.array([tick]))
            parts.append(_rule(f"M{LEFT:g} {at:.1f}H{right:g}"))
            parts.append(f'<text x="{LEFT - 6:g}" y="{at + 4:.1f}" text-anchor="end">{_short(tick)}</text>')
        middle = TOP + HIGH / 2
        parts += [
            f'<text x="{(LEFT + right) / 2:g}" y="{bottom + 32:g}" text-anchor="middle">{text(self.below)}</text>',
            f'<text transform="translate(11 {middle:g}) rotate(-90)" text-anchor="middle">{text(self.beside)}</text>',
            *self.parts,
        ]
        named = f'<g transform="translate({LEFT:g} {bottom + BELOW + 12:g})">{"".join(self.legend)}</g>'
        return Picture(self.title, element("".join(parts) + named, WIDTH, bottom + BELOW + 6 + LINE * len(self.legend)))


def element(inside: str, width: float, height: float, words: str = "") -> str:
    """An SVG element of this size, which becomes narrower where there is less room."""
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="max-width:100%;height:auto" role="img" '
        f'font-family="system-ui,sans-serif" font-size="12" fill="currentColor">'
        f"{f'<title>{text(words)}</title>' if words else ''}{inside}</svg>"
    )


def thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many of these points, which go from left to right, as can be told apart: in each column the first, the last,
    the highest and the lowest."""
    if len(x) <= 4 * COLUMNS or not np.isfinite(x).all() or not np.isfinite(y).all():
        return x, y
    column = np.minimum(((x - x.min()) / (np.ptp(x) or 1.0) * COLUMNS).astype(np.int64), COLUMNS - 1)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    last = np.r_[first[1:], len(x)] - 1
    order = np.lexsort((y, column))
    kept = np.unique(np.concatenate([first, last, order[first], order[last]]))
    return x[kept], y[kept]


def most_told(names: Sequence[str], weights: np.ndarray) -> list[int]:
    """The numbers of as many lines as can be told apart: those with the largest weights, in their order."""
    return sorted(np.argsort(-np.asarray(weights, float), kind="stable")[: min(MOST_LINES, len(names))].tolist())


def _rule(way: str) -> str:
    return f'<path d="{way}" stroke="currentColor" stroke-opacity="0.15" fill="none"/>'


def _short(value: float) -> str:
    return f"{0.0 if abs(value) < 1e-300 else value:.4g}"
