"""A page about a model: what was trained, how good it is, what it has learned, and where it is wrong.

It is HTML that needs nothing but itself, without a script; readable on a phone, in the dark and on paper. Labels, rows
and names, which users bring, are escaped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dotadd._util.atomic import replacing
from dotadd._util.wording import number
from dotadd.errors import ModelError
from dotadd.kernel_svm.problem import KernelResult
from dotadd.model.evaluation import Evaluation
from dotadd.model.linear import Model
from dotadd.model.plots import convergence_picture
from dotadd.report.drawing import page, text
from dotadd.report.measures import measures_section
from dotadd.report.mistakes import mistakes_section
from dotadd.report.record import choice_section, gap_sentence, time_section, trained_section
from dotadd.report.strongest import LARGEST, importance_section, strongest_section
from dotadd.report.study import Study
from dotadd.solvers.result import Result
from dotadd.sources.around import by_name

if TYPE_CHECKING:
    from dotadd.model.kernel import KernelModel
    from dotadd.sources.base import Source

STYLE = """
body { overflow-wrap: break-word }
section { margin: 0 0 2.2em }
h3 { font-size: 1em; margin: 1.2em 0 .3em; overflow-wrap: anywhere }
.lead { font-size: 1.1em }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21em), 1fr)); gap: 1.2em;
  margin: 1.2em 0 }
.pictures figure { margin: 0; min-width: 0 }
.pictures svg { width: auto; min-width: 0; max-width: 100% }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19em), 1fr)); gap: 0 2em }
.columns > div { min-width: 0 }
.columns td { overflow-wrap: anywhere }
.long svg { width: auto; min-width: 0; max-width: none }
.bar { display: inline-block; height: .7em; border-radius: 2px }
@media (max-width: 36em) { body { margin: 1em auto; padding: 0 .8em } dl { grid-template-columns: 1fr; gap: 0 }
  dd { margin: 0 0 .5em } }
@media print { body { max-width: none; margin: 0; font-size: 11px } figure, tr { break-inside: avoid }
  .wide, .long { overflow: visible } .long svg { max-width: 100% } .dotadd-explained .text { max-height: none } }
"""


@dataclass(frozen=True)
class Subject:
    """What a page is about: a model and its name, the files it was trained on and what solvers told meanwhile, where
    these are known; how good it is on some rows, or `missing`, a sentence that says how to know; a source that names
    features; and what memory it took."""

    model: Model | KernelModel
    name: str
    files: Sequence[str] = ()
    results: Sequence[Result] | Sequence[KernelResult] | None = None
    study: Study | None = None
    missing: str = ""
    source: Source | None = None
    peak: str | None = None


def require_told(subject: Subject) -> None:
    """Refuse a model that a page could say nothing about."""
    if not subject.model.training and subject.study is None:
        raise ModelError(f"{subject.name}: the model has no record of its training; give --data to measure it on")


def write_report(
    subject: Subject, path: str | os.PathLike[str], *, largest: int = LARGEST, n_jobs: int | None = None
) -> None:
    """Write the page; it appears whole or not at all."""
    require_told(subject)
    written = report_page(subject, largest=largest, n_jobs=n_jobs)
    with replacing(path) as temporary:
        temporary.write_text(written, encoding="utf-8")


def report_page(subject: Subject, *, largest: int = LARGEST, n_jobs: int | None = None) -> str:
    """The page."""
    model, training, study = subject.model, subject.model.training, subject.study
    convergence = ""
    if subject.results is not None:
        drawn = convergence_picture(model, subject.results, float(training.get("tol") or "nan"))
        convergence = "" if drawn is None else f'<div class="pictures"><figure>{drawn.svg}</figure></div>'
    sections = {
        "What was trained": trained_section(model, subject.files),
        "How C was chosen": choice_section(training),
        "How good the answer is": f"<p>{text(gap_sentence(training))}</p>\n{_objectives(training)}{convergence}",
        "How good the predictions are": f"<p>{text(subject.missing)}</p>" if subject.missing else "",
    }
    if study is not None:
        sections["How good the predictions are"] = measures_section(model, study)
    if isinstance(model, Model) and largest:
        source, like = subject.source, model.like(labels=True)
        source = by_name(source, like) if source is not None and like is not None else source
        sections["The strongest features"] = strongest_section(model, source, largest)
        sections["What matters where"] = importance_section(model, source, n_jobs)
    if study is not None:
        said = "<p>No row is taken for something else.</p>"
        worst = mistakes_section(model, study.worst) if study.worst else said
        sections["The rows it is most wrong about"] = worst
    sections["Time and memory"] = time_section(training, subject.peak)
    body = "\n".join(
        f"<section>\n<h2>{text(title)}</h2>\n{inside}\n</section>" for title, inside in sections.items() if inside
    )
    return page(text(f"Report on {subject.name}"), f'<p class="lead">{text(_lead(subject))}</p>\n{body}', STYLE)


def _lead(subject: Subject) -> str:
    """The page in a line."""
    model, study = subject.model, subject.study
    kind = "linear machine" if isinstance(model, Model) else "kernel machine"
    what = f"{len(model.classes):,} {'classes' if model.several is None else 'labels, several a row'}"
    rows = f", trained on {model.training['rows']:,} rows" if "rows" in model.training else ""
    line = f"A {kind} for {what}{rows}."
    if study is None:
        return line
    found = study.evaluation
    if isinstance(found, Evaluation):
        return f"{line} On {study.where} it is right in {100 * found.accuracy:.4g} % of {found.rows:,} rows."
    return f"{line} On {study.where} its micro F1 is {found.micro_f1.value:.4f}."


def _objectives(training: dict[str, object]) -> str:
    """Primal and dual, where there is one binary problem."""
    primal, dual = (training.get(name) for name in ("primal", "dual"))
    if not (isinstance(primal, list) and isinstance(dual, list) and len(primal) == len(dual) == 1):
        return ""
    (high,), (low,) = primal, dual
    if not isinstance(high, float) or not isinstance(low, float):
        return ""
    told = f"The objective reached is {number(high)}; no weights have one below {number(low)}."
    return f"<p>{text(told)}</p>\n"
