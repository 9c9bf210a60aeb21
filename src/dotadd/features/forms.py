"""Forms of w: how the id of a feature, a 64-bit number, becomes a slot of the flat vector that solvers work on.

All forms answer the same questions, so that a map does not know which one it has. The exact ones start empty, give a
slot to each id that is inserted, and never move a slot: w can grow while training goes on. Lookups take many ids at a
time. Each of them waits for memory, and the processor waits for many of them at once: see GROUP.

The paper merges the sorted features of an example with the sorted w, in O(|w| + |phi(z)|). Measured on 13 million ids
and blocks of 65,000 features (several examples at a time), sorting and merging took 190 ns a feature, one binary search
after the other 420 ns, and binary searches in step with each other, so that their cache misses overlap, 65 ns. The last
is what SortedArray does: O(|phi(z)| log |w|), and independent of how many features come at a time.

HashTable takes O(|phi(z)|). Its ids lie in the order in which they came, which is that of the slots; beside them is a
sparse table of slot numbers with open addressing and linear probing, at most half full. Against a table that holds ids
and slots side by side, this takes less than half of the memory at the same speed: features that came with one example
lie together, so the ids (and the weights) of its many rare features are on few cache lines, and only the table is
touched at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from dotadd._jit import inner, kernel, plain, prefetch

MISSING = np.uint64(2**64 - 1)  # the slot of an id that has none
SMALLEST_BITS = 6
GROUP = 32  # so many lookups go side by side, step by step, so that their cache misses overlap


class Form:
    """An index that starts empty. `name` is how expressions of features call it."""

    name: ClassVar[str]
    moves: ClassVar[bool] = False
    """Whether each `insert` moves all that is there, so that many ids should come at a time."""

    @property
    def size(self) -> int:
        """The number of slots, which is the length of w."""
        raise NotImplementedError

    def find(self, ids: np.ndarray) -> np.ndarray:
        """The slots of these ids (uint64), MISSING where there is none."""
        raise NotImplementedError

    def insert(self, ids: np.ndarray) -> None:
        """Give a slot to each of these ids that has none yet."""
        raise NotImplementedError

    def slots(self, ids: np.ndarray, insert: bool = False) -> np.ndarray:
        """The slots of these ids; unknown ones are MISSING, or get a slot first."""
        if insert:
            self.insert(ids)
        return self.find(ids)

    def ids(self) -> np.ndarray:
        """The id of each slot. Of the exact forms alone: a hash cannot be undone."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        """All there is to keep, as plain arrays; they are not copied."""
        raise NotImplementedError

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The form with this state. Raises ValueError or KeyError if the arrays do not fit.

        They are not copied and never written to, so they may be read-only: the first new id moves them.

        Nor are they read through, as they may be large and on disk. So lookups trust no number in them that says where
        to look next: a damaged file gives wrong slots, but none outside of w.
        """
        raise NotImplementedError

    def copy(self) -> Self:
        """The same index, to be grown without a change to this one."""
        return self.from_state({name: array.copy() for name, array in self.state().items()})

    @property
    def nbytes(self) -> int:
        """Bytes of the index, beside those of w."""
        return sum(array.nbytes for array in self.state().values())


def checked_state(
    state: Mapping[str, np.ndarray], name: str, dtypes: tuple[type, ...], length: int | None = None
) -> np.ndarray:
    """The array of this name, if it is flat and of one of these types (and of this length)."""
    array = state[name]
    if array.ndim != 1 or array.dtype.type not in dtypes or (length is not None and len(array) != length):
        raise ValueError(f"{name} has type {array.dtype} and shape {array.shape}")
    return array


class Dense(Form):
    """A slot for each id up to the largest one that was inserted."""

    name = "dense"

    def __init__(self, size: int = 0) -> None:
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def find(self, ids: np.ndarray) -> np.ndarray:
        return np.where(ids < np.uint64(self._size), ids, MISSING)

    def insert(self, ids: np.ndarray) -> None:
        if len(ids):
            self._size = max(self._size, int(ids.max()) + 1)

    def ids(self) -> np.ndarray:
        return np.arange(self._size, dtype=np.uint64)

    def state(self) -> dict[str, np.ndarray]:
        return {"size": np.array([self._size], np.uint64)}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        return cls(int(checked_state(state, "size", (np.uint64,), 1)[0]))


class HashedIds(Form):
    """2**bits slots, and one of them for every id there may ever be."""

    name = "hashed"

    def __init__(self, bits: int) -> None:
        self.bits = bits

    @property
    def size(self) -> int:
        return 2**self.bits

    def find(self, ids: np.ndarray) -> np.ndarray:
        slots = np.empty(len(ids), np.uint64)
        _hash(plain(ids), self.bits, slots)
        return slots

    def insert(self, ids: np.ndarray) -> None:
        """Nothing to do: they have their slots."""

    def state(self) -> dict[str, np.ndarray]:
        return {"bits": np.array([self.bits], np.uint64)}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        return cls(int(checked_state(state, "bits", (np.uint64,), 1)[0]))


