"""A file that stays what it was when it was opened, whatever becomes of its name."""

from __future__ import annotations

import os
from pathlib import Path


class HeldFile:
    """An open file that can be opened again and again, also after its name was given to another one, or to none.

    Only Linux can open again what is open. Elsewhere `place` is the name, and another file may be found there.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)
        self._descriptor: int | None = os.open(path, os.O_RDONLY)
        place = f"/proc/self/fd/{self._descriptor}"
        if os.path.exists(place):
            self.place = place
        else:
            self.__del__()

    def __reduce__(self) -> tuple[type[HeldFile], tuple[Path]]:
        return HeldFile, (self.path,)  # in another process it is opened there

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            os.close(self._descriptor)  # type: ignore[arg-type]
            self._descriptor = None
