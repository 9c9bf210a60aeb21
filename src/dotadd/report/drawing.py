"""What all pictures share: their style, what may be asked for, how a figure becomes a file; and a picture of images."""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dotadd._util.atomic import replacing
from dotadd.errors import DotaddError, require_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: Any = {
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


def drawn(figure: Callable[[], Figure], kind: str, style: Any = STYLE, **how: Any) -> bytes:
    """The figure that is made in this style, as a file of this kind."""
    import matplotlib

    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # of a name in letters that the font has not
        file = BytesIO()
        metadata = {DATED[kind]: None} if kind in DATED else {}
        figure().savefig(file, format=kind, dpi=150, metadata=metadata, **how)
        return file.getvalue()


def inline_svg(picture: bytes) -> str:
    """An SVG file as an element of a page."""
    text = picture.decode()
    return text[text.index("<svg") :]


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
