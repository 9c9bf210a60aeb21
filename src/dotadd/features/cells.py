"""Number, Category and Date: features of the cells of a table.

Number("age", "income") + Category("job", "country") + Category("site") * Category("ad") + Date("when")
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from types import MappingProxyType
from typing import cast

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.expression import call_repr, quoted
from dotadd.core.block import Block
from dotadd.data.batches import Batch
from dotadd.data.table import Table, places_of
from dotadd.errors import DataError, FeatureError
from dotadd.features.base import BadRow, FeatureMap, Holes, Origins, Shape
from dotadd.features.columns import column_name
from dotadd.features.forms import MISSING as MISSING_SLOT
from dotadd.features.forms import HashTable, checked_state, slot_of
from dotadd.features.learning import Learner, ids_of, learned
from dotadd.features.leaves import checked_bits
from dotadd.features.occurrences import Occurrences

MISSING = ("indicator", "zero", "refuse")
BITS = 20
EXACT_BITS = 62  # of the ids of categories that an index tells apart
MOST_NAMED, MOST_LETTERS = 1 << 16, 1 << 22  # values of which an index knows the names, and letters of these
FIRST_ROWS = 1 << 10  # in which new values are looked for, and then in twice as many
MOST_CROSSED = 3  # categories in one feature


class CellMap(FeatureMap):
    """A map of some columns of a table."""

    takes = (Table,)
    columns: tuple[str, ...]
    asks = "text"

    @property
    def reads(self) -> dict[str, str]:
        return dict.fromkeys(self.columns, self.asks)

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return self._description()

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        changed, make = self._description() | dict(params), cast("Callable[..., FeatureMap]", type(self))
        columns = changed.pop("columns")
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise FeatureError(f"columns have to be a tuple of names, and not {quoted(columns)}")
        return make(*columns, **changed)

    def _description(self) -> dict[str, object]:
        return {"columns": self.columns}

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        found = super().occurrences(batch, row)
        return found._replace(column=np.array([*self.column_of(found.slots), ""], object)[:-1])

    def column_of(self, slots: np.ndarray) -> Sequence[str]:
        """The column of each non-zero that a row has, in the order of `fill`."""
        raise NotImplementedError


class Number(CellMap):
    """The numbers of some columns as they are; `.scaled("std")` brings them to one size.

    missing: what an empty cell is: "indicator" (the default) gives each column a second feature, which is 1 where the
    number is missing; "zero" takes it for 0; "refuse" does not take such rows. With an indicator, `.scaled` looks at
    the numbers that are there, those that are missing are 0 (the mean, where it is subtracted), and the indicator is
    left as it is.
    """

    distinct, keeps, asks = True, False, "number"
    _resolved = False

    def __init__(self, *columns: str | int, missing: str = "indicator") -> None:
        self.columns = checked_columns("Number", columns)
        if missing not in MISSING:
            raise FeatureError(f"missing has to be one of {', '.join(MISSING)}, and not {missing!r}")
        self.missing = missing

    def __repr__(self) -> str:
        keywords = {} if self.missing == "indicator" else {"missing": self.missing}
        return call_repr("Number", *self.columns, **keywords)

    def is_dense(self, shape: Shape) -> bool:
        return True

    def _description(self) -> dict[str, object]:
        return {"columns": self.columns, "missing": self.missing}

    @property
    def dim(self) -> int:
        return len(self.columns) * (2 if self.missing == "indicator" else 1)

    def resolve(self, shape: Shape) -> FeatureMap:
        if self._resolved:  # rows that come later may be few
            return self
        for name in self.columns:
            if shape.column(name).numberless:
                raise DataError(f"column {name!r}: no row has a value; leave it out")
        twin = copy.copy(self)
        twin._resolved = True
        return twin

    def holes(self) -> Holes:
        count = len(self.columns)
        return Holes(np.arange(count), np.arange(count, self.dim)) if self.missing == "indicator" else Holes()

    def bound(self, batch: Batch) -> int:
        return len(self.columns)

    @property
    def checks_rows(self) -> bool:
        return self.missing == "refuse"

    def check(self, batch: Batch) -> BadRow | None:
        assert isinstance(batch, Table)
        if self.missing != "refuse":
            return None
        for name in self.columns:
            missing = np.flatnonzero(np.isnan(batch.numbers(name)))
            if len(missing):
                advice = 'fill it, or leave out missing="refuse"'
                return BadRow(int(missing[0]), None, f"column {name!r}: the value is missing; {advice}")
        return None

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert isinstance(batch, Table)
        _write_numbers(
            plain(batch.values), batch.offsets, plain(rows), batch.places(self.columns), self.missing == "indicator",
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip

    def invert(self, slots: np.ndarray) -> Origins:
        found = Origins.unnamed(repr(self), len(slots))
        found.text[:] = [self._name(int(slot)).encode() for slot in slots]
        return found

    def column_of(self, slots: np.ndarray) -> Sequence[str]:
        return [self.columns[slot % len(self.columns)] for slot in slots]

    def _name(self, slot: int) -> str:
        name = self.columns[slot % len(self.columns)]
        return name if slot < len(self.columns) else f"{name}=missing"


class Category(CellMap):
    """A feature for each value of each of the columns, hashed into 2**bits slots; `.indexed()` gives every value that
    occurs in training a slot of its own, and others none. An empty cell is a value like any other. The index knows what
    the first 65,536 values are called.

    `Category("site") * Category("ad")` has a feature for each pair of values, and a third factor one for each triple.
    """

    _named: Mapping[int, bytes] = MappingProxyType({})  # what slots are called, as far as it was learned

    def __init__(self, *columns: str | int, bits: int = BITS) -> None:
        self.columns = checked_columns("Category", columns)
        self.bits = checked_bits(bits)
        self.crosses: tuple[tuple[str, ...], ...] = tuple((name,) for name in self.columns)

    def __repr__(self) -> str:
        return call_repr("Category", *self.columns, **({} if self.bits in (BITS, EXACT_BITS) else {"bits": self.bits}))

    def _description(self) -> dict[str, object]:
        return {"columns": self.columns, "bits": self.bits}

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        if self.bits == EXACT_BITS:  # those of an index are no choice
            twin = self._with_bits(BITS).with_params({name: value for name, value in params.items() if name != "bits"})
            assert isinstance(twin, Category)
            return twin._with_bits(EXACT_BITS)
        return super().with_params(params)

    def __mul__(self, factor: object) -> FeatureMap:
        return Cross(self, factor) if isinstance(factor, Category) else super().__mul__(factor)

    @property
    def dim(self) -> int:
        return 2**self.bits

    def hashed(self, bits: int) -> FeatureMap:
        """This map with 2**bits slots."""
        return self._with_bits(checked_bits(bits))

    def indexed(self, form: str = "hash_table") -> FeatureMap:
        """This map with a slot for each value that occurs in training."""
        return FeatureMap.indexed(self._with_bits(EXACT_BITS), form)

    def _with_bits(self, bits: int) -> Category:
        twin = copy.copy(self)
        twin.bits = bits
        return twin

    def calling(self, named: Mapping[int, bytes]) -> Category:
        """This map, which knows what these slots are called."""
        twin = copy.copy(self)
        twin._named = named
        return twin

    @property
    def learns(self) -> bool:
        """An index has room for names, and w says nothing of them."""
        return self.bits == EXACT_BITS

    def learner(self) -> Learner:
        return _NameLearner(self, self._named) if self.learns else super().learner()

    def learn(self, batch: Batch) -> FeatureMap:
        return learned(self.learner(), batch) if self.learns else self

    def state(self) -> dict[str, np.ndarray]:
        if not self.learns:
            return {}
        texts = list(self._named.values())
        letters = np.frombuffer(b"".join(texts), np.uint8)
        ends = np.cumsum(np.array([0, *map(len, texts)], np.int64))
        return {"ids": np.fromiter(self._named, np.uint64, len(texts)), "ends": ends, "letters": letters}

    def with_state(self, state: Mapping[str, np.ndarray]) -> FeatureMap:
        if "ids" not in state:  # of a version that kept no names
            return self
        ids = checked_state(state, "ids", (np.uint64,))
        ends = checked_state(state, "ends", (np.int64,), len(ids) + 1).tolist()
        text = checked_state(state, "letters", (np.uint8,)).tobytes()
        return self.calling({slot: text[a:b] for slot, (a, b) in zip(ids.tolist(), pairwise(ends), strict=True)})

    def bound(self, batch: Batch) -> int:
        return len(self.crosses)

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert isinstance(batch, Table)
        _write_categories(
            plain(batch.letters), batch.offsets, batch.ends, plain(rows),
            _plan(self.columns, self.crosses, self.bits, batch.names),
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        found, inside = Origins.unnamed(repr(self), len(rows)), np.flatnonzero(nth < len(self.crosses))
        found.text[inside] = self.called(batch, rows[inside], nth[inside])
        return found, np.maximum(nth - len(self.crosses), -1)

    def invert(self, slots: np.ndarray) -> Origins:
        found = Origins.unnamed(repr(self), len(slots))
        found.text[:] = [self._named.get(slot, b"") for slot in slots.tolist()]
        return found

    def column_of(self, slots: np.ndarray) -> Sequence[str]:
        return [" x ".join(cross) for cross in self.crosses]

    def called(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> list[bytes]:
        """What the nth non-zeros of these rows are called."""
        assert isinstance(batch, Table)
        columns = [[(name.encode() + b"=", batch.strings(name)) for name in cross] for cross in self.crosses]
        places = zip(rows.tolist(), nth.tolist(), strict=True)
        return [b" x ".join(name + values[row] for name, values in columns[n]) for row, n in places]


class Cross(Category):
    """Pairs or triples of the values of several categories: `Category("site") * Category("ad")`."""

    is_sum = True
    parts: tuple[Category, ...]

    def __init__(self, *parts: Category) -> None:
        self.parts = tuple(part for one in parts for part in (one.parts if isinstance(one, Cross) else (one,)))
        if len(self.parts) > MOST_CROSSED:
            raise FeatureError(f"at most {MOST_CROSSED} categories can be crossed, and not {len(self.parts)}")
        self.crosses = tuple(product(*(part.columns for part in self.parts)))
        if any(len(set(cross)) < len(cross) for cross in self.crosses):
            raise FeatureError(f"{self!r} crosses a column with itself")
        self.columns = tuple(dict.fromkeys(name for part in self.parts for name in part.columns))
        self.bits = max(part.bits for part in self.parts)

    def __repr__(self) -> str:
        return " * ".join(repr(part) for part in self.parts)

    def _description(self) -> dict[str, object]:
        return {"parts": self.parts, "bits": self.bits}

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return {"bits": self.bits}

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        return self._with_bits(checked_bits(params.get("bits", self.bits)))

    def _with_bits(self, bits: int) -> Category:
        return Cross(*(part._with_bits(bits) for part in self.parts))


class _NameLearner(Learner):
    """Notes what the first values are called. They are found by a table of all that were met, some rows at a time:
    most of what comes is known after a few."""

    revised = False  # what has a name has the same features as before

    def __init__(self, phi: Category, named: Mapping[int, bytes]) -> None:
        super().__init__(phi)
        self._category, self._named, self._met = phi, dict(named), HashTable()
        self._met.insert(np.fromiter(named, np.uint64, len(named)))
        self._room = MOST_LETTERS - sum(map(len, named.values()))

    def see(self, batch: Batch) -> None:
        first, width = 0, len(self._category.crosses)
        while first < len(batch) and self._room > 0:
            rows = np.arange(first, min(len(batch), 2 * first + FIRST_ROWS))
            ids, _ = ids_of(self._category, batch, rows, np.full(len(rows), width))
            unknown = np.flatnonzero(self._met.find(ids) == MISSING_SLOT)
            new = unknown[np.sort(np.unique(ids[unknown], return_index=True)[1])]
            self._met.insert(ids[new])
            new = new[: MOST_NAMED - len(self._named)]
            for slot, text in zip(
                ids[new].tolist(), self._category.called(batch, rows[new // width], new % width), strict=True
            ):
                self._room -= len(text)
                if self._room >= 0:
                    self._named[slot] = text
            if len(self._named) == MOST_NAMED:
                self._room = 0
            first = int(rows[-1]) + 1

    def done(self) -> FeatureMap:
        return self._category.calling(self._named)


def checked_columns(what: str, names: Sequence[object]) -> tuple[str, ...]:
    """Names of columns, each once."""
    columns = tuple(column_name(name) for name in names)
    if not columns:
        raise FeatureError(f"{what} needs the name of a column")
    if len(set(columns)) < len(columns):
        raise FeatureError(f"{what} is given a column twice: {', '.join(map(repr, columns))}")
    return columns


@lru_cache(256)
def _plan(
    columns: tuple[str, ...], crosses: tuple[tuple[str, ...], ...], bits: int, names: tuple[str, ...]
) -> np.ndarray:
    """Numbers for the kernel: columns, crosses and bits; the place of each column among the names of a table, and the
    hash of its name; and the columns of each cross, of which unused ones come last and are -1."""
    of = {name: k for k, name in enumerate(columns)}
    members = [[of[name] for name in cross] + [-1] * (MOST_CROSSED - len(cross)) for cross in crosses]
    head = np.array([len(columns), len(crosses), bits], np.int64)
    seeds = np.array([_name_hash(name) for name in columns], np.uint64).view(np.int64)
    return np.concatenate([head, places_of(columns, names), seeds, np.array(members, np.int64).reshape(-1)])


def _name_hash(name: str) -> int:
    """A number for the name of a column, the same on every machine."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


