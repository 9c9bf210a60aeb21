"""Files that appear whole or not at all, and the removal of what killed programs have left behind.

A temporary file beside the one that it will replace is locked as long as it is written to, and the lock ends with its
process: one that can be locked belongs to nobody any more. Locks need not be seen from other machines that share a
disk, so the name also tells on which machine the file was made, and only there it is removed. The machine is known by
its name, which stays when it starts again, and by this run of its kernel, which containers of changing names have in
common.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from dotadd._util.locks import still_named, try_lock

NAME = re.compile(r"\..+\.([0-9a-f]{6})([0-9a-f]{6})[0-9a-f]{8}\.tmp(\.\w+)?")
MAY_BE_REMOVED_OPEN = os.name != "nt"  # Windows keeps files that are open from being renamed and removed


class Temporary:
    """A new, empty file beside `target`. Its name ends in .tmp and `ending`. Who writes to it must not replace it."""

    def __init__(self, target: Path, ending: str = "") -> None:
        self.target = target
        while True:
            self.path = target.with_name(f".{target.name}.{''.join(_machine())}{secrets.token_hex(4)}.tmp{ending}")
            self._descriptor: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if self._locked():
                break
            self._close()  # `sweep` was faster than the lock
        self._mode = os.fstat(self._descriptor).st_mode  # as the user's umask has it; some writers make private files

    def replace_target(self) -> None:
        """Put the file on disk, and in the place of the target."""
        os.chmod(self.path, self._mode)
        with open(self.path, "rb+") as file:
            os.fsync(file.fileno())
        if not MAY_BE_REMOVED_OPEN:
            self._close()
        os.replace(self.path, self.target)
        self._close()

    def discard(self) -> None:
        """Remove the file."""
        if not MAY_BE_REMOVED_OPEN:
            self._close()
        with suppress(OSError):
            self.path.unlink()
        self._close()

    def _locked(self) -> bool:
        """Lock the file; returns False if somebody has removed it before. A disk without locks is no hindrance."""
        assert self._descriptor is not None
        if not MAY_BE_REMOVED_OPEN:
            return True  # that it is open is lock enough
        try:
            return try_lock(self._descriptor) and still_named(self.path, self._descriptor)
        except OSError:
            return True

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def sweep(folder: Path) -> None:
    """Remove the temporary files of processes that are no more from a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = NAME.fullmatch(entry.name)
            if named and any(map(str.__eq__, named.groups()[:2], _machine())) and entry.is_file(follow_symlinks=False):
                _remove_if_dead(Path(entry.path))


@cache
def sweep_once(folder: Path) -> None:
    """`sweep`, once in the life of this process for each folder."""
    sweep(folder)


def _remove_if_dead(path: Path) -> None:
    if not MAY_BE_REMOVED_OPEN:
        with suppress(OSError):  # raised where it is open
            path.unlink()
        return
    with suppress(OSError):  # somebody else's, or gone by now, or on a disk without locks: it stays
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            if try_lock(descriptor):
                path.unlink()
        finally:
            os.close(descriptor)


@cache
def _machine() -> tuple[str, str]:
    """Marks for this machine by name, and for this run of its kernel."""

    def mark(*facts: str) -> str:
        return hashlib.blake2b("\0".join(facts).encode(), digest_size=3).hexdigest()

    name = mark("name", platform.node(), _content("/etc/machine-id"))
    run = _content("/proc/sys/kernel/random/boot_id")
    return name, mark("run", run) if run else name


def _content(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: str | os.PathLike[str], *, ending: str = "") -> Iterator[Path]:
    """An empty temporary file beside `path` to write to; renamed to it at the end, removed if anything went wrong.

    What a killed process has left in the folder is removed, too. A link keeps pointing where it did. Devices and pipes
    cannot be replaced and are written to directly. The name of the temporary file ends in `ending`.
    """
    target = _named(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = _resolved(target)
    sweep_once(target.parent)
    temporary = Temporary(target, ending)
    try:
        yield temporary.path
        temporary.replace_target()
    except BaseException as error:
        temporary.discard()
        if isinstance(error, OSError) and error.errno in FULL and error.filename in (None, str(temporary.path)):
            error.filename = str(path)  # a write does not know where it goes
        raise


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError now, and not after hours of work, if a file of this name could not be written."""
    target = _named(path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; give the name of a file", str(target))
    if target.exists() and not target.is_file():
        return
    folder = _resolved(target).parent
    if not folder.is_dir():
        raise FileNotFoundError(2, f"the folder {folder} does not exist", str(target))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, f"the folder {folder} cannot be written to", str(target))


def _named(path: str | os.PathLike[str]) -> Path:
    """The path, unless no file can have such a name."""
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "no file can have a name with a zero byte in it", os.fspath(path))
    return Path(path)


def _resolved(target: Path) -> Path:
    """Where links lead to. Python raises RuntimeError for links in a loop before 3.13, and nothing from then on."""
    try:
        found = target.resolve()
    except RuntimeError:
        found = target
    if found.is_symlink():
        raise OSError(errno.ELOOP, "is a link that leads back to itself", str(target))
    return found
