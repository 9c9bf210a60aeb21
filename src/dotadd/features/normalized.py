"""Normalized: rows of length one.

k'(z, z') = k(z, z') / sqrt(k(z, z) k(z', z'))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd._jit import kernel
from dotadd.batch import LARGEST_VALUE, Batch
from dotadd.block import Block, squared_norms
from dotadd.features.base import FeatureMap, squared_norms_of
from dotadd.features.part import Part, Times
from dotadd.features.scaled import Scaled
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
        _shrink(first, block.end, abs(block.scale) * _inverse(np.sqrt(lengths)), block.values)

    def prepared(self, batch: Batch, threads: int = 1) -> FeatureMap:
        """Lengths are computed once: for a spectrum they cost more than all the rest. Often all are the same."""
        phi = self.phi.prepared(batch, threads)
        inverse = _inverse(np.sqrt(squared_norms_of(phi, batch, threads)))
        if len(inverse) and 0.0 < inverse[0] <= LARGEST_VALUE and (inverse == inverse[0]).all():
            return Scaled.of(phi, float(inverse[0]))
        tiny = inverse.max(initial=0.0) > np.finfo(np.float32).max  # 1 / length of such rows is no float32
        return _Measured(phi, inverse if tiny else inverse.astype(np.float32))

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        sums, factor = [np.zeros(len(rows)) for _ in ws], _inverse(np.sqrt(self.phi.squared_norms(batch, rows)))
        self.phi.dots(batch, rows, ws, sums)
        for out, some in zip(outs, sums, strict=True):
            out += some * factor

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        factor = _inverse(np.sqrt(self.phi.squared_norms(batch, rows)))
        self.phi.add(batch, rows, coefficients * factor, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return (self.phi.squared_norms(batch, rows) > 0.0).astype(np.float64)


class _Measured(Normalized):
    """A normalized map for the rows of one batch, of which 1 / length is known; 0 for a row of zeros."""

    def __init__(self, phi: FeatureMap, inverse: np.ndarray) -> None:
        super().__init__(phi)
        self.inverse = inverse

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        first = block.end[: len(rows)].copy()
        self.phi.fill(batch, rows, block)
        _shrink(first, block.end, self.inverse[rows].astype(np.float64), block.values)

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        Times(self.phi, self.inverse).dots(batch, rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        Times(self.phi, self.inverse).add(batch, rows, coefficients, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return (self.inverse[rows] > 0.0).astype(np.float64)

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        return [(first, Times(tile, self.inverse)) for first, tile in self.phi.tiles(slots)]


def _inverse(lengths: np.ndarray) -> np.ndarray:
    """1 / length, and 0 for a row of zeros."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)


@kernel
def _shrink(first, end, factors, values):
    for j in range(len(first)):
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            values[k] *= factors[j]
