"""LBP: which local binary pattern each pixel of an image has, on a pyramid of images of half the size each.

<phi(z), phi(z')> = number of pixels, in all levels, at which z and z' have the same pattern
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np

from dotadd._jit import plain
from dotadd._util.expression import call_repr
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Images
from dotadd.errors import FeatureError
from dotadd.features import binary_patterns
from dotadd.features.base import BadRow, FeatureMap, Part, Shape, checked_dim, checked_int
from dotadd.features.binary_patterns import PATTERNS, TOGETHER
from dotadd.features.origins import Origins

Size = tuple[int, int]
STRIP_BYTES = 3 << 19  # of patterns that are written down at a time
LEAST = 3  # rows and columns of an image in which a pixel has neighbours on all sides


class LBP(FeatureMap):
    """Local binary patterns on a pyramid: the eight neighbours of each pixel that has them all, compared with it.

    A pattern is a byte with a bit for each neighbour that is at least as bright as the pixel, clockwise from the
    smallest: above on the left, above, above on the right, right, below on the right, below, below on the left, left.
    Each pixel of each level has 256 slots, one for each pattern, and 1 in that of its own. It does not change with
    brightness and contrast; in the first level, not with any increasing map of the gray values.

    In the next level each pixel is the sum of two by two pixels; an odd last row or column is left out. There are
    levels as long as an image has at least 3 x 3 pixels: of 60 x 40, 30 x 20, 15 x 10 and 7 x 5 for 60 x 40. Sums of
    whole numbers are exact, those of floats are taken in float64.

    levels: at most so many.
    window: (height, width), the middle of each image, to which alone phi looks; by default the whole image.
    size: (height, width) of the images; by default that of the training data. Others are refused.
    """

    takes = (Images,)
    keeps = False
    distinct = True
    bulk = True

    def __init__(self, *, levels: int | None = None, window: Size | None = None, size: Size | None = None) -> None:
        self.levels = None if levels is None else checked_int("levels", levels, 1, 64)
        self.window, self.size = _checked_size("window", window, LEAST), _checked_size("size", size, 0)
        if self.size is None:
            return
        if min(self.size) < LEAST:
            raise FeatureError(f"images of {_text(self.size)} pixels have no patterns: {LEAST} x {LEAST} is the least")
        if self.window is not None and (self.size[0] < self.window[0] or self.size[1] < self.window[1]):
            raise FeatureError(f"images of {_text(self.size)} pixels are smaller than window={self.window}")

    def __repr__(self) -> str:
        options = {"levels": self.levels, "window": self.window, "size": self.size}
        return call_repr("LBP", **{name: value for name, value in options.items() if value is not None})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LBP) and repr(self) == repr(other)

    __hash__ = FeatureMap.__hash__

    @cached_property
    def sizes(self) -> list[Size]:
        """Height and width of each level."""
        looked_at = self.window or self.size
        if looked_at is None:
            raise FeatureError(f"{self!r} does not know the size of the images yet: give size=, or call fit(X)")
        height, width = looked_at
        sizes: list[Size] = []
        while min(height, width) >= LEAST and (self.levels is None or len(sizes) < self.levels):
            sizes.append((height, width))
            height, width = height // 2, width // 2
        return sizes

    @cached_property
    def pixels(self) -> int:
        """Pixels that have a pattern, of all levels."""
        return sum((height - 2) * (width - 2) for height, width in self.sizes)

    @property
    def dim(self) -> int:
        return checked_dim(self, self.pixels * PATTERNS)

    def resolve(self, shape: Shape) -> LBP:
        if self.size is not None:
            return self
        if shape.size is None:
            raise FeatureError(f"{self!r} reads images of one size, and these are {shape.kind} of several")
        return LBP(levels=self.levels, window=self.window, size=shape.size)

    def check(self, batch: Batch) -> BadRow | None:
        assert isinstance(batch, Images)
        size = batch.values.shape[1:]
        if self.size is None or size == self.size:
            return None
        return BadRow(0, None, f"has {_text(size)} pixels, and the model was made for {_text(self.size)}")

    @property
    def checks_rows(self) -> bool:
        return False  # all images of one source have the same size

    def bound(self, batch: Batch) -> int:
        return self.pixels

    def patterns(self, batch: Batch, rows: np.ndarray, first: int, words: np.ndarray) -> np.ndarray:
        """words, with the patterns of pixels from number `first` on, counted through all levels: that of number
        first + 8 g + k is byte k of words[g, j], from the lowest, in example rows[j]."""
        assert isinstance(batch, Images)
        _, down, across = batch.values.shape
        height, width = self.sizes[0]
        corner = (down - height) // 2 * across + (across - width) // 2
        starts = rows.astype(np.int64) * (down * across) + corner
        types = _types(batch.values.dtype, len(self.sizes))
        values, pixels = plain(batch.values.reshape(-1)), min(self.pixels - first, len(words) * TOGETHER)
        binary_patterns.patterns(values, starts, across, height, width, len(self.sizes), *types, first, pixels, words)
        return words

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        words = self.patterns(batch, rows, 0, _words(self.pixels, len(rows)))
        out = block.end[: len(rows)], block.indices, block.values
        binary_patterns.write(words, self.pixels, block.base, block.scale, *out)

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        _Pixels(self, 0, self.dim).dots(batch, rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        _Pixels(self, 0, self.dim).add(batch, rows, coefficients, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return np.full(len(rows), float(self.pixels))

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        step = max(1, slots // PATTERNS)
        cuts = [(first, min(first + step, self.pixels)) for first in range(0, self.pixels, step)]
        return [(first * PATTERNS, _Pixels(self, first, (stop - first) * PATTERNS)) for first, stop in cuts]

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        names, inside = Origins.unnamed(repr(self), len(rows)), np.flatnonzero(nth < self.pixels)
        distinct, at = np.unique(rows[inside], return_inverse=True)
        words = self.patterns(batch, distinct, 0, _words(self.pixels, len(distinct)))
        pixel = nth[inside]
        patterns = words[pixel // TOGETHER, at] >> (8 * (pixel % TOGETHER)).astype(np.uint64) & np.uint64(PATTERNS - 1)
        names.put(inside, self.invert(pixel * PATTERNS + patterns.astype(np.int64)))
        return names, np.where(nth < self.pixels, -1, nth - self.pixels)

    def invert(self, slots: np.ndarray) -> Origins:
        """The level, the pixel's row and column in it (in the window, counted from 0), and the pattern."""
        names, begin = Origins.unnamed(repr(self), len(slots)), 0
        for level, (height, width) in enumerate(self.sizes):
            end = begin + (height - 2) * (width - 2)
            for k in np.flatnonzero((slots >= begin * PATTERNS) & (slots < end * PATTERNS)):
                pixel, pattern = divmod(int(slots[k]) - begin * PATTERNS, PATTERNS)
                row, column = pixel // (width - 2) + 1, pixel % (width - 2) + 1
                names.text[k] = f"level {level}, row {row}, column {column}, pattern {pattern:#010b}".encode()
            begin = end
        return names


