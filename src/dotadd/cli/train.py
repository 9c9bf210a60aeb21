"""dotadd train: data in, model file out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dotadd.cli import kernel as machine
from dotadd.cli.ending import ELSEWHERE, save
from dotadd.cli.kernel import KernelOptions
from dotadd.cli.large import Cluster, Streaming, partitions, streamed
from dotadd.cli.options import (
    OUTPUT,
    STOPPING,
    Reading,
    Solving,
    VirtualExamples,
    results,
    tell_skipped,
    title_of,
    trained,
)
from dotadd.cli.screen import lenient_screen, tell

if TYPE_CHECKING:
    from dotadd.estimators.linear import LinearSVM
    from dotadd.model.file import Record
    from dotadd.sources.base import Source

FIRST_ROWS = 1 << 16  # bytes of data that tell what it is


def train(
    *data: str,
    output: Annotated[str, Parameter(name=["--output", "-o"], group=OUTPUT)],
    solver: Annotated[str, Parameter(group=STOPPING)] = "auto",
    test: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    log: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False, group=OUTPUT)] = False,
    solving: Solving = Solving(),  # noqa: B008
    kernel: KernelOptions = KernelOptions(),  # noqa: B008
    streaming: Streaming = Streaming(),  # noqa: B008
    virtual: VirtualExamples = VirtualExamples(),  # noqa: B008
    cluster: Cluster = Cluster(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> int:
    """Train a classifier and save it.

    Ctrl-C or a time limit ends training early: the model so far is saved, and the
    gap tells how far it had come; Ctrl-C again, SIGTERM or SIGHUP leave the gap out.

    Data larger than the memory it may take is not loaded but read again and again
    while training goes on with what is there; text is first copied to an Arrow file
    beside it. The state of training is kept in a checkpoint, from which --resume
    goes on, whatever ended training.

    On a cluster, the files are shared out among the workers, which read them where
    they are: --solver cocoa (the default there) finds the same optimum in rounds,
    average takes the mean of what parts of the data find alone.

    Examples:

        dotadd train a9a -o a9a.dotadd
        dotadd train a9a -o a9a.dotadd -C 0.1 --loss logistic --test a9a.t
        dotadd train mails.csv --column text --label spam -o spam.dotadd \\
            --features "NGrams((3, 5)).normalized()"
        dotadd train sites.fasta.gz -o sites.dotadd --class-weight balanced \\
            --features "Spectrum(8, span=(0, 59)) + WeightedDegree(20).hashed(12)"
        dotadd train faces.npz -o faces.dotadd --label gender --features "LBP()" \\
            --virtual "translate(2) * rotate(6, step=3) * scale(0.05)"
        dotadd train digits.svm -o digits.dotadd --kernel rbf --gamma 0.02 -C 5
        dotadd train huge.svm -o huge.dotadd --memory 2GB --max-time 3600
        dotadd train huge.svm -o huge.dotadd --memory 2GB --resume
        dotadd train "part-*.parquet" --label y -o all.dotadd \\
            --scheduler tcp://10.0.0.1:8786
        dotadd train "part-*.parquet" --label y -o all.dotadd --workers 4

    Parameters
    ----------
    data
        One or more files: LIBSVM, CSV, TSV, JSON lines, FASTA, lattices (plain or .gz .bz2 .xz),
        Arrow, Parquet; images in .npy, .npz, idx files (MNIST) or a folder of PNG and JPEG files
        (pip install 'dotadd[images]').
    output
        The model file to write.
    solver
        The algorithm: dcd, ocas, newton, lbfgs, sgd, pegasos, bmrm or svmperf;
        for data larger than memory stream, block_minimization or selective_block_minimization;
        on a cluster cocoa or average; "auto" chooses by loss, C and data. Kernel machines have their own (--kernel).
    test
        A second file to evaluate the model on, read in the same way.
    log
        Write a JSON line a pass and a last one with the summary to this file.
    quiet
        No progress and no summary.
    """
    from dotadd._util.atomic import require_writable
    from dotadd._util.interrupts import Interrupts
    from dotadd.errors import DotaddError, NotConvergedWarning

    if not data:
        raise DotaddError("give a data file to train on")
    for path in filter(None, (output, log)):
        require_writable(path)
    kernel.require(solving, streaming)
    if kernel.kernel is None:
        streaming.require(output)
    elif cluster.wanted:
        raise DotaddError("--scheduler and --workers are for linear machines, and not for --kernel")
    source: Any
    if cluster.wanted:
        source = virtual.around_partitions(partitions(data, reading))
    else:
        source = virtual.around(reading.open(list(data)))
    held_out = reading.open([test]) if test else None
    if held_out is not None:
        require_testable(held_out, None if cluster.wanted else source)

    from dotadd.cli.progress import Watch, opened_log, write_json_line

    svm: Any  # either kind of machine, each with its watch and its summary
    summed_up: Callable[..., Record]
    shown: Callable[..., None]
    if kernel.kernel is None:
        svm, watched, summed_up, shown = solving.svm(solver), Watch, summary, show
    else:
        svm, watched = kernel.svm(solving, solver), machine.KernelWatch
        summed_up, shown = machine.summary, machine.show
    with ExitStack() as stack:
        client = stack.enter_context(cluster.client(solving.jobs))
        file = stack.enter_context(opened_log(log, "a" if streaming.resume else "w")) if log else None
        watch = watched(title_of(data), solving, log=file, quiet=quiet)
        further: Record = {}
        if kernel.kernel is None:
            further = {
                "announce": watch.announce,
                **streaming.checkpoints(output),
                "keep_cache": streaming.keep_cache,
            }
        if client is not None:
            further["engine"], watch.unit = client, "round"
            svm.n_jobs = cluster.threads(solving.jobs)
        with watch, warnings.catch_warnings(), Interrupts() as interrupts:
            warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says so
            done = trained(svm, source, on_progress=watch, **further)
            saved = save(svm.model_, output)  # and no signal ends it before
            stopped = interrupts.obey() or not done
        tell_skipped(source)
        stack.enter_context(lenient_screen())
        if file is not None:
            write_json_line(file, {"summary": summed_up(svm, saved)})
        if not quiet:
            shown(svm, saved)
        if stopped:
            tell(f"interrupted; the model so far is saved in {saved}")
        elif held_out is not None:
            from dotadd.cli.evaluate import measure, show_measures

            show_measures(svm.model_, measure(svm.model_, held_out, solving.jobs), title=f"on {test}")
        if kernel.kernel is None:
            streaming.finish(svm, output, client)
    return watch.exit_code if stopped else 0 if saved == output else ELSEWHERE


def require_testable(held_out: Source, trained_on: Source | None) -> None:
    """Refuse now, by its first rows, what the model could not be measured on after hours of training."""
    from dotadd.errors import DataError
    from dotadd.sources.base import require_alike

    first = next(iter(held_out.chunks(FIRST_ROWS)), None)
    if first is None or not len(first):
        raise DataError("has no rows that can be used", held_out.name)
    if first.y is None:
        raise DataError("there are no labels to compare with; name their column with --label", first.path)
    if trained_on is not None and (other := next(iter(trained_on.chunks(FIRST_ROWS)), None)) is not None:
        require_alike(replace(other, batch=other.batch.typical()), first)
    held_out.skipped.clear()


def summary(svm: LinearSVM, output: str) -> Record:
    """What is worth knowing of a training run, as plain data."""
    inside = svm.model_.inspect(largest=0)
    return {key: inside[key] for key in ("features", "dim", "nonzeros", "classes", "training")} | {"model": output}


def show(svm: LinearSVM, output: str) -> None:
    """The summary on screen."""
    from dotadd.cli.screen import duration, facts, label_text, number
    from dotadd.problem.lengths import length_advice
    from dotadd.solvers.result import worst_of

    model, found = svm.model_, results(svm)
    worst = worst_of(found)
    k = next(k for k, result in enumerate(found) if result is worst)
    nonzeros = sum(model.inspect(largest=0)["nonzeros"])
    of_class = "" if len(found) == 1 else f" (class {label_text(model.classes.tolist()[k])}, which has the largest gap)"
    passes = f"{max(result.passes for result in found):,}"
    disk = " over the data on disk" * streamed(svm)
    lines = {
        "rows": f"{model.training.get('rows', 0):,} in {len(model.classes)} classes",
        **({"virtual": f"by {model.training['virtual']}"} if "virtual" in model.training else {}),
        "features": f"{model.phi!r}: {model.phi.dim:,} slots, {nonzeros:,} weights not zero",
        "solver": f"{worst.solver}: {worst.why}",
        "rounds" if worst.solver == "cocoa" else "passes": f"{passes}{disk} in {duration(sum(worst.seconds.values()))}",
        "primal": number(worst.primal) + of_class,
        "dual": number(worst.dual),
        "gap": number(worst.gap, 3),
        "stopped": worst.reason.value,
        "model": output,
    }
    if (told := length_advice(model.training["length_spread"])) is not None:
        lines = {"rows": lines["rows"], "lengths": told.removeprefix("lengths of rows ")} | lines
    if streamed(svm):
        kept = max((row.cached for result in found for row in result.trace[-1:] if row.cached is not None), default=0)
        budget = svm.memory or "half of what was free"
        lines = {"rows": lines["rows"], "memory": f"{budget} for examples, {kept:,} in it at the end"} | lines
    facts(lines)
