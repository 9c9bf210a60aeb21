"""Product: all pairs of the members of two sets of transformations."""

from __future__ import annotations

import math

import numpy as np

from dotadd.batch import Batch
from dotadd.transforms.base import TransformError, Transforms

MOST_MEMBERS = 1 << 20


class Product(Transforms):
    """Sets applied one after the other. The number of a member counts those of the set applied last fastest.

    Neighbours that can be made at once are one stage.
    """

    def __init__(self, factors: tuple[Transforms, ...]) -> None:
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

    def __repr__(self) -> str:
        return " * ".join(map(repr, self.factors))

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
