"""Columns: the binary problems over some rows. Signs and costs are had by `sign(k)` and `cost(k)`, and nowhere else.

A Tally counts labels chunk by chunk; the Targets that follow tell which classes there are, and make Columns of labels.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from dotadd.errors import DataError, DotaddError, as_written
from dotadd.problem.folds import Folds
from dotadd.sources.base import Chunk
from dotadd.sources.label_sets import ONE_EACH, Labels, are_sets

ByLabel = Mapping[Any, float]  # labels may be anything that can be compared
ClassWeight = ByLabel | str
TOLD = 10  # labels of the data that a complaint about another one tells


class BinaryColumn(NamedTuple):
    """One binary problem over some rows: row i has the sign signs[codes[i]] and costs costs[codes[i]] * weight[i], or
    without the weight where there are none."""

    codes: np.ndarray
    signs: np.ndarray
    costs: np.ndarray
    weight: np.ndarray

    def cost(self) -> np.ndarray:
        """The cost of each row."""
        return self.costs[self.codes] * self.weight if len(self.weight) else self.costs[self.codes]


class LabelTable(NamedTuple):
    """A number for each of `size` codes, which is written out when it is asked for: one for those that have a label,
    and one for the others."""

    size: int
    having: np.ndarray
    without: float
    other: float

    def array(self) -> np.ndarray:
        found = np.full(self.size, self.without, np.int8 if isinstance(self.without, int) else np.float64)
        found[self.having] = self.other
        return found

    def times(self, factor: float) -> LabelTable:
        return self._replace(without=factor * self.without, other=factor * self.other)


Table = np.ndarray | LabelTable


def _scaled(table: Table, factor: float) -> Table:
    return table.times(factor) if isinstance(table, LabelTable) else factor * table


def _array(table: Table) -> np.ndarray:
    return table.array() if isinstance(table, LabelTable) else table


MOST_CODES = 1 << 16
COUNTED = 1 << 22  # rows whose labels are counted at a time
NO_WEIGHT = np.empty(0)
NO_LABELS = (
    "has no labels to train on; name their column with label= (--label), write __label__NAME before a line of text, or "
    "put files into a subfolder for each class"
)


class Columns:
    """For each binary problem the signs (+1, -1) of the rows, and what each row costs; 0 where it does not count.

    Held in compact form: each row has a code, such as its class, or its class and its fold. A problem has a sign and a
    cost for each code; the cost of a row is that of its code times the row's own weight.
    """

    def __init__(
        self,
        codes: np.ndarray,
        signs: Sequence[Table],
        costs: Sequence[Table],
        weight: np.ndarray | None = None,
    ) -> None:
        self._codes = codes if codes.dtype == np.uint32 else codes.astype(np.uint16, copy=False)
        self._signs, self._costs, self._weight = list(signs), list(costs), weight
        self._made: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()  # costs that somebody holds

    @classmethod
    def of(cls, signs: Sequence[np.ndarray], cost: np.ndarray) -> Columns:
        """The problems with these signs of all rows, which cost the same in each of them."""
        table, codes = np.empty((len(signs), 1), np.int8), np.zeros(len(cost), np.int64)
        if len(signs) and len(cost):
            table, codes = np.unique(np.stack(signs).astype(np.int8), axis=1, return_inverse=True)
        return cls(codes.reshape(len(cost)), list(table), [np.ones(table.shape[1])] * len(table), cost)

    def __len__(self) -> int:
        """How many binary problems there are."""
        return len(self._signs)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights of their own."""
        return self._weight is not None

    def __getitem__(self, k: int) -> BinaryColumn:
        """Problem k as it is held."""
        return BinaryColumn(
            self._codes,
            _array(self._signs[k]),
            _array(self._costs[k]),
            NO_WEIGHT if self._weight is None else self._weight,
        )

    def sign(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        """The signs of these rows (all by default) in problem k."""
        return _array(self._signs[k])[self._codes if rows is None else self._codes[rows]]

    def cost(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        """The costs of these rows (all by default) in problem k. Problems in which all rows cost the same share one
        array, which nobody writes to."""
        if rows is not None:
            cost = _array(self._costs[k])[self._codes[rows]]
            return cost if self._weight is None else cost * self._weight[rows]
        made = self._made.get(id(self._costs[k]))
        if made is None:
            self._made[id(self._costs[k])] = made = self[k].cost()
        return made

    def counts(self, rows: np.ndarray | slice) -> np.ndarray:
        """Whether each of these rows counts in any of the problems."""
        each = {id(costs): costs for costs in self._costs}.values()
        if any(isinstance(costs, LabelTable) for costs in each):  # in which no code costs nothing
            counts = np.ones(len(self._codes[rows]), np.bool_)
        else:
            counts = np.logical_or.reduce([_array(costs) > 0.0 for costs in each])[self._codes[rows]]
        return counts if self._weight is None else counts & (self._weight[rows] > 0.0)

    def take(self, rows: np.ndarray | slice) -> Columns:
        """The same problems over these rows."""
        weight = None if self._weight is None else self._weight[rows]
        return Columns(self._codes[rows], self._signs, self._costs, weight)

    def times(self, factor: float | np.ndarray) -> Columns:
        """The same with all costs multiplied; by a number for each problem, if there is one for each."""
        if isinstance(factor, np.ndarray):
            scaled = [_scaled(costs, one) for one, costs in zip(factor.tolist(), self._costs, strict=True)]
            return Columns(self._codes, self._signs, scaled, self._weight)
        products = {id(costs): _scaled(costs, factor) for costs in self._costs}
        return Columns(self._codes, self._signs, [products[id(costs)] for costs in self._costs], self._weight)

    def only(self, ks: Sequence[int]) -> Columns:
        """These problems alone."""
        return Columns(self._codes, [self._signs[k] for k in ks], [self._costs[k] for k in ks], self._weight)

    @staticmethod
    def beside(several: Sequence[Columns]) -> Columns:
        """The problems of all of these, which are over the same rows with the same codes."""
        first = several[0]
        signs = [sign for one in several for sign in one._signs]
        return Columns(first._codes, signs, [cost for one in several for cost in one._costs], first._weight)

    @staticmethod
    def join(parts: Sequence[Columns]) -> Columns:
        """The same problems over the rows of all parts, one after the other."""
        weights = [part._weight for part in parts if part._weight is not None]
        weight = np.concatenate(weights) if weights else None
        return Columns(np.concatenate([part._codes for part in parts]), parts[0]._signs, parts[0]._costs, weight)


class PassingColumns(Columns):
    """Columns whose signs and costs come with the rows that pass by, and are not held."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def sign(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        raise AssertionError("signs come with the pieces of a problem; `hold` it to have those of all rows")

    def cost(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        raise AssertionError("costs come with the pieces of a problem; `hold` it to have those of all rows")


@dataclass(frozen=True)
class Targets:
    """The classes in order, and C times the weight of each. Two are one binary problem; more, one against the rest."""

    classes: np.ndarray
    cost_of_class: np.ndarray
    factors: np.ndarray | None = None
    """What the costs of each binary problem are multiplied with, where that differs."""

    @property
    def problems(self) -> list[int]:
        """The class that is positive in each binary problem."""
        return list(range(len(self.classes))) if len(self.classes) > 2 else [1]

    def columns(self, chunk: Chunk, folds: Folds | None = None) -> Columns:
        """The binary problems over the examples of a chunk. With folds of these, there are those of each fold,
        in which rows that it does not train on cost nothing, and then those of all rows."""
        weight = None if chunk.weight is None else np.asarray(chunk.weight, np.float64)
        codes, costs, numbers = self.codes(chunk), [self.cost_of_class], np.arange(len(self.classes))
        parts = 1 if folds is None else folds.trains.shape[1]
        if len(numbers) * parts > MOST_CODES:
            beside = "" if folds is None else f" for {len(folds)} folds"
            raise DotaddError(f"{len(numbers):,} classes are too many{beside}: {MOST_CODES // parts:,} at most")
        signs = [np.where(np.repeat(numbers, parts) == k, 1, -1).astype(np.int8) for k in self.problems]
        if folds is not None:
            codes = codes * parts + folds.parts
            trains = (*folds.trains, np.ones(parts, np.bool_))
            costs = [np.outer(self.cost_of_class, some).ravel() for some in trains]
        columns = Columns(codes, signs * len(costs), [cost for cost in costs for _ in signs], weight)
        return columns if self.factors is None else columns.times(self.factors)

    def codes(self, chunk: Chunk) -> np.ndarray:
        """The number of each example's class."""
        y = np.asarray(chunk.y)
        if len(self.classes) == 2:
            codes = (y == self.classes[1]).astype(np.uint16)
            unknown = np.flatnonzero((y != self.classes[0]) & (codes == 0))
        else:
            codes = np.searchsorted(self.classes, y)
            unknown = np.flatnonzero(self.classes[np.minimum(codes, len(self.classes) - 1)] != y)
        if len(unknown):
            raise chunk.error(int(unknown[0]), f"label {y[unknown[0]]} was not there before: the data has changed")
        return codes

    def cost(self, chunk: Chunk, codes: np.ndarray) -> np.ndarray:
        """C_i = C * class weight * sample weight."""
        cost = self.cost_of_class[codes]
        return cost if chunk.weight is None else cost * chunk.weight


def positive(value: object) -> bool:
    """Whether this is a number above 0 that float64 can hold."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return 0.0 < float(value) < np.inf
    except OverflowError:
        return False


class Tally:
    """Counts the classes of the chunks that it sees, and refuses labels and weights that cannot be."""

    def __init__(self) -> None:
        self.rows = 0
        self.classes: np.ndarray | None = None
        self.totals = np.empty(0)  # weight of each class
        self.lightest = np.inf  # weight of an example that counts
        self.sets: dict[Labels, float] = {}  # where rows have several labels: weight of the rows with these

    def note(self, chunk: Chunk) -> None:
        if chunk.y is None:
            raise DataError(NO_LABELS, chunk.path_of(0))
        y = np.asarray(chunk.y)
        if y.dtype.kind == "f":
            bad = np.flatnonzero(y != np.floor(y))
            if len(bad):
                message = f"Unknown label type: {y[bad[0]]} is no class; labels are names or whole numbers"
                raise chunk.error(int(bad[0]), message)
            large = np.flatnonzero(np.abs(y) >= 2.0**53)  # neighbours may have become one number
            if len(large):
                message = f"label {y[large[0]]:.17g} is too large; give labels of 2^53 and more as integers or names"
                raise chunk.error(int(large[0]), message)
        weight = None if chunk.weight is None else np.asarray(chunk.weight, np.float64)
        if weight is not None and not (np.isfinite(weight) & (weight >= 0.0)).all():
            row = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))[0])
            raise chunk.error(row, f"sample weight {weight[row]} is not a number >= 0")
        if weight is not None:
            self.lightest = float(np.min(weight, where=weight > 0.0, initial=self.lightest))
        self.rows += len(y)
        if are_sets(y):
            for one, each in zip(y.tolist(), [1.0] * len(y) if weight is None else weight.tolist(), strict=True):
                self.sets[one] = self.sets.get(one, 0.0) + each
        else:
            for first in range(0, len(y), COUNTED):  # 8 bytes for each that is counted
                some = slice(first, first + COUNTED)
                self._count(*_unique(y[some]), None if weight is None else weight[some])

    def _count(self, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> None:
        found = np.bincount(codes, weights=weight, minlength=len(classes))
        if classes.dtype.kind == "i":  # labels of many rows may come in a byte each
            classes = classes.astype(np.int64)
        if self.classes is None:
            self.classes, self.totals = classes, found.astype(np.float64)
            return
        known = np.union1d(self.classes, classes)
        totals = np.zeros(len(known))
        totals[np.searchsorted(known, self.classes)] += self.totals
        totals[np.searchsorted(known, classes)] += found
        self.classes, self.totals = known, totals

    def targets(
        self,
        C: float,
        class_weight: ClassWeight | None,
        path: str | None,
        *,
        several: bool = False,
        width: int | None = None,
    ) -> Targets:
        """What there is to separate, if there are two classes that count. Several labels a row are refused unless
        `several`; there are then `width` of them, where they are numbers."""
        if self.sets:
            if not several:
                raise DataError(ONE_EACH, path)
            return self._label_targets(C, class_weight, path, width)
        classes = self.classes
        if classes is None:
            raise DataError("no row is left to train on", path)
        if len(classes) < 2:
            label = f"{classes[0]:g}" if classes.dtype.kind == "f" else str(classes[0])
            raise DataError(f"all labels are {label}: one class only, and two or more are needed{_hint(path)}", path)
        for label, total in zip(classes, self.totals, strict=True):
            if total == 0.0:
                raise DataError(f"every example of class {label!s} has zero weight: two classes are needed")
        factors = np.ones(len(classes))
        if isinstance(class_weight, str):
            with np.errstate(over="ignore"):  # told below
                factors = self.totals.sum() / (len(classes) * self.totals)
        elif class_weight is not None:
            factors = _factors(class_weight, classes)
        return Targets(classes, self._costs(C, factors, self.totals))

    def _label_targets(
        self, C: float, class_weight: ClassWeight | None, path: str | None, width: int | None
    ) -> Targets:
        """The same where rows have several labels. Weights of labels are those of the rows that have them, each in its
        own problem; "balanced" lets the rows with a label weigh as much as those without."""
        from dotadd.problem.label_columns import LabelTargets, labels_in

        labels, totals = labels_in(self.sets, width, path)
        whole = sum(self.sets.values())
        sure = float(np.log1p(whole))  # odds of n + 1 to 1, as Platt has them
        constant = {k: sure if total else -sure for k, total in enumerate(totals.tolist()) if total in (0.0, whole)}
        if len(constant) == len(labels):
            raise DataError("all rows have the same labels: there is nothing to tell apart", path)
        both = np.stack([whole - totals, totals])
        factors = np.ones(both.shape)
        if isinstance(class_weight, str):
            factors = np.divide(0.5 * whole, both, out=factors, where=both > 0.0)
        elif class_weight is not None:
            factors[1] = _factors(class_weight, labels)
        return LabelTargets.of(self.sets, labels, self._costs(C, factors, both), constant)

    def _costs(self, C: float, factors: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """C times the weight of each class, if float64 can tell what the examples cost, alone and together."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            costs = C * factors
            least, total = costs.min() * min(1.0, self.lightest), float(np.sum(costs * np.maximum(totals, 1.0)))
        if not (least >= np.finfo(np.float64).tiny and total < np.inf):
            side = "small" if total < np.inf else "large"
            raise DotaddError(
                f"C = {C:g} times weights of classes and examples is too {side} for a number: bring them closer to 1"
            )
        return costs


def _factors(class_weight: ByLabel, classes: np.ndarray) -> np.ndarray:
    """The weight of each class, 1 where none is given."""
    class_weight = _by_label(class_weight, classes.tolist())
    for label, weight in class_weight.items():
        if not positive(weight):
            shown = f"{weight:g}" if isinstance(weight, float) else repr(weight)
            message = f"class_weight gives class {label!s} the weight {shown}, which is no number above 0"
            raise DotaddError(f"{message}: all classes have to count")
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()], np.float64)


