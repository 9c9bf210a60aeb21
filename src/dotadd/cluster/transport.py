"""What crosses the network: w and its differences as messages, and who adds what to whom.

A message carries a vector bit for bit, dense, or as the slots that are not zero and their values where that takes fewer
bytes. Sums of the vectors of all parts are built as a tree, so that no machine sends or receives more than log2(K)
messages. The tree is always the same, and so is the rounding of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Message:
    """A vector of `dim` slots: all values, or those at `indices`, in order, where the others are 0."""

    dim: int
    values: np.ndarray
    indices: np.ndarray | None = None

    @classmethod
    def of(cls, vector: np.ndarray) -> Message:
        """The smaller of both forms. A dense message is the vector itself, which the sender leaves alone from then on.

        -0.0 is not zero here: what arrives has the bits of what was sent.
        """
        bits = np.ascontiguousarray(vector).view(np.dtype(f"u{vector.itemsize}"))
        index = np.dtype(np.uint32 if len(vector) <= 2**32 else np.uint64)
        if np.count_nonzero(bits) * (index.itemsize + vector.itemsize) >= vector.nbytes:
            return cls(len(vector), vector)
        used = np.flatnonzero(bits)
        return cls(len(vector), vector[used], used.astype(index))

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.indices is None else self.indices.nbytes)

    def vector(self) -> np.ndarray:
        """The vector, to be read only: a dense message may be shared."""
        if self.indices is None:
            return self.values
        out: np.ndarray = np.zeros(self.dim, self.values.dtype)
        out[self.indices] = self.values
        return out

    def add_to(self, w: np.ndarray) -> None:
        """w += the vector. Whoever adds the same messages to the same w has the same bits."""
        if self.indices is None:
            w += self.values
        else:
            w[self.indices] += self.values

    def __add__(self, other: Message) -> Message:
        if self.indices is None or other.indices is None:
            total = self.vector().copy()
            other.add_to(total)
            return Message.of(total)
        indices = np.union1d(self.indices, other.indices)
        values: np.ndarray = np.zeros(len(indices), np.result_type(self.values, other.values))
        for one in (self, other):
            values[np.searchsorted(indices, one.indices)] += one.values  # type: ignore[arg-type]  # not None here
        sparse = Message(self.dim, values, indices)
        return sparse if sparse.nbytes < self.dim * values.itemsize else Message(self.dim, sparse.vector())


def tree(parts: int) -> list[list[tuple[int, int]]]:
    """Who adds to whom: levels of pairs (receiver, sender), to be done one level after the other.

    After the last one part 0 has the sum of all. Read backwards, it is how a message of part 0 reaches all.
    """
    levels, step = [], 1
    while step < parts:
        levels.append([(first, first + step) for first in range(0, parts - step, 2 * step)])
        step *= 2
    return levels


def summed(vectors: Sequence[Sequence[Message]]) -> list[Message]:
    """The sums over the parts, added up as the tree says; vectors[p] are the messages of part p."""
    held = [list(messages) for messages in vectors]
    for level in tree(len(held)):
        for receiver, sender in level:
            held[receiver] = [one + other for one, other in zip(held[receiver], held[sender], strict=True)]
            held[sender] = []
    return held[0] if held else []
