"""NumPy files: the rows of an array, read in order and never mapped, so that memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from dotadd._util.compressed import read_into, reading
from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Options, Source
from dotadd.sources.files import FileSource
from dotadd.sources.memory import MemorySource, batch_from_numpy
from dotadd.sources.sound import GRAY, float_type

PART = 1 << 20  # bytes asked of a stream at once; a decompressor then works in the cache
TEXT = 128  # bytes that a string takes while it is read, however short it is


@dataclass
class NpyFile(FileSource):
    """An array of numbers, of shape (rows, features) or (images, height, width), in C order."""

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

    @classmethod
    def opened(cls, path: str, format: str, options: Options) -> Source:
        array = mapped(path)
        return cls(path, **options) if cls.takes(array) else whole(array, path, **options)

    @property
    def quick(self) -> bool:
        return True

    @property
    def stride(self) -> int:
        return 4 << 20

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with reading(self.path), open(self.path, "rb") as file:
            header = mapped(self.path)
            assert isinstance(header, np.memmap)  # or `opened` would not have made this source
            shape, dtype = header.shape, header.dtype
            file.seek(header.offset)
            del header
            length = math.prod(shape[1:])
            self.require_rows_of(length * dtype.itemsize)
            step = max(1, nbytes // (length * dtype.itemsize))
            for first in range(0, shape[0], step):
                rows = min(step, shape[0] - first)
                values = np.fromfile(file, dtype, rows * length)
                if len(values) < rows * length:
                    raise DataError("ends too early; it was cut off while it was read", self.path)
                yield Chunk(batch_from_numpy(values.reshape(rows, *shape[1:])), None, None, 0, self.path)


class ArrayRows:
    """The rows of an array that lies in a stream of bytes, in C order; they are taken some at a time."""

    def __init__(self, file: IO[bytes], path: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.file, self.path, self.shape, self.dtype = file, path, shape, dtype

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as it is stored."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def step(self, nbytes: int) -> int:
        """How many rows make a batch of about so many bytes."""
        size = self.dtype.itemsize
        if self.dtype.kind in "US":
            size = max(size, TEXT)
        elif len(self.shape) < 3 or self.dtype not in GRAY:  # they become floats
            size = max(size, np.dtype(float_type(self.dtype)).itemsize)
        return max(1, nbytes // max(1, math.prod(self.shape[1:]) * size))

    def take(self, count: int) -> np.ndarray:
        """The next rows."""
        values = np.empty((count, *self.shape[1:]), self.dtype)
        view, have = values.reshape(-1).view(np.uint8).data, 0
        while have < len(view):
            got = read_into(self.file, view[have : have + PART], self.path)
            if not got:
                raise DataError("ends too early; it was cut off, copy it again", self.path)
            have += got
        return values

    def end(self) -> None:
        """Refuse a stream that goes on after the last row. Where it has a checksum, that is looked at now."""
        with reading(self.path):
            more = self.file.read(1)
        if more:
            raise DataError("is longer than its header says; it is damaged", self.path)


def mapped(path: str) -> np.ndarray:
    """The array as a map, of which nothing is read."""
    try:
        with reading(path):
            return np.load(path, mmap_mode="r", allow_pickle=False)
    except DataError:
        raise
    except Exception as error:  # of a damaged header NumPy raises whatever it comes across
        what = (str(error).splitlines() or ["it is damaged"])[0]
        raise DataError(f"cannot be read as an array: {what}", path) from None


def whole(array: np.ndarray, path: str, on_bad_row: str) -> MemorySource:
    """The source over all of an array that cannot be read in turns: text, or numbers in Fortran order."""
    try:
        return MemorySource(Chunk(batch_from_numpy(array), None, None, 0, path), on_bad_row=on_bad_row)
    except ValueError as error:
        raise DataError(str(error), path) from None
