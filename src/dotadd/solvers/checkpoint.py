"""Checkpoint: what a long training run has so far, in a file from which it goes on after the power went.

The file is NumPy's own archive of arrays, read without executing anything. It appears whole or not at all. One run at a
time has it, and removes it when it is done.
"""

from __future__ import annotations

import json
import math
import os
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from time import perf_counter
from typing import IO, Any

import numpy as np

from dotadd._util.atomic import replacing
from dotadd._util.locks import LockFile
from dotadd.errors import DotaddError

Record = dict[str, Any]  # what JSON holds
RECORD = "record"
STRIDE = 1 << 22  # bytes that are read at a time
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
    problem: Record = field(default_factory=dict)
    beside: Record = field(default_factory=dict)
    """What is written down with every state, and compared with nothing."""

    def __post_init__(self) -> None:
        self._next = perf_counter() + self.every

    @classmethod
    def asked(
        cls, path: str | os.PathLike[str] | None, every: float | None, resume: bool, keep: bool = False
    ) -> Checkpoint | None:
        """The checkpoint that was asked for, None if there is to be none. Refuses what is asked of none."""
        if path is None:
            if resume or every is not None or keep:
                name = "resume" if resume else "keep_checkpoint" if keep else "checkpoint_every"
                raise DotaddError(f"{name}= is about a checkpoint: give checkpoint= (--checkpoint), too")
            return None
        every = 60.0 if every is None else every
        if not isinstance(every, Real) or isinstance(every, bool) or not 0.0 < every < math.inf:
            raise DotaddError(f"checkpoint_every is {every!r}, and has to be a positive number of seconds")
        return cls(path if isinstance(path, Unasked) else os.fspath(path), float(every))

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts, no other run has this checkpoint; one that wants it is refused."""
        path = Path(os.path.realpath(self.path))
        lock = LockFile(path.with_name(f".{path.name}.lock"), self._refuse)
        try:
            lock.__enter__()
        except OSError as error:
            raise CheckpointError(f"{self.path}: the checkpoint cannot be written: {error.strerror or error}") from None
        try:
            yield
        finally:
            lock.__exit__()

    def _refuse(self) -> None:
        raise CheckpointError(
            f"{self.path}: a run that has not ended writes to this checkpoint: wait for it, or give the checkpoint "
            "another name (--checkpoint)"
        )

    def remove(self) -> None:
        """Nothing is to go on from here any more."""
        with suppress(FileNotFoundError):
            os.remove(self.path)

    def require_new(self) -> None:
        """Refuse to begin anew over what an earlier run has come to."""
        if os.path.exists(self.path):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(os.path.getmtime(self.path)))
            raise CheckpointError(
                f"{self.path}: holds training from {when}: go on from it with resume (--resume); to begin anew, remove "
                "it, or give the checkpoint another name (--checkpoint)"
            )

    @property
    def due(self) -> bool:
        return perf_counter() >= self._next

    def save(self, arrays: Mapping[str, np.ndarray], record: Record) -> None:
        """Write the state of training."""
        began = perf_counter()
        told = {"problem": self._identity(), "state": dict(record), "beside": dict(self.beside)}
        text = json.dumps(told).encode()
        try:
            with replacing(self.path) as temporary, open(temporary, "wb") as file:
                np.savez(file, **{RECORD: np.frombuffer(text, np.uint8)}, **arrays)  # type: ignore[arg-type]  # any name
        except OSError as error:
            kept = "; the one before it is as it was" if os.path.exists(self.path) else ""
            raise CheckpointError(
                f"{self.path}: the checkpoint cannot be written: {error.strerror or error}{kept}"
            ) from None
        now = perf_counter()
        self._next = now + max(self.every, SHARE * (now - began))

    def _identity(self) -> dict[str, object]:
        """The problem, and how its text is read, so that a version that read it otherwise is not gone on from."""
        from dotadd.features.expression import reads_text

        text = {"text": "Unicode"} if reads_text(str(self.problem.get("features", ""))) else {}
        return dict(self.problem) | text

    def problem_on_disk(self) -> Record:
        """The problem that the checkpoint in the file is of."""
        return dict(self._read()[1]["problem"])

    def solver_on_disk(self) -> str:
        """The solver that wrote the file; earlier versions had two alone that did, and told of none."""
        problem = self.problem_on_disk()
        return str(problem.get("solver", "cocoa" if "parts" in problem else "stream"))

    def memory_on_disk(self) -> int | None:
        """Bytes that examples might take in the run that wrote the file, if it had such a limit."""
        found: int | None = self._read()[1]["state"].get("memory")
        return found

    def beside_on_disk(self) -> Record:
        """What was written down with the state."""
        return dict(self._read()[1].get("beside", {}))

    def load(self) -> tuple[Arrays, Record]:
        """The arrays and the record of the latest checkpoint."""
        arrays, found = self._read()
        problem, state = found["problem"], found["state"]
        arrays.require_sound()
        now = json.loads(json.dumps(self._identity()))
        for name in (now | problem).keys() - ({"solver"} - problem.keys()):
            if now.get(name) != problem.get(name):
                raise CheckpointError(
                    f"{self.path}: is a checkpoint of another problem: {name} was {problem.get(name)}, "
                    f"and is {now.get(name)}; remove it to begin anew, without resume (--resume)"
                )
        return arrays, state

    def _read(self) -> tuple[Arrays, dict[str, Record]]:
        with _complaining(self.path):
            arrays = Arrays(self.path)
            found = json.loads(arrays[RECORD].tobytes())
            return arrays, {name: dict(part) for name, part in found.items()}


class Arrays(Mapping[str, np.ndarray]):
    """The arrays in a file, each read when it is asked for: dual variables of all rows may be larger than memory."""

    def __init__(self, path: str) -> None:
        self._path, self._file = path, zipfile.ZipFile(path)
        self._names = [name.removesuffix(".npy") for name in self._file.namelist()]

    def require_sound(self) -> None:
        """Compare all of the archive with its checksums: lengths inside may tell to read less than there is."""
        with _complaining(self._path):
            if (damaged := self._file.testzip()) is not None:
                raise ValueError(f"{damaged} has a wrong checksum")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> np.ndarray:
        with self._opened(name) as (file, shape, dtype):
            out: np.ndarray = np.empty(shape, dtype)
            _read_into(file, dtype, out)
        return out

    def into(self, name: str, out: np.ndarray) -> None:
        """Write an array over another one of its length, which may lie on a memory map."""
        with self._opened(name) as (file, shape, dtype):
            if shape != out.shape:
                raise ValueError(f"{name} has the shape {shape}, and not {out.shape}")
            _read_into(file, dtype, out)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype]]:
        with _complaining(self._path), self._file.open(f"{name}.npy") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("arrays of an unknown version")
            shape, backwards, dtype = np.lib.format.read_array_header_1_0(file)
            if dtype.hasobject or (backwards and len(shape) > 1):
                raise ValueError("arrays of objects, or of another order")
            yield file, shape, dtype


def _read_into(file: IO[bytes], dtype: np.dtype, out: np.ndarray) -> None:
    """The numbers of an array, some at a time."""
    assert out.flags.c_contiguous
    flat, step = out.reshape(-1), max(1, STRIDE // max(1, dtype.itemsize))
    for first in range(0, out.size, step):
        some = flat[first : first + step]
        some[:] = np.frombuffer(file.read(some.size * dtype.itemsize), dtype)


@contextmanager
def _complaining(path: str) -> Iterator[None]:
    try:
        yield
    except CheckpointError:
        raise
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no checkpoint to resume from; leave out resume (--resume)") from None
    except Exception as error:  # there is hardly anything that a damaged archive does not make its readers raise
        why = " ".join(str(error).split())
        raise CheckpointError(f"{path}: is no checkpoint of dotadd, or damaged: {why}") from None


def none_kept(checkpoint: Checkpoint | None, by: str, instead: str) -> None:
    """Refuse a checkpoint that was asked for where none is kept."""
    if checkpoint is not None and not isinstance(checkpoint.path, Unasked):
        raise DotaddError(f"{by} keeps no checkpoint: leave checkpoint= (--checkpoint) out, or use {instead}")
