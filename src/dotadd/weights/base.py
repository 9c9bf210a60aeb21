"""Form: an index from feature ids to slots of w.

All forms answer the same questions, so that a map does not know which one it has. The exact ones start empty, give a
slot to each id that is inserted, and never move a slot: w can grow while training goes on. Lookups take many ids at a
time. Each of them waits for memory, and the processor waits for many of them at once: see GROUP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

MISSING = np.uint64(2**64 - 1)  # the slot of an id that has none
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
