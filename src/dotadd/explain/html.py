"""Explanations as HTML that needs nothing but itself: rows with their text coloured by what it adds to the score, logos
of sequences, and the features that add most. It is well-formed XML, and whatever users bring is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

import numpy as np

from dotadd.errors import as_written, one_line, printable
from dotadd.explain.explanation import ExplainedRow, ExplainedText
from dotadd.explain.logo import logo
from dotadd.features.alphabet import Alphabet

FAINT = 0.04  # of the strongest: below it, nothing is coloured
SHADES = 12
DRAWN = 1000  # letters of a sequence that are drawn as a logo
STYLE = """
.dotadd-explained { font: 14px/1.5 system-ui, sans-serif; max-width: 68em; overflow-wrap: anywhere }
.dotadd-explained h3 { font-size: 1.05em; margin: 1.6em 0 .3em }
.dotadd-explained p { margin: .3em 0 }
.dotadd-explained .text { white-space: pre-wrap; font: 13px/1.7 ui-monospace, monospace; margin: .5em 0;
  max-height: 30em; overflow-y: auto }
.dotadd-explained .picture { overflow-x: auto }
.dotadd-explained table { border-collapse: collapse; font-variant-numeric: tabular-nums; max-width: 100% }
.dotadd-explained td, .dotadd-explained th { padding: .1em .6em .1em 0; text-align: right; vertical-align: top;
  border-bottom: 1px solid rgb(128 128 128 / .35); background: none }
.dotadd-explained .word { text-align: left }
.dotadd-explained .up { color: #b35900 } .dotadd-explained .down { color: #2b6cb0 }
@media (prefers-color-scheme: dark) {
  .dotadd-explained .up { color: #ffab57 } .dotadd-explained .down { color: #7db7f5 } }
"""
PAGE = """<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{title}</title>
<style>:root {{ color-scheme: light dark }}
body {{ margin: 1.5em auto; max-width: 70em; padding: 0 1em; background: Canvas; color: CanvasText }}
h1 {{ font: 600 1.4em system-ui, sans-serif; overflow-wrap: anywhere }}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def characters(found: ExplainedText) -> tuple[list[str], np.ndarray]:
    """The characters of a text as they can be shown, and what each adds; bytes that are no text are escapes."""
    letters = found.text.decode("utf-8", "surrogateescape")
    sizes = [len(letter.encode("utf-8", "surrogateescape")) for letter in letters]
    first = np.cumsum([0, *sizes[:-1]])
    adds = np.add.reduceat(found.adds, first) if sizes else np.empty(0)
    return [_shown(letter) for letter in letters], adds


def _shown(letter: str) -> str:
    if letter in "\n\t":
        return letter
    return f"\\x{ord(letter) - 0xDC00:02x}" if "\udc80" <= letter <= "\udcff" else printable(letter)


def segments(found: ExplainedText, shades: int = SHADES) -> Iterator[tuple[str, int]]:
    """Stretches of the text and how strong each is, from -shades to shades, 0 where it adds next to nothing."""
    letters, adds = characters(found)
    most = float(np.abs(adds).max(initial=0.0)) or 1.0
    steps = np.minimum(np.ceil(shades * np.abs(adds) / most), shades)
    strong = np.where(np.abs(adds) < FAINT * most, 0, np.sign(adds) * steps).astype(int)
    edges = [0, *(np.flatnonzero(np.diff(strong)) + 1).tolist(), len(letters)]
    for first, stop in pairwise(edges):
        if stop > first:
            yield "".join(letters[first:stop]), int(strong[first])


def _coloured(found: ExplainedText) -> str:
    """Orange speaks for the class and blue against it."""
    parts = []
    for text, strong in segments(found):
        if strong:
            color = "255 140 0" if strong > 0 else "60 130 246"
            parts.append(
                f'<span style="background:rgb({color} / {0.7 * abs(strong) / SHADES:.2f})">{escape(text)}</span>'
            )
        else:
            parts.append(escape(text))
    return f'<div class="text">{"".join(parts)}</div>'


def _signed(value: float) -> str:
    return f'<td class="{"up" if value > 0 else "down"}">{value:+.4g}</td>'


def _features(row: ExplainedRow) -> str:
    if not row.features:
        return ""
    columns = any(feature.column for feature in row.features)
    head = '<th class="word">feature</th>' + '<th class="word">column</th>' * columns
    lines = []
    for feature in row.features:
        cells = f'<td class="word">{escape(one_line(feature.name, 200))}</td>'
        cells += f'<td class="word">{escape(one_line(feature.column))}</td>' * columns
        lines.append(
            f"<tr>{cells}<td>{feature.value:.4g}</td><td>{feature.weight:.4g}</td>{_signed(feature.contribution)}</tr>"
        )
    return f"<table><tr>{head}<th>value</th><th>weight</th><th>adds</th></tr>{''.join(lines)}</table>"


def shown_row(row: ExplainedRow, alphabet: Alphabet | None) -> str:
    """A row as a part of a page that has the STYLE."""
    title, label = escape(one_line(row.title)), escape(one_line(as_written(row.label)))
    parts = [f"<h3>{title}</h3><p>score {row.score:.4g} of class {label}, intercept {row.intercept:.4g}</p>"]
    if row.columns:
        cells = "".join(
            f'<tr><td class="word">{escape(one_line(name))}</td>{_signed(value)}</tr>'
            for name, value in row.columns.items()
        )
        parts.append(f'<table><tr><th class="word">column</th><th>adds</th></tr>{cells}</table>')
    for column, found in row.texts.items():
        if alphabet is not None and len(found.text) <= DRAWN:
            parts.append(f'<div class="picture">{logo(found.text.decode("latin-1"), found.adds)}</div>')
        else:
            parts.append((f"<p>{escape(one_line(column))}</p>" if column else "") + _coloured(found))
    if row.elsewhere:
        parts.append(f"<p>features whose place is not known add {row.elsewhere:+.4g}</p>")
    return "\n".join([*parts, _features(row)])


def fragment(rows: Sequence[ExplainedRow], alphabet: Alphabet | None, total: int | None = None) -> str:
    """Rows as a part of a page, as notebooks show them."""
    more = "" if total is None or total <= len(rows) else f"<p>and {total - len(rows):,} more rows</p>"
    shown = "\n".join(shown_row(row, alphabet) for row in rows)
    return f'<div class="dotadd-explained"><style>{STYLE}</style>{shown}{more}</div>'


def page(rows: Sequence[ExplainedRow], alphabet: Alphabet | None, title: str) -> str:
    """Rows as a page."""
    return PAGE.format(title=escape(one_line(title)), body=fragment(rows, alphabet))
