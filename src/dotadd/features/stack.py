"""Stack and Scaled: `a + b` sets the spaces of several maps side by side, `0.5 * a` scales one.

<phi(z), phi(z')> = sum over the parts of factor**2 * <part(z), part(z')>
"""

from __future__ import annotations

import math

import numpy as np

from dotadd.batch import Batch
from dotadd.block import Block
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, FeatureMap, Shape, checked_dim


class Stack(FeatureMap):
    """Maps over the same raw examples, each with an index range of its own, in this order."""

    is_sum = True

    def __init__(self, *parts: FeatureMap) -> None:
        self.parts = parts
        self.takes = tuple(kind for kind in parts[0].takes if all(kind in part.takes for part in parts))
        self.distinct = all(part.distinct for part in parts)
        if not self.takes:
            reads = [f"{part!r} reads {' or '.join(kind.kind for kind in part.takes)}" for part in parts]
            raise FeatureError(f"these maps cannot be stacked: {', '.join(reads)}")

    @classmethod
    def of(cls, *maps: FeatureMap) -> Stack:
        """A stack in which stacks among the maps are taken apart."""
        return cls(*(part for phi in maps for part in (phi.parts if isinstance(phi, Stack) else (phi,))))

    def __repr__(self) -> str:
        return " + ".join(repr(part) for part in self.parts)

    @property
    def dim(self) -> int:
        return checked_dim(self, sum(part.dim for part in self.parts))

    def resolve(self, shape: Shape) -> Stack:
        return Stack(*(part.resolve(shape) for part in self.parts))

    def check(self, batch: Batch) -> BadRow | None:
        found = [bad for bad in (part.check(batch) for part in self.parts) if bad is not None]
        return min(found, key=lambda bad: bad.row, default=None)

    def bound(self, batch: Batch) -> int | np.ndarray:
        bounds = [part.bound(batch) for part in self.parts]
        return sum(bounds[1:], start=bounds[0])

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        base = 0
        for part in self.parts:
            part.fill(batch, rows, block.placed(base, 1.0))
            base += part.dim


class Scaled(FeatureMap):
    """A map times a number. Its kernel is scaled by the number's square."""

    is_sum = True

    def __init__(self, factor: float, phi: FeatureMap) -> None:
        if not math.isfinite(factor):
            raise FeatureError(f"a map can be scaled by a finite number, and not by {factor!r}")
        self.factor, self.phi = float(factor), phi
        self.takes, self.distinct = phi.takes, phi.distinct

    @classmethod
    def of(cls, phi: FeatureMap, factor: float) -> FeatureMap:
        """`factor * phi`, where a factor before a factor is one factor, and 1 is none."""
        if isinstance(phi, Scaled):
            factor, phi = factor * phi.factor, phi.phi
        return phi if factor == 1.0 else cls(factor, phi)

    def __repr__(self) -> str:
        inside = repr(self.phi)
        return f"{self.factor!r} * {f'({inside})' if self.phi.is_sum else inside}"

    @property
    def dim(self) -> int:
        return self.phi.dim

    def resolve(self, shape: Shape) -> Scaled:
        return Scaled(self.factor, self.phi.resolve(shape))

    def check(self, batch: Batch) -> BadRow | None:
        return self.phi.check(batch)

    def bound(self, batch: Batch) -> int | np.ndarray:
        return self.phi.bound(batch)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        self.phi.fill(batch, rows, block.placed(0, self.factor))
