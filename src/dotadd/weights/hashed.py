"""Hashed: the slot is a hash of the id. The cost of a dense w, at 2**bits slots; ids that collide share a weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.weights.base import Form, checked_state


class Hashed(Form):
    """2**bits slots, and one of them for every id there may ever be."""

    name = "hashed"

    def __init__(self, bits: int) -> None:
        self.bits = bits

    @property
    def size(self) -> int:
        return 2**self.bits

    def find(self, ids: np.ndarray) -> np.ndarray:
        slots = np.empty(len(ids), np.uint64)
        _find(plain(ids), self.bits, slots)
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
def _find(ids, bits, slots):
    for i in range(np.uint64(len(ids))):
        slots[i] = slot_of(ids[i], bits)
