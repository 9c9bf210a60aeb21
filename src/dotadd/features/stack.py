"""Stack: `a + b` sets the spaces of several maps side by side.

<phi(z), phi(z')> = sum over the parts of <part(z), part(z')>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dotadd.batch import Batch
from dotadd.block import Block
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, FeatureMap, Shape, checked_dim, sub_state
from dotadd.features.learning import Learner, PartsLearner, learned
from dotadd.features.origins import Origins
from dotadd.features.part import Part


class Stack(FeatureMap):
    """Maps over the same raw examples, each with an index range of its own, in this order."""

    is_sum = True

    def __init__(self, *parts: FeatureMap) -> None:
        self.parts = parts
        self.takes = tuple(kind for kind in parts[0].takes if all(kind in part.takes for part in parts))
        self.distinct = all(part.distinct for part in parts)
        self.bulk = any(part.bulk for part in parts)
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

    @property
    def anchor(self) -> int:  # type: ignore[override]
        """That of the largest part: it has the most to lose."""
        dims = [part.dim for part in self.parts]
        largest = int(np.argmax(dims))
        return sum(dims[:largest]) + self.parts[largest].anchor

    def resolve(self, shape: Shape) -> Stack:
        return Stack(*(part.resolve(shape) for part in self.parts))

    @property
    def learns(self) -> bool:
        return any(part.learns for part in self.parts)

    def learner(self) -> Learner:
        return PartsLearner(Stack, *self.parts)

    def learn(self, batch: Batch) -> FeatureMap:
        return learned(self.learner(), batch)

    def state(self) -> dict[str, np.ndarray]:
        return {f"{k}.{name}": array for k, part in enumerate(self.parts) for name, array in part.state().items()}

    def with_state(self, state: Mapping[str, np.ndarray]) -> Stack:
        return Stack(*(part.with_state(sub_state(state, str(k))) for k, part in enumerate(self.parts)))

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

    def prepared(self, batch: Batch, threads: int = 1) -> Stack:
        return Stack(*(part.prepared(batch, threads) for part in self.parts))

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        base = 0
        for part in self.parts:
            part.dots(batch, rows, [w[base : base + part.dim] for w in ws], outs)
            base += part.dim

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        base = 0
        for part in self.parts:
            part.add(batch, rows, coefficients, w[base : base + part.dim])
            base += part.dim

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return sum((part.squared_norms(batch, rows) for part in self.parts), start=np.zeros(len(rows)))

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        tiles, base = [], 0
        for part in self.parts:
            tiles += [(base + first, tile) for first, tile in part.tiles(slots)]
            base += part.dim
        return tiles

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        found, beyond = Origins.unnamed(repr(self), len(rows)), nth.copy()
        for part in self.parts:
            open_ = np.flatnonzero(beyond >= 0)
            names, beyond[open_] = part.origins(batch, rows[open_], beyond[open_])
            mine = beyond[open_] < 0
            found.put(open_[mine], names.take(mine))
        return found, beyond

    def invert(self, slots: np.ndarray) -> Origins:
        found, base = Origins.unnamed(repr(self), len(slots)), 0
        for part in self.parts:
            mine = np.flatnonzero((slots >= base) & (slots < base + part.dim))
            found.put(mine, part.invert(slots[mine] - base))
            base += part.dim
        return found
