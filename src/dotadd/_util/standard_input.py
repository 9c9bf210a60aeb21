"""Standard input as a file that can be read again and again: all of it, private, in memory while it is small.

It is removed when the command ends, whatever ends it but SIGKILL. In messages it is called what it is.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dotadd.errors import DataError

DASH, DEVICE = "-", "/dev/stdin"  # what it is called on a command line
NAME = "standard input"
SMALL = 16 << 20  # bytes that are kept in memory, where the system has a place for files there
STEP = 1 << 20
IN_MEMORY = "/dev/shm"

_folder: str | None = None


def as_device(arguments: Sequence[str]) -> list[str]:
    """A command line in which a dash is no option but the name of a file, except where one is to be written."""
    before = ["", *arguments]
    files = (word == DASH and last not in ("-o", "--output") for last, word in zip(before, arguments, strict=False))
    return [DEVICE if file else word for file, word in zip(files, arguments, strict=True)]


def standard_input() -> str:
    """The path of a file with all that standard input has; it is read when first asked for."""
    global _folder  # there is one standard input
    if _folder is not None:
        return os.path.join(_folder, NAME)
    if sys.stdin is None or sys.stdin.isatty():
        raise DataError("is a terminal; pipe or redirect data into the command, as in `dotadd ... - < data.csv`", NAME)
    stream = sys.stdin.buffer
    beginning = b""
    while len(beginning) <= SMALL and (more := stream.read(STEP)):
        beginning += more
    if not beginning:
        raise DataError("is empty: no data was piped into the command", NAME)
    small = len(beginning) <= SMALL and os.access(IN_MEMORY, os.W_OK | os.X_OK)
    _folder = tempfile.mkdtemp(prefix="dotadd-", dir=IN_MEMORY if small else None)  # with mode 0700
    path = os.path.join(_folder, NAME)
    with open(path, "wb") as file:
        file.write(beginning)
        shutil.copyfileobj(stream, file, STEP)
    return path


def forget() -> None:
    """Remove the file, if there is one."""
    global _folder
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
        _folder = None


def named(text: str) -> str:
    """A message in which the file is called by its name."""
    return text if _folder is None else text.replace(str(Path(_folder, "_"))[:-1], "")
