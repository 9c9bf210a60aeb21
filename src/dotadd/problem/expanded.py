"""Rows of phi as a batch of their own, so that they come and go in a pool as raw rows do, and whether that pays."""

from __future__ import annotations

import numpy as np

from dotadd.core.block import Block, every_row
from dotadd.core.kept import copy_rows, merge
from dotadd.data.batches import Batch, Strings
from dotadd.data.ragged import joined
from dotadd.problem.examples import InMemory
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.packed import Packed, pack

SAMPLE = 256  # rows tell how many bytes all take


def expanded(examples: InMemory, rows: np.ndarray) -> Strings:
    """phi of these rows, equal indices merged, packed."""
    parts = [Strings(np.empty(0, np.uint8), np.zeros(1, np.int64))]  # or there might be none
    for block, at, _ in examples.blocks(rows):
        lengths = (block.end - block.start)[at]
        part = Block.scratch(lengths, examples.dim, dtype=examples.dtype)
        copy_rows(block, at, part, every_row(len(at)))
        if not block.distinct:
            merge(part.start, part.end, part.indices, part.values, len(at))
        parts.append(pack(part, every_row(len(at))))
    return joined(parts)


def over_features(disk: OnDisk, batch: Batch) -> InMemory:
    """Such rows, of examples on disk, in memory."""
    return InMemory(Packed(disk.dim, disk.dtype), batch, dtype=disk.dtype, threads=disk.threads)


def worth_expanding(examples: InMemory, rows: np.ndarray, room: float) -> bool:
    """Whether features of rows like these are better kept in memory than the rows, if each of all has so much room:
    where they take no more of it; and where phi takes longer to make them than they take to be read, if there is room
    for all. Fewer rows in memory cost more, in passes, than their features cost to be made.

    Bytes are counted and nothing is timed, so that it is the same each time.
    """
    some = rows[:: -(-len(rows) // SAMPLE)]
    raw = examples.batch.take(some).own()
    if examples.given.view(raw) is not None:  # they are their features
        return False
    before, after = raw.row_bytes().mean(), expanded(examples, some).row_bytes().mean()
    return bool(after <= before or (examples.given.keeps and after <= room))
