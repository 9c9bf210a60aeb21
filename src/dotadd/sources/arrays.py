"""Files of arrays, of which rows are read in order and never mapped, so that memory stays bounded.

- .npy: one array, without labels.
- .npz: an archive in which one of the arrays holds the examples, others their labels and weights. They are decompressed
  side by side as rows are wanted.
- idx, in which MNIST comes: an array of numbers, most significant byte first, behind a header of four bytes (two zeros,
  the type, the number of dimensions) and the length of each dimension. Labels lie in a file of their own.
"""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import IO, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from dotadd._util import memory
from dotadd._util.compressed import COMPRESSED, ENDINGS, decompressed, read_into, reading
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import Chunk, Options, Source
from dotadd.sources.files import FileSource
from dotadd.sources.formats import is_idx
from dotadd.sources.labels import attach_array
from dotadd.sources.memory import MemorySource, batch_from_numpy
from dotadd.sources.slices import CUT_OFF
from dotadd.sources.sound import GRAY, float_type

PART = 1 << 20  # bytes asked of a stream at once; a decompressor then works in the cache
TEXT = 128  # bytes that a string takes while it is read, however short it is
LABELS, WEIGHTS = ("label", "labels", "y", "target"), ("weight", "weights", "sample_weight")  # taken if they fit
LARGEST = 256 << 20  # bytes of an array in Fortran order, which can only be loaded as a whole
LARGEST_ROW = 1 << 30  # bytes of a row of idx; more is no row but a damaged header
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}  # of idx


class ArrayRows:
    """The rows of an array that lies in a stream of bytes, in C order; they are taken some at a time."""

    cut_off = "it was cut off, copy it again"

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
                raise DataError(f"ends too early; {self.cut_off}", self.path)
            have += got
        return values

    def end(self) -> None:
        """Refuse a stream that goes on after the last row. Where it has a checksum, that is looked at now."""
        with reading(self.path):
            more = self.file.read(1)
        if more:
            raise DataError("is longer than its header says; it is damaged", self.path)


class ArrayFile(FileSource):
    """Rows that lie in an array, and labels and weights that lie in others."""

    @property
    def stride(self) -> int:
        return 4 << 20

    def rows_of(self, x: ArrayRows, label: ArrayRows | None, weight: ArrayRows | None, nbytes: int) -> Iterator[Chunk]:
        """All rows, which are looked at first: whether one takes more than it may."""
        self.require_rows_of(x.row_bytes)
        count, step = x.shape[0], x.step(nbytes)
        for first in range(0, count, step):
            rows = min(step, count - first)
            batch = batch_from_numpy(x.take(rows))
            weights = None if weight is None else weight.take(rows).reshape(-1).astype(np.float64)
            chunk = Chunk(batch, None, weights, first, self.path)
            yield chunk if label is None else attach_array(self, chunk, label.take(rows).reshape(-1))
            if self.on_progress is not None:
                self.on_progress((first + rows) / count)
        for array in (x, label, weight):
            if array is not None:
                array.end()


class NpyFile(ArrayFile):
    """An array of numbers, of shape (rows, features) or (images, height, width), in C order."""

    @classmethod
    def opened(cls, path: str, format: str, options: Options) -> Source:
        array = mapped(path)
        in_rows = isinstance(array, np.memmap) and array.ndim in (2, 3) and array.flags.c_contiguous
        if in_rows and array.dtype.kind in "biuf" and array.size > 0:
            return cls(path, **options)
        try:  # text, or numbers in Fortran order
            return MemorySource(Chunk(batch_from_numpy(array), None, None, 0, path), **options)
        except ValueError as error:
            raise DataError(str(error), path) from None

    @property
    def quick(self) -> bool:
        return True

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with reading(self.path), open(self.path, "rb") as file:
            header = mapped(self.path)
            assert isinstance(header, np.memmap)  # or `opened` would not have made this source
            file.seek(header.offset)
            x = _Saved(file, self.path, header.shape, header.dtype)
            del header
            yield from self.rows_of(x, None, None, nbytes)


