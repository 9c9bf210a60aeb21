"""dotadd predict, evaluate and scan: what a model says of rows, how often it is right, what it says of a genome."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from cyclopts import Parameter

from dotadd._util.atomic import replacing, require_writable
from dotadd.cli.large import Cluster, partitions
from dotadd.cli.options import Flag, Reading, Real, Whole, tell_skipped
from dotadd.cli.progress import Bar
from dotadd.cli.screen import duration, facts, label_text, number, show_table, tell
from dotadd.errors import DataError, DotaddError

if TYPE_CHECKING:
    from dotadd.cluster.partitions import Partitions
    from dotadd.model.evaluation import Evaluation
    from dotadd.model.file import Classifier, Record
    from dotadd.sources.base import Source

MOST_CLASSES = 30  # that the table of counts is for; --log has all counts


def predict(
    model: str,
    /,
    *data: str,
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None,
    scores: Flag = False,
    jobs: Whole | None = None,
    cluster: Cluster = Cluster(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Write the label and the score of each row.

    A line a row: the label, a tab, the score, or for several classes a score for
    each. With two classes a positive score means the second of them. Tabs and the
    like in labels are written as \\t, \\n, \\x1b, and a backslash as \\\\. Data is read
    and written piece by piece.

    The name of OUTPUT tells the format: .csv (with quotes where they are needed),
    .jsonl, .parquet, .arrow; text like that on the screen otherwise. Text may also
    end in .gz, .bz2 or .xz.

    On a cluster, OUTPUT is a folder: for each file of data a Parquet file with the
    columns label and score, part-00000.parquet and so on, written where it is read.

    Examples:

        dotadd predict a9a.dotadd a9a.t | head
        dotadd predict a9a.dotadd a9a.t --scores -o scores.txt
        dotadd predict sites.dotadd part-*.fasta.gz -o sites.tsv.gz
        dotadd predict spam.dotadd mails.csv --column text -o spam.parquet
        dotadd predict all.dotadd "part-*.parquet" -o scores \\
            --scheduler tcp://10.0.0.1:8786

    Parameters
    ----------
    model
        The model file.
    data
        One or more files, as for training; labels are not needed.
    output
        The file to write, the screen by default; on a cluster a folder.
    scores
        Scores alone, without labels.
    jobs
        Threads; all cores by default.
    """
    from dotadd.model.linear import load
    from dotadd.model.predictions import TabSeparated, format_of, predictions

    if not data:
        raise DotaddError("give a data file to predict")
    if cluster.wanted:
        predict_parts(load(model), data, output, scores, jobs, cluster, reading)
        return
    if output is not None:
        format_of(output)
        require_writable(output)
    loaded, source = load(model), reading.open(list(data))
    written = (
        nullcontext(TabSeparated(loaded, sys.stdout, labels=not scores))
        if output is None
        else predictions(output, loaded, labels=not scores)
    )
    with written as file:
        for _, score in loaded.decision_chunks(source, n_jobs=jobs):
            file.write(score)
    tell_skipped(source)


def predict_parts(
    model: Classifier,
    data: Sequence[str],
    output: str | None,
    scores: bool,
    jobs: int | None,
    cluster: Cluster,
    reading: Reading,
) -> None:
    """The same on a cluster."""
    from dotadd.cluster.predicting import predict

    if output is None or scores:
        raise DotaddError("on a cluster, labels and scores are written to a folder: give --output, and no --scores")
    files = partitions(data, reading)
    with cluster.client(jobs) as client, Bar("predicting") as bar:
        assert client is not None
        done = predict(client, model, files, output, n_jobs=cluster.threads(jobs), on_progress=bar)
    tell_skipped(files)
    tell(f"{sum(done.rows):,} rows in {len(done.paths)} files in {output}")


