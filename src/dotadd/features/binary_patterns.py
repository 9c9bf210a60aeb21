"""Local binary patterns of gray images, and DOT and ADD of many images with a table of 256 weights for each pixel.

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

import numpy as np

from dotadd._jit import inner, kernel

PATTERNS = 256
TOGETHER = 8  # pixels whose patterns are a word


@kernel
def patterns(values, starts, across, height, width, levels, sum_like, bits_like, sum_bits_like, first, pixels, words):
    """The patterns of pyramids: byte k of words[g, j] is that of pixel first + 8 g + k of image j, for so many pixels.

    Pixels are counted through all levels. Images have `height` rows of `width` pixels from starts[j] on, `across` apart
    from row to row. The arrays after `levels` are empty and tell types: of sums, of bits beside gray values and sums.
    """
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
def write(words, pixels, base, scale, cursor, out_indices, out_values):
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
def dot(words, w, numbers):
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
def add(words, numbers, w):
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


@inner
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
