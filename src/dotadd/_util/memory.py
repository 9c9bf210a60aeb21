"""Bytes of memory: how people write them, how many the machine has free, and the Budget that shares them out."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from numbers import Real
from pathlib import Path
from threading import Lock

from dotadd.errors import DotaddError

UNKNOWN = 1 << 30  # what is taken for free where the system does not tell

_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(?:([kmgt]?)(i?)b?)\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_bytes(size: str | float) -> int:
    """A number of bytes as people write it: 500MB, 1.5 GiB, 2e9. MB is a million bytes, MiB is 2^20."""
    number = math.nan
    if isinstance(size, str):
        if found := _SIZE.fullmatch(size):
            base = 1024 if found[3] else 1000
            number = float(found[1]) * base ** _POWERS[found[2].lower()]
    elif isinstance(size, Real) and not isinstance(size, bool):
        number = float(size)
    if not 1 <= number < math.inf:
        raise DotaddError(f"{size!r} is no size of memory; write it like 500MB, 2GB or 1.5GiB, or as a number of bytes")
    return int(number)


def words(nbytes: float) -> str:
    """A number of bytes for a message: 500 MB."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    power = 0
    while nbytes >= 999.5 and power < len(units) - 1:
        nbytes, power = nbytes / 1000, power + 1
    return f"{nbytes:.0f} {units[power]}" if nbytes >= 9.95 or not power else f"{nbytes:.2g} {units[power]}"


def peak() -> int | None:
    """The most bytes that this process has had in memory so far; None where the system does not tell."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # macOS counts bytes


def available(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can be used now without swapping, under the limits of the control groups that this process is in."""
    free = [_free_of_machine(proc), *_free_of_groups(proc, groups)]
    return max(0, min(free))


def has_room(nbytes: int, share: float) -> bool:
    """Whether so many bytes are within this share of what can be used. A megabyte is: asking takes longer than to score
    a short text."""
    return nbytes <= 1 << 20 or nbytes <= share * available()


def _free_of_machine(proc: Path) -> int:
    with suppress(OSError, ValueError):
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # elsewhere it is known what there is, not what is free
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return UNKNOWN


def _free_of_groups(proc: Path, groups: Path) -> Iterator[int]:
    """What each control group with a limit has left, from the process's own up to the topmost.

    Files that the kernel has cached count as used there, and are given up when memory is needed.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, names = groups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root, names = groups / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # In a container the path may be that of the host, which is not seen from inside: the topmost folder is ours.
        own = root / path.strip("/")
        for folder in (own, *own.parents[: len(own.parts) - len(root.parts)]):
            with suppress(OSError, ValueError):  # no such folder, or "max": no limit
                limit, used = (int((folder / name).read_text()) for name in names[:2])
                yield limit - used + _statistic(folder / "memory.stat", names[2])


def _statistic(path: Path, name: str) -> int:
    with suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return 0


class Budget:
    """So many bytes in all. Who wants memory takes it here first, and releases it when it is given back.

    w and what lies beside every row (dual variables, signs, costs) are not counted: they have to be there.
    """

    def __init__(self, total: int) -> None:
        self.total = max(0, int(total))
        self._taken = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Budget], tuple[int]]:
        """In another process it is a budget of its own, of what is left."""
        return Budget, (self.left,)

    @property
    def left(self) -> int:
        """Bytes that nobody has taken."""
        return max(0, self.total - self._taken)

    def take(self, nbytes: int) -> int:
        """Take so many bytes, or as many as are left; says how many."""
        with self._lock:
            taken = min(int(nbytes), self.left)
            self._taken += taken
        return taken

    def release(self, nbytes: int) -> None:
        """Give back what was taken."""
        with self._lock:
            self._taken -= nbytes
