"""Engine: K parts that answer requests in rounds. Methods are written against it, and do not know where parts live.

What crosses the network is w, or its differences, as messages, and a few numbers. A message carries a vector bit for
bit, dense, or as the slots that are not zero and their values where that takes fewer bytes. The replies of all parts
are joined as a tree, so that no machine sends or receives more than log2(K) messages. The tree is always the same, and
so is the rounding of the sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from dotadd._util.threads import for_each

if TYPE_CHECKING:
    from dotadd.cluster.shard import Shard

Told = TypeVar("Told")


@dataclass(frozen=True)
class Message:
    """A vector of `dim` slots: all values, or those at `indices`, in order, where the others are 0."""

    dim: int
    values: np.ndarray
    indices: np.ndarray | None = None

    @classmethod
    def of(cls, vector: np.ndarray) -> Message:
        """The smaller of both forms. A dense message is the vector itself, which the sender leaves alone from then on.

        -0.0 is not zero here: what arrives has the bits of what was sent.
        """
        bits = np.ascontiguousarray(vector).view(np.dtype(f"u{vector.itemsize}"))
        index = np.dtype(np.uint32 if len(vector) <= 2**32 else np.uint64)
        if np.count_nonzero(bits) * (index.itemsize + vector.itemsize) >= vector.nbytes:
            return cls(len(vector), vector)
        used = np.flatnonzero(bits)
        return cls(len(vector), vector[used], used.astype(index))

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.indices is None else self.indices.nbytes)

    def vector(self) -> np.ndarray:
        """The vector, to be read only: a dense message may be shared."""
        if self.indices is None:
            return self.values
        out: np.ndarray = np.zeros(self.dim, self.values.dtype)
        out[self.indices] = self.values
        return out

    def add_to(self, w: np.ndarray) -> None:
        """w += the vector. Whoever adds the same messages to the same w has the same bits."""
        if self.indices is None:
            w += self.values
        else:
            w[self.indices] += self.values

    def __add__(self, other: Message) -> Message:
        if self.indices is None or other.indices is None:
            total = self.vector().copy()
            other.add_to(total)
            return Message.of(total)
        indices = np.union1d(self.indices, other.indices)
        values: np.ndarray = np.zeros(len(indices), np.result_type(self.values, other.values))
        values[np.searchsorted(indices, self.indices)] += self.values
        values[np.searchsorted(indices, other.indices)] += other.values
        sparse = Message(self.dim, values, indices)
        return sparse if sparse.nbytes < self.dim * values.itemsize else Message(self.dim, sparse.vector())


@dataclass(frozen=True)
class Replies(Generic[Told]):
    """What parts have answered: what each has told, in their order, and the sums of the vectors that they sent."""

    told: list[Told]
    vectors: Sequence[Message] = ()

    def __add__(self, other: Replies[Told]) -> Replies[Told]:
        """These replies and those of the parts that follow."""
        vectors = [one + another for one, another in zip(self.vectors, other.vectors, strict=True)]
        return Replies(self.told + other.told, vectors)


class Request(ABC, Generic[Told]):
    """A question to all parts, to which each tells a `Told` and may send vectors. requests.py lists all of them."""

    name: ClassVar[str]
    """What people read while it is waited for."""
    prepares: ClassVar[bool]
    """Whether it comes before training, when a part knows nothing that could be lost."""

    def __init_subclass__(cls, *, name: str = "", prepares: bool = False) -> None:
        cls.name, cls.prepares = name, prepares

    @property
    def messages(self) -> Sequence[Message]:
        """The vectors that it brings."""
        return ()

    @abstractmethod
    def answer(self, part: Shard) -> Replies[Told]:
        """What this part answers, where it lives."""


@runtime_checkable
class Engine(Protocol):
    """K parts, and a way to ask all of them the same thing."""

    @property
    def parts(self) -> int: ...

    def round(self, request: Request[Told]) -> Replies[Told]:
        """What all parts answer to a request; vectors go down and up as a tree.

        An error that a part raises is raised here. If parts were lost on the way, PartsLostError is raised as soon as
        others stand in for them that have begun the same Task. Until training has begun nothing can be lost, and an
        engine asks again without a word.
        """
        ...


class PartsLostError(Exception):
    """Some parts have lost what they knew, and have begun anew: w no longer belongs to the dual variables."""

    def __init__(self, lost: Sequence[int]) -> None:
        super().__init__(f"parts {', '.join(map(str, lost))} were lost and have begun anew")


def tree(parts: int) -> list[list[tuple[int, int]]]:
    """Who adds to whom: levels of pairs (receiver, sender), to be done one level after the other.

    After the last one part 0 has the sum of all. Read backwards, it is how a message of part 0 reaches all.
    """
    levels, step = [], 1
    while step < parts:
        levels.append([(first, first + step) for first in range(0, parts - step, 2 * step)])
        step *= 2
    return levels


def joined(replies: Sequence[Replies[Told]]) -> Replies[Told]:
    """The replies of all parts as one, added up as the tree says."""
    held = list(replies)
    for level in tree(len(held)):
        for receiver, sender in level:
            held[receiver] += held[sender]
    return held[0] if held else Replies([])


@dataclass
class Traffic:
    """What the rounds so far would have cost on K machines."""

    rounds: int = 0
    down: int = 0
    """Bytes of vectors that all parts together have received from above them in the tree."""
    up: int = 0
    """Bytes of vectors that all parts together have sent, as they left the parts."""
    work: float = 0.0
    """Seconds that all parts together have worked."""
    slowest: float = 0.0
    """Seconds of the part that took longest, summed over rounds: what K machines would have waited for."""


class LocalEngine:
    """These parts in this process, so many of them at a time: for tests, and to see how many rounds K parts need."""

    def __init__(self, parts: Sequence[Shard], *, threads: int = 1) -> None:
        self.members, self.threads = list(parts), threads
        self.traffic = Traffic()

    @property
    def parts(self) -> int:
        return len(self.members)

    def round(self, request: Request[Told]) -> Replies[Told]:
        replies, seconds = [Replies[Told]([])] * self.parts, [0.0] * self.parts

        def ask(number: int) -> None:
            began = perf_counter()
            replies[number] = request.answer(self.members[number])
            seconds[number] = perf_counter() - began

        for_each(range(self.parts), ask, self.threads)
        traffic = self.traffic
        traffic.rounds += 1
        traffic.down += self.parts * sum(message.nbytes for message in request.messages)
        traffic.up += sum(message.nbytes for reply in replies for message in reply.vectors)
        traffic.work += sum(seconds)
        traffic.slowest += max(seconds, default=0.0)
        return joined(replies)
