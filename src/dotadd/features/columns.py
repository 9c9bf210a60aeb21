"""Column: a map of strings over one column of a table.

    Column("text", WordNGrams((1, 2))) + Column("title", NGrams((3, 5)))
    Column("heard", Rational(ngram(2)), holds="lattices")

`reads` tells a source which columns are wanted, and whether as letters, as lattices or as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd._util.expression import call_repr, quoted
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.data.lattices import Lattices
from dotadd.data.table import Table
from dotadd.errors import FeatureError
from dotadd.features.base import Arrays, BadRow, FeatureMap, Origins, Part, Shape
from dotadd.features.occurrences import Occurrences
from dotadd.features.outer import OuterMap

KINDS: dict[str, type[Batch]] = {"text": Strings, "lattices": Lattices}


class Column(OuterMap):
    """A map of strings, or of lattices, that reads the cells of one column.

    name: of the column, or its number from 0 where a file has no header.
    phi: a map of strings, such as `WordNGrams((1, 2))` or `Spectrum(8)`, or of lattices, such as `Rational(ngram(2))`.
    holds: "text" or "lattices". The cell of a lattice has `[nodes], [edges]`, several lines of OpenFst's or Kaldi's
        text or of a confusion network of SRILM's, or else a sentence, which is the chain of its words.
    """

    takes = (Table,)

    def __init__(self, name: str | int, phi: FeatureMap, holds: str = "text") -> None:
        self.name = column_name(name)
        if holds not in KINDS:
            raise FeatureError(f"holds has to be one of {', '.join(KINDS)}, and not {quoted(holds)}")
        if not isinstance(phi, FeatureMap) or KINDS[holds] not in phi.takes:
            raise FeatureError(f"Column({self.name!r}, ...) needs a map of {KINDS[holds].kind}, and not {quoted(phi)}")
        self.phi, self.holds = phi, holds
        self._ready: tuple[Batch, Batch] | None = None  # the batch that this is prepared for, and what is read of it
        self.bulk, self.keeps, self.distinct = phi.bulk, phi.keeps, phi.distinct
        self.whole = phi.whole

    def __repr__(self) -> str:
        return call_repr("Column", self.name, self.phi, **({} if self.holds == "text" else {"holds": self.holds}))

    def _description(self) -> dict[str, object]:
        return {"name": self.name, "phi": self.phi, "holds": self.holds}

    @property
    def reads(self) -> dict[str, str]:
        return {self.name: self.holds}

    @property
    def title(self) -> str:
        return self.name

    def around(self, phi: FeatureMap) -> FeatureMap:
        return self if phi is self.phi else Column(self.name, phi, self.holds)

    def inside(self, batch: Batch) -> Batch:
        if self._ready is not None and self._ready[0] is batch:
            return self._ready[1]
        assert isinstance(batch, Table)
        return batch.strings(self.name) if self.holds == "text" else batch.lattices(self.name)

    def prepared(self, batch: Batch, threads: int = 1) -> FeatureMap:
        """What is prepared for the batch inside is so for this one object."""
        inside = self.inside(batch)
        twin = Column(self.name, self.phi.prepared(inside, threads), self.holds)
        twin._ready = batch, inside
        return twin

    def shape_inside(self, shape: Shape) -> Shape:
        return shape.column(self.name)

    def check(self, batch: Batch) -> BadRow | None:
        bad = self.phi.check(self.inside(batch))
        return None if bad is None else BadRow(bad.row, None, f"column {self.name!r}: {bad.message}")

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        self.phi.fill(self.inside(batch), rows, block)

    dot = Part.dot

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        self.phi.dots(self.inside(batch), rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        self.phi.add(self.inside(batch), rows, coefficients, w)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        return self.phi.squared_norms(self.inside(batch), rows)

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        return [(first, _ColumnTile(self, tile)) for first, tile in self.phi.tiles(slots)]

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        found, beyond = self.phi.origins(self.inside(batch), rows, nth)
        return self._named(found), beyond

    def invert(self, slots: np.ndarray) -> Origins:
        return self._named(self.phi.invert(slots))

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        return super().occurrences(batch, row).named(self.name)

    def _named(self, found: Origins) -> Origins:
        return found._replace(part=np.full(len(found.part), repr(self), object))

    def names(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str | None]:
        return self.phi.names(slots, None)


class _ColumnTile(Part):
    """A tile of the map inside."""

    bulk = True

    def __init__(self, column: Column, tile: Part) -> None:
        self.column, self.tile, self.whole = column, tile, tile.whole

    @property
    def dim(self) -> int:
        return self.tile.dim

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        self.tile.dots(self.column.inside(batch), rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        self.tile.add(self.column.inside(batch), rows, coefficients, w)


def column_name(name: object) -> str:
    """What a column is called; numbers are those of columns without a header."""
    if isinstance(name, bool) or not isinstance(name, str | int | np.integer) or name == "":
        raise FeatureError(f"the name of a column has to be text, or its number, and not {quoted(name)}")
    return str(name)
