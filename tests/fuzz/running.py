"""One format in this process: case after case, each noted before it is read."""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable

from dotadd.errors import DotaddError
from fuzz.formats import FORMATS, Format
from fuzz.mutation import damaged

HANG = 10  # seconds of a processor, that do not depend on what else the machine does
MEMORY = 1 << 30  # bytes
HEADROOM = 4 << 30  # of addresses, so that the machine survives what takes more


def case_of(format: Format, name: str, seed: int, number: int) -> tuple[bytes, random.Random]:
    """The file of a case, and what decides how it is read."""
    rng = random.Random(f"{name} {seed} {number}")
    data = rng.choice(format.seeds)
    if number >= len(format.seeds):  # the first ones are as they are
        data = damaged(data, format.seeds, rng)
    return format.pack(data, rng), rng


def complaint(format: Format, path: str, data: bytes, rng: random.Random) -> str | None:
    """What is wrong with how a file is read, None if nothing is."""
    with open(path, "wb") as file:
        file.write(data)
    try:
        format.read(path, rng)
    except DotaddError as error:
        told = str(error)
        if len(told.splitlines()) != 1:
            return f"not one line: {told!r}"
        if os.path.dirname(path) not in told and os.path.dirname(os.path.dirname(path)) not in told:
            return f"does not name the file: {told!r}"
        if len(told) > 2000:
            return f"is long: {told[:200]!r}"
    except Exception:
        return traceback.format_exc()
    return None


def run(name: str, seed: int, numbers: range, at: Callable[[int], None]) -> list[tuple[int, str]]:
    """All cases of these numbers; the numbers of those that went wrong, and how."""
    warnings.simplefilter("ignore")
    format = FORMATS[name]()
    wrong = []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # to write a file again waits for the disk
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        path = os.path.join(folder, format.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _limit_addresses()
        before = _peak()
        for number in numbers:
            at(number)
            data, rng = case_of(format, name, seed, number)
            if number >= len(format.seeds):  # those may have to compile something
                _limit_time()
            found = complaint(format, path, data, rng)
            if found is None and _peak() - before > MEMORY:
                found, before = f"took {(_peak() - before) >> 20} MB", _peak()
            if found is not None:
                wrong.append((number, found))
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    return wrong


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _limit_time() -> None:
    """End the process by a signal if it works for so long from now on."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    until = int(usage.ru_utime + usage.ru_stime) + HANG + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _limit_addresses() -> None:
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))
