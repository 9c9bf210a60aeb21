"""Kernels: their parameters, and the Gram of some examples.

A kernel is an immutable description, and `repr(kernel)` is the expression that makes it again. A gamma of "scale" or
"auto", and maps that have to know the data's shape, are fixed by `resolve` with the training data. Degree, gamma and
coef0 mean what they mean in scikit-learn.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np

from dotadd._util.expression import call_repr
from dotadd._util.memory import Budget, available
from dotadd.data.batches import Batch, DenseRows, SparseRows
from dotadd.errors import DataError, DotaddError
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.linear import Linear
from dotadd.kernel_svm.degree_products import degree_products
from dotadd.kernel_svm.gram import (
    FeatureGram,
    Function,
    FunctionGram,
    GivenGram,
    Gram,
    ProductGram,
    require_finite_matrix,
    require_kernel_matrix,
)
from dotadd.kernel_svm.products import (
    EXPONENTIAL,
    POWER,
    TANGENT,
    DenseProducts,
    ExactDistances,
    Products,
    Shaping,
    middle_of,
    pieces,
)
from dotadd.kernel_svm.sparse_products import SparseProducts
from dotadd.problem.examples import InMemory

FLOAT32_EXPONENT = 8.0  # up to here the inner products of float32 give exponents to 1e-5
LARGEST = float(np.finfo(np.float32).max)
LOG2_E = math.log2(math.e)
KEPT = 0.25  # of the memory that is free, for rows of a map that takes longer to make them than they take to be read


@dataclass(frozen=True, repr=False)
class Kernel:
    """k(z, z'). Subclasses make Grams, and say what they read."""

    takes: ClassVar[tuple[type[Batch], ...]] = (DenseRows, SparseRows)
    """The kinds of batch this kernel reads."""

    saved = True
    """Whether a model file can hold it: its expression tells all."""

    @property
    def doubtful(self) -> bool:
        """Whether its parameters may make it indefinite."""
        return False

    @property
    def resolved(self) -> bool:
        """Whether nothing is left that depends on the training data."""
        return True

    def resolve(self, batch: Batch) -> Self:
        """The same kernel, with everything fixed that depends on the training data."""
        return self

    def gram(self, a: Batch, b: Batch | None = None, *, threads: int = 1) -> Gram:
        """The kernel between the rows of `a` and those of `b`, or of `a` with itself.

        What is not resolved yet is resolved with `a`, unless there is a `b`: then `a` need not be the training data.
        """
        if not self.resolved:
            if b is not None:
                raise DotaddError(f"{self!r} depends on the training data: resolve it with them first")
            return self.resolve(a).gram(a, threads=threads)
        return self._gram(self._own(a), None if b is None else self._own(b), threads)

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        raise NotImplementedError

    def _own(self, batch: Batch) -> Batch:
        """The rows themselves, if they are of a kind that this kernel reads."""
        batch = batch.own()
        if not isinstance(batch, self.takes):
            wanted = " or ".join(kind.kind for kind in self.takes)
            instead = ": use a map of strings such as Spectrum(8) as the kernel" if batch.kind == "strings" else ""
            raise DotaddError(f"{self!r} reads {wanted}, and the data is {batch.kind}{instead}")
        return batch

    def __repr__(self) -> str:
        given = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        return call_repr(type(self).__name__, **given)


@dataclass(frozen=True, repr=False)
class LinearKernel(Kernel):
    """<z, z'>"""

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        dense = _dense(a, b)
        return FeatureGram(*_expansions(a, b, threads), dense and DenseProducts(*dense, threads=threads))


class _Shaped(Kernel):
    """A function of gamma times inner products, or squared distances."""

    gamma: float | str

    def __post_init__(self) -> None:
        if not isinstance(self.gamma, str):
            object.__setattr__(
                self, "gamma", number_for("gamma", self.gamma, 'a number above 0, "scale" or "auto"', 0.0)
            )
        elif self.gamma not in ("scale", "auto"):
            raise DotaddError(f'gamma has to be a number above 0, "scale" or "auto", and not {self.gamma!r}')

    @property
    def resolved(self) -> bool:
        return not isinstance(self.gamma, str)

    def resolve(self, batch: Batch) -> Self:
        if self.resolved:
            return self
        rows = _vectors(self._own(batch))
        spread = variance(rows) if self.gamma == "scale" else 1.0
        gamma = 1.0 / (max(1, rows.n_features) * spread) if spread > 0.0 else 1.0
        resolved = copy(self)
        object.__setattr__(resolved, "gamma", gamma)
        return resolved

    def _products(self, a: Batch, b: Batch | None, threads: int) -> Products:
        """gamma <a_i, b_j>"""
        scale = math.sqrt(float(self.gamma))
        if dense := _dense(a, b):
            return DenseProducts(*dense, scale=scale, threads=threads)
        return SparseProducts(*_expansions(a, b, threads), scale=scale)


@dataclass(frozen=True, repr=False)
class PolynomialKernel(_Shaped):
    """(gamma <z, z'> + coef0)^degree"""

    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.degree, Integral) or isinstance(self.degree, bool) or not 1 <= self.degree <= 100:
            raise DotaddError(f"degree has to be a whole number from 1 to 100, and not {self.degree!r}")
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "coef0", number_for("coef0", self.coef0, "a number"))

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        products = self._products(a, b, threads)
        longest = math.sqrt(products.a_norms.max(initial=0.0) * products.b_norms.max(initial=0.0))
        if (math.log(longest + abs(self.coef0)) if longest > 0.0 else 0.0) * self.degree > math.log(LARGEST):
            raise DotaddError(f"{self!r} of these rows is more than float32 can hold: scale the data, or lower gamma")
        terms = np.full(products.shape[0], -self.coef0, np.float32), np.zeros(products.shape[1], np.float32)
        diagonal = (products.a_norms + self.coef0) ** self.degree
        return ProductGram(products, Shaping(POWER, *terms, self.degree), diagonal, threads)


