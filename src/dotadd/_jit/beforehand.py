"""Kernels that a first fit needs next are compiled by other processes meanwhile: in each, Numba compiles one at a time.

Which kernels follow each other in first fits is written down in `walks.txt` (`release/walks.py` makes it). The first
kernel for which there is no machine code tells on which of these walks a process is. Then others compile what is ahead,
into the same cache; who comes to a kernel that is being compiled elsewhere takes the next one instead of waiting. A
walk that is wrong or out of date costs the time of a core that was idle, and nothing else.
"""

from __future__ import annotations

import atexit
import importlib
import multiprocessing
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from numba.core import types

from dotadd._util.threads import thread_count

WALKS = Path(__file__).with_name("walks.txt")
VARIABLE = "DOTADD_COMPILERS"  # processes that compile at the same time, this one among them
MOST = 4  # of them, where nobody says: each takes 200 MB for the moment. Measured with 2
FEWEST = 4  # kernels ahead for which another process is started: that takes as long as compiling two small ones
EVERYTHING = "warmup"  # what stands in the file after the first fits
ARRAY = re.compile(r"(\w+)\[(:(?:,:)*)\]")


def written(kernel: Callable[..., object], arguments: Sequence[object]) -> str | None:
    """A kernel and the types of its arguments as a line, or None where these are of kinds that no walk has."""
    words = [f"{kernel.__module__}.{kernel.__qualname__}".removeprefix("dotadd.")]
    for each in arguments:
        if isinstance(each, types.IntEnumMember):
            words.append(f"{each.instance_class.__module__}.{each.instance_class.__qualname__}")
            continue
        if isinstance(each, types.Array) and each == types.Array(each.dtype, each.ndim, "C"):
            words.append(f"{each.dtype}[{','.join(':' * each.ndim)}]")
        else:
            words.append(str(each))
    try:
        return " ".join(words) if _arguments(words[1:]) == tuple(arguments) else None
    except (AttributeError, ImportError, ValueError):
        return None


def _arguments(words: Sequence[str]) -> tuple[object, ...]:
    found: list[object] = []
    for word in words:
        array, (module, _, name) = ARRAY.fullmatch(word), word.rpartition(".")
        if array:
            found.append(types.Array(getattr(types, array[1]), array[2].count(":"), "C"))
        elif module:
            found.append(types.IntEnumMember(getattr(importlib.import_module(module), name), types.int64))
        else:
            found.append(getattr(types, word))
    return tuple(found)


def compile_line(line: str) -> None:
    """Compile what `written` has told, or load it."""
    name, *words = line.split(" ")
    module, _, kernel = name.rpartition(".")
    getattr(importlib.import_module(f"dotadd.{module}"), kernel).compile(_arguments(words))


@cache
def walks() -> dict[str, list[str]]:
    """For each first fit that was tried the kernels that it needs, in turn; and all."""
    found: dict[str, list[str]] = {}
    with suppress(OSError):
        for line in WALKS.read_text().splitlines():
            if line.startswith("["):
                ahead = found.setdefault(line.strip("[]"), [])
            elif line and not line.startswith("#"):
                ahead.append(line)
    return found


def first_fits() -> list[list[str]]:
    return [walk for name, walk in walks().items() if name != EVERYTHING]


