"""WeightedDegreeShift: which k-mer stands near each position of a string (Raetsch and Sonnenburg 2005).

k(z, z') = sum over orders d = 1..degree of beta_d * sum of r_|i - j| over all equal d-mers at i in z and j in z'

with r_0 = 1 and r_s = 1 / (2 (s + 1)) for s = 1..shift, and 0 beyond. The literature writes the same sum as
delta_s (I(u_{d,i+s}(z) = u_{d,i}(z')) + I(u_{d,i}(z) = u_{d,i+s}(z'))) over i and s with delta_s = 1 / (2 (s + 1)).

This is an inner product of sparse vectors. 1/2 + sum_s cos(s t) / (s + 1) is never negative (Rogosinski and Szegoe),
so r is the autocorrelation of shift + 1 numbers c (Fejer and Riesz): sum_s c_s c_{s+t} = r_t. A d-mer at position i
writes sqrt(beta_d) c_s into the slots of position i + s, and two equal d-mers meet in just the products that sum to
r_|i - j|.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.batch import Batch, Strings
from dotadd.block import Block
from dotadd.features.base import FeatureMap, checked_dim, checked_int
from dotadd.features.kmer_hash import finish, step
from dotadd.features.origins import Origins
from dotadd.features.patterns import CHUNK, bound_of, read_run
from dotadd.features.positional import PositionalMap
from dotadd.features.span import Span
from dotadd.features.spectrum import Weights, beta

MAX_SHIFT = 1000


class WeightedDegreeShift(PositionalMap):
    """The k-mers of lengths 1 to `degree` at each position, equal ones also counting up to `shift` positions apart.

    A string has shift + 1 times the non-zeros of WeightedDegree. Each k-mer, or after `.hashed(bits)` each of 2**bits
    hash values of an order, has one slot for each of length + shift positions, side by side: what an occurrence writes
    is contiguous and lies on a cache line or two. An index may occur several times in a row.

    shift: the largest distance, the same for all positions.
    weights, alphabet, span, length: as for WeightedDegree.
    """

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

    def _arguments(self) -> tuple[Any, ...]:
        return self.order, self.shift

    @property
    def dim(self) -> int:
        return checked_dim(
            self, (self.known_length() + self.shift) * sum(_sizes(self.order, self.alphabet.size, self.bits))
        )

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        betas = beta(self.weights, self.order)
        return bound_of(self, batch, {d: self.shift + 1 for d, weight in enumerate(betas) if weight})

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert isinstance(batch, Strings)
        _fill(
            plain(batch.letters), *self.places(batch, rows), self.codes(), self.alphabet.size,
            *_layout(beta(self.weights, self.order), self.alphabet.size, self.bits), taps(self.shift),
            self.known_length() + self.shift, self.bits or 0,
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip

    def invert(self, slots: np.ndarray) -> Origins:
        return FeatureMap.invert(self, slots)  # a slot is shared by k-mers at several positions


def _sizes(orders: int, size: int, bits: int | None) -> list[int]:
    """How many k-mers, or slots for them, each order has."""
    return [size**d if bits is None else 2**bits for d in range(1, orders + 1)]


@lru_cache
def _layout(betas: tuple[float, ...], size: int, bits: int | None) -> tuple[np.ndarray, int, np.ndarray]:
    """The value of each order, how many orders are counted through, and where the k-mers of each order begin."""
    orders = len(betas)
    counted = orders if bits is None else sum(size**d <= 2**bits for d in range(1, orders + 1))
    begins = accumulate(_sizes(orders, size, bits)[:-1], initial=0)
    return np.sqrt(betas), counted, np.array(list(begins), np.uint64)


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
def _fill(
    letters, starts, ends, codes, size, values, counted, tables, taps, positions, bits,
    base, scale, cursor, out_indices, out_values,
):  # fmt: skip
    """The orders up to `counted` are counted through, the others hashed letter by letter."""
    wide = out_indices.dtype.type
    orders, width = np.uint64(len(values)), np.uint64(len(taps))
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
