"""WeightedDegree and WeightedDegreeShift: which k-mer stands at, or near, each position of a string.

k(z, z') = sum over orders d = 1..degree of beta_d * k_d(z, z')

WeightedDegree:       k_d(z, z') = number of positions at which z and z' have the same d-mer
WeightedDegreeShift:  k_d(z, z') = sum of r_|i - j| over all equal d-mers at i in z and j in z',
                      with r_0 = 1 and r_s = 1 / (2 (s + 1)) for s = 1..shift, and 0 beyond

The second is of Raetsch and Sonnenburg (2005), who write the same sum as
delta_s (I(u_{d,i+s}(z) = u_{d,i}(z')) + I(u_{d,i}(z) = u_{d,i+s}(z'))) over i and s with delta_s = 1 / (2 (s + 1)).

It is an inner product of sparse vectors. 1/2 + sum_s cos(s t) / (s + 1) is never negative (Rogosinski and Szegoe), so r
is the autocorrelation of shift + 1 numbers c (Fejer and Riesz): sum_s c_s c_{s+t} = r_t. A d-mer at position i writes
sqrt(beta_d) c_s into the slots of position i + s, and two equal d-mers meet in just the products that sum to r_|i - j|.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from itertools import accumulate
from typing import Self

import numpy as np

from dotadd._jit import kernel
from dotadd.data.batches import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.alphabet import Span, clipped_length
from dotadd.features.base import BadRow, FeatureMap, Origins, Shape, checked_dim
from dotadd.features.kmer_layout import KmerLayout, explicit_layout, finish, hash_tables_layout, packed, step
from dotadd.features.kmers import Writer
from dotadd.features.leaves import checked_int
from dotadd.features.patterns import CHUNK, read_run
from dotadd.features.spectrum import MAX_ORDER, StringMap, Weights, beta, checked_weights


class PositionalMap(StringMap):
    """The k-mers of lengths 1 to `degree` at each position of strings of at most `length` letters."""

    def __init__(self, degree: int, weights: Weights, alphabet: str, span: Span | None, length: int | None) -> None:
        super().__init__(checked_int("degree", degree, 1, MAX_ORDER), alphabet, span)
        self.weights = checked_weights(weights, self.order)
        self.length = None if length is None else checked_int("length", length, 0, 2**31)

    @property
    def degree(self) -> int:
        return self.order

    def resolve(self, shape: Shape) -> Self:
        resolved = self
        if self.length is None:
            assert shape.length is not None
            resolved = copy.copy(self)
            resolved.length = clipped_length(self.span, shape.length)
        checked_dim(resolved, resolved.dim)
        return resolved

    def known_length(self) -> int:
        """The length of the strings, which has to be known by now."""
        if self.length is None:
            raise FeatureError(f"{self!r} does not know the length of the strings yet: give length=, or call fit(X)")
        return self.length

    def places(self, batch: Strings, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts, ends = super().places(batch, rows)
        return starts, ends if self.length is None else np.minimum(ends, starts + self.length)

    def check(self, batch: Batch) -> BadRow | None:
        assert isinstance(batch, Strings)
        bad = super().check(batch)
        if self.length is None:
            return bad
        rows = len(batch) if bad is None else bad.row
        starts, ends = super().places(batch, np.arange(min(rows, 1) if batch.width is not None else rows))
        long = np.flatnonzero(ends - starts > self.length)
        if len(long) == 0:
            return bad
        row = int(long[0])
        return BadRow(row, None, f"has {ends[row] - starts[row]} letters, and the model was made for {self.length}")


class WeightedDegree(PositionalMap):
    """The k-mers of lengths 1 to `degree` at each position, those of length d with the value sqrt(beta_d).

    Each position and order has a table of its own: with every k-mer in it (|alphabet|**d slots), or after
    `.hashed(bits)` with 2**bits slots. The tables of one position lie side by side. Strings shorter than `length` have
    fewer features; longer ones are refused.

    weights: beta_1 .. beta_degree, or "uniform" for all 1; by default beta_d = 2 (k - d + 1) / (k (k + 1)), k = degree.
    alphabet, span: as for Spectrum. Positions count from the beginning of the span.
    length: the longest string to come (within the span); by default the longest in the training data.
    """

    distinct = True

    def __init__(
        self,
        degree: int,
        *,
        weights: Weights = None,
        alphabet: str = "dna",
        span: Span | None = None,
        length: int | None = None,
    ) -> None:
        super().__init__(degree, weights, alphabet, span, length)

    @property
    def dim(self) -> int:
        if self.bits is not None:
            return checked_dim(self, self.known_length() * self.order << self.bits)
        return checked_dim(self, self.known_length() * sum(self.alphabet.size**d for d in range(1, self.order + 1)))

    def layout(self) -> KmerLayout:
        betas = beta(self.weights, self.order)
        if self.bits is not None:
            return hash_tables_layout(betas, self.alphabet.size, self.bits)
        return explicit_layout(betas, self.alphabet.size, True)


MAX_SHIFT = 1000


class WeightedDegreeShift(PositionalMap):
    """The k-mers of lengths 1 to `degree` at each position, equal ones also counting up to `shift` positions apart.

    A string has shift + 1 times the non-zeros of WeightedDegree. Each k-mer, or after `.hashed(bits)` each of 2**bits
    hash values of an order, has one slot for each of length + shift positions, side by side: what an occurrence writes
    is contiguous and lies on a cache line or two. An index may occur several times in a row.

    shift: the largest distance, the same for all positions.
    weights, alphabet, span, length: as for WeightedDegree.
    """

    as_they_stand = False

    def __init__(
        self,
        degree: int,
        shift: int,
        *,
        weights: Weights = None,
        alphabet: str = "dna",
        span: Span | None = None,
        length: int | None = None,
    ) -> None:
        super().__init__(degree, weights, alphabet, span, length)
        self.shift = checked_int("shift", shift, 0, MAX_SHIFT)
        self.distinct = self.shift == 0

    @property
    def dim(self) -> int:
        return checked_dim(
            self, (self.known_length() + self.shift) * sum(_sizes(self.order, self.alphabet.size, self.bits))
        )

    def counts(self) -> dict[int, int]:
        return {d: self.shift + 1 for d, weight in enumerate(beta(self.weights, self.order)) if weight}

    def written_offsets(self) -> tuple[list[int], int]:
        offsets = [
            d for d, weight in enumerate(beta(self.weights, self.order)) if weight for _ in range(self.shift + 1)
        ]
        return offsets, self.order - 1

    def writer(self) -> Writer:
        positions, betas = self.known_length() + self.shift, beta(self.weights, self.order)
        return _write_shifted, _shifted_plan(betas, self.shift, positions, self.alphabet.size, self.bits)

    def invert(self, slots: np.ndarray) -> Origins:
        return FeatureMap.invert(self, slots)  # a slot is shared by k-mers at several positions


def _sizes(orders: int, size: int, bits: int | None) -> list[int]:
    """How many k-mers, or slots for them, each order has."""
    return [size**d if bits is None else 2**bits for d in range(1, orders + 1)]


@lru_cache
def _shifted_plan(betas: tuple[float, ...], shift: int, positions: int, size: int, bits: int | None) -> np.ndarray:
    """How many orders there are and are counted through, and positions; where the k-mers of each order begin, the value
    of each order, and what an occurrence writes into neighbouring slots."""
    orders = len(betas)
    counted = orders if bits is None else sum(size**d <= 2**bits for d in range(1, orders + 1))
    begins = np.array(list(accumulate(_sizes(orders, size, bits)[:-1], initial=0)), np.uint64)
    return packed((size, bits or 0, orders, counted, positions), begins, np.sqrt(betas), taps(shift))


@lru_cache
def taps(shift: int) -> np.ndarray:
    """c_0 .. c_shift whose autocorrelation is 1, 1/4, 1/6, .., 1/(2 (shift + 1)).

    Of all such c, the one whose polynomial has no zero in the unit disc is exp of the causal part of the logarithm of
    the density f(t) = |sum_s c_s e^ist|^2. That f lies between 1/2 and 1 + log(shift + 1) keeps this well-conditioned.
    """
    r = np.r_[1.0, 0.5 / np.arange(2, shift + 2)]
    n = 64 << shift.bit_length()  # log f has infinitely many coefficients; beyond these they are below rounding
    density = np.fft.rfft(np.r_[r, np.zeros(n - 2 * shift - 1), r[:0:-1]]).real
    logarithm = np.fft.irfft(np.log(density))
    logarithm[0] /= 2
    logarithm[n // 2 :] = 0.0
    return np.fft.irfft(np.exp(np.fft.rfft(logarithm)))[: shift + 1].copy()


@kernel
def _write_shifted(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    """The orders up to `counted` are counted through, the others hashed letter by letter."""
    size, bits, n_orders, counted, positions = plan[0], plan[1], plan[2], plan[3], plan[4]
    tables, rest = plan[5 : 5 + n_orders].view(np.uint64), plan[5 + n_orders :].view(np.float64)
    values, taps = rest[:n_orders], rest[n_orders:]
    wide = out_indices.dtype.type
    orders, width = np.uint64(n_orders), np.uint64(len(taps))
    text = np.empty(np.uint64(CHUNK) + orders - np.uint64(1), np.uint32)
    number = np.empty(CHUNK, out_indices.dtype)
    slot = np.empty(CHUNK, out_indices.dtype)
    for j in range(len(starts)):
        p = np.uint64(cursor[j])
        first, end = np.uint64(starts[j]), np.uint64(ends[j])
        at = first
        while at < end:
            n = read_run(letters, at, end, codes, text)
            if n == 0:
                at += np.uint64(1)
                continue
            number[:] = wide(0)
            for k in range(min(orders, n)):
                m = min(np.uint64(CHUNK), n - k)
                if k < np.uint64(counted):
                    for i in range(m):
                        number[i] = wide(number[i] * wide(size)) + wide(text[i + k])
                        slot[i] = number[i]
                else:
                    step(number, text, k, m)
                    finish(number, bits, 1, 0, m, slot)
                if values[k] == 0.0:
                    continue
                for i in range(m):
                    slot[i] = wide(wide(wide(tables[k]) + slot[i]) * wide(positions)) + wide(at - first + i)
                for s in range(width):
                    value = out_values.dtype.type(values[k] * scale * taps[s])
                    for i in range(m):
                        out_indices[p + i] = wide(base) + slot[i] + wide(s)
                        out_values[p + i] = value
                    p += m
            at += min(n, np.uint64(CHUNK))
        cursor[j] = p