def evaluate(
    model: str,
    /,
    *data: str,
    log: str | None = None,
    jobs: Whole | None = None,
    cluster: Cluster = Cluster(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Measure a model on labelled data.

    Shows accuracy, auROC, auPRC, the confusion matrix and the speed. The areas are
    those of the second class against the first; with several classes, of each
    against the rest. Where rows have weights (--weight), they count by these.

    Examples:

        dotadd evaluate a9a.dotadd a9a.t
        dotadd evaluate spam.dotadd mails.csv --column text --label spam \\
            --log measures.json
        dotadd evaluate all.dotadd "test-*.parquet" --workers 4

    Parameters
    ----------
    model
        The model file.
    data
        One or more files with labels, as for training.
    log
        Write the measures to this file as JSON.
    jobs
        Threads; all cores by default.
    """
    from dotadd.model.linear import load

    if not data:
        raise DotaddError("give a data file to evaluate on")
    if log is not None:
        require_writable(log)
    loaded = load(model)
    source: Source | Partitions
    if cluster.wanted:
        source = partitions(data, reading)
        measured = measure_parts(loaded, source, jobs, cluster)
    else:
        source = reading.open(list(data))
        measured = measure(loaded, source, jobs)
    tell_skipped(source)
    if log is not None:
        with replacing(log) as temporary:
            record = {"model": model, "data": list(data), **as_json(loaded, measured)}
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    show_measures(loaded, measured)


class Measured(NamedTuple):
    """An evaluation, and how long reading and scoring took."""

    evaluation: Evaluation
    seconds: float


def measure(model: Classifier, source: Source, jobs: int | None) -> Measured:
    """Score all rows of a source and compare with its labels. A chunk of them is in memory, and all scores while they
    take little."""
    started = time.perf_counter()
    found = model.evaluated(source, n_jobs=jobs)
    if not found.rows:
        raise DataError("has no rows that can be used", source.name)
    return Measured(found.finish(), time.perf_counter() - started)


def measure_parts(model: Classifier, data: Partitions, jobs: int | None, cluster: Cluster) -> Measured:
    """The same on a cluster, where each file is."""
    from dotadd.cluster.predicting import evaluate

    with cluster.client(jobs) as client, Bar("evaluating") as bar:
        assert client is not None
        started = time.perf_counter()
        found = evaluate(client, model, data, n_jobs=cluster.threads(jobs), on_progress=bar)
        return Measured(found, time.perf_counter() - started)


def as_json(model: Classifier, measured: Measured) -> Record:
    """The measures as plain data; areas that do not exist, for want of a class, are null."""
    from dotadd.model.file import jsonable

    found = measured.evaluation
    two = len(model.classes) == 2
    record = found._asdict() | {"seconds": measured.seconds, "classes": model.classes}
    return jsonable(record | {"auroc": found.auroc[0], "auprc": found.auprc[0]} if two else record)


def show_measures(model: Classifier, measured: Measured, title: str | None = None) -> None:
    """The measures on screen, with a table of counts."""
    found, seconds = measured
    labels = [label_text(label) for label in model.classes.tolist()]
    speed = f"{found.rows / seconds:,.0f} rows/s" if seconds else ""
    lines = {"rows": f"{found.rows:,} in {duration(seconds)}, {speed}"}
    if title:
        lines = {"measured": title, **lines}
    if found.confusion.dtype.kind == "f":
        lines["weight"] = f"{_amount(found.confusion.sum())}, by which rows count"
    lines["accuracy"] = f"{found.accuracy:.4f}"
    if len(found.auroc) == 1:
        lines |= {"auROC": f"{found.auroc[0]:.4f}", "auPRC": f"{found.auprc[0]:.4f}"}
    facts(lines)
    if len(labels) > MOST_CLASSES:
        show_table(*_each_class(labels, found), words=(0, 3))
        return
    areas = [("auROC", found.auroc), ("auPRC", found.auprc)] if len(found.auroc) > 1 else []
    rows = [
        [label, *(_amount(count) for count in found.confusion[k]), *(f"{area[k]:.4f}" for _, area in areas)]
        for k, label in enumerate(labels)
    ]
    show_table(["true \\ predicted", *labels, *(name for name, _ in areas)], rows)


def _amount(count: float) -> str:
    """A number of rows, or their weight."""
    return number(count) if isinstance(count, float) else f"{count:,}"


def _each_class(labels: list[str], found: Evaluation) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table for so many classes that nobody could read the counts of all pairs."""
    import numpy as np

    wrong = found.confusion - np.diag(np.diag(found.confusion))
    rows = []
    for k, label in enumerate(labels):
        other = int(wrong[k].argmax())
        taken = [labels[other], _amount(wrong[k, other])] if wrong[k, other] else ["", ""]
        counts = [_amount(found.confusion[k].sum()), _amount(found.confusion[k, k])]
        rows.append([label, *counts, *taken, f"{found.auroc[k]:.4f}", f"{found.auprc[k]:.4f}"])
    return ["class", "rows", "right", "most often taken for", "times", "auROC", "auPRC"], rows


def scan(
    *fasta: str,
    model: str,
    signal: Literal["acceptor", "donor"],
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    threshold: Real | None = None,
    strand: Literal["both", "+", "-"] = "both",
    before: Whole | None = None,
    jobs: Whole | None = None,
    cluster: Cluster = Cluster(),  # noqa: B008
) -> None:
    """Score every candidate splice site of a genome, on both strands.

    Every AG (acceptor) or GT (donor) whose window has no letter other than ACGT
    is scored. The name of the output tells the format:

        .bedgraph   chromosome, start, end, score
        .bed        chromosome, start, end, signal, 0..1000, strand, score
        .bw         bigWig, needs pybigtools: pip install 'dotadd[genomics]'

    An interval is the two letters themselves, from 0 and without the end, on the
    forward strand. Both strands are in one file: no two candidates share a letter.
    Text may end in .gz. The fifth column of .bed is 500 + 250 score, between 0 and
    1000, so that 500 is where the model changes its mind.

    On a cluster, OUTPUT is a folder: for each FASTA file a Parquet file with the
    columns chromosome, strand, start, end and score, part-00000.parquet and so on.

    Examples:

        dotadd scan chr19.fa.xz --model acceptor.dotadd --signal acceptor
            -o scores.bedgraph
        dotadd scan chr*.fa.gz --model acceptor.dotadd --signal acceptor
            --threshold 1 -o calls.bed.gz
        dotadd scan "chr*.fa.gz" --model acceptor.dotadd --signal acceptor
            -o scores --workers 4

    Parameters
    ----------
    fasta
        The genome, one file or several; .gz, .bz2 and .xz are read directly.
    model
        The model, trained on windows of one length; its windows are cut.
    signal
        The sites to look for.
    output
        The track to write, on a cluster the folder.
    threshold
        Write only scores above this; by default 0 for .bed, and all scores otherwise.
    strand
        Write only this strand.
    before
        Letters of a window before the two of the signal, as in training; by default 59 of 141 for acceptors, 80 of 141
        for donors.
    jobs
        Threads; all cores by default.
    """
    from dotadd.genome.scan import scan as scan_genome
    from dotadd.genome.scan import track_format
    from dotadd.model.linear import load

    if not fasta:
        raise DotaddError("give a FASTA file to scan")
    if not cluster.wanted:
        track_format(output)
        require_writable(output)
    loaded = load(model)
    wanted: Record = {"signal": signal, "before": before, "threshold": threshold, "strand": strand}
    with cluster.client(jobs) as client, Bar("scanning") as bar:
        started = time.perf_counter()
        if client is None:
            done = scan_genome(loaded, fasta, output, **wanted, n_jobs=jobs, on_progress=bar)
        else:
            from dotadd.cluster.predicting import scan as scan_parts

            threads = cluster.threads(jobs)
            done = scan_parts(client, loaded, list(fasta), output, **wanted, n_jobs=threads, on_progress=bar)
    seconds = time.perf_counter() - started
    dropped = done.counts.dropped
    facts(
        {
            "positions": f"{done.positions:,} scored, {done.positions / seconds:,.0f} a second",
            "dropped": f"{dropped.unknown:,} with a letter other than ACGT, {dropped.off_end:,} over the end",
            "written": f"{done.written:,} to {output}",
            "time": duration(seconds),
        }
    )
