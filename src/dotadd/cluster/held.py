"""What runs on a Dask worker: the parts that it holds, and the calls that reach them.

A part lives in this module, outside of what Dask stores: Dask may write its own things to disk, copy or move them, and
a part changes with each call. An actor lets go of the part when the driver, or its connection, has gone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dotadd._util.memory import available
from dotadd.cluster.link import Failed
from dotadd.cluster.partitions import Partitions
from dotadd.cluster.shard import Shard
from dotadd.cluster.transport import Message

RESERVE = 8  # parts that come on top have at least one in so many bytes

_held: dict[str, _Held] = {}
_lock = threading.RLock()  # of _held; a part may be let go wherever memory is collected, also by whoever has the lock


class PartGoneError(Exception):
    """The part that was called is not here: its worker was started anew, or calls came out of order."""


@dataclass(frozen=True)
class Recipe:
    """What it takes to make a part."""

    number: int
    paths: tuple[str, ...]
    data: Partitions
    memory: int | None
    """Bytes for the examples of all parts of this worker; half of what is free, if it is not said."""
    threads: int
    planned: int | None
    """How many parts this worker is to hold, None for one that comes on top of them."""
    neighbours: int
    """How many workers share the memory of the machine."""


@dataclass(frozen=True)
class Request:
    """A method of Shard, and the numbers to call it with."""

    method: str
    numbers: dict[str, Any]


@dataclass(frozen=True)
class Vectors:
    """Messages on their way down."""

    messages: tuple[Message, ...]


@dataclass(frozen=True)
class Reply:
    """What some parts have answered: numbers by part, and the sums of their vectors, unless one of them has failed."""

    numbers: dict[int, Any]
    vectors: Sequence[Message]
    gone: tuple[int, ...] = ()
    """Parts that are not where they were called."""
    failed: tuple[int, Failed] | None = None
    """The first part that has raised an error, and what it was."""


class _Held:
    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.lock = threading.Lock()  # a call that the driver has given up may still be running
        self.latest = 0
        self.part: Shard | None = None
        self.room: int | None = None  # bytes, once they are given

    def takes(self, memory: int) -> int:
        """Bytes that are not there for others, of all that this worker may take."""
        if self.part is not None:
            return self.part.rows.nbytes
        if self.room is not None or self.recipe.planned is None:
            return self.room or 0
        return (memory - memory // RESERVE) // self.recipe.planned

    def call(self, sequence: int, request: Request, vectors: Sequence[Message]) -> tuple[Any, Sequence[Message]]:
        with self.lock:
            if sequence <= self.latest:
                raise PartGoneError
            self.latest = sequence
            if self.part is None:
                recipe = self.recipe
                source = recipe.data.source(recipe.paths)
                self.part = Shard(source, _room(self), number=recipe.number, threads=recipe.threads)
            return getattr(self.part, request.method)(vectors, **request.numbers)


class Holder:
    """The actor that keeps a part where it is."""

    def __init__(self, token: str, recipe: Recipe) -> None:
        with _lock:
            _held[token] = _Held(recipe)
        weakref.finalize(self, _let_go, token)


def _let_go(token: str) -> None:
    with _lock:
        _held.pop(token, None)


def call(token: str, sequence: int, number: int, request: Request, vectors: Vectors) -> Reply:
    """Call a method of a part that is held here."""
    with _lock:
        held = _held.get(token)
    try:
        if held is None:
            raise PartGoneError
        told, sent = held.call(sequence, request, vectors.messages)
    except PartGoneError:
        return Reply({}, (), gone=(number,))
    except Exception as error:
        return Reply({}, (), failed=(number, Failed.of(error)))
    return Reply({number: told}, sent)


def added(one: Reply, other: Reply) -> Reply:
    """Both replies as one, on their way up."""
    gone = one.gone + other.gone
    failed = min((reply.failed for reply in (one, other) if reply.failed), key=lambda found: found[0], default=None)
    if gone or failed:
        return Reply({}, (), gone, failed)
    vectors = [a + b for a, b in zip(one.vectors, other.vectors, strict=True)]
    return Reply(one.numbers | other.numbers, vectors)


def held_here() -> set[str]:
    """The names of all parts on this worker."""
    with _lock:
        return set(_held)


def handed_on(vectors: Vectors) -> Vectors:
    """A copy on this worker, for itself and those below it."""
    return vectors


def _room(held: _Held) -> int:
    """Bytes for the examples of a part, so that all parts here together keep to what this worker may take.

    Those that were planned share it evenly, but for a reserve. Those that come on top share what is left by then, and
    leave one share of it for others still to come.
    """
    recipe = held.recipe
    with _lock:
        others = [one for one in list(_held.values()) if one is not held]
        memory = recipe.memory
        if memory is None:
            ours = sum(one.part.rows.loaded for one in others if one.part is not None)
            memory = (available() + ours) // 2 // recipe.neighbours
        left = memory - sum(one.takes(memory) for one in others)
        if recipe.planned is None:
            waiting = sum(one.room is None and one.recipe.planned is None for one in others)
            held.room = left // (waiting + 2)
        else:
            share = held.takes(memory)
            held.room = share if share <= left else left // 2
        held.room = max(held.room, 1)
        return held.room
