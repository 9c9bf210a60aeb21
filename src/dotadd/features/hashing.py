"""Hashed: the hashing trick on the indices of any map.

phi'(z)_j = sum of phi(z)_i over all i with h(i) = j
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.batch import Batch
from dotadd.block import Block
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, FeatureMap, Shape, checked_bits
from dotadd.features.linear import Linear
from dotadd.features.origins import Origins
from dotadd.features.wrapped import AroundMap
from dotadd.weights.hashed import slot_of


class Hashed(AroundMap):
    """A map folded into 2**bits slots by a hash of its indices; the vector itself by default.

    Vectors need no number of columns: whatever comes later has its slot as well.
    """

    def __init__(self, bits: int, phi: FeatureMap | None = None) -> None:
        if not isinstance(phi, FeatureMap | None):
            raise FeatureError(f"phi has to be a feature map, and not {phi!r}")
        self.bits, self.phi = checked_bits(bits), Linear() if phi is None else phi
        self.takes = self.phi.takes

    def __repr__(self) -> str:
        inside = repr(self.phi)
        return f"{f'({inside})' if self.phi.is_sum else inside}.hashed({self.bits})"

    @property
    def dim(self) -> int:
        return 2**self.bits

    def resolve(self, shape: Shape) -> Hashed:
        return self if isinstance(self.phi, Linear) else self.around(self.phi.resolve(shape))

    def around(self, phi: FeatureMap) -> Hashed:
        """The same hash of another map."""
        return Hashed(self.bits, phi)

    def check(self, batch: Batch) -> BadRow | None:
        return None if isinstance(self.phi, Linear) else self.phi.check(batch)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        source = self.phi.view(batch)
        if source is not None:
            _hash_rows(
                source.start, source.end, source.indices, source.values, plain(rows), self.bits,
                block.base, block.scale, block.end, block.indices, block.values,
            )  # fmt: skip
            return
        assert block.indices is not None
        # phi's own indices may be too large for the block, which only has to hold the hashed ones
        fits = block.indices.dtype == np.uint64 or self.phi.dim <= 2**32
        indices = block.indices if fits else np.empty(len(block.indices), np.uint64)
        first = block.end[: len(rows)].copy()
        self.phi.fill(batch, rows, Block(block.start, block.end, indices, block.values, scale=block.scale))
        _hash_indices(first, block.end, indices, self.bits, block.base, block.indices)

    def prepared(self, batch: Batch, threads: int = 1) -> Hashed:
        return self.around(self.phi.prepared(batch, threads))

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        return self.phi.origins(batch, rows, nth)


@kernel
def _hash_rows(start, end, indices, values, rows, bits, base, scale, cursor, out_indices, out_values):
    for j in range(len(rows)):
        lo = np.uint64(start[rows[j]])
        p = np.uint64(cursor[j])
        for k in range(lo, np.uint64(end[rows[j]])):
            index = k - lo if indices is None else np.uint64(indices[k])
            out_indices[p] = np.uint64(base) + slot_of(index, bits)
            out_values[p] = scale if values is None else scale * values[k]
            p += np.uint64(1)
        cursor[j] = p


@kernel
def _hash_indices(first, end, indices, bits, base, out_indices):
    for j in range(len(first)):
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            out_indices[k] = np.uint64(base) + slot_of(indices[k], bits)
