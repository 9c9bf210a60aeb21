"""usable_rows: the rows that phi can take.

Only phi knows which rows it takes, only the chunk where a row came from, and only the source whether bad rows are
refused or left out.
"""

from __future__ import annotations

import numpy as np

from dotadd.features.base import FeatureMap
from dotadd.sources.base import Chunk, Source


def usable_rows(chunk: Chunk, phi: FeatureMap, source: Source) -> Chunk:
    """The rows of a chunk that phi can take. The first bad one raises, or with "skip" all are left out and counted."""
    bad: list[int] = []
    rest = 0
    while rest < len(chunk) and (found := phi.check(chunk.batch.slice(rest, len(chunk)))) is not None:
        error = chunk.error(rest + found.row, found.message, found.column)
        if source.on_bad_row != "skip":
            raise error
        source.skipped.add(error)
        bad.append(rest + found.row)
        rest = bad[-1] + 1
    return chunk.take(np.delete(np.arange(len(chunk)), bad)) if bad else chunk
