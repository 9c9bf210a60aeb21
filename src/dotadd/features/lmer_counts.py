"""LmerCounts: the features of a model of LS-GKM, whose weights are those of l-mers.

With K(z, z') a sum of h(m) over pairs of l-mers (gkm.py), a machine's output is sum_i a_i K(z_i, z) / (|z_i| |z|),
where |z|^2 = K(z, z). That is <w, c(z)> / |z| of the counts c(z) of the l-mers of z, with a weight for each l-mer,
whatever h is; also where h is cut off after d mismatches, as LS-GKM does, and is no inner product any more.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.core.block import Block
from dotadd.data.batches import Batch
from dotadd.features.base import FeatureMap
from dotadd.features.gkm import Gkm, neighbour_plan
from dotadd.features.gkm_weights import kernel_weights
from dotadd.features.kmers import Writer
from dotadd.features.leaves import checked_int
from dotadd.features.mismatch_pairs import pair_plan
from dotadd.features.mismatch_table import MismatchTable


class LmerCounts(Gkm):
    """Counts of l-mers, divided by the length that LS-GKM gives a string.

    mismatches: pairs of l-mers with more do not count in the length, LS-GKM's -d.
    l, k, filter, strands, middle: as for Gkm.
    """

    def __init__(
        self,
        l: int = 11,  # noqa: E741  # as everybody calls it
        k: int = 7,
        mismatches: int = 3,
        *,
        filter: str = "truncated",
        strands: str = "both",
        middle: tuple[int, float] | None = None,
    ) -> None:
        super().__init__(l, k, filter=filter, strands=strands, middle=middle)
        self.mismatches = checked_int("mismatches", mismatches, 0, self.l)
        self.bulk = self.whole = self.distinct = False

    table, neighbours, dense = None, 1, False  # rows are short, and touch w as they stand

    def tabled(self) -> MismatchTable:
        """The table by which the l-mers of support vectors, counted with their coefficients, become weights."""
        return MismatchTable(self.l, self.pair, self.layout, 2.0)

    @property
    def pair(self) -> tuple[float, ...]:
        """h(0) .. h(mismatches)."""
        return kernel_weights(self.weights, self.l)[: self.mismatches + 1]

    def pair_plan(self) -> np.ndarray:
        """The kernel, for those who go through pairs of l-mers."""
        return pair_plan(self.l, self.pair, both=self.strands == "both", places=self.place_weights())

    def writer(self) -> Writer:
        return neighbour_plan(MismatchTable(self.l, (1.0,), self.layout), self.place_weights())

    def lengths(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """|z| of these rows; 0 where |z|^2 is negative, as it may be where h is no inner product."""

        def of_long(row: np.ndarray) -> float:
            table, w = self.tabled(), np.zeros(self.dim)
            table.gather(self.counted(batch, row, np.ones(1), table), w, 1)
            block = Block.scratch(np.broadcast_to(np.asarray(self.bound(batch)), len(batch))[row], self.dim)
            super(LmerCounts, self).fill(batch, row, block)
            return float(block.dot(w)[0])

        squared = self.lengths_by_pairs(batch, rows, self.pair_plan(), of_long)
        return np.sqrt(np.maximum(squared, 0.0))

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        first = block.end[: len(rows)].copy()
        super().fill(batch, rows, block)
        _divide(first, block.end, self.lengths(batch, rows), block.values)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return FeatureMap.squared_norms(self, batch, rows)


@kernel
def _divide(first, end, lengths, values):
    for j in range(len(first)):
        factor = 1.0 / lengths[j] if lengths[j] > 0.0 else 0.0
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            values[k] *= factor
