"""The options for checkpoints and data larger than memory, and for work on more than one machine.

Training on data that is read again and again keeps its state in a checkpoint, and can go on from there. On data in
memory it does so where somebody asks for it.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cyclopts import Group, Parameter

from dotadd._util.atomic import require_writable
from dotadd._util.standard_input import DEVICE
from dotadd.cli.options import MEMORY, Flag, Processes, Real
from dotadd.cli.screen import tell
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from distributed import Client

    from dotadd.cli.options import Reading
    from dotadd.cluster.partitions import Partitions
    from dotadd.estimators.linear import LinearSVM
    from dotadd.model.file import Record
    from dotadd.solvers.result import Result


@Parameter(name="*", group=MEMORY)
@dataclass(frozen=True, kw_only=True)
class Streaming:
    """How to keep the state of training, and how to train on data that is read again and again."""

    checkpoint: str | None = None
    """The file for the state of training, removed when it is done. By default it is OUTPUT.checkpoint for data larger
    than memory, and none is written for data that fits."""

    checkpoint_every: Real = 60.0
    """Seconds between two checkpoints."""

    resume: Flag = False
    """Go on from the checkpoint; data and options have to be the same, but for limits on passes and time."""

    keep_cache: bool = True
    """Keep the Arrow copy of text data, beside it, for the next time."""

    def path(self, output: str) -> str | None:
        """The checkpoint's name; a pipe or a device has none beside it."""
        from dotadd.solvers.checkpoint import Unasked

        beside = not os.path.exists(output) or os.path.isfile(output)
        usual = str if self.asked else Unasked
        return self.checkpoint or (usual(f"{output}.checkpoint") if beside else None)

    @property
    def _often(self) -> bool:
        """Whether checkpoints were asked for by how often they are to be written."""
        return self.checkpoint_every != type(self).checkpoint_every

    @property
    def asked(self) -> bool:
        """Whether a checkpoint was asked for, by whatever option."""
        return self.checkpoint is not None or self._often or self.resume

    def checkpoints(self, output: str) -> Record:
        """The arguments of `fit` about them; of none at all nobody says how often."""
        path = self.path(output)
        every = self.checkpoint_every if path is not None or self._often else None
        keep = path is not None  # until the model is saved
        return {"checkpoint": path, "checkpoint_every": every, "resume": self.resume, "keep_checkpoint": keep}

    def require(self, output: str) -> None:
        """Refuse now what could not work later."""
        from dotadd.solvers.checkpoint import Checkpoint

        if not (0.0 < self.checkpoint_every < math.inf):
            raise DotaddError(f"--checkpoint-every {self.checkpoint_every:g} has to be a positive number of seconds")
        path = self.path(output)
        if path is None:
            if self.resume:
                raise DotaddError(f"{output} has no checkpoint beside it to go on from; name one with --checkpoint")
            return
        if os.path.realpath(path) == os.path.realpath(output):
            raise DotaddError(f"{path} cannot be both model and checkpoint; give another --checkpoint")
        require_writable(path)
        if self.resume and not os.path.exists(path):
            raise DotaddError(f"{path}: there is no checkpoint to go on from; leave out --resume to start anew")
        with Checkpoint(path).held():  # or else nothing is touched, the log of the other run neither
            pass

    def finish(self, svm: LinearSVM, output: str, client: Client | None = None) -> None:
        """Remove the checkpoint of training that is done, and what workers have of it; of training that is not, say how
        to go on."""
        from dotadd.solvers.result import Reason

        path, reasons = self.path(output), {result.reason for result in results(svm)}
        written = self.asked or streamed(svm) or client is not None  # otherwise it is that of another run
        if path is None or not os.path.exists(path) or not written:
            return
        if not any(reason.goes_on for reason in reasons):
            os.remove(path)
            if client is not None:
                from dotadd.cluster.fitting import forget_checkpoint

                forget_checkpoint(client, os.path.abspath(path))
            return
        raised = ", with a larger --max-passes" if Reason.MAX_PASSES in reasons else ""
        tell(f"to go on from {path}{raised}: {command_line('--resume')}")


def results(svm: LinearSVM) -> list[Result]:
    """The results of the binary problems, one or several."""
    return svm.result_ if isinstance(svm.result_, list) else [svm.result_]


def streamed(svm: LinearSVM) -> bool:
    """Whether the examples were read from disk while the solver worked."""
    return any(row.read is not None for result in results(svm) for row in result.trace)


def command_line(*more: str) -> str:
    """What the user typed, and these options if they were not there."""
    typed = sys.argv[1:]
    return shlex.join(["dotadd", *typed, *(option for option in more if option not in typed)])


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
        """Whether there is to be one. Refuses certificates for none."""
        given = self._certificates()
        if given and (len(given) < 3 or self.scheduler is None):
            raise DotaddError("--tls-ca, --tls-cert and --tls-key go together, and with --scheduler")
        return self.scheduler is not None or self.workers is not None

    def _certificates(self) -> list[str]:
        return [name for name in (self.tls_ca, self.tls_cert, self.tls_key) if name is not None]

    def threads(self, jobs: int | None) -> int | None:
        """Threads for each file: workers that are started here share out the cores among them."""
        return None if self.workers else jobs

    @contextmanager
    def client(self, jobs: int | None) -> Iterator[Client | None]:
        """The connection, if one is wanted."""
        if not self.wanted:
            yield None
            return
        from dotadd.cluster.connection import Certificates, connected, local_workers

        if self.scheduler is not None and self.workers is not None:
            raise DotaddError("--scheduler names workers that are there, and --workers starts others: give one of them")
        if self.scheduler is not None:
            given = self._certificates()
            with connected(self.scheduler, Certificates(*given) if given else None) as client:
                yield client
        else:
            assert self.workers is not None
            with local_workers(self.workers, jobs) as client:
                yield client


def partitions(
    data: Sequence[str], reading: Reading, read_as: Record | None = None, ids: Sequence[str] = ()
) -> Partitions:
    """The files as workers will find and read them; nothing is opened here."""
    from dotadd.cluster.partitions import Partitions

    if DEVICE in data:
        raise DotaddError("workers read files, and cannot read standard input (-): write it to a file first")
    return Partitions.of(list(data), read_as=read_as, ids=tuple(ids), **reading.given())
