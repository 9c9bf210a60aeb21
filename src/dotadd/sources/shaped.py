"""Shaped: rows of numbers that are the pixels of images, line by line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dotadd.batch import DenseRows, Images
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import CHUNK_BYTES, Around, Chunk


@dataclass
class Shaped(Around):
    """Another source whose rows are images of this height and width."""

    size: tuple[int, int]

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        for chunk in self.source.chunks(nbytes):
            yield dataclasses.replace(chunk, batch=self._images(chunk))

    def _images(self, chunk: Chunk) -> Images:
        batch, (height, width) = chunk.batch, self.size
        if isinstance(batch, Images):
            raise DataError(f"holds images already, and size={height}x{width} is for rows of numbers", chunk.path)
        if not isinstance(batch, DenseRows):
            raise DataError(f"holds {batch.kind}, and size={height}x{width} is for rows of numbers", chunk.path)
        if batch.n_features != height * width:
            raise DataError(
                f"has rows of {batch.n_features} numbers, and images of {height}x{width} have {height * width} pixels",
                chunk.path,
            )
        return Images(batch.values.reshape(-1, height, width))


def parse_size(size: Any) -> tuple[int, int]:
    """Height and width, given as a pair or as text like "24x32"."""
    found = re.fullmatch(r"\s*(\d+)\s*[xX]\s*(\d+)\s*", size) if isinstance(size, str) else None
    pair = found.groups() if found else () if isinstance(size, str) else size
    try:
        height, width = (int(side) for side in pair)
        whole = all(isinstance(side, int | np.integer | str) for side in pair)
    except (TypeError, ValueError):
        whole = False
    if not whole or min(height, width) < 1:
        raise DotaddError(f"{size!r} is no size of images; write height and width, like 24x32")
    return height, width
