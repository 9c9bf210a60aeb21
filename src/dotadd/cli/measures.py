"""How measures look: on screen, with a table of counts, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dotadd.cli.screen import duration, facts, label_text, number, show_table

if TYPE_CHECKING:
    import numpy as np

    from dotadd.model.evaluation import Evaluation
    from dotadd.model.file import Classifier, Record
    from dotadd.model.several_labels import LabelEvaluation

MOST_CLASSES = 30  # that the table of counts is for; --log has all counts
SECOND = ("auroc", "auprc", "precision", "recall", "f1")  # numbers of the second of two classes, lists of several


class Measured(NamedTuple):
    """An evaluation, and how long reading and scoring took."""

    evaluation: Evaluation | LabelEvaluation
    seconds: float


def as_json(model: Classifier, measured: Measured) -> Record:
    """The measures as plain data; what does not exist, for want of a class or of probabilities, is null."""
    from dotadd.model.evaluation import Evaluation
    from dotadd.model.file import jsonable

    found = measured.evaluation
    record = found._asdict() | {"seconds": measured.seconds, "classes": model.classes}
    if not isinstance(found, Evaluation):
        record["intervals"] = {"micro_f1": [found.micro_f1.low, found.micro_f1.high]}
        return jsonable(record | {"micro_f1": found.micro_f1.value})
    if len(model.classes) == 2:
        record |= {name: (getattr(found, name) or [None])[0] for name in SECOND}
    record["intervals"] = {name: [interval.low, interval.high] for name, interval in found.intervals.items()}
    record["threshold"] = None if model.threshold is None else model.threshold.to_dict()
    return jsonable(record)


def show_measures(model: Classifier, measured: Measured, title: str | None = None) -> None:
    """The measures on screen, with a table of counts."""
    from dotadd.model.evaluation import Evaluation

    found, seconds = measured
    labels = [label_text(label) for label in model.classes.tolist()]
    speed = f"{found.rows / seconds:,.0f} rows/s" if seconds else ""
    lines = {"rows": f"{found.rows:,} in {duration(seconds)}, {speed}"}
    if title:
        lines = {"measured": title, **lines}
    if not isinstance(found, Evaluation):
        facts(lines | found.told())
        rows = [
            [label, f"{count:g}", *(f"{measure[k]:.4f}" for measure in (found.precision, found.recall, found.f1))]
            for k, (label, count) in enumerate(zip(labels, found.support, strict=True))
        ]
        show_table(["label", "rows", "precision", "recall", "F1"], rows)
        return
    if found.confusion.dtype.kind == "f":
        lines["weight"] = f"{_amount(found.confusion.sum())}, by which rows count"
    facts(lines | _measures(model, found))
    if len(labels) > MOST_CLASSES:
        show_table(*_each_class(labels, found), words=(0, 3))
        return
    each = [("F1", found.f1), ("auROC", found.auroc), ("auPRC", found.auprc)] if len(found.auroc) > 1 else []
    rows = [
        [label, *(_amount(count) for count in found.confusion[k]), *(f"{measure[k]:.4f}" for _, measure in each)]
        for k, label in enumerate(labels)
    ]
    show_table(["true \\ predicted", *labels, *(name for name, _ in each)], rows)


def _measures(model: Classifier, found: Evaluation) -> dict[str, str]:
    """A line for each kind of measure."""

    def told(name: str) -> str:
        if name in found.intervals:
            return str(found.intervals[name])
        value = getattr(found, name)
        return f"{value[0] if isinstance(value, list) else value:.4f}"

    lines = {"accuracy": f"{told('accuracy')}, balanced {told('balanced_accuracy')}"}
    if len(model.classes) == 2:
        lines["F1"] = f"{told('f1')}, precision {told('precision')}, recall {told('recall')}"
    lines["macro F1"] = f"{told('macro_f1')}, micro {told('micro_f1')}"
    lines["Matthews"] = told("matthews")
    if len(found.auroc) == 1:
        lines |= {"auROC": told("auroc"), "auPRC": told("auprc")}
    if found.log_loss is not None:
        losses = f"{told('log_loss')}, Brier {told('brier')}, calibration error {told('calibration_error')}"
        lines["log loss"] = losses
    if model.threshold is not None:
        lines["threshold"] = str(model.threshold)
        lines["at 0"] = _at_zero(found.confusion if found.at_zero is None else found.at_zero)
    return lines


def _at_zero(confusion: np.ndarray) -> str:
    """What threshold 0 would do, of which these are the counts."""
    from dotadd.model.confusion import of_each

    right, total = confusion.trace(), confusion.sum()
    each = ", ".join(f"{name.replace('f1', 'F1')} {values[1]:.4f}" for name, values in of_each(confusion).items())
    return f"accuracy {right / total if total else float('nan'):.4f}, {each}"


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
        measures = (f"{measure[k]:.4f}" for measure in (found.f1, found.auroc, found.auprc))
        rows.append([label, *counts, *taken, *measures])
    return ["class", "rows", "right", "most often taken for", "times", "F1", "auROC", "auPRC"], rows
