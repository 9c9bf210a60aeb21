"""Learner: what is shown the training rows, chunk by chunk, for maps that have room for what occurs there alone.

What it has learned grows where it lies. A map is a description that never changes, so learning through maps alone, one
after the other, would copy all there is for each chunk.

Where one map is inside of another one, rows that come late may change what the inner one says of rows that came before:
a mismatch writes letters that it did not know then. `revised` tells of it, and the outer one asks for all rows once
more (`again`), so that what is learned does not depend on how rows are cut into chunks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dotadd._jit import kernel
from dotadd._util.threads import FEWEST, for_each
from dotadd.core.block import Block
from dotadd.data.batches import Batch
from dotadd.features.forms import MISSING, Form

if TYPE_CHECKING:
    from dotadd.features.base import FeatureMap

MOST_SLOTS = 1 << 24  # for which each thread may have numbers of its own
FEWEST_IDS, MOST_IDS = 1 << 18, 1 << 24  # that are learned at a time


class Learner:
    """see(chunk) for all training rows, the same once more as long as again(), and then done(). This one asks the map
    itself for each chunk.

    Where the data lies in parts on a cluster, each part sees its own rows with a copy of the learner that there is
    before the pass, and `join` makes one of two copies; in an order that is always the same. That works for what is a
    sum, a largest value or the like, and not for numbers that are given as features come. A map of one's own that can
    do it brings, by `learner()`, a subclass with `sums = True`, with `see`, `join` and `done`, that can be pickled.
    """

    def __init__(self, phi: FeatureMap) -> None:
        self._phi, self._seen, self._changed = phi, False, False

    @property
    def revised(self) -> bool:
        """Whether rows that were seen may have other features by now than they had then."""
        return self._changed

    @property
    def sums(self) -> bool:
        """Whether parts of the data can be seen by copies, which are joined."""
        return not self._phi.learns

    @property
    def early(self) -> bool:
        """Whether done() gives a map that can be used before all rows were seen."""
        return True

    def join(self, other: Learner) -> None:
        """Take over what a copy of this one, as it was before the pass, has seen in it elsewhere."""
        self._phi = other._phi if other._seen else self._phi
        self._seen |= other._seen

    def see(self, batch: Batch) -> None:
        phi = self._phi.learn(batch)
        self._changed |= self._seen and phi is not self._phi
        self._phi, self._seen = phi, True

    def again(self) -> bool:
        """Whether all rows have to be seen once more; asked when all have been."""
        return False

    def done(self) -> FeatureMap:
        """The map, with room for every feature that was seen."""
        return self._phi


class PartsLearner(Learner):
    """Of a map around others: these learn, and make(*others) puts what they have become together."""

    def __init__(self, make: Callable[..., FeatureMap], *parts: FeatureMap) -> None:
        self._make, self._learners = make, [part.learner() for part in parts]
        self._waiting = self._learners

    @property
    def revised(self) -> bool:
        return any(learner.revised for learner in self._learners)

    @property
    def sums(self) -> bool:
        return all(learner.sums for learner in self._learners)

    @property
    def early(self) -> bool:
        return all(learner.early for learner in self._learners)

    def join(self, other: Learner) -> None:
        assert isinstance(other, PartsLearner)
        for mine, theirs in zip(self._waiting, other._waiting, strict=True):
            mine.join(theirs)

    def see(self, batch: Batch) -> None:
        for learner in self._waiting:
            learner.see(batch)

    def again(self) -> bool:
        self._waiting = [learner for learner in self._waiting if learner.again()]
        return bool(self._waiting)

    def done(self) -> FeatureMap:
        return self._make(*(learner.done() for learner in self._learners))


class StackLearner(PartsLearner):
    """Where a part grows, those after it move."""

    def __init__(self, make: Callable[..., FeatureMap], *parts: FeatureMap) -> None:
        super().__init__(make, *parts)
        self._growing = [learner for learner, part in zip(self._learners, parts[:-1], strict=False) if part.learns]
        self._first: list[int] | None = None  # their sizes after the first chunk

    @property
    def revised(self) -> bool:
        return super().revised or self._first not in (None, self._sizes())

    def see(self, batch: Batch) -> None:
        super().see(batch)
        if self._first is None:
            self._first = self._sizes()

    def again(self) -> bool:
        once_more = super().again()
        self._first = None if once_more else self._first
        return once_more

    def _sizes(self) -> list[int]:
        return [learner.done().dim for learner in self._growing]


class IndexLearner(Learner):
    """Inserts the ids of all rows into one index, which grows; once more where the map inside has learned meanwhile to
    write others for the same rows."""

    def __init__(self, make: Callable[[FeatureMap, Form], FeatureMap], phi: FeatureMap, before: Form) -> None:
        self._make, self._inside, self._before = make, phi.learner(), before
        self._fixed: FeatureMap | None = None  # the map inside, once it has learned all there is
        self._begin()

    def _begin(self) -> None:
        self._index = self._before.copy()
        self._new: list[np.ndarray] = []  # ids that are not in the index yet

    @property
    def revised(self) -> bool:
        return self._fixed is None and self._inside.revised

    @property
    def sums(self) -> bool:
        """Numbers are given to features as they are met, in each part to others."""
        return False

    @property
    def early(self) -> bool:
        return self._fixed is not None or self._inside.early

    def again(self) -> bool:
        """The map inside comes first, and then this one if what it wrote has changed."""
        inside = self._fixed is None and self._inside.again()
        if not (inside or self.revised):
            return False
        if not inside:
            self._fixed = self._inside.done()
        self._begin()
        return True

    def see(self, batch: Batch) -> None:
        if self._fixed is None:
            self._inside.see(batch)
            if not self._inside.early:  # and so it asks for another pass
                return
        phi = self._known().prepared(batch)
        bounds = bounds_of(phi, batch)
        room = np.cumsum(bounds)
        first = used = 0
        while first < len(batch):
            stop = max(first + 1, int(np.searchsorted(room, used + self._step(), side="right")))
            self._insert(ids_of(phi, batch, np.arange(first, stop), bounds[first:stop])[0])
            first, used = stop, int(room[stop - 1])

    def done(self) -> FeatureMap:
        self._insert_new()
        return self._make(self._known(), self._index)

    def _known(self) -> FeatureMap:
        """The map inside, with what it has learned so far."""
        return self._inside.done() if self._fixed is None else self._fixed

    def _step(self) -> int:
        """Ids that are learned together: as many as there are already, for merging them costs no more than sorting."""
        return min(max(FEWEST_IDS, self._index.size), MOST_IDS)

    def _insert(self, ids: np.ndarray) -> None:
        if not self._index.moves:
            self._index.insert(ids)
            return
        self._new.append(ids[self._index.find(ids) == MISSING])
        if sum(map(len, self._new)) >= self._step():
            self._insert_new()

    def _insert_new(self) -> None:
        if self._new:
            self._index.insert(np.concatenate(self._new))
            self._new = []


def bounds_of(phi: FeatureMap, batch: Batch) -> np.ndarray:
    """How many ids each row has at most."""
    return np.broadcast_to(np.asarray(phi.bound(batch), np.int64), len(batch))


def ids_of(phi: FeatureMap, batch: Batch, rows: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ids that phi writes for these rows, one row after the other, and where each row begins and the last ends."""
    block = Block.scratch(bounds, 2**64)
    phi.fill(batch, rows, block)
    assert block.indices is not None
    pack(block.start, block.end, block.indices)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(block.end - block.start, out=offsets[1:])
    return block.indices[: offsets[-1]], offsets


