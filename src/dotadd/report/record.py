"""What a model's record tells of its training: facts, how good the answer is in a sentence, and how C was chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dotadd._util.wording import duration, number
from dotadd.errors import as_written
from dotadd.model.linear import Model
from dotadd.pictures.curves import choice
from dotadd.report.drawing import definitions, paragraphs, table

if TYPE_CHECKING:
    from dotadd.model.file import Record
    from dotadd.model.kernel import KernelModel

TOLD = ("loss", "intercept", "class_weight", "virtual", "length_spread", "made_by", "updates")
RULES = {
    "best": "has the best mean over the folds",
    "one_standard_error": "is the smallest whose mean is within a standard error of the best",
}
MOST_CLASSES = 30  # that are listed


def shape_text(
    kind: str,
    n_features: int | None = None,
    length: int | None = None,
    one_length: bool | None = None,
    size: tuple[int, int] | None = None,
    columns: dict[str, object] | None = None,
) -> str:
    """What the model was trained on: sparse rows of 123 features, strings of up to 141 letters, a table's columns."""
    if columns is not None:
        return f"tables with the columns {', '.join(columns)}"
    if size is not None:
        return f"{kind} of {size[0]} x {size[1]} pixels"
    if n_features is not None:
        return f"{kind} of {n_features:,} features"
    return kind if length is None else f"{kind} of {'' if one_length else 'up to '}{length:,} letters"


def trained_section(model: Model | KernelModel, files: Sequence[str]) -> str:
    """What was trained, on what."""
    training = model.training
    inside = model.inspect(largest=0) if isinstance(model, Model) else model.inspect()
    names = [as_written(label) for label in model.classes.tolist()]
    listed = ", ".join(names[:MOST_CLASSES]) + (f" and {len(names) - MOST_CLASSES} more" * (len(names) > MOST_CLASSES))
    facts = {"data": ", ".join(files)} if files else {}
    if "rows" in training:
        facts["rows"] = f"{training['rows']:,}"
    facts |= {"examples": shape_text(**inside["shape"])}
    facts |= {"classes" if model.several is None else "labels, several a row": listed}
    if "kernel" in inside:
        vectors = ", ".join(f"{n:,} of {name}" for n, name in zip(inside["support"], names, strict=True))
        facts |= {"kernel": inside["kernel"], "support vectors": vectors}
    else:
        nonzeros = sum(inside["nonzeros"])
        facts |= {"features": inside["features"], "weights": f"{inside['dim']:,} slots, {nonzeros:,} weights not zero"}
    if "C" in training:
        facts["C"] = number(training["C"])
    facts |= {name.replace("_", " "): _fact(training[name]) for name in TOLD if training.get(name) is not None}
    if training.get("solver"):
        facts["solver"] = ": ".join(filter(None, (training["solver"], training.get("why"))))
    decisive = model.decisive()
    if decisive["probability"] is not None:
        facts["probabilities"] = str(decisive["probability"])
    if model.threshold is not None:
        facts["threshold"] = str(model.threshold)
    return definitions(facts | {name: str(value) for name, value in model.written.items()})


def gap_sentence(training: Record) -> str:
    """How good the answer is, for people."""
    tol, reason = training.get("tol"), training.get("reason")
    stopped = f" Training stopped because {reason}." if reason else ""
    gap, violation = training.get("gap"), training.get("violation")
    if gap is not None:
        share = _percent(gap)
        if tol is not None and gap <= tol:
            return (
                f"The answer is proved to be as good as was asked for: no weights at all can bring the objective more "
                f"than {share} lower on this data with this C ({_percent(tol)} was asked for)."
            )
        asked = "" if tol is None else f", and {_percent(tol)} was asked for"
        return (
            f"The answer is not as good as it could be: other weights may bring the objective up to {share} "
            f"lower{asked}.{stopped}"
        )
    if violation is not None:
        asked = "" if tol is None else f"; {number(tol)} was asked for"
        return f"No example violates the conditions of the optimum by more than {number(violation, 3)}{asked}.{stopped}"
    if reason:
        return f"How far the answer is from the best one was not measured.{stopped}"
    return "The model file does not tell how it was trained."


def choice_section(training: Record) -> str:
    """The values of C that were tried; nothing where none were."""
    told = training.get("cross_validation")
    if not isinstance(told, dict):
        return ""
    C, mean, spread, pooled, gap = (
        _column(told.get(name), len(told["C"])) for name in ("C", "mean", "std", "pooled", "gap")
    )
    chosen, scoring = float(training.get("C") or math.nan), str(told.get("scoring"))
    why = RULES.get(str(told.get("rule")), "was chosen")
    sentence = (
        f"{len(C)} values of C were tried on {told.get('folds')} folds, each machine judged by the rows that were held "
        f"out of its training ({scoring}). C = {number(chosen)} {why}."
    )
    rows = [
        [number(c) + (" (taken)" if math.isclose(c, chosen, rel_tol=1e-9) else ""), *(_short(x) for x in more)]
        for c, *more in zip(C, mean, spread, pooled, gap, strict=True)
    ]
    headings = ("C", f"mean {scoring}", "standard deviation", "all rows together", "largest gap")
    picture = choice(C, mean, spread, chosen, scoring).svg
    return f'<div class="pictures"><figure>{picture}</figure></div>\n{paragraphs([sentence])}\n{table(headings, rows)}'


def time_section(training: Record, peak: str | None) -> str:
    """Time and memory."""
    facts = {}
    seconds = training.get("seconds")
    if isinstance(seconds, dict) and seconds:
        facts["training"] = duration(sum(seconds.values()))
        facts |= {f"of that {name.replace('_', ' ')}": duration(value) for name, value in seconds.items()}
    for name in ("passes", "steps"):
        if training.get(name) is not None:
            facts[name] = f"{training[name]:,}"
    if peak is not None:
        facts["memory, at most"] = peak
    return definitions(facts) if facts else ""


def _column(values: object, length: int) -> np.ndarray:
    """Numbers of a record, in which null stands for what is not finite."""
    given = values if isinstance(values, list) else [None] * length
    return np.array([np.nan if value is None else float(value) for value in given])


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _short(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _fact(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_fact(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_fact, value))
    return number(value, 4) if isinstance(value, float) else str(value)
