"""The engine that runs all parts in this process: for tests, and to see how many rounds K parts would need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from dotadd._util.threads import for_each
from dotadd.cluster.engine import Replies
from dotadd.cluster.shard import Shard
from dotadd.cluster.transport import Message, summed


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
    """These parts, so many of them at a time."""

    def __init__(self, parts: Sequence[Shard], *, threads: int = 1) -> None:
        self.members, self.threads = list(parts), threads
        self.traffic = Traffic()

    @property
    def parts(self) -> int:
        return len(self.members)

    def round(self, method: str, vectors: Sequence[Message] = (), **numbers: Any) -> Replies:
        replies: list[tuple[Any, list[Message]]] = [(None, [])] * self.parts
        seconds = [0.0] * self.parts

        def ask(number: int) -> None:
            began = perf_counter()
            replies[number] = getattr(self.members[number], method)(vectors, **numbers)
            seconds[number] = perf_counter() - began

        for_each(range(self.parts), ask, self.threads)
        told, sent = [one for one, _ in replies], [messages for _, messages in replies]
        traffic = self.traffic
        traffic.rounds += 1
        traffic.down += self.parts * sum(message.nbytes for message in vectors)
        traffic.up += sum(message.nbytes for messages in sent for message in messages)
        traffic.work += sum(seconds)
        traffic.slowest += max(seconds, default=0.0)
        return Replies(told, summed(sent))
