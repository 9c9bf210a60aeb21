"""dotadd warmup: compile now what would otherwise compile in the middle of the first runs."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def warmup() -> None:
    """Compile now what later runs need, so that they begin at once.

    The machine code is kept in the user's cache folder, or in the one that
    DOTADD_CACHE_DIR names, as in:

        DOTADD_CACHE_DIR=/var/cache/dotadd dotadd warmup
    """
    from dotadd._jit import CACHE_FOLDER

    started = time.perf_counter()
    for number, (name, job) in enumerate(JOBS.items(), 1):
        sys.stdout.write(f"{number}/{len(JOBS)} {name} ... ")
        sys.stdout.flush()
        at = time.perf_counter()
        job()
        sys.stdout.write(f"{time.perf_counter() - at:.1f} s\n")
    where = f"kept in {CACHE_FOLDER}" if CACHE_FOLDER else "not kept: no cache folder can be written"
    sys.stdout.write(f"compiled in {time.perf_counter() - started:.1f} s, {where}\n")


def _vectors() -> None:
    """Sparse and dense rows in the types that NumPy, SciPy and files bring, and each solver."""
    import numpy as np
    import scipy.sparse

    from dotadd.estimators import LinearSVM

    y = np.array([1, -1] * 4)
    for dtype in (np.float32, np.float64):
        dense = np.eye(8, 3, dtype=dtype)
        for data in (dense, scipy.sparse.csr_matrix(dense)):
            LinearSVM(random_state=0).fit(data, y).predict(data)
    LinearSVM(solver="sgd", random_state=0).fit(dense, y)


def _libsvm() -> None:
    from dotadd.estimators import LinearSVM

    with tempfile.TemporaryDirectory() as folder:
        for name, lines in {"binary": "+1 1:1 2:1\n-1 2:1\n", "values": "+1 1:0.5 2:2\n-1 2:1.25\n"}.items():
            path = Path(folder, name)
            path.write_text(lines * 4)
            LinearSVM(random_state=0).fit(str(path))


def _expression(expression: str, strings: list[str]) -> Callable[[], None]:
    def job() -> None:
        from dotadd.estimators import LinearSVM
        from dotadd.features.expression import parse

        LinearSVM(parse(expression), random_state=0).fit(strings, [1, -1]).predict(strings)

    return job


JOBS: dict[str, Callable[[], None]] = {
    "vectors": _vectors,
    "LIBSVM text": _libsvm,
    "k-mers": _expression("WeightedSpectrum(3) + WeightedDegree(4).hashed(6)", ["ACGTACGT", "TTGCAAGC"]),
    "text": _expression("NGrams((3, 4)) + BagOfWords()", ["some words", "other words"]),
}
