"""Gram: the kernel between the rows of two batches, computed in blocks and never stored whole.

The narrow waist of kernel machines: kernels fill blocks, solvers see blocks. A solver asks for some rows of the matrix
(`block`), or for what it really wants, a sum of some rows for all columns (`times`). Kernels without a feature space to
go through (functions of inner products, given matrices, functions) work in tiles of rows and columns, so that few
kernel values exist at a time. Kernels that know their feature space compute sums through w without a single kernel
value: clear w, ADD the rows, DOT with all columns (linadd), which costs one DOT a column, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from dotadd._util.threads import for_each
from dotadd.data.batches import Batch, DenseRows, SparseRows
from dotadd.errors import DotaddError
from dotadd.kernel_svm.products import EXPONENTIAL, Into, Products, Shaping
from dotadd.kernel_svm.sparse_products import SparseProducts
from dotadd.problem.examples import InMemory


class Gram:
    """k(a_i, b_j) of the rows a_i of one batch and b_j of another, which may be the same."""

    shape: tuple[int, int]
    """Rows and columns."""

    linadd: bool = False
    """Whether `times` goes through w: its cost does not depend on how many rows are summed up."""

    doubles: bool = False
    """Whether `times` adds up values that were not rounded to float32."""

    definite: bool = False
    """Whether it is an inner product for sure: no sum moves by more than the length of a row times the way of w."""

    whole: np.ndarray | None = None
    """All of its values, where they lie in memory."""

    def diagonal(self) -> np.ndarray:
        """k(a_i, a_i) in float64; of a square Gram only."""
        raise NotImplementedError

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """k(a_i, b_j) for these rows and columns (all by default), in float32: an array of their lengths."""
        raise NotImplementedError

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """sum_i coefficients[i] k(a_rows[i], b_j) for these columns j (all by default), in float64."""
        raise NotImplementedError

    def add_sums(self, coefficients: np.ndarray, out: np.ndarray) -> None:
        """out[p, j] += sum_i coefficients[p, i] k(a_i, b_j): several sums of all rows, for all columns."""
        for some, sums in zip(coefficients, out, strict=True):
            rows = np.flatnonzero(some)
            sums += self.times(rows, some[rows])


class SomeRows(Gram):
    """A square Gram's rows and columns `rows`, without a copy of its values."""

    def __init__(self, gram: Gram, rows: np.ndarray) -> None:
        self.gram, self.rows = gram, rows
        self.shape, self.linadd, self.doubles = (len(rows), len(rows)), gram.linadd, gram.doubles
        self.definite = gram.definite

    def diagonal(self) -> np.ndarray:
        return self.gram.diagonal()[self.rows]

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return self.gram.block(self.rows[rows], self._columns(columns))

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return self.gram.times(self.rows[rows], coefficients, self._columns(columns))

    def _columns(self, columns: np.ndarray | None) -> np.ndarray:
        return self.rows if columns is None else self.rows[columns]


if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Function = Callable[..., object]  # a user's, of two arrays or CSR matrices; what it returns is looked at
TILE = 1 << 21  # kernel values at a time: 8 MB of float32
ROWS = 1 << 11  # of a tile
SHARE, NARROWEST = 1 << 16, 512  # values, and columns, of the piece of a tile that one thread computes
COPIED = 1 << 25  # bytes of columns that are copied at a time
DIAGONAL = 32  # rows whose kernel with each other is asked of a function, for the sake of the diagonal


