"""dotadd train: data in, model file out.

A model that was hours in the making is saved elsewhere if there is no room where it was to go.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd._util.interrupts import Interrupts
from dotadd.cli.choosing import Choosing, choice, refuse_unfit, show_choice
from dotadd.cli.inspect import vectors_text
from dotadd.cli.large import Cluster, Streaming, partitions, results, streamed
from dotadd.cli.measures import as_json as measures_json
from dotadd.cli.measures import show_measures
from dotadd.cli.options import (
    OUTPUT,
    STOPPING,
    KernelOptions,
    Reading,
    Solving,
    VirtualExamples,
    columns_for,
    tell_skipped,
    title_of,
)
from dotadd.cli.peaks import GenomeToTrainOn, genome_lines
from dotadd.cli.predict import measure
from dotadd.cli.progress import Watch, opened_log, write_json_line
from dotadd.cli.report import report_training, require_page, studied
from dotadd.cli.screen import Json, duration, facts, label_text, lenient_screen, number, tell, write_json
from dotadd.cli.updating import Updating
from dotadd.errors import DataError, DotaddError, NotConvergedWarning
from dotadd.estimators.course import AnyCourse, Course, FoldsCourse, KernelCourse

if TYPE_CHECKING:
    from dotadd.cluster.partitions import Partitions
    from dotadd.estimators.cross_validation import LinearSVMCV
    from dotadd.estimators.kernel import KernelSVM
    from dotadd.estimators.kernel_cross_validation import KernelSVMCV
    from dotadd.estimators.linear import LinearSVM
    from dotadd.genome.peaks import Peaks
    from dotadd.genome.windows import Windows
    from dotadd.model.file import Record
    from dotadd.model.kernel import KernelModel
    from dotadd.model.linear import Model
    from dotadd.report.study import Study
    from dotadd.sources.base import Source
    from dotadd.sources.table import Layout

FIRST_ROWS = 1 << 16  # bytes of data that tell what it is
ELSEWHERE = 1  # the exit code where a model has been saved, but not where it should be
SUMMED_UP = ("kernel", "support", "features", "dim", "nonzeros", "classes", "training")  # of what a machine has of it


def train(
    *data: str,
    output: Annotated[str, Parameter(name=["--output", "-o"], group=OUTPUT)],
    solver: Annotated[str, Parameter(group=STOPPING)] = "auto",
    test: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    report: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    log: Annotated[str | None, Parameter(group=OUTPUT)] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False, group=OUTPUT)] = False,
    as_json: Json = False,
    solving: Solving = Solving(),  # noqa: B008
    kernel: KernelOptions = KernelOptions(),  # noqa: B008
    streaming: Streaming = Streaming(),  # noqa: B008
    choosing: Choosing = Choosing(),  # noqa: B008
    virtual: VirtualExamples = VirtualExamples(),  # noqa: B008
    cluster: Cluster = Cluster(),  # noqa: B008
    updating: Updating = Updating(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
    peaks: GenomeToTrainOn = GenomeToTrainOn(),  # noqa: B008
) -> int:
    """Train a classifier and save it.

    Ctrl-C or a time limit ends training early: the model so far is saved, and the
    gap tells how far it had come; Ctrl-C again, SIGTERM or SIGHUP leave the gap out.

    Data larger than the memory it may take is not loaded but read again and again
    while training goes on with what is there; text is first copied to an Arrow file
    beside it. The state of training is kept in a checkpoint, from which --resume
    goes on, whatever ended training; for data in memory if --checkpoint asks for it.

    On a cluster, the files are shared out among the workers, which read them where
    they are: --solver cocoa (the default there) finds the same optimum in rounds,
    average takes the mean of what parts of the data find alone.

    With --update, an earlier model learns from the rows given, without those that it
    was made of; labels that it does not know become new classes.

    With -C auto or --cv, machines are first trained on folds of the data, all in one
    expansion of it, and judged by the rows that were held out: for each C a line.

    With --peaks and --fasta instead of data, windows around the summits and as many
    of background that look alike are cut out of a genome, as dotadd windows does;
    the machine is measured on the chromosomes or stretches that are held out. Its
    features are gapped k-mers, Gkm().normalized(), unless --features says otherwise.
    With --signal, --gff and --fasta it is trained on every AG (GT), or with --every
    on every position; the genome is in memory once, and a window is a place in it.

    Examples:

        dotadd train a9a -o a9a.dotadd
        dotadd train a9a -o a9a.dotadd -C auto --probability sigmoid
        dotadd train a9a -o a9a.dotadd -C 0.1 --loss logistic --test a9a.t
        dotadd train a9a -o a9a.dotadd --test a9a.t --report a9a.html
        dotadd train mails.csv --column text --label spam -o spam.dotadd \\
            --features "NGrams((3, 5)).normalized()"
        dotadd train reuters.csv --column text --label topics --separator "," \\
            -o reuters.dotadd --features "WordNGrams(1).tfidf()"
        dotadd train newsgroups/ -o news.dotadd --features "WordNGrams((1, 2)).tfidf()"
        dotadd train sites.fasta.gz -o sites.dotadd --class-weight balanced \\
            --features "Spectrum(8, span=(0, 59)) + WeightedDegree(20).hashed(12)"
        dotadd train faces.npz -o faces.dotadd --label gender --features "LBP()" \\
            --virtual "translate(2) * rotate(6, step=3) * scale(0.05)"
        dotadd train new.csv --update spam.dotadd -o spam2.dotadd
        dotadd train digits.svm -o digits.dotadd --kernel rbf --gamma 0.02 -C 5
        dotadd train huge.svm -o huge.dotadd --memory 2GB --max-time 3600
        dotadd train huge.svm -o huge.dotadd --memory 2GB --resume
        dotadd train mails.csv --label spam -o spam.dotadd --checkpoint spam.state
        dotadd train "part-*.parquet" --label y -o all.dotadd \\
            --scheduler tcp://10.0.0.1:8786
        dotadd train "part-*.parquet" --label y -o all.dotadd --workers 4
        dotadd train --peaks ctcf.narrowPeak.gz --fasta hg38.fa.gz -o ctcf.dotadd \\
            --features "Gkm().normalized()" --test-chromosomes chr8,chr9
        dotadd train --fasta chr19.fa.xz --gff chr19.gff3.xz --signal acceptor \\
            --holdout 0.2 -o acceptor.dotadd

    Parameters
    ----------
    data
        One or more files: LIBSVM, CSV, TSV, JSON lines, text, FASTA, lattices (plain or .gz .bz2 .xz),
        Arrow, Parquet; a folder of texts, a subfolder for each class; images in .npy, .npz, idx files (MNIST) or a
        folder of PNG and JPEG files (pip install 'dotadd[images]'); or - for standard input.
    output
        The model file to write.
    solver
        The algorithm: dcd, ocas, newton, lbfgs, sgd, pegasos, bmrm or svmperf;
        for data larger than memory stream, block_minimization or selective_block_minimization;
        on a cluster cocoa or average; "auto" chooses by loss, C and data. Kernel machines have their own (--kernel).
    test
        A second file to evaluate the model on, read in the same way.
    report
        Write a page about the model, and about how good it is on the rows of --test or of --cv, to this .html file.
    log
        Write a JSON line a pass and a last one with the summary to this file.
    quiet
        No progress and no summary.
    """
    if peaks.wanted == bool(data):
        raise DotaddError("give a data file to train on" + ", or --peaks or --signal, and not both" * bool(data))
    peaks.refuse_without()
    if peaks.wanted and solving.features is None and kernel.kernel is None:
        solving = replace(solving, features=peaks.features)
        if not quiet:
            tell(f"features: {peaks.features}")
    for path in filter(None, (output, log)):
        require_writable(path)
    if report is not None:
        require_page(report)
    kernel.require(solving, streaming)
    if kernel.kernel is None:
        streaming.require(output)
    elif cluster.wanted:
        raise DotaddError("--scheduler and --workers are for linear machines, and not for --kernel")
    from dotadd.estimators.choosing import ChoosesC
    from dotadd.estimators.linear import LinearSVM

    folds = choosing.wanted(solving)
    earlier = updating.model(kernel=kernel.kernel is not None, folds=folds, cluster=cluster.wanted)
    if earlier is not None:
        solving = updating.as_before(solving, earlier)
    plain = replace(solving, cost=1.0) if folds else solving
    machine = plain.svm(solver) if kernel.kernel is None else kernel.svm(plain, solver)
    svm: LinearSVM | KernelSVM | LinearSVMCV | KernelSVMCV = machine
    if folds:
        refuse_unfit(streaming)
        if isinstance(machine, LinearSVM):
            svm = choosing.around(machine, solving)
        else:
            svm = choosing.around_kernel(machine, solving)
    columns: Layout | None = None
    source: Source | Partitions
    here: Source | None = None  # what this process reads itself
    cut: Peaks | Windows | None = None
    if peaks.wanted:
        if cluster.wanted or (test is not None and (peaks.test_chromosomes or peaks.holdout)):
            other = "--scheduler and --workers read files" if cluster.wanted else "--test is a second file"
            raise DotaddError(f"{other}, and not what is cut out of a genome: write it by dotadd windows before")
        data = peaks.titles
        cut = peaks.drawn(reading, solving.seed, columns=choosing.ids)
        source = here = virtual.around(cut)
    elif cluster.wanted:
        source = virtual.around_partitions(partitions(data, reading, ids=choosing.ids))
    else:
        as_before = None if earlier is None else earlier.read_as
        columns = None if earlier is None else earlier.like(labels=True)
        here = reading.open(list(data), columns, read_as=as_before)
        if earlier is None and kernel.kernel is None:
            columns = columns_for(svm, here, quiet=quiet)
        if columns is not None or choosing.ids:
            here = reading.open(list(data), columns, read_as=as_before, ids=choosing.ids)
        source = here = virtual.around(here)
    held_out = cut.held_out() if cut is not None and cut.divided else reading.open([test], columns) if test else None
    if held_out is not None:
        require_testable(held_out, here)

    with ExitStack() as stack:
        client = stack.enter_context(cluster.client(solving.jobs))
        file = stack.enter_context(opened_log(log, "a" if streaming.resume else "w")) if log else None
        course: AnyCourse
        if folds:
            course = FoldsCourse(solving.limits)
        elif kernel.kernel is not None:
            course = KernelCourse(solving.limits)
        else:
            course = Course(solving.limits, unit="pass" if client is None else "round")
        watch = Watch(title_of(data), course, log=file, quiet=quiet)
        how: Record = {"on_progress": watch}
        if kernel.kernel is None:
            how |= {"announce": watch.announce, "keep_cache": streaming.keep_cache}
        if folds:
            how |= choosing.fit_options()
        elif kernel.kernel is None:
            how |= streaming.checkpoints(output)
        if earlier is not None:
            how |= updating.fit_options(earlier)
        if client is not None:
            how["engine"] = client
            svm.n_jobs = cluster.threads(solving.jobs)
        with watch, warnings.catch_warnings(), Interrupts() as interrupts:
            warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says so
            done = trained(svm, source, how)
            saved = save(svm.model_, output)  # and no signal ends it before
            stopped = interrupts.obey() or not done
        tell_skipped(source)
        stack.enter_context(lenient_screen())
        study: Study | None = None
        if file is not None:
            write_json_line(file, {"summary": summary(svm.model_, saved)})
        if isinstance(svm, ChoosesC):
            machine = svm.machine_
            if not quiet and not as_json:
                show_choice(svm)
        if not quiet and not as_json:
            lines = linear_lines(machine, saved) if isinstance(machine, LinearSVM) else kernel_lines(machine, saved)
            lines = lines | updating.lines(earlier, machine.model_.training)
            facts(lines if cut is None else genome_lines(cut) | lines)
        told = summary(svm.model_, saved) | {"interrupted": stopped}
        if stopped:
            tell(f"interrupted; the model so far is saved in {saved}")
        elif held_out is not None:
            where = test or peaks.held_out_title
            if report is None:
                measured = measure(svm.model_, held_out, solving.jobs)
            else:
                study, measured = studied(svm.model_, held_out, where, solving.jobs)
            if as_json:
                told["test"] = {"data": where, **measures_json(svm.model_, measured)}
            else:
                show_measures(svm.model_, measured, title=f"on {where}")
        if as_json:
            told |= {"choice": choice(svm)} if isinstance(svm, ChoosesC) else {}
            write_json(told if cut is None else told | {peaks.called: asdict(cut.counts)})
        if report is not None and not stopped:
            report_training(report, svm, saved, data, here, study, solving.jobs, quiet=quiet or as_json)
        if isinstance(machine, LinearSVM) and not folds:
            streaming.finish(machine, output, client)
    return watch.exit_code if stopped else 0 if saved == output else ELSEWHERE


def require_testable(held_out: Source, trained_on: Source | None) -> None:
    """Refuse now, by its first rows, what the model could not be measured on after hours of training."""
    from dotadd.sources.base import require_alike

    first = next(iter(held_out.chunks(FIRST_ROWS)), None)
    if first is None or not len(first):
        raise DataError("has no rows that can be used", held_out.name)
    if first.y is None:
        raise DataError("there are no labels to compare with; name their column with --label", first.path)
    if trained_on is not None and (other := next(iter(trained_on.chunks(FIRST_ROWS)), None)) is not None:
        require_alike(replace(other, batch=other.batch.typical()), first)
    held_out.skipped.clear()


def trained(svm: LinearSVM | KernelSVM | LinearSVMCV | KernelSVMCV, source: Source | Partitions, how: Record) -> bool:
    """Train, and return whether that went to its end. If it was interrupted, there is the model so far; where there is
    none yet, the command ends."""
    try:
        svm.fit(source, **how)
    except KeyboardInterrupt:
        if not hasattr(svm, "model_"):
            raise
        return False
    return True


def save(model: Model | KernelModel, output: str) -> str:
    """Save the model to this file, or to one in another place if that cannot be written; returns which, and says so."""
    try:
        model.save(output)
        return output
    except OSError as error:
        why = f"{output}: the model cannot be written: {error.strerror or error}"
    tried = []
    for path in _other_places(output):
        try:
            model.save(path)
        except OSError:
            tried.append(str(path.parent))
            continue
        tell(f"error: {why}; it is in {path} now")
        return str(path)
    raise DotaddError(f"{why}; nor can it be in {', '.join(tried)}")


def _other_places(output: str) -> Iterator[Path]:
    """Files of the same name, or nearly so, that do not exist: here, at home, and among temporary ones."""
    name = Path(output).name
    for folder in dict.fromkeys((os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir())):
        names = (name, *(f"{name}.{number}" for number in range(1, 100)))
        free = (path for path in (Path(folder, other) for other in names) if not path.exists())
        if (path := next(free, None)) is not None:
            yield path


def summary(model: Model | KernelModel, output: str) -> Record:
    """What is worth knowing of a training run, as plain data."""
    from dotadd.model.linear import Model

    inside = model.inspect(largest=0) if isinstance(model, Model) else model.inspect()
    return {key: inside[key] for key in SUMMED_UP if key in inside} | {"model": output}


def linear_lines(svm: LinearSVM, output: str) -> dict[str, str]:
    """What the screen tells of a linear machine."""
    from dotadd._util.memory import words
    from dotadd.problem.lengths import length_advice, scale_advice
    from dotadd.solvers.result import worst_of

    model, found = svm.model_, results(svm)
    worst = worst_of(found)
    k = next(k for k, result in enumerate(found) if result is worst)
    nonzeros = sum(model.inspect(largest=0)["nonzeros"])
    one, many = ("class", "in {} classes") if model.several is None else ("label", "with {} labels, several a row")
    of_class = "" if len(found) == 1 else f" ({one} {label_text(model.classes.tolist()[k])}, which has the largest gap)"
    passes = f"{max(result.passes for result in found):,}"
    disk = " over the data on disk" * streamed(svm)
    lines = {
        "rows": f"{model.training.get('rows', 0):,} {many.format(len(model.classes))}",
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
    if (told := scale_advice(model.training.get("scale_spread"))) is not None:
        lines = {"rows": lines["rows"], "scales": told.removeprefix("scales of columns ")} | lines
    if worst.kept_rows:
        kept = f"{worst.kept_rows:,} rows of features, made once, in {words(worst.kept_bytes)}"
        lines = {"rows": lines["rows"], "kept": kept} | lines
    if streamed(svm):
        held = max((row.cached for result in found for row in result.trace[-1:] if row.cached is not None), default=0)
        budget = svm.memory or "half of what was free"
        lines = {"rows": lines["rows"], "memory": f"{budget} for examples, {held:,} in it at the end"} | lines
    return lines


def kernel_lines(svm: KernelSVM, output: str) -> dict[str, str]:
    """The same of a kernel machine."""
    from dotadd.kernel_svm.problem import worst_of

    model = svm.model_
    found = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    training = model.training
    worst = worst_of(found)
    of_pairs = "" if len(found) == 1 else f" in the worst of {len(found)} pairs of classes"
    return {
        "rows": f"{training['rows']:,} in {len(model.classes)} classes",
        **({"virtual": f"by {training['virtual']}"} if "virtual" in training else {}),
        "kernel": repr(model.kernel),
        "vectors": vectors_text(model.counts.tolist(), model.classes.tolist()),
        "solver": f"{svm.solver}: {training['steps']:,} steps in {duration(sum(training['seconds'].values()))}",
        "primal": number(worst.primal) + of_pairs,
        "dual": number(worst.dual),
        "violation": number(worst.violation, 3),
        "stopped": training["reason"],
        "model": output,
    }
