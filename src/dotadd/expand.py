"""Expansion: phi over a batch. The narrow waist between maps and solvers.

Solvers that take examples one by one read `blocks`, in any order of rows; none of them knows whether a block is a
scratch just filled by a feature map or a view of rows that lay in memory anyway. What is asked of many examples at once
while w stands still, `dot` and `add`, runs on all threads, and maps may bring an order of touching w of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dotadd import block as blocks
from dotadd._jit import kernel
from dotadd.batch import Batch
from dotadd.features.base import FeatureMap, require_room, squared_norms_of_all
from dotadd.features.filling import Filling, Picked
from dotadd.features.part import Part
from dotadd.threads import for_each, over_rows

__all__ = ["Expansion", "Picked"]

EXACT_BYTES = 256 << 20  # of sums in float64 at a time


class Expansion:
    """phi over one batch in memory; `dot` and `add` use so many threads."""

    def __init__(self, phi: FeatureMap, batch: Batch, *, dtype: type = np.float32, threads: int = 1) -> None:
        require_room(phi)
        self.batch, self.dtype, self.threads = batch, dtype, threads
        self.phi = phi.prepared(batch, threads)
        self._filling = Filling(self.phi, batch, dtype)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def dim(self) -> int:
        return self.phi.dim

    @property
    def in_memory(self) -> bool:
        """Whether blocks are views of rows in memory, which cost nothing to hand out, but are not yet in the cache."""
        return self._filling.view is not None

    @property
    def bulk(self) -> bool:
        """Whether `dot` of many rows is much faster than visiting them one by one."""
        return self.phi.bulk

    def blocks(self, rows: np.ndarray | None = None, *, ahead: bool = False) -> Iterator[Picked]:
        """The rows in this order (all of them, first to last, by default), a block at a time.

        A block is valid until the next one is asked for. With `ahead`, the next one is filled meanwhile, if there is
        more than one thread.
        """
        return self._filling.blocks(self._all() if rows is None else rows, ahead=ahead and self.threads > 1)

    def squared_norms(self) -> np.ndarray:
        """|phi(z_i)|^2 of every row."""
        return squared_norms_of_all(self.phi, self.batch, self.threads)

    def dot(self, ws: Sequence[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        """<w, phi(z_i)> of these rows (all by default) for each of several w."""
        rows = self._all() if rows is None else rows
        outputs = [np.zeros(len(rows)) for _ in ws]

        def piece(first: int, stop: int) -> None:
            some = rows[first:stop]
            if self.phi.bulk:
                for w, output in zip(ws, outputs, strict=True):
                    self.phi.dot(self.batch, some, w, output[first:stop])
                return
            for block, at, seen in self._filling.blocks(some):  # expanded once for all w
                for w, output in zip(ws, outputs, strict=True):
                    out = output[first : first + len(seen)]
                    blocks.dot(block.start, block.end, block.indices, block.values, at, w, out)
                first += len(seen)

        over_rows(piece, len(rows), self.threads)
        return outputs

    def add(self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> None:
        """w += sum_i coefficient_i phi(z_i) for each of several w. Threads share out w, not the rows."""
        used = _used(coefficients)
        if not self.phi.bulk:
            for block, at, rows in self.blocks(used):
                for some, w in zip(coefficients, ws, strict=True):
                    blocks.add(block.start, block.end, block.indices, block.values, at, some[rows], w)
            return

        def tile(work: tuple[int, Part]) -> None:
            first, part = work
            for some, w in zip(coefficients, ws, strict=True):
                part.add(self.batch, used, some[used], w[first : first + part.dim])

        for_each(self.phi.tiles(-(-self.dim // self.threads)), tile, self.threads)

    def squared_distances(self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> list[float]:
        """|w - sum_i coefficient_i phi(z_i)|^2 for each of several w, the sum built from scratch in float64.

        It is built for so many slots at a time that it stays within EXACT_BYTES, as far as phi comes in tiles.
        """
        used = _used(coefficients)
        if self.phi.bulk:
            tiles = self.phi.tiles(max(1, EXACT_BYTES // (8 * self.threads)))
        else:
            room = max(1, EXACT_BYTES // (8 * len(ws) * self.threads))
            tiles = [(first, self.phi) for first in range(0, self.dim, room)]
        totals = np.zeros((len(tiles), len(ws)))  # a place for each, so that the sum does not depend on the threads

        def tile(number: int) -> None:
            first, part = tiles[number]
            for k, (some, w) in enumerate(zip(coefficients, ws, strict=True)):
                sums = np.zeros(part.dim)
                part.add(self.batch, used, some[used], sums)
                totals[number, k] = _squared_distance(w[first : first + part.dim], sums)

        def stretch(number: int) -> None:
            first, stop = tiles[number][0], min(tiles[number][0] + room, self.dim)
            sums = [np.zeros(stop - first) for _ in ws]
            for block, at, rows in self._filling.blocks(used):  # expanded once for all w
                for some, part in zip(coefficients, sums, strict=True):
                    _add_within(block.start, block.end, block.indices, block.values, at, some[rows], first, part)
            totals[number] = [_squared_distance(w[first:stop], part) for w, part in zip(ws, sums, strict=True)]

        for_each(range(len(tiles)), tile if self.phi.bulk else stretch, self.threads)
        return totals.sum(axis=0).tolist()

    def _all(self) -> np.ndarray:
        return np.arange(len(self.batch), dtype=np.int64)


def _used(coefficients: Sequence[np.ndarray]) -> np.ndarray:
    """The rows that count in any of the sums."""
    return np.flatnonzero(np.logical_or.reduce([some != 0.0 for some in coefficients]))


@kernel
def _squared_distance(a, b):
    total = 0.0
    for k in range(np.uint64(len(a))):
        difference = np.float64(a[k]) - np.float64(b[k])
        total += difference * difference
    return total


@kernel
def _add_within(start, end, indices, values, at, coefficients, first, out):
    """ADD, for the slots from `first` on that `out` has room for."""
    low, high = np.uint64(first), np.uint64(first + len(out))
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            if low <= slot < high:
                out[slot - low] += coefficients[j] * (1.0 if values is None else np.float64(values[k]))
