"""Connections to Dask: to a scheduler that is there, or to workers that are started on this machine.

Whoever can connect to a scheduler or a worker can run code there. So workers that we start listen to those alone who
have a key that is made for them, never written down and forgotten with them; and a scheduler that wants TLS is given
the certificates that its owner has.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dotadd.errors import DotaddError, require_extra

if TYPE_CHECKING:
    from distributed import Client, Security

ANSWER = 5.0  # seconds in which a scheduler has to answer, each time that it is asked


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

    By default, these are those of Dask's own configuration, if there are any.
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


def require_client(engine: Any) -> None:
    """Refuse what is no Dask client."""
    _require_dask()
    from distributed import Client

    if not isinstance(engine, Client):
        raise DotaddError(f"engine has to be a Dask client (distributed.Client), not {type(engine).__name__}")


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
