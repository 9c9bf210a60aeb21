"""AroundMap and Wrapped: what a map around another map hands on to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from dotadd.batch import Batch
from dotadd.features.base import BadRow, FeatureMap, Shape
from dotadd.features.learning import Learner, PartsLearner, learned
from dotadd.features.origins import Origins


class AroundMap(FeatureMap):
    """A map around another one, `phi`: what it learns is what that one learns. Subclasses implement `around`."""

    phi: FeatureMap

    def around(self, phi: FeatureMap) -> Self:
        """The same around another map."""
        raise NotImplementedError

    @property
    def learns(self) -> bool:
        return self.phi.learns

    def learner(self) -> Learner:
        return PartsLearner(self.around, self.phi)

    def learn(self, batch: Batch) -> FeatureMap:
        return learned(self.learner(), batch)

    def state(self) -> dict[str, np.ndarray]:
        return self.phi.state()

    def with_state(self, state: Mapping[str, np.ndarray]) -> Self:
        return self.around(self.phi.with_state(state))

    def bound(self, batch: Batch) -> int | np.ndarray:
        return self.phi.bound(batch)


class Wrapped(AroundMap):
    """A map that changes the values of another one: the same slots, the same rows."""

    def __init__(self, phi: FeatureMap) -> None:
        self.phi, self.takes, self.distinct, self.bulk = phi, phi.takes, phi.distinct, phi.bulk

    @property
    def dim(self) -> int:
        return self.phi.dim

    @property
    def anchor(self) -> int:  # type: ignore[override]
        return self.phi.anchor

    def resolve(self, shape: Shape) -> Self:
        return self.around(self.phi.resolve(shape))

    def check(self, batch: Batch) -> BadRow | None:
        return self.phi.check(batch)

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        return self.phi.origins(batch, rows, nth)

    def invert(self, slots: np.ndarray) -> Origins:
        return self.phi.invert(slots)
