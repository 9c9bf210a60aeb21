"""Where the k-mers of strings lie in w, and the kernel that writes them: for spectrum, weighted degree and n-gram maps.

It walks over the orders k = 1, 2, ... and for each over all positions at once, so that the inner loops run over
neighbouring array elements and vectorise. For each position it keeps one number, that of the k-mer which begins there,
and makes from it that of the (k+1)-mer:

- while k-mers are few they are counted through, number' = number * |A| + letter, and the number is the slot;
- beyond that it is a hash, h' = (h * P) ^ (letter + 1) in 32 bits, and the slot is the top bits of a finished h.

Where each position and order has a table of its own (weighted degree), hashed orders share their memory in groups, four
of them for DNA. The hash of the shortest k-mer chooses a line of neighbouring slots, a few for each order, and among
the slots of its order a k-mer takes one by the letters that came later. A string's features of four orders then lie on
one cache line of 64 bytes, which spares three of four cache misses in DOT and ADD, and each order still has 2**bits
slots over which it spreads as evenly as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.features.alphabet import FOREIGN

LINE = 16  # slots of float32 on a cache line


def packed(numbers: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
    """Whole numbers, and then arrays of 64 bits an entry, in one array of int64: a kernel takes it as one argument, and
    looks at what was unsigned or a float through a view."""
    return np.concatenate([np.array(numbers, np.int64), *(array.reshape(-1).view(np.int64) for array in arrays)])


@dataclass(frozen=True, eq=False)
class KmerLayout:
    """Where the k-mers of each order lie. Arrays have a place for each order, and an unused one at 0."""

    size: int
    """Letters of the alphabet."""
    values: np.ndarray
    """Value of the k-mers of each order, the root of its weight; orders of value 0 are not written."""
    explicit: int
    """So many orders are counted through, the others hashed."""
    offsets: np.ndarray
    """Where each order's table begins, within those of its position."""
    stride: int
    """From the tables of one position to those of the next; 0 where positions share them."""
    bits: int
    """Size of a hashed table as a power of two; 0 if there is none."""
    group: int
    """So many hashed orders share lines of slots; 1 where positions share tables."""
    group_bits: int
    """Each order has 2**group_bits slots of a line."""

    @cached_property
    def plan(self) -> np.ndarray:
        """All of it for kernels, which call `unpacked`."""
        numbers = (self.size, self.explicit, self.stride, self.bits, self.group, self.group_bits)
        return packed(numbers, self.offsets, self.values)


@inner
def unpacked(plan):
    """The fields of a KmerLayout in their order, but for `values` and `offsets`, which come last."""
    half = 6 + (len(plan) - 6) // 2
    offsets, values = plan[6:half].view(np.uint64), plan[half:].view(np.float64)
    return plan[0], plan[1], plan[2], plan[3], plan[4], plan[5], offsets, values


@lru_cache
def explicit_layout(betas: tuple[float, ...], size: int, per_position: bool) -> KmerLayout:
    """A table with a slot for every k-mer for each order, and for each position if wanted."""
    ends = list(accumulate((size**k for k in range(1, len(betas) + 1)), initial=0))
    return _layout(size, betas, len(betas), [0, *ends[:-1]], ends[-1] if per_position else 0)


@lru_cache
def single_layout(order: int, size: int) -> KmerLayout:
    """One order alone, with a slot for every k-mer."""
    return _layout(size, (0.0,) * (order - 1) + (1.0,), order, [0] * (order + 1))


@lru_cache
def shared_hash_layout(betas: tuple[float, ...], size: int, bits: int) -> KmerLayout:
    """All orders hashed into one table."""
    return _layout(size, betas, 0, [0] * (len(betas) + 1), bits=bits)


@lru_cache
def hash_tables_layout(betas: tuple[float, ...], size: int, bits: int) -> KmerLayout:
    """A table of 2**bits for each position and order; orders that fit are counted through."""
    degree = len(betas)
    explicit = sum(size**k <= 2**bits for k in range(1, degree + 1))
    offsets = [0, *(k << bits for k in range(degree))]
    group_bits = min(bits, max(2, (size - 1).bit_length()))  # a slot for each next letter
    group = max(2, LINE >> group_bits)
    return _layout(size, betas, explicit, offsets, degree << bits, bits, group, group_bits)