@kernel
def pack(first, end, ids):
    """Move the ids of all rows to the front, one row after the other."""
    p = np.uint64(0)
    for j in range(len(first)):
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            ids[p] = ids[k]
            p += np.uint64(1)


def learned(learner: Learner, batch: Batch) -> FeatureMap:
    """What a learner makes of one batch."""
    learner.see(batch)
    while learner.again():
        learner.see(batch)
    return learner.done()


def learned_on(threads: int, phi: FeatureMap, batch: Batch) -> FeatureMap:
    """phi.learn(batch). What is made of sums is shared out to threads, each of which sees some of the rows by a copy of
    the learner, as parts of a cluster do; unless it has a number for each of very many slots."""
    learner = phi.learner()
    if not (phi.learns and learner.sums and threads > 1 and len(batch) >= FEWEST * threads) or phi.dim > MOST_SLOTS:
        return phi.learn(batch)
    cuts = np.linspace(0, len(batch), threads + 1).astype(int).tolist()
    parts = [batch.slice(first, stop) for first, stop in pairwise(cuts)]

    def see(one: tuple[Learner, Batch]) -> None:
        one[0].see(one[1])

    more = True
    while more:
        copies = [learner, *(copy.deepcopy(learner) for _ in parts[1:])]
        for_each(list(zip(copies, parts, strict=True)), see, threads)
        for other in copies[1:]:
            learner.join(other)
        more = learner.again()
    return learner.done()
