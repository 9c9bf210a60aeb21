"""The k-mers of strings, shared by the spectrum, weighted degree and n-gram maps.

One kernel serves them all. It walks over the orders k = 1, 2, ... and for each over all positions at once, so that the
inner loops run over neighbouring array elements and vectorise. For each position it keeps one number, that of the k-mer
which begins there, and makes from it that of the (k+1)-mer:

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
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.features import position_tables, shared_tables
from dotadd.features.alphabet import FOREIGN, Alphabet, Span, byte_name, clip
from dotadd.features.base import BadRow, FeatureMap, Part, checked_dim
from dotadd.features.kmer_hash import SEED, finish, orders_on_a_line, position_stir, step, within
from dotadd.features.origins import Origins, invert_kmers, kmer_origins

TRANSPOSED = 1 << 24  # letters that stand transposed at a time; more strings at once make better use of the cache
LINE = 16  # slots of float32 on a cache line
MOST_COUNTED = 1 << 22  # slots of a space in which occurrences are counted to find lengths


class KmerLayout(NamedTuple):
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
    group: int
    """So many hashed orders share lines of slots; 1 where positions share tables."""
    group_bits: int
    """Each order has 2**group_bits slots of a line."""


class KmerMap(FeatureMap):
    """A map whose features are k-mers. Subclasses say how they are weighted and laid out."""

    takes = (Strings,)
    keeps = False  # 1 to 2 ns a non-zero, as long as reading one takes
    alphabet: Alphabet
    span: Span | None

    def layout(self) -> KmerLayout:
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
        takes = self.alphabet.takes
        if takes.all():
            return None
        rows = np.arange(len(batch), dtype=np.int64)
        starts, ends = self.places(batch, rows)
        row, at = _first_foreign(plain(batch.letters), starts, ends, takes)
        if row < 0:
            return None
        column = int(at - batch.bounds(rows[row : row + 1])[0][0]) + 1
        letter = byte_name(int(batch.letters[at]))
        hint = self.alphabet.hint(batch.letters[starts[row] : ends[row]].tobytes())
        return BadRow(int(row), column, f"letter {letter} is not in the alphabet {self.alphabet.title}{hint}")

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
            layout.explicit, layout.offsets, layout.stride, layout.bits, layout.group, layout.group_bits,
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip

    @property
    def bulk(self) -> bool:  # type: ignore[override]  # depends on how features are laid out
        layout = self.layout()
        return self.as_they_stand and (layout.stride > 0 or layout.bits == 0)

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        assert isinstance(batch, Strings)
        layout = self.layout()
        if not self.bulk:
            super().dot(batch, rows, w, out)
        elif layout.stride > 0:
            self._positions(batch, rows, 0, [w], [out], adding=False)
        else:
            shared_tables.dot(
                plain(batch.letters), *self.places(batch, rows), self.codes(), self.alphabet.size, layout.values,
                layout.offsets, w, out,
            )  # fmt: skip

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        assert isinstance(batch, Strings)
        if self.bulk and self.layout().stride > 0:
            self._positions(batch, rows, 0, ws, outs, adding=False)
        else:
            super().dots(batch, rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        assert isinstance(batch, Strings)
        if self.bulk and self.layout().stride > 0:
            self._positions(batch, rows, 0, [w], [coefficients], adding=True)
        else:
            super().add(batch, rows, coefficients, w)

    def _positions(
        self,
        batch: Strings,
        rows: np.ndarray,
        first: int,
        ws: Sequence[np.ndarray],
        numbers: Sequence[np.ndarray],
        *,
        adding: bool,
    ) -> None:
        """DOT or ADD of the k-mers at the positions from `first` on whose tables each w holds, strings transposed once
        for all of them."""
        layout = self.layout()
        starts, ends = self.places(batch, rows)
        longest = max(1, int((ends - starts).max(initial=0)))
        step = max(1, TRANSPOSED // longest)
        last = first + len(ws[0]) // layout.stride if len(ws) else first  # positions at which k-mers begin
        reach = last + len(layout.values) - 2  # letters that they reach
        for at in range(0, len(rows), step):
            some = slice(at, at + step)
            text = position_tables.transposed(
                plain(batch.letters), starts[some], ends[some], self.codes(), first, reach
            )
            for w, sums in zip(ws, numbers, strict=True):
                position_tables.dot_or_add(
                    text, self.alphabet.size, layout.values, layout.explicit, layout.offsets, layout.stride,
                    layout.bits, layout.group, layout.group_bits, first, w, sums[some], adding,
                )  # fmt: skip

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        assert isinstance(batch, Strings)
        layout = self.layout()
        places = self.places(batch, rows)
        counted = layout.stride == 0
        if not self.bulk or (
            counted and (self.dim > MOST_COUNTED or np.subtract(*places).min(initial=0) <= -(1 << 16))
        ):
            return super().squared_norms(batch, rows)
        out = np.empty(len(rows))
        if layout.stride > 0:
            position_tables.squared_lengths(plain(batch.letters), *places, self.codes(), layout.values, out)
        else:
            shared_tables.squared_lengths(
                plain(batch.letters), *places, self.codes(), self.alphabet.size, layout.values, layout.offsets,
                self.dim, out,
            )  # fmt: skip
        return out

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        stride = self.layout().stride
        if not self.bulk or stride == 0:
            return super().tiles(slots)
        positions, step = self.dim // stride, max(1, slots // stride)
        cuts = [(first, min(first + step, positions)) for first in range(0, positions, step)]
        return [(first * stride, _Positions(self, first, (stop - first) * stride)) for first, stop in cuts]

    @property
    def as_they_stand(self) -> bool:
        """Whether `fill` is the kernel of this file; what it writes can then be named."""
        return type(self).fill is KmerMap.fill

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        assert isinstance(batch, Strings)
        return kmer_origins(self, batch, rows, nth) if self.as_they_stand else super().origins(batch, rows, nth)

    def invert(self, slots: np.ndarray) -> Origins:
        return invert_kmers(self, slots) if self.as_they_stand else super().invert(slots)


class _Positions(Part):
    """The k-mers of a map at some of its positions."""

    bulk = True

    def __init__(self, phi: KmerMap, first: int, dim: int) -> None:
        self.phi, self.first, self._dim = phi, first, dim

    @property
    def dim(self) -> int:
        return self._dim

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        assert isinstance(batch, Strings)
        self.phi._positions(batch, rows, self.first, ws, outs, adding=False)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        assert isinstance(batch, Strings)
        self.phi._positions(batch, rows, self.first, [w], [coefficients], adding=True)


@lru_cache
def explicit_layout(betas: tuple[float, ...], size: int, per_position: bool) -> KmerLayout:
    """A table with a slot for every k-mer for each order, and for each position if wanted."""
    ends = list(accumulate((size**k for k in range(1, len(betas) + 1)), initial=0))
    return _layout(betas, len(betas), [0, *ends[:-1]], ends[-1] if per_position else 0, 0, 1, 0)


@lru_cache
def single_layout(order: int) -> KmerLayout:
    """One order alone, with a slot for every k-mer."""
    return _layout((0.0,) * (order - 1) + (1.0,), order, [0] * (order + 1), 0, 0, 1, 0)


@lru_cache
def shared_hash_layout(betas: tuple[float, ...], bits: int) -> KmerLayout:
    """All orders hashed into one table."""
    return _layout(betas, 0, [0] * (len(betas) + 1), 0, bits, 1, 0)


@lru_cache
def hash_tables_layout(betas: tuple[float, ...], size: int, bits: int) -> KmerLayout:
    """A table of 2**bits for each position and order; orders that fit are counted through."""
    degree = len(betas)
    explicit = sum(size**k <= 2**bits for k in range(1, degree + 1))
    offsets = [0, *(k << bits for k in range(degree))]
    group_bits = min(bits, max(2, (size - 1).bit_length()))  # a slot for each next letter
    group = max(2, LINE >> group_bits)
    return _layout(betas, explicit, offsets, degree << bits, bits, group, group_bits)


def _layout(
    betas: tuple[float, ...], explicit: int, offsets: list[int], stride: int, bits: int, group: int, group_bits: int
) -> KmerLayout:
    values, starts = np.sqrt([0.0, *betas]), np.array(offsets, np.uint64)
    return KmerLayout(values, explicit, starts, stride, bits, group, group_bits)


@kernel
def _first_foreign(letters, starts, ends, takes):
    for j in range(len(starts)):
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            if not takes[letters[i]]:
                return np.int64(j), np.int64(i)
    return np.int64(-1), np.int64(-1)


@kernel
def _fill(
    letters, starts, ends, codes, size, values, explicit, offsets, stride, bits, group, group_bits,
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
                    text, first, stop, values, explicit, offsets, stride, bits, group, group_bits, base, number, slot,
                    p, out_indices, out_values,
                )  # fmt: skip
        cursor[j] = p


@inner
def _fill_counted(
    text, first, stop, size, values, explicit, offsets, stride, bits, base, number, p, out_indices, out_values
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
        where = wide(base) + wide(offsets[k])
        for i in range(m):
            at = wide(first + i)
            out_indices[p + i] = where + wide(at * wide(stride)) + wide(number[i] ^ wide(position_stir(at, bits)))
            out_values[p + i] = value
        p += m
    return p


@inner
def _fill_hashed(
    text, first, stop, values, explicit, offsets, stride, bits, group, group_bits, base, number, slot,
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
        where = wide(base) + wide(offsets[shortest])
        for i in range(m):
            inside = within(slot[i], number[i], text[last + i], later, group_bits)
            out_indices[p + i] = where + wide(wide(first + i) * wide(stride)) + wide(inside)
            out_values[p + i] = value
        p += m
    return p
