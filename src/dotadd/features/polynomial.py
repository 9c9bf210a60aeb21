"""Polynomial: all products of two or three coordinates.

    k(z, z') = (<z, z'> + coef0)**degree

phi(z) has a feature for each monomial z_i z_j (z_k) with i <= j <= k, times the square root of the number of orders in
which its coordinates can be written. Only the monomials of a row's non-zeros are ever made. With coef0 > 0 each row
has one more coordinate, in front, whose value is sqrt(coef0).

The monomials are numbered by the combinatorial number system, C(k+2, 3) + C(j+1, 2) + i: a dense numbering that does
not depend on the number of columns, in which products with the same largest coordinates lie side by side.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.core.block import Block
from dotadd.data.batches import LARGEST_VALUE, Batch, DenseRows, SparseRows
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, Origins, Shape, checked_dim
from dotadd.features.forms import slot_of
from dotadd.features.leaves import HashingLeaf, checked_factor, checked_int
from dotadd.features.linear import checked_columns, row_lengths, too_large, too_wide, vectors

Count = TypeVar("Count", int, np.ndarray)


class Polynomial(HashingLeaf):
    """The polynomial kernel (<z, z'> + coef0)**degree of degree 2 or 3; homogeneous if coef0 is 0.

    n_features: the number of columns; by default that of the training data. `.hashed(bits)` needs none.
    """

    takes = (SparseRows, DenseRows)
    keeps = False
    distinct = True

    def __init__(self, degree: int, *, coef0: float = 0.0, n_features: int | None = None) -> None:
        self.degree = checked_int("degree", degree, 2, 3)
        self.coef0 = checked_factor("coef0", coef0, self.largest**2)
        if self.coef0 < 0:
            raise FeatureError(f"coef0 has to be a number that is not negative, and not {coef0!r}")
        self.n_features = None if n_features is None else checked_int("n_features", n_features, 0, 2**62)

    @property
    def dim(self) -> int:
        if self.bits is not None:
            return 2**self.bits
        if self.n_features is None:
            raise FeatureError(f"{self!r} does not know the number of columns yet: give n_features=, or call fit(X)")
        return checked_dim(self, self._monomials(self.n_features))

    @property
    def largest(self) -> float:
        """The largest coordinate: products of more than two may not be larger than those of two."""
        return LARGEST_VALUE ** (2 / self.degree)

    def resolve(self, shape: Shape) -> Polynomial:
        if self.bits is not None or self.n_features is not None:
            return self
        resolved = copy.copy(self)
        resolved.n_features = shape.n_features
        checked_dim(resolved, resolved.dim)
        return resolved

    def check(self, batch: Batch) -> BadRow | None:
        wide = None if self.bits is not None or self.n_features is None else too_wide(batch, self.n_features)
        return wide or too_large(batch, self.largest, f"the products of {self.degree} such values")

    @property
    def checks_rows(self) -> bool:
        return self.largest < LARGEST_VALUE  # or no source lets in what is too large for it

    def bound(self, batch: Batch) -> int | np.ndarray:
        lengths = row_lengths(batch)
        return self._monomials(lengths) if isinstance(lengths, int) else self._monomials(lengths.astype(np.int64))

    def _monomials(self, n: Count) -> Count:
        """How many monomials n coordinates have, and the constant one if there is one."""
        n = n + (self.coef0 > 0)
        return n * (n + 1) // 2 if self.degree == 2 else n * (n + 1) * (n + 2) // 6

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        source = vectors(batch)
        _fill(
            source.start, source.end, source.indices, source.values, plain(rows), self.degree, math.sqrt(self.coef0),
            self.bits or 0, block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip

    def invert(self, slots: np.ndarray) -> Origins:
        names = Origins.unnamed(repr(self), len(slots))
        if self.bits is None:
            names.text[:] = [name.encode() for name in self._products(slots, None)]
        return names

    def names(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str | None]:
        if self.bits is not None:
            return [None] * len(slots)
        return list(self._products(slots, checked_columns(self, columns)))

    def _products(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str]:
        """The products with these numbers, written as scikit-learn writes them: x0 x1^2."""
        rest, names = slots.astype(np.int64), [Counter[int]() for _ in slots]
        for degree in range(self.degree, 0, -1):
            coordinate = _largest(rest, degree)
            rest = rest - _simplex(coordinate, degree)
            for name, at in zip(names, coordinate.tolist(), strict=True):
                name[at] += 1
        constant = int(self.coef0 > 0)
        return [_product(name, constant, columns) for name in names]

    def hash_into(self, bits: int) -> None:
        """Hash the numbers of monomials."""
        super().hash_into(bits)
        self.distinct = False


def _simplex(k: np.ndarray, degree: int) -> np.ndarray:
    """Numbers of coordinates up to k - 1, in order, of which there are `degree`: C(k + degree - 1, degree)."""
    return k if degree == 1 else k * (k + 1) // 2 if degree == 2 else k * (k + 1) // 2 * (k + 2) // 3


def _largest(numbers: np.ndarray, degree: int) -> np.ndarray:
    """The largest k with _simplex(k) <= number: a root that rounding may have moved, and its neighbours."""
    k = ((math.factorial(degree) * numbers.astype(np.float64)) ** (1 / degree)).astype(np.int64) + 1
    for _ in range(degree + 2):
        k = np.where((k > 0) & (_simplex(k, degree) > numbers), k - 1, k)
    return k


def _product(powers: Counter[int], constant: int, columns: Sequence[str] | None) -> str:
    factors = []
    for at, power in sorted(powers.items()):
        if at >= constant:
            name = f"x{at - constant}" if columns is None else columns[at - constant]
            factors.append(name if power == 1 else f"{name}^{power}")
    return " ".join(factors) or "1"


@inner
def _gather(indices, values, lo, hi, constant, coordinates, z):
    """The row's non-zeros in order of their index, equal ones added up, behind the constant. Returns how many."""
    n = 0
    shift = np.uint64(0)
    if constant > 0.0:
        coordinates[0], z[0] = np.uint64(0), constant
        n, shift = 1, np.uint64(1)
    for p in range(np.uint64(lo), np.uint64(hi)):
        value = 1.0 if values is None else np.float64(values[p])
        if value == 0.0:
            continue
        coordinate = (p - np.uint64(lo) if indices is None else np.uint64(indices[p])) + shift
        at = n
        while at > 0 and coordinates[at - 1] > coordinate:
            at -= 1
        if at > 0 and coordinates[at - 1] == coordinate:
            z[at - 1] += value
            continue
        for q in range(n, at, -1):
            coordinates[q], z[q] = coordinates[q - 1], z[q - 1]
        coordinates[at], z[at] = coordinate, value
        n += 1
    return n


@kernel
def _fill(
    start, end, indices, values, rows, degree, constant, bits, base, scale, cursor, out_indices, out_values
):  # fmt: skip
    longest = np.int64(0)
    for r in range(len(rows)):
        longest = max(longest, np.int64(end[rows[r]] - start[rows[r]]))
    coordinates = np.empty(longest + 1, np.uint64)
    z = np.empty(longest + 1, np.float64)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    # orders of writing a product: 6 or 2 if all coordinates differ, 3 where two of three are equal, 1 if all are
    root2, root3, root6 = np.sqrt(2.0), np.sqrt(3.0), np.sqrt(6.0)
    for r in range(len(rows)):
        n = np.uint64(_gather(indices, values, start[rows[r]], end[rows[r]], constant, coordinates, z))
        p = np.uint64(cursor[r])
        for c in range(n):
            k = coordinates[c]
            triangle = k * (k + one) // two
            if degree == 2:
                p = _fill_products(
                    coordinates, z, c, triangle, scale * z[c], root2, 1.0, bits, base, p, out_indices, out_values
                )
                continue
            pyramid = triangle * (k + two) // three
            for b in range(c + one):
                j = coordinates[b]
                apart, equal = (root3, 1.0) if b == c else (root6, root3)
                p = _fill_products(
                    coordinates, z, b, pyramid + j * (j + one) // two, scale * z[c] * z[b], apart, equal, bits, base,
                    p, out_indices, out_values,
                )  # fmt: skip
        cursor[r] = p


@inner
def _fill_products(coordinates, z, last, first_number, factor, apart, equal, bits, base, p, out_indices, out_values):
    """factor * z_i for the coordinates i up to `last`, numbered from first_number on."""
    for a in range(last + np.uint64(1)):
        number = first_number + coordinates[a]
        out_indices[p] = np.uint64(base) + (number if bits == 0 else slot_of(number, bits))
        out_values[p] = factor * z[a] * (equal if a == last else apart)
        p += np.uint64(1)
    return p