class ProductGram(Gram):
    """A function of inner products, and of the lengths of rows. `diagonal` is what `diagonal()` returns."""

    def __init__(self, products: Products, shaping: Shaping, diagonal: np.ndarray, threads: int) -> None:
        self.products, self.shaping, self.threads = products, shaping, threads
        self.shape, self._diagonal = products.shape, diagonal
        self.definite = shaping.kind == EXPONENTIAL

    def diagonal(self) -> np.ndarray:
        return self._diagonal

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return block_of_products(self.products, rows, columns, self.threads, self.shaping)

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        out = np.zeros(self.shape[1] if columns is None else len(columns))
        for some in _cut(len(rows), ROWS):
            into, theirs = self.products.of(rows[some]), rows[some]
            factors = np.ascontiguousarray(coefficients[some], np.float64)

            def work(
                tile: slice, into: Into = into, theirs: np.ndarray = theirs, factors: np.ndarray = factors
            ) -> None:
                at = tile if columns is None else columns[tile]
                block = np.empty((len(theirs), tile.stop - tile.start), np.float32)
                into(at, block, 0)
                self.shaping.add_up(block, theirs, at, factors, out[tile])

            for_each(list(_cut(len(out), _width(self.products, len(theirs)))), work, self.threads)
        return out


def block_of_products(
    products: Products, rows: np.ndarray, columns: np.ndarray | None, threads: int, shaping: Shaping | None = None
) -> np.ndarray:
    """Inner products of these rows and columns (all by default), or what a shaping makes of them.

    Threads share out pieces that do not depend on their number, and so no value does.
    """
    out = np.empty((len(rows), products.shape[1] if columns is None else len(columns)), np.float32)
    for some in _cut(len(rows), ROWS):
        into, theirs = products.of(rows[some]), rows[some]

        def work(tile: slice, into: Into = into, theirs: np.ndarray = theirs, block: np.ndarray = out[some]) -> None:
            at = tile if columns is None else columns[tile]
            into(at, block, tile.start)
            if shaping is not None:
                shaping.apply(block, tile.start, theirs, at)

        for_each(list(_cut(out.shape[1], _width(products, len(theirs)))), work, threads)
    return out


