"""Term: a map with its rows scaled to length one, its ids moved to other slots, and its values times a scale.

2.0 * phi          every value times the scale; the kernel times its square
phi.normalized()   k'(z, z') = k(z, z') / sqrt(k(z, z) k(z', z'))
phi.hashed(bits)   phi'(z)_j = sum of phi(z)_i over all i with h(i) = j
phi.indexed(form)  phi'(z)_s = phi(z)_i, where s is the slot that an index gives to i; what was never seen has none

A term does these in one order: length one, other slots, scale. What is asked for in another order is a term around a
term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.core.block import Block, squared_norms
from dotadd.data.batches import LARGEST_VALUE, Batch
from dotadd.errors import FeatureError
from dotadd.features.base import (
    Arrays,
    BadRow,
    FeatureMap,
    Holes,
    Origins,
    Part,
    Shape,
    squared_norms_of,
    sub_state,
)
from dotadd.features.forms import MISSING, Dense, Form, HashTable, SortedArray, slot_of
from dotadd.features.learning import IndexLearner, Learner, bounds_of, ids_of, pack
from dotadd.features.leaves import checked_bits, checked_factor
from dotadd.features.linear import Linear
from dotadd.features.methods import in_brackets
from dotadd.features.occurrences import Occurrences
from dotadd.features.outer import OuterMap
from dotadd.features.suffix_array import SuffixArray
from dotadd.features.trie import Trie

FORMS: dict[str, type[Form]] = {form.name: form for form in (HashTable, SortedArray, Trie, SuffixArray, Dense)}


def checked_form(form: object) -> str:
    """The name of a form of w."""
    if not isinstance(form, str) or form not in FORMS:
        raise FeatureError(f"there is no form {form!r} of w; there are {', '.join(FORMS)}")
    return form


class Term(OuterMap):
    """scale * slots(unit(phi)).

    unit: whether rows have length one; a row of zeros stays one.
    bits: ids are hashed into 2**bits slots. Vectors then need no number of columns: whatever comes later has its slot.
    form: ids are looked up in an index of those that occur in training; others are left out: their weight would be 0.
        Normalize before indexing (or by `indexed(...).normalized()`, which is the same), so that the length of an
        example counts features that were never seen; where a stack of indexed maps is normalized, it does not.
    index: what was learned.
    inverse: 1 / length of each row of the one batch that this is prepared for; 0 for a row of zeros, NaN for rows
        that were not made yet.
    """

    def __init__(
        self,
        phi: FeatureMap,
        scale: float = 1.0,
        *,
        unit: bool = False,
        bits: int | None = None,
        form: str | None = None,
        index: Form | None = None,
        inverse: np.ndarray | None = None,
    ) -> None:
        self.phi, self.scale, self.unit = phi, checked_factor("the factor of a map", scale), unit
        self.bits = None if bits is None else checked_bits(bits)
        self.form = None if form is None else checked_form(form)
        self.index, self.inverse = index, inverse
        self.moved = bits is not None or form is not None
        self.takes, self.bulk, self.keeps = phi.takes, phi.bulk and not self.moved, phi.keeps
        self.whole = phi.whole and not self.moved
        self.distinct, self.is_sum = phi.distinct and bits is None, self.scale != 1.0

    def changed(self, **changes: object) -> FeatureMap:
        """This term with something else in it; the map inside where nothing is left to do."""
        term = cast("Callable[..., Term]", Term)(**self._description() | {"index": self.index} | changes)
        return term if term.scale != 1.0 or term.unit or term.moved else term.phi

    def around(self, phi: FeatureMap) -> FeatureMap:
        """The same around another map."""
        return self.changed(phi=phi)

    def _description(self) -> dict[str, object]:
        """All but what was learned, which belongs to the model."""
        return {name: getattr(self, name) for name in ("phi", "scale", "unit", "bits", "form")}

    def __repr__(self) -> str:
        text = self.phi.normalized_repr() if self.unit else in_brackets(self.phi)
        if self.form is not None:
            text = f"{text}.indexed({self.form!r})"
        elif self.bits is not None:
            # the method of some maps hashes otherwise, letter by letter
            method = self.unit or isinstance(self.phi.hashed(self.bits), Term)
            text = f"{text}.hashed({self.bits})" if method else f"Hashed({self.bits}, {self.phi!r})"
        return text if self.scale == 1.0 else f"{self.scale!r} * {text}"

    def own_params(self) -> dict[str, object]:
        return {name: value for name, value in self._description().items() if name != "unit" and value is not None}

    def __mul__(self, factor: object) -> FeatureMap:
        if not isinstance(factor, int | float | np.number):
            return NotImplemented
        return self.changed(scale=checked_factor("the factor of a map", factor) * self.scale)

    __rmul__ = __mul__

    def hashed(self, bits: int) -> FeatureMap:
        return super().hashed(bits) if self.moved or self.is_sum else self.changed(bits=checked_bits(bits))

    def indexed(self, form: str = "hash_table") -> FeatureMap:
        return super().indexed(form) if self.moved or self.is_sum else self.changed(form=checked_form(form))

    def normalized(self) -> FeatureMap:
        return super().normalized() if self.bits is not None or self.is_sum else self.changed(unit=True)

    @property
    def dim(self) -> int:
        if self.moved:
            return self._index().size if self.bits is None else 2**self.bits
        return self.phi.dim

    def _index(self) -> Form:
        if self.index is None:
            raise FeatureError(f"{self!r} has not seen the training data yet: call fit(X), or learn(batch)")
        return self.index

    @property
    def anchor(self) -> int:
        return 0 if self.moved else self.phi.anchor

    @property
    def _any_width(self) -> bool:
        """Whether the number of columns does not matter."""
        return self.moved and not self.unit and isinstance(self.phi, Linear)

    def is_dense(self, shape: Shape) -> bool:
        return not self.moved and self.phi.is_dense(shape)

    def holes(self) -> Holes:
        if self.bits is not None:  # what shares a slot with others has no value of its own
            return Holes()
        inside = self.phi.holes()
        if self.form is None:
            return inside
        found = [self._index().find(slots.astype(np.uint64)) for slots in inside]
        return Holes(*(slots[slots != MISSING].astype(np.int64) for slots in found))

    def resolve(self, shape: Shape) -> FeatureMap:
        return self if self._any_width else self.around(self.phi.resolve(shape))

    def check(self, batch: Batch) -> BadRow | None:
        return None if self._any_width else self.phi.check(batch)

    @property
    def learns(self) -> bool:
        return self.form is not None or self.phi.learns

    def learner(self) -> Learner:
        if self.form is None:
            return super().learner()
        index = FORMS[self.form]() if self.index is None else self.index
        return IndexLearner(lambda phi, index: self.changed(phi=phi, index=index), self.phi, index)

    def state(self) -> dict[str, np.ndarray]:
        if self.form is None:
            return self.phi.state()
        inside = {f"phi.{name}": array for name, array in self.phi.state().items()}
        return inside | {f"index.{name}": array for name, array in self._index().state().items()}

    def with_state(self, state: Mapping[str, np.ndarray]) -> FeatureMap:
        if self.form is None:
            return self.around(self.phi.with_state(state))
        index = FORMS[self.form].from_state(sub_state(state, "index"))
        return self.changed(phi=self.phi.with_state(sub_state(state, "phi")), index=index)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        block = block if self.scale == 1.0 else block.placed(0, self.scale)
        if self.form is not None:
            self._fill_indexed(batch, rows, block)
        elif self.bits is not None:
            self._fill_hashed(batch, rows, block)
        else:
            self._fill_ids(batch, rows, block)

    def _fill_ids(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        """The rows in the slots of the map inside, of length one if they should be."""
        if not self.unit:
            self.phi.fill(batch, rows, block)
            return
        first = block.end[: len(rows)].copy()  # what a stack wrote before is not ours
        self.phi.fill(batch, rows, block)
        factors = np.empty(len(rows))
        factors[:] = np.nan if self.inverse is None else self.inverse[rows]
        (new,) = np.isnan(factors).nonzero()
        if len(new):
            lengths = np.empty(len(new))
            squared_norms(first, block.end, block.indices, block.values, new, self.phi.distinct, lengths)
            factors[new] = made = abs(block.scale) * _inverse(np.sqrt(lengths))
            if self.inverse is not None and block.scale != 0.0:
                self.inverse[rows[new]] = made
        _shrink(first, block.end, factors, block.values)

    def _fill_hashed(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        source = None if self.unit else self.phi.view(batch)
        if source is not None:
            _hash_rows(
                source.start, source.end, source.indices, source.values, plain(rows), self.bits,
                block.base, block.scale, block.end, block.indices, block.values,
            )  # fmt: skip
            return
        assert block.indices is not None
        # phi's own indices may be too large for the block, which only has to hold the hashed ones
        fits = block.indices.dtype == np.uint64 or self.phi.dim <= 2**32
        indices = block.indices if fits else np.empty(len(block.indices), np.uint64)
        first = block.end[: len(rows)].copy()
        self._fill_ids(batch, rows, Block(block.start, block.end, indices, block.values, scale=block.scale))
        _hash_indices(first, block.end, indices, self.bits, block.base, block.indices)

    def _fill_indexed(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert block.indices is not None
        ids = np.empty(len(block.indices), np.uint64)
        first = block.end[: len(rows)].copy()
        self._fill_ids(batch, rows, Block(block.start, block.end, ids, block.values, scale=block.scale))
        pack(first, block.end, ids)
        slots = self._index().find(ids[: int((block.end[: len(rows)] - first).sum())])
        _place(first, block.end, slots, block.base, block.indices, block.values)

    def prepared(self, batch: Batch, threads: int = 1) -> FeatureMap:
        """Lengths are computed once: for a spectrum they cost more than all the rest. Often all are the same. Where
        rows are kept, that is when they are first made."""
        phi = self.phi.prepared(batch, threads)
        if not self.unit:
            return self.changed(phi=phi)
        if phi.keeps and not phi.bulk:
            return self.changed(phi=phi, inverse=np.full(len(batch), np.nan))
        inverse = _inverse(np.sqrt(squared_norms_of(phi, batch, threads)))
        if len(inverse) and inverse[0] > 0.0 and (inverse == inverse[0]).all():
            scale = float(inverse[0]) * self.scale
            if abs(scale) <= LARGEST_VALUE:
                return self.changed(phi=phi, scale=scale, unit=False)
        tiny = inverse.max(initial=0.0) > np.finfo(np.float32).max  # 1 / length of such rows is no float32
        return self.changed(phi=phi, inverse=inverse if tiny else inverse.astype(np.float32))

    def factors(self, batch: Batch, rows: np.ndarray) -> float | np.ndarray:
        """What these rows of the map inside are multiplied with."""
        if not self.unit:
            return self.scale
        return np.multiply(self._inverse_of(batch, rows), self.scale, dtype=np.float64)

    def _inverse_of(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """1 / length of these rows."""
        inverse = np.full(len(rows), np.nan) if self.inverse is None else self.inverse[rows]
        new = np.isnan(inverse)
        if new.any():
            inverse[new] = made = _inverse(np.sqrt(self.phi.squared_norms(batch, rows[new])))
            if self.inverse is not None:
                self.inverse[rows[new]] = made
        return inverse

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        if self.moved:
            super().dot(batch, rows, w, out)
        else:
            _Scaled(self, self.phi).dot(batch, rows, w, out)

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        if self.moved:
            super().dots(batch, rows, ws, outs)
        else:
            _Scaled(self, self.phi).dots(batch, rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        if self.moved:
            super().add(batch, rows, coefficients, w)
        else:
            _Scaled(self, self.phi).add(batch, rows, coefficients, w)

    def products(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        if self.moved:
            super().products(batch, rows, coefficients, out)
        else:
            _Scaled(self, self.phi).products(batch, rows, coefficients, out)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        if self.moved:
            return super().squared_norms(batch, rows)
        lengths = self._inverse_of(batch, rows) > 0.0 if self.unit else self.phi.squared_norms(batch, rows)
        return self.scale**2 * lengths

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        if self.moved or (self.unit and self.inverse is None):  # lengths of all rows again for each tile
            return [(0, self)]
        return [(first, _Scaled(self, tile)) for first, tile in self.phi.tiles(slots)]

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        if self.scale == 0.0:  # k-mers of value 0 are not written, and it is the map inside that knows it
            return super().origins(batch, rows, nth)
        if self.form is None:
            return self.phi.origins(batch, rows, nth)
        distinct, at = np.unique(rows, return_inverse=True)
        some = batch.take(distinct)
        ids, offsets = ids_of(self.phi, some, np.arange(len(some)), bounds_of(self.phi, some))
        known = np.flatnonzero(self._index().find(ids) != MISSING)
        before = np.searchsorted(known, offsets)  # of the features that are written, so many belong to earlier rows
        place = before[at] + nth
        inside = place < before[at + 1]
        names = Origins.unnamed(repr(self), len(rows))
        nth_of_phi = known[place[inside]] - offsets[at[inside]]
        names.put(np.flatnonzero(inside), self.phi.origins(batch, rows[inside], nth_of_phi)[0])
        return names, np.where(inside, -1, place - before[at + 1])

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        if self._any_width:
            return FeatureMap.occurrences(self, batch, row)
        found = self.phi.occurrences(batch, row)
        found = found._replace(values=found.values * self.factors(batch, np.array([row])))
        if not self.moved:
            return found
        ids = found.slots.astype(np.uint64)
        if self.bits is not None:
            _hash_indices(np.zeros(1, np.int64), np.array([len(ids)]), ids, self.bits, 0, ids)
            return found._replace(slots=ids.astype(np.int64))
        slots = self._index().find(ids)
        known = np.flatnonzero(slots != MISSING)
        return found.take(known)._replace(slots=slots[known].astype(np.int64))

    def _ids(self, slots: np.ndarray) -> np.ndarray:
        """What the map inside calls these slots."""
        return slots if self.form is None else self._index().ids()[slots]

    def invert(self, slots: np.ndarray) -> Origins:
        return FeatureMap.invert(self, slots) if self.bits is not None else self.phi.invert(self._ids(slots))

    def names(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str | None]:
        return [None] * len(slots) if self.bits is not None else self.phi.names(self._ids(slots), columns)


class _Scaled(Part):
    """A part of the map inside of a term, times what the term multiplies rows with."""

    def __init__(self, term: Term, part: Part) -> None:
        self.term, self.part, self.bulk, self.whole = term, part, part.bulk, part.whole

    @property
    def dim(self) -> int:
        return self.part.dim

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        sums, factors = [np.zeros(len(rows)) for _ in ws], self.term.factors(batch, rows)
        self.part.dots(batch, rows, ws, sums)
        for out, some in zip(outs, sums, strict=True):
            out += some * factors

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        self.part.add(batch, rows, coefficients * self.term.factors(batch, rows), w)

    def products(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        sums, factors = np.zeros(len(rows)), self.term.factors(batch, rows)
        self.part.products(batch, rows, coefficients * factors, sums)
        out += sums * factors


def Hashed(bits: int, phi: FeatureMap | None = None) -> Term:
    """A map folded into 2**bits slots by a hash of its indices; the vector itself by default.

    Vectors need no number of columns: whatever comes later has its slot as well.
    """
    if not isinstance(phi, FeatureMap | None):
        raise FeatureError(f"phi has to be a feature map, and not {phi!r}")
    return Term(Linear() if phi is None else phi, bits=checked_bits(bits))


def _inverse(lengths: np.ndarray) -> np.ndarray:
    """1 / length, and 0 for a row of zeros."""
    return np.divide(1.0, lengths, out=np.zeros(len(lengths), lengths.dtype), where=lengths > 0.0)


@kernel
def _shrink(first, end, factors, values):
    for j in range(len(first)):
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            values[k] *= factors[j]


@kernel
def _hash_rows(start, end, indices, values, rows, bits, base, scale, cursor, out_indices, out_values):
    for j in range(len(rows)):
        lo = np.uint64(start[rows[j]])
        p = np.uint64(cursor[j])
        for k in range(lo, np.uint64(end[rows[j]])):
            index = k - lo if indices is None else np.uint64(indices[k])
            out_indices[p] = np.uint64(base) + slot_of(index, bits)
            out_values[p] = scale if values is None else scale * values[k]
            p += np.uint64(1)
        cursor[j] = p


@kernel
def _hash_indices(first, end, indices, bits, base, out_indices):
    for j in range(len(first)):
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            out_indices[k] = np.uint64(base) + slot_of(indices[k], bits)


@kernel
def _place(first, end, slots, base, out_indices, values):
    """Write the slots into their rows and leave out what has none; the values move along, and `end` with them."""
    at = np.uint64(0)
    for j in range(len(first)):
        p = np.uint64(first[j])
        for k in range(np.uint64(first[j]), np.uint64(end[j])):
            if slots[at] != MISSING:
                out_indices[p] = np.uint64(base) + slots[at]
                values[p] = values[k]
                p += np.uint64(1)
            at += np.uint64(1)
        end[j] = p
