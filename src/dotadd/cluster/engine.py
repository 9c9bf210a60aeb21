"""Engine: K parts that answer in rounds. Methods are written against it, and do not know where the parts live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from dotadd.cluster.transport import Message


class Replies(NamedTuple):
    """What all parts have answered: a few numbers of each, in the order of the parts, and the sums of their vectors."""

    numbers: list[Any]
    vectors: list[Message]


class Engine(Protocol):
    """K parts, and a way to ask all of them the same thing."""

    @property
    def parts(self) -> int: ...

    def round(self, method: str, vectors: Sequence[Message] = (), **numbers: Any) -> Replies:
        """Call `part.method(vectors, **numbers) -> (numbers, vectors)` of each part; vectors go down and up as a tree.

        An error that a part raises is raised here. If parts were lost on the way, PartsLostError is raised as soon as
        others stand in for them that have begun the same Task (Shard.begin). Until then nothing can be lost, and an
        engine asks again without a word.
        """
        ...


class PartsLostError(Exception):
    """Some parts have lost what they knew, and have begun anew: w no longer belongs to the dual variables."""

    def __init__(self, lost: Sequence[int]) -> None:
        super().__init__(f"parts {', '.join(map(str, lost))} were lost and have begun anew")
        self.lost = list(lost)
