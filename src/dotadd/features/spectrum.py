"""Spectrum and WeightedSpectrum: how often each k-mer occurs in a string, wherever it stands.

Spectrum:           k(z, z') = sum over k-mers u of #u(z) #u(z')
WeightedSpectrum:   k(z, z') = sum over orders d = 1..k of beta_d times the spectrum kernel of order d

With strands="both", a k-mer and its reverse complement are one u, and both strands of a molecule have one phi.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from dotadd._util.expression import call_repr, quoted
from dotadd.core.block import Block
from dotadd.data.batches import LARGEST_VALUE, Batch
from dotadd.errors import FeatureError
from dotadd.features.alphabet import Alphabet, Span, as_span
from dotadd.features.base import FeatureMap, Shape, checked_bits, checked_dim, checked_int
from dotadd.features.kmers import KmerLayout, KmerMap, explicit_layout, shared_hash_layout, single_layout
from dotadd.features.origins import Origins, invert_kmers
from dotadd.features.patterns import Patterns, pattern_bound, pattern_fill
from dotadd.features.transformer import with_bits

MAX_ORDER = 1000
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


class StringMap(KmerMap):
    """What the maps over an alphabet have in common: options, how they are written, and `hashed`."""

    def __init__(self, order: int, alphabet: str, span: Span | None, strands: str = "one") -> None:
        self.order = order
        self.alphabet, self.span = Alphabet(alphabet), as_span(span)
        if strands not in ("one", "both"):
            raise FeatureError(f'strands has to be "one" or "both", and not {strands!r}')
        if strands == "both" and alphabet not in ("dna", "rna"):
            raise FeatureError(f'strands="both" needs alphabet="dna" or "rna", and {alphabet!r} has no complements')
        self.strands = strands
        self.bits: int | None = None

    @property
    def k(self) -> int:
        return self.order

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return super().get_params(deep) | {"alphabet": self.alphabet.name, "bits": self.bits}

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        return with_bits(type(self), self.get_params() | dict(params))

    @property
    def folded(self) -> bool:
        """Whether a k-mer and its reverse complement are one feature."""
        return self.strands == "both"

    def _arguments(self) -> tuple[object, ...]:
        return (self.order,)

    def _options(self) -> dict[str, object]:
        options: dict[str, object] = {}
        if self.alphabet.name != "dna":
            options["alphabet"] = self.alphabet.name
        if self.span is not None:
            options["span"] = self.span
        if self.folded:
            options["strands"] = self.strands
        return options

    def __repr__(self) -> str:
        text = call_repr(type(self).__name__, *self._arguments(), **self._options())
        return text if self.bits is None else f"{text}.hashed({self.bits})"

    @property
    def dim(self) -> int:
        return 2**self.bits if self.bits is not None else checked_dim(self, self.alphabet.size**self.order)

    def layout(self) -> KmerLayout:
        """That of one order alone."""
        if self.bits is not None:
            return shared_hash_layout(_last_alone(self.order), self.bits)
        return single_layout(self.order)

    def patterns(self) -> Patterns | None:
        """What reads the k-mers where they are folded or have gaps; None where they are read as they stand."""
        return None

    @property
    def as_they_stand(self) -> bool:
        return type(self).fill is StringMap.fill and self.patterns() is None

    def bound(self, batch: Batch) -> int | np.ndarray:
        patterns = self.patterns()
        return super().bound(batch) if patterns is None else pattern_bound(self, batch, patterns)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        patterns = self.patterns()
        if patterns is None:
            super().fill(batch, rows, block)
        else:
            pattern_fill(self, batch, rows, block, patterns, self.bits, self.folded)

    def invert(self, slots: np.ndarray) -> Origins:
        return invert_kmers(self, slots)  # a slot is a k-mer's number, however it was read

    def resolve(self, shape: Shape) -> FeatureMap:
        checked_dim(self, self.dim)  # refuse a space that is too large before any work is done
        return self

    def hashed(self, bits: int) -> FeatureMap:
        """This map with its k-mers hashed letter by letter, so that none is ever counted through."""
        if self.bits is not None:
            return super().hashed(bits)
        twin = copy.copy(self)
        twin.bits = checked_bits(bits)
        return twin


def _last_alone(order: int) -> tuple[float, ...]:
    return (0.0,) * (order - 1) + (1.0,)


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

    def patterns(self) -> Patterns | None:
        return _contiguous(_last_alone(self.order), self.alphabet.size, False) if self.folded else None


class WeightedSpectrum(StringMap):
    """Counts of all k-mers of lengths 1 to k, those of length d times sqrt(beta_d).

    weights: beta_1 .. beta_k, or "uniform" for all 1; by default beta_d = 2 (k - d + 1) / (k (k + 1)).
    alphabet, span, strands: as for Spectrum.
    """

    def __init__(
        self,
        k: int,
        *,
        weights: Weights = None,
        alphabet: str = "dna",
        span: Span | None = None,
        strands: str = "one",
    ) -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)
        self.weights = checked_weights(weights, self.order)

    def _options(self) -> dict[str, object]:
        weights = {} if self.weights is None else {"weights": self.weights}
        return weights | super()._options()

    @property
    def dim(self) -> int:
        if self.bits is not None:
            return 2**self.bits
        return checked_dim(self, sum(self.alphabet.size**d for d in range(1, self.order + 1)))

    def patterns(self) -> Patterns | None:
        return _contiguous(beta(self.weights, self.order), self.alphabet.size, True) if self.folded else None

    def layout(self) -> KmerLayout:
        betas = beta(self.weights, self.order)
        if self.bits is not None:
            return shared_hash_layout(betas, self.bits)
        return explicit_layout(betas, self.alphabet.size, False)
