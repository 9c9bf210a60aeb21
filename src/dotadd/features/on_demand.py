"""OnDemand: any feature map on virtual examples, which are made when their features are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.data.virtual import Originals, VirtualBatch
from dotadd.features.base import Arrays, BadRow, FeatureMap, Origins, Part
from dotadd.features.learning import Learner, PartsLearner
from dotadd.features.linear import Linear
from dotadd.features.terms import Term


class OnDemand(Term):
    """phi on virtual examples: the rows of a block are made, and then phi sees them as it sees any.

    Batches of what phi reads pass through. It is there for training only, and `repr` is that of phi: a model keeps phi.
    """

    def __init__(self, phi: FeatureMap) -> None:
        super().__init__(phi)
        self.takes, self.keeps = (VirtualBatch, *phi.takes), False
        self.views = isinstance(phi, Linear)  # rows of numbers, once made, are phi of themselves
        self._bound: tuple[Originals, np.ndarray] | None = None  # of the originals that this is prepared for

    def around(self, phi: FeatureMap) -> OnDemand:
        return OnDemand(phi)

    def __repr__(self) -> str:
        return repr(self.phi)

    def learner(self) -> Learner:
        return _MadeLearner(self.around, self.phi)

    def check(self, batch: Batch) -> BadRow | None:
        if not isinstance(batch, VirtualBatch):
            return self.phi.check(batch)
        if isinstance(batch.originals.batch, Strings):
            return self._check_originals(batch)
        for first, made in batch.pieces(np.arange(len(batch))):
            if (bad := self.phi.check(made)) is not None:
                return BadRow(first + bad.row, bad.column, bad.message)
        return None

    def _check_originals(self, batch: VirtualBatch) -> BadRow | None:
        """The first complaint about a string as it was. A letter that a change puts in stands for none."""
        complaints = batch.originals.complaints
        if complaints is None:
            original = batch.originals.batch
            complaints, rest = {}, 0
            while (bad := self.phi.check(original.slice(rest, len(original)))) is not None:
                complaints[rest + bad.row] = bad
                rest += bad.row + 1
            batch.originals.complaints = complaints
        if not complaints:
            return None
        first = np.flatnonzero(np.isin(batch.rows, list(complaints)))[:1]
        if not len(first):
            return None
        bad = complaints[int(batch.rows[first[0]])]
        return BadRow(int(first[0]), bad.column, bad.message)

    def bound(self, batch: Batch) -> int | np.ndarray:
        """Of virtual examples that of their originals, to cut blocks by; `view_rows` asks the rows themselves."""
        if not isinstance(batch, VirtualBatch):
            return self.phi.bound(batch)
        if self._bound is not None and self._bound[0] is batch.originals:
            return self._bound[1][batch.rows]
        bound = self.phi.bound(batch.typical())
        return bound if isinstance(bound, int | np.integer) else bound[batch.rows]

    def view(self, batch: Batch) -> Block | None:
        return None if isinstance(batch, VirtualBatch) else self.phi.view(batch)

    def view_rows(self, batch: Batch, rows: np.ndarray, dtype: type) -> Block | None:
        if not isinstance(batch, VirtualBatch):
            return None
        if self.views:
            return self.phi.view(batch.made(rows))
        if isinstance(self.phi.bound(batch.typical().slice(0, 1)), int | np.integer):
            return None
        made = batch.made(rows)  # a change may have more features than its original
        phi = self.phi.prepared(made)
        block = Block.scratch(np.asarray(phi.bound(made)), self.dim, distinct=self.distinct, dtype=dtype)
        phi.fill(made, np.arange(len(made)), block)
        return block

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        self.phi.fill(*_own(batch, rows), block)

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        _Made(self.phi).dots(batch, rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        _Made(self.phi).add(batch, rows, coefficients, w)

    dot = Part.dot
    squared_norms = FeatureMap.squared_norms

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        return [(first, _Made(tile)) for first, tile in self.phi.tiles(slots)]

    def prepared(self, batch: Batch, threads: int = 1) -> FeatureMap:
        if not isinstance(batch, VirtualBatch):
            return self.around(self.phi.prepared(batch, threads))
        bound = self.phi.bound(batch.typical())
        if isinstance(bound, int | np.integer):
            return self
        twin = self.around(self.phi)
        twin._bound = (batch.originals, bound)
        return twin

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        return self.phi.origins(*_own(batch, rows), nth)


class _MadeLearner(PartsLearner):
    """Shows virtual examples to a map, made some at a time, if it learns from them."""

    def __init__(self, make: Callable[..., FeatureMap], phi: FeatureMap) -> None:
        super().__init__(make, phi)
        self._learns = phi.learns

    def see(self, batch: Batch) -> None:
        if not isinstance(batch, VirtualBatch):
            super().see(batch)
        elif not self._learns:
            super().see(batch.slice(0, 0).own())
        else:
            for _, made in batch.pieces(np.arange(len(batch))):
                super().see(made)


class _Made(Part):
    """A part of a map, on virtual examples."""

    def __init__(self, part: Part) -> None:
        self.part, self.bulk = part, part.bulk

    @property
    def dim(self) -> int:
        return self.part.dim

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        for some, made, these in _pieces(batch, rows):
            self.part.dots(made, these, ws, [out[some] for out in outs])

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        for some, made, these in _pieces(batch, rows):
            self.part.add(made, these, coefficients[some], w)


def _pieces(batch: Batch, rows: np.ndarray) -> Iterator[tuple[slice, Batch, np.ndarray]]:
    """Some of the rows after the other, virtual ones made: which they are, and where they lie in another batch."""
    if not isinstance(batch, VirtualBatch):
        yield slice(0, len(rows)), batch, rows
        return
    for first, made in batch.pieces(rows):
        yield slice(first, first + len(made)), made, np.arange(len(made))


def _own(batch: Batch, rows: np.ndarray) -> tuple[Batch, np.ndarray]:
    """A batch that holds these rows itself, and where: virtual ones are made."""
    return (batch.made(rows), np.arange(len(rows))) if isinstance(batch, VirtualBatch) else (batch, rows)
