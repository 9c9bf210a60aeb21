"""dotadd predict, evaluate and scan: what a model says of rows, how often it is right, what it says of a genome."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dotadd._util.atomic import replacing, require_writable
from dotadd.cli.large import Cluster, partitions
from dotadd.cli.measures import Measured, show_measures
from dotadd.cli.measures import as_json as measures_json
from dotadd.cli.options import Flag, Reading, Real, Whole, tell_skipped
from dotadd.cli.progress import Bar
from dotadd.cli.screen import Json, duration, facts, tell, write_json
from dotadd.errors import DataError, DotaddError

if TYPE_CHECKING:
    from dotadd.cluster.partitions import Partitions
    from dotadd.model.file import Classifier, Record
    from dotadd.sources.base import Source


def predict(
    model: str,
    /,
    *data: str,
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None,
    id: Annotated[list[str] | None, Parameter(negative="")] = None,
    scores: Flag = False,
    probability: Flag = False,
    jobs: Whole | None = None,
    cluster: Cluster = Cluster(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Write the label and the score of each row.

    A line a row: the label, a tab, the score, or for several classes a score for
    each. With two classes a score above 0, or above the model's threshold, means
    the second of them. Columns that --id names stand before these, and for the
    files of a folder their paths. Tabs and the like in text are written as \\t,
    \\n, \\x1b, and a backslash as \\\\. Data is read and written piece by piece.

    Where rows may have several labels, those with a score above 0 are written, with
    the separator of the training data between them; as lists in .jsonl, .parquet
    and .arrow.

    The name of OUTPUT tells the format: .csv (with quotes where they are needed),
    .tsv, .jsonl, .parquet and .arrow have names for the columns; .txt and names
    without an ending have lines like those on the screen. Text may also end in
    .gz, .bz2 or .xz.

    Data is read as that which the model was trained on: options for reading are
    needed only where it is written otherwise. - is standard input, of which text,
    CSV, TSV, JSON lines and LIBSVM are answered as lines come.

    On a cluster, OUTPUT is a folder: for each file of data a Parquet file with the
    columns label and score, part-00000.parquet and so on, written where it is read.

    Examples:

        dotadd predict a9a.dotadd a9a.t | head
        dotadd predict a9a.dotadd a9a.t --scores -o scores.txt
        dotadd predict sites.dotadd part-*.fasta.gz -o sites.tsv.gz
        dotadd predict sure.dotadd a9a.t --probability -o sure.csv
        dotadd predict spam.dotadd mails.csv --id sender --id date -o spam.parquet
        dotadd predict news.dotadd inbox/ -o news.csv
        tail -f mail.log | dotadd predict spam.dotadd - --format txt
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
    id
        A column of the data to carry along, as often as there are such columns; of FASTA it is "name", of a folder
        "path". One that is called like a column of predictions is written as data_label.
    scores
        Scores alone, without labels.
    probability
        Probabilities after the scores: that of the second of two classes, or one for each. The model has them by the
        logistic loss, or by dotadd calibrate.
    jobs
        Threads; all cores by default.
    """
    from dotadd.cli.arriving import sources
    from dotadd.model.linear import load
    from dotadd.model.predictions import PlainText, chances, format_of, predictions
    from dotadd.sources.base import Skipped, Source
    from dotadd.sources.files import NoExamplesError, no_examples

    if not data:
        raise DotaddError("give a data file to predict")
    if cluster.wanted:
        predict_parts(load(model), data, output, id or [], scores, probability, jobs, cluster, reading)
        return
    if output is not None:
        format_of(output)
        require_writable(output)
    loaded, skipped, empty = load(model), Skipped(), True
    require_several(loaded, reading)
    if probability:
        chances(loaded)
    written = (
        nullcontext(PlainText(loaded, sys.stdout, labels=not scores, probability=probability))
        if output is None
        else predictions(output, loaded, labels=not scores, probability=probability)
    )
    with written as file:
        for source in sources(data, reading, loaded, id or ()):
            try:
                for chunk, score in loaded.decision_chunks(source, n_jobs=jobs):
                    file.write(score, None if scores and not id else chunk.ids)
                    empty = False
            except NoExamplesError:  # a piece of standard input may have none
                pass
            if output is None:
                sys.stdout.flush()
            skipped.merge(source.skipped)
        if empty:
            raise no_examples(source)
    tell_skipped(Source(skipped=skipped))


def require_several(model: Classifier, reading: Reading) -> None:
    """Refuse a separator of labels where the model knows of one label a row."""
    if reading.separator is not None and model.several is None:
        raise DotaddError("--separator is for several labels a row, and the model was trained on one each")


