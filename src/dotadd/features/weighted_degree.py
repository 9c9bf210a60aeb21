"""WeightedDegree: which k-mer stands at each position of a string.

k(z, z') = sum over orders d = 1..degree of beta_d * (number of positions at which z and z' have the same d-mer)
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from dotadd.batch import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, Shape, checked_dim, checked_int
from dotadd.features.kmers import Layout, explicit_layout, hash_tables_layout
from dotadd.features.span import Span, clipped_length
from dotadd.features.spectrum import MAX_ORDER, StringMap, Weights, beta, checked_weights


class WeightedDegree(StringMap):
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
        super().__init__(checked_int("degree", degree, 1, MAX_ORDER), alphabet, span)
        self.weights = checked_weights(weights, self.order)
        self.length = None if length is None else checked_int("length", length, 0, 2**31)

    def _options(self) -> dict[str, Any]:
        weights = {} if self.weights is None else {"weights": self.weights}
        length = {} if self.length is None else {"length": self.length}
        return weights | super()._options() | length

    def resolve(self, shape: Shape) -> WeightedDegree:
        resolved = self
        if self.length is None:
            assert shape.length is not None
            resolved = copy.copy(self)
            resolved.length = clipped_length(self.span, shape.length)
        checked_dim(resolved, resolved.dim)
        return resolved

    @property
    def dim(self) -> int:
        if self.length is None:
            raise FeatureError(
                f"{self!r} does not know the length of the strings yet: resolve it with the data's shape"
            )
        if self.bits is not None:
            return checked_dim(self, self.length * self.order << self.bits)
        return checked_dim(self, self.length * sum(self.alphabet.size**d for d in range(1, self.order + 1)))

    def layout(self) -> Layout:
        betas = beta(self.weights, self.order)
        if self.bits is not None:
            return hash_tables_layout(betas, self.alphabet.size, self.bits)
        return explicit_layout(betas, self.alphabet.size, True)

    def places(self, batch: Strings, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts, ends = super().places(batch, rows)
        return starts, ends if self.length is None else np.minimum(ends, starts + self.length)

    def check(self, batch: Batch) -> BadRow | None:
        assert isinstance(batch, Strings)
        bad = super().check(batch)
        if self.length is None:
            return bad
        starts, ends = super().places(batch, np.arange(len(batch) if bad is None else bad.row, dtype=np.int64))
        long = np.flatnonzero(ends - starts > self.length)
        if len(long) == 0:
            return bad
        row = int(long[0])
        return BadRow(row, None, f"has {ends[row] - starts[row]} letters, and the model was made for {self.length}")
