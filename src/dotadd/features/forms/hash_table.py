"""HashTable: exact, grows by doubling. ADD and DOT in O(|phi(z)|), memory in O(number of ids that occurred).

The ids lie in the order in which they came, which is that of the slots; beside them is a sparse table of slot numbers
with open addressing and linear probing, at most half full. Against a table that holds ids and slots side by side, this
takes less than half of the memory at the same speed: features that came with one example lie together, so the ids (and
the weights) of its many rare features are on few cache lines, and only the table is touched at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from dotadd._jit import inner, kernel, plain, prefetch
from dotadd.features.forms.base import GROUP, MISSING, Form, checked_state, slot_of

SMALLEST_BITS = 6


class HashTable(Form):
    """Slots in the order in which the ids came. Takes 16 to 24 bytes an id."""

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