class _Saved(ArrayRows):
    """The rows of a .npy file, behind which there may be anything."""

    cut_off = "it was cut off while it was read"

    def step(self, nbytes: int) -> int:
        return max(1, nbytes // self.row_bytes)

    def end(self) -> None:
        pass


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
class NpzFile(ArrayFile):
    """The only array of 2 or 3 dimensions, or else of text, or the one that `column` names; labels and weights are
    the arrays that `label` and `weight` name, or that are as long and have one of the usual names."""

    column: str | None = field(default=None, kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    weight: str | None = field(default=None, kw_only=True)

    @property
    def quick(self) -> bool:
        with _reading_archive(self.path), zipfile.ZipFile(self.path) as archive:
            return all(member.compress_type == zipfile.ZIP_STORED for member in archive.infolist())

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with _reading_archive(self.path), zipfile.ZipFile(self.path) as archive:
            chosen = self._chosen(_arrays(archive))
            x, label, weight = (None if array is None else _rows(archive, array, self.path) for array in chosen)
            assert x is not None
            yield from self.rows_of(x, label, weight, nbytes)

    def _chosen(self, arrays: dict[str, _Array]) -> tuple[_Array, _Array | None, _Array | None]:
        """The examples, the labels and the weights."""
        for name in (self.column, self.label if self.labelled else None, self.weight):
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
        label = self._beside(arrays, x, self.label, LABELS, "biufUS") if self.labelled else None
        return x, label, self._beside(arrays, x, self.weight, WEIGHTS, "biuf")

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
        message = "which array holds the examples? Name it with column=; the arrays are "
        if not candidates:
            message = "no array holds examples, numbers in 2-D or 3-D or text: "
        raise DataError(message + _listed(arrays), self.path)

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


@dataclass
class IdxFile(ArrayFile):
    """Images (3 dimensions) or rows (2). Their labels are in the file `labels`, or in the one beside it whose name has
    "labels-idx1" where this one's has "images-idx3"."""

    labels: str | None = field(default=None, kw_only=True)

    @property
    def quick(self) -> bool:
        with reading(self.path), open(self.path, "rb") as file:
            return not file.read(6).startswith(tuple(COMPRESSED))

    def files(self) -> list[str]:
        labels = self._labels()
        return [self.path] if labels is None else [self.path, labels]

    def read(self, nbytes: int) -> Iterator[Chunk]:
        with ExitStack() as stack:
            x = _open_idx(stack, self.path)
            if len(x.shape) not in (2, 3):
                what = "labels, it seems; give the file of the images" if len(x.shape) == 1 else "no images"
                raise DataError(f"holds {len(x.shape)}-dimensional numbers: {what}", self.path)
            path, labels = self._labels(), None
            if path is not None:
                labels = _open_idx(stack, path)
                self._require_fit(x, labels)
            yield from self.rows_of(x, labels, None, nbytes)

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
        found = (os.path.join(folder, name + suffix) for suffix in ("", *ENDINGS))
        return next((path for path in found if os.path.isfile(path)), None)


def _open_idx(stack: ExitStack, path: str) -> ArrayRows:
    """The rows of a file, which stays open."""
    raw, file = stack.enter_context(decompressed(path))
    shape, dtype, start = _idx_header(file, path)
    whole = start + math.prod(shape) * dtype.itemsize
    size = os.fstat(raw.fileno()).st_size
    if file is raw and size != whole:
        what = "it was cut off, copy it again" if size < whole else "it is damaged"
        raise DataError(f"has {size:,} bytes, and its header speaks of {whole:,}; {what}", path)
    if not 0 < math.prod(shape[1:]) * dtype.itemsize <= LARGEST_ROW:
        raise DataError(f"its header speaks of rows of shape {shape[1:]}; it is damaged", path)
    return ArrayRows(file, path, shape, dtype)


def _idx_header(file: IO[bytes], path: str) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape and type, and how many bytes they are told in."""
    with reading(path):
        magic = file.read(4)
        lengths = file.read(4 * magic[3]) if len(magic) == 4 else b""
    if not is_idx(magic + lengths) or len(lengths) < 4 * magic[3]:
        raise DataError("is no idx file: it does not begin with two zeros, a type and the dimensions", path)
    return tuple(np.frombuffer(lengths, ">u4").tolist()), np.dtype(TYPES[magic[2]]), 4 + len(lengths)
