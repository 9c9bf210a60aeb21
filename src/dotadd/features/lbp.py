"""LBP: which local binary pattern each pixel of an image has, on a pyramid of images of half the size each.

<phi(z), phi(z')> = number of pixels, in all levels, at which z and z' have the same pattern

The pattern of a pixel is a byte with a bit for each of its eight neighbours, set where the neighbour is at least as
bright. The bits go clockwise: 1 is the neighbour above on the left, 2 above, 4 above on the right, 8 on the right, 16
below on the right, 32 below, 64 below on the left, 128 on the left. Only pixels with all eight neighbours have one.

An image is taken as one long row, so that the neighbours of pixel q are those at fixed distances from it and one loop
over the whole level is vectorised, some 30 pixels at a time for bytes; that it runs on through the pixels at the
edges, whose patterns mean nothing and are left out afterwards, costs less than stopping at the end of each row. Bits
are gathered in integers as wide as the gray values, since changing the width inside of the loop costs more than the
comparisons.

For DOT and ADD, patterns of some hundred images are written down, a byte each, and the loop over pixels is the outer
one: the tables of eight pixels stay in the L1 cache while all images look theirs up. The patterns of these pixels are
one word, and the words of all images lie side by side. Eight at once also because many images have the same pattern at
a pixel, and an ADD has to wait for the one before to the same slot.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from dotadd._jit import exact_inner, inner, kernel, plain
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Images
from dotadd.errors import FeatureError
from dotadd.features.base import Arrays, BadRow, Origins, Shape, checked_dim
from dotadd.features.leaves import TiledLeaf, checked_int

PATTERNS = 256
TOGETHER = 8  # pixels whose patterns are a word
Size = tuple[int, int]
STRIP_BYTES = 3 << 19  # of patterns that are written down at a time
LEAST = 3  # rows and columns of an image in which a pixel has neighbours on all sides


class LBP(TiledLeaf):
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
    place_slots = PATTERNS

    def __init__(self, *, levels: int | None = None, window: Size | None = None, size: Size | None = None) -> None:
        self.levels = None if levels is None else checked_int("levels", levels, 1, 64)
        self.window, self.size = _checked_size("window", window, LEAST), _checked_size("size", size, 0)
        if self.size is None:
            return
        if min(self.size) < LEAST:
            raise FeatureError(f"images of {_text(self.size)} pixels have no patterns: {LEAST} x {LEAST} is the least")
        if self.window is not None and (self.size[0] < self.window[0] or self.size[1] < self.window[1]):
            raise FeatureError(f"images of {_text(self.size)} pixels are smaller than window={self.window}")

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
        pixels = min(self.pixels - first, len(words) * TOGETHER)
        where = np.array([across, height, width, len(self.sizes), first, pixels])
        _patterns(plain(batch.values.reshape(-1)), starts, where, *_types(batch.values.dtype, len(self.sizes)), words)
        return words

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        words = self.patterns(batch, rows, 0, _words(self.pixels, len(rows)))
        _write(words, self.pixels, block.base, block.scale, block.end[: len(rows)], block.indices, block.values)

    def touch(self, batch: Batch, rows: np.ndarray, first: int, ws: Arrays, numbers: Arrays, *, adding: bool) -> None:
        """Some rows after the other, the patterns of their pixels in the same memory each time."""
        pixels = len(ws[0]) // PATTERNS if len(ws) else 0
        step = min(max(TOGETHER, STRIP_BYTES // max(pixels, TOGETHER)), len(rows))
        words = _words(pixels, step)
        for at in range(0, len(rows), max(step, 1)):
            some = slice(at, at + step)
            self.patterns(batch, rows[some], first, words)
            for w, sums in zip(ws, numbers, strict=True):
                (_add if adding else _dot)(words, w, sums[some])

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return np.full(len(rows), float(self.pixels))

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


@kernel
def _patterns(values, starts, where, sum_like, bits_like, sum_bits_like, words):
    """The patterns of pyramids: byte k of words[g, j] is that of pixel first + 8 g + k of image j, for so many pixels.

    Pixels are counted through all levels. Images have `height` rows of `width` pixels from starts[j] on, `across` apart
    from row to row. Three arrays are empty and tell types: of sums, of bits beside gray values and sums.
    """
    across, height, width, levels, first, pixels = where[0], where[1], where[2], where[3], where[4], where[5]
    room = np.empty(height * width, values.dtype)
    sums = np.empty(height * width // 3, sum_like.dtype)
    bits = np.empty(height * width + TOGETHER, bits_like.dtype)
    sum_bits = np.empty(height * width // 4 + TOGETHER, sum_bits_like.dtype)
    line = np.empty(len(words) + 1, np.uint64)
    found = line.view(np.uint8)
    last = first + pixels
    for j in range(len(starts)):
        image = values[starts[j] : starts[j] + height * width]
        if across != width:
            _cut_out(values, starts[j], across, height, width, room)
            image = room
        end = _level(image, height, width, first, last, 0, bits, found)
        h, w, smaller = height // 2, width // 2, sums
        for level in range(1, levels):
            if end >= last:
                break
            if level == 1:
                _add_pairs(image, width, h, w, smaller)
            else:
                larger, smaller = smaller, smaller[h * w :]
                _add_pairs(larger, w, h // 2, w // 2, smaller)
                h, w = h // 2, w // 2
            end = _level(smaller, h, w, first, last, end, sum_bits, found)
        for g in range(np.uint64(len(words))):
            words[g, j] = line[g]


@kernel
def _write(words, pixels, base, scale, cursor, out_indices, out_values):
    """Append the patterns of image j to row j."""
    wide, value = out_indices.dtype.type, out_values.dtype.type(scale)
    line = np.empty(len(words), np.uint64)
    found = line.view(np.uint8)
    for j in range(np.uint64(len(cursor))):
        for g in range(np.uint64(len(words))):
            line[g] = words[g, j]
        p = np.uint64(cursor[j])
        for k in range(np.uint64(pixels)):
            out_indices[p + k] = wide(base) + wide(k * np.uint64(PATTERNS)) + wide(found[k])
        for k in range(p, p + np.uint64(pixels)):
            out_values[k] = value
        cursor[j] += pixels


@kernel
def _dot(words, w, numbers):
    """DOT of image j with the tables of the pixels in w, added to numbers[j]."""
    for g in range(len(words)):
        tables, mine = w[g * TOGETHER * PATTERNS :], words[g]
        if len(tables) >= TOGETHER * PATTERNS:
            for j in range(np.uint64(len(numbers))):
                total = 0.0
                for k in range(np.uint64(TOGETHER)):
                    total += np.float64(tables[_slot(mine[j], k)])
                numbers[j] += total
        else:
            for j in range(np.uint64(len(numbers))):
                for k in range(np.uint64(len(tables) // PATTERNS)):
                    numbers[j] += np.float64(tables[_slot(mine[j], k)])


@kernel
def _add(words, w, numbers):
    """ADD of image j, times numbers[j], to the tables of the pixels in w."""
    for g in range(len(words)):
        tables, mine = w[g * TOGETHER * PATTERNS :], words[g]
        if len(tables) >= TOGETHER * PATTERNS:
            for j in range(np.uint64(len(numbers))):
                word = mine[j]
                for k in range(np.uint64(TOGETHER)):
                    tables[_slot(word, k)] += numbers[j]
        else:
            for j in range(np.uint64(len(numbers))):
                for k in range(np.uint64(len(tables) // PATTERNS)):
                    tables[_slot(mine[j], k)] += numbers[j]


@inner
def _slot(word, k):
    """The slot of the pattern of pixel k of a word, in the tables of its pixels; the lowest byte comes first."""
    return k * np.uint64(PATTERNS) + (word >> (np.uint64(8) * k) & np.uint64(PATTERNS - 1))


@inner
def _cut_out(values, start, across, height, width, image):
    for r in range(height):
        source, target = np.uint64(start + r * across), np.uint64(r * width)
        for c in range(np.uint64(width)):
            image[target + c] = values[source + c]


@exact_inner  # a tie between sums has to be one on every processor
def _add_pairs(image, width, half_height, half_width, sums):
    """The image of half the size, in which each pixel is the sum of two by two."""
    number = sums.dtype.type
    for r in range(half_height):
        upper, lower = np.uint64(2 * r * width), np.uint64((2 * r + 1) * width)
        out = np.uint64(r * half_width)
        for c in range(np.uint64(half_width)):
            a = number(image[upper + c + c]) + number(image[upper + c + c + np.uint64(1)])
            b = number(image[lower + c + c]) + number(image[lower + c + c + np.uint64(1)])
            sums[out + c] = number(a + b)


@inner
def _level(image, height, width, first, last, begin, bits, out):
    """The patterns of one level, whose pixels have the numbers from `begin` on. Returns the number after its last."""
    inside = width - 2
    end = begin + (height - 2) * inside
    low, high = max(first, begin) - begin, min(last, end) - begin
    if low >= high:
        return end
    top, bottom = low // inside, (high - 1) // inside + 1  # rows of centres, counted from the image's second row
    _compare(image, np.uint64(width), np.uint64(top * width), np.uint64(bottom * width - 2), bits)
    for r in range(top, bottom):
        left, right = max(low - r * inside, 0), min(high - r * inside, inside)
        source, target = np.uint64(r * width + left), np.uint64(begin + r * inside + left - first)
        if bits.itemsize == 1:
            for c in range(np.uint64(0), np.uint64(right - left), np.uint64(TOGETHER)):
                _copy(bits, source + c, out, target + c)
        else:
            for c in range(np.uint64(right - left)):
                out[target + c] = np.uint8(bits[source + c])
    return end


@inner
def _copy(bits, i, out, o):
    """Eight bytes, of which the next row writes over those that are too many.

    All are loaded before the first is stored, which is one load and one store; a loop would have to be ready for arrays
    that overlap.
    """
    i, o = np.uint64(i), np.uint64(o)
    i4, o4 = i + np.uint64(4), o + np.uint64(4)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    a, b, c, d = bits[i], bits[i + one], bits[i + two], bits[i + three]
    e, f, g, h = bits[i4], bits[i4 + one], bits[i4 + two], bits[i4 + three]
    out[o], out[o + one], out[o + two], out[o + three] = a, b, c, d
    out[o4], out[o4 + one], out[o4 + two], out[o4 + three] = e, f, g, h


@inner
def _compare(image, width, first, stop, bits):
    """bits[q] = the pattern around pixel q + width + 1, whose upper left neighbour q is."""
    number = bits.dtype.type
    none, right = number(0), np.uint64(2)
    above, middle, below = np.uint64(1), width + np.uint64(1), width + width + np.uint64(1)
    for q in range(first, stop):
        centre = image[q + middle]
        bits[q] = (
            (number(1) if image[q] >= centre else none)
            | (number(2) if image[q + above] >= centre else none)
            | (number(4) if image[q + right] >= centre else none)
            | (number(8) if image[q + width + right] >= centre else none)
            | (number(16) if image[q + width + width + right] >= centre else none)
            | (number(32) if image[q + below] >= centre else none)
            | (number(64) if image[q + width + width] >= centre else none)
            | (number(128) if image[q + width] >= centre else none)
        )
