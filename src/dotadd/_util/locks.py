"""Locks on files that end with the process that holds them, however it ends; and files that are held open."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # on Windows

SHARED = fcntl is not None  # whether a file can be locked by several readers
PAUSE = 0.05  # seconds between two looks at a lock that somebody else holds
HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file, alone or with others that share it; returns False if it is locked otherwise through another
    descriptor, by this process or any other.

    Raises OSError where the system or the disk knows no locks.
    """
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]  # Windows alone
    except OSError as error:
        if error.errno in HELD:
            return False
        raise
    return True


def still_named(path: Path, descriptor: int) -> bool:
    """Whether the name still leads to the open file."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class LockFile:
    """`with LockFile(path):` is done by one process at a time, on disks that know locks; on others by any number.

    The file exists while somebody is inside. `on_wait` is called once if there is somebody to wait for. Raises OSError
    where the file cannot be made.
    """

    def __init__(self, path: Path, on_wait: Callable[[], None] = lambda: None) -> None:
        self.path, self.on_wait = path, on_wait
        self._descriptor = -1

    def __enter__(self) -> LockFile:
        if not self._taken():
            self.on_wait()
            while not self._taken():
                time.sleep(PAUSE)
        return self

    def __exit__(self, *_: object) -> None:
        if fcntl is None:  # a file that is open cannot be removed there, and one that is locked by another neither
            os.close(self._descriptor)
            with suppress(OSError):
                self.path.unlink()
            return
        with suppress(OSError):
            self.path.unlink()  # before the lock ends: who waits for it sees that the name is gone, and begins anew
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for processes that were forked meanwhile
        os.close(self._descriptor)

    def clear(self) -> None:
        """Remove the file if a process that was killed has left it behind."""
        if self.path.exists():
            with suppress(OSError):
                if self._taken():
                    self.__exit__()

    def _taken(self) -> bool:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError, AttributeError):
            os.fchmod(self._descriptor, 0o666)  # others who may write to the folder may wait, too
        try:
            mine = try_lock(self._descriptor)
        except OSError:
            return True
        if mine and still_named(self.path, self._descriptor):
            return True
        os.close(self._descriptor)
        return False


class HeldFile:
    """An open file that can be opened again and again, also after its name was given to another one, or to none.

    It is locked for readers, on disks that know locks, so that others can see that it is in use. Only Linux can open
    again what is open. Elsewhere `place` is the name, and another file may be found there.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)
        self._descriptor: int | None = os.open(path, os.O_RDONLY)
        if SHARED and not self._shared():
            self.__del__()
            raise FileNotFoundError(2, "has just been removed", str(path))
        place = f"/proc/self/fd/{self._descriptor}"
        if os.path.exists(place):
            self.place = place
        elif not SHARED:
            self.__del__()

    def _shared(self) -> bool:
        """Lock the file with other readers; returns False if it was removed before. A disk without locks is no
        hindrance."""
        assert self._descriptor is not None
        try:
            return try_lock(self._descriptor, shared=True) and os.path.samestat(
                os.stat(self.path), os.fstat(self._descriptor)
            )
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def __reduce__(self) -> tuple[type[HeldFile], tuple[Path]]:
        return HeldFile, (self.path,)  # in another process it is opened there

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            os.close(self._descriptor)  # type: ignore[arg-type]  # it was open
            self._descriptor = None
