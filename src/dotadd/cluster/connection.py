"""Dask as the driver meets it: connections, and a client whose questions all come to an end.

Whoever can connect to a scheduler or a worker can run code there. So workers that we start listen only to whoever has a
key that is made for them, is never written down and is forgotten with them. A scheduler that wants TLS is given the
certificates of its owner.

Dask tells of a loss in many ways. A future is cancelled if a vector that it is made of was lost, if this client was cut
off, or if someone restarts the workers. It waits for ever if it was to run, or was kept, on a worker that is gone. A
connection closes before the scheduler knows why, or after. None of these says who has gone, so none is believed: they
are reasons to ask (`Link`). The scheduler has gone if it does not answer, once the client has tried to connect again. A
worker has gone if the scheduler does not name it, or if it does not answer. All else is told by the workers themselves.
What is run on a worker returns its own errors (`Failed`), so that whatever is raised here is Dask's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import socket
import ssl
import traceback
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from dotadd.cluster.partitions import Files, find
from dotadd.errors import DotaddError, require_extra

if TYPE_CHECKING:
    from distributed import Client, Future, Security, WorkerPlugin

ANSWER = 5.0  # seconds in which a scheduler has to answer, each time that it is asked
POLL = 0.25  # seconds between two looks at who is there
SILENCE = 60.0  # seconds in which a scheduler that is connected has to answer
PATIENCE = 60.0  # seconds to wait for a worker where none is left
ATTEMPTS = 5  # at finding out who is there, while workers come and go

T = TypeVar("T")


def _require_dask() -> None:
    require_extra("distributed", "work on several machines needs")


@dataclass(frozen=True)
class Certificates:
    """Files (PEM): the authority that signed all certificates of a cluster, one's own certificate, and its key."""

    ca: str
    cert: str
    key: str

    def security(self) -> Security:
        from distributed import Security

        for path in (self.ca, self.cert, self.key):
            with open(path, "rb"):  # an error that names the file
                pass
        made = Security(
            tls_ca_file=self.ca, tls_client_cert=self.cert, tls_client_key=self.key, require_encryption=True
        )
        try:
            made.get_connection_args("client")
        except ssl.SSLError as error:
            what = f"{self.cert}: it, {self.key} and {self.ca} are no certificate, its key and its authority"
            raise DotaddError(f"{what} in PEM form ({one_line(error)})") from None
        return made


@contextmanager
def connected(address: str, certificates: Certificates | None = None) -> Iterator[Client]:
    """A client of the scheduler at this address, such as tcp://10.0.0.1:8786, or tls:// if it wants certificates.

    By default, the certificates are those of Dask's own configuration, if there are any.
    """
    _require_dask()
    from distributed import Client

    if certificates is not None and "://" not in address:
        address = f"tls://{address}"
    if certificates is not None and not address.startswith("tls://"):
        raise DotaddError(f"{address}: certificates are for an address that begins with tls://")
    security = None if certificates is None else certificates.security()
    with _quiet():
        try:
            client = Client(address, timeout=ANSWER, set_as_default=False, security=security)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise DotaddError(f"{address}: {_why_not(address, error)}") from None
        with client:
            yield client


def _why_not(address: str, error: Exception) -> str:
    """Why there is no connection, and what to do."""
    if isinstance(error, TypeError) and address.startswith("tls://"):
        return "needs certificates: give --tls-ca, --tls-cert and --tls-key, or name them in Dask's configuration"
    if not isinstance(error, OSError):
        return f"{one_line(error)}; start a scheduler with `dask scheduler`, and give its address"
    if address.startswith("tls://"):
        return "no Dask scheduler answers there that takes these certificates, and that they vouch for"
    return (
        "no Dask scheduler answers there; start one with `dask scheduler`, and give its address "
        "(tls://... if it wants certificates)"
    )


@contextmanager
def local_workers(count: int, threads: int | None = None) -> Iterator[Client]:
    """A client of so many workers on this machine, which end with it; they share out the cores.

    Nobody else can connect to them.
    """
    _require_dask()
    import dask
    from distributed import Client, LocalCluster, Security

    if count < 1:
        raise DotaddError(f"{count} workers cannot train; start at least one")
    each = max(1, (threads or os.cpu_count() or 1) // count)
    try:
        security = Security.temporary()
    except ImportError:
        raise DotaddError("workers of one's own need the package cryptography: pip install 'dotadd[dask]'") from None
    with (
        _quiet(),
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}),  # one that died may be slow to start
        LocalCluster(
            n_workers=count, threads_per_worker=each, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            memory_limit=0, silence_logs=logging.CRITICAL, security=security,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        client.register_plugin(_deaf_to_interrupts())
        yield client


def one_line(error: Exception) -> str:
    """An error of Dask, which may go on for lines, for a message."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def within_reach(address: str) -> bool:
    """Whether this machine can connect to a worker without going through the scheduler."""
    place = urlsplit(address)
    if place.scheme not in ("tcp", "tls") or place.hostname is None or place.port is None:
        return False
    try:
        socket.create_connection((place.hostname, place.port), timeout=2.0).close()
    except OSError:
        return False
    return True


def host_of(address: str) -> str:
    return urlsplit(address).hostname or address


def _deaf_to_interrupts() -> WorkerPlugin:
    """Ctrl-C in a terminal, or its end, reaches all processes that were started there; it is for the driver alone."""
    from distributed import WorkerPlugin

    class Deaf(WorkerPlugin):
        name = "dotadd-deaf"

        def setup(self, worker: object) -> None:
            for name in ("SIGINT", "SIGHUP"):
                if hasattr(signal, name):
                    signal.signal(getattr(signal, name), signal.SIG_IGN)

    return Deaf()


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask tells of lost workers and connections by log lines; what matters of it is told by us."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


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


def tried(work: Callable[..., T], *given: object) -> T | Failed:
    """What the work returns, or how it failed; a worker calls this."""
    try:
        return work(*given)
    except Exception as error:
        return Failed.of(error)


def succeeded(answer: T | Failed) -> T:
    """The answer, if it is none of a failure, which is raised here."""
    if isinstance(answer, Failed):
        raise answer.error
    return answer


class _FewerError(Exception):
    """Some of those who were asked have gone."""


class Link:
    """A client, and announce(line), which is told what is waited for. Refuses what is no Dask client."""

    def __init__(self, client: Client, announce: Callable[[str], None] = lambda line: None) -> None:
        _require_dask()
        from distributed import Client

        if not isinstance(client, Client):
            raise DotaddError(f"engine has to be a Dask client (distributed.Client), not {type(client).__name__}")
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
        raise DotaddError(f"the Dask scheduler at {self.address} has gone") from why

    def answer(self, question: Coroutine[object, object, T], meanwhile: Callable[[], object]) -> T:
        """What Dask answers; meanwhile() is called now and then, and may raise if there is no hope for it.

        A question that is given up is left to itself: cancelling it could leave the client's own books in disorder.
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

    def run(self, work: Callable[..., T], *given: object, workers: Iterable[str]) -> dict[str, T]:
        """What work(*given) returns on each of these workers, without those that do not answer."""
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

    def forget(self, futures: Collection[Future]) -> None:
        """Drop what was asked for. It may run on for a while, and nobody listens."""
        if self.client.status == "running":
            with suppress(Exception):  # of Dask: the connection has gone, and all that was asked for with it
                self.client.cancel(list(futures), force=True)
