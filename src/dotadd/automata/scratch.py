"""What kernels on automata share: arrays that grow, arcs in order, and places in hash tables.

Kernels write into arrays that they are given and return when these are full, and their callers lengthen the arrays and
call again: arrays that a kernel makes while it runs are reference-counted at each use, which takes several times as
long.

Arrays that belong together come in plain tuples: Numba finds the compiled code for one of six arrays in 0.4
microseconds, for six arguments in 0.3, and for a named tuple in 2. Composing a short string with a transducer takes 24.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel

WIDTH = 1e-6  # of the buckets of fingerprints
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio


def longer(array: np.ndarray, length: int) -> np.ndarray:
    """An array of this length that begins with the same values; the rest is not set."""
    if len(array) >= length:
        return array
    new = np.empty(length, array.dtype)
    new[: len(array)] = array
    return new


def more_room(arrays: tuple[np.ndarray, ...], extra: int) -> tuple[np.ndarray, ...]:
    """All of them longer by so much."""
    return tuple(longer(array, len(array) + extra) for array in arrays)


def power_of_two(length: int) -> int:
    """The least power of 2 that is not below this length."""
    return 1 << (int(length) - 1).bit_length()


@inner
def before(i, o, other_i, other_o):
    return i < other_i or (i == other_i and o < other_o)


@inner
def sort_state(lo, hi, ilabels, olabels, targets, weights):
    """Sort the arcs lo .. hi of one state by input and output label. Those that are in order cost one look."""
    k = lo + 1
    while k < hi and not before(ilabels[k], olabels[k], ilabels[k - 1], olabels[k - 1]):
        k += 1
    if k >= hi:
        return
    gap = 1
    while 3 * gap < hi - lo:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's sort
        for k in range(lo + gap, hi):
            i, o, t, w = ilabels[k], olabels[k], targets[k], weights[k]
            j = k
            while j - gap >= lo and before(i, o, ilabels[j - gap], olabels[j - gap]):
                ilabels[j], olabels[j] = ilabels[j - gap], olabels[j - gap]
                targets[j], weights[j] = targets[j - gap], weights[j - gap]
                j -= gap
            ilabels[j], olabels[j], targets[j], weights[j] = i, o, t, w
        gap //= 3


@kernel
def sort_arcs(offsets, ilabels, olabels, targets, weights):
    """Sort the arcs of each state where they lie."""
    for q in range(len(offsets) - 1):
        sort_state(offsets[q], offsets[q + 1], ilabels, olabels, targets, weights)


@inner
def mixed(state, value):
    """A hash that takes in one more number."""
    state = (state ^ np.uint64(value)) * GOLDEN
    return state ^ (state >> np.uint64(29))


@inner
def enter(table, key, number):
    """Put a number into a table of numbers, whose length is a power of 2, under a key that is well mixed."""
    mask = np.uint64(len(table)) - np.uint64(1)
    place = key & mask
    while table[place] >= 0:
        place = (place + np.uint64(1)) & mask
    table[place] = number


@kernel
def rebuilt(table, keys, count):
    """Enter the numbers 0 .. count under their keys into an empty table."""
    for number in range(count):
        enter(table, keys[number], number)


@inner
def bucket_of(fingerprint):
    """The bucket of a number from -1 to 1, and the neighbour where numbers nearly the same may be."""
    place = fingerprint / WIDTH
    bucket = np.int64(np.floor(place))
    return bucket, bucket + (np.int64(1) if place - np.floor(place) >= 0.5 else np.int64(-1))


@inner
def near(a, b, tolerance):
    return abs(a - b) <= tolerance * max(abs(a), abs(b))
