"""VirtualBatch: examples that are never stored, each the change of an original one.

What is stored is the originals, and of each virtual example the number of its original and of the change. Changes that
cost more than reading an image (rotation, scale) may have been made before, for as many originals as memory allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dotadd._util.growing import Growing
from dotadd._util.threads import for_each
from dotadd.data.batches import Batch, Strings
from dotadd.data.ragged import joined
from dotadd.data.transforms.base import Product, Transforms

if TYPE_CHECKING:
    import pyarrow as pa

MADE_BYTES = 1 << 20  # of rows that are made at a time: a quarter of it is too few for maps that take many at once
PIECE_BYTES = 1 << 22  # of rows that are made ready at a time
GROUP_BYTES = 1 << 20  # of originals whose changes follow each other, so that the same change is made of many at once


class Changes:
    """A set of transformations in two steps: the one whose results may be kept, and what is done on demand."""

    def __init__(self, transforms: Transforms) -> None:
        self.transforms = transforms
        stages = transforms.stages()
        costly = [number for number, stage in enumerate(stages) if stage.costly]
        first = costly[-1] + 1 if costly else 0
        self.early, self.late = _product(stages[:first]), _product(stages[first:])
        self.n_early = 1 if self.early is None else len(self.early)
        self.n_late = 1 if self.late is None else len(self.late)

    def __len__(self) -> int:
        return self.n_early * self.n_late


def _product(stages: list[Transforms]) -> Transforms | None:
    if len(stages) < 2:
        return stages[0] if stages else None
    return Product.of(*reversed(stages))


class Originals:
    """The rows that virtual examples are made of, and of the first `done` of them all early changes."""

    def __init__(self, batch: Batch, changes: Changes) -> None:
        self.batch, self.changes = batch, changes
        self.ready: Batch | None = None
        self.done = 0
        self.complaints: dict[int, Any] | None = None
        """What the map that is trained on cannot take of them: row and complaint, once it has looked."""

    @property
    def nbytes(self) -> int:
        return self.batch.nbytes + (0 if self.ready is None else self.ready.nbytes)

    def make_ready(self, nbytes: int, threads: int = 1) -> None:
        """Make the early changes of as many originals as fit into so many bytes."""
        early, each = self.changes.early, self.changes.n_early
        if early is None or not len(self.batch):
            return
        ends = np.cumsum(self.batch.row_bytes()) * each
        self.done = int(np.searchsorted(ends, nbytes, side="right"))
        if not self.done:
            return
        step = max(1, int(PIECE_BYTES * self.done / max(1, ends[self.done - 1])))
        made: dict[int, Batch] = {}

        def work(first: int) -> None:
            rows = np.arange(first, min(first + step, self.done))
            made[first] = early.apply(self.batch, np.repeat(rows, each), np.tile(np.arange(each), len(rows)))

        pieces = range(0, self.done, step)
        for_each(pieces, work, threads)
        self.ready = joined(made.pop(first) for first in pieces)

    def made(self, rows: np.ndarray, which: np.ndarray) -> Batch:
        """The batch of these changes of these rows."""
        early, late = np.divmod(which, self.changes.n_late)
        batch, at = self._early(rows, early)
        if self.changes.late is None:
            return batch.take(at)
        return self.changes.late.apply(batch, at, late)

    def _early(self, rows: np.ndarray, members: np.ndarray) -> tuple[Batch, np.ndarray]:
        """A batch in which the early changes of these rows stand, and where."""
        changes = self.changes
        if changes.early is None:
            return self.batch, rows
        if self.done == len(self.batch):
            assert self.ready is not None
            return self.ready, rows * changes.n_early + members
        there = rows < self.done
        made = changes.early.apply(self.batch, rows[~there], members[~there])
        if self.ready is None or not there.any():
            return made, np.arange(len(rows))
        at = np.cumsum(~there) - 1
        at[there] = len(made) + np.arange(np.count_nonzero(there))
        kept = self.ready.take(rows[there] * changes.n_early + members[there])
        return joined([made, kept]), at


def group_borders(row_bytes: np.ndarray, room: int | None = None) -> list[int]:
    """Where groups of rows begin, and where the last one ends. A group ends with the row that fills it, the first one
    has so much room; so borders depend on the rows alone, and not on how many come at a time."""
    ends, borders, full = np.cumsum(row_bytes), [0], GROUP_BYTES if room is None else room
    while borders[-1] < len(ends):
        borders.append(min(len(ends), int(np.searchsorted(ends, full)) + 1))
        full = int(ends[borders[-1] - 1]) + GROUP_BYTES
    return borders


class VirtualBatch(Batch):
    """Virtual example j is change which[j] of original rows[j]; `made` makes some of them."""

    kind = "virtual examples"

    def __init__(self, originals: Originals, rows: np.ndarray, which: np.ndarray) -> None:
        self.originals, self.rows, self.which = originals, rows, which

    @classmethod
    def all_of(cls, originals: Originals) -> VirtualBatch:
        """Every change of every original, in groups of these, one change after the other."""
        n, changes = len(originals.batch), len(originals.changes)
        numbers = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
        which = np.arange(changes, dtype=np.min_scalar_type(changes))
        groups = [slice(*borders) for borders in pairwise(group_borders(originals.batch.row_bytes()))]
        rows = [np.tile(numbers[group], changes) for group in groups]
        each = [np.repeat(which, group.stop - group.start) for group in groups]
        return cls(originals, np.concatenate([numbers[:0], *rows]), np.concatenate([which[:0], *each]))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return self.originals.nbytes + self.rows.nbytes + self.which.nbytes

    def row_bytes(self) -> np.ndarray:
        """Bytes of each row once it is made."""
        return self.originals.batch.row_bytes()[self.rows]

    def take(self, rows: np.ndarray) -> Self:
        return type(self)(self.originals, self.rows[rows], self.which[rows])

    def slice(self, first: int, stop: int) -> Self:
        return type(self)(self.originals, self.rows[first:stop], self.which[first:stop])

    def made(self, rows: np.ndarray) -> Batch:
        """The batch of these examples."""
        return self.originals.made(self.rows[rows].astype(np.int64), self.which[rows].astype(np.int64))

    def pieces(self, rows: np.ndarray) -> Iterator[tuple[int, Batch]]:
        """These examples, made some at a time: the place in `rows` of the first of them, and the batch."""
        step = max(1, int(MADE_BYTES / max(1.0, float(self._mean_bytes()))))
        for first in range(0, len(rows), step):
            yield first, self.made(rows[first : first + step])

    def _mean_bytes(self) -> float:
        original = self.originals.batch
        if isinstance(original, Strings) and original.width is None:
            return len(original.letters) / max(1, len(original))
        return float(original.slice(0, 1).row_bytes().sum())

    def own(self) -> Batch:
        return self.made(np.arange(len(self)))

    def typical(self) -> Batch:
        if isinstance(self.originals.batch, Strings):  # no change of strings changes their lengths
            return self.originals.batch
        return self.slice(0, 1).own()

    @classmethod
    def _joined(cls, batches: Iterator[Self]) -> Self:
        first = next(batches)
        rows, which = Growing(first.rows), Growing(first.which)
        for batch in batches:
            if batch.originals is not first.originals:
                raise ValueError("virtual examples of different originals cannot be joined")
            rows.extend(batch.rows)
            which.extend(batch.which)
        return cls(first.originals, rows.done(), which.done())

    def to_arrow(self) -> pa.Array:
        return self.own().to_arrow()
