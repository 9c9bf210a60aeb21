"""scan: the score of every candidate position of a genome, on both strands, as a track for genome browsers.

A track is a file of intervals, here the two letters of each candidate (one letter where every position is one), from 0
and without the end, as BED counts:

    .bedgraph, .bg   chromosome, start, end, score
    .bed             chromosome, start, end, signal, score from 0 to 1000, strand, score
    .bw, .bigwig     the same as bedGraph, indexed; needs pybigtools

The first two may end in .gz. Candidates of both strands stand in one file in the order of the sequences and positions:
no two of them share a letter (see `genome.cutting`), so that bedGraph and bigWig are sound with both.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from dotadd._util.atomic import replacing
from dotadd.errors import DotaddError, ModelError, require_extra
from dotadd.genome.windows import Counts, Path, Windows
from dotadd.model.file import Classifier
from dotadd.sources.base import Source
from dotadd.sources.located import Coordinates, Located

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 17  # windows that are scored at a time: enough for tiles and stretches, and few enough for Ctrl-C
FORMATS = {".bedgraph": "bedgraph", ".bg": "bedgraph", ".bed": "bed", ".bw": "bigwig", ".bigwig": "bigwig"}
STRANDS = ("both", "+", "-")

Interval = tuple[str, int, int, float]


@dataclass(frozen=True)
class Scanned:
    """How many positions were scored and how many written; `counts` tells what was dropped."""

    positions: int
    written: int
    counts: Counts


def track_format(path: str) -> str:
    """bedgraph, bed or bigwig, by the end of the name; raises if it is none of them, or if nothing could write it."""
    name = path.lower()
    zipped = name.endswith(".gz")
    found = FORMATS.get(os.path.splitext(name.removesuffix(".gz"))[1])
    if found is None or (zipped and found == "bigwig"):
        raise DotaddError(f"{path}: a track is called .bedgraph, .bed (either may end in .gz) or .bw; name it so")
    if found == "bigwig":
        require_extra("pybigtools", f"{path}: bigWig needs")
    return found


def candidates(
    model: Classifier,
    fasta: Path | Sequence[Path],
    *,
    signal: str,
    before: int | None = None,
    every: bool = False,
    on_progress: Callable[[float], None] | None = None,
) -> Windows:
    """The windows that the model can score, at `every` position or where the signal stands; one sequence at a time is
    in memory. The model has to have two classes and to be trained on strings."""
    length = window_length(model, before)
    windows = Windows(fasta, signal=signal, length=length, before=before, every=every, on_progress=on_progress)
    windows.genome.passing = True
    return windows


def window_length(model: Classifier, before: int | None = None) -> int:
    """Letters of the windows that a model was trained on, so many of them before the signal; or it is refused."""
    length = model.shape.length
    if length is None:
        raise ModelError(f"the model was trained on {model.shape.kind} and not on windows of letters; it cannot scan")
    if model.shape.one_length is False:
        raise ModelError(
            f"the model was trained on strings of different lengths, up to {length} letters; a scan needs one that was "
            "trained on windows of one length"
        )
    if not model.two:
        raise ModelError(f"the model tells {len(model.classes)} classes apart; a scan needs one of two")
    if length < (before or 0) + 2:
        what = f"{before} letters and then the two of the signal" if before else "the two letters of the signal"
        raise ModelError(f"the model's windows have {length} letters, too few for {what}")
    return length


def scores(
    model: Classifier, windows: Windows, *, strand: str = "both", n_jobs: int | None = None
) -> Iterator[tuple[Coordinates, np.ndarray]]:
    """Where each candidate on the strand stands and its score, some ten thousand at a time."""
    for chunk, score in model.decision_chunks(_Pieces(windows, strand), n_jobs=n_jobs):
        assert isinstance(chunk, Located)
        yield chunk.coordinates, score


def scan(
    model: Classifier,
    fasta: Path | Sequence[Path],
    path: str | os.PathLike[str],
    *,
    signal: str,
    before: int | None = None,
    every: bool = False,
    threshold: float | None = None,
    strand: str = "both",
    n_jobs: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Scanned:
    """Score every candidate of the signal and write the track, whose format the name tells. It appears whole or not.
    With `every`, all positions are candidates, of a letter each; but .bed, formats then have room for one strand.

    Only scores above the threshold are written: by default above 0 for .bed, and all for the others.
    """
    path = os.fspath(path)
    kind = track_format(path)
    if strand not in STRANDS:
        raise DotaddError(f"strand is {strand!r}; it has to be one of {', '.join(STRANDS)}")
    if threshold is None:
        threshold = 0.0 if kind == "bed" else -np.inf
    if every and strand == "both" and kind != "bed":
        raise DotaddError(
            f"{path}: a place has one score there, and not one for each strand; give strand, or a .bed file"
        )
    windows = candidates(model, fasta, signal=signal, before=before, every=every, on_progress=on_progress)
    kept = _Kept(scores(model, windows, strand=strand, n_jobs=n_jobs), threshold)
    if kind == "bigwig":
        _write_bigwig(kept, windows, path)
    else:
        _write_text(kept, _bed if kind == "bed" else _bedgraph, signal, path)
    return Scanned(kept.positions, kept.written, windows.counts)


@dataclass
class _Pieces(Source):
    """The windows of one strand, or of both, in chunks of a size that suits scoring."""

    windows: Windows
    strand: str

    def chunks(self, nbytes: int = 0) -> Iterator[Located]:
        chunks = self.windows.chunks(nbytes or ROWS * self.windows.length)
        if self.strand == "both":
            return chunks
        wanted = ((chunk, np.flatnonzero(chunk.coordinates.minus == (self.strand == "-"))) for chunk in chunks)
        return (chunk.take(rows) for chunk, rows in wanted if len(rows))


@dataclass
class _Kept:
    """The scores that are written, and how many there were."""

    scored: Iterator[tuple[Coordinates, np.ndarray]]
    threshold: float
    positions: int = 0
    written: int = 0

    def __iter__(self) -> Iterator[tuple[Coordinates, np.ndarray]]:
        for at, score in self.scored:
            self.positions += len(score)
            keep = score > self.threshold
            if not keep.all():
                rows = np.flatnonzero(keep)
                at, score = at.take(rows), score[rows]
            self.written += len(score)
            yield at, score


def _bedgraph(at: Coordinates, score: np.ndarray, signal: str) -> dict[str, pa.Array]:
    import pyarrow as pa

    start = at.position - 1
    columns = {"chromosome": at.to_arrow()["chromosome"].dictionary_decode(), "start": start, "end": start + at.length}
    return {name: pa.array(values) for name, values in columns.items()} | {"score": pa.array(score, pa.float32())}


def _bed(at: Coordinates, score: np.ndarray, signal: str) -> dict[str, pa.Array]:
    """BED6 and the score itself. The score of BED is 500 at 0 and 250 more for each 1, between 0 and 1000."""
    import pyarrow as pa

    columns = _bedgraph(at, score, signal)
    shade = np.clip(np.rint(500 + 250 * score), 0, 1000).astype(np.int32)
    beside = {"name": pa.array([signal]).take(pa.array(np.zeros(len(score), np.int8))), "shade": pa.array(shade)}
    strand = at.to_arrow()["strand"].dictionary_decode()
    raw = columns.pop("score")
    return columns | beside | {"strand": strand, "score": raw}


def _write_text(
    kept: _Kept, columns: Callable[[Coordinates, np.ndarray, str], dict[str, pa.Array]], signal: str, path: str
) -> None:
    import pyarrow as pa
    import pyarrow.csv as csv

    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none", batch_size=ROWS)
    with ExitStack() as stack:
        file: IO[bytes] | gzip.GzipFile = stack.enter_context(open(stack.enter_context(replacing(path)), "wb"))
        if path.lower().endswith(".gz"):  # the same scores give the same bytes: neither a name nor a date inside
            file = stack.enter_context(gzip.GzipFile("", "wb", 5, file, mtime=0))
        writer = None
        for at, score in kept:
            rows = pa.RecordBatch.from_pydict(columns(at, score, signal))
            if writer is None:
                writer = stack.enter_context(csv.CSVWriter(file, rows.schema, write_options=options))
            try:
                writer.write_batch(rows)
            except pa.ArrowInvalid as error:  # a quotation mark in the name of a sequence
                raise DotaddError(f"{path}: cannot be written: {error}") from None


def _write_bigwig(kept: _Kept, windows: Windows, path: str) -> None:
    def values() -> Iterator[Interval]:
        for at, score in kept:
            start = at.position - 1
            names = np.array(at.names, object)[at.sequence]
            yield from zip(names, start.tolist(), (start + at.length).tolist(), score.tolist(), strict=True)

    write_intervals(path, windows.genome.lengths(), values, "no score is above the threshold")


def write_intervals(
    path: str, lengths: dict[str, int], intervals: Callable[[], Iterator[Interval]], why_none: str = "there is no row"
) -> None:
    """A bigWig of chromosomes of these lengths. pybigtools raises neither what its input raised nor what went wrong
    with its file, so both are looked for."""
    import pybigtools

    failure: list[BaseException] = []
    written = 0

    def values() -> Iterator[Interval]:
        nonlocal written
        try:
            for interval in intervals():
                written += 1
                yield interval
        except (Exception, KeyboardInterrupt) as error:
            failure.append(error)

    with replacing(path, ending=".bw") as temporary:  # pybigtools goes by the name
        pybigtools.open(str(temporary), "w").write(lengths, values())
        if failure:
            raise failure[0]
        if not written:
            raise DotaddError(f"{path}: {why_none}, and bigWig cannot be empty")
        try:
            pybigtools.open(str(temporary)).close()
        except Exception as error:
            raise DotaddError(f"{path}: the bigWig file could not be written ({error})") from None