@dataclass(frozen=True, repr=False)
class RBF(_Shaped):
    """exp(-gamma |z - z'|^2)"""

    gamma: float | str = "scale"

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        return of_distances(*self._distances(a, b, threads), threads)

    def _distances(self, a: Batch, b: Batch | None, threads: int) -> tuple[Products, bool]:
        """Products whose exponential to base 2, without half the squared lengths, is the kernel; whether these have
        been subtracted, in float64."""
        scale = math.sqrt(2.0 * float(self.gamma) * LOG2_E)
        if (dense := _dense(a, b)) is None:
            return sparse_distances(*_expansions(a, b, threads), scale)
        middle = middle_of(dense[0])
        products: Products = DenseProducts(*dense, scale=scale, middle=middle, threads=threads)
        if _short(products):
            return products, False
        del products
        return ExactDistances(*dense, scale=scale, middle=middle, dtype=np.float64, threads=threads), True


def sparse_distances(rows: InMemory, columns: InMemory, scale: float) -> tuple[Products, bool]:
    """The same of rows of a map."""
    products = SparseProducts(rows, columns, scale=scale)
    if _short(products):
        return products, False
    return SparseProducts(rows, columns, scale=scale, distances=True), True


def of_distances(products: Products, exact: bool, threads: int) -> Gram:
    """The Gram of such products."""
    rows, columns = products.shape
    if exact:
        terms = np.zeros(rows, np.float32), np.zeros(columns, np.float32)
    else:
        terms = (products.a_norms / 2).astype(np.float32), (products.b_norms / 2).astype(np.float32)
    return ProductGram(products, Shaping(EXPONENTIAL, *terms), np.ones(rows), threads)


def _short(products: Products) -> bool:
    """Whether distances may be computed from products in float32."""
    longest = max(products.a_norms.max(initial=0.0), products.b_norms.max(initial=0.0))
    return bool(longest <= 2.0 * LOG2_E * FLOAT32_EXPONENT)


@dataclass(frozen=True, repr=False)
class Sigmoid(_Shaped):
    """tanh(gamma <z, z'> + coef0), which for some gamma and coef0 is no inner product in any space."""

    gamma: float | str = "scale"
    coef0: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "coef0", number_for("coef0", self.coef0, "a number"))

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        products = self._products(a, b, threads)
        terms = np.full(products.shape[0], -self.coef0, np.float32), np.zeros(products.shape[1], np.float32)
        return ProductGram(products, Shaping(TANGENT, *terms), np.tanh(products.a_norms + self.coef0), threads)


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    """Kernel values that the user has computed: the examples are the rows of a square symmetric matrix.

    `gram(a, b)` takes a `b` with a row for each of other examples and a column for each training example; of `a`, which
    may be the training matrix or some rows of it, only the number of columns counts. Its Gram has a row for each of
    the training examples. Nothing is copied.
    """

    takes = (DenseRows,)

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        assert isinstance(a, DenseRows)
        if b is None:
            require_kernel_matrix(a.values)
            return GivenGram(a.values)
        assert isinstance(b, DenseRows)
        if b.n_features != a.n_features:
            raise DotaddError(
                f"the kernel matrix has {b.n_features} columns, and there are {a.n_features} training examples"
            )
        require_finite_matrix(b.values)
        return GivenGram(b.values.T)


@dataclass(frozen=True, repr=False)
class FunctionKernel(Kernel):
    """A function of one's own: function(A, B) gets two arrays of rows (CSR matrices of sparse ones) and returns the
    matrix of their kernel. A model file cannot hold it."""

    function: Function
    saved = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise DotaddError(f"FunctionKernel takes a function of two arrays, and not {self.function!r}")

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        return FunctionGram(self.function, a, b)

    def __repr__(self) -> str:
        return f"FunctionKernel({getattr(self.function, '__name__', repr(self.function))})"


