"""NumPy files: the rows of an array, read in order and never mapped, so that memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.memory import batch_from_numpy
from dotadd.sources.text import reading


@dataclass
class NpyFile(FileSource):
    """An array of numbers, of shape (rows, features) or (images, height, width), in C order."""

    quick: ClassVar[bool] = True

    @staticmethod
    def takes(array: np.ndarray) -> bool:
        """Whether an array as it was loaded, as a map, can be read in this way."""
        return (
            isinstance(array, np.memmap)
            and array.ndim in (2, 3)
            and array.flags.c_contiguous
            and array.dtype.kind in "biuf"
            and array.size > 0
        )

    @property
    def stride(self) -> int:
        return 4 << 20

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with reading(self.path), open(self.path, "rb") as file:
            header = mapped(self.path)
            shape, dtype = header.shape, header.dtype
            file.seek(header.offset)  # type: ignore[attr-defined]
            del header
            length = math.prod(shape[1:])
            step = max(1, nbytes // (length * dtype.itemsize))
            for first in range(0, shape[0], step):
                rows = min(step, shape[0] - first)
                values = np.fromfile(file, dtype, rows * length)
                if len(values) < rows * length:
                    raise DataError("ends too early; it was cut off while it was read", self.path)
                yield Chunk(batch_from_numpy(values.reshape(rows, *shape[1:])), None, None, 0, self.path)


def mapped(path: str) -> np.ndarray:
    """The array as a map, of which nothing is read."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise DataError(f"cannot be read as an array: {error}", path) from None
