"""dotadd evaluate: how well a model does on labelled data."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, NamedTuple

from dotadd.cli.large import Cluster, partitions
from dotadd.cli.options import Reading, Whole, tell_skipped

if TYPE_CHECKING:
    from dotadd.cluster.partitions import Partitions
    from dotadd.model.evaluation import Evaluation
    from dotadd.model.file import Classifier, Record
    from dotadd.sources.base import Source

MOST_CLASSES = 30  # that the table of counts is for; --log has all counts


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
    from dotadd._util.atomic import replacing, require_writable
    from dotadd.errors import DotaddError
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
    from dotadd.errors import DataError

    started = time.perf_counter()
    found = model.evaluated(source, n_jobs=jobs)
    if not found.rows:
        raise DataError("has no rows that can be used", source.name)
    return Measured(found.finish(), time.perf_counter() - started)


def measure_parts(model: Classifier, data: Partitions, jobs: int | None, cluster: Cluster) -> Measured:
    """The same on a cluster, where each file is."""
    from dotadd.cli.progress import Bar
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
    from dotadd.cli.screen import duration, facts, label_text, show_table

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
    from dotadd.cli.screen import number

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
