"""What all pictures and pages share: their style, what may be asked for, how a figure becomes a file; and a picture of
images.

A page is HTML that needs nothing but itself: no script, no font, no picture from elsewhere. It is well-formed XML too.
Whatever a user named (files, labels, expressions) goes through `text`.
"""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dotadd._util.atomic import replacing
from dotadd._util.wording import text
from dotadd.errors import DotaddError, require_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

STYLE: dict[RcKeyType, object] = {
    "text.parse_math": False,  # a file may be called $x$
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "dotadd",  # the same picture, the same file
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
DATED = {"svg": "Date", "pdf": "CreationDate"}  # left out, so that the same picture is the same file
NEEDS_NOTHING = ("json",)


def require_format(path: str | os.PathLike[str], formats: Sequence[str], what: str) -> str:
    """The format of a file of this name; raises if it is none of these, or if nothing could draw it."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in formats:
        raise DotaddError(f"{path}: {what} are written as {', '.join(f'.{name}' for name in formats)}")
    if kind not in NEEDS_NOTHING:
        instead = "".join(f", or write a .{name} file" for name in NEEDS_NOTHING if name in formats)
        require_extra("matplotlib", "pictures need", instead)
    return kind


def drawn(
    figure: Callable[[], Figure], kind: str, style: dict[RcKeyType, object] = STYLE, *, transparent: bool = False
) -> bytes:
    """The figure that is made in this style, as a file of this kind."""
    import matplotlib

    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # of a name in letters that the font has not
        file = BytesIO()
        metadata = {DATED[kind]: None} if kind in DATED else {}
        figure().savefig(file, format=kind, dpi=150, metadata=metadata, transparent=transparent)
        return file.getvalue()


def inline_svg(picture: bytes) -> str:
    """An SVG file as an element of a page."""
    return picture[picture.index(b"<svg") :].decode()


PAGE = """<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"/>
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --paper: #ffffff; --ink: #1c1c1c; --rule: #d5d5d5 }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ --paper: #16181c; --ink: #e4e4e4; --rule: #3d4148 }} }}
body {{ margin: 2em auto; max-width: 68em; padding: 0 1.2em; font: 15px/1.5 system-ui, sans-serif;
  background: var(--paper); color: var(--ink) }}
h1 {{ font-size: 1.5em; overflow-wrap: anywhere }}
h2 {{ font-size: 1.15em; margin-top: 2em }}
figure {{ margin: 1em 0; overflow-x: auto }}
figure svg {{ width: 100%; min-width: 40em; height: auto }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ padding: .35em .8em .35em 0; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: top;
  font-variant-numeric: tabular-nums }}
th {{ vertical-align: bottom }}
.word {{ text-align: left }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .2em 1.2em; margin: 0 }}
dt {{ opacity: .7 }}
dd {{ margin: 0; overflow-wrap: anywhere }}
{style}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(title: str, body: str, style: str = "") -> str:
    """A page; `title`, `body` and `style` are HTML and CSS already."""
    return PAGE.format(title=title, body=body, style=style)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = ()) -> str:
    """A table of text; columns of `words` stand to the left, numbers to the right."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="word"' if k in words else "" for k in range(len(cells))]
        shown = (f"<{tag}{kind}>{text(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
        return f"<tr>{''.join(shown)}</tr>"

    lines = "\n".join(line(row, "td") for row in rows)
    return (
        f'<div class="wide"><table>\n<thead>{line(headings, "th")}</thead>\n<tbody>\n{lines}\n</tbody>\n</table></div>'
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """A list of remarks."""
    return "<ul>\n" + "\n".join(f"<li>{text(sentence)}</li>" for sentence in sentences) + "\n</ul>"


def definitions(facts: Mapping[str, str]) -> str:
    """Names and values."""
    return (
        "<dl>\n" + "\n".join(f"<dt>{text(name)}</dt><dd>{text(fact)}</dd>" for name, fact in facts.items()) + "\n</dl>"
    )


FORMATS = ("svg", "png", "pdf")
LETTERS = 22  # in a line under an image


def draw_images(
    images: np.ndarray, names: Sequence[str], path: str | os.PathLike[str], *, columns: int = 6, title: str = ""
) -> None:
    """Write images (n, height, width), row by row; the end of the file's name says in which format."""
    kind = require_format(path, FORMATS, "pictures")
    if images.ndim != 3 or not len(images):
        raise DotaddError(f"a picture shows images in an array (images, height, width), and this one is {images.shape}")
    if len(names) != len(images):
        raise DotaddError(f"there are {len(names)} names for {len(images)} images")
    with replacing(path) as temporary:
        temporary.write_bytes(drawn(partial(images_figure, images, names, columns, title), kind))


def images_figure(images: np.ndarray, names: Sequence[str], columns: int = 6, title: str = "") -> Figure:
    """The picture as a figure of matplotlib. All images share one scale from black to white."""
    from matplotlib.figure import Figure

    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    written = [textwrap.fill(name, LETTERS) for name in names]
    lines = max(name.count("\n") + 1 for name in written)
    _, height, width = images.shape
    figure = Figure(figsize=(1.5 * columns, rows * (1.45 * height / width + 0.16 * lines + 0.2)), layout="constrained")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    black, white = float(images.min()), float(images.max())
    for place, image, name in zip(places, images, written, strict=False):
        place.imshow(image, "gray", vmin=black, vmax=white, interpolation="none")
        place.text(0.5, -0.04, name, transform=place.transAxes, ha="center", va="top", fontsize=7.5)
    for place in places:
        place.set_axis_off()
    return figure
