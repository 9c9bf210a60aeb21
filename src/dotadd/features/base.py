"""FeatureMap: phi, whose one job is to write the non-zeros of phi(z) into a Block.

A map is a description, and `repr(phi)` is the expression that makes it again; model files keep that line. Some maps
have to see the data's shape before they know the size of their space (how many columns, how long a string): `resolve`
returns a map that does.

A solver that takes examples one by one reads Blocks. Where many examples meet a w that stands still (predictions, the
gap, batch solvers), a map may know an order of touching w that is kinder to the cache than example by example: it then
brings its own `dot` and `add`, and `bulk` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np

from dotadd._util.expression import call_repr
from dotadd._util.threads import over_rows
from dotadd.core import block as blocks
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Images, Strings
from dotadd.data.table import Table
from dotadd.errors import FeatureError
from dotadd.features.filling import Filling
from dotadd.features.learning import Learner
from dotadd.features.methods import Methods
from dotadd.features.occurrences import Occurrences, Spans, non_zeros
from dotadd.features.transformer import BESIDE

if TYPE_CHECKING:
    from dotadd.features.stack import Stack

Arrays = Sequence[np.ndarray]
Entry = TypeVar("Entry")


class Part:
    """Features that lie in one stretch of w: a whole map, or the features of a map in one tile of w."""

    bulk: bool = False
    """Whether `dot` and `add` are faster for many rows than a Block for each few rows."""

    whole: bool = False
    """Whether `dot` and `add` want all rows in one call, as they make a table of w for them, and share them out to
    threads themselves."""

    @property
    def anchor(self) -> int:
        """The slot that should begin a cache line: maps that lay features out by the line count from it."""
        return 0

    @property
    def dim(self) -> int:
        """Slots of the stretch."""
        raise NotImplementedError

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        """out[j] += <w, phi(batch[rows[j]])>. A part brings this one or the next."""
        self.dots(batch, rows, [w], [out])

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        """`dot` with each of several w. What is done to the examples first, a map may do once for all of them."""
        for w, out in zip(ws, outs, strict=True):
            self.dot(batch, rows, w, out)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        """w += sum_j coefficients[j] * phi(batch[rows[j]])."""
        raise NotImplementedError

    def products(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        """out[i] += sum_j coefficients[j] <phi(batch[rows[j]]), phi(batch[rows[i]])>: DOT of what ADD gives, for which
        no w is needed where a map knows how to do without."""
        w = np.zeros(self.dim)
        self.add(batch, rows, coefficients, w)
        self.dot(batch, rows, w, out)


@dataclass(frozen=True)
class Shape:
    """What a map may need to know of all the data before it can be used: the width of rows, the longest string,
    whether all strings are as long, the height and width of images, and the shape of each column of a table."""

    kind: str
    n_features: int | None = None
    length: int | None = None
    one_length: bool | None = None
    size: tuple[int, int] | None = None
    columns: dict[str, Shape] | None = None
    numberless: bool | None = None
    """Of a column: True if there are rows and none has a number."""

    def __post_init__(self) -> None:
        if self.columns is not None:  # JSON knows no shapes, and of tuples only that they are lists
            columns = {
                name: shape if isinstance(shape, Shape) else Shape(**shape) for name, shape in self.columns.items()
            }
            object.__setattr__(self, "columns", columns)
        if self.size is not None:
            height, width = self.size
            object.__setattr__(self, "size", (int(height), int(width)))

    @classmethod
    def of(cls, batch: Batch) -> Shape:
        batch = batch.typical()
        if isinstance(batch, Strings):
            if batch.width is not None:
                return cls(batch.kind, length=batch.width, one_length=True)
            lengths = batch.lengths()
            longest = int(lengths.max(initial=0))
            return cls(batch.kind, length=longest, one_length=bool((lengths == longest).all()))
        if isinstance(batch, Table):
            bare, (most, least) = batch.without_numbers(), batch.longest_and_shortest()
            columns = {
                name: cls(Strings.kind, length=long, one_length=long == short, numberless=name in bare or None)
                for name, long, short in zip(batch.names, most.tolist(), least.tolist(), strict=True)
            }
            return cls(batch.kind, n_features=batch.n_features, columns=columns)
        size = batch.values.shape[1:] if isinstance(batch, Images) else None
        return cls(batch.kind, n_features=getattr(batch, "n_features", None), size=size)

    def joined(self, other: Shape) -> Shape:
        """The shape of both together."""

        def larger(a: int | None, b: int | None) -> int | None:
            return a if b is None else b if a is None else max(a, b)

        alike = self.one_length is not False and other.one_length is not False and self.length == other.length
        one_length = None if self.one_length is None else alike
        size = self.size if self.size == other.size else None
        columns = None
        if self.columns is not None and other.columns is not None:
            columns = {name: shape.joined(other.column(name)) for name, shape in self.columns.items()}
        return Shape(
            self.kind, larger(self.n_features, other.n_features), larger(self.length, other.length), one_length, size,
            columns, (self.numberless and other.numberless) or None,
        )  # fmt: skip

    def column(self, name: str) -> Shape:
        """The shape of a column."""
        if self.columns is None or name not in self.columns:
            raise FeatureError(f"there is no column {name!r} in this data")
        return self.columns[name]

    def to_dict(self) -> dict[str, object]:
        """What is known of it."""
        known = {name: value for name, value in vars(self).items() if value is not None and name != "numberless"}
        if self.columns is not None:
            known["columns"] = {name: shape.to_dict() for name, shape in self.columns.items()}
        return known


@dataclass(frozen=True)
class BadRow:
    """The first thing `check` found wrong in a batch: row, column (from 1, where there is one) and a sentence."""

    row: int
    column: int | None
    message: str


class Origins(NamedTuple):
    """What the non-zeros of a map stand for, so that slots of w can be called by name; in three arrays of one length.

    Counted tables can be inverted. A hash cannot, but `fill` writes the non-zeros of an example in a known order.

    A k-mer that counts wherever it stands has a text and no position, a k-mer at its place has both, a column of a
    vector has a position only, and a feature that nobody can name has neither.
    """

    part: np.ndarray
    """The expression of the map that made it; a stack has several."""
    position: np.ndarray
    """Where it begins in the example, or which column it is, counted from 0; -1 where that does not matter."""
    text: np.ndarray
    """Its letters as bytes; empty where there are none."""

    @classmethod
    def unnamed(cls, part: str, count: int) -> Origins:
        return cls(np.full(count, part, object), np.full(count, -1, np.int64), np.full(count, b"", object))

    def put(self, at: np.ndarray, names: Origins) -> None:
        """Take over the names of some of the features."""
        for mine, theirs in zip(self, names, strict=True):
            mine[at] = theirs

    def take(self, at: np.ndarray) -> Origins:
        return Origins(*(array[at] for array in self))


class Holes(NamedTuple):
    """Slots of values that may be missing: where a row has written nothing there, the value is not 0 but unknown. And
    slots that tell of it, which have no scale."""

    values: np.ndarray = np.empty(0, np.int64)
    flags: np.ndarray = np.empty(0, np.int64)


class FeatureMap(Part, Methods):
    """phi: raw examples in, sparse rows of a block out.

    Subclasses set `takes`, implement `bound` and `fill`, and know `dim` once resolved.
    """

    takes: tuple[type[Batch], ...]
    """The kinds of batch this map reads."""

    distinct: bool = False
    """Whether no index occurs twice in a row, whatever the data; lengths are then plain sums of squares."""

    keeps: bool = True
    """Whether rows, once made, are better kept than made again, as far as there is room. Not where they are made about
    as fast as they could be read."""

    is_sum: bool = False
    """Whether its expression is written with + or *, and so stands in brackets before a method."""

    @property
    def reads(self) -> dict[str, str]:
        """The columns of a table that this map reads, each as "text", "number" or "both"; none where it reads whole
        examples."""
        return {}

    @property
    def dim(self) -> int:
        """Size of the index space: phi writes indices below it. Raises until the map is resolved."""
        raise NotImplementedError

    def resolve(self, shape: Shape) -> FeatureMap:
        """The same map with its space fixed for data of this shape. Most maps need nothing and return themselves."""
        return self

    def is_dense(self, shape: Shape) -> bool:
        """Whether rows of data of this shape have a value in every slot."""
        return False

    def holes(self) -> Holes:
        """Where values may be missing, and which slots tell of it; to be called once all is learned."""
        return Holes()

    def learn(self, batch: Batch) -> FeatureMap:
        """The same map, with room for every feature of these training rows; to be called after `resolve`.

        Most maps have a slot for all there can be, and return themselves. Where rows come chunk by chunk, `learner` is
        faster; what was learned before keeps its slots.
        """
        return self

    def learner(self) -> Learner:
        """What learns from rows that come chunk by chunk, where `learn` wants them all at once."""
        return Learner(self)

    @property
    def learns(self) -> bool:
        """Whether what `learn` returns depends on the rows it is shown, so that it has to see all of the training data.

        If not, any rows will do: it may have to read a file.
        """
        return type(self).learn is not FeatureMap.learn

    def state(self) -> dict[str, np.ndarray]:
        """What `learn` has learned, as arrays for the model file."""
        return {}

    def with_state(self, state: Mapping[str, np.ndarray]) -> FeatureMap:
        """The same map with this state. Raises ValueError or KeyError if it does not fit."""
        return self

    def check(self, batch: Batch) -> BadRow | None:
        """The first row that this map cannot take, or None."""
        return None

    @property
    def checks_rows(self) -> bool:
        """Whether `check` looks at each row, so that it has to see all of the training data.

        If not, the widest row tells of all.
        """
        return type(self).check is not FeatureMap.check

    def bound(self, batch: Batch) -> int | np.ndarray:
        """At most so many non-zeros in any row, or an array with a bound for each row."""
        raise NotImplementedError

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        """Append phi(batch[rows[j]]) to row j of the block: indices + block.base, values * block.scale."""
        raise NotImplementedError

    def view(self, batch: Batch) -> Block | None:
        """A block over all rows of the batch that copies nothing, where the batch holds phi(z) as it is."""
        return None

    def view_rows(self, batch: Batch, rows: np.ndarray, dtype: type) -> Block | None:
        """A block of these rows with memory of its own, where they come to lie in memory as phi(z) anyway, or where
        only the rows, once they are made, tell how much they take. Values that are written have this type."""
        return None

    def prepared(self, batch: Batch, threads: int = 1) -> FeatureMap:
        """The same map for this one batch, with what can be computed once for all of its rows."""
        return self

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        first = 0
        for block, at, some in Filling(self, batch, w.dtype.type).blocks(rows):
            sums = np.empty(len(some))
            blocks.dot(block.start, block.end, block.indices, block.values, at, w, sums)
            out[first : first + len(some)] += sums
            first += len(some)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        first = 0
        for block, at, some in Filling(self, batch, w.dtype.type).blocks(rows):
            theirs = coefficients[first : first + len(some)]
            blocks.add(block.start, block.end, block.indices, block.values, at, theirs, w)
            first += len(some)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """|phi(batch[rows[j]])|^2; an index that occurs twice in a row counts with the sum of its values."""
        out = np.empty(len(rows))
        first = 0
        for block, at, some in Filling(self, batch).blocks(rows):
            theirs = out[first : first + len(some)]
            blocks.squared_norms(block.start, block.end, block.indices, block.values, at, block.distinct, theirs)
            first += len(some)
        return out

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        """This map as parts over neighbouring stretches of w, and where each begins; of so many slots where it can."""
        return [(0, self)]

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        """What the nth[h]-th non-zero (from 0) that `fill` writes for row rows[h] stands for, and -1 beside it; or, if
        the row has fewer, how far beyond its last one nth[h] is. By default they are called what their slots are."""
        distinct, at = np.unique(rows, return_inverse=True)
        bound = self.bound(batch)
        bounds = np.full(len(distinct), bound, np.int64) if np.ndim(bound) == 0 else np.asarray(bound)[distinct]
        block = Block.scratch(bounds, self.dim)
        self.fill(batch, distinct, block)
        assert block.indices is not None
        beyond, found = nth - (block.end - block.start)[at], Origins.unnamed(repr(self), len(rows))
        inside = np.flatnonzero(beyond < 0)
        found.put(inside, self.invert(block.indices[block.start[at[inside]] + nth[inside]]))
        return found, np.where(beyond < 0, -1, beyond)

    def spans(self, batch: Batch, row: int) -> Spans | None:
        """Where in the row the bytes begin and end that each non-zero which `fill` writes was made of, in its order;
        None where nobody knows."""
        return None

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        """The features of a row each time they occur, and where in it they come from."""
        return Occurrences.of(*non_zeros(self, batch, row), self.spans(batch, row))

    def invert(self, slots: np.ndarray) -> Origins:
        """What these slots stand for, where it can be told from their numbers."""
        return Origins.unnamed(repr(self), len(slots))

    def names(self, slots: np.ndarray, columns: Sequence[str] | None) -> list[str | None]:
        """What `get_feature_names_out` calls these slots; None where their numbers do not tell."""
        found = self.invert(slots)
        if columns is not None and (found.position >= len(columns)).any():
            raise FeatureError(f"{self!r} was given {len(columns)} names, and there are more columns")
        pairs = zip(found.text.tolist(), found.position.tolist(), strict=True)
        return [_name(text, position, columns) for text, position in pairs]

    @property
    def title(self) -> str:
        """What a stack calls it, as scikit-learn's unions would; the map inside where there is one."""
        return type(self).__name__.lower()

    def __add__(self, other: FeatureMap) -> Stack:
        from dotadd.features.stack import Stack

        if not isinstance(other, FeatureMap):
            return NotImplemented
        return Stack(self, other)

    def __mul__(self, factor: object) -> FeatureMap:
        from dotadd.features.terms import Term

        if not isinstance(factor, int | float | np.number):
            return NotImplemented
        return self if factor == 1.0 else Term(self, cast("float", factor))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        """Right for maps that keep their arguments under their own names."""
        return call_repr(type(self).__name__, **self._description())

    def _repr_html_(self) -> str:
        from dotadd._util.wording import card

        reads = ", ".join(kind.kind for kind in self.takes)
        return card(repr(self), {"reads": reads} | self.get_params())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureMap) or type(self) is not type(other):
            return False
        return self._description() == other._description()

    def _description(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name not in BESIDE}

    def __hash__(self) -> int:
        return hash(repr(self))