def _width(products: Products, rows: int) -> int:
    """Columns of a piece."""
    return max(NARROWEST, min(SHARE // max(1, rows), COPIED // max(1, products.column_bytes)))


def _cut(length: int, step: int) -> Iterator[slice]:
    return (slice(first, min(first + step, length)) for first in range(0, length, step))


class TiledGram(Gram):
    """A Gram whose values somebody else knows: subclasses return them in any type of number."""

    doubles = True

    def _values(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        columns = np.arange(self.shape[1]) if columns is None else columns
        out = np.empty((len(rows), len(columns)), np.float32)
        for some, tile in self._tiles(len(rows), len(columns)):
            out[some, tile] = self._values(rows[some], columns[tile])
        return out

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        columns = np.arange(self.shape[1]) if columns is None else columns
        out = np.zeros(len(columns))
        for some, tile in self._tiles(len(rows), len(columns)):
            out[tile] += coefficients[some] @ self._values(rows[some], columns[tile]).astype(np.float64, copy=False)
        return out

    def _tiles(self, rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
        for some in _cut(rows, ROWS):
            for tile in _cut(columns, max(1, TILE // (some.stop - some.start))):
                yield some, tile


class GivenGram(TiledGram):
    """A kernel matrix that the user has computed; it is not copied."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.values).astype(np.float64)

    def _values(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.values[np.ix_(rows, columns)]


class FunctionGram(TiledGram):
    """The values of a user's function f(A, B), which gets rows as arrays (sparse rows as a CSR matrix)."""

    def __init__(self, function: Function, a: Batch, b: Batch | None) -> None:
        self.function, self.a, self.b = function, a, a if b is None else b
        self.shape = len(self.a), len(self.b)

    def diagonal(self) -> np.ndarray:
        out = np.empty(len(self.a))
        for some in _cut(len(out), DIAGONAL):
            rows = np.arange(some.start, some.stop)
            out[some] = np.diagonal(self._values(rows, rows))
        return out

    def _values(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        found = self.function(_arrays(self.a, rows), _arrays(self.b, columns))
        if hasattr(found, "toarray"):
            found = found.toarray()
        values = np.asarray(found)
        if values.shape != (len(rows), len(columns)) or values.dtype.kind not in "biuf":
            made = f"an array of shape {values.shape} and type {values.dtype}"
            raise DotaddError(
                f"the kernel function returned {made} for {len(rows)} and {len(columns)} rows, where numbers of shape "
                f"{(len(rows), len(columns))} are wanted"
            )
        if not np.isfinite(values).all():
            i, j = np.argwhere(~np.isfinite(values))[0]
            raise DotaddError(f"the kernel function returned {values[i, j]} for rows {rows[i]} and {columns[j]}")
        return values


def _arrays(batch: Batch, rows: np.ndarray) -> np.ndarray | csr_matrix:
    """Rows for a user's function."""
    if isinstance(batch, DenseRows):
        return batch.values[rows].reshape(len(rows), batch.n_features)
    assert isinstance(batch, SparseRows)
    from scipy.sparse import csr_matrix

    some = batch.take(rows)
    values = np.ones(len(some.indices)) if some.values is None else some.values
    return csr_matrix((values, some.indices, some.offsets), shape=(len(rows), batch.n_features))


def require_kernel_matrix(values: np.ndarray) -> None:
    """Refuse what cannot be the kernel of some examples with themselves."""
    rows, columns = values.shape
    if rows != columns:
        raise DotaddError(f"the kernel matrix is not square: it has {rows} rows and {columns} columns")
    step = 1 << 10
    largest = require_finite_matrix(values)
    for first in range(0, rows, step):
        for second in range(first, rows, step):
            some, others = slice(first, first + step), slice(second, second + step)
            upper, lower = values[some, others], values[others, some].T
            apart = ~np.isclose(upper, lower, rtol=1e-5, atol=1e-6 * largest)
            if apart.any():
                i, j = np.argwhere(apart)[0]
                raise DotaddError(
                    f"the kernel matrix is not symmetric: entry ({first + i}, {second + j}) is {upper[i, j]}, and "
                    f"({second + j}, {first + i}) is {lower[i, j]}"
                )


def require_finite_matrix(values: np.ndarray) -> float:
    """Refuse NaN and infinity; the largest absolute value."""
    largest = 0.0
    for some in _cut(len(values), max(1, TILE // max(1, values.shape[1]))):
        part = values[some]
        if not np.isfinite(part).all():
            i, j = np.argwhere(~np.isfinite(part))[0]
            raise DotaddError(f"the kernel matrix has {part[i, j]} at entry ({some.start + i}, {j})")
        largest = max(largest, float(np.abs(part).max(initial=0.0)))
    return largest


EXACT_SLOTS = 1 << 27  # of a w in float64: 1 GB. A sum from scratch in float32 is off by more than solvers notice
WEIGHTS = 1 << 25  # slots of the w that are summed up together
MOST_SLOTS = 1 << 30  # of a w in float32: 4 GB. In larger spaces kernel values are cheaper


class FeatureGram(TiledGram):
    """The kernel of a map. `products` may bring a faster way to single values than sparse rows."""

    definite = True

    def __init__(self, a: InMemory, b: InMemory, products: Products | None = None) -> None:
        self.a, self.b = a, b
        self.products = SparseProducts(a, b) if products is None else products
        self.shape, self.linadd = (len(a), len(b)), a.dim <= MOST_SLOTS

    def diagonal(self) -> np.ndarray:
        return self.products.a_norms

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return block_of_products(self.products, rows, columns, self.b.threads)

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        if not self.linadd or len(rows) == 0:
            return super().times(rows, coefficients, columns)
        w = self._zeros()
        self.a.add([np.bincount(rows, coefficients, len(self.a))], [w])
        return self.b.dot([w], columns)[0]

    def add_sums(self, coefficients: np.ndarray, out: np.ndarray) -> None:
        if not self.linadd:
            return super().add_sums(coefficients, out)
        step = max(1, WEIGHTS // max(1, self.a.dim))
        for first in range(0, len(out), step):
            some = coefficients[first : first + step]
            ws = [self._zeros() for _ in some]
            self.a.add(list(some), ws)
            for sums, found in zip(out[first : first + step], self.b.dot(ws), strict=True):
                sums += found
        return None

    def _zeros(self) -> np.ndarray:
        return np.zeros(self.a.dim, np.float64 if self.a.dim <= EXACT_SLOTS else np.float32)

    _values = block