@kernel
def _write_numbers(values, offsets, rows, places, indicate, base, scale, cursor, out_indices, out_values):
    count = np.uint64(len(places))
    for j in range(len(rows)):
        first = np.uint64(offsets[rows[j]])
        p = np.uint64(cursor[j])
        for k in range(count):
            value = values[first + np.uint64(places[k])]
            if not np.isnan(value):
                out_indices[p], out_values[p] = np.uint64(base) + k, scale * value
                p += np.uint64(1)
            elif indicate:
                out_indices[p], out_values[p] = np.uint64(base) + count + k, scale
                p += np.uint64(1)
        cursor[j] = p


@kernel
def _write_categories(letters, offsets, ends, rows, plan, base, scale, cursor, out_indices, out_values):
    columns, crosses, bits = np.uint64(plan[0]), np.uint64(plan[1]), np.uint64(plan[2])
    places, seeds = np.uint64(3), np.uint64(3) + columns
    members = seeds + columns
    hashes = np.empty(columns, np.uint64)
    for j in range(len(rows)):
        first = np.uint64(offsets[rows[j]])
        p = np.uint64(cursor[j])
        for k in range(columns):
            cell = first + np.uint64(plan[places + k])
            h = np.uint64(plan[seeds + k])
            for i in range(np.uint64(ends[cell]), np.uint64(ends[cell + np.uint64(1)])):
                h = _mixed(h, np.uint64(letters[i]) + np.uint64(1))
            hashes[k] = _mixed(h, np.uint64(0))
        for g in range(crosses):
            at = members + np.uint64(3) * g
            h = hashes[np.uint64(plan[at])]
            for m in range(np.uint64(1), np.uint64(3)):
                if plan[at + m] >= 0:
                    h = _mixed(h, hashes[np.uint64(plan[at + m])])
            out_indices[p], out_values[p] = np.uint64(base) + slot_of(h, bits), scale
            p += np.uint64(1)
        cursor[j] = p


@inner
def _mixed(h, more):
    """One step of a hash."""
    h = np.uint64((h ^ more) * np.uint64(0x9E3779B97F4A7C15))
    return np.uint64(h ^ (h >> np.uint64(29)))
