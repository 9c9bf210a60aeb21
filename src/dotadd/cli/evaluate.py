"""dotadd evaluate: how well a model does on labelled data."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from dotadd.cli.cluster import Cluster, partitions
from dotadd.cli.numbers import Whole
from dotadd.cli.reading import Reading, tell_skipped

if TYPE_CHECKING:
    from dotadd.distributed.partitions import Partitions
    from dotadd.metrics import Evaluation
    from dotadd.model_file import Classifier
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
    against the rest.

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
    from dotadd.atomic import replacing, require_writable
    from dotadd.errors import DotaddError
    from dotadd.model import load

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
    import numpy as np

    from dotadd import metrics
    from dotadd.cli.screen import label_text
    from dotadd.errors import DataError
    from dotadd.ranking import Ranked

    started = time.perf_counter()
    classes = model.classes
    positive = classes[1:] if len(classes) == 2 else classes
    ranked, counts = Ranked(), np.zeros((len(classes), len(classes)), np.int64)
    for chunk, score in model.decision_chunks(source, n_jobs=jobs, labels=True):
        if chunk.y is None:
            raise DataError("there are no labels to compare with; name their column with --label", chunk.path)
        strange = np.flatnonzero(~np.isin(chunk.y, model.classes))
        if len(strange):
            known = ", ".join(label_text(label) for label in model.classes.tolist())
            found = label_text(np.asarray(chunk.y)[strange[0]].item())
            raise chunk.error(int(strange[0]), f"label {found} is none of the model's classes ({known})")
        counts += metrics.confusion(chunk.y, classes[model.winners(score)], classes)
        columns = [score] if len(classes) == 2 else list(score.T)
        ranked.add([chunk.y == label for label in positive], columns)
    rows = int(counts.sum())
    if not rows:
        raise DataError("has no rows that can be used", source.name)
    areas = [(ranking.auroc(), ranking.auprc()) for ranking in ranked.rankings()]
    auroc, auprc = (list(some) for some in zip(*areas, strict=True))
    evaluation = metrics.Evaluation(rows, float(np.trace(counts) / rows), auroc, auprc, counts)
    return Measured(evaluation, time.perf_counter() - started)


def measure_parts(model: Classifier, data: Partitions, jobs: int | None, cluster: Cluster) -> Measured:
    """The same on a cluster, where each file is."""
    from dotadd.cli.bar import Bar
    from dotadd.partitioned import evaluate

    with cluster.client(jobs) as client, Bar("evaluating") as bar:
        assert client is not None
        started = time.perf_counter()
        found = evaluate(client, model, data, on_progress=bar)
        return Measured(found, time.perf_counter() - started)


def as_json(model: Classifier, measured: Measured) -> dict[str, Any]:
    """The measures as plain data; areas that do not exist, for want of a class, are null."""
    from dotadd.model_file import jsonable

    found = measured.evaluation
    two = len(model.classes) == 2
    record = found._asdict() | {"seconds": measured.seconds, "classes": model.classes}
    return jsonable(record | {"auroc": found.auroc[0], "auprc": found.auprc[0]} if two else record)


def show_measures(model: Classifier, measured: Measured, title: str | None = None) -> None:
    """The measures on screen, with a table of counts."""
    from dotadd.cli.screen import duration, facts, label_text
    from dotadd.cli.tables import show_table

    found, seconds = measured
    labels = [label_text(label) for label in model.classes.tolist()]
    speed = f"{found.rows / seconds:,.0f} rows/s" if seconds else ""
    lines = {"rows": f"{found.rows:,} in {duration(seconds)}, {speed}"}
    if title:
        lines = {"measured": title, **lines}
    lines["accuracy"] = f"{found.accuracy:.4f}"
    if len(found.auroc) == 1:
        lines |= {"auROC": f"{found.auroc[0]:.4f}", "auPRC": f"{found.auprc[0]:.4f}"}
    facts(lines)
    if len(labels) > MOST_CLASSES:
        show_table(*_each_class(labels, found), words=(0, 3))
        return
    areas = [("auROC", found.auroc), ("auPRC", found.auprc)] if len(found.auroc) > 1 else []
    rows = [
        [label, *(f"{count:,}" for count in found.confusion[k]), *(f"{area[k]:.4f}" for _, area in areas)]
        for k, label in enumerate(labels)
    ]
    show_table(["true \\ predicted", *labels, *(name for name, _ in areas)], rows)


def _each_class(labels: list[str], found: Evaluation) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table for so many classes that nobody could read the counts of all pairs."""
    import numpy as np

    wrong = found.confusion - np.diag(np.diag(found.confusion))
    rows = []
    for k, label in enumerate(labels):
        other = int(wrong[k].argmax())
        taken = [labels[other], f"{wrong[k, other]:,}"] if wrong[k, other] else ["", ""]
        counts = [f"{found.confusion[k].sum():,}", f"{found.confusion[k, k]:,}"]
        rows.append([label, *counts, *taken, f"{found.auroc[k]:.4f}", f"{found.auprc[k]:.4f}"])
    return ["class", "rows", "right", "most often taken for", "times", "auROC", "auPRC"], rows
