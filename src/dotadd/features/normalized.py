"""Normalized: rows of length one.

k'(z, z') = k(z, z') / sqrt(k(z, z) k(z', z'))
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.batch import Batch
from dotadd.block import Block, squared_norms
from dotadd.features.base import BadRow, FeatureMap, Shape


class Normalized(FeatureMap):
    """A map with every row scaled to length one; a row of zeros stays one."""

    def __init__(self, phi: FeatureMap) -> None:
        self.phi, self.takes, self.distinct = phi, phi.takes, phi.distinct

    def __repr__(self) -> str:
        inside = repr(self.phi)
        return f"{f'({inside})' if self.phi.is_sum else inside}.normalized()"

    @property
    def dim(self) -> int:
        return self.phi.dim

    def resolve(self, shape: Shape) -> Normalized:
        return Normalized(self.phi.resolve(shape))

    def check(self, batch: Batch) -> BadRow | None:
        return self.phi.check(batch)

    def bound(self, batch: Batch) -> int | np.ndarray:
        return self.phi.bound(batch)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        first = block.end[: len(rows)].copy()  # what a stack wrote before is not ours
        self.phi.fill(batch, rows, block)
        lengths = np.empty(len(rows), np.float64)
        squared_norms(first, block.end, block.indices, block.values, np.arange(len(rows)), self.distinct, lengths)
        _shrink(first, block.end, np.sqrt(lengths), abs(block.scale), block.values)


@kernel
def _shrink(first, end, lengths, scale, values):
    for j in range(len(first)):
        if lengths[j] > 0.0:
            factor = scale / lengths[j]
            for k in range(np.uint64(first[j]), np.uint64(end[j])):
                values[k] *= factor
