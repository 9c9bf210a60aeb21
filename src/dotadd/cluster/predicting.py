"""Prediction, evaluation and scans on a Dask cluster, file by file where the workers are.

What is written is a set of Parquet files, part-00000.parquet and so on, one for each file that is read and in the same
order. Each appears whole or not at all, and is written by the worker that reads. So the folder is one that all workers
share, or one on each of them. The work of a lost worker is done by another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dotadd._util.atomic import replacing
from dotadd.cluster.connection import ATTEMPTS, POLL, Failed, Link, T, one_line, tried
from dotadd.cluster.partitions import Partitions
from dotadd.errors import DataError, DotaddError
from dotadd.genome.scan import STRANDS, Scanned, candidates, scores
from dotadd.genome.windows import Counts
from dotadd.model.evaluation import Evaluation, Evaluator
from dotadd.model.file import Classifier, Record
from dotadd.model.predictions import chances, predictions
from dotadd.sources.base import Skipped
from dotadd.sources.files import NoExamplesError

if TYPE_CHECKING:
    import pyarrow as pa
    from distributed import Client, Future

OnProgress = Callable[[float], None]
Work = Callable[[Classifier, str, int], T]  # of the model, the name of a file and its number


@dataclass(frozen=True)
class Written:
    """The files that were written, and the rows in each."""

    paths: list[str]
    rows: list[int]


def predict(
    client: Client,
    model: Classifier,
    data: object,
    folder: str | os.PathLike[str],
    *,
    probability: bool = False,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Written:
    """Write the label and the score of each row: columns `label` and `score`, or `score_<label>` for each of several;
    and `probability` or `probability_<label>`, if asked for.

    `data` is what `LinearSVM.fit` takes beside a client: names or patterns of files. n_jobs is the threads for each
    file; by default one, as a worker does as many files at a time as it has threads.
    """
    given = Partitions.of(data)
    where = _empty_folder(folder)
    if probability:
        chances(model)
    work = partial(_predict, data=given, folder=where, probability=probability, threads=n_jobs or 1)
    done = _each(client, given, work, model, on_progress)
    for _, skipped in done:
        given.skipped.merge(skipped)
    return Written([_part(where, number) for number in range(len(done))], [rows for rows, _ in done])


def evaluate(
    client: Client, model: Classifier, data: object, *, n_jobs: int | None = None, on_progress: OnProgress | None = None
) -> Evaluation:
    """Compare the model's predictions with the labels of all files."""
    if model.several is not None:
        raise DotaddError("a model of several labels a row is evaluated on one machine: leave out the cluster")
    given = Partitions.of(data)
    total = Evaluator(model.classes)
    for one, skipped in _each(client, given, partial(_evaluate, data=given, threads=n_jobs or 1), model, on_progress):
        given.skipped.merge(skipped)
        total = total + one
    if not total.rows:
        raise DataError("has no rows that can be used", given.name)
    return total.finish()


