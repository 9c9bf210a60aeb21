"""dotadd predict: a label and a score for each row."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, TextIO

from cyclopts import Parameter

from dotadd.cli.cluster import Cluster, partitions
from dotadd.cli.reading import Reading, tell_skipped

if TYPE_CHECKING:
    from dotadd.model_file import Classifier
    from dotadd.sources.base import Source


def predict(
    model: str,
    /,
    *data: str,
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None,
    scores: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    jobs: int | None = None,
    cluster: Cluster = Cluster(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Write the label and the score of each row.

    A line a row: the label, a tab, the score, or for several classes a score for
    each. With two classes a positive score means the second of them. Data is read
    and written piece by piece.

    On a cluster, OUTPUT is a folder: for each file of data a Parquet file with the
    columns label and score, part-00000.parquet and so on, written where it is read.

    Examples:

        dotadd predict a9a.dotadd a9a.t | head
        dotadd predict a9a.dotadd a9a.t --scores -o scores.txt
        dotadd predict sites.dotadd part-*.fasta.gz -o sites.tsv
        dotadd predict all.dotadd "part-*.parquet" -o scores --scheduler tcp://10.0.0.1:8786

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
    from dotadd.atomic import replacing, require_writable
    from dotadd.errors import DotaddError
    from dotadd.model import load

    if not data:
        raise DotaddError("give a data file to predict")
    if cluster.wanted:
        predict_parts(load(model), data, output, scores, jobs, cluster, reading)
        return
    if output is not None:
        require_writable(output)
    loaded, source = load(model), reading.open(list(data))
    with ExitStack() as stack:
        file: TextIO = sys.stdout
        if output is not None:
            file = stack.enter_context(open(stack.enter_context(replacing(output)), "w", encoding="utf-8"))
        write_predictions(loaded, source, file, labels=not scores, jobs=jobs)
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
    from dotadd.cli.bar import Bar
    from dotadd.errors import DotaddError
    from dotadd.partitioned import predict

    if output is None or scores:
        raise DotaddError("on a cluster, labels and scores are written to a folder: give --output, and no --scores")
    files = partitions(data, reading)
    with cluster.client(jobs) as client, Bar("predicting") as bar:
        assert client is not None
        done = predict(client, model, files, output, on_progress=bar)
    tell_skipped(files)
    sys.stderr.write(f"dotadd: {sum(done.rows):,} rows in {len(done.paths)} files in {output}\n")


def write_predictions(model: Classifier, source: Source, file: TextIO, *, labels: bool, jobs: int | None) -> None:
    """The lines of `predict`, a chunk at a time."""
    from dotadd.cli.screen import label_text

    texts = [label_text(label) for label in model.classes.tolist()]
    for _, score in model.decision_chunks(source, n_jobs=jobs):
        if score.ndim == 1:
            columns = [f"{value:.9g}" for value in score.tolist()]
        else:
            columns = ["\t".join(f"{value:.9g}" for value in row) for row in score.tolist()]
        if labels:
            winners = model.winners(score).tolist()
            columns = [f"{texts[best]}\t{line}" for best, line in zip(winners, columns, strict=True)]
        file.write("".join(f"{line}\n" for line in columns))
