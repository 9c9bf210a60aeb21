"""Spectrum and its relatives: how often each k-mer occurs in a string, wherever it stands.

Spectrum:           k(z, z') = sum over k-mers u of #u(z) #u(z')
WeightedSpectrum:   k(z, z') = sum over orders d = 1..k of beta_d times the spectrum kernel of order d
GappySpectrum:      as Spectrum, #u(z) being the sum of decay ** (letters skipped) over all i_1 < .. < i_k at which z
                    has the letters of u, with at most `gaps` letters skipped between the first and the last

With strands="both", a k-mer and its reverse complement are one u, and both strands of a molecule have one phi.

The gappy kernel is that of Leslie and Kuang (2004) with its window of k + gaps letters anchored: the occurrence
begins with the window's first letter. Where each window counts every k-mer inside it, an occurrence counts once for
each window that it fits in, those without gaps most often and those at the ends of the string least; here each counts
once, and `decay` says what a gap costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dotadd._util.expression import quoted
from dotadd.data.batches import LARGEST_VALUE, Batch
from dotadd.errors import FeatureError
from dotadd.features.alphabet import Alphabet, Span, as_span
from dotadd.features.base import FeatureMap, Shape, checked_dim
from dotadd.features.kmer_layout import KmerLayout, explicit_layout, shared_hash_layout, single_layout
from dotadd.features.kmers import KmerMap, LetterMap, Writer
from dotadd.features.leaves import HashingLeaf, checked_int
from dotadd.features.occurrences import Spans, spans_of_patterns
from dotadd.features.patterns import Patterns, write_patterns

MAX_ORDER = 1000
MAX_PATTERNS = 2**16
LARGEST_BETA = LARGEST_VALUE**2  # features have its square root

Weights = Sequence[float] | str | None


def checked_weights(weights: Weights, orders: int) -> tuple[float, ...] | str | None:
    """Weights of the orders as a map keeps them: None, "uniform", or a tuple of numbers that are not negative."""
    if weights is None or (isinstance(weights, str) and weights == "uniform"):
        return weights
    try:
        betas = tuple(float(beta) for beta in weights) if not isinstance(weights, str) else ()
    except (TypeError, ValueError, OverflowError):
        betas = ()
    if len(betas) != orders or not all(0 <= beta <= LARGEST_BETA for beta in betas) or not any(betas):
        wanted = f'{orders} numbers from 0 to {LARGEST_BETA:.3g} (one an order, not all 0), "uniform" or None'
        raise FeatureError(f"weights has to be {wanted}, and not {quoted(weights)}")
    return betas


@lru_cache
def beta(weights: tuple[float, ...] | str | None, orders: int) -> tuple[float, ...]:
    """The weight of each order. The default falls linearly and sums to one, as in the weighted degree kernel."""
    if weights is None:
        return tuple(2 * (orders - d + 1) / (orders * (orders + 1)) for d in range(1, orders + 1))
    if isinstance(weights, str):
        return (1.0,) * orders
    return weights


class StringMap(HashingLeaf, KmerMap):
    """What the maps over an alphabet have in common. Their k-mers are hashed letter by letter, so that none is ever
    counted through."""

    def __init__(self, order: int, alphabet: str, span: Span | None, strands: str = "one") -> None:
        self.order = order
        self.alphabet, self.span = Alphabet(alphabet), as_span(span)
        if strands not in ("one", "both"):
            raise FeatureError(f'strands has to be "one" or "both", and not {strands!r}')
        if strands == "both" and alphabet not in ("dna", "rna"):
            raise FeatureError(f'strands="both" needs alphabet="dna" or "rna", and {alphabet!r} has no complements')
        self.strands = strands
        self.bulk = self.kernel_fills

    @property
    def k(self) -> int:
        return self.order

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return super().get_params(deep) | {"alphabet": self.alphabet.name}

    def hash_into(self, bits: int) -> None:
        super().hash_into(bits)
        self.bulk = self.bulk and self.layout().stride > 0

    @property
    def folded(self) -> bool:
        """Whether a k-mer and its reverse complement are one feature."""
        return self.strands == "both"

    @property
    def as_they_stand(self) -> bool:
        return not self.folded

    @property
    def dim(self) -> int:
        return 2**self.bits if self.bits is not None else checked_dim(self, self.alphabet.size**self.order)

    def layout(self) -> KmerLayout:
        """That of one order alone."""
        if self.bits is not None:
            return shared_hash_layout(_last_alone(self.order), self.alphabet.size, self.bits)
        return single_layout(self.order, self.alphabet.size)

    def patterns(self) -> Patterns:
        """What reads the k-mers where they do not stand as they are: folded, or with gaps."""
        raise NotImplementedError

    def writer(self) -> Writer:
        if self.as_they_stand:
            return super().writer()
        return write_patterns, _pattern_plan(self.patterns(), self.bits, self.folded)

    def counts(self) -> dict[int, int]:
        if self.as_they_stand:
            return super().counts()
        patterns = self.patterns()
        offsets, counts = np.unique(patterns.offset[patterns.value != 0], return_counts=True)
        return dict(zip(offsets.tolist(), counts.tolist(), strict=True))

    def written_offsets(self) -> tuple[list[int], int]:
        """How many letters after its first each pattern ends, of those that are written, in their order; and how many
        after the first of any the kernel looks."""
        patterns = self.patterns()
        return patterns.offset[patterns.value != 0].tolist(), int(patterns.offset.max())

    def spans(self, batch: Batch, row: int) -> Spans | None:
        if self.as_they_stand or type(self).fill is not LetterMap.fill:
            return super().spans(batch, row)
        codes, before = self.row_codes(batch, row)
        first, stop = spans_of_patterns(codes, *self.written_offsets())
        return first + before, stop + before

    def resolve(self, shape: Shape) -> FeatureMap:
        checked_dim(self, self.dim)  # refuse a space that is too large before any work is done
        return self


def _last_alone(order: int) -> tuple[float, ...]:
    return (0.0,) * (order - 1) + (1.0,)


@lru_cache
def _pattern_plan(patterns: Patterns, bits: int | None, folded: bool) -> np.ndarray:
    return patterns.plan(bits, folded)


@lru_cache
def _contiguous(betas: tuple[float, ...], size: int, tables: bool) -> Patterns:
    """The patterns without gaps, from the first order that counts."""
    nodes = [(d, d - 1, math.sqrt(weight)) for d, weight in enumerate(betas, 1) if any(betas[:d])]
    return Patterns.of(nodes, size, tables=tables)


class Spectrum(StringMap):
    """Counts of all k-mers of length k.

    A k-mer's index is the number that its letters write in base |alphabet|; `.hashed(bits)` hashes it into 2**bits
    slots. Each occurrence is a non-zero of its own, so an index may occur several times in a row.

    alphabet: "dna", "rna", "protein", "bytes", or the letters themselves.
    span: (first, stop), the positions to read as in Python's slices: (0, 59) are the first 59 letters, (-20, None) the
        last 20 of each string. None reads all.
    strands: "both" makes one feature of a k-mer and its reverse complement, for DNA and RNA of which either strand may
        have been read. Its index is the smaller of the two numbers, which leaves nearly half of the slots unused.
    """

    def __init__(self, k: int, *, alphabet: str = "dna", span: Span | None = None, strands: str = "one") -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)

    def patterns(self) -> Patterns:
        return _contiguous(_last_alone(self.order), self.alphabet.size, False)


class WeightedSpectrum(StringMap):
    """Counts of all k-mers of lengths 1 to k, those of length d times sqrt(beta_d).

    weights: beta_1 .. beta_k, or "uniform" for all 1; by default beta_d = 2 (k - d + 1) / (k (k + 1)).
    alphabet, span, strands: as for Spectrum.
    """

    def __init__(
        self, k: int, *, weights: Weights = None, alphabet: str = "dna", span: Span | None = None, strands: str = "one"
    ) -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)
        self.weights = checked_weights(weights, self.order)

    @property
    def dim(self) -> int:
        if self.bits is not None:
            return 2**self.bits
        return checked_dim(self, sum(self.alphabet.size**d for d in range(1, self.order + 1)))

    def patterns(self) -> Patterns:
        return _contiguous(beta(self.weights, self.order), self.alphabet.size, True)

    def layout(self) -> KmerLayout:
        betas = beta(self.weights, self.order)
        if self.bits is not None:
            return shared_hash_layout(betas, self.alphabet.size, self.bits)
        return explicit_layout(betas, self.alphabet.size, False)


class GappySpectrum(StringMap):
    """Counts of all k-mers of length k that occur with at most `gaps` letters skipped between their own.

    An occurrence with s letters skipped counts decay**s. There are C(k - 1 + gaps, gaps) ways to skip, and so many
    non-zeros for each letter of the string. An index may occur several times in a row.

    decay: what a skipped letter takes from the count, above 0 and at most 1.
    alphabet, span, strands: as for Spectrum. A foreign letter can neither be taken nor be skipped.
    """

    as_they_stand = False

    def __init__(
        self,
        k: int,
        gaps: int,
        *,
        decay: float = 1.0,
        alphabet: str = "dna",
        span: Span | None = None,
        strands: str = "one",
    ) -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)
        self.gaps = checked_int("gaps", gaps, 0, MAX_ORDER)
        if isinstance(decay, bool) or not isinstance(decay, int | float | np.number) or not 0 < decay <= 1:
            raise FeatureError(f"decay has to be a number above 0 and at most 1, and not {decay!r}")
        self.decay = float(decay)
        patterns = math.comb(self.order + self.gaps, self.gaps + 1)  # all nodes of the tree
        if patterns > MAX_PATTERNS:
            raise FeatureError(f"{self!r} reads {patterns:.3g} patterns, more than {MAX_PATTERNS}: allow fewer gaps")

    def patterns(self) -> Patterns:
        return _gappy(self.order, self.gaps, self.decay, self.alphabet.size)


@lru_cache
def _gappy(order: int, gaps: int, decay: float, size: int) -> Patterns:
    nodes, open_nodes = [], [(1, 0)]
    while open_nodes:
        depth, offset = open_nodes.pop()
        skipped = offset + 1 - depth
        nodes.append((depth, offset, decay**skipped if depth == order else 0.0))
        if depth < order:
            open_nodes += [(depth + 1, offset + 1 + more) for more in range(gaps - skipped + 1)]
    return Patterns.of(nodes, size)
