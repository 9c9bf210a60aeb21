"""How k-mers become slots of hashed tables; for all kernels that read or write them.

The hash of a k-mer goes on from that of its first k - 1 letters, h' = (h * P) ^ (letter + 1) in 32 bits; the slot is
the top bits of a finished h. Functions work on many k-mers at once, so that they vectorise.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner

SEED = 0x811C9DC5  # the hash of no letters


@inner
def step(number, text, last, m):
    """From the hashes of m k-mers to those with one more letter, that of the first being text[last]."""
    for i in range(m):
        h = np.uint32(np.uint32(number[i]) * np.uint32(0x9E3779B1))
        number[i] = np.uint32(h ^ np.uint32(np.uint32(text[last + i]) + np.uint32(1)))


@inner
def orders_on_a_line(group, left):
    """How many orders share the next lines, of so many that are left: a power of two, so that lines end with those of
    the cache."""
    while group > left:
        group //= 2
    return group


@inner
def finish(number, bits, group, group_bits, m, slot):
    """The slots of m k-mers that are the shortest of a group of orders, within the tables of the group.

    The bits of a hash are stirred (the finalizer of murmur3), and of the top ones the last few are the slot among those
    of its order, the others the line.
    """
    shift = np.uint32(32 - bits)
    low = np.uint32((np.uint64(1) << np.uint64(group_bits)) - np.uint64(1))
    for i in range(m):
        h = np.uint32(number[i])
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x85EBCA6B))
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        h = np.uint32(h >> shift)
        slot[i] = np.uint32(np.uint32(h & ~low) * np.uint32(group)) | np.uint32(h & low)


@inner
def within(slot, number, letter, later, group_bits):
    """The slot of a k-mer that is `later` letters longer than the shortest of its group, which has this slot.

    One letter later all continuations have slots of their own, if there are enough; then a hash of the k-mer chooses.
    """
    low = np.uint32((np.uint64(1) << np.uint64(group_bits)) - np.uint64(1))
    if later == np.uint64(0):
        return np.uint32(slot)
    if later == np.uint64(1):
        change = np.uint32(letter) & low
    else:
        change = np.uint32(np.uint32(number) * np.uint32(0x85EBCA6B)) >> (np.uint32(32) - np.uint32(group_bits))
    return np.uint32(np.uint32(slot ^ change) + np.uint32(np.uint32(later) << np.uint32(group_bits)))


@inner
def position_stir(position, bits):
    """What the numbers of a counted table beside hashed ones are stirred by; 0 where no table is hashed.

    Tables lie a power of two apart, and the few slots of the short orders would otherwise all fall into the same few
    sets of the cache.
    """
    shift = np.uint64(32) - np.uint64(bits)  # no bits: everything is shifted out
    return np.uint64(np.uint32(np.uint32(position) * np.uint32(0x9E3779B1))) >> shift