def predict_parts(
    model: Classifier,
    data: Sequence[str],
    output: str | None,
    ids: Sequence[str],
    scores: bool,
    probability: bool,
    jobs: int | None,
    cluster: Cluster,
    reading: Reading,
) -> None:
    """The same on a cluster."""
    from dotadd.cluster.predicting import predict

    if output is None or scores:
        raise DotaddError("on a cluster, labels and scores are written to a folder: give --output, and no --scores")
    files = partitions(data, reading, model.read_as, ids)
    with cluster.client(jobs) as client, Bar("predicting") as bar:
        assert client is not None
        threads = cluster.threads(jobs)
        done = predict(client, model, files, output, probability=probability, n_jobs=threads, on_progress=bar)
    tell_skipped(files)
    tell(f"{sum(done.rows):,} rows in {len(done.paths)} files in {output}")


def evaluate(
    model: str,
    /,
    *data: str,
    log: str | None = None,
    jobs: Whole | None = None,
    as_json: Json = False,
    cluster: Cluster = Cluster(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Measure a model on labelled data.

    Shows accuracy, F1, Matthews' coefficient, auROC, auPRC, the confusion matrix and
    the speed; log loss, Brier score and calibration error where the model has
    probabilities; and what threshold 0 would do where it has another one. In
    brackets are the bounds that hold 95 of 100 times for other rows of this kind.
    Areas and F1 are those of the second class against the first; with several
    classes, of each against the rest. Where rows have weights (--weight), they
    count by these. Of several labels a row: micro and macro F1, the share of rows
    all of whose labels are right, Hamming loss, and a line for each label.

    Examples:

        dotadd evaluate a9a.dotadd a9a.t
        dotadd evaluate spam.dotadd mails.csv --log measures.json
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
    require_several(loaded, reading)
    source: Source | Partitions
    if cluster.wanted:
        source = partitions(data, reading, loaded.read_as)
        measured = measure_parts(loaded, source, jobs, cluster)
    else:
        source = reading.open(data, read_as=loaded.read_as)
        measured = measure(loaded, source, jobs)
    tell_skipped(source)
    record = {"model": model, "data": list(data), **measures_json(loaded, measured)}
    if log is not None:
        with replacing(log) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if as_json:
        write_json(record)
    else:
        show_measures(loaded, measured)


def measure(model: Classifier, source: Source, jobs: int | None) -> Measured:
    """Score all rows of a source and compare with its labels. A chunk of them is in memory, and all scores while they
    take little."""
    started = time.perf_counter()
    found = model.evaluated(source, n_jobs=jobs)
    seconds = time.perf_counter() - started
    if not found.rows:
        raise DataError("has no rows that can be used", source.name)
    return Measured(found.finish(), seconds)


def measure_parts(model: Classifier, data: Partitions, jobs: int | None, cluster: Cluster) -> Measured:
    """The same on a cluster, where each file is."""
    from dotadd.cluster.predicting import evaluate

    with cluster.client(jobs) as client, Bar("evaluating") as bar:
        assert client is not None
        started = time.perf_counter()
        found = evaluate(client, model, data, n_jobs=cluster.threads(jobs), on_progress=bar)
        return Measured(found, time.perf_counter() - started)


def scan(
    *fasta: str,
    model: str,
    signal: Literal["acceptor", "donor"],
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    threshold: Real | None = None,
    strand: Literal["both", "+", "-"] = "both",
    before: Whole | None = None,
    every: Flag = False,
    jobs: Whole | None = None,
    as_json: Json = False,
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
    With --every, all positions are scored, and an interval is one letter; .bedgraph
    and .bw then need --strand. Text may end in .gz. The fifth column of .bed is 500 + 250 score, between 0 and
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
    every
        Score every position, and not only where the two letters of the signal stand.
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
    wanted: Record = {"signal": signal, "before": before, "every": every, "threshold": threshold, "strand": strand}
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
    if as_json:
        counts = {"positions": done.positions, "dropped": asdict(dropped), "written": done.written}
        write_json(counts | {"file": output, "seconds": seconds})
        return
    facts(
        {
            "positions": f"{done.positions:,} scored, {done.positions / seconds:,.0f} a second",
            "dropped": f"{dropped.unknown:,} with a letter other than ACGT, {dropped.off_end:,} over the end",
            "written": f"{done.written:,} to {output}",
            "time": duration(seconds),
        }
    )
