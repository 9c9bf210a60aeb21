"""dotadd, LIBLINEAR and scikit-learn on the same problem: time to the same objective, for each loss.

C = 1, a regularised intercept, one against the rest where there are more than two classes; one thread but where two are
named. Each program is run at tighter and tighter tolerances of its own until its answer is within 0.1 % of the best
objective known; the time is that of the loosest tolerance that gets there, best of several runs taken in turn, without
reading the data or compiling. dotadd's time includes the proof, its duality gap recomputed from scratch; the others do
not compute one. A program that takes 20 times as long as the fastest is given up.

In each cell are the time, how many times that of the first row it is, the tolerance (which means something else for
each program), and how far above the best objective the answer is. LIBLINEAR's -s 3 and -s 1 are its dual coordinate
descent, of which it makes 300 passes at most, -s 2 and -s 0 its Newton method. scikit-learn's LogisticRegression gets a
constant column in place of its intercept, which it would not regularise.

    python -m benchmarks.solvers [--tiny] [--repeat N] [--loss hinge] [name ...]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets
from dotadd import LinearSVM

NAMES = ["a9a", "w8a", "ijcnn1", "sector", "synthetic"]
MANY_CLASSES = {"sector"}
COSTS, COSTS_NAMES = [0.01, 0.1, 1.0, 10.0, 100.0], ["a9a", "ijcnn1"]
WITHIN = 1e-3  # of the best objective
STEP, STRIDE = 1.5, 4  # a ladder of tolerances: how much tighter a rung is, and how many rungs to leap
TIGHTEST = 1e-5  # tolerance of any program
STEEPEST = 1e6  # the loosest gap where it is |gradient|^2 / 2, many times the objective when the answer is already good
GIVE_UP = 20.0  # times the fastest program
PATIENCE = 20.0  # seconds for runs of one program on one problem that are repeated
MAX_TIME = 60.0  # seconds of a run of ours

Weights = tuple[np.ndarray, np.ndarray]  # (classes or 1, features) and the intercepts
Answer = TypeVar("Answer")
Run = Callable[[float], tuple[float, Weights]]  # from a tolerance to seconds and an answer


class Task(NamedTuple):
    """What all programs are to minimise."""

    X: sp.csr_matrix
    y: np.ndarray
    loss: str = "hinge"
    C: float = 1.0


class Timed(NamedTuple):
    seconds: float
    setting: float
    excess: float  # how far above the best objective, relative

    @property
    def reached(self) -> bool:
        return self.excess <= WITHIN


def objective(X: sp.csr_matrix, y: np.ndarray, weights: Weights, loss: str = "hinge", C: float = 1.0) -> float:
    """The sum of the binary problems' primal objectives, in float64."""
    w, b = (np.asarray(part, np.float64) for part in weights)
    labels = np.unique(y)
    targets = labels if len(labels) > 2 else labels[1:]
    output = X.astype(np.float64, copy=False) @ w.T + b
    margins = np.where(y[:, None] == targets, 1.0, -1.0) * output
    if loss == "logistic":
        losses = np.logaddexp(0.0, -margins)
    else:
        losses = np.maximum(0.0, 1.0 - margins) ** (2 if loss == "squared_hinge" else 1)
    return 0.5 * float((w**2).sum() + (b**2).sum()) + C * float(losses.sum())


def ours(X: sp.csr_matrix, y: np.ndarray, C: float = 1.0, *, loss: str, solver: str, jobs: int = 1) -> Run:
    svm = LinearSVM(C=C, loss=loss, solver=solver, max_passes=10**6, max_time=MAX_TIME, random_state=0, n_jobs=jobs)
    svm.fit(*datasets.synthetic(300, 100, 10))  # compiles

    def run(tol: float) -> tuple[float, Weights]:
        svm.tol = tol
        began = perf_counter()
        svm.fit(X, y)
        return perf_counter() - began, (svm.coef_, svm.intercept_)

    return run


