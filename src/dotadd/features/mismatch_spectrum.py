"""MismatchSpectrum: how often each k-mer occurs in a string, wherever it stands, some letters of it being other ones.

k(z, z') = sum over k-mers u of #u(z) #u(z'), #u(z) being the number of k-mers of z that differ from u in at most m
places (Leslie et al. 2003), or the sum of their weights, by the number of places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from dotadd._util.expression import quoted
from dotadd.errors import FeatureError
from dotadd.features.alphabet import Span
from dotadd.features.gkm_weights import LETTERS
from dotadd.features.kmers import Writer
from dotadd.features.leaves import checked_factor, checked_int
from dotadd.features.mismatch_table import LONGEST, MismatchTable
from dotadd.features.patterns import mismatch_plan, write_mismatches
from dotadd.features.spectrum import MAX_ORDER, StringMap
from dotadd.features.tabled import TabledLmers

MAX_NEIGHBOURS = 2**16


class MismatchSpectrum(TabledLmers, StringMap):
    """Counts of all k-mers of length k, each k-mer of the string counting for all that differ in at most m letters.

    A k-mer has sum_i C(k, i) (|alphabet| - 1)**i such neighbours (i = 0..m), each a non-zero. An index may occur
    several times in a row.

    mismatches: m, from 0 to k.
    weights: what a k-mer counts for those with 0, 1, .. m letters changed; 1 by default.
    alphabet, span, strands: as for Spectrum.
    """

    as_they_stand = False

    def __init__(
        self,
        k: int,
        mismatches: int,
        *,
        weights: Sequence[float] | None = None,
        alphabet: str = "dna",
        span: Span | None = None,
        strands: str = "one",
    ) -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)
        self.mismatches = checked_int("mismatches", mismatches, 0, self.order)
        self.weights = None if weights is None else _mismatch_weights(weights, self.mismatches)
        if self.neighbours > MAX_NEIGHBOURS:
            raise FeatureError(
                f"{self!r} makes {self.neighbours:.3g} features of each k-mer, more than {MAX_NEIGHBOURS}: "
                "allow fewer mismatches"
            )
        self.bulk = self.whole = self.table is not None

    @property
    def table(self) -> MismatchTable | None:
        if self.bits is not None or self.alphabet.size != LETTERS or self.order > LONGEST:
            return None
        return _mismatch_table(self.order, self._values, self.strands)

    @property
    def _values(self) -> tuple[float, ...]:
        return (1.0,) * (self.mismatches + 1) if self.weights is None else self.weights

    def hash_into(self, bits: int) -> None:
        super().hash_into(bits)
        self.bulk = self.whole = False

    @property
    def neighbours(self) -> int:
        """How many k-mers differ from a given one in at most m letters."""
        return sum(math.comb(self.order, i) * (self.alphabet.size - 1) ** i for i in range(self.mismatches + 1))

    def counts(self) -> dict[int, int]:
        return {self.order - 1: self.neighbours}

    def written_offsets(self) -> tuple[list[int], int]:
        return [self.order - 1] * self.neighbours, self.order - 1

    def writer(self) -> Writer:
        return write_mismatches, mismatch_plan(self.order, self._values, self.alphabet.size, self.bits, self.folded)


def _mismatch_weights(weights: Sequence[float], mismatches: int) -> tuple[float, ...]:
    try:
        values = tuple(checked_factor("a weight", weight) for weight in weights)
    except TypeError:
        values = ()
    if len(values) != mismatches + 1 or not any(values):
        raise FeatureError(
            f"weights has to be {mismatches + 1} numbers, for 0 to {mismatches} mismatches, and not all 0; "
            f"and not {quoted(weights)}"
        )
    return values


@lru_cache
def _mismatch_table(order: int, weights: tuple[float, ...], layout: str) -> MismatchTable:
    return MismatchTable(order, weights, layout)
