"""Learners that see examples as a stream and prove nothing: how long until they predict as well as our model.

scikit-learn's SGDClassifier gets chunks of the same Arrow file by partial_fit; where features have to be written out as
a matrix, that is not counted. Vowpal Wabbit reads its own binary cache, which is written beforehand and not counted,
one pass at a time, and goes on from its saved state; loading and saving that is counted. Both minimise the hinge loss
with the penalty that C stands for, 1 / (C n) for each example, and are otherwise left as they come. Every quarter of a
pass (Vowpal Wabbit: every pass) the clock stands still while the held-out examples are scored. Each learner has a
process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

import dotadd
from benchmarks import memory, runs, streams
from benchmarks.paper.materialized import matrix
from benchmarks.streams import Stream
from dotadd.data.batches import Batch, DenseRows, SparseRows
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.linear import Linear
from dotadd.model.linear import Model
from dotadd.sources.base import Chunk

NONZEROS = 1 << 22  # of a chunk of features
LOOKS = 4  # at the held-out examples in a pass
LABELS = np.array([-1, 1])


@dataclass(frozen=True)
class Learned:
    """How well a learner predicted after so many seconds and passes: when it reached the target, or at its best."""

    reached: bool
    seconds: float
    passes: float
    score: float
    peak: int | None  # bytes


def learn(program: str, stream: Stream, C: float, target: float, *, folder: Path, max_time: float) -> Learned | str:
    """A learner's way to the target; or why there is none."""
    if program == "Vowpal Wabbit" and importlib.util.find_spec("vowpalwabbit") is None:
        return "Vowpal Wabbit is not installed: pip install vowpalwabbit"
    job = {
        "program": program, "stream": asdict(stream), "C": C, "target": target, "folder": folder, "max_time": max_time,
    }  # fmt: skip
    if program == "Vowpal Wabbit":
        write_caches(stream, folder)
    return Learned(**runs.call("benchmarks.online", job))


def work(job: dict[str, Any]) -> Learned:
    """What `learn` has done in another process."""
    stream = runs.stream_of(job["stream"])
    way = {"SGDClassifier": sgd_way, "Vowpal Wabbit": vw_way}[job["program"]]
    best: Learned | None = None
    for seconds, passes, score in way(stream, job["C"], Path(job["folder"])):
        if best is None or score > best.score:
            best = Learned(score >= job["target"], seconds, passes, score, None)
        if best.reached or seconds > job["max_time"]:
            break
    assert best is not None
    return Learned(**asdict(best) | {"peak": memory.peak()})


Way = Iterator[tuple[float, float, float]]  # seconds, passes and score, again and again