def liblinear(X: sp.csr_matrix, y: np.ndarray, C: float = 1.0, *, solver: int = 3, threads: int = 1) -> Run | None:
    try:
        from liblinear.liblinear import liblinear as library
        from liblinear.liblinear import parameter, problem
    except ImportError:
        return None
    data = problem(y.astype(np.float64), X.astype(np.float64, copy=False), bias=1)
    labels = np.unique(y)

    def run(epsilon: float) -> tuple[float, Weights]:
        options = parameter(f"-s {solver} -c {C} -B 1 -e {epsilon} -q" + (f" -m {threads}" if threads > 1 else ""))
        began = perf_counter()
        model = library.train(data, options)
        seconds = perf_counter() - began
        inside = model.contents
        rows = len(labels) if len(labels) > 2 else 1
        w = np.ctypeslib.as_array(inside.w, ((X.shape[1] + 1) * rows,)).reshape(-1, rows).T.copy()
        order = np.argsort(np.array(inside.label[: len(labels)]))
        if rows > 1:
            w = w[order]
        elif order[0] == 0:  # its first label is the positive one
            w = -w
        library.free_and_destroy_model(model)
        return seconds, (w[:, :-1], w[:, -1])

    return run


def linear_svc(X: sp.csr_matrix, y: np.ndarray, C: float = 1.0, *, loss: str, dual: bool) -> Run:
    from sklearn.svm import LinearSVC

    X = X.astype(np.float64)  # it computes in float64

    def run(tol: float) -> tuple[float, Weights]:
        svm = LinearSVC(loss=loss, dual=dual, C=C, tol=tol, max_iter=10000, random_state=0)
        began = perf_counter()
        svm.fit(X, y)
        return perf_counter() - began, (svm.coef_, svm.intercept_)

    return run


def logistic_regression(X: sp.csr_matrix, y: np.ndarray, C: float = 1.0, *, solver: str) -> Run:
    from sklearn.linear_model import LogisticRegression

    X = sp.hstack([X, np.ones((X.shape[0], 1), X.dtype)], format="csr")

    def run(tol: float) -> tuple[float, Weights]:
        svm = LogisticRegression(C=C, solver=solver, tol=tol, max_iter=10000, fit_intercept=False)
        began = perf_counter()
        svm.fit(X, y)
        return perf_counter() - began, (svm.coef_[:, :-1], svm.coef_[:, -1])

    return run


@dataclass(frozen=True)
class Program:
    """A program by name: what prepares it for some examples, labels and C, and its loosest tolerance."""

    name: str
    prepare: Callable[..., Run | None]
    start: float
    many: bool = True  # whether it is tried where there are many classes


def own(solver: str, loss: str, start: float, *, jobs: int = 1, many: bool = True) -> Program:
    name = f"dotadd {solver}" + (f", {jobs} threads" if jobs > 1 else "")
    return Program(name, partial(ours, loss=loss, solver=solver, jobs=jobs), start, many)


def programs_for(loss: str) -> list[Program]:
    """What is compared; the others' times are told as multiples of the first one's."""

    def of_liblinear(solver: int, start: float) -> Program:
        return Program(f"LIBLINEAR -s {solver}", partial(liblinear, solver=solver), start)

    if loss == "hinge":
        return [
            own("dcd", loss, 0.5),
            own("ocas", loss, 0.5, many=False),
            own("ocas", loss, 0.5, jobs=2, many=False),
            of_liblinear(3, 10.0),
            Program("scikit-learn LinearSVC", partial(linear_svc, loss=loss, dual=True), 10.0),
        ]
    smooth = [
        own("newton", loss, STEEPEST),
        own("newton", loss, STEEPEST, jobs=2),
        own("lbfgs", loss, STEEPEST, many=False),
        own("dcd", loss, 0.5),
    ]
    if loss == "squared_hinge":
        svc = Program("scikit-learn LinearSVC", partial(linear_svc, loss=loss, dual=False), 50.0)
        return [*smooth, of_liblinear(2, 50.0), of_liblinear(1, 10.0), svc]
    regressions = [
        Program(
            f"scikit-learn LogisticRegression, {solver}", partial(logistic_regression, solver=solver), 0.5, many=False
        )
        for solver in ("lbfgs", "newton-cg")
    ]  # of many classes it would make one problem
    return [*smooth, of_liblinear(0, 50.0), *regressions]


