"""Rows of phi that are computed once and kept: as arrays side by side, as they come to lie in blocks."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np

from dotadd.batch import Batch


class PlacedRows(NamedTuple):
    """Row r is indices[offsets[r] : offsets[r + 1]] with the values beside them."""

    offsets: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @classmethod
    def joined(cls, parts: list[PlacedRows]) -> PlacedRows:
        """The rows of all parts, one part after the other."""
        if not parts:
            return cls(np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32))
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        indices, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        return cls(np.concatenate([[0], np.cumsum(lengths)]), indices, values)


class Keeping:
    """The parts of some rows, which threads bring in any order: all are kept, or, if there is no room, none."""

    def __init__(self, count: int, room: float) -> None:
        self._parts: list[PlacedRows | None] = [None] * count
        self._room = room
        self._lock = Lock()

    def put(self, number: int, part: PlacedRows) -> None:
        size = part.indices.nbytes + part.values.nbytes
        with self._lock:
            self._room -= size
            if self._room < 0:
                self._parts = []  # what is there is of no use without the rest
            else:
                self._parts[number] = part

    def rows(self) -> PlacedRows | None:
        """All rows once every part was put, or None."""
        if self._room < 0:
            return None
        parts = [part for part in self._parts if part is not None]
        assert len(parts) == len(self._parts), "a part is missing"
        return PlacedRows.joined(parts)


class KeptRows(NamedTuple):
    """How many non-zeros each row of a batch has, and the rows, if there is room for them."""

    batch: Batch
    lengths: np.ndarray
    rows: PlacedRows | None
