"""Rows: the examples of one part, loaded if they fit in its memory, and read again and again if they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from dotadd.ahead import ReadAhead
from dotadd.batch import Strings
from dotadd.distributed.task import Outline, Task
from dotadd.expand import Expansion
from dotadd.features.base import FeatureMap, Shape
from dotadd.model_file import usable_rows
from dotadd.solvers.flow import Flow, Piece, piece_bytes
from dotadd.solvers.problem import Problem
from dotadd.sources.base import Chunk, Source, TooLargeError
from dotadd.sources.cached import as_arrow
from dotadd.sources.files import NoExamplesError
from dotadd.sources.identity import Watched
from dotadd.sources.memory import MemorySource
from dotadd.survey import Survey
from dotadd.targets import Tally

HELD = 4  # pieces that the memory would hold: one is worked on while the next is read, and both take room to decode


class Rows:
    """A source, or None for no examples at all, and what they may take of memory."""

    def __init__(self, source: Source | None, memory: int, threads: int, announce: Callable[[str], None]) -> None:
        self.source, self.memory, self.threads, self.announce = source, memory, threads, announce
        self._outline: Outline | None = None
        self._counted: Tally | None = None  # rows that phi can take
        self._data: Chunk | None = None
        self._watched: Watched | None = None
        self._problem: Problem | None = None
        self.flow: Flow | None = None

    def __len__(self) -> int:
        return 0 if self._counted is None else self._counted.rows

    @property
    def nbytes(self) -> int:
        """Bytes that these rows take of memory: what was loaded, or else all that they may."""
        return self.memory if self._data is None else self._data.nbytes

    @property
    def loaded(self) -> int:
        """Bytes that are in memory already."""
        return 0 if self._data is None else self._data.nbytes

    def outline(self) -> Outline:
        """Look at all rows, and keep them if they fit."""
        if self._outline is None:
            self._outline = self._look() or Outline(Tally())
            self._counted = self._outline.tally
        return self._outline

    def _look(self) -> Outline | None:
        source = self.source
        if source is None or (isinstance(source, MemorySource) and not len(source.content)):
            return None
        try:
            self._data = source.load(self.memory)
            chunks: Iterator[Chunk] = iter([self._data])
        except NoExamplesError:
            return None
        except TooLargeError:
            self._data = None
            self.source, _ = as_arrow(source, announce=self.announce)
            self._watched = Watched(self.source)
            chunks = self.source.outline() or self.source.chunks(piece_bytes(self.memory))
        tally, shape, sample = Tally(), None, None
        for chunk in chunks:
            tally.note(chunk)
            mine = Shape.of(chunk.batch)
            if sample is None or (mine.n_features or 0) > (Shape.of(sample.batch).n_features or 0):
                sample = chunk.take(np.arange(min(1, len(chunk))))
            shape = mine if shape is None else shape.joined(mine)
        assert self.source is not None
        return Outline(tally, shape, sample, self.source.columns, self.source.names())

    def tally(self, phi: FeatureMap) -> Tally:
        """The labels of the rows that phi can take. The others are an error, or left out where the source says so."""
        self.outline()
        self._counted = Tally()
        for chunk in self._chunks(phi):
            self._counted.note(chunk)
        return self._counted

    def _chunks(self, phi: FeatureMap) -> Iterator[Chunk]:
        if self._data is not None:
            assert self.source is not None
            self._data = usable_rows(self._data, phi, self.source)
            yield self._data
        elif self._watched is not None:
            assert self.source is not None
            for chunk in self.source.chunks(piece_bytes(self.memory)):
                yield usable_rows(chunk, phi, self.source)

    def begin(self, task: Task) -> None:
        """Get ready for this task; a part that stands in for a lost one looks at its rows now."""
        outline = self.outline()
        if outline.sample is None or outline.shape is None:
            return
        looked = outline.tally
        if self._counted is looked and isinstance(outline.sample.batch.typical(), Strings):
            self.tally(task.phi)
        assert self._counted is not None
        if self._data is not None:
            data, targets = self._data, task.targets
            codes = targets.codes(data)
            examples = Expansion(task.phi, data.batch, dtype=task.dtype, threads=self.threads)
            self._problem = Problem(
                examples, targets.signs(codes), targets.cost(data, codes), task.loss, task.intercept
            )
        else:
            assert self.source is not None
            assert self._watched is not None
            skips = self._counted.rows < looked.rows
            survey = Survey(self.source, outline.shape, task.phi, self._counted, skips, self._watched)
            flow = survey.flow(task.targets, self.memory, task.loss, task.intercept)
            self.flow = replace(flow, dtype=task.dtype, threads=self.threads)

    def variables(self) -> np.ndarray:
        """Zeros for all rows."""
        return np.zeros(len(self)) if self.flow is None else self.flow.dual_variables()

    def pieces(self) -> Iterator[tuple[slice, Problem]]:
        """All rows, as many at a time as there is memory for: which they are, and the problem that they are."""
        if self._problem is not None:
            if len(self):
                yield slice(0, len(self)), self._problem
        elif self.flow is not None:
            pieces = self.flow.pieces(max(1, self.memory // HELD))
            with ReadAhead(pieces, ahead=self.flow.threads > 1) as ahead:
                for piece in ahead:
                    yield slice(piece.first_row, piece.first_row + len(piece)), self.flow.problem(piece)

    def with_costs_times(self, factor: float) -> Problem | Flow | None:
        """The part's problem for a solver of its own, each cost multiplied; None if there are no rows."""
        if not len(self):
            return None
        if self._problem is not None:
            return replace(self._problem, cost=factor * self._problem.cost)
        assert self.flow is not None
        read = self.flow.read

        def scaled(nbytes: int) -> Iterator[Piece]:
            with closing(read(nbytes)) as pieces:  # type: ignore[type-var]
                for piece in pieces:
                    yield replace(piece, cost=factor * piece.cost)

        return replace(self.flow, read=scaled)
