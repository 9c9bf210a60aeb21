"""Lengths of phi for short strings of four letters, where all positions have one table of counted k-mers an order.

|phi(z)|^2 = sum over orders k of beta_k times the number of pairs (i, j) at which z has the same k-mer

A string is two words of bits for each of the two bits of its letters. Where z and z moved by some places agree, a bit
is set; a bit that stays when these are and-ed with themselves moved by one belongs to a pair of equal 2-mers, and so
on. In DNA the bits are gone after a few orders, which is why this is faster than counting in tables.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.features.alphabet import FOREIGN

LONGEST = 128  # letters
LETTERS = 4


@kernel
def pair_lengths(letters, starts, ends, codes, values, out):
    """out[j] = |phi(letters[starts[j]:ends[j]])|^2; strings have at most LONGEST letters, of an alphabet of four."""
    orders, one = len(values) - 1, np.uint64(1)
    word = np.empty((3, 2), np.uint64)  # both bits of letters, and whether there is one
    low, high = np.empty(LONGEST, np.uint64), np.empty(LONGEST, np.uint64)
    for j in range(len(starts)):
        n, first = np.uint64(ends[j] - starts[j]), np.uint64(starts[j])
        for half in range(np.uint64(2)):
            a = b = there = np.uint64(0)
            begin = half << np.uint64(6)
            for i in range(max(n, begin) - begin if n < begin + np.uint64(64) else np.uint64(64)):
                code = np.uint64(codes[letters[first + begin + i]])
                known = np.uint64(code != np.uint64(FOREIGN))
                a |= (code & known) << i
                b |= (code >> one & known) << i
                there |= known << i
            word[0, half], word[1, half], word[2, half] = a, b, there
        wide = n > np.uint64(64)
        _agreeing(word, n, low, high)
        total = 0.0
        for k in range(1, orders + 1):
            pairs = _count(low, n)
            if wide:
                pairs += _count(high, n)
            if pairs == 0:
                break
            total += values[k] * values[k] * np.float64(pairs)
            if wide:
                for s in range(n):
                    low[s] &= low[s] >> one | high[s] << np.uint64(63)
                    high[s] &= high[s] >> one
            else:
                for s in range(n):
                    low[s] &= low[s] >> one
        out[j] = total


@inner
def _agreeing(word, n, low, high):
    """For each number of places by which the string may be moved, the letters that are the same then."""
    a, b, there = word[0, 0], word[1, 0], word[2, 0]
    c, d, beyond = word[0, 1], word[1, 1], word[2, 1]
    low[0], high[0] = there, beyond
    for s in range(np.uint64(1), min(n, np.uint64(64))):
        back = np.uint64(64) - s
        e, f, known = a >> s | c << back, b >> s | d << back, there >> s | beyond << back
        low[s] = ~((a ^ e) | (b ^ f)) & there & known
        high[s] = ~((c ^ c >> s) | (d ^ d >> s)) & beyond & beyond >> s
    for s in range(np.uint64(64), n):
        over = s - np.uint64(64)
        low[s], high[s] = ~((a ^ c >> over) | (b ^ d >> over)) & there & beyond >> over, np.uint64(0)


@inner
def _count(words, n):
    """Bits of the first word, and twice those of the others: a pair is one in either order. Sums of 16 bits stand side
    by side until the end, so that the loop vectorises."""
    sums = np.uint64(0)
    for s in range(n):
        sums += _ones(words[s])
    sums += sums - _ones(words[0])
    sums = (sums & np.uint64(0x0000FFFF0000FFFF)) + (sums >> np.uint64(16) & np.uint64(0x0000FFFF0000FFFF))
    return np.int64((sums & np.uint64(0xFFFFFFFF)) + (sums >> np.uint64(32)))


@inner
def _ones(bits):
    """How many bits are set in each 16 of them."""
    bits -= bits >> np.uint64(1) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + (bits >> np.uint64(2) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (bits + (bits >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
