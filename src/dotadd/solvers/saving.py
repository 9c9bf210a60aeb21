"""Saving: a solver's way to its checkpoint, and back. The state of a Run is what a checkpoint holds of it.

    saving = Saving(settings, clock, runs, more)
    saving.resume()                          what runs had come to, if this one goes on
    with saving:                             errors of a reader: what was learned until then is kept
        while ...:
            saving.between_steps()           written if it is due
            ...
    saving.at_the_end()                      written unless all runs are done

A solver says in `Run.state` what it needs to go on, and takes it back in `Run.restore`; `more` is what all runs share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dotadd.errors import DotaddError
from dotadd.solvers.checkpoint import Arrays, CheckpointError
from dotadd.solvers.clock import Clock

if TYPE_CHECKING:
    from dotadd.solvers.run import Run, Settings

State = dict[str, Any]
"""Arrays, and numbers and lists of them that JSON can write, by name."""


class Saved:
    """The state of one run in a checkpoint: arrays are read when they are asked for."""

    def __init__(self, arrays: Arrays, record: State, prefix: str = "") -> None:
        self._arrays, self.record, self._prefix = arrays, record, prefix

    def __getitem__(self, name: str) -> Any:
        return self.record[name] if name in self.record else self._arrays[self._prefix + name]

    def get(self, name: str) -> Any:
        """None where there is none."""
        return self[name] if name in self.record or self._prefix + name in self._arrays else None

    def into(self, name: str, out: np.ndarray) -> None:
        """Write an array over another one of its shape."""
        self._arrays.into(self._prefix + name, out)

    def below(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays whose names begin so, by what comes after."""
        prefix = self._prefix + prefix
        return {name[len(prefix) :]: self._arrays[name] for name in self._arrays if name.startswith(prefix)}


class Saving:
    """The checkpoint of these runs, if there is one; they go on from where it has them, if that was asked for."""

    def __init__(
        self, settings: Settings, clock: Clock, runs: Sequence[Run] = (), more: Callable[[], State] = dict
    ) -> None:
        self.settings, self.clock, self.runs, self.more = settings, clock, runs, more
        self.checkpoint = settings.checkpoint

    def resume(self) -> Saved | None:
        """Give runs back what they had come to, and return what they share; None if this one begins."""
        if self.checkpoint is None or not self.settings.resume:
            return None
        arrays, record = self.checkpoint.load()
        self.clock.go_on(record.pop("elapsed"), record.pop("seconds"))
        record.pop("memory", None)  # what there was; what there is now is another matter
        for run, told in zip(self.runs, record.pop("runs", ()), strict=True):
            run.restore(Saved(arrays, told, f"{run.k}."))
            if record["tol"] != self.settings.tol:
                run.aim(self.settings.tol, tighter=self.settings.tol < record["tol"])
        return Saved(arrays, record)

    def between_steps(self) -> None:
        """Everything belongs together: write the checkpoint if it is due."""
        if self.checkpoint is not None and self.checkpoint.due:
            self.save()

    def at_the_end(self) -> None:
        """Training has ended: write what is needed to go on, if it could."""
        if self.checkpoint is not None and not all(run.done for run in self.runs):
            self.save()

    def save(self) -> None:
        assert self.checkpoint is not None
        arrays, record = _split(self.more(), "")
        states = [_split(run.state(), f"{run.k}.") for run in self.runs]
        if states:
            record["runs"] = [told for _, told in states]
        for more, _ in states:
            arrays |= more
        usual = {"tol": self.settings.tol, "memory": self.settings.budget.total, "elapsed": self.clock.elapsed()}
        self.checkpoint.save(arrays, {**usual, "seconds": self.clock.seconds, **record})

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Data that cannot be read any more ends training; the error says where to find what was learned until then."""
        if self.checkpoint is None or not isinstance(error, DotaddError | OSError):
            return
        if isinstance(error, CheckpointError):
            return
        try:
            self.save()
        except CheckpointError as another:
            raise DotaddError(f"{error}; and {another}") from error
        passes = self.more().get("passes", max((run.passes for run in self.runs), default=0))
        where = f"training stopped in pass {passes + 1}, and resume (--resume) goes on from {self.checkpoint.path}"
        raise DotaddError(f"{error}; {where}") from error


def _split(state: State, prefix: str) -> tuple[dict[str, np.ndarray], State]:
    """The arrays of a state, and what is left for the record."""
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    record = {name: value for name, value in state.items() if name not in arrays}
    return {f"{prefix}{name}": array for name, array in arrays.items()}, record
