"""Scaled: `0.5 * a`.

<phi(z), phi(z')> = factor**2 * <a(z), a(z')>
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.batch import Batch
from dotadd.block import Block
from dotadd.features.base import FeatureMap, checked_factor
from dotadd.features.origins import Origins
from dotadd.features.part import Part, Times
from dotadd.features.wrapped import Wrapped


class Scaled(Wrapped):
    """A map times a number. Its kernel is scaled by the number's square."""

    is_sum = True

    def __init__(self, factor: float, phi: FeatureMap) -> None:
        super().__init__(phi)
        self.factor = checked_factor("the factor of a map", factor)

    @classmethod
    def of(cls, phi: FeatureMap, factor: float) -> FeatureMap:
        """`factor * phi`, where a factor before a factor is one factor, and 1 is none."""
        factor = checked_factor("the factor of a map", factor)
        if isinstance(phi, Scaled):
            factor, phi = factor * phi.factor, phi.phi
        return phi if factor == 1.0 else cls(factor, phi)

    def around(self, phi: FeatureMap) -> Scaled:
        return Scaled(self.factor, phi)

    def __repr__(self) -> str:
        inside = repr(self.phi)
        return f"{self.factor!r} * {f'({inside})' if self.phi.is_sum else inside}"

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        self.phi.fill(batch, rows, block.placed(0, self.factor))

    def prepared(self, batch: Batch, threads: int = 1) -> Scaled:
        return self.around(self.phi.prepared(batch, threads))

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        Times(self.phi, self.factor).dots(batch, rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        Times(self.phi, self.factor).add(batch, rows, coefficients, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return self.factor**2 * self.phi.squared_norms(batch, rows)

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        return [(first, Times(tile, self.factor)) for first, tile in self.phi.tiles(slots)]

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        # k-mers of value 0 are not written, and it is the map inside that knows it
        whole = FeatureMap.origins if self.factor == 0.0 else Wrapped.origins
        return whole(self, batch, rows, nth)
