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
    """Row r is about the two letters at `position[r]` and the one after it of the sequence `names[sequence[r]]`.

    Positions count from 1 on the forward strand, on whichever strand the two letters are read; `minus` says that they
    are read on the reverse strand.
    """

    names: tuple[str, ...]
    sequence: np.ndarray
    position: np.ndarray
    minus: np.ndarray

    def __len__(self) -> int:
        return len(self.position)

    def take(self, rows: Rows) -> Coordinates:
        return Coordinates(self.names, self.sequence[rows], self.position[rows], self.minus[rows])

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
class Located(Chunk):
    """A chunk with the coordinates of its rows."""

    coordinates: Coordinates = field(kw_only=True)

    def _beside(self, rows: Rows) -> Self:
        return dataclasses.replace(super()._beside(rows), coordinates=self.coordinates.take(rows))
