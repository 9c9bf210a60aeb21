"""Linear: phi(z) = z for sparse rows, dense rows and images."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.core import block as blocks
from dotadd.core.block import Block
from dotadd.data.batches import Batch, DenseRows, Images, SparseRows
from dotadd.errors import FeatureError
from dotadd.features.base import BadRow, Origins, Shape
from dotadd.features.leaves import Leaf, checked_int

if TYPE_CHECKING:
    from dotadd.features.polynomial import Polynomial


class Linear(Leaf):
    """The vector itself. Rows that lie in memory are handed out as they are, without a copy.

    n_features: the number of columns; by default that of the training data. Narrower rows are welcome, wider refused.
    """

    takes = (SparseRows, DenseRows, Images)
    keeps = False

    def __init__(self, *, n_features: int | None = None) -> None:
        self.n_features = None if n_features is None else checked_int("n_features", n_features, 0, 2**62)

    @property
    def dim(self) -> int:
        if self.n_features is None:
            raise FeatureError("Linear() does not know the number of columns yet: give n_features=, or call fit(X)")
        return self.n_features

    def resolve(self, shape: Shape) -> Linear:
        if self.n_features is not None:
            return self
        resolved = copy.copy(self)
        resolved.n_features = shape.n_features
        return resolved

    def is_dense(self, shape: Shape) -> bool:
        return shape.kind in (DenseRows.kind, Images.kind)

    def check(self, batch: Batch) -> BadRow | None:
        return too_wide(batch, self.dim)

    @property
    def checks_rows(self) -> bool:
        return False

    def bound(self, batch: Batch) -> int | np.ndarray:
        return row_lengths(batch)

    def view(self, batch: Batch) -> Block | None:
        return vectors(batch)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        source = vectors(batch)
        _copy_rows(
            source.start, source.end, source.indices, source.values, plain(rows),
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        source = vectors(batch)
        beyond = nth - (source.end - source.start)[rows]
        inside = beyond < 0
        names = Origins.unnamed(repr(self), len(rows))
        at = nth[inside]
        names.position[inside] = at if source.indices is None else source.indices[source.start[rows[inside]] + at]
        return names, np.where(inside, -1, beyond)

    def invert(self, slots: np.ndarray) -> Origins:
        names = Origins.unnamed(repr(self), len(slots))
        names.position[:] = slots
        return names

    def names(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str | None]:
        return super().names(slots, checked_columns(self, columns))


def checked_columns(phi: Linear | Polynomial, columns: Sequence[str] | None) -> Sequence[str] | None:
    """The names of the columns, if there are as many as columns."""
    if columns is not None and phi.n_features not in (None, len(columns)):
        raise FeatureError(f"input_features has {len(columns)} names, and {phi.n_features} columns were seen")
    return columns


def vectors(batch: Batch) -> Block:
    """The rows of a batch of vectors as they lie in memory."""
    if isinstance(batch, SparseRows):
        return blocks.view(batch.offsets, batch.indices, batch.values, distinct=batch.distinct)
    assert isinstance(batch, DenseRows)
    return blocks.view(batch.offsets, None, batch.values.reshape(-1), distinct=True)


def row_lengths(batch: Batch) -> int | np.ndarray:
    """How many values are written down in each row of a batch of vectors."""
    if isinstance(batch, SparseRows):
        return np.diff(batch.offsets)
    assert isinstance(batch, DenseRows)
    return batch.n_features


def too_wide(batch: Batch, n_features: int) -> BadRow | None:
    """The complaint about vectors with more columns than a map was made for."""
    assert isinstance(batch, SparseRows | DenseRows)
    if batch.n_features <= n_features:
        return None
    return BadRow(0, None, f"rows have {batch.n_features} features, and the model was made for {n_features}")


def too_large(batch: Batch, largest: float, what: str) -> BadRow | None:
    """The complaint about the first value of vectors that is beyond `largest`."""
    source = vectors(batch)
    if source.values is None or not len(source):
        return None
    first = int(source.start[0])
    values = source.values[first : int(source.end[-1])]
    if not len(values) or (values.max() <= largest and values.min() >= -largest):
        return None
    at = first + int(np.argmax((values > largest) | (values < -largest)))
    row = int(np.searchsorted(source.end, at, side="right"))
    column = None if source.indices is not None else at - int(source.start[row]) + 1
    message = f"value {source.values[at]:.6g} is too large: {what} overflow beyond {largest:.3g}; scale the data"
    return BadRow(row, column, message)


@kernel
def _copy_rows(start, end, indices, values, rows, base, scale, cursor, out_indices, out_values):
    for j in range(len(rows)):
        lo = np.uint64(start[rows[j]])
        p = np.uint64(cursor[j])
        for k in range(lo, np.uint64(end[rows[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            out_indices[p] = np.uint64(base) + slot
            out_values[p] = scale if values is None else scale * values[k]
            p += np.uint64(1)
        cursor[j] = p
