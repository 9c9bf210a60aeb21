"""Model: phi, weights, intercept, classes and how they were trained; and the one file that keeps them.

The file is in safetensors format: the tensors `w` and `intercept`, what phi has learned as tensors `phi.*`, and under
the key `dotadd` of its metadata a JSON record of everything else. Loading reads numbers and parses one feature
expression; nothing in the file is executed.
"""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from dotadd import block as blocks
from dotadd._jit import plain
from dotadd.atomic import replacing
from dotadd.batch import Batch, SparseRows
from dotadd.errors import DotaddError, ModelError
from dotadd.expand import Expansion
from dotadd.features.base import FeatureMap, Shape, require_kind
from dotadd.sources.base import Chunk, Source
from dotadd.threads import row_pieces, thread_count

FORMAT = 2  # 1 has no tensors of phi, and is still written where there are none
WEIGHT_TYPES: dict[str, type] = {"F32": np.float32, "F64": np.float64}
STATE_TYPES: dict[str, type] = WEIGHT_TYPES | {
    "U8": np.uint8, "I32": np.int32, "U32": np.uint32, "I64": np.int64, "U64": np.uint64,
}  # fmt: skip


class Model:
    """A trained classifier.

    `phi` is resolved for data of `shape`. `w` has one row for two classes (positive scores mean the second) and one
    row for each class otherwise; `intercept` has a number for each row of w. `training` records how w was found.
    """

    def __init__(
        self,
        phi: FeatureMap,
        shape: Shape,
        w: np.ndarray,
        intercept: np.ndarray,
        classes: np.ndarray,
        training: dict[str, Any] | None = None,
    ) -> None:
        self.phi, self.shape, self.classes = phi, shape, np.asarray(classes)
        self.w, self.intercept = np.atleast_2d(w), np.atleast_1d(np.asarray(intercept, np.float64))
        self.training: dict[str, Any] = jsonable(training or {})
        self.written: dict[str, str] = {}  # version and date, of a model that was loaded from a file
        rows = 1 if len(self.classes) == 2 else len(self.classes)
        if len(self.classes) < 2 or self.w.shape != (rows, phi.dim) or self.intercept.shape != (rows,):
            raise ModelError(
                f"{len(self.classes)} classes and {phi!r} with {phi.dim} features do not fit weights of shape "
                f"{self.w.shape} and an intercept of shape {self.intercept.shape}"
            )

    def decision_chunks(self, source: Source, *, n_jobs: int | None = None) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Chunk after chunk of a source with its scores; rows that cannot be used raise, or are left out.

        The next chunk is read while threads work on this one.
        """
        threads = thread_count(n_jobs)
        pool = ThreadPoolExecutor(threads)
        begun: deque[tuple[Chunk, list[Future[np.ndarray]]]] = deque()
        try:
            for chunk in source.chunks():
                chunk = usable_rows(self.fitting(chunk), self.phi, source)
                pieces = row_pieces(len(chunk), threads)
                begun.append((chunk, [pool.submit(self._scores, chunk.batch.slice(*piece)) for piece in pieces]))
                if len(begun) > 1:
                    done, scores = begun.popleft()
                    yield done, np.concatenate([piece.result() for piece in scores])
            for done, scores in begun:
                yield done, np.concatenate([piece.result() for piece in scores])
        finally:
            pool.shutdown(cancel_futures=True)

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Scores of anything `dotadd.open` takes: (n,) for two classes, (n, classes) for more."""
        from dotadd.sources import open as open_source

        return np.concatenate([scores for _, scores in self.decision_chunks(open_source(X), n_jobs=n_jobs)])

    def predict(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Labels of anything `dotadd.open` takes."""
        return self.classes[self.winners(self.decision_function(X, n_jobs=n_jobs))]

    def winners(self, scores: np.ndarray) -> np.ndarray:
        """Which class each score, or each row of scores, speaks for: its number in `classes`."""
        return (scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)

    def _scores(self, batch: Batch) -> np.ndarray:
        """Scores of a batch; each row of w is handed out as it lies, mapped from the file or in memory."""
        examples = Expansion(self.phi, batch, dtype=self.w.dtype.type)
        out = np.array(examples.dot(list(plain(self.w)))) + self.intercept[:, None]
        return out[0] if len(out) == 1 else np.ascontiguousarray(out.T)

    def fitting(self, chunk: Chunk) -> Chunk:
        """The chunk in the width that phi was made for.

        Sparse rows may be narrower. A file tells its width only by the largest index it holds, so features that the
        training data did not have are dropped from it, as in LIBLINEAR; arrays know their width, and it must fit.
        """
        chunk = replace(chunk, batch=chunk.batch.own())
        batch, expected = chunk.batch, self.shape.n_features
        require_kind(self.phi, batch)
        if expected is None or (found := Shape.of(batch).n_features) is None or found == expected:
            return chunk
        sparse = isinstance(batch, SparseRows)
        if sparse and found < expected:
            return chunk
        if isinstance(batch, SparseRows) and chunk.from_file:
            return replace(chunk, batch=_without_features_from(batch, expected))
        where = f"{chunk.path}: " if chunk.path else ""
        if self.shape.size is not None and (size := Shape.of(batch).size) is not None:
            (a, b), (c, d) = size, self.shape.size
            raise ModelError(f"{where}images of {a} x {b} pixels, and the model was made for {c} x {d}")
        raise ModelError(f"{where}X has {found} features, but Model is expecting {expected} features as input")

    def inspect(self, *, largest: int = 10) -> dict[str, Any]:
        """What is inside, as plain data: features, sizes, the training record, the largest weights."""
        return {
            "features": repr(self.phi),
            "shape": self.shape.to_dict(),
            "classes": self.classes.tolist(),
            "dim": self.phi.dim,
            "dtype": str(self.w.dtype),
            "intercept": self.intercept.tolist(),
            "nonzeros": [int(np.count_nonzero(row)) for row in self.w],
            "norm": [math.sqrt(blocks.squared_length(plain(row))) for row in self.w],
            "training": self.training,
            "written": self.written,
            "largest": [_largest(row, largest) for row in self.w],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; it appears whole or not at all."""
        from safetensors.numpy import save, save_file

        from dotadd._version import __version__

        state = {f"phi.{name}": np.ascontiguousarray(array) for name, array in self.phi.state().items()}
        header = {
            "format": FORMAT if state else 1,
            "version": __version__,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "features": repr(self.phi),
            "shape": self.shape.to_dict(),
            "classes": _classes_to_json(self.classes),
            "training": self.training,
        }
        with replacing(path) as temporary:
            tensors = {"w": np.ascontiguousarray(self.w), "intercept": self.intercept}
            metadata = {"dotadd": json.dumps(header, allow_nan=False)}
            if temporary.is_file():
                save_file(tensors | state, temporary, metadata=metadata)
            else:  # a pipe or a device, in whose place save_file would put a file
                temporary.write_bytes(save(tensors | state, metadata=metadata))


def load(path: str | os.PathLike[str], *, features: Mapping[str, type[FeatureMap]] | None = None) -> Model:
    """Read a model file. `features` names feature maps of your own that the model was trained with.

    Weights and indexes are mapped into memory, not read: what a prediction does not touch is never loaded.
    """
    from dotadd.features.expression import parse

    header, w, intercept, state = _read(Path(path))
    if header["format"] > FORMAT:
        raise ModelError(
            f"{path}: written by a newer dotadd ({header.get('version')}, format {header['format']}; this one reads "
            f"up to format {FORMAT}): update dotadd"
        )
    try:
        shape = Shape(**header["shape"])
        expression, training = str(header["features"]), dict(header["training"])
        classes = _classes_from_json(header["classes"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: the model's header is damaged ({type(error).__name__}: {error})") from error
    try:
        phi = parse(expression, dict(features or {})).resolve(shape)
    except DotaddError as error:
        raise ModelError(
            f"{path}: the model's features cannot be made: {error} (a map of your own is named with "
            "dotadd.load(path, features={'Name': Name}))"
        ) from error
    try:
        model = Model(_with_state(phi, state), shape, w, intercept, classes, training)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    model.written = {key: str(header.get(key)) for key in ("version", "date")}
    return model


def _with_state(phi: FeatureMap, state: dict[str, np.ndarray]) -> FeatureMap:
    try:
        return phi.with_state(state)
    except (KeyError, ValueError) as error:
        raise ModelError(f"what {phi!r} has learned is damaged ({type(error).__name__}: {error})") from error


def _read(path: Path) -> tuple[dict[str, Any], np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The header, the two tensors and the state of phi, of a file that has been found sound."""
    from safetensors import SafetensorError, safe_open

    with open(path, "rb") as file:
        try:
            with safe_open(path, framework="np"):  # checks that the header and the length of the file agree
                pass
        except SafetensorError as error:
            raise ModelError(f"{path}: not a model file, or cut short or damaged ({error})") from error
        size = int.from_bytes(file.read(8), "little")
        layout = json.loads(file.read(size))
    try:
        header = json.loads(layout["__metadata__"]["dotadd"])
        if not isinstance(header["format"], int):
            raise TypeError("format is not a number")
        tensors = [_mapped(path, 8 + size, layout[name], WEIGHT_TYPES) for name in ("w", "intercept")]
        state = {
            name.removeprefix("phi."): _mapped(path, 8 + size, layout[name], STATE_TYPES)
            for name in layout
            if name.startswith("phi.")
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: a safetensors file, but not a model of dotadd") from error
    return header, tensors[0], np.array(tensors[1]), state


def _mapped(path: Path, first: int, entry: dict[str, Any], types: dict[str, type]) -> np.ndarray:
    dtype, shape = types[entry["dtype"]], tuple(entry["shape"])
    if 0 in shape:
        return np.empty(shape, dtype)  # nothing cannot be mapped
    return np.memmap(path, dtype, "r", first + entry["data_offsets"][0], shape).view(np.ndarray)


def usable_rows(chunk: Chunk, phi: FeatureMap, source: Source) -> Chunk:
    """The rows of a chunk that phi can take. The first bad one raises, or with "skip" all are left out and counted."""
    bad: list[int] = []
    rest = 0
    while rest < len(chunk) and (found := phi.check(chunk.batch.slice(rest, len(chunk)))) is not None:
        error = chunk.error(rest + found.row, found.message, found.column)
        if source.on_bad_row != "skip":
            raise error
        source.skipped.add(error)
        bad.append(rest + found.row)
        rest = bad[-1] + 1
    return chunk.take(np.delete(np.arange(len(chunk)), bad)) if bad else chunk


def _without_features_from(batch: SparseRows, stop: int) -> SparseRows:
    span = slice(int(batch.offsets[0]), int(batch.offsets[-1]))
    known = batch.indices[span] < stop
    before = np.zeros(len(known) + 1, np.int64)
    np.cumsum(known, out=before[1:])
    values = None if batch.values is None else batch.values[span][known]
    offsets = before[batch.offsets - batch.offsets[0]]
    return SparseRows(offsets, batch.indices[span][known], values, stop, distinct=batch.distinct)


def _largest(row: np.ndarray, count: int) -> list[tuple[int, float]]:
    count = min(count, len(row))
    if not count:
        return []
    size = np.abs(row)
    slots = np.argpartition(size, len(row) - count)[len(row) - count :]
    slots = slots[np.lexsort((slots, -size[slots]))]
    return [(int(slot), float(row[slot])) for slot in slots if row[slot]]


def jsonable(value: Any) -> Any:
    """The same as JSON can say it: NumPy numbers and enums by value, numbers that are not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _classes_to_json(classes: np.ndarray) -> dict[str, Any]:
    values = classes.tolist()
    if classes.dtype.kind not in "biufUO" or not all(isinstance(value, bool | int | float | str) for value in values):
        raise ModelError("labels have to be numbers or strings to be kept in a model file")
    return {"dtype": classes.dtype.name if classes.dtype.kind in "biuf" else classes.dtype.kind, "values": values}


def _classes_from_json(record: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(record["dtype"])
    if dtype.kind not in "biufUO":
        raise ValueError(f"labels of type {dtype}")
    return np.array(record["values"], dtype)