def _layout(
    size: int,
    betas: tuple[float, ...],
    explicit: int,
    offsets: list[int],
    stride: int = 0,
    bits: int = 0,
    group: int = 1,
    group_bits: int = 0,
) -> KmerLayout:
    values, starts = np.sqrt([0.0, *betas]), np.array(offsets, np.uint64)
    return KmerLayout(size, values, explicit, starts, stride, bits, group, group_bits)


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


@kernel
def write_kmers(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    """Append the k-mers of letters[starts[j]:ends[j]] to row j; those with a foreign letter are left out."""
    # Offsets are read where they lie: a view of them would be counted at each call of a function, 7 % of the time.
    size, explicit, stride, bits, group, group_bits = plan[0], plan[1], plan[2], plan[3], plan[4], plan[5]
    values = plan[6 + (len(plan) - 6) // 2 :].view(np.float64) * scale
    longest = np.int64(0)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    text = np.empty(longest, np.uint32)
    number = np.empty(longest, out_indices.dtype)
    slot = np.empty(longest, np.uint32)
    for j in range(len(starts)):
        lo, n = np.uint64(starts[j]), np.uint64(ends[j] - starts[j])
        for i in range(n):
            text[i] = codes[letters[lo + i]]
        p = np.uint64(cursor[j])
        stop = np.uint64(0)
        while stop < n:  # from one foreign letter to the next
            first = stop
            while first < n and text[first] == np.uint32(FOREIGN):
                first += np.uint64(1)
            stop = first
            while stop < n and text[stop] != np.uint32(FOREIGN):
                stop += np.uint64(1)
            p = _fill_counted(
                text, first, stop, size, values, explicit, plan, stride, bits, base, number,
                p, out_indices, out_values,
            )  # fmt: skip
            if explicit < len(values) - 1:
                p = _fill_hashed(
                    text, first, stop, values, explicit, plan, stride, bits, group, group_bits, base, number, slot,
                    p, out_indices, out_values,
                )  # fmt: skip
        cursor[j] = p


@inner
def _fill_counted(
    text, first, stop, size, values, explicit, plan, stride, bits, base, number, p, out_indices, out_values
):
    """Orders 1..explicit of text[first:stop]. Leaves in `number` where the hash goes on."""
    wide = out_indices.dtype.type
    n = stop - first
    number[:n] = wide(0)
    for k in range(np.uint64(1), min(np.uint64(explicit), n) + np.uint64(1)):
        m = n - k + np.uint64(1)
        last = first + k - np.uint64(1)
        for i in range(m):
            number[i] = wide(number[i] * wide(size)) + wide(text[last + i])
        value = out_values.dtype.type(values[k])
        if value == 0.0:
            continue
        where = wide(base) + wide(plan[np.uint64(6) + k])
        for i in range(m):
            at = wide(first + i)
            out_indices[p + i] = where + wide(at * wide(stride)) + wide(number[i] ^ wide(position_stir(at, bits)))
            out_values[p + i] = value
        p += m
    return p


@inner
def _fill_hashed(
    text, first, stop, values, explicit, plan, stride, bits, group, group_bits, base, number, slot,
    p, out_indices, out_values,
):  # fmt: skip
    """The orders beyond `explicit` of text[first:stop], in groups where positions have tables of their own."""
    wide = out_indices.dtype.type
    orders = np.uint64(len(values) - 1)
    n = stop - first
    if explicit == 0:
        number[:n] = wide(SEED)
    shortest, beyond = np.uint64(0), np.uint64(0)  # order of the group, and the first order after it
    for k in range(np.uint64(explicit) + np.uint64(1), min(orders, n) + np.uint64(1)):
        m = n - k + np.uint64(1)
        last = first + k - np.uint64(1)
        step(number, text, last, m)
        value = out_values.dtype.type(values[k])
        if k >= beyond:
            together = orders_on_a_line(group, orders - k + np.uint64(1))
            shortest, beyond = np.uint64(k), k + np.uint64(together)
            finish(number, bits, together, group_bits, m, slot)
        if value == 0.0:
            continue
        later = k - shortest
        where = wide(base) + wide(plan[np.uint64(6) + shortest])
        for i in range(m):
            inside = within(slot[i], number[i], text[last + i], later, group_bits)
            out_indices[p + i] = where + wide(wide(first + i) * wide(stride)) + wide(inside)
            out_values[p + i] = value
        p += m
    return p
