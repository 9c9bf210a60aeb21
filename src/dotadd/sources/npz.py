"""NumPy archives (.npz): one of the arrays holds the examples, others their labels and weights.

The arrays are decompressed side by side as rows are wanted, so that none of them is ever in memory as a whole.
"""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from dotadd._util import memory
from dotadd._util.compressed import reading
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.labels import attach_array
from dotadd.sources.memory import batch_from_numpy
from dotadd.sources.npy import ArrayRows
from dotadd.sources.slices import CUT_OFF

LABELS, WEIGHTS = ("label", "labels", "y", "target"), ("weight", "weights", "sample_weight")  # taken if they fit
LARGEST = 256 << 20  # bytes of an array in Fortran order, which can only be loaded as a whole


class _Array(NamedTuple):
    """An array of an archive, of which the header has been read."""

    name: str
    member: zipfile.ZipInfo
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @property
    def is_column(self) -> bool:
        """Whether it has one value a row."""
        return len(self.shape) == 1 or (len(self.shape) == 2 and self.shape[1] == 1)

    @property
    def is_numbers(self) -> bool:
        """Whether its rows are vectors or images."""
        return len(self.shape) in (2, 3) and self.dtype.kind in "biuf"

    @property
    def is_text(self) -> bool:
        return len(self.shape) == 1 and self.dtype.kind in "US"

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.name} {self.shape} {'objects' if self.dtype.hasobject else self.dtype}"


