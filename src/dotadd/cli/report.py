"""dotadd report: a page about a model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd.cli.options import Count, Reading, Whole, tell_skipped
from dotadd.cli.predict import require_several
from dotadd.cli.screen import facts
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dotadd.cli.measures import Measured
    from dotadd.estimators.protocol import Estimator
    from dotadd.model.file import Classifier
    from dotadd.report.study import Study
    from dotadd.sources.base import Source

HOW_TO_KNOW = "Not measured: {} tells how good the predictions are on rows that training has not seen."


def report(
    model: str,
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    data: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    largest: Whole = 20,
    wrong: Annotated[Count, Parameter(show_default=True)] = 8,
    jobs: Whole | None = None,
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Write a page about a model, to be looked at in a browser.

    What was trained and how good the answer is proved to be, how C was chosen, the
    strongest features by class and, of sequences of one length, which k-mers matter
    where. With --data also how good the predictions are: precision-recall and ROC
    curves with the threshold, calibration where there are probabilities, the
    confusion matrix, and the rows that the model is most wrong about, explained.

    The page is one HTML file that needs nothing else, without scripts; it is meant
    for phones, paper and dark rooms too. dotadd train --report writes it at once,
    with the way of training.

    Examples:

        dotadd report a9a.dotadd --data a9a.t -o a9a.html
        dotadd report spam.dotadd --data mails.csv -o spam.html

    Parameters
    ----------
    model
        The model file.
    output
        The page to write.
    data
        Files with labels, as for training, which the model has not seen.
    largest
        How many of the largest weights to list, for each class; 0 for none.
    wrong
        Show so many of the rows that the model is most wrong about.
    jobs
        Threads; all cores by default.
    """
    from dotadd.model.linear import load
    from dotadd.report.page import Subject, require_told, write_report
    from dotadd.report.study import studied

    require_page(output)
    if largest < 0:
        raise DotaddError(f"--largest {largest}: give a number of weights, or 0 for none")
    if not data and reading != Reading():
        raise DotaddError("how to read data means nothing without --data")
    loaded, name = load(model), os.path.basename(model)
    source = study = None
    if data:
        require_several(loaded, reading)
        source = reading.open(data, read_as=loaded.read_as)
        study = studied(loaded, source, ", ".join(map(os.path.basename, data)), most=wrong, n_jobs=jobs)
        tell_skipped(source)
    subject = Subject(loaded, name, study=study, missing=HOW_TO_KNOW.format("--data FILE"), source=source)
    require_told(subject)
    write_report(subject, output, largest=largest, n_jobs=jobs)
    facts({"written": output})


def require_page(path: str) -> None:
    """Refuse a page that could not be written, before the work begins."""
    if not path.lower().endswith((".html", ".htm")):
        raise DotaddError(f"{path}: a report is written as .html")
    require_writable(path)


def studied(model: Classifier, held_out: Source, where: str, jobs: int | None) -> tuple[Study, Measured]:
    """Measure a model on rows that it has not seen, for a page and for the screen."""
    from dotadd.cli.measures import Measured
    from dotadd.report.study import studied

    study = studied(model, held_out, os.path.basename(where), n_jobs=jobs)
    return study, Measured(study.evaluation, study.seconds)


def report_training(
    path: str,
    svm: Estimator,
    saved: str,
    files: Sequence[str],
    source: Source | None,
    study: Study | None,
    jobs: int | None,
    *,
    quiet: bool,
) -> None:
    """The page of a model that was just trained, measured on rows that were held out, if there are any."""
    from dotadd._util.memory import peak, words
    from dotadd.report.page import Subject, write_report
    from dotadd.report.study import held_out

    scores = getattr(svm, "held_out_scores_", None)
    if study is None and source is not None and scores is not None:
        where = "rows that were held out of training, each scored by a machine that had not seen it"
        study = held_out(svm.model_, source, scores, where)
    most, results = peak(), svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    subject = Subject(
        svm.model_, os.path.basename(saved), list(map(os.path.basename, files)), results, study,
        HOW_TO_KNOW.format("--test FILE or --cv"), source, None if most is None else words(most),
    )  # fmt: skip
    write_report(subject, path, n_jobs=jobs)
    if not quiet:
        facts({"report": path})
