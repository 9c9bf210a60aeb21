"""Ragged: rows of any kind as flat arrays, with no, one or two levels of offsets between a row and its items.

A kind of batch says once, in `parts`, which arrays it is made of and how many levels of offsets lead from a row to the
items of each; and in `of`, how it is made of such arrays. To take rows, to slice, to join and to count bytes is then
written here, once for all kinds. So is the pool, in which rows come and go (`data/pool.py`).

              level 0: an entry a row     level 1: items of rows           level 2: items of items
    dense     values
    strings   letters, where all are      letters
              equally long
    sparse                                indices, values
    lattices                              finals, of states                labels, targets, weights, of arcs
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from dotadd._util.growing import Growing, GrowingOffsets

if TYPE_CHECKING:
    import pyarrow as pa


class Batch:
    """Raw examples of one kind. `kind` names it in messages and model files."""

    kind: ClassVar[str]

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, shared memory included."""
        raise NotImplementedError

    def row_bytes(self) -> np.ndarray:
        """Bytes of each row."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> Self:
        """A batch of these rows, in this order."""
        raise NotImplementedError

    def slice(self, first: int, stop: int) -> Self:
        """Neighbouring rows, without a copy."""
        raise NotImplementedError

    def own(self) -> Batch:
        """The same rows in a batch that holds them itself; virtual examples are made for it."""
        return self

    @property
    def shared(self) -> object:
        """What rows lie in together with those of other batches, and which takes memory once; None in most kinds."""
        return None

    def typical(self) -> Batch:
        """A batch that shows what rows maps will see: their kind, width, or longest length."""
        return self

    @classmethod
    def concat(cls, batches: Iterable[Self]) -> Self:
        """The rows of all of them, one batch after the other; one batch alone is returned as it is.

        The batches may come from a generator: each is copied and let go, so that the rows are never in memory twice.
        """
        return joined(batches)

    @classmethod
    def _joined(cls, batches: Iterator[Self]) -> Self:
        raise NotImplementedError

    def to_arrow(self) -> pa.Array:
        """An Arrow array over the same memory."""
        raise NotImplementedError


Kind = TypeVar("Kind", bound=Batch)


def joined(batches: Iterable[Kind]) -> Kind:
    """The rows of batches that are all of the first one's kind; see `Batch.concat`."""
    several = iter(batches)
    first = next(several)
    second = next(several, None)
    return first if second is None else type(first)._joined(chain((first, second), several))


class Parts(NamedTuple):
    """The arrays of a batch, and how many of the offsets lead from a row to the items of each."""

    offsets: tuple[np.ndarray, ...]
    arrays: tuple[np.ndarray, ...]
    levels: tuple[int, ...]

    def spans(self, rows: int) -> list[slice]:
        """Of each level, the items that these rows have."""
        found = [slice(0, rows)]
        for offsets in self.offsets:
            span = found[-1]
            found.append(slice(int(offsets[span.start]), int(offsets[span.stop])))
        return found

    def item_bytes(self) -> list[int]:
        """Of each level, the bytes of an item, its place among the offsets of the next level included.

        Where rows begin is not a part of them.
        """
        sizes = [0, *(offsets.itemsize for offsets in self.offsets[1:]), 0][: len(self.offsets) + 1]
        for array, level in zip(self.arrays, self.levels, strict=True):
            sizes[level] += array.itemsize * math.prod(array.shape[1:])
        return sizes


