"""Whether a kernel is an inner product at all: looked at on a sample, since a proof would cost more than training."""

from __future__ import annotations

import numpy as np

from dotadd.errors import DotaddError
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.kernels import FunctionKernel, Kernel, PolynomialKernel, Precomputed, Sigmoid

SAMPLE = 256  # examples that are looked at together
ROUNDING = 1e-6  # of the largest value and an example: what eigenvalues of values in float32 may be off


def in_doubt(kernel: Kernel) -> bool:
    """Whether a kernel of this kind may be indefinite."""
    if isinstance(kernel, PolynomialKernel):
        return kernel.coef0 < 0.0
    return isinstance(kernel, Sigmoid | Precomputed | FunctionKernel)


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
