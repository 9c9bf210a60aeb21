"""What a user writes, and their type checker accepts: test_shipping holds it against mypy --strict, release/check.py
against pyright as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dotadd
from dotadd import (
    BagOfWords,
    Category,
    Column,
    DataError,
    DotaddError,
    FeatureMap,
    KernelModel,
    KernelSVM,
    KernelSVMCV,
    LinearSVM,
    LinearSVMCV,
    Model,
    Number,
    Source,
    Spectrum,
    WeightedDegree,
)
from dotadd.core.block import Block
from dotadd.data.batches import Strings
from dotadd.data.ragged import Batch


def fitted(texts: list[str], labels: list[str]) -> LinearSVM:
    svm = LinearSVM("NGrams((2, 4)).normalized()", C=10, random_state=0)
    return svm.fit(texts, labels)


def stacked() -> FeatureMap:
    return Spectrum(3) + 2 * WeightedDegree(20).hashed(12).normalized()


def columns() -> FeatureMap:
    return Column("about", BagOfWords().tfidf()) + Number("age").scaled("std") + Category("job") * Category("town")


def chosen(X: np.ndarray, y: np.ndarray) -> float:
    svm = LinearSVMCV("Linear()", Cs=[0.1, 1.0], cv=3).fit(X, y)
    best: float = svm.C_
    return best


def machine(X: np.ndarray, y: np.ndarray) -> KernelModel:
    assert KernelSVMCV("rbf", Cs=[1.0]).fit(X, y).score(X, y) >= 0
    return KernelSVM("rbf", C=5, gamma=0.5).fit(X, y).model_


def stored(svm: LinearSVM, path: Path) -> Model | KernelModel:
    svm.save(path)
    return dotadd.load(path)


def told(svm: LinearSVM) -> str:
    gap: float | None = svm.result_.gap
    reason: str = svm.result_.reason.value
    return f"{reason}: gap {gap}, {svm.coef_.size:,} weights of dotadd {dotadd.__version__}"


def rows_of(path: str) -> int:
    source: Source = dotadd.open(path, label="y")
    try:
        return sum(len(chunk.batch) for chunk in source.chunks(1 << 20))
    except DataError as error:
        raise SystemExit(str(error)) from None
    except DotaddError:
        return 0


def labels_of(model: Model | KernelModel, texts: list[str]) -> list[str]:
    return [str(label) for label in model.predict(texts)]


class Letters(FeatureMap):
    """A map of one's own."""

    takes = (Strings,)
    distinct = True

    def __repr__(self) -> str:
        return "Letters()"

    @property
    def dim(self) -> int:
        return 256

    def bound(self, batch: Batch) -> int:
        return 256

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert isinstance(batch, Strings)
        for j, row in enumerate(rows):
            letters, counts = np.unique(np.frombuffer(batch[row], np.uint8), return_counts=True)
            block.append(j, letters, counts)


def checked() -> None:
    dotadd.check_feature_map(Letters(), Strings.from_list(["banana", ""]))
