"""Occurrences: where in a row its features come from.

`fill` writes the non-zeros of a row in a known order, one for each time that a feature occurs. Beside each of them
stands here which letters of the string, or which column of the table, it was made of. Maps around maps change slots
and values; where a feature comes from they do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd.core.block import Block
from dotadd.features.alphabet import FOREIGN
from dotadd.features.patterns import CHUNK

if TYPE_CHECKING:
    from dotadd.data.batches import Batch
    from dotadd.features.base import FeatureMap

Spans = tuple[np.ndarray, np.ndarray]


class Occurrences(NamedTuple):
    """The non-zeros of one row, an index as often as it occurs; in five arrays of one length."""

    slots: np.ndarray
    values: np.ndarray
    """What each adds to its slot, in proportion to others of the slot."""
    first: np.ndarray
    """The first of the bytes that it was made of, from 0; -1 where nobody knows."""
    stop: np.ndarray
    """The byte after the last of them."""
    column: np.ndarray
    """The column of the table; "" where there is none."""

    @classmethod
    def of(cls, slots: np.ndarray, values: np.ndarray, spans: Spans | None) -> Occurrences:
        """Those of strings; spans that are not those of these non-zeros are none."""
        unknown = np.full(len(slots), -1, np.int64)
        first, stop = spans if spans is not None and len(spans[0]) == len(slots) else (unknown, unknown)
        return cls(slots, values, first, stop, np.full(len(slots), "", object))

    @classmethod
    def joined(cls, parts: Sequence[Occurrences]) -> Occurrences:
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def take(self, at: np.ndarray) -> Occurrences:
        return Occurrences(*(array[at] for array in self))

    def named(self, column: str) -> Occurrences:
        """All of one column."""
        return self._replace(column=np.full(len(self.slots), column, object))


def non_zeros(phi: FeatureMap, batch: Batch, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Slots and values of a row as `fill` writes them."""
    bound = np.broadcast_to(np.asarray(phi.bound(batch), np.int64), len(batch))[row : row + 1]
    block = Block.scratch(bound, phi.dim)
    phi.fill(batch, np.array([row]), block)
    assert block.indices is not None
    assert block.values is not None
    here = slice(int(block.start[0]), int(block.end[0]))
    return block.indices[here].astype(np.int64), block.values[here].astype(np.float64)


def runs_of_letters(codes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where stretches without a foreign letter begin and end, of the numbers of a string's letters."""
    edges = np.flatnonzero(np.diff(np.r_[False, codes != FOREIGN, False]))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def stretches(pieces: Iterable[tuple[int, int, int]]) -> Spans:
    """The spans of pieces (first, count, length): so many stretches of one length, each a letter after the other."""
    found = [(np.arange(first, first + count), length) for first, count, length in pieces if count > 0]
    begin = np.concatenate([np.empty(0, np.int64), *(places for places, _ in found)])
    length = np.repeat([length for _, length in found], [len(places) for places, _ in found]).astype(np.int64)
    return begin, begin + length


def spans_of_patterns(codes: np.ndarray, offsets: Sequence[int], reach: int) -> Spans:
    """Those of kernels that take CHUNK positions of a run at a time, and of these one pattern after the other, each of
    which ends so many letters after its first. `reach` is the farthest that any pattern looks ahead."""

    def pieces() -> Iterator[tuple[int, int, int]]:
        for first, stop in runs_of_letters(codes):
            for at in range(first, stop, CHUNK):
                ahead = min(stop - at, CHUNK + reach)
                yield from ((at, min(CHUNK, ahead - offset), offset + 1) for offset in offsets)

    return stretches(pieces())
