"""The engine on a Dask cluster: each part lives on a worker, and rounds are graphs of tasks pinned to the workers.

A round is three layers of tasks. w, or its change, goes down a tree over the workers; each part is called; replies go
up the tree over the parts of transport.py, so that sums have the same bits wherever parts live. Small messages go with
the calls themselves. The driver sends one message and gets one reply, and the scheduler sees no vector as long as the
driver reaches the first worker directly.

When a worker is lost, calls that were sent are dropped, and its parts are made anew where there is least to do among
the workers that have their files: also on one that joined late, which is not used before. What the new ones do not
know is the driver's business (PartsLostError). If no worker is left, one is waited for. A call that is sent to a worker
that came back under its old address finds no part there, and calls out of order are refused, so that no part ever
takes a step twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, NoReturn, Self

from dotadd._jit import plain
from dotadd.distributed.connection import host_of, require_same_version, within_reach
from dotadd.distributed.engine import PartsLostError, Replies
from dotadd.distributed.held import Holder, PartGoneError, Recipe, Reply, Request, Vectors, added, call, handed_on
from dotadd.distributed.partitions import Files, Partitions, find
from dotadd.distributed.task import Task
from dotadd.distributed.transport import Message, tree
from dotadd.errors import DataError, DotaddError

if TYPE_CHECKING:
    from distributed import Client, Future

SMALL = 1 << 16  # bytes of messages that go with the calls
POLL = 0.25  # seconds between two looks at who is there
SLOW = 10.0  # seconds after which it is told who is waited for
PATIENCE = 60.0  # seconds to wait for a worker where none is left
ATTEMPTS = 5  # at finding out who is there, while workers come and go
OFTEN = 5  # losses of one part, after which there is no use in trying again


class _LostError(Exception):
    """Workers of these parts have gone."""

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
        if client.asynchronous:
            raise DotaddError("the Dask client is asynchronous; give one that is not")
        self.client, self.data, self.memory, self.threads, self.announce = client, data, memory, threads, announce
        self._address = getattr(client.scheduler, "address", "?")
        self._known: set[str] = set()  # workers whose version was looked at
        self._seats: dict[int, _Seat] = {}
        self._losses: dict[int, int] = {}
        self._sequence = 0
        self._task: Task | None = None
        alive, files = self._survey()
        found = files.groups(alive) if groups is None else groups
        self.groups = [list(group) for group in found]
        if changed := {path for group in self.groups for path in group} ^ files.sizes.keys():
            raise DataError("is not one of the files that training began with, or no longer there", min(changed))
        try:
            self._seat(range(self.parts), files, alive)
        except _LostError as lost:
            self._replace(lost.parts)

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

    def round(self, method: str, vectors: Sequence[Message] = (), **numbers: Any) -> Replies:
        if method in ("outline", "tally", "begin"):
            self._task = None  # another one is being prepared
        try:
            while True:
                try:
                    reply = self._ask(range(self.parts), Request(method, numbers), vectors)
                    break
                except _LostError as lost:
                    gone = self._replace(lost.parts)
                    if self._task is not None:
                        raise PartsLostError(gone) from None
        except OSError as error:
            if self.client.status == "running":
                raise
            self._scheduler_gone(error)
        if method == "begin":
            self._task = numbers["task"]
        vectors = [replace(message, values=plain(message.values)) for message in reply.vectors]
        return Replies([reply.numbers[part] for part in range(self.parts)], vectors)

    def _ask(self, parts: Sequence[int], request: Request, vectors: Sequence[Message] = ()) -> Reply:
        """What these parts answer, joined."""
        self._sequence += 1
        submit, seats = self._submit, [self._seats[part] for part in parts]
        down, below = self._broadcast(Vectors(tuple(vectors)), list(dict.fromkeys(seat.worker for seat in seats)))
        calls = [
            submit(seat.worker, call, seat.token, self._sequence, part, request, down[seat.worker])
            for part, seat in zip(parts, seats, strict=True)
        ]
        up, sums = list(calls), []
        for level in tree(len(parts)):
            for receiver, sender in level:
                up[receiver] = submit(seats[receiver].worker, added, up[receiver], up[sender])
                sums.append(up[receiver])
        try:
            return self._wait(up[0], dict(zip(parts, calls, strict=True)), request.method)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel([*below, *calls, *sums], force=True)
            raise

    def _submit(self, worker: str, work: Callable[..., Any], *given: Any, **options: Any) -> Future:
        return self.client.submit(work, *given, workers=[worker], allow_other_workers=False, pure=False, **options)

    def _broadcast(self, vectors: Vectors, workers: Sequence[str]) -> tuple[dict[str, Any], list[Future]]:
        """The messages as each worker gets them, and the futures that stand for them on the way."""
        if sum(message.nbytes for message in vectors.messages) <= SMALL:
            return dict.fromkeys(workers, vectors), []
        try:
            (root,) = self.client.scatter([vectors], workers=[workers[0]], direct=self._direct, hash=False)
        except (OSError, KeyError, ValueError, TypeError) as error:  # Dask's ways to say that a worker is not there
            self._check()
            raise DotaddError(f"the worker {workers[0]} cannot be reached: {error}") from error
        down = {workers[0]: root}
        for level in reversed(tree(len(workers))):
            for sender, receiver in level:
                down[workers[receiver]] = self._submit(workers[receiver], handed_on, down[workers[sender]])
        return down, list(down.values())

    def _wait(self, root: Future, calls: Mapping[int, Future], what: str) -> Reply:
        """The reply at the root of the tree, while there is hope for it."""
        from distributed.scheduler import KilledWorker

        began, told = perf_counter(), SLOW
        while root.status == "pending":
            self._wait_a_moment([root])
            waited = perf_counter() - began
            if waited >= told and root.status == "pending":
                told *= 3.0
                self.announce(f"{what}: waiting for {self._late(calls)} for {waited:.0f} s")
        try:
            if root.status == "cancelled":
                self._scheduler_gone()
            return self.client.gather(root, direct=self._direct)
        except PartGoneError:
            gone = [part for part, one in calls.items() if isinstance(one.exception(timeout=1.0), PartGoneError)]
            raise _LostError(gone or calls) from None
        except (DotaddError, MemoryError):
            raise
        except (KilledWorker, OSError, KeyError, RuntimeError):  # of Dask, if a worker has gone meanwhile
            self._check()
            raise

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
        if self.client.status != "running":
            self._scheduler_gone()
        alive = self.client.nthreads()
        lost = [part for part, seat in self._seats.items() if seat.worker not in alive]
        if lost:
            raise _LostError(lost)

    def _scheduler_gone(self, error: BaseException | None = None) -> NoReturn:
        raise DotaddError(f"the Dask scheduler at {self._address} has gone") from error

    def _workers(self) -> dict[str, int]:
        """The threads of each worker that is there; waits for one if there is none."""
        began, told = perf_counter(), False
        while True:
            if self.client.status != "running":
                self._scheduler_gone()
            if alive := dict(sorted(self.client.nthreads().items())):
                break
            if perf_counter() - began > PATIENCE:
                raise DotaddError(
                    f"the Dask scheduler at {self._address} has no workers, and none came in {PATIENCE:.0f} s"
                )
            if not told:
                told = True
                self.announce(f"there is no worker; waiting for one for {PATIENCE:.0f} s")
            sleep(POLL)
        return alive

    def _survey(self) -> tuple[dict[str, int], Files]:
        """The workers that are there, all of our version, and the files that they have."""
        for _ in range(ATTEMPTS):
            alive = self._workers()
            try:
                if new := alive.keys() - self._known:
                    require_same_version(self.client, new)
                    self._known |= new
                return alive, Files.of(self.data.names, self.client.run(find, self.data.names, workers=list(alive)))
            except DotaddError:
                raise
            except (OSError, KeyError, ValueError) as error:  # of Dask, if a worker has gone meanwhile
                gone = error
                sleep(POLL)
        raise DotaddError(f"workers come and go: {gone}") from gone

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
        actors = [self._seats[part].actor for part in parts]
        while any(actor.status == "pending" for actor in actors):
            self._wait_a_moment(actors)

    def _wait_a_moment(self, futures: Sequence[Future]) -> None:
        from distributed import CancelledError, TimeoutError, wait

        try:
            with self.client.as_current():
                wait(futures, timeout=POLL)
        except CancelledError:
            self._scheduler_gone()
        except TimeoutError:
            self._check()

    def _replace(self, lost: Sequence[int]) -> list[int]:
        """Make lost parts anew, and let them begin the task if there is one; returns all that were lost meanwhile."""
        gone: set[int] = set()
        waiting = set(lost)
        while waiting:
            gone |= waiting
            for part in waiting:
                if part in self._seats:
                    self._seats.pop(part).actor.release()
                self._losses[part] = self._losses.get(part, 0) + 1
                if self._losses[part] > OFTEN:
                    raise DotaddError(
                        f"part {part} ({self.groups[part][0]}) was lost {self._losses[part]} times: do its workers run "
                        "out of memory?"
                    )
            numbered = ", ".join(map(str, sorted(waiting)))
            self.announce(f"a worker was lost, and part {numbered} with it: made anew elsewhere")
            try:
                alive, files = self._survey()
                self._seat(sorted(waiting), files, alive, first=False)
                if self._task is not None:
                    self._ask(sorted(waiting), Request("begin", {"task": self._task}))
                waiting = set()
            except _LostError as more:
                waiting = set(more.parts) | {part for part in waiting if part not in self._seats}
        return sorted(gone)
