"""GappySpectrum and MismatchSpectrum: how often each k-mer occurs in a string, letters being skipped or changed.

k(z, z') = sum over k-mers u of phi_u(z) phi_u(z')

GappySpectrum:     phi_u(z) = sum of decay ** (letters skipped) over all i_1 < .. < i_k at which z has the letters of u,
                   with at most `gaps` letters skipped between the first and the last
MismatchSpectrum:  phi_u(z) = number of k-mers of z that differ from u in at most m places (Leslie et al. 2003)

The first is the gappy kernel of Leslie and Kuang (2004) with its window of k + gaps letters anchored: the occurrence
begins with the window's first letter. Where each window counts every k-mer inside it, an occurrence counts once for
each window that it fits in, those without gaps most often and those at the ends of the string least; here each counts
once, and `decay` says what a gap costs.

For mismatches, all positions of a run of letters are taken at once. To turn letter c of a k-mer into (c + t) mod |A|
adds one of two constants to the k-mer's number. Its neighbourhood is a tree of such turns, with places rising from
parent to child.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.alphabet import Span
from dotadd.features.base import checked_int
from dotadd.features.patterns import CHUNK, Patterns, bound_of, powers, radix_of, read_run, roll, roll_back, write
from dotadd.features.spectrum import MAX_ORDER, StringMap

MAX_PATTERNS = 2**16


class GappySpectrum(StringMap):
    """Counts of all k-mers of length k that occur with at most `gaps` letters skipped between their own.

    An occurrence with s letters skipped counts decay**s. There are C(k - 1 + gaps, gaps) ways to skip, and so many
    non-zeros for each letter of the string. An index may occur several times in a row.

    decay: what a skipped letter takes from the count, above 0 and at most 1.
    alphabet, span, strands: as for Spectrum. A foreign letter can neither be taken nor be skipped.
    """

    def __init__(
        self,
        k: int,
        gaps: int,
        *,
        decay: float = 1.0,
        alphabet: str = "dna",
        span: Span | None = None,
        strands: str = "one",
    ) -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)
        self.gaps = checked_int("gaps", gaps, 0, MAX_ORDER)
        if isinstance(decay, bool) or not isinstance(decay, int | float | np.number) or not 0 < decay <= 1:
            raise FeatureError(f"decay has to be a number above 0 and at most 1, and not {decay!r}")
        self.decay = float(decay)
        patterns = math.comb(self.order + self.gaps, self.gaps + 1)  # all nodes of the tree
        if patterns > MAX_PATTERNS:
            raise FeatureError(f"{self!r} reads {patterns:.3g} patterns, more than {MAX_PATTERNS}: allow fewer gaps")

    def _arguments(self) -> tuple[object, ...]:
        return self.order, self.gaps

    def _options(self) -> dict[str, object]:
        return ({} if self.decay == 1.0 else {"decay": self.decay}) | super()._options()

    def patterns(self) -> Patterns:
        return _patterns(self.order, self.gaps, self.decay, self.alphabet.size)


@lru_cache
def _patterns(order: int, gaps: int, decay: float, size: int) -> Patterns:
    nodes, open_nodes = [], [(1, 0)]
    while open_nodes:
        depth, offset = open_nodes.pop()
        skipped = offset + 1 - depth
        nodes.append((depth, offset, decay**skipped if depth == order else 0.0))
        if depth < order:
            open_nodes += [(depth + 1, offset + 1 + more) for more in range(gaps - skipped + 1)]
    return Patterns.of(nodes, size)


MAX_NEIGHBOURS = 2**16


class MismatchSpectrum(StringMap):
    """Counts of all k-mers of length k, each k-mer of the string counting for all that differ in at most m letters.

    A k-mer has sum_i C(k, i) (|alphabet| - 1)**i such neighbours (i = 0..m), each a non-zero. An index may occur
    several times in a row.

    mismatches: m, from 0 to k.
    alphabet, span, strands: as for Spectrum.
    """

    def __init__(
        self, k: int, mismatches: int, *, alphabet: str = "dna", span: Span | None = None, strands: str = "one"
    ) -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)
        self.mismatches = checked_int("mismatches", mismatches, 0, self.order)
        if self.neighbours > MAX_NEIGHBOURS:
            raise FeatureError(
                f"{self!r} makes {self.neighbours:.3g} features of each k-mer, more than {MAX_NEIGHBOURS}: "
                "allow fewer mismatches"
            )

    @property
    def neighbours(self) -> int:
        """How many k-mers differ from a given one in at most m letters."""
        return sum(math.comb(self.order, i) * (self.alphabet.size - 1) ** i for i in range(self.mismatches + 1))

    def _arguments(self) -> tuple[object, ...]:
        return self.order, self.mismatches

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        return bound_of(self, batch, {self.order - 1: self.neighbours})

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert isinstance(batch, Strings)
        turns = _turns(self.order, self.mismatches, self.alphabet.size)
        _fill(
            plain(batch.letters), *self.places(batch, rows), self.codes(), self.alphabet.size, self.order,
            self.mismatches, np.uint64(radix_of(self.alphabet.size, self.order)), *turns, self.bits or 0, self.folded,
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip


class Turns(NamedTuple):
    """The nodes of the tree, parents before children and each subtree in one piece."""

    depth: np.ndarray
    """Letters turned."""
    place: np.ndarray
    """Which letter of the k-mer was turned last."""
    limit: np.ndarray
    """Letters below this one rise, the others fall."""
    change: np.ndarray
    """What the number gains: where the letter rises, where it falls; then the same for the reverse complement's."""


@lru_cache
def _turns(order: int, mismatches: int, size: int) -> Turns:
    radix = radix_of(size, order)

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
    return Turns(depths, places, np.uint64(size) - steps, change)


@kernel
def _fill(
    letters, starts, ends, codes, size, order, mismatches, radix, depth, place, limit, change, bits, folded,
    base, scale, cursor, out_indices, out_values,
):  # fmt: skip
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
            write(number, reverse, none, m, folded, none, scale, bits, base, p, out_indices, out_values)
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
                write(number, reverse, d, m, folded, none, scale, bits, base, p, out_indices, out_values)
                p += m
            at += min(n, np.uint64(CHUNK))
        cursor[j] = p