def scan(
    client: Client,
    model: Classifier,
    fasta: object,
    folder: str | os.PathLike[str],
    *,
    signal: str,
    before: int | None = None,
    every: bool = False,
    threshold: float | None = None,
    strand: str = "both",
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> Scanned:
    """Score every candidate of the signal in FASTA files: columns chromosome, strand, start, end and score. With
    `every`, all positions are candidates.

    Intervals count as in BED (see `dotadd.genome.scan`). Only scores above the threshold are written, by default all.
    """
    if strand not in STRANDS:
        raise DotaddError(f"strand is {strand!r}; it has to be one of {', '.join(STRANDS)}")
    where = _empty_folder(folder)
    limit = -np.inf if threshold is None else threshold
    wanted = partial(
        _scan, folder=where, signal=signal, before=before, every=every, limit=limit, strand=strand, threads=n_jobs or 1
    )
    data = Partitions.of(fasta)
    done = _each(client, data, wanted, model, on_progress)
    counts = Counts()
    for one in done:
        for name in ("sequences", "windows"):
            setattr(counts, name, getattr(counts, name) + getattr(one.counts, name))
        counts.dropped.unknown += one.counts.dropped.unknown
        counts.dropped.off_end += one.counts.dropped.off_end
    if not counts.windows:
        raise DataError("has no window that the model could score", data.name)
    return Scanned(sum(one.positions for one in done), sum(one.written for one in done), counts)


def _each(
    client: Client, data: Partitions, work: Work[T], model: Classifier, on_progress: OnProgress | None
) -> list[T]:
    """What is done with each file, on a worker that has it; answers are in order."""
    link = Link(client)
    alive, files = link.survey(data.names)
    sizes, answers = files.sizes, dict[int, T]()
    paths, total = list(sizes), max(1, sum(sizes.values()))
    for _ in range(ATTEMPTS):
        able = {number: files.workers_with([path]) for number, path in enumerate(paths) if number not in answers}
        for number, workers in able.items():
            if not workers:
                raise DataError("none of the workers that are there has this file", paths[number])
        failed: Failed | None = None
        try:
            for number, answer in _done(link, model, work, paths, able, anywhere=len(alive)):
                if isinstance(answer, Failed):
                    failed = answer  # the first error ends it all
                    break
                answers[number] = answer
                if on_progress is not None:
                    on_progress(sum(sizes[paths[done]] for done in answers) / total)
        except DotaddError:
            raise
        except Exception as error:  # of Dask: what was lost is done again
            why = error
        if failed is not None:
            raise failed.error
        if len(answers) == len(paths):
            return [answers[number] for number in range(len(paths))]
        alive, files = link.survey(data.names)
    raise DotaddError(f"workers are lost again and again; do they run out of memory? {one_line(why)}") from why


def _done(
    link: Link,
    model: Classifier,
    work: Work[T],
    paths: Sequence[str],
    able: Mapping[int, Sequence[str]],
    anywhere: int,
) -> Iterator[tuple[int, T | Failed]]:
    """What is done, by number, as it comes: each file by one of the workers that are able to, which may be all."""
    from distributed import TimeoutError, wait

    futures: dict[Future, int] = {}

    def check() -> None:
        alive = link.alive()
        for number in futures.values():
            if not any(worker in alive for worker in able[number]):
                raise LookupError(f"all workers that have {paths[number]} have gone")

    try:
        everywhere = sorted({worker for workers in able.values() for worker in workers})
        scattered = link.client.scatter([model], workers=everywhere, broadcast=True, hash=False, asynchronous=True)
        (there,) = link.answer(scattered, link.alive)
        for number, workers in able.items():
            where = None if len(workers) == anywhere else workers
            future = link.client.submit(tried, work, there, paths[number], number, pure=False, workers=where)
            futures[future] = number
        while futures:
            try:
                with link.client.as_current():
                    finished = wait(list(futures), timeout=POLL, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                check()
                continue
            for future in finished:
                answer = link.answer(link.client.gather(future, asynchronous=True), check)
                yield futures.pop(future), answer
    finally:
        link.forget(futures)


def _empty_folder(folder: str | os.PathLike[str]) -> str:
    """The folder for the parts, which may not hold any yet: there could be more of them than are written now."""
    path = Path(os.path.abspath(os.path.expanduser(os.fspath(folder))))
    if path.exists() and not path.is_dir():
        raise DotaddError(f"{folder}: is a file; parts are written to a folder")
    if path.is_dir() and any(path.glob("part-*.parquet")):
        raise DotaddError(f"{folder}: there are parts in this folder already; remove them, or give another folder")
    return str(path)


def _part(folder: str, number: int) -> str:
    return os.path.join(folder, f"part-{number:05}.parquet")


def _write(path: str, schema: pa.Schema, tables: Iterator[Record]) -> int:
    """A Parquet file of these columns, some rows at a time, and none without examples; returns how many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = 0
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema) as writer, suppress(NoExamplesError):
        for columns in tables:
            batch = pa.RecordBatch.from_pydict(columns, schema)
            writer.write_batch(batch)
            rows += len(batch)
    return rows


def _predict(
    model: Classifier, path: str, number: int, data: Partitions, folder: str, probability: bool, threads: int
) -> tuple[int, Skipped]:
    source, rows = data.source([path]), 0
    os.makedirs(folder, exist_ok=True)
    written = predictions(_part(folder, number), model, probability=probability)
    with written as file, suppress(NoExamplesError):
        for chunk, score in model.decision_chunks(source, n_jobs=threads):
            file.write(score, chunk.ids)
            rows += len(score)
    return rows, source.skipped


def _evaluate(model: Classifier, path: str, number: int, data: Partitions, threads: int) -> tuple[Evaluator, Skipped]:
    source = data.source([path])
    try:
        found = model.evaluated(source, n_jobs=threads)
    except NoExamplesError:
        found = Evaluator(model.classes)
    assert isinstance(found, Evaluator)
    return found.packed(), source.skipped


def _scan(
    model: Classifier, path: str, number: int, folder: str, signal: str, before: int | None, every: bool,
    limit: float, strand: str, threads: int,
) -> Scanned:  # fmt: skip
    import pyarrow as pa

    windows, positions = candidates(model, path, signal=signal, before=before, every=every), 0
    numbers = {"start": pa.int64(), "end": pa.int64(), "score": pa.float32()}
    schema = pa.schema({"chromosome": pa.string(), "strand": pa.string()} | numbers)

    def tables() -> Iterator[Record]:
        nonlocal positions
        for at, score in scores(model, windows, strand=strand, n_jobs=threads):
            positions += len(score)
            rows = np.flatnonzero(score > limit)
            some = at.take(rows)
            names = {name: some.to_arrow()[name].dictionary_decode() for name in ("chromosome", "strand")}
            start = some.position - 1
            yield names | {"start": start, "end": start + some.length, "score": score[rows].astype(np.float32)}

    written = _write(_part(folder, number), schema, tables())
    return Scanned(positions, written, windows.counts)
