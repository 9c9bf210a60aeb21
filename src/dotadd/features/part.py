"""Part: DOT and ADD of many examples at once, with one stretch of w.

A solver that takes examples one by one reads Blocks. Where many examples meet a w that stands still (predictions, the
gap, batch solvers), a map may know an order of touching w that is kinder to the cache than example by example: it then
brings its own `dot` and `add`, and `bulk` says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.batch import Batch


class Part:
    """Features that lie in one stretch of w: a whole map, or the features of a map in one tile of w."""

    bulk: bool = False
    """Whether `dot` and `add` are faster for many rows than a Block for each few rows."""

    anchor: int = 0
    """The slot that should begin a cache line: maps that lay features out by the line count from it."""

    @property
    def dim(self) -> int:
        """Slots of the stretch."""
        raise NotImplementedError

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        """out[j] += <w, phi(batch[rows[j]])>."""
        raise NotImplementedError

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        """`dot` with each of several w. What is done to the examples first, a map may do once for all of them."""
        for w, out in zip(ws, outs, strict=True):
            self.dot(batch, rows, w, out)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        """w += sum_j coefficients[j] * phi(batch[rows[j]])."""
        raise NotImplementedError


class Times(Part):
    """A part times a number, or times a number for each example of the batch."""

    def __init__(self, part: Part, factor: float | np.ndarray) -> None:
        self.part, self.factor, self.bulk = part, factor, part.bulk

    @property
    def dim(self) -> int:
        return self.part.dim

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        sums, factor = [np.zeros(len(rows)) for _ in ws], self._of(rows)
        self.part.dots(batch, rows, ws, sums)
        for out, some in zip(outs, sums, strict=True):
            out += some * factor

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        self.part.add(batch, rows, coefficients * self._of(rows), w)

    def _of(self, rows: np.ndarray) -> float | np.ndarray:
        return self.factor[rows] if isinstance(self.factor, np.ndarray) else self.factor
