"""How good a model is on some rows, as a part of a page: measures, curves, counts, and a line for each class."""

from __future__ import annotations

import numpy as np

from dotadd._util.wording import duration, number
from dotadd.model.evaluation import Evaluation
from dotadd.model.file import Classifier
from dotadd.model.plots import (
    calibration_picture,
    confusion_picture,
    label_names,
    precision_recall_picture,
    roc_picture,
)
from dotadd.model.several_labels import LabelEvaluation
from dotadd.pictures.picture import MOST_LINES
from dotadd.report.drawing import definitions, paragraphs, table
from dotadd.report.study import Study

NAMES = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auroc": "auROC", "auprc": "auPRC",
    "precision": "precision", "recall": "recall", "f1": "F1", "macro_f1": "macro F1",
    "matthews": "Matthews' coefficient", "log_loss": "log loss", "brier": "Brier score",
    "calibration_error": "calibration error",
}  # fmt: skip
MOST_CLASSES = 200  # lines of a table


def measures_section(model: Classifier, study: Study) -> str:
    """Everything that was measured."""
    found, pictures = study.evaluation, []
    if any(len(one.score) for one in study.rankings):
        pictures += [roc_picture(model, study.rankings), precision_recall_picture(model, study.rankings)]
    if study.reliability is not None:
        pictures.append(calibration_picture(model, study.reliability))
    if isinstance(found, Evaluation):
        pictures.append(confusion_picture(model, found.confusion))
    drawn = "\n".join(f"<figure>{picture.svg}</figure>" for picture in pictures)
    speed = f"{found.rows:,} in {duration(study.seconds)}"
    facts = _measures(model, found) if isinstance(found, Evaluation) else found.told()
    each = _each_class(model, found) if isinstance(found, Evaluation) else _each_label(model, found)
    told = [
        definitions({"measured on": study.where, "rows": speed} | facts),
        f'<div class="pictures">\n{drawn}\n</div>',
        paragraphs(_remarks(model, study)),
        each,
    ]
    return "\n".join(told)


def _measures(model: Classifier, found: Evaluation) -> dict[str, str]:
    """Measures with bounds that hold 95 of 100 times. Measures of single classes are shown for the second of two."""
    facts = {}
    for name, told in NAMES.items():
        value = getattr(found, name)
        if isinstance(value, list):
            if not model.two or not value:
                continue
            value = value[0]
        if value is not None:
            facts[told] = str(found.intervals.get(name, f"{value:.4f}"))
    return facts


def _remarks(model: Classifier, study: Study) -> list[str]:
    """What has to be known to read the pictures."""
    names = label_names(model)
    if model.several is not None:
        return ["The curves take all pairs of a row and a label together; the ring is where labels are given, score 0."]
    if not model.two:
        few = f", of the {MOST_LINES} with most rows" if len(names) > MOST_LINES else ""
        return [f"The curves are those of each class against the rest{few}; the class with the largest score is taken."]
    cut = 0.0 if model.threshold is None else model.threshold.value
    said = [
        f"The curves are those of class {names[1]}; the ring is the threshold: scores above {number(cut)} are of it."
    ]
    if isinstance(study.evaluation, Evaluation) and study.evaluation.intervals:
        said.append("In brackets are the bounds that hold 95 of 100 times for other rows of this kind.")
    if study.reliability is not None:
        said.append("Calibration: on the diagonal, what was said to be probable came true as often as was said.")
    return said


def _each_class(model: Classifier, found: Evaluation) -> str:
    """A line for each of several classes, of many only for those with the most rows."""
    if model.two:
        return ""
    names, totals = label_names(model), found.confusion.sum(axis=1)
    wrong = found.confusion - np.diag(np.diag(found.confusion))
    rows = []
    for k in _largest(totals):
        other = int(wrong[k].argmax())
        taken = f"{names[other]} ({wrong[k, other]:,.6g} times)" if wrong[k, other] else ""
        measured = (found.precision, found.recall, found.f1, found.auroc, found.auprc)
        rows.append([names[k], f"{totals[k]:,.6g}", *(_short(one[k]) for one in measured if one), taken])
    areas = ["auROC", "auPRC"] if found.auroc else []
    headings = ["class", "rows", "precision", "recall", "F1", *areas, "most often taken for"]
    return table(headings, rows, words=(0, len(headings) - 1))


def _each_label(model: Classifier, found: LabelEvaluation) -> str:
    names = label_names(model)
    rows = [
        [names[k], f"{found.support[k]:,.6g}", *(_short(one[k]) for one in (found.precision, found.recall, found.f1))]
        for k in _largest(np.array(found.support))
    ]
    return table(["label", "rows", "precision", "recall", "F1"], rows, words=(0,))


def _largest(totals: np.ndarray) -> list[int]:
    return sorted(np.argsort(-totals, kind="stable")[:MOST_CLASSES].tolist())


def _short(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"
