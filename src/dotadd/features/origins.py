"""Origins: what the non-zeros of a map stand for, so that slots of w can be called by name.

A slot is a number. Counted tables can be inverted (`FeatureMap.invert`); a hash cannot, but whoever has an example can
say what each of its non-zeros was made of, since `fill` writes them in a known order (`FeatureMap.origins`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.data.batches import Strings
from dotadd.features.alphabet import FOREIGN

if TYPE_CHECKING:
    from dotadd.features.kmers import KmerMap


class Origins(NamedTuple):
    """What some features are, in three arrays of one length.

    A k-mer that counts wherever it stands has a text and no position, a k-mer at its place has both, a column of a
    vector has a position only, and a feature that nobody can name has neither.
    """

    part: np.ndarray
    """The expression of the map that made it; a stack has several."""
    position: np.ndarray
    """Where it begins in the example, or which column it is, counted from 0; -1 where that does not matter."""
    text: np.ndarray
    """Its letters as bytes; empty where there are none."""

    @classmethod
    def unnamed(cls, part: str, count: int) -> Origins:
        return cls(np.full(count, part, object), np.full(count, -1, np.int64), np.full(count, b"", object))

    def put(self, at: np.ndarray, names: Origins) -> None:
        """Take over the names of some of the features."""
        for mine, theirs in zip(self, names, strict=True):
            mine[at] = theirs

    def take(self, at: np.ndarray) -> Origins:
        return Origins(*(array[at] for array in self))


def kmer_origins(phi: KmerMap, batch: Strings, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
    """`FeatureMap.origins` of maps whose `fill` is that of k-mers."""
    layout = phi.layout()
    starts, ends = phi.places(batch, rows)
    at, order, rest = (np.empty(len(nth), np.int64) for _ in range(3))
    text = np.zeros((len(nth), len(layout.values) - 1), np.uint8)
    _find(
        plain(batch.letters), starts, ends, phi.codes(), _letters(phi), layout.values, plain(nth), at, order, rest, text
    )
    names = Origins.unnamed(repr(phi), len(nth))
    names.text[:] = _texts(text)
    if layout.stride:
        names.position[:] = at - batch.bounds(rows)[0]
    return names, np.where(order > 0, -1, rest)


def invert_kmers(phi: KmerMap, slots: np.ndarray) -> Origins:
    """`FeatureMap.invert` of k-mers: the inverse of what `fill` does for orders that are counted through."""
    layout, size = phi.layout(), phi.alphabet.size
    names = Origins.unnamed(repr(phi), len(slots))
    first = 0 if phi.span is None or phi.span[0] is None else phi.span[0]
    if layout.stride and first < 0:
        return names  # positions from the end of strings, which may differ in length
    inside = slots.astype(np.int64)
    position = np.zeros_like(inside)
    if layout.stride:
        position, inside = inside // layout.stride, inside % layout.stride
    stir = (position * 0x9E3779B1 & 0xFFFFFFFF) >> (32 - layout.bits)  # no bits: everything is shifted out
    orders = np.arange(1, layout.explicit + 1)
    if not np.diff(layout.offsets[orders].astype(np.int64)).all():  # one table: the order that is written has it
        orders = np.flatnonzero(layout.values[: layout.explicit + 1])
    for k in orders.tolist():
        number = (inside - int(layout.offsets[k])) ^ stir
        found = np.flatnonzero((inside >= int(layout.offsets[k])) & (number >= 0) & (number < size**k))
        digits = number[found, None] // size ** np.arange(k - 1, -1, -1) % size
        names.text[found] = _texts(_letters(phi)[digits])
        if layout.stride:
            names.position[found] = position[found] + first
    return names


def _letters(phi: KmerMap) -> np.ndarray:
    """The byte of each letter's number."""
    if phi.alphabet.name == "bytes":
        return np.arange(256, dtype=np.uint8)
    return np.frombuffer(phi.alphabet.letters.encode(), np.uint8).copy()


def _texts(letters: np.ndarray) -> list[bytes]:
    """The rows of a matrix of letters, without the zeros at their ends."""
    return np.ascontiguousarray(letters).view(f"S{letters.shape[1]}")[:, 0].tolist() if letters.size else []


@kernel
def _find(letters, starts, ends, codes, names, values, nth, at, order, rest, text):
    """Which k-mer of letters[starts[h]:ends[h]] is written as its nth[h]-th non-zero: where it begins, and its letters.

    Goes through the k-mers as `fill` does, from one foreign letter to the next, order by order. Order 0 means that
    there are fewer, and `rest` tells how far beyond them nth is.
    """
    for h in range(len(nth)):
        left = nth[h]
        order[h] = 0
        stop = starts[h]
        while stop < ends[h] and order[h] == 0:
            first = stop
            while first < ends[h] and codes[letters[first]] == FOREIGN:
                first += 1
            stop = first
            while stop < ends[h] and codes[letters[stop]] != FOREIGN:
                stop += 1
            for k in range(1, min(len(values) - 1, stop - first) + 1):
                if values[k] == 0.0:
                    continue
                count = stop - first - k + 1
                if left < count:
                    order[h] = k
                    at[h] = first + left
                    break
                left -= count
        rest[h] = left
        for i in range(order[h]):
            text[h, i] = names[codes[letters[at[h] + i]]]