@dataclass
class NpzFile(FileSource):
    """The only array of 2 or 3 dimensions, or else of text, or the one that `column` names; labels and weights are
    the arrays that `label` and `weight` name, or that are as long and have one of the usual names."""

    column: str | None = field(default=None, kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    weight: str | None = field(default=None, kw_only=True)

    @property
    def quick(self) -> bool:
        with _reading_archive(self.path), zipfile.ZipFile(self.path) as archive:
            return all(member.compress_type == zipfile.ZIP_STORED for member in archive.infolist())

    @property
    def stride(self) -> int:
        return 4 << 20

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with _reading_archive(self.path), zipfile.ZipFile(self.path) as archive:
            chosen = self._chosen(_arrays(archive))
            x, label, weight = (None if array is None else _rows(archive, array, self.path) for array in chosen)
            assert x is not None
            self.require_rows_of(x.row_bytes)
            count, step = x.shape[0], x.step(nbytes)
            for first in range(0, count, step):
                rows = min(step, count - first)
                chunk = Chunk(batch_from_numpy(x.take(rows)), None, None, first, self.path)
                if weight is not None:
                    chunk = Chunk(chunk.batch, None, weight.take(rows).reshape(-1).astype(np.float64), first, self.path)
                yield chunk if label is None else attach_array(self, chunk, label.take(rows).reshape(-1))
                if self.on_progress is not None:
                    self.on_progress((first + rows) / count)
            for array in (x, label, weight):
                if array is not None:
                    array.end()

    def _chosen(self, arrays: dict[str, _Array]) -> tuple[_Array, _Array | None, _Array | None]:
        """The examples, the labels and the weights."""
        for name in (self.column, self.label, self.weight):
            if name is not None and name not in arrays:
                raise DataError(f"there is no array {name!r}; the arrays are {_listed(arrays)}", self.path)
        x = arrays[self.column] if self.column is not None else self._examples(arrays)
        if x.dtype.hasobject:
            raise DataError(
                f"the array {x.name} holds Python objects, which are not loaded since that can run any code; "
                "save it as numbers or text",
                self.path,
            )
        if not x.is_numbers and not x.is_text:
            raise DataError(f"the array {x} holds no examples: numbers have to be 2-D or 3-D, text 1-D", self.path)
        return (
            x,
            self._beside(arrays, x, self.label, LABELS, "biufUS"),
            self._beside(arrays, x, self.weight, WEIGHTS, "biuf"),
        )

    def _examples(self, arrays: dict[str, _Array]) -> _Array:
        """The one array that can be meant."""
        beside = {*LABELS, *WEIGHTS, self.label, self.weight}
        others = [array for array in arrays.values() if array.name not in beside]
        candidates = (
            [array for array in others if array.is_numbers]
            or [array for array in others if array.is_text]
            or [array for array in others if array.dtype.hasobject]  # for the complaint about them
        )
        if len(candidates) == 1:
            return candidates[0]
        if {"indptr", "indices", "data"} <= arrays.keys():
            raise DataError("holds a sparse matrix; load it with scipy.sparse.load_npz and give the matrix", self.path)
        if not candidates:
            raise DataError(f"no array holds examples, numbers in 2-D or 3-D or text: {_listed(arrays)}", self.path)
        raise DataError(
            f"which array holds the examples? Name it with column=; the arrays are {_listed(arrays)}", self.path
        )

    def _beside(
        self, arrays: dict[str, _Array], x: _Array, asked: str | None, usual: Sequence[str], kinds: str
    ) -> _Array | None:
        """The array of labels or weights: the one that was asked for, or one that fits."""

        def fits(array: _Array) -> bool:
            return array.is_column and array.shape[0] == x.shape[0] and array.dtype.kind in kinds

        if asked is None:
            found = (arrays[name] for name in usual if name in arrays and name != x.name)
            return next((array for array in found if fits(array)), None)
        if not fits(arrays[asked]):
            what = "numbers or text" if "U" in kinds else "numbers"
            raise DataError(f"the array {arrays[asked]} does not hold {what}, one for each row of {x}", self.path)
        return arrays[asked]


class _Columns(ArrayRows):
    """The rows of an array in Fortran order, which is loaded as a whole."""

    def __init__(self, file: IO[bytes], path: str, array: _Array) -> None:
        if array.nbytes > LARGEST:
            raise DataError(
                f"the array {array} is in Fortran order and takes {memory.words(array.nbytes)}, too much to be loaded "
                "as a whole; save numpy.ascontiguousarray of it",
                path,
            )
        super().__init__(file, path, array.shape[::-1], array.dtype)
        self.values = super().take(self.shape[0]).T
        self.shape, self.at = array.shape, 0

    def take(self, count: int) -> np.ndarray:
        self.at += count
        return np.ascontiguousarray(self.values[self.at - count : self.at])


def _arrays(archive: zipfile.ZipFile) -> dict[str, _Array]:
    """All arrays by their names, from their headers alone."""
    arrays = {}
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                arrays[name] = _Array(name, member, *_header(file))
    return arrays


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy_format.read_magic(file)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    try:
        return read(file)
    except Exception as error:  # of a damaged header NumPy raises whatever it comes across
        raise ValueError(str(error)) from None


def _rows(archive: zipfile.ZipFile, array: _Array, path: str) -> ArrayRows:
    """The rows of an array, the first one next. Archives close what was opened in them."""
    file = archive.open(array.member)
    _header(file)
    if file.tell() + array.nbytes != array.member.file_size:
        raise DataError(f"{CUT_OFF}: the array {array} does not have as many bytes as it should", path)
    return _Columns(file, path, array) if array.fortran else ArrayRows(file, path, array.shape, array.dtype)


def _listed(arrays: dict[str, _Array], most: int = 12) -> str:
    """Names, shapes and types for a message."""
    shown = ", ".join(str(array) for array in list(arrays.values())[:most]) or "none"
    return shown + (f" and {len(arrays) - most} more" if len(arrays) > most else "")


@contextmanager
def _reading_archive(path: str) -> Iterator[None]:
    try:
        with reading(path):
            yield
    except DotaddError:
        raise
    except (zipfile.BadZipFile, struct.error, ValueError, RuntimeError) as error:  # RuntimeError: encrypted
        raise DataError(f"{CUT_OFF}: {error}", path) from None
