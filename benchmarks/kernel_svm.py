"""Kernel SVMs: double chunking against LIBSVM as scikit-learn ships it, and against scikit-learn-intelex if installed.

mnist is digit 0 against the rest, 60,000 images with values from 0 to 1, the RBF kernel with the sigma^2 = 784 / 24 and
the C = 5 of the double chunking paper and its 50 MB for kernel values: nearly all support vectors are free. noisy is
20,000 x 100 normal values, labelled by a direction and noise, C = 1 and 200 MB: nearly half of the examples are support
vectors, most of them at their bound. All programs stop at a violation of 0.001 and may use all cores (SVC uses one).

Seconds are of a fit without reading the data or compiling, the best of several that take turns; a program that takes
longer than a minute is run once. Ours include the proof: all outputs are computed anew from the answer. The dual
objective of each answer is computed by one and the same code, the number of kernel values (in millions) counted.

    python -m benchmarks.kernel_svm [--tiny] [--rows N] [--repeat N] [name ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

import dotadd
from benchmarks import datasets
from dotadd._util.threads import thread_count
from dotadd.data.batches import DenseRows
from dotadd.kernel_svm.chunking import chunking
from dotadd.kernel_svm.double_chunking import double_chunking
from dotadd.kernel_svm.kernels import RBF
from dotadd.kernel_svm.problem import KernelProblem, KernelResult, KernelSettings
from dotadd.kernel_svm.smo import smo

MNIST = datasets.FOLDER / "mnist" / "train-images-idx3-ubyte.gz"
TOL = 1e-3
PATIENCE = 60.0  # seconds of a run that is repeated
COLUMNS = ["", "seconds", "times ours", "dual objective", "support vectors", "kernel values, 10^6"]


class Task(NamedTuple):
    """What all programs are to solve, with so many bytes for kernel values."""

    X: np.ndarray
    y: np.ndarray
    C: float
    gamma: float
    memory: int


class Answer(NamedTuple):
    """The time it took, alpha y of all examples, b, and the kernel values computed, where that is known."""

    seconds: float
    signed: np.ndarray
    intercept: float
    values: int | None = None


def digits(path: Path, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Images of an idx file as rows of values from 0 to 1, and their labels."""
    data = dotadd.open(datasets.existing(path)).load()
    images = np.asarray(data.batch.values)[:rows]  # type: ignore[attr-defined]
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255), np.asarray(data.y)[:rows]


def mnist(rows: int | None = None) -> Task:
    X, y = digits(MNIST, rows)
    return Task(X, np.where(y == 0, 1, -1), 5.0, 24 / (2 * X.shape[1]), 50_000_000)


def noisy(rows: int | None = None, features: int = 100) -> Task:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows or 20_000, features)).astype(np.float32)
    output = X @ rng.normal(size=features) / np.sqrt(features) + 0.5 * rng.normal(size=len(X))
    return Task(X, np.where(output > 0, 1, -1), 1.0, 1 / features, 200_000_000)


TASKS: dict[str, Callable[[int | None], Task]] = {"mnist": mnist, "noisy": noisy}


def ours(task: Task, solver: Callable[[KernelProblem, KernelSettings], KernelResult]) -> Answer:
    began = perf_counter()
    sign = task.y.astype(np.int8)
    gram = RBF(task.gamma).gram(DenseRows(task.X), threads=thread_count(None))
    settings = KernelSettings(tol=TOL, memory=task.memory)
    result = solver(KernelProblem(gram, sign, np.full(len(sign), task.C)), settings)
    seconds = perf_counter() - began
    counts = result.counts
    values = counts.get("values", counts.get("rows", 0) * len(sign))
    return Answer(seconds, result.alpha * sign, result.intercept, values)


def peer(task: Task, svc: type) -> Answer:
    machine = svc(C=task.C, gamma=task.gamma, tol=TOL, cache_size=task.memory / 1e6)
    began = perf_counter()
    machine.fit(task.X, task.y)
    seconds = perf_counter() - began
    signed = np.zeros(len(task.y))
    signed[machine.support_] = np.asarray(machine.dual_coef_)[0]
    return Answer(seconds, signed, float(np.asarray(machine.intercept_)[0]))


def programs() -> dict[str, Callable[[Task], Answer]]:
    """Ours, and the peers that are installed."""
    from sklearn.svm import SVC

    found: dict[str, Callable[[Task], Answer]] = {
        "double_chunking": lambda task: ours(task, double_chunking),
        "chunking": lambda task: ours(task, chunking),
        "smo": lambda task: ours(task, smo),
        "scikit-learn SVC": lambda task: peer(task, SVC),
    }
    try:
        from sklearnex.svm import SVC as IntelSVC
    except ImportError:
        return found
    return found | {"scikit-learn-intelex SVC": lambda task: peer(task, IntelSVC)}


def dual(task: Task, signed: np.ndarray) -> float:
    """The dual objective of an answer."""
    support = np.flatnonzero(signed)
    gram = RBF(task.gamma).gram(DenseRows(task.X), threads=thread_count(None))
    f = gram.times(support, signed[support], support)
    return float(np.abs(signed).sum() - 0.5 * signed[support] @ f)


def measure(task: Task, names: Sequence[str] | None = None, *, repeat: int = 3) -> dict[str, tuple[Answer, float]]:
    """For each program its fastest answer and the dual objective of that."""
    some = {name: run for name, run in programs().items() if names is None or name in names}
    warm = Task(task.X[:200], np.where(np.arange(200) % 2 == 0, 1, -1)[: len(task.X)], task.C, task.gamma, task.memory)
    for run in some.values():
        run(warm)
    best: dict[str, Answer] = {}
    for _ in range(repeat):
        for name, run in some.items():
            if name not in best or best[name].seconds < PATIENCE:
                answer = run(task)
                if name not in best or answer.seconds < best[name].seconds:
                    best[name] = answer
    return {name: (answer, dual(task, answer.signed)) for name, answer in best.items()}


def report(names: Sequence[str] = (), *, tiny: bool = False, rows: int | None = None, repeat: int = 3) -> str:
    """The tables, in Markdown."""
    lines = []
    for name in names or TASKS:
        task = noisy(300, 10) if tiny else TASKS[name](rows)
        found = measure(task, repeat=1 if tiny else repeat)
        first = next(iter(found.values()))[0].seconds
        lines += [f"{name}, {len(task.y):,} x {task.X.shape[1]}, {task.memory / 1e6:g} MB:\n", _line(COLUMNS)]
        lines.append("|---" * len(COLUMNS) + "|")
        for program, (answer, objective) in found.items():
            values = "" if answer.values is None else f"{answer.values / 1e6:,.1f}"
            cells = [f"{answer.seconds:.2f}", f"{answer.seconds / first:.1f}", f"{objective:.4f}"]
            lines.append(_line([program, *cells, f"{np.count_nonzero(answer.signed):,}", values]))
        lines.append("")
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(TASKS)}; all by default")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print(report(given.names, tiny=given.tiny, rows=given.rows, repeat=given.repeat))
