"""What all pictures share: their style, what may be asked for, and how a figure becomes a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotadd import extras
from dotadd.errors import DotaddError

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
        extras.require("matplotlib", "pictures need", instead)
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
