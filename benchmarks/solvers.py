"""dotadd's dcd, LIBLINEAR and scikit-learn, one thread each, on the same problem.

Hinge loss, C = 1, a regularised intercept, one against the rest where there are more than two classes. Each program
is run at tighter and tighter tolerances until its answer is within 0.1 % of the best objective known; the time is that
of the loosest tolerance that gets there, best of several runs taken in turn, without reading the data or compiling.
dotadd's time includes the proof, its duality gap recomputed from scratch; the others do not compute one.

    python -m benchmarks.solvers [--tiny] [--repeat N] [name ...]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets
from dotadd import LinearSVM

NAMES = ["a9a", "w8a", "ijcnn1", "sector", "synthetic"]
TOLERANCES = [float(f"{0.1 / 1.5**k:.2g}") for k in range(14)]
EPSILONS = [float(f"{3.0 / 1.5**k:.2g}") for k in range(22)]
WITHIN = 1e-3

Weights = tuple[np.ndarray, np.ndarray]  # (classes or 1, features) and the intercepts


class Timed(NamedTuple):
    seconds: float
    setting: float
    excess: float  # how far above the best objective, relative


def objective(X: sp.csr_matrix, y: np.ndarray, weights: Weights) -> float:
    """The sum of the binary problems' primal objectives, in float64."""
    w, b = (np.asarray(part, np.float64) for part in weights)
    labels = np.unique(y)
    targets = labels if len(labels) > 2 else labels[1:]
    output = X.astype(np.float64, copy=False) @ w.T + b
    signs = np.where(y[:, None] == targets, 1.0, -1.0)
    return 0.5 * float((w**2).sum() + (b**2).sum()) + float(np.maximum(0.0, 1.0 - signs * output).sum())


def ours(X: sp.csr_matrix, y: np.ndarray) -> Callable[[float], tuple[float, Weights]]:
    def run(tol: float) -> tuple[float, Weights]:
        began = perf_counter()
        svm = LinearSVM(tol=tol, random_state=0, n_jobs=1).fit(X, y)
        return perf_counter() - began, (svm.coef_, svm.intercept_)

    return run


def liblinear(X: sp.csr_matrix, y: np.ndarray) -> Callable[[float], tuple[float, Weights]] | None:
    try:
        from liblinear.liblinear import liblinear as library
        from liblinear.liblinear import parameter, problem
    except ImportError:
        return None
    data = problem(y.astype(np.float64), X.astype(np.float64, copy=False), bias=1)
    labels = np.unique(y)

    def run(epsilon: float) -> tuple[float, Weights]:
        options = parameter(f"-s 3 -c 1 -B 1 -e {epsilon} -q")
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


def scikit_learn(X: sp.csr_matrix, y: np.ndarray) -> Callable[[float], tuple[float, Weights]]:
    from sklearn.svm import LinearSVC

    X = X.astype(np.float64)

    def run(tol: float) -> tuple[float, Weights]:
        svm = LinearSVC(loss="hinge", dual=True, C=1.0, tol=tol, max_iter=10000, random_state=0)
        began = perf_counter()
        svm.fit(X, y)
        return perf_counter() - began, (svm.coef_, svm.intercept_)

    return run


def loosest(
    run: Callable[[float], tuple[float, Weights]],
    settings: list[float],
    judge: Callable[[Weights], float],
    best: float,
) -> Timed | None:
    """The loosest setting whose answer is good enough; None if none is."""
    for setting in settings:
        seconds, weights = run(setting)
        excess = judge(weights) / best - 1.0
        if excess <= WITHIN:
            return Timed(seconds, setting, excess)
    return None


def measure(names: list[str], *, tiny: bool = False, repeat: int = 5) -> Iterator[tuple[str, dict[str, Timed | None]]]:
    """For each data set the time of each program."""
    warnings.simplefilter("ignore")  # scikit-learn's about convergence
    for name in names:
        X, y = datasets.load(name, tiny)
        LinearSVM(max_passes=1).fit(X, y)  # compile
        tight = LinearSVM(tol=1e-4, max_passes=5000, random_state=0).fit(X, y)
        results = tight.result_ if isinstance(tight.result_, list) else [tight.result_]
        best = sum(result.dual for result in results)  # no objective is below it

        def judge(weights: Weights, X: sp.csr_matrix = X, y: np.ndarray = y) -> float:
            return objective(X, y, weights)

        programs = {"dotadd": ours(X, y), "LIBLINEAR": liblinear(X, y), "scikit-learn": scikit_learn(X, y)}
        runs = {program: run for program, run in programs.items() if run is not None}
        times = {
            program: loosest(run, TOLERANCES if program == "dotadd" else EPSILONS, judge, best)
            for program, run in runs.items()
        }
        for _ in range(repeat - 1):  # in turn, so that a slow moment of the machine is shared by all
            for program, run in runs.items():
                timed = times[program]
                if timed is not None:
                    times[program] = timed._replace(seconds=min(timed.seconds, run(timed.setting)[0]))
        yield name, times


def report(names: list[str], *, tiny: bool = False, repeat: int = 5) -> str:
    """The table, in Markdown."""
    lines = [
        "| data | dotadd | LIBLINEAR | scikit-learn | LIBLINEAR / dotadd | scikit-learn / dotadd |",
        "|---|---|---|---|---|---|",
    ]
    for name, times in measure(names, tiny=tiny, repeat=repeat):
        cells = [_milliseconds(times.get(program)) for program in ("dotadd", "LIBLINEAR", "scikit-learn")]
        ratios = [_ratio(times.get(program), times["dotadd"]) for program in ("LIBLINEAR", "scikit-learn")]
        lines.append("| " + " | ".join([name, *cells, *ratios]) + " |")
    return "\n".join(lines) + "\n"


def _milliseconds(timed: Timed | None) -> str:
    if timed is None:
        return "not reached"
    return f"{1e3 * timed.seconds:,.1f} ms (tol {timed.setting:g}, +{timed.excess:.2%})"


def _ratio(peer: Timed | None, own: Timed | None) -> str:
    return "" if peer is None or own is None else f"**{peer.seconds / own.seconds:.2f}x**"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(report(arguments.names, tiny=arguments.tiny, repeat=arguments.repeat))
