"""Chunks that know where their rows lie on a genome."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from dotadd.sources.base import Chunk, Rows

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Coordinates:
    """Row r is about the two letters, or as many as `length` says, at `position[r]` and after it of the sequence
    `names[sequence[r]]`.

    Positions count from 1 on the forward strand, on whichever strand the letters are read; `minus` says that they are
    read on the reverse strand.
    """

    names: tuple[str, ...]
    sequence: np.ndarray
    position: np.ndarray
    minus: np.ndarray
    length: int = field(default=2, kw_only=True)

    def __len__(self) -> int:
        return len(self.position)

    def take(self, rows: Rows) -> Self:
        return dataclasses.replace(
            self, sequence=self.sequence[rows], position=self.position[rows], minus=self.minus[rows]
        )

    def places(self) -> list[str]:
        """Chromosome, first letter and end, and strand of each row; from 0 and without the end, as in BED."""
        rows = zip(self.sequence.tolist(), self.position.tolist(), self.minus.tolist(), strict=True)
        return [f"{self.names[of]}:{at - 1}-{at - 1 + self.length}:{'-' if minus else '+'}" for of, at, minus in rows]

    def headers(self) -> list[str]:
        """What to call the rows in FASTA."""
        return self.places()

    def to_arrow(self) -> dict[str, pa.Array]:
        """The columns `chromosome`, `position` and `strand`."""
        import pyarrow as pa

        strand = pa.DictionaryArray.from_arrays(pa.array(self.minus.astype(np.int8)), pa.array(["+", "-"]))
        names = pa.array(self.names, pa.string())
        return {
            "chromosome": pa.DictionaryArray.from_arrays(pa.array(self.sequence, pa.int32()), names),
            "position": pa.array(self.position, pa.int64()),
            "strand": strand,
        }


@dataclass(frozen=True)
class Intervals(Coordinates):
    """Row r is the window of `length` letters from `position[r]` on, and is called `titles[r]`, or by its place where
    that is empty."""

    titles: tuple[str, ...] = field(kw_only=True)

    def take(self, rows: Rows) -> Self:
        titles = tuple(np.array(self.titles, object)[rows].tolist())
        return dataclasses.replace(super().take(rows), titles=titles)

    def headers(self) -> list[str]:
        """The title, without blanks, and the place."""
        both = zip(self.titles, self.places(), strict=True)
        return [f"{'_'.join(title.split())} {place}" if title.strip() else place for title, place in both]

    def to_arrow(self) -> dict[str, pa.Array]:
        """The columns `name`, `chromosome`, `start` and `end` (from 0, without the end, as in BED) and `strand`."""
        import pyarrow as pa

        shown = super().to_arrow()
        start, end = (pa.array(self.position - 1 + more, pa.int64()) for more in (0, self.length))
        names = [title or place for title, place in zip(self.titles, self.places(), strict=True)]
        beside = {"chromosome": shown["chromosome"], "start": start, "end": end, "strand": shown["strand"]}
        return {"name": pa.array(names, pa.string()), **beside}


@dataclass(frozen=True)
class Located(Chunk):
    """A chunk with the coordinates of its rows."""

    coordinates: Coordinates = field(kw_only=True)

    def _beside(self, rows: Rows) -> Self:
        return dataclasses.replace(super()._beside(rows), coordinates=self.coordinates.take(rows))