LOSSES = {"hinge": "Hinge loss", "squared_hinge": "Squared hinge loss", "logistic": "Logistic loss"}
COSTS_PROGRAMS = {
    "hinge": ["dotadd dcd", "dotadd ocas", "LIBLINEAR -s 3"],
    "squared_hinge": ["dotadd dcd", "dotadd newton", "LIBLINEAR -s 2"],
}


def best_known(task: Task) -> tuple[float, float]:
    """The smallest objective known, and a proven bound that none is below. A second solver helps out if one fails."""
    solvers, tol = (("dcd", "ocas"), 1e-4) if task.loss == "hinge" else (("newton", "dcd"), 1e-5)
    best, bound = np.inf, -np.inf
    for solver in solvers:
        stop = {"tol": tol, "max_passes": 10**6, "max_time": MAX_TIME}
        svm = LinearSVM(C=task.C, loss=task.loss, solver=solver, random_state=0, **stop).fit(task.X, task.y)
        results = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
        best = min(best, objective(task.X, task.y, (svm.coef_, svm.intercept_), task.loss, task.C))
        bound = max(bound, sum(result.dual for result in results))
        if all(result.converged for result in results):
            break
    return best, bound


def loosest(
    run: Callable[[float], tuple[float, Answer]], start: float, excess: Callable[[Answer], float], limit: float
) -> Timed:
    """The loosest rung of the ladder whose answer is good enough, found by leaps down and then by halves back up.

    Without one, the last that was tried: the ladder's end, or a run that took longer than the limit.
    """

    def at(rung: int) -> Timed:
        setting = float(f"{start / STEP**rung:.2g}")
        seconds, answer = run(setting)
        return Timed(seconds, setting, excess(answer))

    failed, rung = -1, 0
    while not (timed := at(rung)).reached:
        if timed.seconds > limit or timed.setting <= TIGHTEST:
            return timed
        failed, rung = rung, rung + STRIDE
    while rung - failed > 1:
        middle = (failed + rung) // 2
        tried = at(middle)
        if tried.reached:
            rung, timed = middle, tried
        else:
            failed = middle
    return timed


def measure(task: Task, programs: Sequence[Program], *, repeat: int = 5) -> tuple[dict[str, Timed], float]:
    """The time of each program that is installed, and how far below the best objective the optimum may be at most."""
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # about convergence
        best, bound = best_known(task)

        def excess(weights: Weights) -> float:
            return objective(*task[:2], weights, *task[2:]) / best - 1.0

        times: dict[str, Timed] = {}
        runs: dict[str, Run] = {}
        for program in programs:
            run = program.prepare(*task[:2], task.C)
            if run is not None:
                fastest = min((timed.seconds for timed in times.values() if timed.reached), default=np.inf)
                runs[program.name] = run
                times[program.name] = loosest(run, program.start, excess, max(1.0, GIVE_UP * fastest))
        for done in range(1, repeat):  # in turn, so that a slow moment of the machine is shared by all
            for name, run in runs.items():
                timed = times[name]
                if timed.reached and done * timed.seconds < PATIENCE:
                    times[name] = timed._replace(seconds=min(timed.seconds, run(timed.setting)[0]))
    return times, 1.0 - bound / best


