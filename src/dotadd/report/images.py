"""A picture of a few gray images in rows, with a name under each."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dotadd.atomic import replacing
from dotadd.errors import DotaddError
from dotadd.report import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
LETTERS = 22  # in a line under an image


def draw_images(
    images: np.ndarray, names: Sequence[str], path: str | os.PathLike[str], *, columns: int = 6, title: str = ""
) -> None:
    """Write images (n, height, width), row by row; the end of the file's name says in which format."""
    kind = drawing.require_format(path, FORMATS, "pictures")
    if images.ndim != 3 or not len(images):
        raise DotaddError(f"a picture shows images in an array (images, height, width), and this one is {images.shape}")
    if len(names) != len(images):
        raise DotaddError(f"there are {len(names)} names for {len(images)} images")
    with replacing(path) as temporary:
        temporary.write_bytes(drawing.drawn(partial(images_figure, images, names, columns, title), kind))


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
