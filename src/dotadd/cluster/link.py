"""Link: a Dask client of which each question ends, with an answer or with who has gone.

Dask tells of a loss in many ways. A future is cancelled if a vector was lost that it is made of, if this client was cut
off, or if someone restarts the workers; it waits for ever if it was to run, or was kept, on a worker that is not there;
a connection closes before the scheduler knows why, or after. None of these says who has gone, so none is believed: they
are reasons to ask. The scheduler has gone if it does not answer, once the client has tried to connect again. A worker
has gone if the scheduler does not name it, or if it does not answer. All else is told by the workers themselves.

What is run on a worker returns its own errors (Failed), so that whatever is raised here is Dask's.
"""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, NoReturn

from dotadd.cluster.connection import ANSWER, one_line
from dotadd.cluster.partitions import Files, find
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from distributed import Client

POLL = 0.25  # seconds between two looks at who is there
SILENCE = 60.0  # seconds in which a scheduler that is connected has to answer
PATIENCE = 60.0  # seconds to wait for a worker where none is left
ATTEMPTS = 5  # at finding out who is there, while workers come and go


@dataclass(frozen=True)
class Failed:
    """What was raised on a worker."""

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> Failed:
        """As it can be sent. Errors that nobody expects bring the lines of code that they came from."""
        if not isinstance(error, DotaddError | OSError | MemoryError):
            error.add_note("on the worker:\n" + "".join(traceback.format_exception(error)))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return cls(RuntimeError(f"{type(error).__name__}: {error}"))
        return cls(error)


def tried(work: Callable[..., Any], *given: Any) -> Any:
    """What the work returns, or how it failed; a worker calls this."""
    try:
        return work(*given)
    except Exception as error:
        return Failed.of(error)


def succeeded(answer: Any) -> Any:
    """The answer, if it is none of a failure, which is raised here."""
    if isinstance(answer, Failed):
        raise answer.error
    return answer


class _FewerError(Exception):
    """Some of those who were asked have gone."""


class Link:
    """A client, and announce(line), which is told what is waited for."""

    def __init__(self, client: Client, announce: Callable[[str], None] = lambda line: None) -> None:
        if client.asynchronous:
            raise DotaddError("the Dask client is asynchronous; give one that is not")
        self.client, self.announce = client, announce
        self.address = getattr(client.scheduler, "address", "?")
        self._alike: set[str] = set()  # workers whose version was looked at

    def alive(self) -> dict[str, int]:
        """The threads of each worker that is there. A client that was cut off has some time to come back."""
        until, why = perf_counter() + SILENCE, None
        while self.client.status in ("running", "connecting") and perf_counter() < until:
            try:
                return self.client.nthreads(callback_timeout=ANSWER)
            except Exception as error:  # of Dask, in many ways: there is no connection now
                why = error
                sleep(POLL)
        self._scheduler_gone(why)

    def _scheduler_gone(self, why: BaseException | None) -> NoReturn:
        raise DotaddError(f"the Dask scheduler at {self.address} has gone") from why

    def answer(self, question: Coroutine[Any, Any, Any], meanwhile: Callable[[], object]) -> Any:
        """What Dask answers; meanwhile() is called now and then, and may raise if there is no hope for it.

        A question that is given up is left to itself: to cancel it could leave the client's own books in disorder.
        """
        loop: Any = self.client.loop
        asked = asyncio.run_coroutine_threadsafe(question, loop.asyncio_loop)
        while True:
            try:
                return asked.result(POLL)
            except TimeoutError:
                if asked.done():
                    return asked.result()
            meanwhile()

    def run(self, work: Callable[..., Any], *given: Any, workers: Iterable[str]) -> dict[str, Any]:
        """What work(*given) returns on each of these workers, but for those that do not answer."""
        asked, failures = list(workers), 0

        def check() -> None:  # Dask tries for long to connect to workers of which it knows that they have gone
            alive = self.alive()
            if not all(worker in alive for worker in asked):
                raise _FewerError

        while asked:
            try:
                question = self.client.run(work, *given, workers=asked, on_error="ignore", asynchronous=True)
                return self.answer(question, check)
            except DotaddError:
                raise
            except _FewerError:
                pass
            except Exception as error:  # of Dask: the client was cut off
                failures += 1
                if failures == ATTEMPTS:
                    what = f"the Dask scheduler at {self.address} does not reach its workers"
                    raise DotaddError(f"{what}: {one_line(error)}") from error
                sleep(POLL)
            alive = self.alive()
            asked = [worker for worker in asked if worker in alive]
        return {}

    def survey(self, names: Sequence[str]) -> tuple[dict[str, int], Files]:
        """The workers that are there, all of our version, and the files of these names that they have."""
        for _ in range(ATTEMPTS):
            alive = self._some()
            self._require_same_version(alive.keys() - self._alike)
            if found := self.run(tried, find, names, workers=alive):
                seen = {worker: succeeded(files) for worker, files in found.items()}
                return {worker: alive[worker] for worker in alive if worker in seen}, Files.of(names, seen)
            sleep(POLL)
        raise DotaddError(f"workers of the Dask scheduler at {self.address} come and go, and none of them answers")

    def _require_same_version(self, workers: Collection[str]) -> None:
        """Refuse workers with another version of dotadd, or none."""
        from dotadd._version import __version__

        def version() -> str | None:  # sent by value, as a worker may not have this module
            from importlib.metadata import PackageNotFoundError
            from importlib.metadata import version as installed

            try:
                return installed("dotadd")
            except PackageNotFoundError:
                return None

        for worker, found in sorted(self.run(version, workers=workers).items()):
            if found != __version__:
                other = "has no dotadd" if found is None else f"has dotadd {found}"
                raise DotaddError(
                    f"the worker {worker} {other}, and here is {__version__}: install the same everywhere"
                )
            self._alike.add(worker)

    def _some(self) -> dict[str, int]:
        """The workers that are there; waits for one if there is none."""
        began, told = perf_counter(), False
        while not (alive := dict(sorted(self.alive().items()))):
            if perf_counter() - began > PATIENCE:
                raise DotaddError(
                    f"the Dask scheduler at {self.address} has no workers, and none came in {PATIENCE:.0f} s"
                )
            if not told:
                told = True
                self.announce(f"there is no worker; waiting for one for {PATIENCE:.0f} s")
            sleep(POLL)
        return alive

    def forget(self, futures: Collection[Any]) -> None:
        """Drop what was asked for. It may run on for a while, and nobody listens."""
        if self.client.status == "running":
            try:
                self.client.cancel(list(futures), force=True)
            except Exception:  # of Dask: the connection has gone, and all that was asked for with it
                return
