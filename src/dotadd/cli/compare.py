"""dotadd compare: several solvers on one problem, and how fast each of them gets how far."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd._util.threads import thread_count
from dotadd.cli.large import command_line, results
from dotadd.cli.options import OUTPUT, STOPPING, Reading, Solving, VirtualExamples, columns_for, tell_skipped, title_of
from dotadd.cli.progress import Watch
from dotadd.cli.screen import Json, facts, number, show_table, tell, write_json
from dotadd.cli.train import trained
from dotadd.errors import DataError, DotaddError, FeatureError, NotConvergedWarning, as_written
from dotadd.estimators.course import Course

if TYPE_CHECKING:
    from dotadd.estimators.linear import LinearSVM
    from dotadd.kernel_svm.problem import KernelProgress
    from dotadd.model.file import Record
    from dotadd.report.compare import Comparison, SolverRun
    from dotadd.solvers.result import Progress
    from dotadd.sources.base import Source

FEW, FEW_PASSES = 2000, 5  # rows and passes of the run that only compiles; so many rows are shared among threads


def compare(
    *data: str,
    output: Annotated[str, Parameter(name=["--output", "-o"], group=OUTPUT)],
    solvers: Annotated[str | None, Parameter(group=STOPPING)] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False, group=OUTPUT)] = False,
    as_json: Json = False,
    solving: Solving = Solving(),  # noqa: B008
    virtual: VirtualExamples = VirtualExamples(),  # noqa: B008
    reading: Reading = Reading(),  # noqa: B008
) -> int:
    """Compare solvers on one problem.

    Each solver trains on the same data, one after the other; data larger than the
    memory it may take is read from disk by each. The page shows how objective and
    gap fall over seconds and over passes, and when each solver was within 1% and
    0.1% of the best objective. Ctrl-C ends the solver that runs; the page then
    shows what there is. Pages and pictures need matplotlib, a .json file does not:

        pip install 'dotadd[plots]'

    Examples:

        dotadd compare a9a -o compare.html
        dotadd compare a9a --solvers dcd,ocas,sgd -C 0.1 --tol 1e-4 -o compare.html
        dotadd compare a9a --loss logistic --max-time 60 -o compare.svg
        dotadd compare huge.arrow --memory 500MB \\
            --solvers stream,selective_block_minimization -o compare.html

    Parameters
    ----------
    data
        One or more files: LIBSVM, CSV, TSV, JSON lines, text, FASTA, lattices (plain or .gz .bz2 .xz),
        Arrow, Parquet; a folder of texts; images in .npy, .npz, idx files (MNIST) or a folder of PNG and JPEG files;
        or - for standard input.
    output
        The file to write: .html, a picture as .svg or .png, or everything that was measured as .json.
    solvers
        Their names with commas between, in order; by default all that fit the loss but pegasos, bmrm and svmperf.
    quiet
        No progress and no table.
    """
    from dotadd.report.compare import Comparison, require_format, write
    from dotadd.report.compare import as_json as comparison_json

    if not data:
        raise DotaddError("give a data file to compare solvers on")
    require_format(output)
    require_writable(output)
    names = None if solvers is None else chosen(solvers)
    budget = solving.budget()

    from dotadd.sources.around import Kept

    usually = solving.svm("auto")
    columns = columns_for(usually, reading.open(list(data)), quiet=quiet)
    source = Kept(virtual.around(reading.open(list(data), columns)))
    runs: list[SolverRun] = []
    refused: dict[str, str] = {}
    problem: Record = {}
    stopped = False
    with Watch(title_of(data), Course(solving.limits), log=None, quiet=quiet):
        fits = kept(source, budget)
    for name in names or usual(fits):
        svm = solving.svm(name)
        svm.phi = usually.phi
        watch = TimedWatch(name, Course(solving.limits), log=None, quiet=quiet)
        try:
            runs.append(follow(svm, source, watch))
        except KeyboardInterrupt:
            if not runs:
                raise
            stopped = True
            break
        except (DataError, FeatureError):  # no solver could do anything about these
            raise
        except (DotaddError, MemoryError) as error:
            refused[name] = f"out of memory {error}".strip() if isinstance(error, MemoryError) else str(error)
            continue
        if not problem:
            problem = stated(svm, data)
            tell_skipped(source)
        stopped = watch.stopped
        if stopped:
            break
    if not runs:
        raise DotaddError("; ".join(dict.fromkeys(refused.values())))
    if solvers is None:
        refused = {}  # nobody asked for them
    for name, why in refused.items():
        tell(f"{name} did not run: {why}")
    found = Comparison(title_of(data), problem, runs, refused)
    write(found, output)
    if as_json:
        write_json(comparison_json(found) | {"file": output})
    elif not quiet:
        show(found, output)
    if stopped:
        tell(f"interrupted; what was measured until then is in {output}")
        return watch.exit_code
    return 0


def kept(source: Source, budget: int) -> bool:
    """Whether the source keeps all examples in memory, for all solvers; if they take more, each solver reads them."""
    from dotadd.sources.base import TooLargeError

    try:
        source.load(budget)
    except TooLargeError:
        return False
    return True


def usual(fits: bool) -> list[str]:
    """The solvers that run if none are named; those that cannot take the problem refuse it."""
    from dotadd.solvers.table import Needs, that_need

    solvers = {**({} if fits else that_need(Needs.PIECES)), **that_need(Needs.ROWS, Needs.PASSES)}
    return [name for name, solver in solvers.items() if not solver.ancestor]


def chosen(solvers: str) -> list[str]:
    """The names in the option, each known and there once."""
    from dotadd.solvers.table import Needs, that_need

    known = [*that_need(Needs.ROWS, Needs.PASSES, Needs.PIECES)]
    names = [name.strip() for name in solvers.split(",")]
    for place, name in enumerate(names):
        if name not in known:
            raise DotaddError(f"--solvers {solvers}: there is no solver {name!r}; choose from {', '.join(known)}")
        if name in names[:place]:
            raise DotaddError(f"--solvers {solvers}: {name} is there twice")
    return names


class TimedWatch(Watch):
    """Progress with the solver's name, and the moment at which its clock began."""

    began: float | None = None
    stopped = False

    def __call__(self, progress: Progress | KernelProgress, which: int, problems: int) -> None:
        if self.began is None:
            self.began = time.perf_counter() - progress.seconds
        super().__call__(progress, which, problems)

    def line(self) -> str:
        return f"{self.title}: {super().line()}"


