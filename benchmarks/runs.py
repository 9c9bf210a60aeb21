"""One training run on a file in a process of its own: its objective along the way, its answer, its peak of memory.

The clock runs from before the file is opened. What has to be compiled is compiled before, by a fit on a few rows of the
same kind; a run that compiled something all the same is made again. Dual objectives on the way are exact, up to
rounding, in every solver that is compared here, since each knows its dual variables and w; primal ones are estimates.
Primal, dual and gap of the answer are recomputed from scratch.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks import memory, streams
from benchmarks.streams import Stream

ROOT = Path(__file__).parents[1]
STREAMING = ("stream", "selective_block_minimization", "block_minimization")
SHORT = {"selective_block_minimization": "SBM", "block_minimization": "BM"}
WARM_ROWS = 3000
ATTEMPTS = 4  # at a run in which nothing is compiled
BEST: dict[str, Any] = {"tol": 1e-5, "dtype": "float64"}  # of a run that tells what the best objective is


class Point(NamedTuple):
    """How far a run is: seconds since it began, and the objectives then."""

    seconds: float
    primal: float
    dual: float
    gap: float


@dataclass(frozen=True)
class Outcome:
    """What a run has found, and what it took. `trace` is what it told on the way."""

    seconds: float
    primal: float
    dual: float
    gap: float
    passes: int
    converged: bool
    peak: int  # bytes
    score: float | None  # on held-out examples
    trace: list[Point]

    def within(self, share: float, best: float) -> float | None:
        """Seconds until the dual objective was so close to the best one; None if it never was."""
        close = (point.seconds for point in self.trace if best - point.dual <= share * best)
        return next(close, self.seconds if best - self.dual <= share * best else None)


class Best(NamedTuple):
    """The smallest primal and the largest dual objective that are known; the optimum lies between them."""

    primal: float
    dual: float


def fit(
    stream: Stream, solver: str, *, folder: Path, budget: int | None = None, score: bool = False, **options: Any
) -> Outcome:
    """Train by this solver with so many bytes for examples; `options` are LinearSVM's. `folder` is for small files."""
    memory = {} if budget is None else {"memory": budget}
    job = {
        "stream": asdict(stream),
        "warm": asdict(streams.write(stream.name, folder, WARM_ROWS, tiny=True)),
        "options": {"solver": solver, "random_state": 0, "max_passes": 10**6, **memory, **options},
        "score": score,
    }
    found = call("benchmarks.runs", job)
    return Outcome(**found | {"trace": [Point(*point) for point in found["trace"]]})


def call(module: str, job: dict[str, Any]) -> Any:
    """What a module makes of a job in a process of its own; again, if something had to be compiled."""
    run = [sys.executable, "-m", module, json.dumps(job, default=str)]
    for _ in range(ATTEMPTS):
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{module} failed with {job}:\n{done.stderr}")
        if "compiling" not in done.stderr:
            break
    return json.loads(done.stdout.splitlines()[-1])


def work(job: dict[str, Any]) -> Outcome:
    """What `fit` has done in another process."""
    from dotadd import LinearSVM

    stream, warm = stream_of(job["stream"]), stream_of(job["warm"])
    options = job["options"]
    small = {"max_time": 1.0, "tol": 0.5} | ({"memory": warm.budget(0.5)} if "memory" in options else {})
    trace: list[Point] = []

    def note(progress: Any, *_: int) -> None:
        trace.append(Point(perf_counter() - began, progress.primal, progress.dual, progress.gap))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that time is up is told by the outcome
        LinearSVM(stream.phi, **options | small).fit(str(warm.train))
        began = perf_counter()
        svm = LinearSVM(stream.phi, **options).fit(str(stream.train), on_progress=note)
    seconds = perf_counter() - began
    peak = memory.peak()
    found = svm.result_
    score = stream.score(svm.model_) if job["score"] else None
    certified = found.primal, found.dual, found.gap, found.passes, found.converged
    return Outcome(seconds, *certified, peak, score, trace)


def stream_of(record: dict[str, Any]) -> Stream:
    return Stream(**record | {"train": Path(record["train"]), "test": Path(record["test"])})


def best(stream: Stream, C: float, *, folder: Path, max_time: float) -> Best:
    """The best objectives of long runs in memory, in float64; kept in the folder.

    A second solver helps out where coordinate descent creeps.
    """
    record = folder / f"{stream.train.stem}_{stream.name}_C{C:g}_best_of_{max_time:g}s.json"
    if record.exists():
        return Best(**json.loads(record.read_text()))
    found = Best(math.inf, -math.inf)
    for solver in ("dcd", "ocas"):
        outcome = fit(stream, solver, folder=folder, C=C, max_time=max_time, **BEST)
        found = Best(min(found.primal, outcome.primal), max(found.dual, outcome.dual))
        if outcome.converged:
            break
    record.write_text(json.dumps(found._asdict()))
    return found


if __name__ == "__main__":
    print(json.dumps(asdict(work(json.loads(sys.argv[1])))))
