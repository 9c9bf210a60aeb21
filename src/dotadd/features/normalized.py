"""Normalized: rows of length one.

k'(z, z') = k(z, z') / sqrt(k(z, z) k(z', z'))
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.batch import Batch
from dotadd.block import Block, squared_norms
from dotadd.features.base import FeatureMap, squared_norms_of_all
from dotadd.features.part import Part, Times
from dotadd.features.wrapped import Wrapped


class Normalized(Wrapped):
    """A map with every row scaled to length one; a row of zeros stays one."""

    def around(self, phi: FeatureMap) -> Normalized:
        return Normalized(phi)

    def __repr__(self) -> str:
        inside = repr(self.phi)
        return f"{f'({inside})' if self.phi.is_sum else inside}.normalized()"

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        first = block.end[: len(rows)].copy()  # what a stack wrote before is not ours
        self.phi.fill(batch, rows, block)
        lengths = np.empty(len(rows), np.float64)
        squared_norms(first, block.end, block.indices, block.values, np.arange(len(rows)), self.distinct, lengths)
        _shrink(first, block.end, np.sqrt(lengths), abs(block.scale), block.values)

    def prepared(self, batch: Batch, threads: int = 1) -> FeatureMap:
        """Lengths are computed once: for a spectrum they cost more than all the rest."""
        phi = self.phi.prepared(batch, threads)
        return _Measured(phi, np.sqrt(squared_norms_of_all(phi, batch, threads)).astype(np.float32))

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        sums = np.zeros(len(rows))
        self.phi.dot(batch, rows, w, sums)
        out += sums * _inverse(np.sqrt(self.phi.squared_norms(batch, rows)))

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        factor = _inverse(np.sqrt(self.phi.squared_norms(batch, rows)))
        self.phi.add(batch, rows, coefficients * factor, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return (self.phi.squared_norms(batch, rows) > 0.0).astype(np.float64)


class _Measured(Normalized):
    """A normalized map for the rows of one batch, whose lengths are known."""

    def __init__(self, phi: FeatureMap, lengths: np.ndarray) -> None:
        super().__init__(phi)
        self.lengths = lengths

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        first = block.end[: len(rows)].copy()
        self.phi.fill(batch, rows, block)
        _shrink(first, block.end, self.lengths[rows], 1.0, block.values)

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        Times(self.phi, _inverse(self.lengths)).dot(batch, rows, w, out)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        Times(self.phi, _inverse(self.lengths)).add(batch, rows, coefficients, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return (self.lengths[rows] > 0.0).astype(np.float64)

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        inverse = _inverse(self.lengths)
        return [(first, Times(tile, inverse)) for first, tile in self.phi.tiles(slots)]


def _inverse(lengths: np.ndarray) -> np.ndarray:
    """1 / length, and 1 for a row of zeros."""
    return 1.0 / np.where(lengths > 0.0, lengths, 1.0)


@kernel
def _shrink(first, end, lengths, scale, values):
    for j in range(len(first)):
        if lengths[j] > 0.0:
            factor = scale / lengths[j]
            for k in range(np.uint64(first[j]), np.uint64(end[j])):
                values[k] *= factor
