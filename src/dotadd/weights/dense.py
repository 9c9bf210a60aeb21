"""Dense: the id is the slot. ADD and DOT in O(|phi(z)|), memory in O(n), n the size of the space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from dotadd.weights.base import MISSING, Form, checked_state


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
