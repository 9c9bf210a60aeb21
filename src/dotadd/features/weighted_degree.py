"""WeightedDegree: which k-mer stands at each position of a string.

k(z, z') = sum over orders d = 1..degree of beta_d * (number of positions at which z and z' have the same d-mer)
"""

from __future__ import annotations

from dotadd.features.base import checked_dim
from dotadd.features.kmers import Layout, explicit_layout, hash_tables_layout
from dotadd.features.positional import PositionalMap
from dotadd.features.span import Span
from dotadd.features.spectrum import Weights, beta


class WeightedDegree(PositionalMap):
    """The k-mers of lengths 1 to `degree` at each position, those of length d with the value sqrt(beta_d).

    Each position and order has a table of its own: with every k-mer in it (|alphabet|**d slots), or after
    `.hashed(bits)` with 2**bits slots. The tables of one position lie side by side. Strings shorter than `length` have
    fewer features; longer ones are refused.

    weights: beta_1 .. beta_degree, or "uniform" for all 1; by default beta_d = 2 (k - d + 1) / (k (k + 1)), k = degree.
    alphabet, span: as for Spectrum. Positions count from the beginning of the span.
    length: the longest string to come (within the span); by default the longest in the training data.
    """

    distinct = True

    def __init__(
        self,
        degree: int,
        *,
        weights: Weights = None,
        alphabet: str = "dna",
        span: Span | None = None,
        length: int | None = None,
    ) -> None:
        super().__init__(degree, weights, alphabet, span, length)

    @property
    def dim(self) -> int:
        if self.bits is not None:
            return checked_dim(self, self.known_length() * self.order << self.bits)
        return checked_dim(self, self.known_length() * sum(self.alphabet.size**d for d in range(1, self.order + 1)))

    def layout(self) -> Layout:
        betas = beta(self.weights, self.order)
        if self.bits is not None:
            return hash_tables_layout(betas, self.alphabet.size, self.bits)
        return explicit_layout(betas, self.alphabet.size, True)
