"""Connections to Dask: to a scheduler that is there, or to workers that are started on this machine."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from distributed import Client

ANSWER = 5.0  # seconds in which a scheduler has to answer, each time that it is asked


def _require_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise DotaddError("training on several machines needs Dask: pip install 'dotadd[dask]'") from None


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at this address, such as tcp://10.0.0.1:8786."""
    _require_dask()
    from distributed import Client

    with _quiet():
        try:
            client = Client(address, timeout=ANSWER, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            why = "no Dask scheduler answers there" if isinstance(error, OSError) else str(error)
            raise DotaddError(f"{address}: {why}; start one with `dask scheduler`, and give its address") from None
        with client:
            yield client


@contextmanager
def local_workers(count: int, threads: int | None = None) -> Iterator[Client]:
    """A client of so many workers on this machine, which end with it; they share out the cores."""
    _require_dask()
    import dask
    from distributed import Client, LocalCluster

    if count < 1:
        raise DotaddError(f"{count} workers cannot train; start at least one")
    each = max(1, (threads or os.cpu_count() or 1) // count)
    with (
        _quiet(),
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}),  # a worker that died may start slowly
        LocalCluster(
            n_workers=count, threads_per_worker=each, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            memory_limit=0, silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        client.register_plugin(_deaf_to_interrupts())
        yield client


def require_client(engine: Any) -> None:
    """Refuse what is no Dask client."""
    _require_dask()
    from distributed import Client

    if not isinstance(engine, Client):
        raise DotaddError(f"engine has to be a Dask client (distributed.Client), not {type(engine).__name__}")


def within_reach(address: str) -> bool:
    """Whether this machine can connect to a worker without going through the scheduler."""
    place = urlsplit(address)
    if place.scheme != "tcp" or place.hostname is None or place.port is None:
        return False
    try:
        socket.create_connection((place.hostname, place.port), timeout=2.0).close()
    except OSError:
        return False
    return True


def host_of(address: str) -> str:
    return urlsplit(address).hostname or address


def _deaf_to_interrupts() -> Any:
    """Ctrl-C in a terminal, or its end, reaches all processes that were started there; it is for the driver alone."""
    from distributed import WorkerPlugin

    class Deaf(WorkerPlugin):
        name = "dotadd-deaf"

        def setup(self, worker: Any) -> None:
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
