"""Kernel values of mismatch features: sums of h(m) over all pairs of l-mers of two strings, m being their mismatches.

Pairs as far apart as each other are taken together, 48 at a time. The letters of a string are two sequences of bits,
so their mismatches at a distance are bits as well: those that differ in either. An l-mer's mismatches are a sum over
neighbouring bits, taken in all places at once: a number is four words, one for each of its bits, and sums of 1, 2, 4
and 8 neighbours come from each other by a shift and an addition. Few pairs have so few mismatches that they count, and
only these are looked at one by one.

On both strands, the l-mers of the reverse complement are counted, too: k(z, z') is the sum of h(i, j) + h(i, j') over
all i of z and j of z', where j' is the reverse complement of j. For |phi(z)|^2 both sums are the same with i and j
exchanged, so half of the pairs will do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.features.alphabet import FOREIGN
from dotadd.features.kmer_layout import packed
from dotadd.features.mismatch_table import place_weight

TAKEN = 48  # places at a time: an l-mer that begins at the last of them ends within 64 bits


def pair_plan(order: int, pair: Sequence[float], *, both: bool, places: np.ndarray) -> np.ndarray:
    """What the kernels below are told: h(m) = pair[m], whether both strands count, and what places do."""
    reach = max((m for m, h in enumerate(pair) if h), default=0)
    h = np.zeros(16)
    h[: len(pair)] = pair
    return packed((order, both, reach), h, places)


@kernel
def squared_lengths(letters, starts, ends, codes, plan, out):
    """out[j] = |phi(letters[starts[j]:ends[j]])|^2."""
    order, both, pair, places = plan[0], plan[1] != 0, plan[3:19].view(np.float64), plan[19:].view(np.float64)
    here, back, sums = _room(starts, ends, order), _room(starts, ends, order), np.empty(16)
    reach = np.uint64(plan[2])
    for j in range(len(starts)):
        sums[:] = 0.0
        n = ends[j] - starts[j] - order + 1  # places at which an l-mer begins
        if n > 0:
            as_words(letters, starts[j], ends[j], codes, order, False, here)
            for apart in range(n):
                _pairs(here, here, 0, n - apart, apart, order, reach, places, n, n, False, True, sums)
        if both and n > 0:
            as_words(letters, starts[j], ends[j], codes, order, True, back)
            for apart in range(1 - n, n):
                first, stop = max(0, -apart), (n - apart + 1) // 2  # those behind have twins before them
                _pairs(here, back, first, stop, apart, order, reach, places, n, n, True, True, sums)
        out[j] = _total(pair, sums)


@kernel
def products(letters, starts, ends, others, begins, stops, codes, plan, out):
    """out[i, j] = <phi(letters[starts[i]:ends[i]]), phi(others[begins[j]:stops[j]])>."""
    order, both, pair, places = plan[0], plan[1] != 0, plan[3:19].view(np.float64), plan[19:].view(np.float64)
    here, there, sums = _room(starts, ends, order), _room(begins, stops, order), np.empty(16)
    reach = np.uint64(plan[2])
    for j in range(len(begins)):
        m = stops[j] - begins[j] - order + 1
        for turned in range(2 if both else 1):
            as_words(others, begins[j], stops[j], codes, order, turned != 0, there)
            for i in range(len(starts)):
                n = ends[i] - starts[i] - order + 1
                sums[:] = 0.0
                if m > 0 and n > 0:
                    as_words(letters, starts[i], ends[i], codes, order, False, here)
                    for apart in range(1 - n, m):
                        first, stop = max(0, -apart), min(n, m - apart)
                        _pairs(here, there, first, stop, apart, order, reach, places, n, m, turned != 0, False, sums)
                out[i, j] = _total(pair, sums) + (out[i, j] if turned else 0.0)


@inner
def _room(starts, ends, order):
    """For the words of the longest string."""
    longest = np.int64(order)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    return np.empty((3, longest + 1), np.uint64)


@inner
def _total(pair, sums):
    total = 0.0
    for m in range(len(pair)):
        total += pair[m] * sums[m]
    return total


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
def _pairs(words, others, first, stop, apart, order, reach, places, n, m, turned, twice, sums):
    """sums[k] += the weight of their places, for each pair of places i, i + apart with k mismatches, i being in
    first..stop. One string has l-mers at n places and the other at m, or its reverse complement if `turned`. If
    `twice`, a pair of different places stands for two."""
    for at in range(np.uint64(first), np.uint64(stop), np.uint64(TAKEN)):
        to = np.uint64(np.int64(at) + apart)
        differ = (words[0, at] ^ others[0, to]) | (words[1, at] ^ others[1, to])
        number = _mismatches(differ, order)
        left = min(np.uint64(stop) - at, np.uint64(TAKEN))
        here = words[2, at] & others[2, to] & ((np.uint64(1) << left) - np.uint64(1)) & _at_most(number, reach)
        if here:
            _count(here, number, np.int64(at), apart, places, n, m, turned, twice, sums)


@inner
def _count(here, number, at, apart, places, n, m, turned, twice, sums):
    """The pairs that are marked, one by one."""
    one = np.uint64(1)
    while here:
        while not here & np.uint64(0xFF):
            here >>= np.uint64(8)
            number = _shifted(number, 8)
            at += 8
        if here & one:
            k = number[0] & one | (number[1] & one) << one | (number[2] & one) << np.uint64(2)
            k |= (number[3] & one) << np.uint64(3)
            partner = m - 1 - (at + apart) if turned else at + apart
            times = 2.0 if twice and partner != at else 1.0
            sums[k] += times * place_weight(places, n, at) * place_weight(places, m, partner)
        here >>= one
        number = _shifted(number, 1)
        at += 1
