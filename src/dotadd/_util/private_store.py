"""Bytes under names, in a folder that nobody else can have written to.

What is kept here is unpickled and run, so the folder must be one's own (or root's) and closed to others; a folder that
somebody made beforehand in the common temporary directory is not used. Every file begins with a checksum of the rest,
so that one that was cut short by a full disk or a power failure is only a miss.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

DIGEST = 16  # bytes of checksum
DAY = 86_400.0
UNUSED = 30 * DAY  # after so long without a use a file goes
ROOM = 1 << 30  # bytes that a store may take; beyond, what was used last the longest ago goes, but not within a day


def is_private(folder: Path) -> bool:
    """Whether this is a folder (no link to one) of one's own or of root, which nobody else can write to."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class PrivateStore:
    """A folder of named pieces of bytes, made with mode 0700 where it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def at(cls, folder: Path) -> PrivateStore | None:
        """The store in this folder, or None where it cannot be trusted, or neither be read from nor be made."""
        with suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        return cls(folder) if is_private(folder) and os.access(folder, os.R_OK | os.X_OK) else None

    @property
    def writable(self) -> bool:
        return os.access(self.folder, os.W_OK | os.X_OK)

    def get(self, name: str) -> bytes | None:
        """What was put there, or None if there is nothing or it is damaged."""
        path = self.folder / name
        try:
            content = path.read_bytes()
            if time.time() - path.stat().st_mtime > DAY:
                with suppress(OSError):
                    os.utime(path)  # so that `prune` sees that it is in use
        except OSError:
            return None
        return whole(content)

    def put(self, name: str, content: bytes) -> None:
        """Keep this under the name, whole or not at all. Raises OSError where it cannot be written."""
        temporary = self.folder / f"{name}.{secrets.token_hex(4)}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(_digest(content) + content)
            os.replace(temporary, self.folder / name)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def prune(self, siblings: str, room: int = ROOM) -> None:
        """Once a day, remove what has not been used for a month, here and in sibling folders that match the pattern,
        and of the rest what takes more than so many bytes.

        Processes that run need none of it: they have read what they use, and what is gone is made again.
        """
        stamp, now = self.folder / "pruned", time.time()
        try:
            if stamp.exists() and now - stamp.stat().st_mtime < DAY:
                return
            stamp.touch()
        except OSError:
            return  # the folder cannot be written
        kept = 0
        for path, status in self.files():  # those that were used last come first
            kept += status.st_size
            unused = now - status.st_mtime
            if unused > UNUSED or (kept > room and unused > DAY):
                with suppress(OSError):  # another process was faster
                    path.unlink()
        for folder in self.siblings(siblings):
            with suppress(OSError):
                if now - folder.stat().st_mtime > UNUSED:
                    shutil.rmtree(folder, ignore_errors=True)

    def files(self) -> list[tuple[Path, os.stat_result]]:
        """What is kept, with sizes and times; what was used last comes first. Times are right to the day."""
        found = []
        with suppress(OSError):
            for path in self.folder.iterdir():
                with suppress(OSError):
                    found.append((path, path.stat()))
        return sorted(found, key=lambda file: -file[1].st_mtime)

    def siblings(self, pattern: str) -> list[Path]:
        """Folders beside this one whose names match, if they are private."""
        with suppress(OSError):
            return [other for other in self.folder.parent.glob(pattern) if other != self.folder and is_private(other)]
        return []


def whole(content: bytes) -> bytes | None:
    """What a file of a store holds, or None if it is damaged."""
    return content[DIGEST:] if _digest(content[DIGEST:]) == content[:DIGEST] else None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()
