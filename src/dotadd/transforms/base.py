"""Transforms: a finite set of changes to raw examples under which their labels stay what they are.

A set has members 0 .. len - 1, and one of them, `identity`, changes nothing. Sets multiply: the members of A * B are
all pairs, B's change first and then A's, as maps compose. `repr` of a set is the expression that makes it again.
"""

from __future__ import annotations

import numpy as np

from dotadd.batch import Batch
from dotadd.errors import DotaddError


class TransformError(DotaddError):
    """A set of transformations, or the expression that describes one, cannot be used."""


class Transforms:
    """Subclasses set `takes`, and implement `__len__`, `identity`, `names`, `check` and `apply`."""

    takes: tuple[type[Batch], ...]
    """The kinds of batch whose rows can be changed."""

    costly: bool = False
    """Whether a changed row is better kept than made again each time it is wanted."""

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def identity(self) -> int:
        """The member that changes nothing."""
        raise NotImplementedError

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
        from dotadd.transforms.product import Product

        if not isinstance(other, Transforms):
            return NotImplemented
        return Product.of(self, other)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))
