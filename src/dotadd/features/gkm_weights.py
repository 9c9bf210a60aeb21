"""What an l-mer counts for another one m mismatches away, f(m), and what that is as a kernel, h(m), on four letters.

An operator whose entry for two l-mers depends on their mismatches alone is diagonal in the characters of the letters:
an l-mer of characters, j of which are not constant, is an eigenvector, with eigenvalue sum_m f(m) K_m(j), where
K_m(j) = sum_i (-1)^i 3^(m-i) C(j, i) C(l-j, m-i) are Krawtchouk's polynomials. So f, its eigenvalues and the kernel
h = f after f, whose eigenvalues are their squares, are three ways to write down one thing.

The filter of gapped k-mers (Ghandi et al. 2014) is the best estimate of the counts of l-mers from those of their gapped
k-mers, x' = A^+ A x, A being the matrix that counts these. That is the projection onto the characters with at most k
letters that are not constant: of a longer one gapped k-mers tell nothing. Its f falls with m, becomes negative and
swings; `truncated` ends it before it first does (Lee 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb, sqrt

LETTERS = 4
FILTERS = ("truncated", "full", "count")
ROUNDING = 1e-12  # of h(0): what is less comes of weights that are no fractions


@lru_cache
def krawtchouk(order: int) -> tuple[tuple[int, ...], ...]:
    """K_m(j) in row m and column j."""

    def value(m: int, j: int) -> int:
        terms = ((-1) ** i * (LETTERS - 1) ** (m - i) * comb(j, i) * comb(order - j, m - i) for i in range(m + 1))
        return sum(terms)

    return tuple(tuple(value(m, j) for j in range(order + 1)) for m in range(order + 1))


def eigenvalues(weights: Sequence[float | Fraction], order: int) -> list[Fraction]:
    """Those of the operator with these f(0), f(1), ..; the j-th belongs to j letters that are not constant."""
    rows = krawtchouk(order)
    return [sum((Fraction(f) * rows[m][j] for m, f in enumerate(weights)), Fraction(0)) for j in range(order + 1)]


def weights_of(values: Sequence[float | Fraction], order: int) -> list[Fraction]:
    """f(0) .. f(order) of the operator with these eigenvalues: the same sum again, over 4^order."""
    return [f / LETTERS**order for f in eigenvalues(values, order)]


@lru_cache
def kernel_weights(weights: tuple[float, ...], order: int) -> tuple[float, ...]:
    """h(0) .. h(order): <phi(u), phi(v)> of two l-mers with so many mismatches, where phi has these f."""
    found = [float(h) for h in weights_of([value * value for value in eigenvalues(weights, order)], order)]
    return tuple(h if abs(h) > ROUNDING * found[0] else 0.0 for h in found)


@lru_cache
def filter_weights(order: int, k: int, kind: str) -> tuple[float, ...]:
    """f(0), f(1), .. up to the last that is not 0, with f(0) = 1 for the estimates.

    "full": the projection above. "truncated": as far as it is positive. "count": the f whose kernel counts the gapped
    k-mers that two l-mers share, h(m) = C(order - m, k); its eigenvalues are the roots of those of h.
    """
    if kind == "count":
        shared = eigenvalues([comb(order - m, k) for m in range(order + 1)], order)
        return tuple(float(f) for f in weights_of([sqrt(value) for value in shared], order))
    full = weights_of([int(j <= k) for j in range(order + 1)], order)
    last = next((m for m, f in enumerate(full) if f <= 0), order + 1) if kind == "truncated" else order + 1
    while full[last - 1] == 0:
        last -= 1
    return tuple(float(f / full[0]) for f in full[:last])
