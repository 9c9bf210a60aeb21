"""Learner: what is shown the training rows, chunk by chunk, for maps that have room for what occurs there alone.

What it has learned grows where it lies. A map is a description that never changes, so learning through maps alone, one
after the other, would copy all there is for each chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dotadd.batch import Batch

if TYPE_CHECKING:
    from dotadd.features.base import FeatureMap


class Learner:
    """see(chunk) for all training rows, and then done(). This one asks the map itself for each chunk."""

    def __init__(self, phi: FeatureMap) -> None:
        self._phi = phi

    def see(self, batch: Batch) -> None:
        self._phi = self._phi.learn(batch)

    def done(self) -> FeatureMap:
        """The map, with room for every feature that was seen."""
        return self._phi


class PartsLearner(Learner):
    """Of a map around others: these learn, and make(*others) puts what they have become together."""

    def __init__(self, make: Callable[..., FeatureMap], *parts: FeatureMap) -> None:
        self._make, self._learners = make, [part.learner() for part in parts]

    def see(self, batch: Batch) -> None:
        for learner in self._learners:
            learner.see(batch)

    def done(self) -> FeatureMap:
        return self._make(*(learner.done() for learner in self._learners))


def learned(learner: Learner, batch: Batch) -> FeatureMap:
    """What a learner makes of one batch."""
    learner.see(batch)
    return learner.done()