@inner
def slot_of(index, bits):
    """A slot for a 64-bit index: its bits stirred (the finalizer of splitmix64), and the top ones taken."""
    h = np.uint64(index) + np.uint64(0x9E3779B97F4A7C15)
    h = np.uint64((h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    h = np.uint64((h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return np.uint64((h ^ (h >> np.uint64(31))) >> (np.uint64(64) - np.uint64(bits)))


@kernel
def _hash(ids, bits, slots):
    for i in range(np.uint64(len(ids))):
        slots[i] = slot_of(ids[i], bits)


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
        _search(self._ids, self._slots, plain(ids), slots)
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
def _search(ids, slots, keys, out):
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


class HashTable(Form):
    """Slots in the order in which the ids came, found by a hash. Takes 16 to 24 bytes an id."""

    name = "hash_table"

    def __init__(self) -> None:
        self._count = 0
        self._ids = np.empty(2**SMALLEST_BITS // 2, np.uint64)
        self._table = np.zeros(2**SMALLEST_BITS, np.uint32)  # the slot + 1; 0 is an empty place

    @property
    def size(self) -> int:
        return self._count

    def find(self, ids: np.ndarray) -> np.ndarray:
        slots = np.empty(len(ids), np.uint64)
        _find(self._table, self._ids[: self._count], plain(ids), slots)
        return slots

    def insert(self, ids: np.ndarray) -> None:
        ids = plain(ids)
        done = 0
        while True:
            more, count = _insert(self._table, self._ids, self._count, ids[done:])
            done, self._count = done + int(more), int(count)
            if done == len(ids):
                return
            self._double()

    def _double(self) -> None:
        size = 2 * len(self._table)
        kept, self._ids = self._ids, np.empty(size // 2, np.uint64)
        self._ids[: self._count] = kept[: self._count]
        self._table = np.zeros(size, np.uint32 if size <= 2**32 else np.uint64)
        _rebuild(self._table, self._ids[: self._count])

    def ids(self) -> np.ndarray:
        return self._ids[: self._count]

    def state(self) -> dict[str, np.ndarray]:
        return {"ids": self._ids[: self._count], "table": self._table}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        form = cls()
        ids, table = checked_state(state, "ids", (np.uint64,)), checked_state(state, "table", (np.uint32, np.uint64))
        if len(table) < 2 or len(table) & (len(table) - 1) or 2 * len(ids) > len(table):
            raise ValueError(f"a table of {len(table)} places cannot hold {len(ids)} ids")
        form._ids, form._table, form._count = plain(ids), plain(table), len(ids)
        return form

    def copy(self) -> Self:
        twin = type(self)()
        twin._table, twin._count = self._table.copy(), self._count
        twin._ids = np.empty(len(self._table) // 2, np.uint64)  # with room for more, as the table has
        twin._ids[: self._count] = self._ids[: self._count]
        return twin


@inner
def _bits(table):
    bits = np.uint64(0)
    while np.uint64(1) << bits < np.uint64(len(table)):
        bits += np.uint64(1)
    return bits


@inner
def _homes(table, keys, bits, places):
    """Where the search for each key begins; the table is asked for there, so that it is at hand when it is read."""
    for g in range(len(keys)):
        places[g] = slot_of(keys[g], bits)
        prefetch(table, places[g])


@inner
def _probe(table, ids, place, key):
    """The place of the key in the table, or the empty one where it belongs; some place if a damaged one has neither."""
    mask, count = np.uint64(len(table)) - np.uint64(1), np.uint64(len(ids))
    left = mask
    entry = np.uint64(table[place])
    while entry != np.uint64(0) and (entry > count or ids[entry - np.uint64(1)] != key) and left > np.uint64(0):
        place = (place + np.uint64(1)) & mask
        entry = np.uint64(table[place])
        left -= np.uint64(1)
    return place


@kernel
def _find(table, ids, keys, slots):
    bits = _bits(table)
    places = np.empty(GROUP, np.uint64)
    n = np.uint64(len(keys))
    for first in range(np.uint64(0), n, np.uint64(GROUP)):
        m = min(np.uint64(GROUP), n - first)
        _homes(table, keys[first : first + m], bits, places)
        for g in range(m):
            entry = np.uint64(table[places[g]])
            if entry != np.uint64(0):
                prefetch(ids, entry - np.uint64(1))
        for g in range(m):
            entry = np.uint64(table[_probe(table, ids, places[g], keys[first + g])])
            found = np.uint64(0) < entry <= np.uint64(len(ids))
            slots[first + g] = entry - np.uint64(1) if found else MISSING


@kernel
def _insert(table, ids, count, keys):
    """Insert keys until no id has room. Returns how many were done, and the new count."""
    bits = _bits(table)
    places = np.empty(GROUP, np.uint64)
    n = np.uint64(len(keys))
    count = np.uint64(count)
    for first in range(np.uint64(0), n, np.uint64(GROUP)):
        m = min(np.uint64(GROUP), n - first)
        _homes(table, keys[first : first + m], bits, places)
        for g in range(m):
            place = _probe(table, ids, places[g], keys[first + g])
            if table[place] == 0:
                if count == np.uint64(len(ids)):
                    return first + g, count
                ids[count] = keys[first + g]
                count += np.uint64(1)
                table[place] = count
    return n, count


@kernel
def _rebuild(table, ids):
    """Enter all ids, none of which occurs twice, into an empty table."""
    bits = _bits(table)
    mask = np.uint64(len(table)) - np.uint64(1)
    places = np.empty(GROUP, np.uint64)
    n = np.uint64(len(ids))
    for first in range(np.uint64(0), n, np.uint64(GROUP)):
        m = min(np.uint64(GROUP), n - first)
        _homes(table, ids[first : first + m], bits, places)
        for g in range(m):
            place = places[g]
            while table[place] != 0:
                place = (place + np.uint64(1)) & mask
            table[place] = first + g + np.uint64(1)
