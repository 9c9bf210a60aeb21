"""The k-mers of strings, shared by the spectrum, weighted degree and n-gram maps.

One kernel serves them all. It walks over the orders k = 1, 2, ... and for each over all positions at once, so that the
inner loops run over neighbouring array elements and vectorise. For each position it keeps one number, that of the k-mer
which begins there, and makes from it that of the (k+1)-mer:

- while k-mers are few they are counted through, number' = number * |A| + letter, and the number is the slot;
- beyond that it is a hash, h' = (h * P) ^ (letter + 1) in 32 bits, and the slot is the top bits of a finished h.

Where each position and order has a table of its own (weighted degree), hashed orders share their memory in pairs. The
hash of the k-mer chooses a group of neighbouring slots, 2 |A| of them rounded up to a power of two: the k-mer has its
slot in the first half and its |A| continuations have theirs in the second. A string's features of orders k and k + 1
then lie on one cache line, which halves the cache misses of DOT and ADD, and each order still has 2**bits slots over
which it spreads as evenly as before.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.batch import Batch, Strings
from dotadd.block import Block
from dotadd.features.alphabet import FOREIGN, Alphabet, byte_name
from dotadd.features.base import BadRow, FeatureMap, checked_dim
from dotadd.features.span import Span, clip


class Layout(NamedTuple):
    """Where the k-mers of each order lie. Arrays have a place for each order, and an unused one at 0."""

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
    group_bits: int
    """Pairs of hashed orders share groups of 2 * 2**group_bits slots."""


class KmerMap(FeatureMap):
    """A map whose features are k-mers. Subclasses say how they are weighted and laid out."""

    takes = (Strings,)
    alphabet: Alphabet
    span: Span | None

    def layout(self) -> Layout:
        raise NotImplementedError

    def codes(self) -> np.ndarray:
        """The letter's number for each of the 256 bytes."""
        return self.alphabet.codes

    def places(self, batch: Strings, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the part of each row that this map reads begins and ends."""
        return clip(self.span, *batch.bounds(rows))

    def check(self, batch: Batch) -> BadRow | None:
        """The first letter, among those that this map reads, that is not in the alphabet."""
        assert isinstance(batch, Strings)
        codes = self.codes()
        if not (codes == FOREIGN).any():
            return None
        rows = np.arange(len(batch), dtype=np.int64)
        starts, ends = self.places(batch, rows)
        row, at = _first_foreign(plain(batch.letters), starts, ends, codes)
        if row < 0:
            return None
        column = int(at - batch.bounds(rows[row : row + 1])[0][0]) + 1
        letter = byte_name(int(batch.letters[at]))
        return BadRow(int(row), column, f"letter {letter} is not in the alphabet {self.alphabet.title}")

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        checked_dim(self, self.dim)
        fixed = batch.width is not None
        starts, ends = self.places(batch, np.arange(min(len(batch), 1) if fixed else len(batch), dtype=np.int64))
        lengths = ends - starts
        total = np.zeros(len(lengths), np.int64)
        for k in np.flatnonzero(self.layout().values):
            total += np.maximum(lengths - (k - 1), 0)
        return int(total.max(initial=0)) if fixed else total

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert isinstance(batch, Strings)
        starts, ends = self.places(batch, rows)
        layout = self.layout()
        _fill(
            plain(batch.letters), starts, ends, self.codes(), self.alphabet.size, layout.values,
            layout.explicit, layout.offsets, layout.stride, layout.bits, layout.group_bits,
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip


@lru_cache
def explicit_layout(betas: tuple[float, ...], size: int, per_position: bool) -> Layout:
    """A table with a slot for every k-mer for each order, and for each position if wanted."""
    ends = list(accumulate((size**k for k in range(1, len(betas) + 1)), initial=0))
    return _layout(betas, len(betas), [0, *ends[:-1]], ends[-1] if per_position else 0, 0, 0)


@lru_cache
def single_layout(order: int) -> Layout:
    """One order alone, with a slot for every k-mer."""
    return _layout((0.0,) * (order - 1) + (1.0,), order, [0] * (order + 1), 0, 0, 0)


@lru_cache
def shared_hash_layout(betas: tuple[float, ...], bits: int) -> Layout:
    """All orders hashed into one table."""
    return _layout(betas, 0, [0] * (len(betas) + 1), 0, bits, 0)


@lru_cache
def hash_tables_layout(betas: tuple[float, ...], size: int, bits: int) -> Layout:
    """A table of 2**bits for each position and order; orders that fit are counted through."""
    degree = len(betas)
    explicit = sum(size**k <= 2**bits for k in range(1, degree + 1))
    offsets = [0, *(k << bits for k in range(degree))]
    return _layout(betas, explicit, offsets, degree << bits, bits, min(bits, (size - 1).bit_length()))


def _layout(
    betas: tuple[float, ...], explicit: int, offsets: list[int], stride: int, bits: int, group_bits: int
) -> Layout:
    return Layout(np.sqrt([0.0, *betas]), explicit, np.array(offsets, np.uint64), stride, bits, group_bits)


@kernel
def _first_foreign(letters, starts, ends, codes):
    for j in range(len(starts)):
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            if codes[letters[i]] == FOREIGN:
                return np.int64(j), np.int64(i)
    return np.int64(-1), np.int64(-1)


@kernel
def _fill(
    letters, starts, ends, codes, size, values, explicit, offsets, stride, bits, group_bits,
    base, scale, cursor, out_indices, out_values,
):  # fmt: skip
    """Append the k-mers of letters[starts[j]:ends[j]] to row j; those with a foreign letter are left out."""
    values = values * scale
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
                text, first, stop, size, values, explicit, offsets, stride, bits, base, number,
                p, out_indices, out_values,
            )  # fmt: skip
            if explicit < len(values) - 1:
                p = _fill_hashed(
                    text, first, stop, values, explicit, offsets, stride, bits, group_bits, base, number, slot,
                    p, out_indices, out_values,
                )  # fmt: skip
        cursor[j] = p


@inner
def _fill_counted(
    text, first, stop, size, values, explicit, offsets, stride, bits, base, number, p, out_indices, out_values
):
    """Orders 1..explicit of text[first:stop]. Leaves in `number` where the hash goes on.

    Beside hashed tables, a counted table is stirred by its position: tables lie a power of two apart, and the few slots
    of the short orders would otherwise all fall into the same few sets of the cache.
    """
    wide = out_indices.dtype.type
    shift = np.uint64(32) - np.uint64(bits)  # no bits: everything is shifted out
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
        where = wide(base) + wide(offsets[k])
        for i in range(m):
            at = wide(first + i)
            stir = wide(np.uint64(np.uint32(np.uint32(at) * np.uint32(0x9E3779B1))) >> shift)
            out_indices[p + i] = where + wide(at * wide(stride)) + wide(number[i] ^ stir)
            out_values[p + i] = value
        p += m
    return p


@inner
def _step(number, text, last, m):
    """From the hashes of the m k-mers to those with one more letter."""
    for i in range(m):
        h = np.uint32(np.uint32(number[i]) * np.uint32(0x9E3779B1))
        number[i] = np.uint32(h ^ np.uint32(text[last + i] + np.uint32(1)))


@inner
def _finish(number, bits, spread, m, slot):
    """The slots of m hashes: their bits stirred (the finalizer of murmur3), and the top ones taken."""
    shift = np.uint32(32 - bits)
    for i in range(m):
        h = np.uint32(number[i])
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x85EBCA6B))
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        h = np.uint32(h >> shift)
        slot[i] = np.uint32(h + (h & spread))


@inner
def _fill_hashed(
    text, first, stop, values, explicit, offsets, stride, bits, group_bits, base, number, slot,
    p, out_indices, out_values,
):  # fmt: skip
    """The orders beyond `explicit` of text[first:stop], in pairs where positions have tables of their own."""
    wide = out_indices.dtype.type
    orders = np.uint64(len(values) - 1)
    half = np.uint32(np.uint64(1) << np.uint64(group_bits))
    low = np.uint32(half - np.uint32(1))
    n = stop - first
    if explicit == 0:
        number[:n] = wide(0x811C9DC5)
    second = False
    for k in range(np.uint64(explicit) + np.uint64(1), min(orders, n) + np.uint64(1)):
        m = n - k + np.uint64(1)
        last = first + k - np.uint64(1)
        _step(number, text, last, m)
        value = out_values.dtype.type(values[k])
        where = wide(base) + wide(offsets[k])
        mask = np.uint32(0)
        if second:  # beside the k-mers of the order before
            where = where + wide(half) - wide(np.uint64(1) << np.uint64(bits))
            mask = low
            second = False
        else:
            second = bool(stride > 0 and k < orders)
            if value != 0.0 or second:
                _finish(number, bits, np.uint32(~low) if second else np.uint32(0), m, slot)
        if value != 0.0:
            for i in range(m):
                inside = np.uint32(slot[i] ^ (text[last + i] & mask))
                out_indices[p + i] = where + wide(wide(first + i) * wide(stride)) + wide(inside)
                out_values[p + i] = value
            p += m
    return p
