"""Plain twins of the feature maps: phi(z) as a dictionary, and the kernels by their own definitions."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable

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


def shifted_kernel(z: str, other: str, betas: list[float], shift: int) -> float:
    """sum_d beta_d sum_i sum_s delta_s (I(u_{d,i+s}(z) = u_{d,i}(z')) + I(u_{d,i}(z) = u_{d,i+s}(z')))"""

    def equal(d: int, i: int, j: int) -> bool:
        return i + d <= len(z) and j + d <= len(other) and z[i : i + d] == other[j : j + d]

    total = 0.0
    for d, beta in enumerate(betas, 1):
        for i in range(max(len(z), len(other))):
            for s in range(shift + 1):
                total += beta / (2 * (s + 1)) * (equal(d, i + s, i) + equal(d, i, i + s))
    return total


def reverse_complement(z: str) -> str:
    return z[::-1].translate(str.maketrans("ACGT", "TGCA"))


def folded(u: str) -> str:
    """The first in the alphabet of a k-mer and its reverse complement."""
    return min(u, reverse_complement(u))


def substrings(z: bytes) -> Counter:
    """How often each substring occurs."""
    return Counter(z[i:j] for i in range(len(z)) for j in range(i + 1, len(z) + 1))


def substring_kernel(z: bytes, other: bytes, weight: Callable[[int], float]) -> float:
    mine, theirs = substrings(z), substrings(other)
    return sum(weight(len(s)) * count * theirs[s] for s, count in mine.items() if s in theirs)


def substring_sets(strings: list[bytes]) -> list[list[bytes]]:
    """Substrings of these strings that begin at the same places, set by set."""
    places: dict[bytes, list[tuple[int, int]]] = {}
    for n, z in enumerate(strings):
        for i in range(len(z)):
            for j in range(i + 1, len(z) + 1):
                places.setdefault(z[i:j], []).append((n, i))
    sets: dict[tuple, list[bytes]] = {}
    for s, where in places.items():
        sets.setdefault(tuple(where), []).append(s)
    return list(sets.values())


def in_span(z: bytes, sets: list[list[bytes]], weight: Callable[[int], float]) -> list[float]:
    """phi(z), with a feature for each substring, in the space that the sums over these sets span."""
    mine, phi = substrings(z), []
    for together in sets:
        squared = sum(weight(len(s)) for s in together)
        phi.append(sum(weight(len(s)) * mine[s] for s in together) / squared**0.5 if squared else 0.0)
    return phi


def gappy(z: str, k: int, gaps: int, decay: float, letters: str) -> dict[str, float]:
    """Every choice of k letters, neighbours or not, that lie within k + gaps letters of the alphabet."""
    phi: Counter[str] = Counter()
    for first in range(len(z)):
        for rest in itertools.combinations(range(first + 1, min(first + k + gaps, len(z))), k - 1):
            at = (first, *rest)
            if set(z[first : at[-1] + 1]) <= set(letters):
                phi["".join(z[i] for i in at)] += decay ** (at[-1] - first + 1 - k)
    return dict(phi)


def distance(u: str, v: str) -> int:
    return sum(a != b for a, b in zip(u, v, strict=True))


def mismatch(z: str, k: int, mismatches: int, letters: str) -> dict[str, float]:
    """For every k-mer how many k-mers of z are within this distance of it."""
    found = [u for _, u in kmers(z, k) if set(u) <= set(letters)]
    every = ("".join(v) for v in itertools.product(letters, repeat=k))
    counts = {v: float(sum(distance(u, v) <= mismatches for u in found)) for v in every}
    return {v: count for v, count in counts.items() if count}


def fold(phi: dict[str, float]) -> dict[str, float]:
    """The features of k-mers and of their reverse complements added up."""
    sums: Counter[str] = Counter()
    for u, value in phi.items():
        sums[folded(u)] += value
    return dict(sums)


def numbered(phi: dict[str, float], letters: str) -> dict[int, float]:
    """Features of k-mers under the numbers of the k-mers."""
    return {number(u, letters): value for u, value in phi.items()}


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


def word_ngrams(text: bytes, shortest: int, longest: int) -> dict[tuple[bytes, ...], float]:
    return runs(re.findall(rb"[A-Za-z0-9_\x80-\xff]+", text), shortest, longest)


def runs(found: list, shortest: int, longest: int) -> dict[tuple, float]:
    """Counts of the runs of so many things."""
    lengths = range(shortest, longest + 1)
    return dict(Counter(tuple(found[i : i + n]) for n in lengths for i in range(len(found) - n + 1)))


def small(text: str) -> str:
    """Small letters, one for one; two capitals whose small letters have more bytes stay."""
    return "".join(
        c if c in "\u023a\u023e" else "i" if c == "\u0130" else "\u03c3" if c in "\u03a3\u03c2" else c.lower()
        for c in text
    )


def bare(text: str) -> str:
    """Without accents, as scikit-learn strips them, where a letter does not become longer."""
    found = []
    for c in text:
        parts = "".join(d for d in unicodedata.normalize("NFKD", c) if not unicodedata.combining(d))
        found.append(
            parts if len(parts.encode("utf-8", "surrogateescape")) <= len(c.encode("utf-8", "surrogateescape")) else c
        )
    return "".join(found)


LETTER = r"[\w\udc80-\udcff]"  # of Unicode, or a byte that is no part of it


def unicode_words(text: bytes) -> list[str]:
    return re.findall(f"{LETTER}+", small(text.decode("utf-8", "surrogateescape")))


def identifiers(text: str) -> list[str]:
    """The parts of names, letter by letter."""
    found, previous = [], ""
    for at, c in enumerate(text):
        if not re.match(r"[^\W_]", c):
            previous = ""
            continue
        following = text[at + 1 : at + 2]
        capital, was_capital = c.lower() != c, previous.lower() != previous
        hump = capital and not was_capital and not previous.isdecimal()
        last_of_several = (
            capital and was_capital and re.match(r"[^\W\d_]", following) and following.lower() == following
        )
        if not previous or c.isdecimal() != previous.isdecimal() or hump or last_of_several:
            found.append("")
        found[-1] += small(c)
        previous = c
    return found


def url_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", small(re.sub(r"%[0-9A-Fa-f]{2}", " ", text)))


NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))  # of bits 0 to 7, (row, column)


def binary_patterns(z: list[list[float]]) -> list[tuple[int, int, int]]:
    """Row, column and pattern of each pixel that has eight neighbours, row by row."""
    found = []
    for i in range(1, len(z) - 1):
        for j in range(1, len(z[0]) - 1):
            bits = [z[i + down][j + right] >= z[i][j] for down, right in NEIGHBOURS]
            found.append((i, j, sum(2**k for k, bit in enumerate(bits) if bit)))
    return found


def half_size(z: list[list[float]]) -> list[list[float]]:
    """Two by two pixels summed up, row by row."""
    rows, columns = len(z) // 2, len(z[0]) // 2
    upper, lower = ([[row[2 * j] + row[2 * j + 1] for j in range(columns)] for row in z[k::2]] for k in (0, 1))
    return [[upper[i][j] + lower[i][j] for j in range(columns)] for i in range(rows)]


def lbp(z: np.ndarray, levels: int | None = None) -> dict[tuple[int, int, int, int], float]:
    """(level, row, column, pattern) of each pixel of the pyramid, in the order of slots."""
    phi, level, image = {}, 0, z.tolist()
    while len(image) >= 3 and len(image[0]) >= 3 and level != levels:
        phi.update({(level, *place): 1.0 for place in binary_patterns(image)})
        level, image = level + 1, half_size(image)
    return phi
