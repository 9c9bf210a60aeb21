"""Source: where examples come from, in order, again and again, in chunks that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dotadd.batch import Batch
from dotadd.errors import DataError

CHUNK_BYTES = 32 << 20


@dataclass(frozen=True)
class Chunk:
    """Some consecutive examples. `y` and `weight` are None where the source has none.

    `path` and `lines` (line number of each row, from 1) tell where a row came from; None for arrays in memory.
    """

    batch: Batch
    y: np.ndarray | None
    weight: np.ndarray | None
    first_row: int
    path: str | None = None
    lines: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.batch)

    def error(self, row: int, message: str, column: int | None = None) -> DataError:
        """A complaint about row `row` of this chunk, with file and line, or with the example's number."""
        if self.lines is not None:
            return DataError(message, self.path, int(self.lines[row]), column)
        where = f"row {self.first_row + row}" + (f", column {column}" if column is not None else "")
        return DataError(f"{where}: {message}", self.path)

    def take(self, rows: np.ndarray) -> Chunk:
        """These rows only, in order; used to drop rows that cannot be read."""

        def pick(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[rows]

        return Chunk(
            self.batch.take(rows), pick(self.y), pick(self.weight), self.first_row, self.path, pick(self.lines)
        )


@dataclass
class Skipped:
    """How many rows were left out because they could not be read, and the first complaint."""

    count: int = 0
    first: str | None = None

    def add(self, error: DataError) -> None:
        self.count += 1
        self.first = self.first or str(error)


@dataclass
class Source:
    """Examples that can be read again and again, first to last.

    Subclasses implement `chunks`. Bad rows raise DataError, or with on_bad_row="skip" are left out and counted in
    `skipped` (which tells of the latest pass).
    """

    on_bad_row: str = field(default="error", kw_only=True)
    skipped: Skipped = field(default_factory=Skipped, kw_only=True)

    @property
    def name(self) -> str:
        """What to call this source in messages."""
        return type(self).__name__

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        """All examples in order, in chunks of about so many bytes. Each call starts a new pass."""
        raise NotImplementedError
