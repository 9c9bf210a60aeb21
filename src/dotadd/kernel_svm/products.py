"""Inner products of the rows of two dense batches, in blocks, by BLAS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dotadd._jit import kernel, plain
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
    a_norms: np.ndarray
    b_norms: np.ndarray
    """Squared lengths of the rows, times scale^2, in float64."""

    column_bytes: int
    """What a column takes that has to be copied to be used."""

    def of(self, rows: np.ndarray) -> Into:
        """A function into(columns, out, first) that writes the products of these rows with some columns to
        out[:, first:first + len(columns)]; out is a C-contiguous array of float32."""
        raise NotImplementedError


class DenseProducts(Products):
    """Products of dense rows, flattened, by matrix products in `dtype`.

    Rows are copied to the type, scale and origin that they are used with, unless they lie in memory like that.

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
        self.a, self.a_norms = _working(a, scale, middle, dtype, threads)
        self.b, self.b_norms = (self.a, self.a_norms) if b is None else _working(b, scale, middle, dtype, threads)
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


def _working(
    batch: DenseRows, scale: float, middle: np.ndarray | None, dtype: type, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows as they are multiplied, and their squared lengths: those of the rounded rows, as the products are."""
    values = _flat(batch)
    as_it_is = middle is None and scale == 1.0 and values.dtype == dtype
    used = values if as_it_is else np.empty(values.shape, dtype)
    norms = np.empty(len(values))
    origin = np.zeros(values.shape[1]) if middle is None else middle

    def work(some: slice) -> None:
        part = values[some] if values.dtype in COMPILED else values[some].astype(np.float64)
        if as_it_is:
            _measure(plain(part), norms[some])
        else:
            _convert(plain(part), origin, scale, used[some], norms[some])

    for_each(pieces(values), work, threads)
    require_finite(norms)
    return used, norms


@kernel
def _convert(values, middle, scale, out, norms):
    for i in range(values.shape[0]):
        total = 0.0
        for k in range(np.uint64(values.shape[1])):
            value = (np.float64(values[i, k]) - middle[k]) * scale
            out[i, k] = value
            rounded = np.float64(out[i, k])
            total += rounded * rounded
        norms[i] = total


@kernel
def _measure(values, norms):
    for i in range(values.shape[0]):
        total = 0.0
        for k in range(np.uint64(values.shape[1])):
            total += np.float64(values[i, k]) * np.float64(values[i, k])
        norms[i] = total
