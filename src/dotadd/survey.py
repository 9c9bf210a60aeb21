"""Survey: what has to be known of all the data before the first example is trained on, found by reading it once or
twice, without keeping it; and the Flow of its examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dotadd.batch import DenseRows, SparseRows, Strings
from dotadd.errors import DataError, FeatureError
from dotadd.features.base import FeatureMap, Shape, require_kind
from dotadd.features.linear import Linear
from dotadd.features.on_demand import OnDemand
from dotadd.losses import Loss
from dotadd.memory import available, words
from dotadd.model_file import usable_rows
from dotadd.solvers.flow import Flow, Piece
from dotadd.solvers.problem import Intercept
from dotadd.sources.base import Chunk, Source
from dotadd.sources.identity import Watched
from dotadd.targets import Tally, Targets

HINTS = {
    Strings.kind: "for text try NGrams((3, 5)).normalized() or BagOfWords().normalized(), "
    "for DNA Spectrum(8) or WeightedDegree(20).hashed(12)",
    "lattices": "try Rational(ngram(1) + ngram(2)).normalized()",
    "images": "try LBP()",
}

BESIDE = 24  # bytes that each further binary problem takes for a row that is worked on: output, alpha, sign and so on
FEWEST = 256  # rows of a piece, if it is for the sake of these: fewer are not worth the calls for each problem


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
        cls, source: Source, resolve: Callable[[Chunk, Shape], FeatureMap], chunk_bytes: int, dtype: type = np.float32
    ) -> Survey:
        """Read the source; resolve(a chunk, the shape of all) makes the map. Weights will be of type `dtype`."""
        watched = Watched(source)
        tally, shape, widest = Tally(), None, None
        for chunk in source.outline() or source.chunks(chunk_bytes):
            tally.note(chunk)
            mine = Shape.of(chunk.batch)
            if widest is None or (mine.n_features or 0) > (Shape.of(widest.batch).n_features or 0):
                widest = widest_row(chunk)
            shape = mine if shape is None else shape.joined(mine)
        if shape is None or widest is None:
            raise DataError("has no examples", source.name)
        phi = resolve(widest, shape)
        phi = phi if phi.learns else phi.learn(widest.batch)
        strings = isinstance(widest.batch.typical(), Strings)
        if (bad := phi.check(widest.batch)) is not None and not strings:
            raise widest.error(0, bad.message)  # of vectors, the widest tells whether all are narrow enough
        rows = tally.rows
        if strings or phi.learns:
            tally, learner = Tally(), phi.learner()
            for chunk in source.chunks(chunk_bytes):
                chunk = usable_rows(chunk, phi, source)
                tally.note(chunk)
                learner.see(chunk.batch)
            phi = learner.done()
        if weight_bytes(phi, dtype) > available():
            require_room(phi, dtype, max(map(widest_row, source.chunks(chunk_bytes)), key=_width))
        return cls(source, shape, phi, tally, tally.rows < rows, watched)

    def flow(self, targets: Targets, memory: int, loss: Loss, intercept: Intercept) -> Flow:
        """The problem of separating these classes, with so much memory for examples."""

        def read(nbytes: int) -> Iterator[Piece]:
            return self.pieces(targets, nbytes)

        return Flow(self.phi, read, self.tally.rows, len(targets.problems), memory, loss, intercept)

    def pieces(self, targets: Targets, nbytes: int) -> Iterator[Piece]:
        """All examples in order, ready for a solver. A piece has fewer of them where there are many binary problems."""
        self.watched.check()
        beside = BESIDE * (len(targets.problems) - 1)
        first_row = 0
        for chunk in self.source.chunks(nbytes):
            if self.skips:
                chunk = usable_rows(chunk, self.phi, self.source)
            wanted = nbytes * len(chunk) // max(1, chunk.nbytes + beside * len(chunk)) if beside else len(chunk)
            step = max(FEWEST, wanted)
            for first in range(0, max(1, len(chunk)), step):
                part = chunk.slice(first, first + step) if step < len(chunk) else chunk
                codes = targets.codes(part)
                yield Piece(part.batch, first_row, targets.signs(codes), targets.cost(part, codes))
                first_row += len(part)
        self.watched.check()


def require_room(phi: FeatureMap, dtype: type, chunk: Chunk) -> None:
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
        raise chunk.error(0, f"index {_width(chunk):,} (counted from 1) asks for {message}")
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
    one = chunk.slice(row, min(row + 1, len(chunk)))
    return Chunk(one.batch.take(np.arange(len(one))), None, None, one.first_row, chunk.path_of(row), one.lines)


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
    phi = phi.resolve(shape)
    return phi if batch is data.batch else OnDemand(phi)
