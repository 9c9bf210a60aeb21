"""A number for each slot that is learned from the training rows, and kept in the model file.

phi.idf()          each slot times its inverse document frequency; .tfidf() has rows of length one as well
phi.frequent(..)   without the slots that too few or too many rows have
phi.scaled(how)    (x - center) * factor, for numbers of different scales

Learning is a reduction over all rows (totals.py), and so the same in memory, on disk and on a cluster. Slots are those
of phi, hashed or not; where phi learns itself, it does so first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import numpy as np

from dotadd._jit import exact_kernel, inner, kernel, plain
from dotadd._util.expression import call_repr
from dotadd.core.block import Block
from dotadd.data.batches import LARGEST_VALUE, Batch
from dotadd.errors import FeatureError
from dotadd.features.base import FeatureMap, Holes, Origins, Shape, sub_state
from dotadd.features.counts import Revalued, fill_merged
from dotadd.features.forms import checked_state
from dotadd.features.learning import Learner, bounds_of
from dotadd.features.leaves import checked_flag
from dotadd.features.methods import in_brackets
from dotadd.features.quartiles import Quartiles
from dotadd.features.totals import Frequencies, Largest, Moments, Totals

TOGETHER = 1 << 16  # non-zeros that are noted at a time, so that they stay in the cache


class SlotLearner(Learner):
    """Lets the map inside learn, and then notes its rows. make(map inside, totals) puts it together, without totals as
    long as they are not known."""

    def __init__(
        self, make: Callable[[FeatureMap, Totals | None], FeatureMap], phi: FeatureMap, totals: Totals
    ) -> None:
        self._make, self._inside, self._learns, self._totals = make, phi.learner(), phi.learns, totals
        self._fixed: FeatureMap | None = None  # the map inside, once it has learned all there is
        self._known = False

    @property
    def revised(self) -> bool:
        """What rows have is not known before all were seen."""
        return True

    @property
    def early(self) -> bool:
        return self._known

    @property
    def sums(self) -> bool:
        return self._inside.sums

    def see(self, batch: Batch) -> None:
        if self._fixed is None:
            self._inside.see(batch)
            if self._learns:
                return
            self._fixed = self._inside.done()
        if not len(batch):
            return
        phi, totals = self._fixed, self._totals
        totals.begin(phi.dim, phi.holes().values)
        phi, bounds = phi.prepared(batch), bounds_of(phi, batch)
        room = np.cumsum(bounds)
        first = used = 0
        while first < len(batch):
            stop = max(first + 1, int(np.searchsorted(room, used + TOGETHER, side="right")))
            block = Block.scratch(bounds[first:stop], phi.dim, dtype=totals.dtype)
            fill_merged(phi, batch, np.arange(first, stop), block)
            totals.note(block)
            first, used = stop, int(room[stop - 1])

    def join(self, other: Learner) -> None:
        assert isinstance(other, SlotLearner)
        if self._learns and self._fixed is None:
            self._inside.join(other._inside)
        else:
            self._fixed = self._fixed or other._fixed
            self._totals.join(other._totals)

    def again(self) -> bool:
        if self._fixed is None:
            if not self._inside.again():
                self._fixed = self._inside.done()
            return True
        self._totals.begin(self._fixed.dim, self._fixed.holes().values)  # where no row was seen
        self._known = not self._totals.again()
        return not self._known

    def done(self) -> FeatureMap:
        phi = self._inside.done() if self._fixed is None else self._fixed
        return self._make(phi, self._totals if self._known else None)


class Learned(Revalued):
    """A map with numbers for the slots of phi."""

    numbers: np.ndarray | None = None
    """A factor for each slot, as float32; what has the factor 0 is left out."""

    def totals(self) -> Totals:
        """What has to be known of the rows."""
        raise NotImplementedError

    def numbers_of(self, totals: Totals) -> np.ndarray:
        """What it makes of that."""
        raise NotImplementedError

    @property
    def learns(self) -> bool:
        return True

    def learner(self) -> Learner:
        return SlotLearner(self._made, self.phi, self.totals())

    def _made(self, phi: FeatureMap, totals: Totals | None) -> FeatureMap:
        return self._with(phi, None if totals is None else self.numbers_of(totals))

    def _with(self, phi: FeatureMap, numbers: np.ndarray | None) -> Self:
        twin = self.around(phi)
        twin.numbers = numbers
        return twin

    def known(self) -> np.ndarray:
        """The numbers, if there are any."""
        if self.numbers is None:
            raise FeatureError(f"{self!r} has not seen the training data yet: call fit(X), or learn(batch)")
        return self.numbers

    def state(self) -> dict[str, np.ndarray]:
        return {f"phi.{name}": array for name, array in self.phi.state().items()} | {"factor": self.known()}

    def with_state(self, state: Mapping[str, np.ndarray]) -> FeatureMap:
        phi = self.phi.with_state(sub_state(state, "phi"))
        return self._with(phi, plain(checked_state(state, "factor", (np.float32,), phi.dim)))

    def change(self, first: np.ndarray, block: Block) -> None:
        _weigh(first, block.end, block.indices, block.values, self.known(), block.base, block.scale)

    def written(self, ids: np.ndarray) -> np.ndarray:
        places = super().written(ids)
        return places[self.known()[ids[places]] != 0.0]


class Idf(Learned):
    """phi with each slot times its idf, as scikit-learn defines it: ln((1 + n) / (1 + df)) + 1 of n rows of which df
    have something there; if not `smooth`, ln(n / df) + 1. What no row has counts then as if one had."""

    own = ("smooth",)

    def __init__(self, phi: FeatureMap, smooth: bool = True) -> None:
        super().__init__(phi)
        self.smooth = checked_flag("smooth", smooth)

    def _arguments(self) -> str:
        return "" if self.smooth else "smooth=False"

    def call(self) -> str:
        return f"idf({self._arguments()})"

    def normalized_repr(self) -> str:
        return f"{in_brackets(self.phi)}.tfidf({self._arguments()})"

    def totals(self) -> Totals:
        return Frequencies()

    def numbers_of(self, totals: Totals) -> np.ndarray:
        counts, one = totals.arrays["counts"], float(self.smooth)
        most = np.maximum(totals.rows + one, 1.0)
        return (np.log(most / np.maximum(counts + one, 1.0)) + 1.0).astype(np.float32)


class Frequent(Learned):
    """phi without the slots that fewer than min_df or more than max_df of the training rows have: whole numbers are
    rows, others a share of all rows, as in scikit-learn."""

    own = ("min_df", "max_df")

    def __init__(self, phi: FeatureMap, min_df: float = 1, max_df: float = 1.0) -> None:
        super().__init__(phi)
        self.min_df, self.max_df = _rows_or_share("min_df", min_df), _rows_or_share("max_df", max_df)

    def call(self) -> str:
        given = {"min_df": (self.min_df, 1), "max_df": (self.max_df, 1.0)}
        different = {name: value for name, (value, usual) in given.items() if repr(value) != repr(usual)}
        return call_repr("frequent", **different)

    def totals(self) -> Totals:
        return Frequencies()

    def numbers_of(self, totals: Totals) -> np.ndarray:
        counts, n = totals.arrays["counts"], totals.rows
        least, most = (df if isinstance(df, int) else df * n for df in (self.min_df, self.max_df))
        if most < least:
            raise FeatureError(f"{self.call()}: of {n} rows, max_df allows {most:g} and min_df asks for {least:g}")
        return ((counts >= max(1, least)) & (counts <= most)).astype(np.float32)

    def holes(self) -> Holes:
        left = self.known() != 0.0
        return Holes(*(slots[left[slots]] for slots in self.phi.holes()))


def _rows_or_share(name: str, value: object) -> int | float:
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1:
        return int(value)
    if isinstance(value, float | np.floating) and 0.0 <= value <= 1.0:
        return float(value)
    raise FeatureError(f"{name} has to be a number of rows from 1 on, or a share from 0.0 to 1.0, and not {value!r}")


class Scaled(Learned):
    """phi as (x - center) * factor in each slot, computed in float64; as StandardScaler, MaxAbsScaler and RobustScaler.

    how, center: see FeatureMap.scaled. Centred rows have a value in every slot, but for those where values may be
    missing, and those that tell of it: there, what is not written stays 0. `numbers` are the factors, or centers and
    factors; in float64, but the factors are rounded to float32.
    """

    order = np.empty(0, np.int64)
    """Of centred rows: which value of a row each slot has, and -1 for those that only some rows have; empty where all
    rows have all slots."""

    own = ("how", "center")
    kinds: Mapping[str, type[Moments | Largest | Quartiles]] = {"std": Moments, "max": Largest, "robust": Quartiles}

    def __init__(self, phi: FeatureMap, how: str = "std", center: bool | None = None) -> None:
        super().__init__(phi)
        if how not in self.kinds:
            raise FeatureError(f"how has to be one of {', '.join(self.kinds)}, and not {how!r}")
        self.how, self.center = how, None if center is None else checked_flag("center", center)
        if how == "max" and self.center:
            raise FeatureError('scaled("max") keeps zeros where they are: there is no center')

    def call(self) -> str:
        return call_repr("scaled", self.how, **({} if self.center is None else {"center": self.center}))

    def resolve(self, shape: Shape) -> FeatureMap:
        twin = self.around(self.phi.resolve(shape))
        if twin.center is None:
            twin.center = self.how != "max" and self.phi.is_dense(shape)
        return twin

    def is_dense(self, shape: Shape) -> bool:
        return bool(self.center) or super().is_dense(shape)

    def totals(self) -> Totals:
        return self.kinds[self.how]()

    def numbers_of(self, totals: Totals) -> np.ndarray:
        assert isinstance(totals, Moments | Largest | Quartiles)
        factors = totals.factors().astype(np.float64)
        if not self.center:
            return factors[None]
        assert not isinstance(totals, Largest)
        return np.stack([totals.means(), factors])

    def _made(self, phi: FeatureMap, totals: Totals | None) -> FeatureMap:
        if totals is None:
            return self._with(phi, None)
        holes, numbers, optional = phi.holes(), self.numbers_of(totals), np.zeros(phi.dim, bool)
        nowhere = holes.values[totals.counted()[holes.values] == 0]
        if len(nowhere) and totals.rows:
            name = phi.invert(nowhere[:1]).text[0].decode()
            raise FeatureError(f"column {name!r}: no row has a value, and there is nothing to scale; leave it out")
        numbers[:-1, holes.flags], numbers[-1, holes.flags] = 0.0, 1.0
        optional[np.concatenate(holes)] = True
        return self._ordered(phi, numbers, optional)

    def _ordered(self, phi: FeatureMap, numbers: np.ndarray, optional: np.ndarray) -> Self:
        """With these numbers, and with slots that rows may leave out."""
        twin = self._with(phi, numbers)
        some = self.center and optional.any()
        twin.order = np.where(optional, -1, np.cumsum(~optional) - 1) if some else Scaled.order
        return twin

    def state(self) -> dict[str, np.ndarray]:
        inside = {f"phi.{name}": array for name, array in self.phi.state().items()}
        numbers, optional = self.known(), self.order < 0
        center = {"center": numbers[0]} if len(numbers) == 2 else {}
        left = {"optional": optional.astype(np.uint8)} if optional.any() else {}
        return inside | {"factor": numbers[-1].astype(np.float32)} | center | left

    def with_state(self, state: Mapping[str, np.ndarray]) -> FeatureMap:
        phi = self.phi.with_state(sub_state(state, "phi"))
        factor = checked_state(state, "factor", (np.float32,), phi.dim)
        center = [checked_state(state, "center", (np.float64,), phi.dim)] if self.center else []
        optional = np.zeros(phi.dim, bool)
        if "optional" in state:  # models of before took what is missing for 0
            optional = checked_state(state, "optional", (np.uint8,), phi.dim) != 0
        return self._ordered(phi, np.stack([*center, factor.astype(np.float64)]), optional)

    def bound(self, batch: Batch) -> int | np.ndarray:
        bound = self.phi.bound(batch)
        if not self.center:
            return bound
        rest = int((self.order < 0).sum())
        return self.dim if not rest else self.dim - rest + np.minimum(bound, rest)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        numbers = self.known()
        source = Block.scratch(bounds_of(self.phi, batch)[rows], self.dim, dtype=np.float64)
        fill_merged(self.phi, batch, rows, source)
        _scale(
            source.start, source.end, source.indices, source.values, numbers, self.order,
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        return FeatureMap.origins(self, batch, rows, nth) if self.center else super().origins(batch, rows, nth)

    def written(self, ids: np.ndarray) -> np.ndarray:
        return Revalued.written(self, ids)


@kernel
def _weigh(first, end, indices, values, factors, base, scale):
    """Multiply values with the factors of their slots; those with the factor 0 leave their rows."""
    for j in range(len(first)):
        p = np.uint64(first[j])
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            factor = np.float64(factors[np.uint64(indices[k]) - np.uint64(base)])
            if factor != 0.0:
                indices[p] = indices[k]
                values[p] = scale * (factor * values[k])
                p += np.uint64(1)
        end[j] = p


@inner
def _within(value):
    """What is far out stays a number that can be computed with."""
    return min(max(value, -LARGEST_VALUE), LARGEST_VALUE)


@exact_kernel
def _scale(start, end, indices, values, numbers, order, base, scale, cursor, out_indices, out_values):
    """Append (x - center) * factor, of all slots that have a place in the order of centred rows, and of those that are
    written otherwise."""
    centred, last = len(numbers) == 2, len(numbers) - 1
    full = centred and len(order) == 0
    always = np.uint64(numbers.shape[1]) if full or (centred and order.max() >= 0) else np.uint64(0)
    for j in range(len(start)):
        at = p = np.uint64(cursor[j])
        for empty in range(always):
            if full or order[empty] >= 0:
                out_indices[p] = np.uint64(base) + empty
                out_values[p] = scale * _within(-numbers[0, empty] * numbers[1, empty])
                p += np.uint64(1)
        for k in range(np.uint64(start[j]), np.uint64(end[j])):
            slot = np.uint64(indices[k])
            center = numbers[0, slot] if centred else 0.0
            q = p
            if full:
                q = at + slot
            elif centred and order[slot] >= 0:
                q = at + np.uint64(order[slot])
            else:
                p += np.uint64(1)
            out_indices[q] = np.uint64(base) + slot
            out_values[q] = scale * _within((values[k] - center) * numbers[last, slot])
        cursor[j] = p
