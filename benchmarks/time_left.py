"""The time left that is told while training runs, held against the truth.

At a hundred moments between the first tenth and the end of a run, what was told last, run down since, is compared with
the end: told is at how many of them there was anything to tell, off the median of |told end - end| / whole time, and
within 30 % the share of what was told that is no more off than that.

python -m benchmarks.time_left [--tiny]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks import datasets
from dotadd import KernelSVM, LinearSVM, LinearSVMCV
from dotadd.estimators.course import AnyCourse, Course, Ends, FoldsCourse, KernelCourse
from dotadd.estimators.time_left import Rate
from dotadd.genome.scan import scan
from dotadd.genome.simulate import splice_windows

MOMENTS = 100
WITHIN = 0.3


@dataclass
class Log:
    """What was told in a run, and when it ended."""

    began: float = field(default_factory=perf_counter)
    told: list[tuple[float, float | None]] = field(default_factory=list)
    whole: float = 0.0

    def note(self, left: float | None) -> None:
        self.told.append((perf_counter() - self.began, left))

    def end(self) -> None:
        self.whole = perf_counter() - self.began

    def errors(self) -> list[float | None]:
        """Of each moment by how much of the whole time what was told is off; None where nothing was."""
        found: list[float | None] = []
        for at in np.linspace(0.1, 1.0, MOMENTS, endpoint=False) * self.whole:
            before = [point for point in self.told if point[0] <= at]
            if not before or before[-1][1] is None:
                found.append(None)
                continue
            when, left = before[-1]
            found.append(abs(max(at, when + left) - self.whole) / self.whole)
        return found


def followed(svm: LinearSVM | KernelSVM | LinearSVMCV, X: object, y: object, kind: type[AnyCourse]) -> Log:
    """A fit, and what its course told after each word of the solver."""
    course = kind(Ends(svm.tol, getattr(svm, "max_passes", None), svm.max_time))
    log = Log()

    def on_progress(progress: object, which: int, problems: int) -> None:
        course.note(progress, which, problems)
        log.note(course.left())

    svm.fit(X, y, on_progress=on_progress)
    log.end()
    return log


def scanned(tiny: bool) -> Log:
    """A scan of random letters by a machine of simulated splice sites."""
    X, y = splice_windows(200, seed=0)
    svm = LinearSVM("WeightedDegree(20).hashed(12)", tol=0.1, n_jobs=1).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "genome.fa")
        letters = np.random.default_rng(0).choice(list("ACGT"), 20_000 if tiny else 8_000_000)
        path.write_text(">one\n" + "".join(letters) + "\n")
        log, rate = Log(), Rate()

        def on_progress(share: float) -> None:
            rate.note(share)
            log.note(rate.left())

        scan(svm.model_, str(path), str(Path(folder, "out.bed")), signal="acceptor", n_jobs=1, on_progress=on_progress)
        log.end()
    return log


def runs(tiny: bool) -> Iterator[tuple[str, str, Callable[[], Log]]]:
    """What is run, on what, and the run itself; compiled and in the cache of the disk by an earlier one."""
    loss = {"newton": "squared_hinge", "lbfgs": "logistic"}
    for name in ("a9a", "w8a", "ijcnn1", "synthetic"):
        X, y = datasets.load(name, tiny)
        for solver in ("dcd", "ocas", "newton", "lbfgs"):
            svm = LinearSVM(solver=solver, loss=loss.get(solver, "hinge"), random_state=0, n_jobs=1)
            yield solver, name, lambda svm=svm, X=X, y=y: followed(svm, X, y, Course)
        if name == "synthetic":
            continue
        some = slice(0, 200 if tiny else 10_000)
        kernel = KernelSVM(gamma=0.05, C=10.0, random_state=0, n_jobs=1)
        yield "KernelSVM", name, lambda svm=kernel, X=X[some], y=y[some]: followed(svm, X, y, KernelCourse)
        folds = LinearSVMCV(cv=5, random_state=0, n_jobs=1, refit=True)
        yield "LinearSVMCV", name, lambda svm=folds, X=X, y=y: followed(svm, X, y, FoldsCourse)
        if not tiny:
            stream = LinearSVM(solver="stream", memory="2MB", random_state=0, n_jobs=1)
            path = str(datasets.path(name))
            yield "stream", name, lambda svm=stream, path=path: followed(svm, path, None, Course)
    yield "scan", "random letters", lambda: scanned(tiny)


def report(*, tiny: bool = False) -> str:
    lines = ["| run | data | seconds | told | off | within 30 % |", "|---|---|---:|---:|---:|---:|"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, data, run in runs(tiny):
            run()
            log = run()
            errors = log.errors()
            known = [error for error in errors if error is not None]
            good = np.mean([error <= WITHIN for error in known]) if known else np.nan
            off = f"{median(known):.0%}" if known else "-"
            told = f"{len(known) / MOMENTS:.0%}"
            lines.append(f"| {what} | {data} | {log.whole:.2f} | {told} | {off} | {good:.0%} |")
            sys.stderr.write(f"{lines[-1]}\n")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    sys.stdout.write(report(tiny=parser.parse_args().tiny))
