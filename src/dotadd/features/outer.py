"""OuterMap: a map around another one, which answers what it does not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from dotadd.data.batches import Batch
from dotadd.features.base import BadRow, FeatureMap, Holes, Origins, Shape
from dotadd.features.learning import Learner, PartsLearner, learned
from dotadd.features.occurrences import Occurrences


class OuterMap(FeatureMap):
    """A map around `phi`, in whose slots it writes. Those that do otherwise override what is no longer true."""

    phi: FeatureMap

    def around(self, phi: FeatureMap) -> FeatureMap:
        """The same around another map."""
        raise NotImplementedError

    def inside(self, batch: Batch) -> Batch:
        """What the map inside reads of these rows."""
        return batch

    def shape_inside(self, shape: Shape) -> Shape:
        """The shape of that."""
        return shape

    def own_params(self) -> dict[str, object]:
        """The parameters that can be set, but for those of the map inside."""
        return self._description()

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return self.phi.get_params() | self.own_params() if deep else self.own_params()

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        own = self.own_params()
        made = self._description() | {name: value for name, value in params.items() if name in own}
        inside = {name: value for name, value in params.items() if name not in own}
        if inside and isinstance(phi := made["phi"], FeatureMap):
            made["phi"] = phi.with_params(inside)
        return cast("Callable[..., FeatureMap]", type(self))(**made)

    @property
    def title(self) -> str:
        return self.phi.title

    @property
    def reads(self) -> dict[str, str]:
        return self.phi.reads

    @property
    def dim(self) -> int:
        return self.phi.dim

    @property
    def anchor(self) -> int:
        return self.phi.anchor

    def is_dense(self, shape: Shape) -> bool:
        return self.phi.is_dense(self.shape_inside(shape))

    def holes(self) -> Holes:
        return self.phi.holes()

    def resolve(self, shape: Shape) -> FeatureMap:
        return self.around(self.phi.resolve(self.shape_inside(shape)))

    def check(self, batch: Batch) -> BadRow | None:
        return self.phi.check(self.inside(batch))

    @property
    def checks_rows(self) -> bool:
        return self.phi.checks_rows

    @property
    def learns(self) -> bool:
        return self.phi.learns

    def learner(self) -> Learner:
        return _InnerLearner(self)

    def learn(self, batch: Batch) -> FeatureMap:
        return learned(self.learner(), batch)

    def state(self) -> dict[str, np.ndarray]:
        return self.phi.state()

    def with_state(self, state: Mapping[str, np.ndarray]) -> FeatureMap:
        return self.around(self.phi.with_state(state))

    def bound(self, batch: Batch) -> int | np.ndarray:
        return self.phi.bound(self.inside(batch))

    def prepared(self, batch: Batch, threads: int = 1) -> FeatureMap:
        return self.around(self.phi.prepared(self.inside(batch), threads))

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        return self.phi.occurrences(self.inside(batch), row)

    def invert(self, slots: np.ndarray) -> Origins:
        return self.phi.invert(slots)

    def names(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str | None]:
        return self.phi.names(slots, columns)


class _InnerLearner(PartsLearner):
    """The map inside learns from what it reads."""

    def __init__(self, outer: OuterMap) -> None:
        super().__init__(outer.around, outer.phi)
        self._inside = outer.inside

    def see(self, batch: Batch) -> None:
        super().see(self._inside(batch))
