"""Inner products of the rows of two dense batches, in blocks, by BLAS; and the functions of them that kernels are.

Every kernel here is a function of one number, x_ij = <a_i, b_j> - r_i - c_j: the terms r and c are half the squared
lengths for RBF, whose x is minus half the squared distance, and r = -coef0 for the others. What multiplies the inner
products (gamma) is in the rows already. exp, powers and tanh are computed over blocks of float32, vectorised and on all
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.threads import for_each
from dotadd.data.batches import DenseRows
from dotadd.errors import DotaddError

Into = Callable[[np.ndarray | slice, np.ndarray, int], None]
CONVERTED = 1 << 20  # values that are converted at a time
COMPILED = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))  # other types of numbers become float64
SAMPLE = 1 << 12  # rows that tell where the data lies


class Products:
    """scale^2 <a_i, b_j> of the rows of two batches."""

    shape: tuple[int, int]
    column_bytes: int
    """What a column takes that has to be copied to be used."""

    @cached_property
    def a_norms(self) -> np.ndarray:
        """Squared lengths of the rows of the first batch, times scale^2, in float64."""
        raise NotImplementedError

    @cached_property
    def b_norms(self) -> np.ndarray:
        """Those of the second."""
        raise NotImplementedError

    def of(self, rows: np.ndarray) -> Into:
        """A function into(columns, out, first) that writes the products of these rows with some columns to
        out[:, first:first + len(columns)]; out is a C-contiguous array of float32."""
        raise NotImplementedError


class DenseProducts(Products):
    """Products of dense rows, flattened, by matrix products in `dtype`.

    Rows are copied to the type, scale and origin that they are used with, unless they lie in memory like that. Columns
    in which all rows of `a` are 0 by then, such as the edges of images, add nothing to products and are left out.

    middle: what is subtracted from all rows first. Distances stay what they are, while lengths become as small as they
    can be: |a|^2 + |b|^2 - 2 <a, b> is all rounding where the data lies far from 0, compared to its width.
    """

    def __init__(
        self,
        a: DenseRows,
        b: DenseRows | None,
        *,
        scale: float = 1.0,
        middle: np.ndarray | None = None,
        dtype: type = np.float32,
        threads: int = 1,
    ) -> None:
        origin = np.zeros(a.n_features) if middle is None else middle
        as_it_is = middle is None and scale == 1.0
        columns = np.arange(a.n_features) if as_it_is else _used_columns(a, origin)

        def working(batch: DenseRows) -> tuple[np.ndarray, np.ndarray]:
            return _working(batch, scale, origin, columns, dtype, threads, as_it_is)

        self.a, self.a_norms = working(a)
        self.b, self.b_norms = (self.a, self.a_norms) if b is None else working(b)
        self.shape = len(self.a), len(self.b)
        self.column_bytes = self.b.itemsize * self.b.shape[1]

    def of(self, rows: np.ndarray) -> Into:
        left = self.a[rows]

        def into(columns: np.ndarray | slice, out: np.ndarray, first: int) -> None:
            right = self.b[columns]
            np.matmul(left, right.T, out=out[:, first : first + len(right)])

        return into


class ExactDistances(DenseProducts):
    """Minus half the squared distances instead of products, in float64 until they are written."""

    def of(self, rows: np.ndarray) -> Into:
        left, lengths = self.a[rows], self.a_norms[rows, None] / 2

        def into(columns: np.ndarray | slice, out: np.ndarray, first: int) -> None:
            right = self.b[columns]
            products = left @ right.T
            products -= lengths
            products -= self.b_norms[columns] / 2
            out[:, first : first + len(right)] = products

        return into


def middle_of(batch: DenseRows) -> np.ndarray:
    """About the mean of each column, in float64: that of a few thousand rows."""
    values = _flat(batch)
    sample = values[:: max(1, len(values) // SAMPLE)]
    middle = sample.sum(axis=0, dtype=np.float64) / max(1, len(sample))
    return np.where(np.isfinite(middle), middle, 0.0)  # NaN is told by its row later


def require_finite(norms: np.ndarray) -> None:
    """Refuse rows whose squared length is no number."""
    bad = np.flatnonzero(~np.isfinite(norms))
    if len(bad):
        raise DotaddError(f"row {bad[0]} has NaN, infinity or a number that is too large: fill, drop or scale it first")


def _flat(batch: DenseRows) -> np.ndarray:
    return batch.values.reshape(len(batch), batch.n_features)


def pieces(values: np.ndarray) -> list[slice]:
    """The rows in pieces that may be converted at a time."""
    step = max(1, CONVERTED // max(1, values.shape[1]))
    return [slice(first, first + step) for first in range(0, len(values), step)]


def _compiled(values: np.ndarray) -> np.ndarray:
    """The values in a type that kernels are compiled for."""
    return plain(values if values.dtype in COMPILED else values.astype(np.float64))


def _used_columns(batch: DenseRows, origin: np.ndarray) -> np.ndarray:
    """The columns in which some row has another value than the origin."""
    values = _flat(batch)
    used, same = np.ones(batch.n_features, np.bool_), np.arange(batch.n_features)
    for some in pieces(values):
        if len(same):
            same = same[: _same(_compiled(values[some]), origin, same)]
    used[same] = False
    return np.flatnonzero(used)


def _working(
    batch: DenseRows,
    scale: float,
    origin: np.ndarray,
    columns: np.ndarray,
    dtype: type,
    threads: int,
    as_it_is: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """These columns of the rows as they are multiplied, and the squared lengths of the rows: those of the rounded rows,
    as the products are."""
    values = _flat(batch)
    as_it_is = as_it_is and values.dtype == dtype
    used = values if as_it_is else np.empty((len(values), len(columns)), dtype)
    norms = np.empty(len(values))

    def work(some: slice) -> None:
        if as_it_is:
            _measure(_compiled(values[some]), norms[some])
        else:
            _convert(_compiled(values[some]), origin, scale, columns, used[some], norms[some])

    for_each(pieces(values), work, threads)
    require_finite(norms)
    return used, norms


@kernel
def _same(values, origin, columns):
    """Moves those of the columns to the front in which all values are those of the origin; returns how many."""
    count = len(columns)
    for i in range(values.shape[0]):
        left = 0
        for c in range(count):
            k = columns[c]
            if np.float64(values[i, k]) == origin[k]:
                columns[left] = k
                left += 1
        count = left
        if count == 0:
            break
    return count


@kernel
def _convert(values, origin, scale, columns, out, norms):
    row = np.empty(values.shape[1], out.dtype)
    for i in range(values.shape[0]):
        total = 0.0
        for k in range(np.uint64(values.shape[1])):
            row[k] = (np.float64(values[i, k]) - origin[k]) * scale
            rounded = np.float64(row[k])
            total += rounded * rounded
        for c in range(np.uint64(len(columns))):
            out[i, c] = row[np.uint64(columns[c])]
        norms[i] = total


@kernel
def _measure(values, norms):
    for i in range(values.shape[0]):
        total = 0.0
        for k in range(np.uint64(values.shape[1])):
            total += np.float64(values[i, k]) * np.float64(values[i, k])
        norms[i] = total


EXPONENTIAL, POWER, TANGENT = 0, 1, 2
STRIP = 512  # columns that are shaped at a time: they stay in the L1 cache

# 2^f for f from -1/2 to 1/2: the polynomial that agrees with it in the Chebyshev points, to 1e-8
P0, P1, P2, P3 = np.float32(1.0), np.float32(0.69314718), np.float32(0.24022651), np.float32(0.055503272)
P4, P5, P6 = np.float32(0.0096180570), np.float32(0.0013400428), np.float32(0.00015461445)
ZERO, HALF, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
LOWEST, HIGHEST = np.float32(-126.0), np.float32(126.0)  # powers of two that float32 has
TWO_LOG2_E = np.float32(2.8853900817779268)
UNSEEN = np.float32(1e-6)  # share of the squared lengths below which float32 cannot tell a squared distance from 0


class Shaping(NamedTuple):
    """The function of x, and the terms of x for all rows and columns, in float32. `degree` is that of POWER."""

    kind: int
    row_terms: np.ndarray
    column_terms: np.ndarray
    degree: int = 1

    def apply(self, block: np.ndarray, first: int, rows: np.ndarray, columns: np.ndarray | slice) -> None:
        """Turn a block of inner products into kernel values, from column `first` on as many as there are columns."""
        terms = self.row_terms[rows], self.column_terms[columns]
        _apply(self.kind, self.degree, block, first, *terms)

    def add_up(
        self, block: np.ndarray, rows: np.ndarray, columns: np.ndarray | slice, factors: np.ndarray, out: np.ndarray
    ) -> None:
        """out[j] += sum_i factors[i] k_ij for a block of inner products, which is left as it is."""
        _add_up(self.kind, self.degree, block, self.row_terms[rows], self.column_terms[columns], factors, out)


@inner
def exp2(x):
    """2^x in float32 with a relative error of 1e-7, in operations that vectorise; never 0, but 1e-38 at the least."""
    x = min(max(x, LOWEST), HIGHEST)
    whole = np.floor(x + HALF)
    f = x - whole
    power = P0 + f * (P1 + f * (P2 + f * (P3 + f * (P4 + f * (P5 + f * P6)))))
    return power * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@inner
def _shape(kind, degree, products, row_term, column_terms, out):
    """Kernel values of a stretch of a row. `out` is another array: LLVM vectorises what it knows to lie apart."""
    if kind == EXPONENTIAL:
        for j in range(np.uint64(len(products))):
            lengths = row_term + column_terms[j]
            x = products[j] - lengths
            out[j] = exp2(ZERO if x > -UNSEEN * lengths else x)  # so k(z, z) is 1, whatever the rounding
    elif kind == POWER:
        for j in range(np.uint64(len(products))):
            x = products[j] - row_term - column_terms[j]
            power = x
            for _ in range(degree - 1):
                power *= x
            out[j] = power
    else:
        for j in range(np.uint64(len(products))):
            x = products[j] - row_term - column_terms[j]
            out[j] = ONE - TWO / (ONE + exp2(TWO_LOG2_E * x))


@kernel
def _apply(kind, degree, block, first, row_terms, column_terms):
    strip = np.empty(STRIP, np.float32)
    for i in range(block.shape[0]):
        for lo in range(0, len(column_terms), STRIP):
            hi = min(lo + STRIP, len(column_terms))
            values = block[i, first + lo : first + hi]
            _shape(kind, degree, values, row_terms[i], column_terms[lo:hi], strip)
            for j in range(np.uint64(hi - lo)):
                values[j] = strip[j]


@kernel
def _add_up(kind, degree, block, row_terms, column_terms, factors, out):
    strip = np.empty(STRIP, np.float32)
    for lo in range(0, len(out), STRIP):
        hi = min(lo + STRIP, len(out))
        sums = out[lo:hi]
        for i in range(block.shape[0]):
            _shape(kind, degree, block[i, lo:hi], row_terms[i], column_terms[lo:hi], strip)
            factor = factors[i]
            for j in range(np.uint64(hi - lo)):
                sums[j] += factor * np.float64(strip[j])
