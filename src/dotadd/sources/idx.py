"""idx files, in which MNIST comes: an array of numbers, most significant byte first, behind a header of four bytes (two
zeros, the type, the number of dimensions) and the length of each dimension. Labels lie in a file of their own."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from dotadd._util.compressed import COMPRESSED, ENDINGS, decompressed, reading
from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.labels import attach_array
from dotadd.sources.memory import batch_from_numpy
from dotadd.sources.npy import ArrayRows

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
SUFFIXES = ("", *ENDINGS)
LARGEST = 1 << 30  # bytes of a row; more is no row but a damaged header


def has_magic(beginning: bytes) -> bool:
    """Whether a file that begins so is an idx file."""
    return len(beginning) >= 8 and beginning[:2] == b"\0\0" and beginning[2] in TYPES and 1 <= beginning[3] <= 8


@dataclass
class IdxFile(FileSource):
    """Images (3 dimensions) or rows (2). Their labels are in the file `labels`, or in the one beside it whose name has
    "labels-idx1" where this one's has "images-idx3"."""

    labels: str | None = field(default=None, kw_only=True)

    @property
    def quick(self) -> bool:
        with reading(self.path), open(self.path, "rb") as file:
            return not file.read(6).startswith(tuple(COMPRESSED))

    @property
    def stride(self) -> int:
        return 4 << 20

    def files(self) -> list[str]:
        labels = self._labels()
        return [self.path] if labels is None else [self.path, labels]

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with ExitStack() as stack:
            x = _opened(stack, self.path)
            if len(x.shape) not in (2, 3):
                what = "labels, it seems; give the file of the images" if len(x.shape) == 1 else "no images"
                raise DataError(f"holds {len(x.shape)}-dimensional numbers: {what}", self.path)
            path, labels = self._labels(), None
            if path is not None:
                labels = _opened(stack, path)
                self._require_fit(x, labels)
            self.require_rows_of(x.row_bytes)
            count, step = x.shape[0], x.step(nbytes)
            for first in range(0, count, step):
                rows = min(step, count - first)
                chunk = Chunk(batch_from_numpy(x.take(rows)), None, None, first, self.path)
                yield chunk if labels is None else attach_array(self, chunk, labels.take(rows))
                if self.on_progress is not None:
                    self.on_progress((first + rows) / count)
            for array in (x, labels):
                if array is not None:
                    array.end()

    def _require_fit(self, x: ArrayRows, labels: ArrayRows) -> None:
        if len(labels.shape) != 1:
            raise DataError(f"holds no labels: its numbers are {len(labels.shape)}-dimensional", labels.path)
        if labels.shape != x.shape[:1]:
            message = f"has {x.shape[0]:,} examples, and {labels.path} has {labels.shape[0]:,} labels"
            raise DataError(message, self.path)

    def _labels(self) -> str | None:
        """The file of the labels, None if there is none."""
        if self.labels is not None:
            return self.labels
        folder, name = os.path.split(self.path)
        if "images" not in name:
            return None
        name = re.sub(r"\.(gz|bz2|xz)$", "", name.replace("images", "labels"))
        name = re.sub(r"idx[23]", "idx1", name)
        found = (os.path.join(folder, name + suffix) for suffix in SUFFIXES)
        return next((path for path in found if os.path.isfile(path)), None)


def _opened(stack: ExitStack, path: str) -> ArrayRows:
    """The rows of a file, which stays open."""
    raw, file = stack.enter_context(decompressed(path))
    shape, dtype, start = _header(file, path)
    whole = start + math.prod(shape) * dtype.itemsize
    size = os.fstat(raw.fileno()).st_size
    if file is raw and size != whole:
        what = "it was cut off, copy it again" if size < whole else "it is damaged"
        raise DataError(f"has {size:,} bytes, and its header speaks of {whole:,}; {what}", path)
    if not 0 < math.prod(shape[1:]) * dtype.itemsize <= LARGEST:
        raise DataError(f"its header speaks of rows of shape {shape[1:]}; it is damaged", path)
    return ArrayRows(file, path, shape, dtype)


def _header(file: IO[bytes], path: str) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape and type, and how many bytes they are told in."""
    with reading(path):
        magic = file.read(4)
        lengths = file.read(4 * magic[3]) if len(magic) == 4 else b""
    if not has_magic(magic + lengths) or len(lengths) < 4 * magic[3]:
        raise DataError("is no idx file: it does not begin with two zeros, a type and the dimensions", path)
    return tuple(np.frombuffer(lengths, ">u4").tolist()), np.dtype(TYPES[magic[2]]), 4 + len(lengths)
