"""LIBLINEAR on the features of a dotadd model, written out as a matrix: the way that COFFIN is there to avoid.

The matrix is scipy's CSR in float64, of which LIBLINEAR makes a copy of its own. LIBLINEAR (-s 3 -c 1 -B 1, hinge loss)
gets the loosest tolerance with which its objective is within 1 % of the best, as dotadd's is; how good the best can be
at most is told by dotadd's dual objective. It runs in a process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp

import dotadd
from benchmarks import memory, solvers
from benchmarks.paper.coffin import ROOT, TOLERANCE
from dotadd.data.batches import Batch
from dotadd.features.base import FeatureMap
from dotadd.features.checks import materialize
from dotadd.model.linear import Model

EPSILONS = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]  # 0.1 is LIBLINEAR's own choice
BYTES = 12 + 16  # of a non-zero: index and value in CSR, and again, aligned, in LIBLINEAR
CHUNK = 500  # rows that are written out at a time


@dataclass(frozen=True)
class Materialized:
    """What LIBLINEAR took. Objectives are computed in float64 from the matrix: LIBLINEAR's, and that of dotadd's w."""

    nonzeros: int
    materialize: float  # seconds for the matrix and LIBLINEAR's copy
    seconds: float  # of training
    epsilon: float
    objective: float
    ours: float
    peak: int  # bytes


def run(data: Path, model: Path, output: Path) -> Materialized | str:
    """LIBLINEAR on the data that the model was trained on, its weights put into a model; or why that cannot be."""
    call = [sys.executable, "-m", "benchmarks.paper.materialized", str(data), str(model), str(output)]
    done = subprocess.run(call, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    return found if isinstance(found, str) else Materialized(**found)


def work(data: str, model: str, output: str) -> Materialized | str:
    """What `run` has done in another process."""
    ours, chunk = dotadd.load(model), dotadd.open(data).load()
    assert chunk.y is not None
    if solvers.liblinear(sp.csr_matrix(np.eye(2)), np.array([1.0, -1.0])) is None:  # compiles
        return "LIBLINEAR is not installed"
    materialize(ours.phi, chunk.batch.slice(0, 1))  # compiles
    needed, free = BYTES * int(np.max(ours.phi.bound(chunk.batch))) * len(chunk), available()
    if needed > free:
        return f"needs {needed / 1e9:,.0f} GB, and {free / 1e9:,.0f} GB are free"

    began = perf_counter()
    X = matrix(ours.phi, chunk.batch)
    solve = solvers.liblinear(X, chunk.y)
    assert solve is not None
    seconds = perf_counter() - began
    epsilon, trained, weights = loosest(solve, lambda weights: solvers.objective(X, chunk.y, weights), bound(ours))
    peak = memory.peak()
    w, intercept = weights
    Model(ours.phi, ours.shape, w.astype(np.float32), intercept, ours.classes).save(output)
    theirs, own = (solvers.objective(X, chunk.y, each) for each in (weights, (ours.w, ours.intercept)))
    return Materialized(X.nnz, seconds, trained, epsilon, theirs, own, peak)


def bound(ours: Model) -> float:
    """An objective up to here is within the tolerance of the best."""
    return ours.training["dual"][0] / (1.0 - TOLERANCE)


def loosest(
    solve: Callable[[float], tuple[float, solvers.Weights]], judge: Callable[[solvers.Weights], float], limit: float
) -> tuple[float, float, solvers.Weights]:
    """The first tolerance whose answer is good enough (the last if none is), its seconds and its weights."""
    for epsilon in EPSILONS:
        seconds, weights = solve(epsilon)
        objective = judge(weights)
        sys.stderr.write(f"  LIBLINEAR -e {epsilon:g}: {seconds:.1f} s, objective / limit {objective / limit:.4f}\n")
        if objective <= limit:
            break
    return epsilon, seconds, weights


def matrix(phi: FeatureMap, batch: Batch) -> sp.csr_matrix:
    """phi of all rows, written out some rows at a time into memory that is taken only as it fills."""
    room = len(batch) * int(np.max(phi.bound(batch)))
    values, indices = np.empty(room, np.float64), np.empty(room, np.int32)
    ends, end = np.zeros(len(batch) + 1, np.int32), 0
    for first in range(0, len(batch), CHUNK):
        some = materialize(phi, batch.slice(first, min(first + CHUNK, len(batch))))
        part = slice(end, end + some.nnz)
        values[part], indices[part] = some.data, some.indices
        ends[first + 1 : first + 1 + some.shape[0]] = end + some.indptr[1:]
        end = part.stop
    return sp.csr_matrix((values[:end], indices[:end], ends), shape=(len(batch), phi.dim))


def available() -> float:
    """Bytes of memory that are free; without end where the system does not tell."""
    path = Path("/proc/meminfo")
    return 1024.0 * int(re.findall(r"MemAvailable:\s*(\d+)", path.read_text())[0]) if path.exists() else np.inf


if __name__ == "__main__":
    answer = work(*sys.argv[1:])
    print(json.dumps(answer if isinstance(answer, str) else asdict(answer)))
