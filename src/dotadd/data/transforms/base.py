"""Transforms: a finite set of changes to raw examples under which their labels stay what they are.

A set has members 0 .. len - 1, and one of them, `identity`, changes nothing. Sets multiply: the members of A * B are
all pairs, B's change first and then A's, as maps compose. `repr` of a set is the expression that makes it again.
Functions of a user's own are such a set for vectors and images.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence

import numpy as np

from dotadd.data.batches import Batch, DenseRows
from dotadd.errors import DotaddError

Function = Callable[[np.ndarray], np.ndarray]

MOST_MEMBERS = 1 << 20  # of a product
MOST_STEPS = 500  # each way: a square of them is a million moves
TRIED = 16  # rows that functions of a user's own are tried on


class TransformError(DotaddError):
    """A set of transformations, or the expression that describes one, cannot be used."""


class Transforms:
    """Subclasses set `takes`, and implement `__len__`, `names` and `apply`. `written` is the expression for the set."""

    takes: tuple[type[Batch], ...]
    """The kinds of batch whose rows can be changed."""

    costly: bool = False
    """Whether a changed row is better kept than made again each time it is wanted."""

    def __init__(self, written: str) -> None:
        self.written = written

    def __repr__(self) -> str:
        return self.written

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def identity(self) -> int:
        """The member that changes nothing."""
        return 0

    def names(self) -> list[str]:
        """What each member does, in a few words."""
        raise NotImplementedError

    def check(self, batch: Batch) -> None:
        """Raise TransformError, in one line, if rows such as these cannot be changed so."""
        if not isinstance(batch, self.takes):
            wanted = " or ".join(kind.kind for kind in self.takes)
            raise TransformError(f"{self!r} changes {wanted}, and the data is {batch.kind}")

    def apply(self, batch: Batch, rows: np.ndarray, which: np.ndarray) -> Batch:
        """The batch whose row j is row rows[j] changed by member which[j]."""
        raise NotImplementedError

    def stages(self) -> list[Transforms]:
        """The sets that are applied one after the other, the first one first; a product has several."""
        return [self]

    def then(self, after: Transforms) -> Transforms | None:
        """This set and then another as one set that makes both changes at once, if there is one.

        Its members are all pairs, those of `after` counted fastest.
        """
        return None

    def __mul__(self, other: Transforms) -> Transforms:
        if not isinstance(other, Transforms):
            return NotImplemented
        return Product.of(self, other)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Product(Transforms):
    """Sets applied one after the other. The number of a member counts those of the set applied last fastest.

    Neighbours that can be made at once are one stage.
    """

    def __init__(self, factors: tuple[Transforms, ...]) -> None:
        super().__init__(" * ".join(map(repr, factors)))
        self.factors = factors  # as written: the last is applied first
        kinds = dict.fromkeys(kind for factor in factors for kind in factor.takes)
        self.takes = tuple(kind for kind in kinds if all(issubclass(kind, factor.takes) for factor in factors))
        if not self.takes:
            raise TransformError(f"{self!r}: no data can be changed by all of these")
        if math.prod(map(len, factors)) > MOST_MEMBERS:
            raise TransformError(f"{self!r} has more than {MOST_MEMBERS:,} members")
        self.costly = any(factor.costly for factor in factors)
        self._stages = [factors[-1]]
        for factor in reversed(factors[:-1]):
            both = self._stages[-1].then(factor)
            if both is None:
                self._stages.append(factor)
            else:
                self._stages[-1] = both

    @classmethod
    def of(cls, *sets: Transforms) -> Product:
        return cls(tuple(f for one in sets for f in (one.factors if isinstance(one, Product) else (one,))))

    def stages(self) -> list[Transforms]:
        return list(self._stages)

    def __len__(self) -> int:
        return math.prod(map(len, self._stages))

    @property
    def identity(self) -> int:
        return int(join([np.array([stage.identity]) for stage in self._stages], self._stages)[0])

    def names(self) -> list[str]:
        named = [
            ["" if k == stage.identity else name for k, name in enumerate(stage.names())] for stage in self._stages
        ]
        parts = zip(*split(np.arange(len(self)), self._stages), strict=True)
        changes = (filter(None, (names[k] for names, k in zip(named, one, strict=True))) for one in parts)
        return [", then ".join(change) or "as it is" for change in changes]

    def check(self, batch: Batch) -> None:
        for stage in self._stages:  # changes leave kind and size of rows as they are, so all can look at these
            stage.check(batch)

    def apply(self, batch: Batch, rows: np.ndarray, which: np.ndarray) -> Batch:
        for stage, member in zip(self._stages, split(which, self._stages), strict=True):
            batch = stage.apply(batch, rows, member)
            rows = np.arange(len(rows))
        return batch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and self.factors == other.factors

    __hash__ = Transforms.__hash__


def split(which: np.ndarray, stages: list[Transforms]) -> list[np.ndarray]:
    """The member of each stage, for numbers of members of their product."""
    members = []
    for stage in reversed(stages):
        which, member = np.divmod(which, len(stage))
        members.append(member)
    return members[::-1]


def join(members: list[np.ndarray], stages: list[Transforms]) -> np.ndarray:
    """The numbers in the product; the inverse of `split`."""
    which = np.zeros_like(members[0])
    for stage, member in zip(stages, members, strict=True):
        which = which * len(stage) + member
    return which


def steps(most: float, step: float) -> np.ndarray:
    """-most, -most + step, ..., most. One of them is 0, exactly."""
    if not 0 < step <= most:
        raise TransformError(f"step has to be above 0 and at most {most}, and not {step}")
    if most / step > MOST_STEPS + 0.5:
        raise TransformError(f"step={step} makes more than {MOST_STEPS} steps to {most}")
    count = round(most / step)
    if abs(count * step - most) > 1e-9 * most:
        raise TransformError(f"step={step} does not lead from 0 to {most}: {most} has to be a multiple of it")
    return np.arange(-count, count + 1) * (most / count)


def whole_number(name: str, value: object) -> int:
    """value as an int, if it is a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise TransformError(f"{name} has to be a whole number above 0, and not {value!r}")
    return int(value)


