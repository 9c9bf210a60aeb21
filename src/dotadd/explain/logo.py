"""A sequence drawn as a logo: letters as high as what they add to the score, upwards where that is positive, downwards
where it is negative. SVG that needs nothing but itself.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from dotadd.errors import one_line

LINE = 100  # letters in a line
WIDE, HIGH = 10.0, 80.0  # of a letter, and of a line
LEFT, TOP, ABOVE, BETWEEN = 64.0, 26.0, 8.0, 26.0  # room around: above with a title and without
COLORS = {"A": "#1a9641", "C": "#2b6cb0", "G": "#e08a00", "T": "#d7191c", "U": "#d7191c"}
OTHER = "#777777"
# The outlines of letters in a square of 100.
OUTLINES = {
    "A": "M0 100L37 0L63 0L100 100L79 100L70 75L30 75L21 100ZM36 58L64 58L50 18Z",
    "C": "M100 68C95 88 78 100 52 100C18 100 0 78 0 50C0 22 18 0 52 0C78 0 95 12 100 32L79 36C75 24 66 17 52 17"
    "C32 17 22 30 22 50C22 70 32 83 52 83C66 83 75 76 79 64Z",
    "G": "M100 45L100 85C88 95 72 100 54 100C18 100 0 78 0 50C0 22 18 0 53 0C78 0 94 11 99 31L78 35C74 24 66 17 53 17"
    "C32 17 22 30 22 50C22 71 33 83 54 83C63 83 72 80 79 75L79 62L55 62L55 45Z",
    "T": "M0 0L100 0L100 18L61 18L61 100L39 100L39 18L0 18Z",
    "U": "M0 0L22 0L22 62C22 76 32 83 50 83C68 83 78 76 78 62L78 0L100 0L100 62C100 88 80 100 50 100C20 100 0 88 0 62Z",
}
STYLE = (
    ".dotadd-logo text{font:11px system-ui,sans-serif;fill:currentColor}.dotadd-logo path{fill-rule:evenodd}"
    ".dotadd-logo{color:#1c1c1c}@media(prefers-color-scheme:dark){.dotadd-logo{color:#e4e4e4}}"
)


def logo(letters: str, adds: np.ndarray, title: str = "") -> str:
    """The picture. `adds` is what each letter adds; all lines have one scale."""
    highest, lowest = max(float(adds.max(initial=0.0)), 0.0), min(float(adds.min(initial=0.0)), 0.0)
    reach = highest - lowest or 1.0
    (width, height), top = _size(letters, title), TOP if title else ABOVE
    parts = [_opening(width, height)]
    if title:
        parts.append(f'<title>{_text(title)}</title><text x="4" y="15">{_text(title)}</text>')
    for line in range(max(1, -(-len(letters) // LINE))):
        first, above = line * LINE, top + line * (HIGH + BETWEEN)
        parts += _line(letters[first : first + LINE], adds[first : first + LINE], first, above, highest, reach)
    return "".join([*parts, "</svg>\n"])


def stacked(letters: str, adds: np.ndarray, title: str = "") -> str:
    """What each letter would add at each position, (positions, letters): letters that add stand on the line, the
    strongest on top, and letters that take away hang below it."""
    up, down = np.where(adds > 0.0, adds, 0.0).sum(axis=1), np.where(adds < 0.0, adds, 0.0).sum(axis=1)
    highest, lowest = float(up.max(initial=0.0)), float(down.min(initial=0.0))
    reach = highest - lowest or 1.0
    blank = " " * len(adds)
    (width, height), top = _size(blank, title), TOP if title else ABOVE
    parts = [_opening(width, height)]
    if title:
        parts.append(f'<title>{_text(title)}</title><text x="4" y="15">{_text(title)}</text>')
    for line in range(max(1, -(-len(adds) // LINE))):
        first, above = line * LINE, top + line * (HIGH + BETWEEN)
        some, zero = adds[first : first + LINE], above + HIGH * highest / reach
        parts += _line(blank[: len(some)], np.zeros(len(some)), first, above, highest, reach)
        for k, values in enumerate(some.tolist()):
            for sign in (1.0, -1.0):
                y = zero
                for value, letter in sorted(
                    (sign * value, letter) for value, letter in zip(values, letters, strict=True)
                ):
                    tall = HIGH * value / reach
                    if tall >= 0.05:
                        parts.append(_letter(letter, LEFT + WIDE * k, y - tall if sign > 0.0 else y, tall))
                        y -= sign * tall
    return "".join([*parts, "</svg>\n"])


def logos(pictures: Sequence[tuple[str, np.ndarray, str]]) -> str:
    """Several sequences below each other, each with a scale of its own."""
    parts, width, height = [], 0.0, 0.0
    for letters, adds, title in pictures:
        wide, tall = _size(letters, title)
        parts.append(logo(letters, adds, title).strip().replace("<svg ", f'<svg y="{height:g}" ', 1))
        width, height = max(width, wide), height + tall + BETWEEN
    about = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {about}>{"".join(parts)}</svg>\n'


def _opening(width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" class="dotadd-logo" role="img"><style>{STYLE}</style>'
    )


def _size(letters: str, title: str) -> tuple[float, float]:
    lines = max(1, -(-len(letters) // LINE))
    width = LEFT + WIDE * min(max(len(letters), 10), LINE) + 10.0
    return width, (TOP if title else ABOVE) + lines * (HIGH + BETWEEN)


def _line(letters: str, adds: np.ndarray, first: int, above: float, highest: float, reach: float) -> list[str]:
    """The letters from `first` on."""
    zero, right = above + HIGH * highest / reach, LEFT + WIDE * len(letters)
    parts = [
        f'<path d="M{LEFT:g} {zero:.2f}H{right:g}" stroke="currentColor" stroke-width="0.6"/>'
        f'<path d="M{LEFT - 4:g} {above:.2f}V{above + HIGH:.2f}" stroke="currentColor" stroke-width="0.6"/>'
    ]
    for value, y in ((highest, above), (highest - reach, above + HIGH)):
        if value or abs(y - zero) > 12.0:
            parts.append(f'<text x="{LEFT - 7:g}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for k in range(9, len(letters), 10):
        x = LEFT + WIDE * (k + 0.5)
        parts.append(f'<text x="{x:g}" y="{above + HIGH + 14:.1f}" text-anchor="middle">{first + k + 1}</text>')
    for k, (letter, value) in enumerate(zip(letters, adds.tolist(), strict=True)):
        tall = HIGH * abs(value) / reach
        if tall >= 0.05:
            parts.append(_letter(letter, LEFT + WIDE * k, zero - tall if value > 0 else zero, tall))
    return parts


def _letter(letter: str, x: float, y: float, tall: float) -> str:
    """A letter in a box that begins here."""
    known = letter.upper()
    color, shape = COLORS.get(known, OTHER), f"translate({x + 0.4:.1f} {y:.2f})"
    if known in OUTLINES:
        return (
            f'<path d="{OUTLINES[known]}" fill="{color}" '
            f'transform="{shape} scale({(WIDE - 0.8) / 100:.3f} {tall / 100:.4f})"/>'
        )
    return (
        f'<text transform="{shape} scale({(WIDE - 0.8) / 8:.3f} {tall / 8:.4f})" y="8" x="0.5" '
        f'style="font:bold 11px monospace;fill:{color}">{_text(letter)}</text>'
    )


def _text(words: str) -> str:
    """Text as text, whatever stands in it."""
    return html.escape(one_line(words))
