"""Standard input as a file that can be read again and again: all of it, or a piece at a time as it comes. The file is
private, and in memory while it is small.

It is removed when the command ends; what one that was killed has left, by the next one that reads standard input. In
messages it is called what it is.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import cast

from dotadd._util.locks import SHARED, try_lock
from dotadd._util.private_store import is_private
from dotadd.errors import DataError

DASH, DEVICE = "-", "/dev/stdin"  # what it is called on a command line
NAME = "standard input"
SMALL = 16 << 20  # bytes that are kept in memory, where the system has a place for files there
STEP = 1 << 20
IN_MEMORY = "/dev/shm"

PREFIX = "dotadd-input-"

_folder: str | None = None
_lock = -1  # a descriptor of the file, which is locked as long as its process lives


def as_device(arguments: Sequence[str]) -> list[str]:
    """A command line in which a dash is no option but the name of a file, except where one is to be written."""
    before = ["", *arguments]
    files = (word == DASH and last not in ("-o", "--output") for last, word in zip(before, arguments, strict=False))
    return [DEVICE if file else word for file, word in zip(files, arguments, strict=True)]


def standard_input() -> str:
    """The path of a file with all that standard input has; it is read when first asked for."""
    if _folder is not None:
        return os.path.join(_folder, NAME)
    arriving = Arriving()
    arriving.put_all()
    return arriving.path


class Arriving:
    """Standard input as it comes, so that nobody has to wait for its end: `text` is what has come and was not put into
    the file."""

    def __init__(self) -> None:
        if sys.stdin is None or sys.stdin.isatty():
            how = "pipe or redirect data into the command, as in `dotadd ... - < data.csv`"
            raise DataError(f"is a terminal; {how}", NAME)
        self._stream = cast(BufferedReader, sys.stdin.buffer)
        self.text = bytearray()
        if not self.more():
            raise DataError("is empty: no data was piped into the command", NAME)

    @property
    def path(self) -> str:
        """The file. Until something is put into it, it can be anywhere."""
        global _folder, _lock  # there is one standard input
        if _folder is None:
            small = len(self.text) <= SMALL and os.access(IN_MEMORY, os.W_OK | os.X_OK)
            where = IN_MEMORY if small else tempfile.gettempdir()
            _sweep(Path(where))
            _folder = tempfile.mkdtemp(prefix=PREFIX, dir=where)  # with mode 0700
            _lock = os.open(os.path.join(_folder, NAME), os.O_RDWR | os.O_CREAT, 0o600)
            with suppress(OSError):  # a disk without locks, from which nothing is swept
                try_lock(_lock)
        return os.path.join(_folder, NAME)

    def more(self) -> bool:
        """Wait for more, and take what is there then; False if nothing will come any more."""
        before = len(self.text)
        while found := self._stream.read1(STEP):
            self.text += found
            if len(self.text) >= STEP or not _is_there(self._stream):
                break
        return len(self.text) > before

    def put(self, text: bytes | bytearray) -> None:
        """Let the file hold this, and nothing else."""
        with open(self.path, "wb") as file:
            file.write(text)

    def put_all(self) -> None:
        """Let the file hold all that there is."""
        while len(self.text) <= SMALL and self.more():
            pass
        if len(self.text) > SMALL:
            forget()  # where there is only room for what is small
        with open(self.path, "wb") as file:
            file.write(self.text)
            self.text = bytearray()
            shutil.copyfileobj(self._stream, file, STEP)


def _is_there(stream: BufferedReader) -> bool:
    """Whether reading would not have to wait."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # what is no pipe; on Windows, pipes neither
        return False


def forget() -> None:
    """Remove the file, if there is one."""
    global _folder, _lock
    if _folder is None:
        return
    if not SHARED:  # Windows removes nothing that is open
        os.close(_lock)
    shutil.rmtree(_folder, ignore_errors=True)
    if SHARED:
        os.close(_lock)
    _folder, _lock = None, -1


def _sweep(where: Path) -> None:
    """Remove what killed commands have left there."""
    for folder in where.glob(f"{PREFIX}*") if SHARED else ():
        if not is_private(folder):
            continue
        with suppress(OSError):  # one that is about to be made has no file yet
            descriptor = os.open(folder / NAME, os.O_RDWR)
            try:
                if try_lock(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def named(text: str) -> str:
    """A message in which the file is called by its name."""
    return text if _folder is None else text.replace(str(Path(_folder, "_"))[:-1], "")
