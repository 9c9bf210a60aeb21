"""dotadd predict: a label and a score for each row."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dotadd.cli.large import Cluster, partitions
from dotadd.cli.options import Reading, Whole, tell_skipped
from dotadd.cli.screen import tell

if TYPE_CHECKING:
    from dotadd.model.file import Classifier


def predict(
    model: str,
    /,
    *data: str,
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None,
    scores: Annotated[bool, Parameter(negative="", show_default=False)] = False,
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
    from dotadd._util.atomic import require_writable
    from dotadd.errors import DotaddError
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
    from dotadd.cli.progress import Bar
    from dotadd.cluster.predicting import predict
    from dotadd.errors import DotaddError

    if output is None or scores:
        raise DotaddError("on a cluster, labels and scores are written to a folder: give --output, and no --scores")
    files = partitions(data, reading)
    with cluster.client(jobs) as client, Bar("predicting") as bar:
        assert client is not None
        done = predict(client, model, files, output, n_jobs=cluster.threads(jobs), on_progress=bar)
    tell_skipped(files)
    tell(f"{sum(done.rows):,} rows in {len(done.paths)} files in {output}")
