"""ShardExamples: the examples of one part, loaded if they fit in its memory, and read again and again if not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from dotadd.cluster.task import Outline, Task
from dotadd.data.batches import Batch
from dotadd.features.base import FeatureMap
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.on_disk import OnDisk, piece_bytes
from dotadd.problem.problem import Piece, Problem
from dotadd.problem.survey import Survey, look
from dotadd.problem.targets import Tally
from dotadd.problem.usable import usable_rows
from dotadd.sources.base import Chunk, Source, TooLargeError
from dotadd.sources.cached import as_arrow
from dotadd.sources.files import NoExamplesError
from dotadd.sources.identity import Watched
from dotadd.sources.memory import MemorySource

HELD = 4  # pieces that the memory would hold: one is worked on while the next is read, and both take room to decode


class ShardExamples:
    """A source, or None for no examples at all, and what they may take of memory."""

    def __init__(self, source: Source | None, memory: int, threads: int, announce: Callable[[str], None]) -> None:
        self.source, self.memory, self.threads, self.announce = source, memory, threads, announce
        self._outline: Outline | None = None
        self._counted: Tally | None = None  # rows that phi can take
        self._data: Chunk | None = None
        self._watched: Watched | None = None
        self.problem: Problem[InMemory] | Problem[OnDisk] | None = None

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
        tally, shape, widest = look(chunks)
        assert self.source is not None
        return Outline(tally, shape, widest, self.source.columns, self.source.names())

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
        if self._counted is looked and task.phi.checks_rows:
            self.tally(task.phi)
        assert self._counted is not None
        if self._data is not None:
            examples = InMemory(task.phi, self._data.batch, dtype=task.dtype, threads=self.threads)
            self.problem = Problem(examples, task.targets.columns(self._data), task.loss, task.intercept)
        else:
            assert self.source is not None
            assert self._watched is not None
            skips = self._counted.rows < looked.rows
            survey = Survey(self.source, outline.shape, task.phi, self._counted, skips, self._watched)
            self.problem = survey.problem(
                task.targets, self.memory, task.loss, task.intercept, dtype=task.dtype, threads=self.threads
            )

    def variables(self) -> np.ndarray:
        """Zeros for all rows."""
        return np.zeros(0) if self.problem is None else self.problem.dual_variables()

    def pieces(self) -> Iterator[Piece]:
        """All rows, as many at a time as there is memory for."""
        if self.problem is not None and len(self):
            with self.problem.read(max(1, self.memory // HELD)) as pieces:
                yield from pieces

    def with_costs_times(self, factor: float) -> Problem[InMemory] | Problem[OnDisk] | None:
        """The part's problem for a solver of its own, each cost multiplied; None if there are no rows."""
        problem = self.problem
        if problem is None or not len(self):
            return None
        if isinstance(problem.examples, InMemory):
            return replace(problem, columns=problem.columns.times(factor))
        disk = problem.examples

        def scaled(nbytes: int) -> Iterator[tuple[Batch, Columns]]:
            for batch, columns in disk.read(nbytes):
                yield batch, columns.times(factor)

        examples = OnDisk(disk.phi, scaled, len(disk), disk.memory, dtype=disk.dtype, threads=disk.threads)
        return replace(problem, examples=examples)
