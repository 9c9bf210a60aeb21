"""What runs on a Dask worker: the parts that it holds, and the calls that reach them.

A part lives in this module, outside of what Dask stores: Dask may write its own things to disk, copy or move them, and
a part changes with each call. An actor lets go of the part when the driver, or its connection, is gone.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass

from dotadd._util.memory import available
from dotadd.cluster.connection import Failed, T
from dotadd.cluster.engine import Replies, Request, Told
from dotadd.cluster.partitions import Partitions
from dotadd.cluster.shard import Shard

RESERVE = 8  # parts that come on top have at least one in so many bytes

_held: dict[str, _Held] = {}
_lock = threading.RLock()  # of _held; a part may be let go wherever memory is collected, also by whoever has the lock


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
class NoReply:
    """Some parts have not answered: unless one has failed, they are not where they were called, since their worker was
    started anew, or the call came out of order."""

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

    def call(self, sequence: int, request: Request[Told]) -> Replies[Told] | NoReply:
        with self.lock:
            if sequence <= self.latest:
                return NoReply()
            self.latest = sequence
            if self.part is None:
                recipe = self.recipe
                source = recipe.data.source(recipe.paths)
                self.part = Shard(source, _room(self), number=recipe.number, threads=recipe.threads)
            return request.answer(self.part)


class Holder:
    """The actor that keeps a part where it is."""

    def __init__(self, token: str, recipe: Recipe) -> None:
        with _lock:
            _held[token] = _Held(recipe)
        weakref.finalize(self, _let_go, token)


def _let_go(token: str) -> None:
    with _lock:
        _held.pop(token, None)


def call(token: str, sequence: int, number: int, request: Request[Told]) -> Replies[Told] | NoReply:
    """What a part that is held here answers."""
    with _lock:
        held = _held.get(token)
    try:
        return NoReply() if held is None else held.call(sequence, request)
    except Exception as error:
        return NoReply((number, Failed.of(error)))


def added(one: Replies[Told] | NoReply, other: Replies[Told] | NoReply) -> Replies[Told] | NoReply:
    """Both replies as one, on their way up. The first error is told before anything else."""
    if isinstance(one, Replies) and isinstance(other, Replies):
        return one + other
    missing = [reply for reply in (one, other) if isinstance(reply, NoReply)]
    return min(missing, key=lambda reply: reply.failed[0] if reply.failed else float("inf"))


def held_here() -> set[str]:
    """The names of all parts on this worker."""
    with _lock:
        return set(_held)


def handed_on(request: T) -> T:
    """A copy on this worker, for itself and those below it."""
    return request


def _room(held: _Held) -> int:
    """Bytes for the examples of a part, so that all parts here together keep to what this worker may take.

    Parts that were planned share it evenly, except for a reserve. Parts that come on top share what is left by then,
    and leave one share of it for others still to come.
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
