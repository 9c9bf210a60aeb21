"""Plain twins of the feature maps: phi(z) as a dictionary, and the kernels by their own definitions."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

import numpy as np


def dot(a: dict, b: dict) -> float:
    return sum(value * b.get(key, 0.0) for key, value in a.items())


def gram(features: list[dict]) -> np.ndarray:
    return np.array([[dot(a, b) for b in features] for a in features])


def rows_of(matrix) -> list[dict]:
    """The rows of a sparse matrix as dictionaries."""
    spans = zip(matrix.indptr, matrix.indptr[1:], strict=False)
    return [dict(zip(matrix.indices[a:b].tolist(), matrix.data[a:b].tolist(), strict=True)) for a, b in spans]


def kmers(z: str, d: int) -> list[tuple[int, str]]:
    """Every d-mer and its position."""
    return [(at, z[at : at + d]) for at in range(len(z) - d + 1)]


def number(u: str, letters: str) -> int:
    """What the letters of u write in base len(letters)."""
    total = 0
    for letter in u:
        total = total * len(letters) + letters.index(letter)
    return total


def falling_weights(k: int) -> list[float]:
    return [2 * (k - d + 1) / (k * (k + 1)) for d in range(1, k + 1)]


def table_start(d: int, size: int) -> int:
    """Slots of the orders below d."""
    return sum(size**e for e in range(1, d))


def spectrum(z: str, k: int, letters: str) -> dict[int, float]:
    counts: Counter[int] = Counter()
    for _, u in kmers(z, k):
        if set(u) <= set(letters):
            counts[number(u, letters)] += 1
    return dict(counts)


def weighted_spectrum(z: str, betas: list[float], letters: str) -> dict[int, float]:
    phi = {}
    for d, beta in enumerate(betas, 1):
        for index, count in spectrum(z, d, letters).items():
            phi[table_start(d, len(letters)) + index] = math.sqrt(beta) * count
    return phi


def weighted_degree(z: str, betas: list[float], letters: str) -> dict[int, float]:
    phi = {}
    stride = table_start(len(betas) + 1, len(letters))
    for d, beta in enumerate(betas, 1):
        for at, u in kmers(z, d):
            if set(u) <= set(letters):
                phi[at * stride + table_start(d, len(letters)) + number(u, letters)] = math.sqrt(beta)
    return phi


def spectrum_kernel(z: str, other: str, k: int) -> float:
    """sum over u of #u(z) #u(z')"""
    return sum(u == v for _, u in kmers(z, k) for _, v in kmers(other, k))


def weighted_spectrum_kernel(z: str, other: str, betas: list[float]) -> float:
    return sum(beta * spectrum_kernel(z, other, d) for d, beta in enumerate(betas, 1))


def weighted_degree_kernel(z: str, other: str, betas: list[float]) -> float:
    """sum_d beta_d sum_l I(u_{d,l}(z) = u_{d,l}(z'))"""
    total = 0.0
    for d, beta in enumerate(betas, 1):
        for at in range(min(len(z), len(other)) - d + 1):
            total += beta * (z[at : at + d] == other[at : at + d])
    return total


def polynomial(z: np.ndarray, degree: int, coef0: float) -> dict[tuple[int, ...], float]:
    """Each product of `degree` coordinates, over all orders of writing it; the constant is coordinate 0."""
    z = np.r_[math.sqrt(coef0), z]
    sums: Counter[tuple[int, ...]] = Counter()
    orders: Counter[tuple[int, ...]] = Counter()
    for choice in itertools.product(range(len(z)), repeat=degree):
        sums[tuple(sorted(choice))] += math.prod(z[i] for i in choice)
        orders[tuple(sorted(choice))] += 1
    return {u: total / math.sqrt(orders[u]) for u, total in sums.items() if total}


def monomials(n: int, degree: int) -> int:
    return sum(1 for _ in itertools.combinations_with_replacement(range(n), degree))


def ngrams(text: bytes, shortest: int, longest: int) -> dict[bytes, float]:
    return dict(Counter(text[i : i + n] for n in range(shortest, longest + 1) for i in range(len(text) - n + 1)))


def words(text: bytes) -> dict[bytes, float]:
    return dict(Counter(re.findall(rb"[A-Za-z0-9_\x80-\xff]+", text)))
