"""Conformance checks for users' own sources.

    def test_my_source_keeps_the_contract():
        check_source(MySource("data.xyz"), bad=MySource("damaged.xyz"))

Each check raises AssertionError with a sentence that says what is wrong and what the contract asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dotadd._util.compressed import decompressed
from dotadd.data.batches import Batch, DenseRows, SparseRows, Strings
from dotadd.data.lattices import Lattices
from dotadd.errors import DataError
from dotadd.sources.around import Kept
from dotadd.sources.base import CHUNK_BYTES, Around, Chunk, Source
from dotadd.sources.memory import MemorySource
from dotadd.sources.sound import require_inside, unusable

LARGER = 16  # a chunk may take so many times the bytes asked for: digits of text become numbers with offsets and lines


@dataclass
class _Pass:
    """What a pass over a source showed of each row."""

    rows: list[tuple[object, ...]] = field(default_factory=list)
    labels: list[object] = field(default_factory=list)
    weights: list[object] = field(default_factory=list)
    lines: list[object] = field(default_factory=list)
    paths: list[object] = field(default_factory=list)
    nbytes: int = 0

    def see(self, chunk: Chunk) -> None:
        rows = len(chunk)
        self.rows += _row_keys(chunk.batch)
        for seen, beside in ((self.labels, chunk.y), (self.weights, chunk.weight), (self.lines, chunk.lines)):
            seen += [None] * rows if beside is None else beside.tolist()
        self.paths += [chunk.path_of(row) for row in range(rows)]
        self.nbytes += chunk.nbytes


def check_source(source: Source, *, bad: Source | None = None) -> None:
    """Check that a source keeps the contract of Source. It should be small, and have rows of different kinds.

    `bad`, if given, is a source of the same class over data with a row that cannot be read: the complaint has to say
    where that is.
    """
    first = _read(source, CHUNK_BYTES)
    skipped = source.skipped.count
    _check_same(first, _read(source, CHUNK_BYTES), "a second pass has to give the same")
    assert source.skipped.count == skipped, "skipped has to tell of the latest pass alone: clear it when one begins"
    _check_abandoned(source, first)
    for parts in (2, 7, max(1, first.nbytes)):
        nbytes = max(1, first.nbytes // parts)
        found = _read(source, nbytes, bounded=not _in_memory(source))
        _check_same(first, found, f"chunks of {nbytes} bytes have to give the same")
    joined = _Pass()
    joined.see(_sound(source.load(), "load"))
    _check_same(first, joined, "load has to give what the chunks do, joined")
    _check_outline(source, first)
    _check_places(source, first)
    if bad is not None:
        _check_complaint(bad)


def _read(source: Source, nbytes: int, *, bounded: bool = False) -> _Pass:
    """One pass, and what can be seen of each chunk by itself."""
    seen, like = _Pass(), None
    for number, chunk in enumerate(source.chunks(nbytes)):
        what = f"chunk {number}"
        _sound(chunk, what)
        assert chunk.first_row == len(seen.rows), (
            f"{what} begins with row {chunk.first_row} after {len(seen.rows)} rows; they are numbered from 0, no gaps"
        )
        most = LARGER * max(nbytes, int(chunk.batch.row_bytes().max()))
        assert not bounded or len(chunk) == 1 or chunk.nbytes <= most, (
            f"{what} takes {chunk.nbytes} bytes where {nbytes} were asked for; memory stays bounded only if a chunk "
            f"takes at most {LARGER} times as many, or as its longest row"
        )
        like = like or chunk
        assert type(chunk.batch) is type(like.batch), (
            f"{what} holds {chunk.batch.kind}, and the first {like.batch.kind}"
        )
        for name in ("y", "weight"):
            alike = (getattr(chunk, name) is None) == (getattr(like, name) is None)
            assert alike, f"only some chunks have {name}: either all have it or none"
        seen.see(chunk)
    assert seen.rows, "a source without examples has to raise DataError, and not to yield nothing"
    return seen


def _sound(chunk: Chunk, what: str) -> Chunk:
    """The chunk, if it is one that kernels can be given."""
    batch = chunk.batch.own()
    assert len(chunk) > 0, f"{what} has no rows: leave it out"
    for name, beside in (("y", chunk.y), ("weight", chunk.weight), ("lines", chunk.lines)):
        assert beside is None or len(beside) == len(chunk), (
            f"{what} has {len(chunk)} rows, and {name} has {0 if beside is None else len(beside)} entries"
        )
    require_inside(batch)
    if isinstance(batch, SparseRows):
        used = batch.indices[int(batch.offsets[0]) : int(batch.offsets[-1])]
        assert not len(used) or (used.min() >= 0 and used.max() < batch.n_features), (
            f"{what} has an index that is not from 0 to {batch.n_features - 1}, below n_features"
        )
    values = batch.values if isinstance(batch, DenseRows | SparseRows) else None
    assert values is None or not len(unusable(values.reshape(-1))), (
        f"{what} has a value that is not finite or too large"
    )
    if chunk.weight is not None:
        proper = np.isfinite(chunk.weight) & (chunk.weight >= 0)
        assert proper.all(), f"{what} has a weight that is not a number from 0 up"
    return chunk


def _row_keys(batch: Batch) -> list[tuple[object, ...]]:
    """Each row as plain values, whatever types they are kept in: these may widen from one chunk to the next."""
    batch = batch.own()
    if isinstance(batch, Strings):
        return [(batch[row],) for row in range(len(batch))]
    if isinstance(batch, DenseRows):
        return [(row.shape, row.astype(np.float64).tobytes()) for row in batch.values]
    if isinstance(batch, Lattices):
        return [_lattice_key(batch, row) for row in range(len(batch))]
    assert isinstance(batch, SparseRows), f"rows of {batch.kind} cannot be compared"
    offsets = batch.offsets.tolist()
    values = np.ones(offsets[-1]) if batch.values is None else batch.values
    spans = [slice(*ends) for ends in pairwise(offsets)]
    return [(tuple(batch.indices[span].tolist()), tuple(values[span].tolist())) for span in spans]


def _lattice_key(batch: Lattices, row: int) -> tuple[object, ...]:
    one = batch.take(np.array([row]))
    parts = (one.arc_offsets, one.labels, one.targets, one.weights, one.finals)
    return tuple(tuple(part.tolist()) for part in parts)


def _check_same(first: _Pass, found: _Pass, sentence: str) -> None:
    assert len(found.rows) == len(first.rows), (
        f"{sentence} rows, and there were {len(found.rows)} instead of {len(first.rows)}"
    )
    for name in ("rows", "labels", "weights", "lines", "paths"):
        wanted, got = getattr(first, name), getattr(found, name)
        row = next((row for row, pair in enumerate(zip(wanted, got, strict=True)) if pair[0] != pair[1]), None)
        assert row is None, f"{sentence} {name}, and row {row} differs"


def _check_abandoned(source: Source, first: _Pass) -> None:
    begun = iter(source.chunks(max(1, first.nbytes // 7)))
    next(begun)
    _check_same(
        first, _read(source, CHUNK_BYTES), "a pass that was left must not change what the next one gives: the same"
    )
    if close := getattr(begun, "close", None):
        close()


def _check_outline(source: Source, first: _Pass) -> None:
    outline = source.outline()
    if outline is not None:
        labels = [label for chunk in outline for label in (() if chunk.y is None else chunk.y.tolist())]
        assert labels == first.labels, "outline has to tell the labels of all rows, in their order"


def _check_places(source: Source, first: _Pass) -> None:
    """Complaints about rows name a file that is read, and a line that it has."""
    files = source.files()
    if not files:
        return
    length: dict[object, int] = {}
    for row, (path, line) in enumerate(zip(first.paths, first.lines, strict=True)):
        inside = isinstance(path, str) and (path in files or any(name.startswith(path) for name in files))
        assert inside, f"row {row} comes from {path}, and files() are {files}: set path in each chunk"
        if isinstance(line, int) and isinstance(path, str):
            if path not in length:
                with decompressed(path) as (_, file):
                    length[path] = sum(1 for _ in file)
            assert 1 <= line <= length[path], (
                f"row {row} is on line {line} of {path}, which has {length[path]} (from 1 on)"
            )


def _check_complaint(bad: Source) -> None:
    error = _complaint(bad)
    assert error is not None, "the row that cannot be read was read without a complaint"
    files = bad.files()
    assert not files or error.path in files, f"a complaint has to name its file, and said only: {error}"
    told = error.line is not None or "row " in str(error)
    assert told, f"a complaint about a row has to name its line or its row, and said only: {error}"


def _complaint(bad: Source) -> DataError | None:
    try:
        for _ in bad.chunks():
            pass
    except DataError as error:
        return error
    return None


def _in_memory(source: Source) -> bool:
    """Whether all examples are in memory anyway, so that they may come in one chunk."""
    while isinstance(source, Around) and not isinstance(source, Kept):
        source = source.source
    return isinstance(source, MemorySource | Kept)
