"""k-mers read through patterns: which letters, counted from the first, an occurrence takes from the string.

The k-mers of the spectrum stand at offsets 0, 1, .. k-1; with gaps, some letters between are skipped. All patterns of a
map form a tree in which a child takes one letter more than its parent. The kernel walks over this tree and in each node
over all positions of a run of letters at once, so that inner loops vectorise and a node costs one step from its parent.

The number of a k-mer is what its letters write in base |A|. Where 63 bits are too few for that, k-mers are only ever
hashed: they are written in base RADIX modulo 2**64, and the number is already a hash of the k-mer.

With both strands of DNA, the number of the reverse complement is kept beside it, and the smaller one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.features.alphabet import FOREIGN
from dotadd.features.base import checked_dim
from dotadd.features.forms.base import slot_of
from dotadd.features.kmers import KmerMap

RADIX = 0x9E3779B97F4A7C15
CHUNK = 512  # positions at a time, so that the numbers of a path through the tree stay in the L1 cache


class Patterns(NamedTuple):
    """The nodes of the tree, parents before children and each subtree in one piece. The first takes neighbours."""

    depth: np.ndarray
    """Letters taken."""
    offset: np.ndarray
    """Where the last of them lies, from the first."""
    value: np.ndarray
    """Value of the k-mers read by this pattern; those of value 0 are not written."""
    table: np.ndarray
    """Where their table begins."""
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
        return cls(depth.astype(np.uint64), offset.astype(np.uint64), value.astype(np.float64), table, radix)


def radix_of(size: int, order: int) -> int:
    """Base in which the k-mers up to this order are written: the alphabet's size while numbers fit."""
    return size if size**order <= 2**63 else RADIX


def bound_of(phi: KmerMap, batch: Strings, counts: dict[int, int]) -> int | np.ndarray:
    """Non-zeros of each row if counts[n] of them begin wherever n letters more follow."""
    checked_dim(phi, phi.dim)
    fixed = batch.width is not None
    starts, ends = phi.places(batch, np.arange(min(len(batch), 1) if fixed else len(batch), dtype=np.int64))
    total = np.zeros(len(starts), np.int64)
    for offset, count in counts.items():
        total += count * np.maximum(ends - starts - offset, 0)
    return int(total.max(initial=0)) if fixed else total


def pattern_bound(phi: KmerMap, batch: Batch, patterns: Patterns) -> int | np.ndarray:
    assert isinstance(batch, Strings)
    offsets, counts = np.unique(patterns.offset[patterns.value != 0], return_counts=True)
    return bound_of(phi, batch, dict(zip(offsets.tolist(), counts.tolist(), strict=True)))


def pattern_fill(
    phi: KmerMap, batch: Batch, rows: np.ndarray, block: Block, patterns: Patterns, bits: int | None, folded: bool
) -> None:
    """Append what the patterns read; a run of letters ends at a foreign one."""
    assert isinstance(batch, Strings)
    _fill(
        plain(batch.letters), *phi.places(batch, rows), phi.codes(), phi.alphabet.size, patterns.depth, patterns.offset,
        patterns.value, patterns.table, patterns.depth.max(), patterns.offset.max(), np.uint64(patterns.radix),
        bits or 0, folded, block.base, block.scale, block.end, block.indices, block.values,
    )  # fmt: skip


@kernel
def _fill(
    letters, starts, ends, codes, size, depth, offset, value, table, deepest, reach, radix, bits, folded,
    base, scale, cursor, out_indices, out_values,
):  # fmt: skip
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
