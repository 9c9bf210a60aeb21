"""The engine on a Dask cluster: each part lives on a worker, and rounds are graphs of tasks pinned to the workers.

A round is three layers of tasks. The request goes down a tree over the workers; each part is called; replies go up the
tree over the parts (engine.py), so that sums have the same bits wherever parts live. Small requests go with the calls
themselves. The driver sends one message and gets one reply, and the scheduler sees no vector as long as the driver
reaches the first worker directly.

When Dask gives no answer (connection.py), the engine finds out which parts are gone. Calls that were sent are dropped,
and lost parts are made anew on whichever worker that has their files has least to do; it may have joined late, and is
not used before that. If no worker is left, the engine waits for one. What the new parts do not know is for the driver
to see to (PartsLostError), and so is a round that failed although nobody was lost: some parts may have taken its step,
and others not. A call that is sent to a worker that came back under its old address finds no part there, and calls out
of order are refused, so that no part ever takes a step twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn, Self

from dotadd._jit import plain
from dotadd.cluster.connection import POLL, Link, host_of, one_line, within_reach
from dotadd.cluster.engine import PartsLostError, Replies, Request, Told, tree
from dotadd.cluster.held import Holder, NoReply, Recipe, added, call, handed_on, held_here
from dotadd.cluster.partitions import Files, Partitions
from dotadd.cluster.requests import Begin
from dotadd.errors import DataError, DotaddError

if TYPE_CHECKING:
    from distributed import Client, Future

SMALL = 1 << 16  # bytes of messages that go with the calls
SLOW = 10.0  # seconds after which it is told who is waited for
OFTEN = 5  # losses of one part, or rounds in a row that fail with nobody lost, after which it is no use to try again


class _LostError(Exception):
    """A call was in vain, and these parts are gone; none, if only the answer is."""

    def __init__(self, parts: Iterable[int]) -> None:
        self.parts = sorted(parts)


@dataclass
class _Seat:
    """Where a part lives: a worker, the name it is held by there, and the actor that holds it."""

    worker: str
    token: str
    actor: Future


class DaskEngine:
    """Parts of `data` on the workers of a client; `memory` is what examples may take on each worker.

    `groups` are the files of each part; by default, there are as many parts as workers have threads. announce(line) is
    told who is lost and who is waited for.
    """

    def __init__(
        self,
        client: Client,
        data: Partitions,
        *,
        memory: int | None = None,
        threads: int | None = None,
        groups: Sequence[Sequence[str]] | None = None,
        announce: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.link = Link(client, announce)
        self.client, self.data, self.memory, self.threads, self.announce = client, data, memory, threads, announce
        self._seats: dict[int, _Seat] = {}
        self._losses: dict[int, int] = {}
        self._failures = 0  # rounds in a row that failed with nobody lost
        self._sequence = 0
        self._begun: Begin | None = None  # what those who stand in for lost parts are asked
        alive, files = self.link.survey(data.names)
        found = files.groups(alive) if groups is None else groups
        self.groups = [list(group) for group in found]
        if changed := {path for group in self.groups for path in group} ^ files.sizes.keys():
            raise DataError("is not one of the files that training began with, or no longer there", min(changed))
        try:
            try:
                self._seat(range(self.parts), files, alive)
            except _LostError as lost:
                self._replace(lost.parts)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the parts."""
        for part in list(self._seats):
            self._seats.pop(part).actor.release()

    @property
    def parts(self) -> int:
        return len(self.groups)

    def round(self, request: Request[Told]) -> Replies[Told]:
        if request.prepares:
            self._begun = None  # another task
        while True:
            try:
                replies = self._ask(range(self.parts), request)
                break
            except _LostError as lost:
                gone = self._replace(lost.parts)
                if self._begun is not None:
                    raise PartsLostError(gone) from None
        self._failures = 0
        if isinstance(request, Begin):
            self._begun = request
        return Replies(replies.told, [replace(one, values=plain(one.values)) for one in replies.vectors])

    def _ask(self, parts: Sequence[int], request: Request[Told]) -> Replies[Told]:
        """What these parts answer, joined."""
        sent: list[Future] = []
        try:
            reply = self._wait(*self._send(parts, request, sent), request)
        except BaseException as error:
            self.link.forget(sent)
            if isinstance(error, DotaddError | _LostError) or not isinstance(error, Exception):
                raise
            self._explain(error)  # it is Dask's
        if isinstance(reply, Replies):
            return reply
        if reply.failed is None:
            self._explain(None)
        part, failed = reply.failed
        if isinstance(failed.error, MemoryError):
            raise MemoryError(f"on {self._seats[part].worker}, part {part} ({self.groups[part][0]})") from failed.error
        raise failed.error

    def _send(
        self, parts: Sequence[int], request: Request[Told], sent: list[Future]
    ) -> tuple[Future, dict[int, Future]]:
        """The future of all answers, and that of each part; `sent` gets all futures."""
        self._sequence += 1
        submit, seats = self._submit, [self._seats[part] for part in parts]
        workers = list(dict.fromkeys(seat.worker for seat in seats))
        down = self._broadcast(request, workers, sent)
        calls = [
            submit(seat.worker, call, seat.token, self._sequence, part, down[seat.worker])
            for part, seat in zip(parts, seats, strict=True)
        ]
        sent += calls
        up = list(calls)
        for level in tree(len(parts)):
            for receiver, sender in level:
                up[receiver] = submit(seats[receiver].worker, added, up[receiver], up[sender])
                sent.append(up[receiver])
        return up[0], dict(zip(parts, calls, strict=True))

    def _submit(self, worker: str, work: Callable[..., object], *given: object, actor: bool = False) -> Future:
        return self.client.submit(work, *given, workers=[worker], allow_other_workers=False, pure=False, actor=actor)

    def _broadcast(
        self, request: Request[Told], workers: Sequence[str], sent: list[Future]
    ) -> Mapping[str, Request[Told] | Future]:
        """The request as each worker gets it; `sent` gets the futures that stand for it on the way."""
        if sum(message.nbytes for message in request.messages) <= SMALL:
            return dict.fromkeys(workers, request)
        scattered = self.client.scatter(
            [request], workers=[workers[0]], direct=self._direct, hash=False, asynchronous=True
        )
        (root,) = self.link.answer(scattered, self._check)
        down = {workers[0]: root}
        sent.append(root)
        for level in reversed(tree(len(workers))):
            for sender, receiver in level:
                down[workers[receiver]] = self._submit(workers[receiver], handed_on, down[workers[sender]])
                sent.append(down[workers[receiver]])
        return down

    def _wait(self, root: Future, calls: Mapping[int, Future], request: Request[Told]) -> Replies[Told] | NoReply:
        """The reply at the root of the tree, while there is hope for it."""
        began, told = perf_counter(), SLOW

        def meanwhile() -> None:
            nonlocal told
            self._check()
            waited = perf_counter() - began
            if waited >= told:
                told *= 3.0
                self.announce(f"{request.name}: waiting for {self._late(calls)} for {waited:.0f} s")

        return self.link.answer(self.client.gather(root, direct=self._direct, asynchronous=True), meanwhile)

    def _late(self, calls: Mapping[int, Future]) -> str:
        """Whose answer is missing."""
        late: dict[str, list[int]] = {}
        for part, one in calls.items():
            if one.status == "pending":
                late.setdefault(self._seats[part].worker, []).append(part)
        named = [f"{worker} (part {', '.join(map(str, parts))})" for worker, parts in late.items()]
        return "; ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "") or "the sums"

    def _check(self) -> None:
        """Raise if the scheduler or a worker with a part has gone."""
        alive = self.link.alive()
        if lost := [part for part, seat in self._seats.items() if seat.worker not in alive]:
            raise _LostError(lost)

    def _explain(self, error: Exception | None) -> NoReturn:
        """Find out why there is no answer: the scheduler has gone, or parts have, or nobody has; then try again."""
        self._check()
        there = self.link.run(held_here, workers={seat.worker for seat in self._seats.values()})
        lost = [part for part, seat in self._seats.items() if seat.token not in there.get(seat.worker, ())]
        self._failures += not lost
        if self._failures > OFTEN:
            why = "calls are lost" if error is None else one_line(error)
            raise DotaddError(f"Dask fails again and again, though all workers are there: {why}") from error
        raise _LostError(lost)

    def _seat(self, parts: Sequence[int], files: Files, alive: Mapping[str, int], *, first: bool = True) -> None:
        """Give each of these parts a place."""
        chosen = self._choose(parts, files, alive)
        counts: dict[str, int] = {}
        for worker in [seat.worker for seat in self._seats.values()] + list(chosen.values()):
            counts[worker] = counts.get(worker, 0) + 1
        for part, worker in chosen.items():
            recipe = Recipe(
                number=part,
                paths=tuple(self.groups[part]),
                data=self.data,
                memory=self.memory,
                threads=self.threads or max(1, alive[worker] // counts[worker]),
                planned=counts[worker] if first else None,
                neighbours=sum(host_of(other) == host_of(worker) for other in alive),
            )
            token = f"part-{part}-{os.urandom(8).hex()}"
            self._seats[part] = _Seat(worker, token, self._submit(worker, Holder, token, recipe, actor=True))
        self._direct = within_reach(self._seats[0].worker) or None
        self._wait_for_seats(parts)

    def _choose(self, parts: Sequence[int], files: Files, alive: Mapping[str, int]) -> dict[int, str]:
        """A worker for each part: the one with least to do of those that have its files. Neighbours stay together."""
        load = dict.fromkeys(alive, 0)
        for seat in self._seats.values():
            if seat.worker in load:
                load[seat.worker] += 1
        chosen, alike = {}, True
        for part in parts:
            able = files.workers_with(self.groups[part])
            if not able:
                raise DataError("none of the workers that are there has this file", self.groups[part][0])
            alike &= len(able) == len(alive)
            chosen[part] = min(able, key=lambda worker: ((load[worker] + 1) / alive[worker], worker))
            load[chosen[part]] += 1
        return dict(zip(parts, sorted(chosen.values()), strict=True)) if alike else chosen

    def _wait_for_seats(self, parts: Sequence[int]) -> None:
        from distributed import CancelledError, TimeoutError, wait

        actors = [self._seats[part].actor for part in parts]
        while any(actor.status == "pending" for actor in actors):
            try:
                with self.client.as_current():
                    wait(actors, timeout=POLL)
            except TimeoutError:
                self._check()
            except CancelledError:
                break
        if lost := [part for part in parts if self._seats[part].actor.status != "finished"]:
            raise _LostError(lost)

    def _replace(self, lost: Sequence[int]) -> list[int]:
        """Make lost parts anew, and let them begin the task if there is one; returns all that were lost meanwhile."""
        gone: set[int] = set()
        without_seat, to_begin = set(lost), set[int]()
        while without_seat or to_begin:
            gone |= without_seat
            self._mourn(without_seat)
            try:
                if without_seat:
                    alive, files = self.link.survey(self.data.names)
                    to_begin |= without_seat
                    self._seat(sorted(without_seat), files, alive, first=False)
                    without_seat = set()
                if self._begun is not None:
                    self._ask(sorted(to_begin), self._begun)
                to_begin = set()
            except _LostError as more:
                without_seat = set(more.parts) | {part for part in without_seat if part not in self._seats}
                to_begin -= without_seat
        return sorted(gone)

    def _mourn(self, lost: Collection[int]) -> None:
        """Let go of lost parts, count and announce them."""
        for part in lost:
            if part in self._seats:
                self._seats.pop(part).actor.release()
            self._losses[part] = self._losses.get(part, 0) + 1
            if self._losses[part] > OFTEN:
                raise DotaddError(
                    f"part {part} ({self.groups[part][0]}) was lost {self._losses[part]} times: do its workers run "
                    "out of memory?"
                )
        if lost:
            numbered = ", ".join(map(str, sorted(lost)))
            self.announce(f"a worker was lost, and part {numbered} with it: made anew elsewhere")