@dataclass(frozen=True, repr=False)
class FeatureKernel(Kernel):
    """<phi(z), phi(z')>, for any map."""

    phi: FeatureMap

    def __post_init__(self) -> None:
        if not isinstance(self.phi, FeatureMap):
            raise DotaddError(f"FeatureKernel takes a feature map such as Spectrum(8), and not {self.phi!r}")
        object.__setattr__(self, "takes", self.phi.takes)

    @property
    def resolved(self) -> bool:
        try:
            return self.phi.dim >= 0
        except DotaddError:
            return False

    def resolve(self, batch: Batch) -> Self:
        rows = self._own(batch)
        return replace(self, phi=self.phi.resolve(Shape.of(rows)).learn(rows))

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        return FeatureGram(*self.expanded(a, b, threads), degree_products(self.phi, a, b, threads))

    def expanded(self, a: Batch, b: Batch | None, threads: int) -> tuple[InMemory, InMemory]:
        """phi of the rows of both batches, which are refused if it cannot take them."""
        for batch in (a, b):
            if batch is not None and (bad := self.phi.check(batch)) is not None:
                raise DataError(f"row {bad.row}: {bad.message}", column=bad.column)
        budget = Budget(int(KEPT * available())) if b is None else None  # predictions go through rows once or twice
        rows = InMemory(self.phi, a, threads=threads, budget=budget)
        return rows, rows if b is None else InMemory(self.phi, b, threads=threads)

    def __repr__(self) -> str:
        return call_repr("FeatureKernel", self.phi)


def variance(batch: DenseRows | SparseRows) -> float:
    """The variance of all values of a batch, zeros among them, as scikit-learn computes it."""
    size = len(batch) * batch.n_features
    if size == 0:
        return 0.0
    if isinstance(batch, SparseRows):
        from dotadd.features.linear import vectors

        first, stop = int(batch.offsets[0]), int(batch.offsets[-1])
        total = stop - first if batch.values is None else float(batch.values[first:stop].sum(dtype=np.float64))
        return float(vectors(batch).squared_norms().sum()) / size - (total / size) ** 2
    values = batch.values.reshape(len(batch), -1)
    mean = sum(float(values[some].sum(dtype=np.float64)) for some in pieces(values)) / size
    apart = (values[some].astype(np.float64) - mean for some in pieces(values))
    return sum(float(np.vdot(part, part)) for part in apart) / size


def _vectors(batch: Batch) -> DenseRows | SparseRows:
    """What `gram` has looked at already."""
    assert isinstance(batch, DenseRows | SparseRows)
    return batch


def _dense(a: Batch, b: Batch | None) -> tuple[DenseRows, DenseRows | None] | None:
    """Both, if both are dense. Two widths that do not fit are refused."""
    if b is not None:
        theirs, ours = _vectors(b).n_features, _vectors(a).n_features
        if theirs > ours or (isinstance(b, DenseRows) and theirs != ours):
            raise DotaddError(f"rows have {theirs} features, and those of the kernel's other side {ours}")
    return (a, b) if isinstance(a, DenseRows) and isinstance(b, DenseRows | None) else None


def _expansions(a: Batch, b: Batch | None, threads: int) -> tuple[InMemory, InMemory]:
    """Vectors as maps see them."""
    phi = Linear(n_features=_vectors(a).n_features)
    rows = InMemory(phi, a, threads=threads)
    return rows, rows if b is None else InMemory(phi, b, threads=threads)


def number_for(name: str, value: object, wanted: str, above: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not above < float(value) < math.inf:
        raise DotaddError(f"{name} has to be {wanted}, and not {value!r}")
    return float(value)


SAMPLE = 256  # examples that are looked at together
ROUNDING = 1e-6  # of the largest value and an example: what eigenvalues of values in float32 may be off


def in_doubt(kernel: Kernel) -> bool:
    """Whether a kernel of this kind may be indefinite."""
    if isinstance(kernel, PolynomialKernel):
        return kernel.coef0 < 0.0
    return kernel.doubtful or isinstance(kernel, Sigmoid | Precomputed | FunctionKernel)


def sample(n: int, seed: int) -> np.ndarray:
    """The examples to look at, of n."""
    return np.sort(np.random.default_rng(seed).permutation(n)[:SAMPLE])


def negative_eigenvalue(gram: Gram, numbers: np.ndarray) -> float | None:
    """A negative eigenvalue of a small Gram, if it has one that is no rounding. What is not symmetric is refused, by
    these numbers of its rows.

    Of a sample it proves enough: by Cauchy's interlacing theorem the kernel matrix of all examples has an eigenvalue at
    least as low.
    """
    everyone = np.arange(gram.shape[0])
    values = gram.block(everyone, everyone).astype(np.float64)
    largest = float(np.abs(values).max())
    i, j = np.unravel_index(np.argmax(np.abs(values - values.T)), values.shape)
    if abs(values[i, j] - values[j, i]) > 1e-4 * largest:
        raise DotaddError(
            f"the kernel is not symmetric: it is {values[i, j]:g} for rows {numbers[i]} and {numbers[j]}, and "
            f"{values[j, i]:g} the other way round"
        )
    lowest = float(np.linalg.eigvalsh((values + values.T) / 2)[0])
    return lowest if lowest < -ROUNDING * len(values) * largest else None
