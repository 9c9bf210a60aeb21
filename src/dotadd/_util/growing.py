"""Arrays that grow at their end: what is read piece by piece is never in memory twice."""

from __future__ import annotations

import numpy as np

STEP = 1 << 22  # bytes by which an array grows at most: nothing is moved for it, and unused bytes are memory, too


class Growing:
    """An array that grows at its end where it lies: large blocks of memory are extended, not copied.

    Its type widens to hold what arrives (int32 to int64, float32 to float64, longer text).
    """

    def __init__(self, first: np.ndarray) -> None:
        self._array = np.array(first, copy=True, order="C", subok=False)
        self._used = len(first)

    def __len__(self) -> int:
        return self._used

    def extend(self, more: np.ndarray) -> None:
        dtype = np.result_type(self._array, more)
        if dtype != self._array.dtype:
            self._array = self._array.astype(dtype)
        stop = self._used + len(more)
        if stop > len(self._array):
            row = max(1, self._array.nbytes // max(1, len(self._array)))
            self._resize(max(stop, len(self._array) + min(len(self._array) // 8, STEP // row)))
        self._array[self._used : stop] = more
        self._used = stop

    def done(self) -> np.ndarray:
        self._resize(self._used)
        return self._array

    def _resize(self, length: int) -> None:
        self._array.resize((length, *self._array.shape[1:]), refcheck=False)


class GrowingOffsets(Growing):
    """Offsets of rows that lie one after the other, from the offsets of each part."""

    def __init__(self) -> None:
        super().__init__(np.zeros(1, np.int64))

    def extend(self, more: np.ndarray) -> None:
        shift = int(self._array[self._used - 1]) - int(more[0])
        super().extend(more[1:].astype(np.int64) + shift)
