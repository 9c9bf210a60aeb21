"""The options for work on more than one machine, shared by the commands that can do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cyclopts import Group, Parameter

from dotadd.cli.numbers import Processes

if TYPE_CHECKING:
    from distributed import Client

    from dotadd.cli.reading import Reading
    from dotadd.distributed.partitions import Partitions

MACHINES = Group("More than one machine", sort_key=5)


@Parameter(name="*", group=MACHINES)
@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Who does the work."""

    scheduler: str | None = None
    """Address of a Dask scheduler, such as tcp://10.0.0.1:8786; its workers read the files where they are. Whoever
    reaches one can run code on its workers: use tls:// where others can."""

    tls_ca: str | None = None
    """For a scheduler at tls://: file (PEM) of the authority that signed the certificates of the cluster. By default,
    all three are those of Dask's own configuration."""

    tls_cert: str | None = None
    """File (PEM) of a certificate that the scheduler takes."""

    tls_key: str | None = None
    """File (PEM) of the key of this certificate."""

    workers: Processes | None = None
    """Start so many Dask workers on this machine instead, which take orders from nobody else. --memory is for each.
    Both need Dask: pip install 'dotadd[dask]'"""

    @property
    def wanted(self) -> bool:
        return self.scheduler is not None or self.workers is not None

    @contextmanager
    def client(self, jobs: int | None) -> Iterator[Client | None]:
        """The connection, if one is wanted."""
        from dotadd.errors import DotaddError

        given = [name for name in (self.tls_ca, self.tls_cert, self.tls_key) if name is not None]
        if given and (len(given) < 3 or self.scheduler is None):
            raise DotaddError("--tls-ca, --tls-cert and --tls-key go together, and with --scheduler")
        if not self.wanted:
            yield None
            return
        from dotadd.distributed.connection import Certificates, connected, local_workers

        if self.scheduler is not None and self.workers is not None:
            raise DotaddError("--scheduler names workers that are there, and --workers starts others: give one of them")
        if self.scheduler is not None:
            with connected(self.scheduler, Certificates(*given) if given else None) as client:
                yield client
        else:
            assert self.workers is not None
            with local_workers(self.workers, jobs) as client:
                yield client


def partitions(data: Sequence[str], reading: Reading) -> Partitions:
    """The files as workers will find and read them; nothing is opened here."""
    from dotadd.distributed.partitions import Partitions

    return Partitions.of(list(data), **reading.given())
