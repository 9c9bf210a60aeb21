"""Kernel values of mismatch features: sums of h(m) over all pairs of l-mers of two strings, m being their mismatches.

Pairs as far apart as each other are taken together, 48 at a time. The letters of a string are two sequences of bits,
so their mismatches at a distance are bits as well: those that differ in either. An l-mer's mismatches are a sum over
neighbouring bits, taken in all places at once: a number is four words, one for each of its bits, and sums of 1, 2, 4
and 8 neighbours come from each other by a shift and an addition. 48 places of one string meet all of the other in one
loop, which vectorises. Where all places weigh alike, pairs with m mismatches are bits to be counted, for each m that
matters. Where they do not, few pairs have so few mismatches that they count, and only these are looked at one by one.

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
    here, back, found, sums = _rooms(starts, ends), _rooms(starts, ends), _found(starts, ends), np.empty(16)
    for j in range(len(starts)):
        sums[:] = 0.0
        for turned in range(2 if plan[1] else 1):
            as_words(letters, starts[j], ends[j], codes, plan[0], turned != 0, back)
            if turned == 0:
                here[:, :] = back
            places = ends[j] - starts[j] - plan[0] + 1
            _count_pairs(here, back, places, places, plan, turned != 0, True, found, sums)
        out[j] = _total(plan, sums)


@kernel
def products(letters, starts, ends, others, begins, stops, codes, plan, out):
    """out[i, j] = <phi(letters[starts[i]:ends[i]]), phi(others[begins[j]:stops[j]])>."""
    here, there, found, sums = _rooms(starts, ends), _rooms(begins, stops), _found(begins, stops), np.empty(16)
    for j in range(len(begins)):
        for turned in range(2 if plan[1] else 1):
            as_words(others, begins[j], stops[j], codes, plan[0], turned != 0, there)
            for i in range(len(starts)):
                sums[:] = 0.0
                as_words(letters, starts[i], ends[i], codes, plan[0], False, here)
                n, m = ends[i] - starts[i] - plan[0] + 1, stops[j] - begins[j] - plan[0] + 1
                _count_pairs(here, there, n, m, plan, turned != 0, False, found, sums)
                out[i, j] = _total(plan, sums) + (out[i, j] if turned else 0.0)


@inner
def _rooms(starts, ends):
    """For the words of the longest string."""
    longest = np.int64(0)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    return np.zeros((3, longest + 1 + TAKEN), np.uint64)


@inner
def _found(starts, ends):
    return np.empty((6, _rooms(starts, ends).shape[1]), np.uint64)


@inner
def _total(plan, sums):
    pair, total = plan[3:19].view(np.float64), 0.0
    for m in range(len(pair)):
        total += pair[m] * sums[m]
    return total


@inner
def as_words(letters, first, stop, codes, order, turned, words):
    """Of each place of a string, or of its reverse complement, three words: both bits of the next 64 letters, and at
    which of these an l-mer begins. The first TAKEN - 1 stand for places before the string."""
    low, high, begins = words[0], words[1], words[2]
    length, run, one = stop - first, 0, np.uint64(1)
    end = length + TAKEN - 1
    low[end] = high[end] = begins[end] = np.uint64(0)
    for i in range(length - 1, -TAKEN, -1):
        at, value = i + TAKEN - 1, np.uint64(0)
        if i >= 0:
            code = codes[letters[stop - 1 - i if turned else first + i]]
            run = 0 if code == FOREIGN else run + 1
            value = np.uint64(code) ^ np.uint64(3 if turned else 0)
        low[at] = low[at + 1] << one | (value & one)
        high[at] = high[at + 1] << one | (value >> one & one)
        begins[at] = begins[at + 1] << one | np.uint64(i >= 0 and run >= order)


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
def _shifted(a, s):
    return a[0] >> s, a[1] >> s, a[2] >> s, a[3] >> s


@inner
def _where(a, mask):
    return a[0] & mask, a[1] & mask, a[2] & mask, a[3] & mask


@inner
def _all_if(condition):
    """All bits, or none. What depends on the order alone is a mask, as branches would not vectorise."""
    return ~np.uint64(0) if condition else np.uint64(0)


@inner
def _mark(words, at, others, first, stop, order, reach, found):
    """For the places from `at` on, and all of the other string from its word `first` on: which pairs count, in
    found[0], and their mismatches as four words."""
    has8, has4, has2, has1 = _all_if(order & 8), _all_if(order & 4), _all_if(order & 2), _all_if(order & 1)
    past8, past4, past2 = np.uint64(order & 8), np.uint64(order & 12), np.uint64(order & 14)
    top3, top2, top1, top0 = _all_if(reach & 8), _all_if(reach & 4), _all_if(reach & 2), _all_if(reach & 1)
    low, high, begins = words[0, at], words[1, at], words[2, at] & ((np.uint64(1) << np.uint64(TAKEN)) - np.uint64(1))
    their_low, their_high, their_begins = others[0], others[1], others[2]
    hits, bit0, bit1, bit2, bit3 = found[0], found[1], found[2], found[3], found[4]
    none = np.uint64(0)
    for k in range(np.uint64(first), np.uint64(stop)):
        one = ((low ^ their_low[k]) | (high ^ their_high[k]), none, none, none)
        two = _plus(one, _shifted(one, np.uint64(1)))
        four = _plus(two, _shifted(two, np.uint64(2)))
        total = _where(_plus(four, _shifted(four, np.uint64(4))), has8)
        total = _plus(total, _where(_shifted(four, past8), has4))
        total = _plus(total, _where(_shifted(two, past4), has2))
        total = _plus(total, _where(_shifted(one, past2), has1))
        above = total[3] & ~top3
        equal = ~(total[3] ^ top3)
        above |= equal & total[2] & ~top2
        equal &= ~(total[2] ^ top2)
        above |= equal & total[1] & ~top1
        equal &= ~(total[1] ^ top1)
        above |= equal & total[0] & ~top0
        hits[k] = begins & their_begins[k] & ~above
        bit0[k], bit1[k], bit2[k], bit3[k] = total[0], total[1], total[2], total[3]


@inner
def _count_pairs(words, others, n, m, plan, turned, twice, found, sums):
    """sums[k] += the weight of their places, for each pair of places with k mismatches. One string has l-mers at n
    places and the other at m, or its reverse complement if `turned`. If `twice`, both are one string, and a pair of
    different places stands for two: only one of these is counted."""
    places = plan[19:].view(np.float64)
    before = TAKEN - 1  # words before the first place
    for at in range(0, n, TAKEN):
        first = at + before if twice and not turned else 0
        stop = m + before - (at if twice and turned else 0)
        _mark(words, at + before, others, first, stop, plan[0], plan[2], found)
        if len(places) == 1:
            if twice:
                _mark_again(found, first, stop, n - 1 - at + before, turned)
            for k in range(plan[2] + 1):
                sums[k] += places[0] * places[0] * _how_many(found, first, stop, k, twice)
            continue
        for k in range(np.uint64(max(first, 0)), np.uint64(max(stop, 0))):
            if found[0, k]:
                number = found[1, k], found[2, k], found[3, k], found[4, k]
                apart = np.int64(k) - before - at
                _count(found[0, k], number, at, apart, places, n, m, turned, twice, sums)


@inner
def _mark_again(found, first, stop, last, turned):
    """In found[5] those pairs that stand for two, and in found[0] no pair any more that another one stands for. Place
    and partner of the lowest bit of word k are last - k apart, if one string is turned, and those of the next bit two
    less."""
    hits, again, one = found[0], found[5], np.uint64(1)
    for k in range(np.uint64(first), np.uint64(stop)):
        again[k] = hits[k]
        if turned:
            apart = np.int64(last) - np.int64(k)
            again[k] &= (one << np.uint64(min(max((apart + 1) >> 1, np.int64(0)), np.int64(TAKEN)))) - one
            hits[k] &= (one << np.uint64(min(max((apart >> 1) + 1, np.int64(0)), np.int64(TAKEN)))) - one
    if not turned:
        again[first] = np.uint64(0)  # each place with itself


@inner
def _how_many(found, first, stop, number, twice):
    """Pairs that are marked, in found[0] and maybe in found[5], and have so many mismatches."""
    bit0, bit1, bit2, bit3 = _all_if(number & 1), _all_if(number & 2), _all_if(number & 4), _all_if(number & 8)
    hits, again, has0, has1, has2, has3 = found[0], found[5], found[1], found[2], found[3], found[4]
    also, count = _all_if(twice), np.uint64(0)
    for k in range(np.uint64(first), np.uint64(stop)):
        others = (has0[k] ^ bit0) | (has1[k] ^ bit1) | (has2[k] ^ bit2) | (has3[k] ^ bit3)
        count += _bits_set(hits[k] & ~others) + _bits_set(again[k] & ~others & also)
    return count


@inner
def _bits_set(x):
    """As the compiler knows it, which takes an instruction for it."""
    x -= x >> np.uint64(1) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
    x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return x * np.uint64(0x0101010101010101) >> np.uint64(56)


@inner
def _count(here, number, at, apart, places, n, m, turned, twice, sums):
    """The pairs that are marked, one by one."""
    one, eight = np.uint64(1), np.uint64(8)
    while here:
        while not here & np.uint64(0xFF):
            here >>= eight
            number = _shifted(number, eight)
            at += 8
        if here & one:
            k = number[0] & one | (number[1] & one) << one | (number[2] & one) << np.uint64(2)
            k |= (number[3] & one) << np.uint64(3)
            partner = m - 1 - (at + apart) if turned else at + apart
            if partner >= at or not twice:
                times = 2.0 if twice and partner != at else 1.0
                sums[k] += times * place_weight(places, n, at) * place_weight(places, m, partner)
        here >>= one
        number = _shifted(number, one)
        at += 1