def _name(text: bytes, position: int, columns: Sequence[str] | None) -> str | None:
    if not text:
        return None if position < 0 else f"x{position}" if columns is None else columns[position]
    return text.decode(errors="backslashreplace") + (f"@{position}" if position >= 0 else "")


def squared_norms_of(phi: FeatureMap, batch: Batch, threads: int, rows: np.ndarray | None = None) -> np.ndarray:
    """|phi(z)|^2 of these rows of a batch (all by default), on several threads."""
    out = np.empty(len(batch) if rows is None else len(rows))

    def measure(first: int, stop: int) -> None:
        some = blocks.some_rows(rows, first, stop, len(batch))
        out[first:stop] = phi.squared_norms(batch, some)

    over_rows(measure, len(out), threads)
    return out


MAX_DIM = 2**63  # indices are 64-bit numbers
MAX_WEIGHTS = 2**40  # 4 TB of float32 weights; what is larger was not meant


def checked_dim(phi: FeatureMap, dim: int) -> int:
    """dim, unless there are more features than numbers for them."""
    if dim > MAX_DIM:
        raise FeatureError(f"{phi!r} spans more than 2**63 features, too many to be numbered: use .hashed(bits)")
    return dim


def require_room(phi: FeatureMap) -> None:
    """Refuse a map if no machine could hold its weights. A map inside of another may be larger."""
    if phi.dim > MAX_WEIGHTS:
        raise FeatureError(
            f"{phi!r} spans {phi.dim:.3g} features, more than fit in memory: use .hashed(bits), or "
            '.indexed("hash_table") for those that occur'
        )


def sub_state(state: Mapping[str, Entry], part: str, mark: str = ".") -> dict[str, Entry]:
    """The state of a part of a map: what its names begin with is dropped."""
    begin = f"{part}{mark}"
    return {name.removeprefix(begin): array for name, array in state.items() if name.startswith(begin)}


def require_kind(phi: FeatureMap, batch: Batch, path: str | None = None) -> None:
    """Refuse a batch of a kind that this map does not read."""
    if not isinstance(batch, phi.takes):
        wanted = " or ".join(kind.kind for kind in phi.takes)
        where = "" if path is None else f"{path}: "
        raise FeatureError(f"{where}{phi!r} reads {wanted}, and the data is {batch.kind}")