def follow(svm: LinearSVM, source: Source, watch: TimedWatch) -> SolverRun:
    """Train once on a few rows, which compiles what is not yet compiled, and then in earnest."""
    import numpy as np

    from dotadd.core.losses import Loss, total_loss
    from dotadd.estimators.linear import LinearSVM
    from dotadd.report.compare import SolverRun
    from dotadd.sources.around import Few

    with watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # the table says so
        passes = min(svm.max_passes, FEW_PASSES)
        limit = svm.max_time and svm.max_time * 1e6  # compiling does not reach it, and no less is it refused
        trial = LinearSVM(**(svm.get_params(deep=False) | {"max_passes": passes, "max_time": limit}))
        trial.fit(Few(source, FEW), announce=lambda line: None)
        weight = total_weight(source)
        watch.stopped = not trained(svm, source, {"on_progress": watch, "announce": watch.announce})
        ended = time.perf_counter()
    found = results(svm)
    seconds = sum(found[0].seconds.values()) if watch.began is None else ended - watch.began
    total = svm.model_.training["rows"] if weight is None else weight
    untrained = total_loss(Loss.named(svm.loss), np.zeros(1), np.array([svm.C * total]))  # balanced or not
    return SolverRun.of(svm.solver, found, seconds, untrained)


def total_weight(source: Source) -> float | None:
    """The sum of the weights of all rows, None if they have none."""
    total = 0.0
    for chunk in source.chunks():
        if chunk.weight is None:
            return None
        total += float(chunk.weight.sum())
    return total


def stated(svm: LinearSVM, data: tuple[str, ...]) -> Record:
    """The problem and where it was solved, as plain data."""
    from dotadd._version import __version__

    names = ("loss", "C", "intercept", "class_weight", "tol", "max_passes", "max_time", "memory")
    return {
        "data": list(data),
        "rows": svm.model_.training["rows"],
        "classes": [as_written(label) for label in svm.model_.classes.tolist()],
        "features": repr(svm.model_.phi),
        "slots": svm.model_.phi.dim,
        **{name: getattr(svm, name) for name in names},
        "seed": svm.random_state,
        "threads": thread_count(svm.n_jobs),
        "cores": thread_count(None),
        "version": f"dotadd {__version__}",
        "command": command_line(),
    }


def show(found: Comparison, output: str) -> None:
    """The table on screen."""
    from dotadd.report.compare import HEADINGS

    rows = found.rows()
    show_table(HEADINGS[:-1], [cells[:-1] for cells in rows])
    lines = {row[0]: row[-1] for row in rows} | {
        "best": f"{number(found.best, 7)}; no objective is below {number(found.bound, 7)}, the largest certified dual"
        if found.bound is not None
        else f"{number(found.best, 7)}; no solver has certified a dual, so nobody knows how far the optimum is below",
        "page" if output.endswith(".html") else "file": output,
    }
    facts(lines)
