"""Lengths of mismatch features: |phi(z)|^2 is a sum of h(m) over all pairs of l-mers of one string, m their mismatches.

Pairs as far apart as each other are taken together, 48 at a time. The letters of a string are two sequences of bits,
so their mismatches at a distance are bits as well: those that differ in either. An l-mer's mismatches are a sum over
neighbouring bits, taken in all places at once: a number is four words, one for each of its bits, and sums of 1, 2, 4
and 8 neighbours come from each other by a shift and an addition. Few pairs have so few mismatches that they count, and
only these are looked at one by one.

On both strands, the l-mers of the reverse complement are counted, too: |phi(z)|^2 is the sum of h(i, j) + h(i, j')
over all i and j, where j' is the reverse complement of j. Both sums are the same with i and j exchanged, so half of the
pairs will do.
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
    here, back = np.empty((3, longest + 1), np.uint64), np.empty((3, longest + 1), np.uint64)
    reach = np.uint64(0)
    for m in range(len(pair)):
        reach = np.uint64(m) if pair[m] != 0.0 else reach
    sums = np.empty(16)
    for j in range(len(starts)):
        sums[:] = 0.0
        n = ends[j] - starts[j] - order + 1  # places at which an l-mer begins
        if n > 0:
            as_words(letters, starts[j], ends[j], codes, order, False, here)
            for apart in range(n):
                _pairs(here, here, 0, n - apart, apart, order, reach, places, n, False, sums)
        if both and n > 0:
            as_words(letters, starts[j], ends[j], codes, order, True, back)
            for apart in range(1 - n, n):
                first, stop = max(0, -apart), (n - apart + 1) // 2  # those behind have twins before them
                _pairs(here, back, first, stop, apart, order, reach, places, n, True, sums)
        total = 0.0
        for m in range(len(pair)):
            total += pair[m] * sums[m]
        out[j] = total


@inner
def as_words(letters, first, stop, codes, order, turned, words):
    """Of each place of a string, or of its reverse complement, three words: both bits of the next 64 letters, and at
    which of these an l-mer begins."""
    low, high, begins = words[0], words[1], words[2]
    length, run, one = stop - first, 0, np.uint64(1)
    low[length] = high[length] = begins[length] = np.uint64(0)
    for i in range(length - 1, -1, -1):
        code = codes[letters[stop - 1 - i if turned else first + i]]
        run = 0 if code == FOREIGN else run + 1
        value = np.uint64(code) ^ np.uint64(3 if turned else 0)
        low[i] = low[i + 1] << one | (value & one)
        high[i] = high[i + 1] << one | (value >> one & one)
        begins[i] = begins[i + 1] << one | np.uint64(run >= order)


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
    above, equal, one = np.uint64(0), ~np.uint64(0), np.uint64(1)
    for bit in range(4):
        digit = number[3 - bit]
        if limit >> np.uint64(3 - bit) & one:
            equal &= digit
        else:
            above |= equal & digit
            equal &= ~digit
    return ~above


@inner
def _pairs(words, others, first, stop, apart, order, reach, places, n, turned, sums):
    """sums[m] += the weight of their places, for each pair of places i, i + apart with m mismatches, i being in
    first..stop; the second place is one of the reverse complement if `turned`. Two places are two pairs."""
    for at in range(np.uint64(first), np.uint64(stop), np.uint64(TAKEN)):
        to = np.uint64(np.int64(at) + apart)
        differ = (words[0, at] ^ others[0, to]) | (words[1, at] ^ others[1, to])
        number = _mismatches(differ, order)
        left = min(np.uint64(stop) - at, np.uint64(TAKEN))
        here = words[2, at] & others[2, to] & ((np.uint64(1) << left) - np.uint64(1)) & _at_most(number, reach)
        if here:
            _count(here, number, np.int64(at), apart, places, n, turned, sums)


@inner
def _count(here, number, at, apart, places, n, turned, sums):
    """The pairs that are marked, one by one."""
    one = np.uint64(1)
    while here:
        while not here & np.uint64(0xFF):
            here >>= np.uint64(8)
            number = _shifted(number, 8)
            at += 8
        if here & one:
            m = number[0] & one | (number[1] & one) << one | (number[2] & one) << np.uint64(2)
            m |= (number[3] & one) << np.uint64(3)
            partner = n - 1 - (at + apart) if turned else at + apart
            times = 1.0 if partner == at else 2.0
            sums[m] += times * place_weight(places, n, at) * place_weight(places, n, partner)
        here >>= one
        number = _shifted(number, 1)
        at += 1
