"""The options for training on data larger than memory: where its state is kept, and whether to go on from there."""

from __future__ import annotations

import math
import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dotadd.cli.numbers import Real
from dotadd.cli.screen import tell
from dotadd.cli.solving import MEMORY, results

if TYPE_CHECKING:
    from distributed import Client

    from dotadd.estimators import LinearSVM


@Parameter(name="*", group=MEMORY)
@dataclass(frozen=True, kw_only=True)
class Streaming:
    """How to train on data that is read again and again."""

    checkpoint: str | None = None
    """The file for the state of training, removed when it is done; by default OUTPUT.checkpoint."""

    checkpoint_every: Real = 60.0
    """Seconds between two checkpoints."""

    resume: Annotated[bool, Parameter(negative="", show_default=False)] = False
    """Go on from the checkpoint; data and options have to be the same, but for limits on passes and time."""

    keep_cache: bool = True
    """Keep the Arrow copy of text data, beside it, for the next time."""

    def path(self, output: str) -> str | None:
        """The checkpoint's name; a pipe or a device has none beside it."""
        from dotadd.solvers.checkpoint import Unasked

        beside = not os.path.exists(output) or os.path.isfile(output)
        usual = str if self._often else Unasked
        return self.checkpoint or (usual(f"{output}.checkpoint") if beside else None)

    @property
    def _often(self) -> bool:
        """Whether checkpoints were asked for by how often they are to be written."""
        return self.checkpoint_every != type(self).checkpoint_every

    def checkpoints(self, output: str) -> dict[str, Any]:
        """The arguments of `fit` about them; of none at all nobody says how often."""
        path = self.path(output)
        every = self.checkpoint_every if path is not None or self._often else None
        return {"checkpoint": path, "checkpoint_every": every, "resume": self.resume}

    def require(self, output: str) -> None:
        """Refuse now what could not work later."""
        from dotadd.atomic import require_writable
        from dotadd.errors import DotaddError

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

    def finish(self, svm: LinearSVM, output: str, client: Client | None = None) -> None:
        """Remove the checkpoint of training that is done, and what workers have of it; of training that is not, say how
        to go on."""
        from dotadd.solvers.result import Reason

        path, reasons = self.path(output), {result.reason for result in results(svm)}
        if path is None or not os.path.exists(path) or not (streamed(svm) or client is not None):
            return
        if not reasons & {Reason.INTERRUPTED, Reason.MAX_TIME, Reason.MAX_PASSES}:
            os.remove(path)
            if client is not None:
                from dotadd.distributed.fitting import forget_checkpoint

                forget_checkpoint(client, os.path.abspath(path))
            return
        raised = ", with a larger --max-passes" if Reason.MAX_PASSES in reasons else ""
        tell(f"to go on from {path}{raised}: {command_line('--resume')}")


def streamed(svm: LinearSVM) -> bool:
    """Whether the examples were read from disk while the solver worked."""
    return any(row.read is not None for result in results(svm) for row in result.trace)


def command_line(*more: str) -> str:
    """What the user typed, and these options if they were not there."""
    typed = sys.argv[1:]
    return shlex.join(["dotadd", *typed, *(option for option in more if option not in typed)])
