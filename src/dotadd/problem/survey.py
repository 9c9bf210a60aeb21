"""Survey: what has to be known of all the data before the first example is trained on, and the Problem that it is.

It is found by reading the data once or twice (more often for maps that learn around others that do), and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dotadd._util.memory import available, words
from dotadd.core.losses import Loss
from dotadd.data.batches import Batch, DenseRows, SparseRows, Strings
from dotadd.errors import DataError, FeatureError
from dotadd.features.base import FeatureMap, Shape, require_kind
from dotadd.features.linear import Linear
from dotadd.features.on_demand import OnDemand
from dotadd.problem.columns import Columns, PassingColumns, Tally, Targets
from dotadd.problem.folds import Folds
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.problem import Intercept, Problem
from dotadd.sources.base import Chunk, Source
from dotadd.sources.identity import Watched

HINTS = {
    Strings.kind: "for text try WordNGrams((1, 2)).tfidf() or NGrams((3, 5)).tfidf(), "
    "for DNA Spectrum(8) or WeightedDegree(20).hashed(12)",
    "lattices": "try Rational(ngram(1) + ngram(2)).normalized()",
    "images": "try LBP()",
}

BESIDE = 24  # bytes that each further binary problem takes for a row that is worked on: output, alpha, sign and so on
FEWEST = 256  # rows of a piece, if it is for the sake of these: fewer are not worth the calls for each problem


class Tried(NamedTuple):
    """Folds of all rows, and the values of C that each of them is trained with."""

    folds: Folds
    Cs: Sequence[float]

    def count(self, targets: Targets) -> int:
        """How many binary problems that is."""
        return len(self.Cs) * len(self.folds) * len(targets.problems)

    def columns(self, targets: Targets, chunk: Chunk, first_row: int) -> Columns:
        """The binary problems over a chunk that begins with this row: C by C, and fold by fold."""
        mine = replace(self.folds, parts=self.folds.parts[first_row : first_row + len(chunk)])
        columns = targets.columns(chunk, mine)
        columns = columns.only(range(len(columns) - len(targets.problems)))
        return Columns.beside([columns.times(C) for C in self.Cs])


@dataclass(frozen=True)
class Survey:
    """A source that is too large to be loaded: its shape, the map for it, and the tally of its labels."""

    source: Source
    shape: Shape
    phi: FeatureMap
    tally: Tally
    skips: bool
    """Whether some rows are left out because phi cannot take them."""
    watched: Watched

    @classmethod
    def of(
        cls,
        source: Source,
        resolve: Callable[[Chunk, Shape], FeatureMap],
        chunk_bytes: int,
        dtype: type = np.float32,
        *,
        learned: bool = False,
    ) -> Survey:
        """Read the source; resolve(a chunk, the shape of all) makes the map, which may have `learned` from other data.
        Weights will be of type `dtype`."""
        watched = Watched(source)
        tally, shape, widest = look(source.outline() or source.chunks(chunk_bytes))
        if shape is None or widest is None:
            raise DataError("has no examples", source.name)
        phi = resolve(widest, shape)
        phi = phi if phi.learns or learned else phi.learn(widest.batch)
        if not phi.checks_rows and (bad := phi.check(widest.batch)) is not None:
            raise widest.error(0, bad.message)
        rows = tally.rows
        learns = phi.learns and not learned
        if phi.checks_rows or learns:
            tally, learner = Tally(), phi.learner() if learns else None
            for chunk in source.chunks(chunk_bytes):
                chunk = usable_rows(chunk, phi, source)
                tally.note(chunk)
                if learner is not None:
                    learner.see(chunk.batch)
            while learner is not None and learner.again():
                for chunk in source.chunks(chunk_bytes):
                    learner.see(usable_rows(chunk, phi, source).batch)
            phi = phi if learner is None else learner.done()
        if weight_bytes(phi, dtype) > available():
            require_room(phi, dtype, max(map(widest_row, source.chunks(chunk_bytes)), key=_width), source)
        return cls(source, shape, phi, tally, tally.rows < rows, watched)

    def problem(
        self,
        targets: Targets,
        memory: int,
        loss: Loss,
        intercept: Intercept,
        *,
        dtype: type = np.float32,
        threads: int = 1,
        keep: bool = True,
        tried: Tried | None = None,
    ) -> Problem[OnDisk]:
        """The problem of separating these classes, with so much memory for examples; or, with folds and values of C to
        be tried, all problems of all of these."""

        def read(nbytes: int) -> Iterator[tuple[Batch, Columns]]:
            return self.pieces(targets, nbytes, tried)

        examples = OnDisk(self.phi, read, self.tally.rows, memory, dtype=dtype, threads=threads, keep=keep)
        count = len(targets.problems) if tried is None else tried.count(targets)
        return Problem(examples, PassingColumns(count), loss, intercept)

    def chunks(self, nbytes: int) -> Iterator[Chunk]:
        """The rows that can be trained on, in order."""
        self.watched.check()
        for chunk in self.source.chunks(nbytes):
            yield usable_rows(chunk, self.phi, self.source) if self.skips else chunk
        self.watched.check()

    def pieces(self, targets: Targets, nbytes: int, tried: Tried | None = None) -> Iterator[tuple[Batch, Columns]]:
        """All examples in order, ready for a solver. A piece has fewer of them where there are many binary problems."""
        count = len(targets.problems) if tried is None else tried.count(targets)
        beside, row = BESIDE * (count - 1), 0
        for chunk in self.chunks(nbytes):
            wanted = nbytes * len(chunk) // max(1, chunk.nbytes + beside * len(chunk)) if beside else len(chunk)
            step = max(FEWEST, wanted)
            for first in range(0, max(1, len(chunk)), step):
                part = chunk.slice(first, first + step) if step < len(chunk) else chunk
                columns = targets.columns(part) if tried is None else tried.columns(targets, part, row)
                row += len(part)
                yield part.batch, columns


def look(chunks: Iterable[Chunk]) -> tuple[Tally, Shape | None, Chunk | None]:
    """The tally of the labels of all chunks, the shape that fits them all, and a row as wide as any."""
    tally, shape, widest = Tally(), None, None
    for chunk in chunks:
        tally.note(chunk)
        mine = Shape.of(chunk.batch)
        if widest is None or (mine.n_features or 0) > (Shape.of(widest.batch).n_features or 0):
            widest = widest_row(chunk)
        shape = mine if shape is None else shape.joined(mine)
    return tally, shape, widest


def require_room(phi: FeatureMap, dtype: type, chunk: Chunk, source: Source) -> None:
    """Refuse a space whose weights do not fit into memory, and name the example that asks for so many."""
    needed, free = weight_bytes(phi, dtype), available()
    if needed <= free or not len(chunk):
        return
    message = (
        f"{phi.dim:,} weights, {words(needed)}, and {words(free)} are free; hash the features: add .hashed(24), or "
        '.indexed("hash_table") for those that occur'
    )
    if isinstance(chunk.batch.typical(), SparseRows):
        chunk = widest_row(chunk)
        column = None
        if chunk.path is not None and chunk.lines is not None:
            column = source.column_of(chunk.path, int(chunk.lines[0]), _width(chunk) - 1)
        raise chunk.error(0, f"index {_width(chunk):,} (counted from 1) asks for {message}", column)
    raise FeatureError(f"{phi!r} spans {phi.dim:.3g} features, more than fit in memory: {message}")


def weight_bytes(phi: FeatureMap, dtype: type) -> int:
    """What the weights of one class take."""
    return phi.dim * np.dtype(dtype).itemsize


def widest_row(chunk: Chunk) -> Chunk:
    """The row with the largest index; of other rows than sparse ones, the first."""
    row, batch = 0, chunk.batch
    if isinstance(batch, SparseRows) and batch.offsets[0] < batch.offsets[-1]:
        first = int(batch.offsets[0])
        place = first + int(np.argmax(batch.indices[first : batch.offsets[-1]]))
        row = int(np.searchsorted(batch.offsets, place, side="right")) - 1
    one = chunk.slice(row, min(row + 1, len(chunk))).take(np.arange(min(1, len(chunk))))  # a view would hold all of it
    return replace(one, path=chunk.path_of(row), files=None)


def _width(chunk: Chunk) -> int:
    batch = chunk.batch
    used = batch.indices if isinstance(batch, SparseRows) else np.empty(0, np.int64)
    return int(used.max(initial=-1)) + 1


def resolved_map(phi: FeatureMap | str | None, data: Chunk, shape: Shape) -> FeatureMap:
    """The map that was asked for, as itself or as an expression, for data of this shape; vectors need none."""
    batch = data.batch.typical()
    if isinstance(phi, str):
        from dotadd.features.expression import parse

        phi = parse(phi)
    elif phi is None and isinstance(batch, SparseRows | DenseRows):
        phi = Linear()
    elif phi is None:
        raise FeatureError(f"{batch.kind} need a feature map: {HINTS[batch.kind]}")
    require_kind(phi, batch)
    try:
        phi = phi.resolve(shape)
    except DataError as error:  # in all rows
        raise DataError(str(error), data.path) from None
    return phi if batch is data.batch else OnDemand(phi)


def usable_rows(chunk: Chunk, phi: FeatureMap, source: Source) -> Chunk:
    """The rows of a chunk that phi can take. The first bad one raises, or with "skip" all are left out and counted."""
    bad: list[int] = []
    rest = 0
    while (
        rest < len(chunk)
        and (found := phi.check(chunk.batch.slice(rest, len(chunk)) if rest else chunk.batch)) is not None
    ):
        error = chunk.error(rest + found.row, found.message, found.column)
        if source.on_bad_row != "skip":
            raise error
        source.skipped.add(error)
        bad.append(rest + found.row)
        rest = bad[-1] + 1
    return chunk.take(np.delete(np.arange(len(chunk)), bad)) if bad else chunk
