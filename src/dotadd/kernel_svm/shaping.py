"""From inner products to kernel values: exp, powers and tanh over blocks of float32, vectorised and on all threads.

Every kernel here is a function of one number, x_ij = <a_i, b_j> - r_i - c_j: the terms r and c are half the squared
lengths for RBF, whose x is minus half the squared distance, and r = -coef0 for the others. What multiplies the inner
products (gamma) is in the rows already.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel
from dotadd._util.threads import for_each

EXPONENTIAL, POWER, TANGENT = 0, 1, 2
STRIP = 512  # columns that are shaped at a time: they stay in the L1 cache
SHARE = 1 << 16  # values that are worth a thread of their own

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

    def apply(self, block: np.ndarray, rows: np.ndarray, columns: np.ndarray | slice, threads: int) -> None:
        """Turn a block of inner products into kernel values."""
        r, c = self.row_terms[rows], self.column_terms[columns]

        def work(stretch: tuple[int, int]) -> None:
            _apply(self.kind, self.degree, block, *stretch, r, c)

        for_each(_stretches(block, threads), work, threads)

    def add_up(
        self, block: np.ndarray, rows: np.ndarray, columns: np.ndarray | slice, coefficients: np.ndarray,
        out: np.ndarray, threads: int,
    ) -> None:  # fmt: skip
        """out[j] += sum_i coefficients[i] k_ij for a block of inner products, which is left as it is."""
        r, c = self.row_terms[rows], self.column_terms[columns]

        def work(stretch: tuple[int, int]) -> None:
            _add_up(self.kind, self.degree, block, *stretch, r, c, coefficients, out)

        for_each(_stretches(block, threads), work, threads)


def _stretches(block: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """The columns of a block in stretches (first, stop) for the threads."""
    columns = block.shape[1]
    count = max(1, min(2 * threads, block.size // SHARE)) if threads > 1 else 1
    step = max(1, -(-columns // count))
    return [(first, min(first + step, columns)) for first in range(0, columns, step)]


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
def _apply(kind, degree, block, first, stop, row_terms, column_terms):
    strip = np.empty(STRIP, np.float32)
    for i in range(block.shape[0]):
        for lo in range(first, stop, STRIP):
            hi = min(lo + STRIP, stop)
            _shape(kind, degree, block[i, lo:hi], row_terms[i], column_terms[lo:hi], strip)
            for j in range(np.uint64(hi - lo)):
                block[i, np.uint64(lo) + j] = strip[j]


@kernel
def _add_up(kind, degree, block, first, stop, row_terms, column_terms, coefficients, out):
    strip = np.empty(STRIP, np.float32)
    for lo in range(first, stop, STRIP):
        hi = min(lo + STRIP, stop)
        sums = out[lo:hi]
        for i in range(block.shape[0]):
            _shape(kind, degree, block[i, lo:hi], row_terms[i], column_terms[lo:hi], strip)
            coefficient = coefficients[i]
            for j in range(np.uint64(hi - lo)):
                sums[j] += coefficient * np.float64(strip[j])
