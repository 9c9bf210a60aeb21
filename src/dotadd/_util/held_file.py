"""A file that stays what it was when it was opened, whatever becomes of its name."""

from __future__ import annotations

import os
from pathlib import Path

from dotadd._util.locks import SHARED, try_lock


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