def number(wanted: str, value: object) -> int | float:
    """value as a Python number, an int where it is a whole one, so that 6 and 6.0 are written alike.

    The complaint about anything else is that "`wanted` a number".
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not np.isfinite(float(value)):
        raise TransformError(f"{wanted} a number, and not {value!r}")
    value = float(value)
    return int(value) if value.is_integer() else value


def functions(*several: Function, names: Sequence[str] | None = None, costly: bool = True) -> Functions:
    """The vector as it is, and what each of these functions makes of it.

    several: functions of an array of vectors (n, p), or of images (n, height, width), for any n. Each returns an array
             of the same shape, whose row r depends on row r alone.
    names:   what each of them does; by default the functions' own names.
    costly:  whether a changed row is better kept than made again each time it is wanted.
    """
    if not several or not all(map(callable, several)):
        raise TransformError("functions has to be given one or more functions")
    if names is None:
        names = [getattr(function, "__name__", repr(function)) for function in several]
    if isinstance(names, str) or len(names) != len(several) or not all(isinstance(name, str) for name in names):
        raise TransformError(f"names has to be {len(several)} names, one for each function, and not {names!r}")
    return Functions(several, tuple(names), costly)


class Functions(Transforms):
    """Rows keep their type of numbers: where it is one of whole numbers, results are rounded and cut off."""

    takes = (DenseRows,)

    def __init__(self, several: tuple[Function, ...], named: tuple[str, ...], costly: bool) -> None:
        super().__init__(f"functions({', '.join(named)})")
        self.several, self.named, self.costly = several, named, costly

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Functions) and (self.several, self.named) == (other.several, other.named)

    __hash__ = Transforms.__hash__

    def __len__(self) -> int:
        return 1 + len(self.several)

    def names(self) -> list[str]:
        return ["as it is", *self.named]

    def check(self, batch: Batch) -> None:
        super().check(batch)
        rows = np.arange(min(len(batch), TRIED))
        for member in range(len(self)):
            self.apply(batch, rows, np.full(len(rows), member))

    def apply(self, batch: Batch, rows: np.ndarray, which: np.ndarray) -> DenseRows:
        assert isinstance(batch, DenseRows)
        out = batch.values[rows]
        for member, (function, name) in enumerate(zip(self.several, self.named, strict=True), 1):
            at = np.flatnonzero(which == member)
            if len(at):
                out[at] = _result(function, name, out[at])
        return type(batch)(out)


def _result(function: Function, name: str, rows: np.ndarray) -> np.ndarray:
    """What a function makes of these rows, in their type of numbers."""
    shape, dtype = rows.shape, rows.dtype
    try:
        made = np.asarray(function(rows))
    except Exception as error:
        raise TransformError(f"{name} fails: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if made.dtype.kind not in "buif":
        raise TransformError(f"{name} gives an array of {made.dtype}, and not of numbers")
    if made.ndim != len(shape):
        raise TransformError(f"{name} gives an array with {made.ndim} dimensions, and not {len(shape)}")
    if len(made) != len(rows):
        raise TransformError(f"{name} gives {len(made)} rows for {len(rows)}")
    if made.shape != shape:
        sizes = [" x ".join(map(str, size[1:])) for size in (made.shape, shape)]
        raise TransformError(f"{name} gives rows of {sizes[0]} values for rows of {sizes[1]}")
    if np.isnan(made).any():
        raise TransformError(f"{name} gives NaN")
    if dtype.kind in "iu" and made.dtype != dtype:
        limits = np.iinfo(dtype)
        made = np.clip(np.rint(made), limits.min, limits.max)
    return made.astype(dtype, copy=False)
