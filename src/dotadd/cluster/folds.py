"""Folds of rows that lie in parts: each part makes those of its own rows, and no machine knows those of all.

They are the folds of one machine that reads all files in their order. To deal rows out class by class, a part has to
know how many of each class lie before its own. To keep groups together, or to go by time, the values of a column are
counted on the way up the tree, and each value is given its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from dotadd.errors import DotaddError
from dotadd.problem.folds import Dealer, Folds, in_order

if TYPE_CHECKING:
    import pyarrow as pa

MOST_NUMBERS = 1 << 24  # of a column's values times classes: each part counts them, and the driver gets them


class Deal(Protocol):
    """Which part of the folds each row of a shard is in."""

    def parts(self, shard: int, codes: np.ndarray, values: pa.Array | None) -> np.ndarray:
        """Of the rows of this shard, whose classes are numbered, and which have these values in the column."""


@dataclass(frozen=True)
class ByClass:
    """Dealt out class by class; before[s, c] rows of class c lie before those of shard s."""

    count: int
    seed: int
    before: np.ndarray

    def parts(self, shard: int, codes: np.ndarray, values: pa.Array | None) -> np.ndarray:
        return Dealer(self.count, self.seed, self.before[shard]).deal(codes)


@dataclass(frozen=True)
class InOrder:
    """Cut before these numbers of rows; before[s] rows lie before those of shard s."""

    cuts: np.ndarray
    before: np.ndarray

    def parts(self, shard: int, codes: np.ndarray, values: pa.Array | None) -> np.ndarray:
        return np.searchsorted(self.cuts, self.before[shard] + np.arange(len(codes)), side="right")


@dataclass(frozen=True)
class ByValue:
    """By a column, each value of which has its place."""

    values: pa.Array
    places: np.ndarray

    def parts(self, shard: int, codes: np.ndarray, values: pa.Array | None) -> np.ndarray:
        import pyarrow.compute as pc

        return self.places[pc.index_in(values, self.values).to_numpy(zero_copy_only=False)]


@dataclass(frozen=True)
class Tries:
    """The values of C that are tried, and folds whose rows each part deals out for itself."""

    Cs: tuple[float, ...]
    trains: np.ndarray
    tests: np.ndarray
    deal: Deal
    column: str | None = None
    """The column that the deal goes by, if it does."""

    def __len__(self) -> int:
        """How many machines there are for each binary problem."""
        return len(self.Cs) * len(self.trains)

    def folds(self, shard: int, codes: np.ndarray, values: pa.Array | None) -> Folds:
        """Those of the rows of a shard."""
        return Folds(self.deal.parts(shard, codes, values).astype(np.uint16), self.trains, self.tests)


class Counted(NamedTuple):
    """The values of a column in their order, and how many rows of each class have each of them."""

    column: str
    values: pa.Array
    sizes: np.ndarray

    @classmethod
    def of(cls, column: str, values: pa.ChunkedArray, codes: np.ndarray, classes: int) -> Counted:
        """Of rows whose classes are numbered."""
        known, ranks = in_order(values, column)
        sizes = np.bincount(ranks * classes + codes, minlength=len(known) * classes)
        return cls(column, known, sizes.reshape(len(known), classes))._bounded()

    @classmethod
    def joined(cls, parts: list[Counted]) -> Counted:
        """The rows of all of these."""
        import pyarrow as pa

        column = parts[0].column
        try:
            known, ranks = in_order(pa.chunked_array([part.values for part in parts]), column)
        except (TypeError, pa.ArrowInvalid):
            kinds = " and ".join(sorted({str(part.values.type) for part in parts}))
            raise DotaddError(f"column {column!r} has values of different kinds in different files: {kinds}") from None
        sizes = np.zeros((len(known), parts[0].sizes.shape[1]), np.int64)
        np.add.at(sizes, ranks, np.concatenate([part.sizes for part in parts]))
        return cls(column, known, sizes)._bounded()

    def _bounded(self) -> Counted:
        if self.sizes.size > MOST_NUMBERS:
            raise DotaddError(
                f"column {self.column!r} has more than {MOST_NUMBERS // self.sizes.shape[1]:,} values: on a cluster "
                "folds are made by a column that has fewer"
            )
        return self
