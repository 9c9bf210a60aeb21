"""Budget: one ledger of the bytes that training may take, for examples, kept rows, cutting planes."""

from __future__ import annotations

from threading import Lock


class Budget:
    """So many bytes in all. Who takes memory claims it here first, and releases it when it is given back.

    w and what lies beside every row (dual variables, signs, costs) are not counted: they have to be there.
    """

    def __init__(self, total: int) -> None:
        self.total = max(0, int(total))
        self._taken = 0
        self._lock = Lock()

    @property
    def left(self) -> int:
        """Bytes that nobody has claimed."""
        return max(0, self.total - self._taken)

    def claim(self, nbytes: int) -> bool:
        """Take so many bytes, or none if there are fewer left; says which."""
        with self._lock:
            fits = self._taken + nbytes <= self.total
            self._taken += nbytes if fits else 0
        return fits

    def take(self, nbytes: int) -> int:
        """Take so many bytes, or as many as are left; says how many."""
        with self._lock:
            taken = min(int(nbytes), self.left)
            self._taken += taken
        return taken

    def release(self, nbytes: int) -> None:
        """Give back what was claimed or taken."""
        with self._lock:
            self._taken -= nbytes
