"""Model: phi, weights, intercept, classes and how they were trained; and `load`, which reads the file of any model.

`model/file.py` describes the file; for these models it holds the tensors `w` and `intercept`, what phi has learned as
tensors `phi.*`, and the expression of phi.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dotadd._jit import plain
from dotadd._util.compressed import decompressed, reading
from dotadd.core import block as blocks
from dotadd.data.batches import Batch
from dotadd.errors import DataError, ModelError
from dotadd.features.base import FeatureMap, Shape, require_kind
from dotadd.model.file import PLAIN, STATE, WEIGHT_TYPES, Classifier, Record, state_tensors
from dotadd.model.stored import Stored
from dotadd.problem.examples import InMemory
from dotadd.problem.survey import usable_rows
from dotadd.sources.base import Chunk, Source
from dotadd.sources.table import Layout

if TYPE_CHECKING:
    from dotadd.model.kernel import KernelModel

LSGKM = b"svm_type"  # how its models begin


class Model(Classifier):
    """A trained linear classifier.

    `phi` is resolved for data of `shape`. `w` has one row for two classes (positive scores mean the second) and one
    row for each class, or for each of several labels that a row may have, otherwise; `intercept` has a number for each
    row of w. `training` records how w was found.
    """

    def __init__(
        self,
        phi: FeatureMap,
        shape: Shape,
        w: np.ndarray,
        intercept: np.ndarray,
        classes: np.ndarray,
        training: Record | None = None,
        columns: Layout | None = None,
        untrained: Sequence[int] = (),
        several: str | None = None,
    ) -> None:
        super().__init__(shape, classes, training, columns, untrained, several)
        self.phi = phi
        self.w, self.intercept = np.atleast_2d(w), np.atleast_1d(np.asarray(intercept, np.float64))
        self._plain: tuple[np.ndarray, list[np.ndarray]] | None = None
        rows = self.problems
        if (
            len(self.classes) < (2 if several is None else 1)
            or self.w.shape != (rows, phi.dim)
            or self.intercept.shape != (rows,)
        ):
            raise ModelError(
                f"{len(self.classes)} classes and {phi!r} with {phi.dim} features do not fit weights of shape "
                f"{self.w.shape} and an intercept of shape {self.intercept.shape}"
            )

    @property
    def problems(self) -> int:
        return 1 if self.two else len(self.classes)

    def never_predicted(self) -> np.ndarray:
        return np.array(self.untrained, np.int64)

    def _usable(self, chunk: Chunk, source: Source) -> Chunk:
        return usable_rows(self.fitting(chunk), self.phi, source)

    def _scores(self, batch: Batch, threads: int) -> np.ndarray:
        """Scores of a batch; each row of w is handed out as it lies, mapped from the file or in memory."""
        examples = InMemory(self.phi, batch, dtype=self.w.dtype.type, threads=threads, once=True)
        out = np.array(examples.dot(self._weights())) + self.intercept[:, None]
        if self.untrained:
            out[self.never_predicted()] = -np.inf
        return out[0] if self.two else np.ascontiguousarray(out.T)

    def _weights(self) -> list[np.ndarray]:
        """The rows of w as kernels take them, for as long as it is the same w."""
        if self._plain is None or self._plain[0] is not self.w:
            self._plain = self.w, list(plain(self.w))
        return self._plain[1]

    def __getstate__(self) -> Record:
        return self.__dict__ | {"_plain": None}  # w is there once

    def fitting(self, chunk: Chunk) -> Chunk:
        own = chunk.batch.own()
        chunk = chunk if own is chunk.batch else replace(chunk, batch=own)
        require_kind(self.phi, chunk.batch, chunk.path)
        return super().fitting(chunk)

    def inspect(self, *, largest: int = 10) -> Record:
        """What is inside, as plain data: features, sizes, the training record, the largest weights."""
        return {
            "features": repr(self.phi),
            "shape": self.shape.to_dict(),
            "classes": self.classes.tolist(),
            "several_labels": self.several,
            "separator": self.read_as.get("separator"),
            "dim": self.phi.dim,
            "dtype": str(self.w.dtype),
            "intercept": self.intercept.tolist(),
            "nonzeros": [int(np.count_nonzero(row)) for row in self.w],
            "norm": [math.sqrt(blocks.squared_length(plain(row))) for row in self.w],
            "training": self.training,
            "written": self.written,
            **self.decisive(),
            "largest": [_largest(row, largest) for row in self.w],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; it appears whole or not at all."""
        state = state_tensors(self.phi)
        tensors = {"w": self.w, "intercept": self.intercept} | state
        self._write(path, STATE if state else PLAIN, {"features": repr(self.phi)}, tensors)


def load(
    path: str | os.PathLike[str], *, features: Mapping[str, type[FeatureMap]] | None = None
) -> Model | KernelModel:
    """Read a model file, or one of LS-GKM (`x.model.txt`, also compressed). `features` names feature maps of your own
    that the model was trained with.

    The file is read through once, for its checksum. Weights, indexes and support vectors are mapped into memory: what a
    prediction does not touch takes none.
    """
    if _is_lsgkm(path):
        from dotadd.model.lsgkm import load_lsgkm

        return load_lsgkm(path)
    stored, own = Stored(path), dict(features or {})
    if "kernel" in stored.record:
        from dotadd.model.kernel import kernel_model  # linear models know no kernel machines

        return kernel_model(stored, own)
    from dotadd.features.expression import parse

    w, intercept = (stored.tensor(name, WEIGHT_TYPES) for name in ("w", "intercept"))
    if "features" not in stored.record:
        raise ModelError(f"{stored.path}: the model's header is damaged: it names no features")
    text = str(stored.record["features"])
    phi = stored.map_of(stored.made("features", lambda: parse(text, stored.maps(own)).resolve(stored.shape)))
    try:
        model = Model(
            phi, stored.shape, w, np.array(intercept), stored.classes, stored.training, stored.columns,
            stored.untrained, stored.several,
        )  # fmt: skip
    except ModelError as error:
        raise ModelError(f"{stored.path}: {error}") from error
    stored.complete(model)
    return model


def _is_lsgkm(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as the models of LS-GKM, and of LIBSVM, do; it may be compressed."""
    try:
        with decompressed(os.fspath(path)) as (_, file), reading(os.fspath(path)):
            return file.read(len(LSGKM)) == LSGKM
    except DataError:
        return False


def _largest(row: np.ndarray, count: int) -> list[tuple[int, float]]:
    count = min(count, len(row))
    if not count:
        return []
    size = np.abs(row)
    slots = np.argpartition(size, len(row) - count)[len(row) - count :]
    slots = slots[np.lexsort((slots, -size[slots]))]
    return [(int(slot), float(row[slot])) for slot in slots if row[slot]]