class Clock:
    """Seconds that some calls have taken together."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        began = perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            self.seconds += perf_counter() - began


def sgd_way(stream: Stream, C: float, folder: Path) -> Way:
    from sklearn.linear_model import SGDClassifier

    phi, shape = space(stream)
    svm = SGDClassifier(loss="hinge", alpha=1.0 / (C * stream.rows), random_state=0)
    timed, done, looked = Clock(), 0, 0
    while True:
        chunks = dotadd.open(stream.train).chunks()
        while (chunk := timed(next, chunks, None)) is not None:
            for X, y in features(chunk, phi):
                timed(svm.partial_fit, X, y, classes=LABELS)
                done += len(y)
                if done * LOOKS >= (looked + 1) * stream.rows:
                    looked = done * LOOKS // stream.rows
                    model = Model(phi, shape, svm.coef_.astype(np.float32), svm.intercept_, LABELS)
                    yield timed.seconds, done / stream.rows, stream.score(model)


def space(stream: Stream) -> tuple[FeatureMap, Shape]:
    """The features of a data set."""
    first = next(iter(dotadd.open(stream.train).chunks()))
    shape = Shape.of(first.batch)
    return (Linear() if stream.phi is None else dotadd.parse(stream.phi)).resolve(shape), shape


def features(chunk: Chunk, phi: FeatureMap) -> Iterator[tuple[Any, np.ndarray]]:
    """The features of a chunk as a matrix, some rows at a time."""
    assert chunk.y is not None
    rows = max(1, NONZEROS // int(np.max(phi.bound(chunk.batch))))
    for first in range(0, len(chunk), rows):
        some = slice(first, min(first + rows, len(chunk)))
        yield written_out(phi, chunk.batch.slice(some.start, some.stop)), chunk.y[some]


def written_out(phi: FeatureMap, batch: Batch) -> np.ndarray | sp.csr_matrix:
    """The matrix of phi; numbers are handed on as they are."""
    if isinstance(phi, Linear) and isinstance(batch, DenseRows):
        return batch.values
    if isinstance(phi, Linear) and isinstance(batch, SparseRows) and batch.values is not None:
        first, stop = int(batch.offsets[0]), int(batch.offsets[-1])
        parts = batch.values[first:stop], batch.indices[first:stop], batch.offsets - first
        return sp.csr_matrix(parts, shape=(len(batch), phi.dim))
    return matrix(phi, batch)


def vw_way(stream: Stream, C: float, folder: Path) -> Way:
    train, test = caches(stream, folder)
    truth = np.concatenate([chunk.y for chunk in dotadd.open(stream.test).chunks()])
    model, scores = str(train.with_suffix(".model")), str(train.with_suffix(".scores"))
    penalty = f"{1.0 / (C * stream.rows):.9g}"
    learning = ["--save_resume", "-f", model, "--loss_function", "hinge", "--l2", penalty, "-b", bits(stream)]
    timed, passes = Clock(), 0
    while True:
        timed(vw, "--cache_file", str(train), *learning, *(["-i", model] if passes else []))
        passes += 1
        vw("--cache_file", str(test), "-t", "-i", model, "-r", scores)
        yield timed.seconds, passes, streams.judged(stream.metric, truth, np.loadtxt(scores, usecols=0, ndmin=1))


def vw(*options: str) -> None:
    """Vowpal Wabbit over a file, once."""
    from vowpalwabbit import Workspace

    Workspace(arg_list=["--quiet", "--passes", "1", *options]).finish()


def caches(stream: Stream, folder: Path) -> tuple[Path, Path]:
    """Vowpal Wabbit's files of the examples to train on and to test on."""
    train, test = (folder / f"{path.stem}_{stream.name}.cache" for path in (stream.train, stream.test))
    return train, test


def bits(stream: Stream) -> str:
    """Room for every feature and the constant; numbers are their own hashes, so that no two share a weight."""
    return str(max(18, int(space(stream)[0].dim).bit_length()))


def write_caches(stream: Stream, folder: Path) -> None:
    """The examples as text, piped into Vowpal Wabbit, which writes its caches."""
    phi, _ = space(stream)
    code = "import sys; from benchmarks.online import vw; vw('--noop', '-d', '/dev/stdin', '-k', *sys.argv[1:])"
    for path, cache in zip((stream.train, stream.test), caches(stream, folder), strict=True):
        if cache.exists():
            continue
        partial = cache.with_suffix(".partial")
        run = [sys.executable, "-c", code, "-b", bits(stream), "--cache_file", str(partial)]
        with subprocess.Popen(run, stdin=subprocess.PIPE, cwd=runs.ROOT) as reader:
            assert reader.stdin is not None
            for chunk in dotadd.open(path).chunks():
                for X, y in features(chunk, phi):
                    reader.stdin.write(text(sp.csr_matrix(X), y))
        if reader.returncode:
            raise SystemExit(f"Vowpal Wabbit did not write {cache}")
        os.replace(partial, cache)


def text(X: sp.csr_matrix, y: np.ndarray) -> bytes:
    """Rows in Vowpal Wabbit's format."""
    pairs = [f"{index}:{value:.6g}" for index, value in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    rows = zip(y.tolist(), X.indptr.tolist(), X.indptr[1:].tolist(), strict=False)
    return "".join(f"{label:g} | {' '.join(pairs[first:stop])}\n" for label, first, stop in rows).encode()


if __name__ == "__main__":
    print(json.dumps(asdict(work(json.loads(sys.argv[1])))))
