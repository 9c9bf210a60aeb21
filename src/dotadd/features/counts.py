"""Maps in the slots of another map whose rows have no index twice, and other values; and those of the counts of a row.

phi.binary()   1 for what occurs, however often
phi.log()      1 + ln of the count: sublinear tf
phi.sqrt()     the square root of the count

The counts are those of all equal indices of a row together, so <phi(z), phi(z')> is not a sum over pairs of letters or
words any more, and no map can write its values one after the other: rows are written, merged and then changed.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from dotadd._jit import kernel
from dotadd.core.block import Block
from dotadd.core.kept import merge
from dotadd.data.batches import Batch
from dotadd.errors import FeatureError
from dotadd.features.base import FeatureMap, Origins
from dotadd.features.learning import bounds_of, ids_of
from dotadd.features.methods import in_brackets
from dotadd.features.outer import OuterMap

HOWS = ("binary", "log", "sqrt")


class Revalued(OuterMap):
    """A map in the slots of phi. Equal indices of a row are merged before `change` sees the values."""

    distinct = True
    own: ClassVar[tuple[str, ...]] = ()
    """The names of its parameters, beside phi."""

    def __init__(self, phi: FeatureMap) -> None:
        if not isinstance(phi, FeatureMap):
            raise FeatureError(f"phi has to be a feature map, and not {phi!r}")
        self.phi, self.takes = phi, phi.takes

    def change(self, first: np.ndarray, block: Block) -> None:
        """Change the values of the rows that begin at `first`, and multiply them with block.scale."""
        raise NotImplementedError

    def call(self) -> str:
        """The method that makes it of phi, as an expression has it."""
        raise NotImplementedError

    def around(self, phi: FeatureMap) -> Self:
        """The same around another map, with what was learned."""
        twin = copy.copy(self)
        twin.phi = phi
        return twin

    def _description(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("phi", *self.own)}

    def __repr__(self) -> str:
        return f"{in_brackets(self.phi)}.{self.call()}"

    def __eq__(self, other: object) -> bool:
        """Expressions tell what Python does not: of max_df, 1 is a row and 1.0 are all."""
        return isinstance(other, Revalued) and self.phi == other.phi and self.call() == other.call()

    __hash__ = FeatureMap.__hash__

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        first = block.end[: len(rows)].copy()  # what a stack wrote before is not ours
        fill_merged(self.phi, batch, rows, Block(block.start, block.end, block.indices, block.values, base=block.base))
        self.change(first, block)

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        distinct, at = np.unique(rows, return_inverse=True)
        some = batch.take(distinct)
        ids, offsets = ids_of(self.phi, some, np.arange(len(some)), bounds_of(self.phi, some))
        places = [self.written(ids[lo:hi]) for lo, hi in pairwise(offsets.tolist())]
        lengths = np.array([len(some) for some in places], np.int64)[at]
        inside = nth < lengths
        names = Origins.unnamed(repr(self), len(rows))
        of_phi = np.array([places[at[h]][nth[h]] for h in np.flatnonzero(inside)], np.int64)
        names.put(np.flatnonzero(inside), self.phi.origins(batch, rows[inside], of_phi)[0])
        return names, np.where(inside, -1, nth - lengths)

    def written(self, ids: np.ndarray) -> np.ndarray:
        """Which of the non-zeros that phi writes for a row are the first ones of their slots, and are written."""
        return np.sort(np.unique(ids, return_index=True)[1])


def fill_merged(phi: FeatureMap, batch: Batch, rows: np.ndarray, block: Block) -> None:
    """phi of these rows where the rows of the block end, equal indices merged."""
    first = block.end[: len(rows)].copy()
    phi.fill(batch, rows, block)
    if not phi.distinct and ((view := phi.view(batch)) is None or not view.distinct):
        merge(first, block.end, block.indices, block.values, len(rows))


class ChangedCounts(Revalued):
    """The counts of phi as they are after `how`: "binary", "log" or "sqrt".

    Negative values keep their sign: f(-v) = -f(v). What adds up to 0 stays 0.
    """

    own = ("how",)

    def __init__(self, phi: FeatureMap, how: str) -> None:
        super().__init__(phi)
        if how not in HOWS:
            raise FeatureError(f"how has to be one of {', '.join(HOWS)}, and not {how!r}")
        self.how = how

    def call(self) -> str:
        return f"{self.how}()"

    def change(self, first: np.ndarray, block: Block) -> None:
        _change(first, block.end, block.values, HOWS.index(self.how), block.scale)


@kernel
def _change(first, end, values, how, scale):
    for j in range(len(first)):
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            value = np.float64(values[k])
            if value != 0.0:
                size = 1.0 if how == 0 else 1.0 + np.log(abs(value)) if how == 1 else np.sqrt(abs(value))
                values[k] = scale * (size if value > 0.0 else -size)
