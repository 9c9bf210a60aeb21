"""Lengths of mismatch features: |phi(z)|^2 is a sum of h(m) over all pairs of l-mers of one string, m their mismatches.

Pairs as far apart as each other are taken together, 48 at a time. The letters of a string are two sequences of bits, so
their mismatches at a distance are bits as well: those that differ in either. An l-mer's mismatches are a sum over
neighbouring bits, taken in all places at once: a number is four words, one for each of its bits, and sums of 1, 2, 4 and
8 neighbours come from each other by a shift and an addition. Few pairs have so few mismatches that they count, and only
these are looked at one by one.

On both strands, the l-mers of the reverse complement are counted, too: |phi(z)|^2 = sum over i, j of h(i, j) + h(i, j'),
where j' is the reverse complement of j. Both sums are the same with i and j exchanged, so half of the pairs will do.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.features.alphabet import FOREIGN
from dotadd.features.mismatch_table import place_weight

TAKEN = 48  # places at a time: an l-mer that begins at the last of them ends within 64 bits


@kernel
def squared_lengths(letters, starts, ends, codes, order, both, places, pair, out):
    """out[j] = |phi(letters[starts[j]:ends[j]])|^2, of l-mers with h(m) = pair[m]."""
    longest = np.int64(order)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    bits = np.empty((3, longest // 64 + 3), np.uint64)  # both bits of each letter, and whether an l-mer begins there
    back = np.empty_like(bits)  # the same of the reverse complement
    code = np.empty(longest, np.uint16)
    reach = 0
    for m in range(len(pair)):
        reach = m if pair[m] != 0.0 else reach
    sums = np.empty(16)
    for j in range(len(starts)):
        length = ends[j] - starts[j]
        sums[:] = 0.0
        for i in range(length):
            code[i] = codes[letters[starts[j] + i]]
        _as_bits(code[:length], order, False, bits)
        n = length - order + 1  # places at which an l-mer begins
        for apart in range(n):
            times = 2.0 if apart else 1.0
            _pairs(bits, bits, 0, n - apart, apart, order, reach, places, n, False, times, sums)
        if both:
            _as_bits(code[:length], order, True, back)
            for apart in range(1 - n, n):
                first, middle = max(0, -apart), (n - apart) // 2  # those before the middle have twins after it
                _pairs(bits, back, first, middle, apart, order, reach, places, n, True, 2.0, sums)
                if (n - apart) % 2:
                    _pairs(bits, back, middle, middle + 1, apart, order, reach, places, n, True, 1.0, sums)
        total = 0.0
        for m in range(len(pair)):
            total += pair[m] * sums[m]
        out[j] = total


@inner
def _as_bits(code, order, turned, bits):
    """The letters of a string, or of its reverse complement, as bits; and at which of them an l-mer begins."""
    bits[:, :] = np.uint64(0)
    length, run = len(code), 0
    for i in range(length):
        letter = code[length - 1 - i] if turned else code[i]
        run = 0 if letter == FOREIGN else run + 1
        if letter == FOREIGN:
            continue
        value = np.uint64(3 - letter if turned else letter)
        bits[0, i >> 6] |= (value & np.uint64(1)) << np.uint64(i & 63)
        bits[1, i >> 6] |= (value >> np.uint64(1)) << np.uint64(i & 63)
        if run >= order:
            at = i + 1 - order
            bits[2, at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@inner
def _word(bits, row, at):
    """64 bits from this one on."""
    k, shift = at >> 6, np.uint64(at & 63)
    return bits[row, k] >> shift | (bits[row, k + 1] << np.uint64(1)) << (np.uint64(63) - shift)


@inner
def _plus(a, b):
    """The sum of two numbers in each place, each of four words."""
    zero = a[0] ^ b[0]
    carry = a[0] & b[0]
    one = a[1] ^ b[1] ^ carry
    carry = (a[1] & b[1]) | (carry & (a[1] ^ b[1]))
    two = a[2] ^ b[2] ^ carry
    carry = (a[2] & b[2]) | (carry & (a[2] ^ b[2]))
    return zero, one, two, a[3] ^ b[3] ^ carry


@inner
def _shifted(a, by):
    s = np.uint64(by)
    return a[0] >> s, a[1] >> s, a[2] >> s, a[3] >> s


@inner
def _mismatches(differ, order):
    """How many of the next letters differ, at each place."""
    none = np.uint64(0)
    one = (differ, none, none, none)
    two = _plus(one, _shifted(one, 1))
    four = _plus(two, _shifted(two, 2))
    total, done = (none, none, none, none), 0
    if order & 8:
        total, done = _plus(four, _shifted(four, 4)), 8
    if order & 4:
        total, done = _plus(total, _shifted(four, done)), done + 4
    if order & 2:
        total, done = _plus(total, _shifted(two, done)), done + 2
    if order & 1:
        total = _plus(total, _shifted(one, done))
    return total


@inner
def _at_most(number, limit):
    """The places at which a number is not above a limit."""
    above, equal = np.uint64(0), ~np.uint64(0)
    for bit in range(3, -1, -1):
        wanted = ~np.uint64(0) if limit >> bit & 1 else np.uint64(0)
        above |= equal & number[bit] & ~wanted
        equal &= ~(number[bit] ^ wanted)
    return ~above


@inner
def _pairs(bits, other, first, stop, apart, order, reach, places, n, turned, times, sums):
    """sums[m] += times the weight of the places, for each pair of places i, i + apart with m mismatches, i being in
    first..stop; the second place is one of the reverse complement if `turned`."""
    for at in range(first, stop, TAKEN):
        differ = _word(bits, 0, at) ^ _word(other, 0, at + apart)
        differ |= _word(bits, 1, at) ^ _word(other, 1, at + apart)
        number = _mismatches(differ, order)
        left = np.uint64(min(stop - at, TAKEN))
        here = _word(bits, 2, at) & _word(other, 2, at + apart) & ((np.uint64(1) << left) - np.uint64(1))
        here &= _at_most(number, reach)
        i = at
        while here:
            while not here & np.uint64(0xFF):
                here >>= np.uint64(8)
                number = _shifted(number, 8)
                i += 8
            if here & np.uint64(1):
                m = (number[0] & np.uint64(1)) | (number[1] & np.uint64(1)) << np.uint64(1)
                m |= (number[2] & np.uint64(1)) << np.uint64(2) | (number[3] & np.uint64(1)) << np.uint64(3)
                weight = place_weight(places, n, i)
                partner = n - 1 - (i + apart) if turned else i + apart
                sums[m] += times * weight * place_weight(places, n, partner)
            here >>= np.uint64(1)
            number = _shifted(number, 1)
            i += 1
