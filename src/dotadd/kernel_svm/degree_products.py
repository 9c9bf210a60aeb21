"""The weighted degree kernel of two strings from their bits, without phi.

Letters are written in bits, position by position: a word for each bit of a letter's number and 64 positions, and one
that says where a letter counts at all. So a few operations tell at which of 64 positions two strings agree. They have
the same (d+1)-mer where they have the same d-mer and the same d-mer at the next position; it is all shifts by one, and
k(z, z') is the sum over d of beta_d times the number of ones.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.threads import for_each, row_pieces
from dotadd.data.batches import Batch, Strings
from dotadd.features.alphabet import FOREIGN
from dotadd.features.base import FeatureMap
from dotadd.features.terms import Term
from dotadd.features.weighted_degree import WeightedDegree
from dotadd.kernel_svm.products import Into, Products


def degree_products(phi: FeatureMap, a: Batch, b: Batch | None, threads: int) -> Products | None:
    """Products of the rows of two batches, if phi is a weighted degree map, maybe normalized, that is not hashed."""
    degree = phi.phi if isinstance(phi, Term) and phi == phi.phi.normalized() else phi
    if type(degree) is not WeightedDegree or degree.bits is not None:
        return None
    return DegreeProducts(degree, a, b, normalized=degree is not phi, threads=threads)


class DegreeProducts(Products):
    """sum_d beta_d times the number of positions at which two rows have the same d-mer; normalized over both lengths.

    A row takes 24 bytes for 64 letters of DNA.
    """

    column_bytes = 0

    def __init__(self, phi: WeightedDegree, a: Batch, b: Batch | None, *, normalized: bool, threads: int = 1) -> None:
        self.beta, self.threads = phi.layout().values ** 2, threads
        self.a, self.a_factor, self.a_norms = self._side(phi, a, normalized)
        mine = self.a, self.a_factor, self.a_norms
        self.b, self.b_factor, self.b_norms = mine if b is None else self._side(phi, b, normalized)
        self.shape = len(self.a), len(self.b)

    def _side(self, phi: WeightedDegree, batch: Batch, normalized: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bits, what each row is multiplied by, and squared lengths after that."""
        assert isinstance(batch, Strings)
        starts, ends = phi.places(batch, np.arange(len(batch), dtype=np.int64))
        words = -(-phi.known_length() // 64)
        planes = (phi.alphabet.size - 1).bit_length()
        bits = np.zeros((len(batch), planes + 1, words), np.uint64)
        _write(plain(batch.letters), starts, ends, phi.codes(), bits)
        norms = np.empty(len(batch))
        _lengths(bits, self.beta, norms)
        if not normalized:
            return bits, np.ones(len(batch)), norms
        factor = np.divide(1.0, np.sqrt(norms), out=np.zeros(len(batch)), where=norms > 0.0)
        return bits, factor, (norms > 0.0).astype(np.float64)

    def of(self, rows: np.ndarray) -> Into:
        def into(columns: np.ndarray | slice, out: np.ndarray, first: int) -> None:
            if isinstance(columns, slice):
                columns = np.arange(*columns.indices(self.shape[1]))

            def work(piece: tuple[int, int]) -> None:
                some = columns[slice(*piece)]
                _multiply(
                    self.a, self.a_factor, rows, self.b, self.b_factor, some, self.beta, first + piece[0], out
                )  # fmt: skip

            for_each(row_pieces(len(columns), self.threads, 4), work, self.threads)

        return into


@kernel
def _write(letters, starts, ends, codes, bits):
    planes = bits.shape[1] - 1
    for j in range(len(starts)):
        for i in range(ends[j] - starts[j]):
            code = codes[letters[starts[j] + i]]
            if code == np.uint16(FOREIGN):
                continue
            word, one = i >> 6, np.uint64(1) << np.uint64(i & 63)
            bits[j, planes, word] |= one
            for plane in range(planes):
                if (code >> plane) & 1:
                    bits[j, plane, word] |= one


@kernel
def _lengths(bits, beta, norms):
    same = np.empty(bits.shape[2], np.uint64)
    for j in range(len(norms)):
        norms[j] = _product(bits[j], bits[j], beta, same)


@kernel
def _multiply(a, a_factor, rows, b, b_factor, columns, beta, first, out):
    same = np.empty(a.shape[2], np.uint64)
    for j in range(len(columns)):
        for r in range(len(rows)):
            value = _product(a[rows[r]], b[columns[j]], beta, same)
            out[r, first + j] = a_factor[rows[r]] * b_factor[columns[j]] * value


@inner
def _product(x, y, beta, same):
    """`same` is room for the positions at which x and y agree."""
    planes, words = x.shape[0] - 1, x.shape[1]
    for k in range(words):
        apart = np.uint64(0)
        for plane in range(planes):
            apart |= x[plane, k] ^ y[plane, k]
        same[k] = x[planes, k] & y[planes, k] & ~apart
    total = 0.0
    for d in range(1, len(beta)):
        count = np.uint64(0)
        for k in range(words):
            count += _ones(same[k])
        if count == np.uint64(0):
            break
        total += beta[d] * np.float64(count)
        for k in range(words):
            next_word = same[k + 1] if k + 1 < words else np.uint64(0)
            same[k] &= (same[k] >> np.uint64(1)) | (next_word << np.uint64(63))
    return total


@inner
def _ones(x):
    """How many bits of x are set."""
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.uint64(x * np.uint64(0x0101010101010101)) >> np.uint64(56)
