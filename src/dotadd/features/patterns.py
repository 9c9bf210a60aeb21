"""k-mers read through patterns: which letters, counted from the first, an occurrence takes from the string; and k-mers
with some letters changed.

The k-mers of the spectrum stand at offsets 0, 1, .. k-1; with gaps, some letters between are skipped. All patterns of a
map form a tree in which a child takes one letter more than its parent. The kernel walks over this tree and in each node
over all positions of a run of letters at once, so that inner loops vectorise and a node costs one step from its parent.

The number of a k-mer is what its letters write in base |A|. Where 63 bits are too few for that, k-mers are only ever
hashed: they are written in base RADIX modulo 2**64, and the number is already a hash of the k-mer.

With both strands of DNA, the number of the reverse complement is kept beside it, and the smaller one counts.

For mismatches, all positions of a run of letters are taken at once. To turn letter c of a k-mer into (c + t) mod |A|
adds one of two constants to the k-mer's number. Its neighbourhood is a tree of such turns, with places rising from
parent to child.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.features.alphabet import FOREIGN
from dotadd.features.forms import slot_of
from dotadd.features.kmer_layout import packed

RADIX = 0x9E3779B97F4A7C15
CHUNK = 512  # positions at a time, so that the numbers of a path through the tree stay in the L1 cache


@dataclass(frozen=True, eq=False)
class Patterns:
    """The nodes of the tree, parents before children and each subtree in one piece. The first takes neighbours."""

    depth: np.ndarray
    """Letters taken."""
    offset: np.ndarray
    """Where the last of them lies, from the first."""
    value: np.ndarray
    """Value of the k-mers read by this pattern; those of value 0 are not written."""
    table: np.ndarray
    """Where their table begins."""
    size: int
    """Letters of the alphabet."""
    radix: int
    """Base in which k-mers are written as numbers."""

    @classmethod
    def of(cls, nodes: Iterable[tuple[int, int, float]], size: int, *, tables: bool = False) -> Patterns:
        """From (depth, offset, value) of each node. With `tables`, each order has its own, one after the other."""
        depth, offset, value = (np.array(part) for part in zip(*nodes, strict=True))
        orders = range(int(depth.max()) + 1)
        radix = radix_of(size, orders[-1])
        if not tables:
            starts = [0 for _ in orders]
        elif radix == size:
            starts = [sum(size**d for d in range(1, k)) for k in orders]
        else:  # only ever hashed: it is enough that the orders differ
            starts = [k * RADIX % 2**64 for k in orders]
        table = np.array(starts, np.uint64)[depth]
        return cls(depth.astype(np.uint64), offset.astype(np.uint64), value.astype(np.float64), table, size, radix)

    def plan(self, bits: int | None, folded: bool) -> np.ndarray:
        """What `write_patterns` is told. Hashed if there are bits; folded with the reverse complement."""
        numbers = (self.size, signed(self.radix), bits or 0, folded, int(self.depth.max()), int(self.offset.max()))
        return packed(numbers, self.depth, self.offset, self.table, self.value)


def radix_of(size: int, order: int) -> int:
    """Base in which the k-mers up to this order are written: the alphabet's size while numbers fit."""
    return size if size**order <= 2**63 else RADIX


def signed(number: int) -> int:
    """The number below 2**63 with the same 64 bits."""
    return number - 2**64 if number >= 2**63 else number


@lru_cache
def mismatch_plan(order: int, weights: tuple[float, ...], size: int, bits: int | None, folded: bool) -> np.ndarray:
    """What `write_mismatches` is told: what k-mers with 0, 1, .. letters turned count; and the nodes of the tree of
    turns, parents before children and each subtree in one piece. Of each, how many letters are turned and which one was
    turned last; the limit below which letters rise, while others fall; and what the number gains where the letter
    rises, where it falls, and the same for the reverse complement's."""
    radix, mismatches = radix_of(size, order), len(weights) - 1

    def below(depth: int, first: int) -> Iterator[tuple[int, int, int]]:
        if depth > mismatches:
            return
        for place in range(first, order):
            for step in range(1, size):
                yield depth, place, step
                yield from below(depth + 1, place + 1)

    nodes = list(below(1, 0))
    change = np.empty((len(nodes), 4), np.uint64)
    for t, (_, place, step) in enumerate(nodes):
        high, low = pow(radix, order - 1 - place, 2**64), pow(radix, place, 2**64)
        gains = (step * high, (step - size) * high, -step * low, (size - step) * low)
        change[t] = [gain % 2**64 for gain in gains]
    depths, places, steps = np.array(nodes, np.uint64).reshape(-1, 3).T.copy()
    numbers = (size, signed(radix), bits or 0, folded, order, mismatches)
    return packed(numbers, np.array(weights), depths, places, np.uint64(size) - steps, change)


