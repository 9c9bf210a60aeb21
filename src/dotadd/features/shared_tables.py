"""DOT and lengths of many strings with spectrum features, whose tables of counted k-mers serve all positions.

As in position_tables.py, the tables of the short orders are summed up into one before the strings pass: the k-mers that
end at a position are the ends of one longest k-mer there, fold[u] = sum over k of value_k * w_k[last k letters of u].
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.features.alphabet import FOREIGN

FOLD = 1 << 14  # slots of the summed-up table, of 8 bytes


@kernel
def dot(letters, starts, ends, codes, size, values, offsets, w, out):
    """out[j] += <w, phi(letters[starts[j]:ends[j]])>."""
    orders = len(values) - 1
    folded, fold_size = 0, 1
    while folded < orders and fold_size * size <= min(FOLD, len(starts)):
        folded, fold_size = folded + 1, fold_size * size
    fold = _fold(w, values, offsets, size, folded, fold_size)
    power, mask = _powers(size, orders)
    for j in range(len(starts)):
        total = 0.0
        code, room = np.uint64(0), 0
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            letter = codes[letters[i]]
            room = 0 if letter == np.uint16(FOREIGN) else min(room + 1, orders)
            code = _tail(code, power, mask, orders - 1) * np.uint64(size) + np.uint64(letter)
            done = 0
            if room >= folded:
                total += fold[_tail(code, power, mask, folded)]
                done = folded
            for k in range(done + 1, room + 1):
                total += values[k] * np.float64(w[offsets[k] + _tail(code, power, mask, k)])
        out[j] += total


@kernel
def squared_lengths(letters, starts, ends, codes, size, values, offsets, dim, out):
    """out[j] = |phi(letters[starts[j]:ends[j]])|^2: each occurrence of a k-mer seen c times before adds 2 c + 1."""
    orders = len(values) - 1
    power, mask = _powers(size, orders)
    seen = np.zeros(dim, np.uint32)
    square = values * values
    for j in range(len(starts)):
        total = 0.0
        for clear in range(2):
            code, room = np.uint64(0), 0
            for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
                letter = codes[letters[i]]
                room = 0 if letter == np.uint16(FOREIGN) else min(room + 1, orders)
                code = _tail(code, power, mask, orders - 1) * np.uint64(size) + np.uint64(letter)
                for k in range(1, room + 1):
                    slot = offsets[k] + _tail(code, power, mask, k)
                    if clear:
                        seen[slot] = np.uint32(0)
                    elif values[k] != 0.0:
                        total += square[k] * np.float64(np.uint32(2) * seen[slot] + np.uint32(1))
                        seen[slot] += np.uint32(1)
        out[j] = total


@inner
def _powers(size, orders):
    """size**k for each order, and whether these are powers of two, so that a remainder is a mask."""
    power = np.ones(orders + 1, np.uint64)
    for k in range(1, orders + 1):
        power[k] = power[k - 1] * np.uint64(size)
    return power, (size & (size - 1)) == 0


@inner
def _tail(code, power, mask, k):
    """The number of the last k letters."""
    return code & (power[k] - np.uint64(1)) if mask else code % power[k]


@inner
def _fold(w, values, offsets, size, folded, fold_size):
    fold = np.zeros(fold_size, np.float64)
    n = 1
    for k in range(1, folded + 1):
        # from the last on, so that the shorter k-mers' sums are read before they are overwritten
        for u in range(n * size - 1, -1, -1):
            fold[u] = fold[u % n] + values[k] * np.float64(w[offsets[k] + np.uint64(u)])
        n *= size
    return fold
