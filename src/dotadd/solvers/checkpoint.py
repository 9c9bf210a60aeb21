"""Checkpoint: what a long training run has so far, in a file from which it goes on after the power went.

The file is NumPy's own archive of arrays, read without executing anything. It appears whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np

from dotadd.atomic import replacing
from dotadd.errors import DotaddError

RECORD = "record"
SHARE = 10  # times as long as writing took, training goes on before the next checkpoint


class CheckpointError(DotaddError):
    """A checkpoint cannot be written, read or used."""


class Unasked(str):
    """The name of a checkpoint that nobody has asked for: training that keeps none does without."""

    __slots__ = ()


@dataclass
class Checkpoint:
    """A file that is written every so many seconds. `problem` says what is being solved: another is not resumed."""

    path: str
    every: float = 60.0
    problem: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._next = perf_counter() + self.every

    @classmethod
    def asked(cls, path: str | os.PathLike[str] | None, every: float | None, resume: bool) -> Checkpoint | None:
        """The checkpoint that was asked for, None if there is to be none. Refuses what is asked of none."""
        if path is None:
            if resume or every is not None:
                name = "resume" if resume else "checkpoint_every"
                raise DotaddError(f"{name}= is about a checkpoint: give checkpoint= (--checkpoint), too")
            return None
        every = 60.0 if every is None else every
        if not isinstance(every, Real) or isinstance(every, bool) or not 0.0 < every < math.inf:
            raise DotaddError(f"checkpoint_every is {every!r}, and has to be a positive number of seconds")
        return cls(path if isinstance(path, Unasked) else os.fspath(path), float(every))

    @property
    def due(self) -> bool:
        return perf_counter() >= self._next

    def save(self, arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> None:
        """Write the state of training."""
        began = perf_counter()
        text = json.dumps({"problem": dict(self.problem), "state": dict(record)}).encode()
        try:
            with replacing(self.path) as temporary, open(temporary, "wb") as file:
                np.savez(file, **{RECORD: np.frombuffer(text, np.uint8)}, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            kept = "; the one before it is as it was" if os.path.exists(self.path) else ""
            raise CheckpointError(
                f"{self.path}: the checkpoint cannot be written: {error.strerror or error}{kept}"
            ) from None
        now = perf_counter()
        self._next = now + max(self.every, SHARE * (now - began))

    def problem_on_disk(self) -> dict[str, Any]:
        """The problem that the checkpoint in the file is of."""
        return self._read()[1]

    def load(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays and the record of the latest checkpoint."""
        arrays, problem, state = self._read()
        now = json.loads(json.dumps(dict(self.problem)))
        for name in now.keys() | problem.keys():
            if now.get(name) != problem.get(name):
                raise CheckpointError(
                    f"{self.path}: is a checkpoint of another problem: {name} was {problem.get(name)}, "
                    f"and is {now.get(name)}; leave out resume (--resume) to begin anew"
                )
        return arrays, state

    def _read(self) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, Any]]:
        try:
            self._require_sound()
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            found = json.loads(arrays.pop(RECORD).tobytes())
            return arrays, dict(found["problem"]), found["state"]
        except FileNotFoundError:
            raise CheckpointError(
                f"{self.path}: there is no checkpoint to resume from; leave out resume (--resume)"
            ) from None
        except Exception as error:  # there is hardly anything that a damaged archive does not make its readers raise
            why = " ".join(str(error).split())
            raise CheckpointError(f"{self.path}: is no checkpoint of dotadd, or damaged: {why}") from None

    def _require_sound(self) -> None:
        """Compare all of the archive with its checksums; NumPy reads no further than the lengths inside tell it to."""
        with zipfile.ZipFile(self.path) as file:
            if (damaged := file.testzip()) is not None:
                raise CheckpointError(f"{damaged} has a wrong checksum")


def none_kept(checkpoint: Checkpoint | None, by: str, instead: str = "stream") -> None:
    """Refuse a checkpoint that was asked for where none is kept."""
    if checkpoint is not None and not isinstance(checkpoint.path, Unasked):
        raise DotaddError(f'{by} keeps no checkpoint: leave checkpoint= (--checkpoint) out, or use solver="{instead}"')