@kernel
def write_patterns(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    """Append what the patterns read; a run of letters ends at a foreign one."""
    size, radix, bits, folded = plan[0], np.uint64(plan[1]), plan[2], plan[3] != 0
    deepest, reach, nodes = np.uint64(plan[4]), np.uint64(plan[5]), (len(plan) - 6) // 4
    depth, offset = plan[6 : 6 + nodes].view(np.uint64), plan[6 + nodes : 6 + 2 * nodes].view(np.uint64)
    table, value = plan[6 + 2 * nodes : 6 + 3 * nodes].view(np.uint64), plan[6 + 3 * nodes :].view(np.float64)
    one = np.uint64(1)
    number = np.empty((deepest - depth[0] + one, CHUNK), np.uint64)  # a row for each depth
    reverse = np.empty((len(number) if folded else 1, CHUNK), np.uint64)
    text = np.empty(np.uint64(CHUNK) + reach, np.uint64)
    power = powers(radix, deepest)
    top = np.uint64(size - 1)
    for j in range(len(starts)):
        p = np.uint64(cursor[j])
        at, end = np.uint64(starts[j]), np.uint64(ends[j])
        while at < end:
            n = read_run(letters, at, end, codes, text)
            if n == 0:
                at += one
                continue
            for t in range(np.uint64(len(depth))):
                last = offset[t]
                if n <= last:
                    continue
                m = min(np.uint64(CHUNK), n - last)
                row = depth[t] - depth[0]
                if t == 0:
                    roll(text, depth[0], m, power, number)
                    if folded:
                        roll_back(text, depth[0], m, power, top, reverse)
                else:
                    for i in range(m):
                        number[row, i] = np.uint64(number[row - one, i] * radix) + text[i + last]
                    if folded:
                        high = power[depth[t] - one]
                        for i in range(m):
                            reverse[row, i] = reverse[row - one, i] + np.uint64((top - text[i + last]) * high)
                if value[t] != 0.0:
                    worth = value[t] * scale
                    write(number, reverse, row, m, folded, table[t], worth, bits, base, p, out_indices, out_values)
                    p += m
            at += min(n, np.uint64(CHUNK))
        cursor[j] = p


@kernel
def write_mismatches(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    """Append each k-mer and its neighbours."""
    size, radix, bits, folded = plan[0], np.uint64(plan[1]), plan[2], plan[3] != 0
    order, mismatches, nodes = plan[4], plan[5], (len(plan) - 7 - plan[5]) // 7
    values, trees = plan[6 : 7 + mismatches].view(np.float64) * scale, plan[7 + mismatches :].view(np.uint64)
    depth, place, limit = trees[:nodes], trees[nodes : 2 * nodes], trees[2 * nodes : 3 * nodes]
    change = trees[3 * nodes :].reshape((nodes, 4))
    one, none = np.uint64(1), np.uint64(0)
    number = np.empty((mismatches + 1, CHUNK), np.uint64)  # a row for each depth
    reverse = np.empty((len(number) if folded else 1, CHUNK), np.uint64)
    last = np.uint64(order) - one
    text = np.empty(np.uint64(CHUNK) + last, np.uint64)
    power = powers(radix, np.uint64(order))
    for j in range(len(starts)):
        p = np.uint64(cursor[j])
        at, end = np.uint64(starts[j]), np.uint64(ends[j])
        while at < end:
            n = read_run(letters, at, end, codes, text)
            if n <= last:
                at += max(n, one)
                continue
            m = min(np.uint64(CHUNK), n - last)
            roll(text, last + one, m, power, number)
            if folded:
                roll_back(text, last + one, m, power, np.uint64(size - 1), reverse)
            write(number, reverse, none, m, folded, none, values[0], bits, base, p, out_indices, out_values)
            p += m
            for t in range(np.uint64(len(depth))):
                d, k = depth[t], place[t]
                rise, fall, rise_back, fall_back = change[t, 0], change[t, 1], change[t, 2], change[t, 3]
                for i in range(m):
                    gain = rise if text[i + k] < limit[t] else fall
                    number[d, i] = number[d - one, i] + gain
                if folded:
                    for i in range(m):
                        gain = rise_back if text[i + k] < limit[t] else fall_back
                        reverse[d, i] = reverse[d - one, i] + gain
                write(number, reverse, d, m, folded, none, values[d], bits, base, p, out_indices, out_values)
                p += m
            at += min(n, np.uint64(CHUNK))
        cursor[j] = p


@inner
def read_run(letters, at, end, codes, text):
    """Copy the letters' numbers from `at` on, until a foreign one or the end or until text is full. Says how many."""
    n = min(end - at, np.uint64(len(text)))
    for i in range(n):
        code = codes[letters[at + i]]
        if code == FOREIGN:
            return np.uint64(i)
        text[i] = code
    return n


@inner
def powers(radix, highest):
    """radix**0 .. radix**highest"""
    power = np.empty(highest + np.uint64(1), np.uint64)
    power[0] = np.uint64(1)
    for d in range(1, len(power)):
        power[d] = np.uint64(power[d - 1] * radix)
    return power


@inner
def roll(text, k, m, power, number):
    """The numbers of the first m contiguous k-mers into row 0, each from the one before."""
    one, none = np.uint64(1), np.uint64(0)
    h = gone = none
    for i in range(k - one):
        h = np.uint64(h * power[one]) + text[i]
    for i in range(m):
        h = np.uint64((h - gone) * power[one]) + text[i + k - one]
        number[none, i] = h
        gone = np.uint64(text[i] * power[k - one])


@inner
def roll_back(text, k, m, power, top, reverse):
    """The numbers of their reverse complements, each from the one after."""
    one, none = np.uint64(1), np.uint64(0)
    h = gone = none
    for i in range(k - one):
        h = np.uint64(h * power[one]) + (top - text[m + k - one - one - i])
    for j in range(m):
        i = m - one - j
        h = np.uint64((h - gone) * power[one]) + (top - text[i])
        reverse[none, i] = h
        gone = np.uint64((top - text[i + k - one]) * power[k - one])


@inner
def write(number, reverse, row, m, folded, table, value, bits, base, p, out_indices, out_values):
    """Write m numbers of a row as indices: folded with the reverse complement's, and hashed if there are bits."""
    wide = out_indices.dtype.type
    for i in range(m):
        index = number[row, i]
        if folded:
            index = min(index, reverse[row, i])
        index += table
        if bits > 0:
            index = slot_of(index, bits)
        out_indices[p + i] = wide(np.uint64(base) + index)
        out_values[p + i] = value
