"""Choosing C: five folds and ten values of C, from strings in memory to a machine with the best of them.

The same folds and the same values of C for both. dotadd proves a gap of 1 % for each fold and C, and trains to 0.1 %
in the end; "fits" is its time over that of one fit at the C that it chose. scikit-learn is GridSearchCV of
HashingVectorizer (TfidfVectorizer where the map weighs so) and LinearSVC with the hinge, tolerances as they come, on
two processes; it takes long, so that there are as many texts as `--rows` says. One run of each, since each is many
fits; compiling is apart.

python -m benchmarks.choosing [--only NAMES] [--rows N] [--tiny]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from time import process_time
from unittest.mock import patch

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

from benchmarks.everyday import TASKS, Task, timed
from dotadd import LinearSVM, LinearSVMCV
from dotadd.problem.on_disk import OnDisk

FOLDS, VALUES, ROWS = 5, 10, 2000
SHARE = 0.1  # of the bytes of texts, that the memory for them has


def ours(task: Task, X: list[str], y: np.ndarray, jobs: int) -> tuple[LinearSVMCV, list[str]]:
    """The machine, and the cells of its line."""
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    svm = LinearSVMCV(task.phi, Cs=VALUES, cv=splits, random_state=0, n_jobs=jobs)
    few = np.arange(0, len(y), max(1, len(y) // 200))
    LinearSVMCV(task.phi, Cs=3, cv=2, random_state=0, n_jobs=jobs).fit([X[k] for k in few], y[few])  # compiled
    seconds = timed(lambda: svm.fit(X, y))
    one = min(timed(lambda: LinearSVM(task.phi, C=svm.C_, random_state=0, n_jobs=jobs).fit(X, y)) for _ in range(3))
    name = f"dotadd, {jobs} thread{'s' * (jobs > 1)}"
    return svm, [name, f"{seconds:.2f}", f"{seconds / one:.1f}", f"{svm.C_:g}", f"{svm.scores_.mean(axis=0).max():.4f}"]


def theirs(task: Task, X: list[str], y: np.ndarray, Cs: Sequence[float], jobs: int) -> list[str]:
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
    from sklearn.svm import LinearSVC

    assert task.words is not None, "these are texts"
    weighed = ".tfidf()" in task.phi
    maker = TfidfVectorizer(**task.words) if weighed else HashingVectorizer(alternate_sign=False, **task.words)
    pipeline = Pipeline([("features", maker), ("svm", LinearSVC(loss="hinge", random_state=0))])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    grid = GridSearchCV(pipeline, {"svm__C": list(Cs)}, cv=folds, n_jobs=jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = timed(lambda: grid.fit(X, y))
    return ["GridSearchCV", f"{seconds:.2f}", "", f"{grid.best_params_['svm__C']:g}", f"{grid.best_score_:.4f}"]


def counted(work: Callable[[], object]) -> tuple[float, int]:
    """Seconds of computing, and how often data was read."""
    readings, pieces = 0, OnDisk.pieces

    def noted(*args: object, **options: object) -> object:
        nonlocal readings
        readings += 1
        return pieces(*args, **options)  # type: ignore[arg-type]

    with patch.object(OnDisk, "pieces", noted), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is read while training runs
        began = process_time()
        work()
        return process_time() - began, readings


def streamed(task: Task, X: list[str], y: np.ndarray) -> list[str]:
    """The cells of a line."""
    memory = int(SHARE * sum(len(text.encode()) for text in X))
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    options = {"solver": "stream", "memory": memory, "random_state": 0, "n_jobs": 1}
    svm = LinearSVMCV(task.phi, Cs=VALUES, cv=splits, **options)
    few = np.arange(0, len(y), max(1, len(y) // 200))
    small = LinearSVMCV(task.phi, Cs=2, cv=2, **options | {"memory": memory // 5})
    counted(lambda: small.fit([X[k] for k in few], y[few]))  # compiled
    seconds, readings = counted(lambda: svm.fit(X, y))
    one, once = counted(lambda: LinearSVM(task.phi, C=svm.C_, **options).fit(X, y))
    cells = [f"{memory / 1e6:.2f}", f"{seconds:.2f}", f"{readings}", f"{seconds / one:.1f}", f"{readings / once:.1f}"]
    return [*cells, f"{svm.C_:g}", f"{svm.scores_.mean(axis=0).max():.4f}"]


def report_streamed(only: Sequence[str] = (), *, rows: int = ROWS, tiny: bool = False) -> str:
    """The same from disk."""
    out = ["| texts | memory, MB | s | readings | fits by s | fits by readings | C | accuracy |", "|---" * 8 + "|"]
    for task in TASKS.values():
        if task.words is None or (only and task.name not in only):
            continue
        (X, y), _ = task.rows(tiny)
        X, y = X[:rows], y[:rows]
        out.append("| " + " | ".join([f"{task.name}, {len(y):,}", *streamed(task, X, y)]) + " |")
        sys.stderr.write(out[-1] + "\n")
    return "\n".join(out) + "\n"


def report(only: Sequence[str] = (), *, rows: int = ROWS, tiny: bool = False) -> str:
    """The table, in Markdown."""
    out = ["| texts | program | s | fits | C | accuracy | ratio |", "|---|---|--:|--:|--:|--:|--:|"]
    for task in TASKS.values():
        if task.words is None or (only and task.name not in only):
            continue
        (X, y), _ = task.rows(tiny)
        X, y = X[:rows], y[:rows]
        svm, line = ours(task, X, y, 1)
        jobs = 1 if tiny else 2  # processes take longer to begin than all the rest
        lines = [line, ours(task, X, y, 2)[1], theirs(task, X, y, svm.cv_results_["param_C"], jobs)]
        for line in lines:
            ratio = float(line[1]) / float(lines[1][1])
            out.append("| " + " | ".join([f"{task.name}, {len(y):,}", *line, f"{ratio:.2f}"]) + " |")
            sys.stderr.write(out[-1] + "\n")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of tasks of benchmarks.everyday, with ; between them")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--streamed", action="store_true", help="from disk, with memory for a tenth")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    names = [name.strip() for name in options.only.split(";") if name.strip()]
    made = report_streamed if options.streamed else report
    sys.stdout.write(made(names, rows=options.rows, tiny=options.tiny))