def compilers() -> int:
    """Processes that compile at the same time, on cores that nobody uses: on others they get in each other's way.
    Workers of other programs have company enough, and compile alone."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.isdecimal():
        return int(chosen)
    workers = getattr(sys.modules.get("distributed.worker"), "Worker", None)
    if multiprocessing.parent_process() is not None or (workers is not None and len(workers._instances) > 0):
        return 1
    busy = int(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    return max(1, min(MOST, thread_count(None) - busy))


class Beforehand:
    """What this process has lacked, what it will lack, and who compiles that."""

    def __init__(self, folder: Path, told: Callable[[str], None]) -> None:
        self.folder = folder  # of caches
        self.told = told  # of what it is that is waited for
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """As at the beginning: threads and pipes to other processes stay behind where a process is forked."""
        self._lock = threading.Lock()
        self._feeders: list[threading.Thread] = []
        self._walk: list[str] = []
        self._lacked: set[str] = set()
        self._ahead: deque[str] = deque()
        self._elsewhere: dict[str, threading.Event] = {}  # set as soon as another process is done with it

    @property
    def progress(self) -> tuple[int, int]:
        """Kernels that are there or being compiled, and all that are expected; 0 where nothing is known."""
        known = self._lacked.union(self._elsewhere)
        return len(known), len(known.union(self._walk)) if self._walk else 0

    def has(self, line: str) -> bool:
        """Whether another process has compiled this meanwhile. If not, it is for this process to do so."""
        if not any(line in walk for walk in first_fits()):  # a kernel that kernels call, or one that is rarely used
            return False
        with self._lock:
            self._lacked.add(line)
            if line not in self._walk:
                self._choose(line)
            if line in self._ahead:
                self._ahead.remove(line)
            elsewhere = self._elsewhere.get(line)
            alive = any(feeder.is_alive() for feeder in self._feeders)
            count = 0 if alive or len(self._ahead) < FEWEST else compilers() - 1
        if count > 0:
            self._start(count)
        while elsewhere is not None and not elsewhere.is_set():
            instead = self._next()
            if instead is None:
                self.told(line.split(" ")[0])
                elsewhere.wait()
                self.told("")
            else:
                with suppress(Exception):  # whatever it is, it comes again where the kernel is needed
                    compile_line(instead)
        return elsewhere is not None

    def _choose(self, line: str) -> None:
        """The walk that has most of what was lacked, and this kernel as early as possible; from there on."""
        there = [walk for walk in first_fits() if line in walk]
        self._walk = max(there, key=lambda walk: (len(self._lacked.intersection(walk)), -walk.index(line)))
        self._lacked.intersection_update(self._walk)  # the rest belongs to another fit
        after = self._walk[self._walk.index(line) + 1 :]
        self._ahead = deque(each for each in after if each not in self._lacked and each not in self._elsewhere)

    def _next(self, elsewhere: bool = False) -> str | None:
        """A kernel that is ahead whichever walk it is; for another process, which has nothing better to do, a guess."""
        with self._lock:
            fitting = [walk for walk in first_fits() if self._lacked.issubset(walk)]
            sure = (each for each in self._ahead if all(each in walk for walk in fitting))
            line = next(sure, self._ahead[0] if elsewhere and self._ahead else None)
            if line is not None:
                self._ahead.remove(line)
                if elsewhere:
                    self._elsewhere[line] = threading.Event()
            return line

    def _start(self, count: int) -> None:
        if not sys.executable or getattr(sys, "frozen", False):
            return
        path = [str(Path(__file__).parents[2]), *filter(os.path.isabs, sys.path)]
        program = f"import sys; sys.path[:] = {path!r}; from dotadd._jit.beforehand import serve; serve()"
        command = [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", program]  # type: ignore[attr-defined]  # as multiprocessing does
        for _ in range(count):
            try:
                other = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                    env=os.environ | {VARIABLE: "1", "DOTADD_CACHE_DIR": str(self.folder)},
                )  # fmt: skip
            except OSError:  # no memory for it, or no more processes allowed
                return
            feeder = threading.Thread(target=self._feed, args=(other,), daemon=True)
            self._feeders.append(feeder)
            feeder.start()

    def _feed(self, other: subprocess.Popen[str]) -> None:
        """Give another process one kernel after the other, until none is ahead or it has ended."""
        assert other.stdin is not None
        assert other.stdout is not None
        atexit.register(other.kill)
        line = None
        try:
            while (line := self._next(elsewhere=True)) is not None:
                other.stdin.write(line + "\n")
                other.stdin.flush()
                if not other.stdout.readline():
                    break
                self._elsewhere[line].set()
        except OSError:
            pass
        finally:
            if line is not None:
                self._elsewhere[line].set()
            other.kill()
            other.communicate()
            atexit.unregister(other.kill)


def serve() -> None:
    """What such another process does: compile what it is told, and end with the one that has started it."""
    from dotadd._jit import NOTICE

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    NOTICE.quiet = True
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line.rstrip("\n"))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        with suppress(Exception):  # who needs it compiles it, and tells what is wrong
            compile_line(lines.get())
        sys.stdout.write("done\n")
        sys.stdout.flush()
