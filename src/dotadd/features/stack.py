"""Stack: `a + b` sets the spaces of several maps side by side.

<phi(z), phi(z')> = sum over the parts of <part(z), part(z')>
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dotadd.core.block import Block
from dotadd.data.batches import Batch
from dotadd.errors import FeatureError
from dotadd.features.base import Arrays, BadRow, FeatureMap, Holes, Origins, Part, Shape, checked_dim, sub_state
from dotadd.features.learning import Learner, StackLearner, learned
from dotadd.features.occurrences import Occurrences


class Stack(FeatureMap):
    """Maps over the same raw examples, each with an index range of its own, in this order. Stacks among them are taken
    apart."""

    is_sum = True
    parts: tuple[FeatureMap, ...]

    def __init__(self, *parts: FeatureMap) -> None:
        parts = tuple(part for phi in parts for part in (phi.parts if isinstance(phi, Stack) else (phi,)))
        self.parts = parts
        self.takes = tuple(kind for kind in parts[0].takes if all(kind in part.takes for part in parts))
        self.distinct = all(part.distinct for part in parts)
        self.bulk, self.keeps = any(part.bulk for part in parts), any(part.keeps for part in parts)
        self.whole = any(part.whole for part in parts)
        if not self.takes:
            reads = [f"{part!r} reads {' or '.join(kind.kind for kind in part.takes)}" for part in parts]
            raise FeatureError(f"these maps cannot be stacked: {', '.join(reads)}")

    def __repr__(self) -> str:
        return " + ".join(repr(part) for part in self.parts)

    @property
    def reads(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in self.parts:
            for name, kind in part.reads.items():
                before = found.get(name, kind)
                if before != kind and "lattices" in (before, kind):
                    raise FeatureError(
                        f"column {name!r} is read as lattices by one map, and by another as something else"
                    )
                found[name] = kind if before == kind else "both"
        return found

    @property
    def titles(self) -> list[str]:
        """What each part is called in names of parameters and features: spectrum, or spectrum-1 if there are more."""
        titles = [part.title for part in self.parts]
        return [
            title if titles.count(title) == 1 else f"{title}-{titles[: k + 1].count(title)}"
            for k, title in enumerate(titles)
        ]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        parts = dict(zip(self.titles, self.parts, strict=True))
        inside = [(title, part.get_params()) for title, part in parts.items() if deep]
        return parts | {f"{title}__{name}": value for title, params in inside for name, value in params.items()}

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        parts = []
        for title, old in zip(self.titles, self.parts, strict=True):
            inside, part = sub_state(params, title, "__"), params.get(title, old)
            if not isinstance(part, FeatureMap):
                raise FeatureError(f"{title} has to be a feature map, and not {part!r}")
            parts.append(part.with_params(inside) if inside else part)
        return Stack(*parts)

    @property
    def dim(self) -> int:
        return checked_dim(self, sum(part.dim for part in self.parts))

    def _placed(self) -> Iterator[tuple[slice, FeatureMap]]:
        """Each part, and its slots among those of all."""
        base = 0
        for part in self.parts:
            stop = base + part.dim
            yield slice(base, stop), part
            base = stop

    @property
    def anchor(self) -> int:
        """That of the largest part: it has the most to lose."""
        dims = [part.dim for part in self.parts]
        largest = int(np.argmax(dims))
        return sum(dims[:largest]) + self.parts[largest].anchor

    def is_dense(self, shape: Shape) -> bool:
        return all(part.is_dense(shape) for part in self.parts)

    def holes(self) -> Holes:
        found = [Holes(*(slots + place.start for slots in part.holes())) for place, part in self._placed()]
        return Holes(*(np.concatenate(slots) for slots in zip(*found, strict=True)))

    def resolve(self, shape: Shape) -> Stack:
        return Stack(*(part.resolve(shape) for part in self.parts))

    @property
    def learns(self) -> bool:
        return any(part.learns for part in self.parts)

    def learner(self) -> Learner:
        return StackLearner(Stack, *self.parts)

    def learn(self, batch: Batch) -> FeatureMap:
        return learned(self.learner(), batch)

    def state(self) -> dict[str, np.ndarray]:
        return {f"{k}.{name}": array for k, part in enumerate(self.parts) for name, array in part.state().items()}

    def with_state(self, state: Mapping[str, np.ndarray]) -> Stack:
        return Stack(*(part.with_state(sub_state(state, str(k))) for k, part in enumerate(self.parts)))

    def check(self, batch: Batch) -> BadRow | None:
        found = [bad for bad in (part.check(batch) for part in self.parts) if bad is not None]
        return min(found, key=lambda bad: bad.row, default=None)

    @property
    def checks_rows(self) -> bool:
        return any(part.checks_rows for part in self.parts)

    def bound(self, batch: Batch) -> int | np.ndarray:
        bounds = [part.bound(batch) for part in self.parts]
        return sum(bounds[1:], start=bounds[0])

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        for place, part in self._placed():
            part.fill(batch, rows, block.placed(place.start, 1.0))

    def prepared(self, batch: Batch, threads: int = 1) -> Stack:
        return Stack(*(part.prepared(batch, threads) for part in self.parts))

    dot = Part.dot

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        for place, part in self._placed():
            part.dots(batch, rows, [w[place] for w in ws], outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        for place, part in self._placed():
            part.add(batch, rows, coefficients, w[place])

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return sum((part.squared_norms(batch, rows) for part in self.parts), start=np.zeros(len(rows)))

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        return [(place.start + first, tile) for place, part in self._placed() for first, tile in part.tiles(slots)]

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        found, beyond = Origins.unnamed(repr(self), len(rows)), nth.copy()
        for part in self.parts:
            open_ = np.flatnonzero(beyond >= 0)
            names, beyond[open_] = part.origins(batch, rows[open_], beyond[open_])
            mine = beyond[open_] < 0
            found.put(open_[mine], names.take(mine))
        return found, beyond

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        found = [(place.start, part.occurrences(batch, row)) for place, part in self._placed()]
        return Occurrences.joined([some._replace(slots=some.slots + first) for first, some in found])

    def invert(self, slots: np.ndarray) -> Origins:
        found = Origins.unnamed(repr(self), len(slots))
        for place, part in self._placed():
            mine = np.flatnonzero((slots >= place.start) & (slots < place.stop))
            found.put(mine, part.invert(slots[mine] - place.start))
        return found

    def names(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str | None]:
        found: list[str | None] = [None] * len(slots)
        for title, (place, part) in zip(self.titles, self._placed(), strict=True):
            mine = np.flatnonzero((slots >= place.start) & (slots < place.stop))
            for at, name in zip(mine.tolist(), part.names(slots[mine] - place.start, columns), strict=True):
                found[at] = None if name is None else f"{title}__{name}"
        return found