class Ragged(Batch):
    """Rows that lie in arrays. Subclasses implement `parts` and `of`, and `made` if they know more than the arrays."""

    def parts(self) -> Parts:
        raise NotImplementedError

    @classmethod
    def of(cls, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        """The batch with these parts."""
        raise NotImplementedError

    def made(self, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        """The batch with these parts that knows of its rows what this one does."""
        return self.of(offsets, arrays)

    def alike(self, other: Self) -> tuple[Self, Self]:
        """Both batches with parts of the same number and levels, each knowing what is true of the rows of both."""
        return self, other

    def mixes(self, other: object) -> bool:
        """Whether arrays of the other, if they have the same types, may be written among those of this one."""
        return True

    @property
    def nbytes(self) -> int:
        offsets, arrays, _ = self.parts()
        return sum(array.nbytes for array in (*offsets, *arrays))

    def row_bytes(self) -> np.ndarray:
        parts = self.parts()
        sizes = parts.item_bytes()
        if not parts.offsets:
            return np.full(len(self), sizes[0])
        begins = parts.offsets[0]
        total = np.diff(begins) * sizes[1]
        for offsets, size in zip(parts.offsets[1:], sizes[2:], strict=True):
            begins = offsets[begins]
            total += np.diff(begins) * size
        return total

    def take(self, rows: np.ndarray) -> Self:
        offsets, arrays, levels = self.parts()
        at = [rows]
        taken = []
        for level in offsets:
            ends, items = item_places(level, at[-1])
            taken.append(ends)
            at.append(items)
        return self.made(taken, [array[at[level]] for array, level in zip(arrays, levels, strict=True)])

    def slice(self, first: int, stop: int) -> Self:
        offsets, arrays, _ = self.parts()
        if offsets:
            return self.made((offsets[0][first : stop + 1], *offsets[1:]), arrays)
        return self.made((), [array[first:stop] for array in arrays])

    @classmethod
    def _joined(cls, batches: Iterator[Self]) -> Self:
        so_far = _Joined(next(batches))
        for batch in batches:
            so_far.extend(batch)
        return so_far.batch()


Rows = TypeVar("Rows", bound=Ragged)


class _Joined(Generic[Rows]):
    """Parts that grow by those of batch after batch. Arrays of level 0 grow flat, since rows may turn out to differ in
    length."""

    def __init__(self, first: Rows) -> None:
        self.like = first.take(np.empty(0, np.int64))  # a slice would hold the first batch in memory
        parts = self.like.parts()
        self.rows = 0
        self.offsets = [GrowingOffsets() for _ in parts.offsets]
        self.arrays = [Growing(array[:0].reshape(-1)) for array in parts.arrays]
        self.extend(first)

    def extend(self, batch: Rows) -> None:
        before = self.like
        self.like, batch = self.like.alike(batch)
        if self.like is not before:
            self._widen(before.parts(), self.like.parts())
        theirs = batch.parts()
        spans = theirs.spans(len(batch))
        for growing, offsets, span in zip(self.offsets, theirs.offsets, spans, strict=False):
            growing.extend(offsets[span.start : span.stop + 1])
        for arrays, array, level in zip(self.arrays, theirs.arrays, theirs.levels, strict=True):
            arrays.extend(array[spans[level]].reshape(-1))
        self.rows += len(batch)

    def _widen(self, before: Parts, parts: Parts) -> None:
        """Write down for the rows so far what was not: where each begins if all had one width, and values of 1."""
        if len(parts.offsets) > len(before.offsets):
            self.offsets.insert(0, GrowingOffsets())
            self.offsets[0].extend(np.arange(self.rows + 1) * before.arrays[0].shape[1])
        for array in parts.arrays[len(before.arrays) :]:
            self.arrays.append(Growing(np.ones(len(self.arrays[0]), array.dtype)))

    def batch(self) -> Rows:
        _, like, levels = self.like.parts()
        arrays = [array.done() for array in self.arrays]
        for k, level in enumerate(levels):
            if level == 0:
                arrays[k] = arrays[k].reshape(self.rows, *like[k].shape[1:])
        return self.like.made([offsets.done() for offsets in self.offsets], arrays)


def item_places(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of the taken rows, and where each of their items lies in the old array."""
    starts = offsets[:-1][rows].astype(np.int64)
    lengths = offsets[1:][rows].astype(np.int64) - starts
    taken = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=taken[1:])
    return taken, np.arange(taken[-1]) + np.repeat(starts - taken[:-1], lengths)


def as_offsets(offsets: np.ndarray) -> np.ndarray:
    """The same numbers as int64: kernels are compiled for one type of offsets."""
    return offsets if offsets.dtype == np.int64 else offsets.astype(np.int64)
