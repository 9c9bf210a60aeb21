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
    if not values[:orders].any():
        _dot_of_longest(letters, starts, ends, codes, size, orders, values[orders], w[offsets[orders] :], out)
        return
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


@inner
def _dot_of_longest(letters, starts, ends, codes, size, order, value, w, out):
    """The same where one order has features: a look-up a letter, and no remainders."""
    first = np.uint64(size) ** np.uint64(order - 1)  # what the first letter of a k-mer counts
    for j in range(len(starts)):
        total = 0.0
        code, room = np.uint64(0), 0
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            letter = codes[letters[i]]
            if letter == np.uint16(FOREIGN):
                code, room = np.uint64(0), 0
                continue
            if room == order:
                code -= np.uint64(codes[letters[i - np.uint64(order)]]) * first
            else:
                room += 1
            code = code * np.uint64(size) + np.uint64(letter)
            if room == order:
                total += np.float64(w[code])
        out[j] += value * total


@kernel
def squared_lengths(letters, starts, ends, codes, size, values, offsets, dim, out):
    """out[j] = |phi(letters[starts[j]:ends[j]])|^2: each occurrence of a k-mer seen c times before adds 2 c + 1.

    Each slot holds in its upper half which string has counted there last, so that none has to clear up behind itself.
    Strings have to be shorter than 2**16 letters.
    """
    orders = len(values) - 1
    power, mask = _powers(size, orders)
    seen = np.zeros(dim, np.uint32)
    longest = np.int64(0)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    code, room = np.empty(longest, np.uint64), np.empty(longest, np.int32)
    low = np.uint32(0xFFFF)
    stamp = np.uint32(0)
    for j in range(len(starts)):
        stamp += np.uint32(1)
        if stamp > low:
            seen[:] = np.uint32(0)
            stamp = np.uint32(1)
        high = np.uint32(stamp << np.uint32(16))
        n = np.uint64(ends[j] - starts[j])
        _read(letters, np.uint64(starts[j]), codes, size, orders, power, mask, code[:n], room[:n])
        total = 0.0
        for k in range(1, orders + 1):
            if values[k] == 0.0:  # such an order may have no table of its own
                continue
            table = seen[offsets[k] :]
            squares = np.int64(0)
            for i in range(np.uint64(k - 1), n):
                if room[i] >= k:
                    slot = _tail(code[i], power, mask, k)
                    before = table[slot]
                    count = np.uint32(before & low) if before >= high else np.uint32(0)
                    table[slot] = np.uint32(high | np.uint32(count + np.uint32(1)))
                    squares += np.int64(2) * np.int64(count) + np.int64(1)
            total += values[k] * values[k] * np.float64(squares)
        out[j] = total


@inner
def _read(letters, first, codes, size, orders, power, mask, code, room):
    """The number of the last letters at each position, and how many of them count."""
    now, have = np.uint64(0), np.int32(0)
    for i in range(np.uint64(len(code))):
        letter = codes[letters[first + i]]
        have = np.int32(0) if letter == np.uint16(FOREIGN) else np.int32(min(have + 1, orders))
        now = _tail(now, power, mask, orders - 1) * np.uint64(size) + np.uint64(letter)
        code[i], room[i] = now, have


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
