"""dotadd train: data in, model file out."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from dotadd.cli.reading import Reading, tell_skipped

if TYPE_CHECKING:
    from dotadd.estimators import LinearSVM

OUTPUT = Group("Output", sort_key=1)
PROBLEM = Group("The problem", sort_key=2)
STOPPING = Group("Solving it", sort_key=3)


def train(
    *data: str,
    output: Annotated[str, Parameter(name=["--output", "-o"], group=OUTPUT)],
    features: Annotated[str | None, Parameter(group=PROBLEM)] = None,
    cost: Annotated[float, Parameter(name=["-C", "--cost"], group=PROBLEM)] = 1.0,
    loss: Annotated[Literal["hinge", "squared_hinge", "logistic"], Parameter(group=PROBLEM)] = "hinge",
    intercept: Annotated[Literal["regularized", "free", "none"], Parameter(group=PROBLEM)] = "regularized",
    class_weight: Annotated[Literal["none", "balanced"], Parameter(group=PROBLEM)] = "none",
    solver: Annotated[str, Parameter(group=STOPPING)] = "auto",
    tol: Annotated[float, Parameter(group=STOPPING)] = 1e-3,
    max_passes: Annotated[int, Parameter(group=STOPPING)] = 1000,
    max_time: Annotated[float | None, Parameter(group=STOPPING)] = None,
    seed: Annotated[int, Parameter(group=STOPPING)] = 0,
    jobs: Annotated[int | None, Parameter(group=STOPPING)] = None,
    test: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    log: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False, group=OUTPUT)] = False,
    reading: Reading = Reading(),  # noqa: B008
) -> int:
    """Train a classifier and save it.

    Ctrl-C or a time limit ends training early: the model so far is saved, and the
    gap tells how far it had come.

    Examples:

        dotadd train a9a -o a9a.dotadd
        dotadd train a9a -o a9a.dotadd -C 0.1 --loss logistic --test a9a.t
        dotadd train mails.csv --column text --label spam -o spam.dotadd \\
            --features "NGrams((3, 5))"
        dotadd train sites.fasta.gz -o sites.dotadd --class-weight balanced \\
            --features "Spectrum(8, span=(0, 59)) + WeightedDegree(20).hashed(12)"

    Parameters
    ----------
    data
        One or more files: LIBSVM, CSV, TSV, JSON lines, FASTA (plain or .gz .bz2 .xz), Arrow, Parquet.
    output
        The model file to write.
    features
        The feature map, written as in Python; the numbers themselves by default.
    cost
        C, the weight of the losses against the size of w.
    loss
        What a wrong or narrow decision costs.
    intercept
        The intercept: a constant feature, free of any penalty, or none.
    class_weight
        "balanced" lets each class weigh the same in total.
    solver
        The algorithm: dcd, ocas, newton, lbfgs, sgd, pegasos, bmrm or svmperf;
        "auto" chooses by loss, C and data.
    tol
        Stop when the relative duality gap is no larger.
    max_passes
        Stop after so many passes over the data.
    max_time
        Stop after so many seconds.
    seed
        Start of the random numbers; the same seed gives the same model.
    jobs
        Threads; all cores by default.
    test
        A second file to evaluate the model on, read in the same way.
    log
        Write a JSON line a pass and a last one with the summary to this file.
    quiet
        No progress and no summary.
    """
    from dotadd.atomic import require_writable
    from dotadd.errors import DotaddError, NotConvergedWarning

    if not data:
        raise DotaddError("give a data file to train on")
    for path in filter(None, (output, log)):
        require_writable(path)
    source = reading.open(list(data))
    held_out = reading.open([test]) if test else None

    from dotadd.cli.progress import Watch, write_json_line
    from dotadd.estimators import LinearSVM
    from dotadd.features.expression import parse

    svm = LinearSVM(
        parse(features) if features else None,
        C=cost,
        loss=loss,
        solver=solver,
        intercept=intercept,
        class_weight=None if class_weight == "none" else class_weight,
        tol=tol,
        max_passes=max_passes,
        max_time=max_time,
        random_state=seed,
        n_jobs=jobs,
    )
    with ExitStack() as stack:
        file = stack.enter_context(open(log, "w", encoding="utf-8")) if log else None
        title = os.path.basename(data[0]) + (f" and {len(data) - 1} more" if len(data) > 1 else "")
        watch = Watch(title, tol=tol, max_passes=max_passes, max_time=max_time, log=file, quiet=quiet)
        with watch, warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says so
            svm.fit(source, on_progress=watch)
        svm.model_.save(output)
        tell_skipped(source)
        if file is not None:
            write_json_line(file, {"summary": summary(svm, output)})
    if not quiet:
        show(svm, output)
    if interrupted(svm):
        sys.stderr.write(f"dotadd: interrupted; the model so far is saved in {output}\n")
        return 130
    if held_out is not None:
        from dotadd.cli.evaluate import measure, show_measures

        show_measures(svm.model_, measure(svm.model_, held_out, jobs), title=f"on {test}")
    return 0


def results(svm: LinearSVM) -> list[Any]:
    """The results of the binary problems, one or several."""
    return svm.result_ if isinstance(svm.result_, list) else [svm.result_]


def interrupted(svm: LinearSVM) -> bool:
    from dotadd.solvers.result import Reason

    return any(result.reason is Reason.INTERRUPTED for result in results(svm))


def summary(svm: LinearSVM, output: str) -> dict[str, Any]:
    """What is worth knowing of a training run, as plain data."""
    inside = svm.model_.inspect(largest=0)
    return {key: inside[key] for key in ("features", "dim", "nonzeros", "classes", "training")} | {"model": output}


def show(svm: LinearSVM, output: str) -> None:
    """The summary on screen."""
    from dotadd.cli.screen import duration, facts, label_text, number

    model, found = svm.model_, results(svm)
    k = max(range(len(found)), key=lambda k: -1.0 if found[k].gap is None else found[k].gap)
    worst = found[k]
    nonzeros = sum(model.inspect(largest=0)["nonzeros"])
    of_class = "" if len(found) == 1 else f" (class {label_text(model.classes.tolist()[k])}, which has the largest gap)"
    lines = {
        "rows": f"{model.training.get('rows', 0):,} in {len(model.classes)} classes",
        "features": f"{model.phi!r}: {model.phi.dim:,} slots, {nonzeros:,} weights not zero",
        "solver": f"{worst.solver}: {worst.why}",
        "passes": f"{max(result.passes for result in found):,} in {duration(sum(worst.seconds.values()))}",
        "primal": number(worst.primal) + of_class,
        "dual": number(worst.dual),
        "gap": number(worst.gap, 3),
        "stopped": worst.reason.value,
        "model": output,
    }
    facts(lines)