class _Pixels(Part):
    """The patterns of some neighbouring pixels of a map."""

    bulk = True

    def __init__(self, phi: LBP, first: int, dim: int) -> None:
        self.phi, self.first, self._dim = phi, first, dim

    @property
    def dim(self) -> int:
        return self._dim

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        for some, words in self._strips(batch, rows):
            for w, out in zip(ws, outs, strict=True):
                binary_patterns.dot(words, w, out[some])

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        for some, words in self._strips(batch, rows):
            binary_patterns.add(words, coefficients[some], w)

    def _strips(self, batch: Batch, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows after the other, and the patterns of their pixels, in the same memory each time."""
        pixels = self.dim // PATTERNS
        step = min(max(TOGETHER, STRIP_BYTES // max(pixels, TOGETHER)), len(rows))
        words = _words(pixels, step)
        for at in range(0, len(rows), max(step, 1)):
            some = slice(at, at + step)
            yield some, self.phi.patterns(batch, rows[some], self.first, words)


def _words(pixels: int, images: int) -> np.ndarray:
    """Memory for patterns. Rows are an odd number of cache lines apart, so that they do not compete for the same
    places in a cache when images are written one after the other."""
    line = 64 // np.dtype(np.uint64).itemsize
    return np.empty((-(-pixels // TOGETHER), line * (-(-images // line) | 1)), np.uint64)


@lru_cache
def _types(dtype: np.dtype, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Empty arrays of the types of sums, of bits beside gray values, and of bits beside sums.

    Sums of whole numbers are kept in the narrowest type in which those of all levels are exact.
    """
    most = np.iinfo(dtype).max * 4 ** max(levels - 1, 1) if dtype.kind == "u" else 0
    sums = np.dtype(np.min_scalar_type(most) if 0 < most < 2**64 else np.float64)
    return np.empty(0, sums), np.empty(0, f"u{dtype.itemsize}"), np.empty(0, f"u{sums.itemsize}")


def _checked_size(name: str, size: object, least: int) -> Size | None:
    if size is None:
        return None
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise FeatureError(f"{name} has to be (height, width), and not {size!r}")
    height, width = (checked_int(f"{name} = (height, width): each", side, least, 2**31) for side in size)
    return height, width


def _text(size: Size) -> str:
    return f"{size[0]} x {size[1]}"