def _by_label(class_weight: ByLabel, classes: list[object]) -> dict[object, float]:
    """The weights by label; text stands for the label that is written so, since a command line has nothing else."""
    written = {as_written(label): label for label in classes}
    found, unknown = {}, []
    for given, weight in class_weight.items():
        label = given
        if given not in classes and isinstance(given, str):
            label = written.get(given, written.get(_as_number(given), given))
        if label not in classes:
            unknown.append(as_written(given))
        elif label in found:
            raise DotaddError(f"class_weight gives class {as_written(label)} two weights")
        found[label] = weight
    if unknown:
        known = ", ".join(list(written)[:TOLD]) + (", ..." if len(written) > TOLD else "")
        raise DotaddError(f"class_weight names labels that the data has not: {sorted(unknown)}; it has {known}")
    return found


def _as_number(text: str) -> str:
    """A number as labels are written, so that +1 and 1.0 are 1."""
    try:
        return as_written(float(text))
    except (ValueError, OverflowError):
        return text


def _hint(path: str | None) -> str:
    """What to do about one class in a folder, of which people give the wrong one."""
    return "; give the folder that has a subfolder for each" if path is not None and os.path.isdir(path) else ""


def _unique(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels in order, and for each example the number of its label."""
    others = y[y != y[0]]
    if not len(others):
        return y[:1], np.zeros(len(y), np.int64)
    if (others == others[0]).all():  # two classes, found without sorting all labels
        classes = np.unique(np.array([y[0], others[0]]))
        return classes, (y == classes[1]).astype(np.int64)
    return np.unique(y, return_inverse=True)