def table(loss: str, names: Sequence[str], *, tiny: bool = False, repeat: int = 5) -> str:
    """All programs on all data sets, in Markdown."""
    programs = programs_for(loss)
    rows = {program.name: [program.name] for program in programs}
    widest = 0.0
    for name in names:
        some = [program for program in programs if program.many or name not in MANY_CLASSES]
        times, proven = measure(Task(*datasets.load(name, tiny), loss), some, repeat=repeat)
        widest = max(widest, proven)
        for program, cells in rows.items():
            cells.append(_cell(times.get(program), times[some[0].name]))
    lines = [_line(["", *names]), "|---" * (len(names) + 1) + "|", *map(_line, rows.values())]
    return "\n".join(lines) + _proof(widest)


def costs_table(loss: str, names: Sequence[str], *, tiny: bool = False, repeat: int = 3) -> str:
    """Seconds of some programs for C from small to large, in Markdown; the shortest are bold."""
    programs = [program for program in programs_for(loss) if program.name in COSTS_PROGRAMS[loss]]
    lines = [_line(["data", "", *(f"C = {C:g}" for C in COSTS)]), "|---" * (len(COSTS) + 2) + "|"]
    widest = 0.0
    for name in names:
        X, y = datasets.load(name, tiny)
        columns, proven = zip(*(measure(Task(X, y, loss, C), programs, repeat=repeat) for C in COSTS), strict=True)
        widest = max(widest, *proven)
        shortest = [min((timed.seconds for timed in times.values() if timed.reached), default=0.0) for times in columns]
        for program in programs:
            found = [times.get(program.name) for times in columns]
            cells = [
                f"**{_time(timed)}**" if timed and timed.reached and timed.seconds == seconds else _time(timed)
                for timed, seconds in zip(found, shortest, strict=True)
            ]
            lines.append(_line([name, program.name, *cells]))
    return "\n".join(lines) + _proof(widest)


def report(names: Sequence[str], *, tiny: bool = False, repeat: int = 5, losses: Sequence[str] = tuple(LOSSES)) -> str:
    """A table for each loss, and then those by C, in Markdown."""
    return "\n".join(_sections(names, tiny, repeat, losses))


def _sections(names: Sequence[str], tiny: bool, repeat: int, losses: Sequence[str]) -> Iterator[str]:
    for loss in losses:
        some = [name for name in names if loss == "hinge" or name not in MANY_CLASSES]
        if some:
            yield f"### {LOSSES[loss]}\n\n{table(loss, some, tiny=tiny, repeat=repeat)}"
    swept = [name for name in names if name in COSTS_NAMES]
    for loss in losses if swept else ():
        if loss in COSTS_PROGRAMS:
            title = f"### {LOSSES[loss]}, C from {COSTS[0]:g} to {COSTS[-1]:g}"
            yield f"{title}\n\n{costs_table(loss, swept, tiny=tiny, repeat=min(repeat, 3))}"


def _proof(gap: float) -> str:
    proven = f"{max(0.0, gap):.4%}"
    return f"\n\nDuality gaps prove that the best objectives known are above the optimum by {proven} at most.\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _time(timed: Timed | None) -> str:
    if timed is None:
        return ""
    time = f"{1e3 * timed.seconds:,.1f} ms"
    return time if timed.reached else f"not reached: +{timed.excess:.2%} in {time}"


def _cell(timed: Timed | None, first: Timed) -> str:
    if timed is None or not timed.reached:
        return _time(timed)
    ratio = f" **{timed.seconds / first.seconds:.2f}x**" if first.reached and timed is not first else ""
    return f"{_time(timed)}{ratio} ({timed.setting:g}, +{max(0.0, timed.excess):.2%})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--loss", action="append", choices=LOSSES, help="one of %(choices)s; may be given again")
    arguments = parser.parse_args()
    for section in _sections(arguments.names, arguments.tiny, arguments.repeat, arguments.loss or list(LOSSES)):
        print(section, flush=True)
