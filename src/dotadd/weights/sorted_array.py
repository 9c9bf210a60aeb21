"""SortedArray: the ids in order, and the slot of each beside it.

The paper merges the sorted features of an example with the sorted w, in O(|w| + |phi(z)|). Measured on 13 million ids
and blocks of 65,000 features (several examples at a time), sorting and merging took 190 ns a feature, one binary search
after the other 420 ns, and binary searches in step with each other, so that their cache misses overlap, 65 ns. The last
is what is done here: O(|phi(z)| log |w|), and independent of how many features come at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.weights.base import GROUP, MISSING, Form, checked_state


class SortedArray(Form):
    """The least memory of the exact forms: 12 bytes an id. Ids that are inserted together get slots in their order.

    Insert many ids at a time: each call moves all that are there.
    """

    name = "sorted_array"
    moves = True

    def __init__(self) -> None:
        self._ids = np.empty(0, np.uint64)
        self._slots: np.ndarray = np.empty(0, np.uint32)

    @property
    def size(self) -> int:
        return len(self._ids)

    def find(self, ids: np.ndarray) -> np.ndarray:
        slots = np.empty(len(ids), np.uint64)
        _find(self._ids, self._slots, plain(ids), slots)
        return slots

    def insert(self, ids: np.ndarray) -> None:
        new = np.sort(ids[self.find(ids) == MISSING])
        if len(new) == 0:
            return
        new = new[np.r_[True, new[1:] != new[:-1]]]  # np.unique takes some 40 times as long as sorting, in NumPy 2.4
        total = self.size + len(new)
        merged, slots = np.empty(total, np.uint64), np.empty(total, np.uint32 if total <= 2**32 else np.uint64)
        _merge(self._ids, self._slots, new, merged, slots)
        self._ids, self._slots = merged, slots

    def ids(self) -> np.ndarray:
        ids = np.empty_like(self._ids)
        ids[self._slots] = self._ids
        return ids

    def state(self) -> dict[str, np.ndarray]:
        return {"ids": self._ids, "slots": self._slots}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        form = cls()
        ids = checked_state(state, "ids", (np.uint64,))
        form._ids = plain(ids)
        form._slots = plain(checked_state(state, "slots", (np.uint32, np.uint64), len(ids)))
        return form


@kernel
def _find(ids, slots, keys, out):
    """For each key the last id that is not above it, by halving what is left; then whether it is the key."""
    at = np.empty(GROUP, np.uint64)
    n, total = np.uint64(len(keys)), np.uint64(len(ids))
    for first in range(np.uint64(0), n, np.uint64(GROUP)):
        m = min(np.uint64(GROUP), n - first)
        at[:] = np.uint64(0)
        left = total
        while left > np.uint64(1):
            half = left // np.uint64(2)
            for g in range(m):
                at[g] = at[g] + half if ids[at[g] + half] <= keys[first + g] else at[g]
            left -= half
        for g in range(m):
            known = total > np.uint64(0) and ids[at[g]] == keys[first + g]
            slot = np.uint64(slots[at[g]]) if known else MISSING
            out[first + g] = slot if slot < total else MISSING


@kernel
def _merge(ids, slots, new, merged, merged_slots):
    """Both sorted arrays in one; new ids get the slots after those that are there."""
    i, j = np.uint64(0), np.uint64(0)
    n, m = np.uint64(len(ids)), np.uint64(len(new))
    for k in range(np.uint64(len(merged))):
        if j == m or (i < n and ids[i] < new[j]):
            merged[k], merged_slots[k] = ids[i], slots[i]
            i += np.uint64(1)
        else:
            merged[k], merged_slots[k] = new[j], n + j
            j += np.uint64(1)
