"""dotadd scan: the score of every candidate site of a genome, as a track for genome browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dotadd.cli.large import Cluster
from dotadd.cli.options import Real, Whole

if TYPE_CHECKING:
    from dotadd.model.file import Record


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
    import time

    from dotadd._util.atomic import require_writable
    from dotadd.cli.progress import Bar
    from dotadd.cli.screen import duration, facts
    from dotadd.errors import DotaddError
    from dotadd.genome.scan import scan as scan_genome
    from dotadd.genome.scan import track_format
    from dotadd.model.linear import load

    if not fasta:
        raise DotaddError("give a FASTA file to scan")
    if not cluster.wanted:
        track_format(output)
        require_writable(output)
    loaded = load(model)
    wanted: Record = {
        "signal": signal,
        "before": before,
        "threshold": threshold,
        "strand": strand,
    }
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
