"""What maps have in common in which the position of a k-mer counts: weights of the orders, and the strings' length."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from dotadd.batch import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, Shape, checked_dim, checked_int
from dotadd.features.span import Span, clipped_length
from dotadd.features.spectrum import MAX_ORDER, StringMap, Weights, checked_weights


class PositionalMap(StringMap):
    """The k-mers of lengths 1 to `degree` at each position of strings of at most `length` letters."""

    def __init__(self, degree: int, weights: Weights, alphabet: str, span: Span | None, length: int | None) -> None:
        super().__init__(checked_int("degree", degree, 1, MAX_ORDER), alphabet, span)
        self.weights = checked_weights(weights, self.order)
        self.length = None if length is None else checked_int("length", length, 0, 2**31)

    def _options(self) -> dict[str, Any]:
        weights = {} if self.weights is None else {"weights": self.weights}
        length = {} if self.length is None else {"length": self.length}
        return weights | super()._options() | length

    def resolve(self, shape: Shape) -> Self:
        resolved = self
        if self.length is None:
            assert shape.length is not None
            resolved = copy.copy(self)
            resolved.length = clipped_length(self.span, shape.length)
        checked_dim(resolved, resolved.dim)
        return resolved

    def known_length(self) -> int:
        """The length of the strings, which has to be known by now."""
        if self.length is None:
            raise FeatureError(
                f"{self!r} does not know the length of the strings yet: resolve it with the data's shape"
            )
        return self.length

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
