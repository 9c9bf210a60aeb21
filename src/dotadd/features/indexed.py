"""Indexed: a slot of w only for the features that occur in training.

phi'(z)_s = phi(z)_i, where s is the slot that an index gives to the id i; features that were never seen have none
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dotadd._jit import kernel
from dotadd.batch import Batch
from dotadd.block import Block
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, FeatureMap, Shape, sub_state
from dotadd.features.learning import Learner, learned
from dotadd.features.linear import Linear
from dotadd.features.origins import Origins
from dotadd.weights import MISSING, Dense, Form, HashTable, SortedArray, Trie

FORMS: dict[str, type[Form]] = {form.name: form for form in (HashTable, SortedArray, Trie, Dense)}
FEWEST_IDS, MOST_IDS = 1 << 18, 1 << 24  # that are learned at a time


class Indexed(FeatureMap):
    """A map whose space may be open and huge, up to 2**63 ids; w is as long as there were different ids in training.

    `learn` gives slots to ids, and other ids are left out: their weight would be 0. Normalize before indexing (or by
    `indexed(...).normalized()`, which is the same), so that the length of an example counts features that were never
    seen; where a stack of indexed maps is normalized, it does not.
    """

    def __init__(self, phi: FeatureMap, form: str = "hash_table", index: Form | None = None) -> None:
        if not isinstance(form, str) or form not in FORMS:
            raise FeatureError(f"there is no form {form!r} of w; there are {', '.join(FORMS)}")
        self.phi, self.form, self.index = phi, form, index
        self.takes, self.distinct = phi.takes, phi.distinct

    def __repr__(self) -> str:
        inside = repr(self.phi)
        return f"{f'({inside})' if self.phi.is_sum else inside}.indexed({self.form!r})"

    def __eq__(self, other: object) -> bool:
        """Whether both are described alike; what they have learned belongs to the model."""
        return isinstance(other, Indexed) and (self.phi, self.form) == (other.phi, other.form)

    __hash__ = FeatureMap.__hash__

    def normalized(self) -> Indexed:
        return Indexed(self.phi.normalized(), self.form, self.index)

    @property
    def dim(self) -> int:
        return self._learned().size

    def _learned(self) -> Form:
        if self.index is None:
            raise FeatureError(f"{self!r} has not seen the training data yet: use phi.resolve(shape).learn(batch)")
        return self.index

    def resolve(self, shape: Shape) -> Indexed:
        # as for Hashed, vectors need no number of columns
        return self if isinstance(self.phi, Linear) else Indexed(self.phi.resolve(shape), self.form, self.index)

    def learner(self) -> Learner:
        return _IndexLearner(self)

    def learn(self, batch: Batch) -> FeatureMap:
        return learned(self.learner(), batch)

    def state(self) -> dict[str, np.ndarray]:
        inside = {f"phi.{name}": array for name, array in self.phi.state().items()}
        return inside | {f"index.{name}": array for name, array in self._learned().state().items()}

    def with_state(self, state: Mapping[str, np.ndarray]) -> Indexed:
        index = FORMS[self.form].from_state(sub_state(state, "index"))
        return Indexed(self.phi.with_state(sub_state(state, "phi")), self.form, index)

    def check(self, batch: Batch) -> BadRow | None:
        return None if isinstance(self.phi, Linear) else self.phi.check(batch)

    def bound(self, batch: Batch) -> int | np.ndarray:
        return self.phi.bound(batch)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert block.indices is not None
        ids = np.empty(len(block.indices), np.uint64)
        first = block.end[: len(rows)].copy()
        self.phi.fill(batch, rows, Block(block.start, block.end, ids, block.values, scale=block.scale))
        _pack(first, block.end, ids)
        slots = self._learned().find(ids[: int((block.end[: len(rows)] - first).sum())])
        _place(first, block.end, slots, block.base, block.indices, block.values)

    def prepared(self, batch: Batch, threads: int = 1) -> Indexed:
        return Indexed(self.phi.prepared(batch, threads), self.form, self.index)

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        distinct, at = np.unique(rows, return_inverse=True)
        some = batch.take(distinct)
        ids, offsets = _ids(self.phi, some, np.arange(len(some)), _bounds(self.phi, some))
        known = np.flatnonzero(self._learned().find(ids) != MISSING)
        before = np.searchsorted(known, offsets)  # of the features that are written, so many belong to earlier rows
        place = before[at] + nth
        inside = place < before[at + 1]
        names = Origins.unnamed(repr(self), len(rows))
        nth_of_phi = known[place[inside]] - offsets[at[inside]]
        names.put(np.flatnonzero(inside), self.phi.origins(batch, rows[inside], nth_of_phi)[0])
        return names, np.where(inside, -1, place - before[at + 1])

    def invert(self, slots: np.ndarray) -> Origins:
        return self.phi.invert(self._learned().ids()[slots])


class _IndexLearner(Learner):
    """Inserts the ids of all rows into one index, which grows."""

    def __init__(self, phi: Indexed) -> None:
        self._inside, self._form = phi.phi.learner(), phi.form
        self._index = FORMS[phi.form]() if phi.index is None else phi.index.copy()
        self._new: list[np.ndarray] = []  # ids that are not in the index yet

    def see(self, batch: Batch) -> None:
        self._inside.see(batch)
        phi = self._inside.done().prepared(batch)
        bounds = _bounds(phi, batch)
        room = np.cumsum(bounds)
        first = used = 0
        while first < len(batch):
            stop = max(first + 1, int(np.searchsorted(room, used + self._step(), side="right")))
            self._insert(_ids(phi, batch, np.arange(first, stop), bounds[first:stop])[0])
            first, used = stop, int(room[stop - 1])

    def done(self) -> Indexed:
        self._insert_new()
        return Indexed(self._inside.done(), self._form, self._index)

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


def _bounds(phi: FeatureMap, batch: Batch) -> np.ndarray:
    return np.broadcast_to(np.asarray(phi.bound(batch), np.int64), len(batch))


def _ids(phi: FeatureMap, batch: Batch, rows: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ids that phi writes for these rows, one row after the other, and where each row begins and the last ends."""
    block = Block.scratch(bounds, 2**64)
    phi.fill(batch, rows, block)
    assert block.indices is not None
    _pack(block.start, block.end, block.indices)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(block.end - block.start, out=offsets[1:])
    return block.indices[: offsets[-1]], offsets


@kernel
def _pack(first, end, ids):
    """Move the ids of all rows to the front, one row after the other."""
    p = np.uint64(0)
    for j in range(len(first)):
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            ids[p] = ids[k]
            p += np.uint64(1)


@kernel
def _place(first, end, slots, base, out_indices, values):
    """Write the slots into their rows and leave out what has none; the values move along, and `end` with them."""
    at = np.uint64(0)
    for j in range(len(first)):
        p = np.uint64(first[j])
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            if slots[at] != MISSING:
                out_indices[p] = np.uint64(base) + slots[at]
                values[p] = values[k]
                p += np.uint64(1)
            at += np.uint64(1)
        end[j] = p
