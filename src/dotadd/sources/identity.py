"""Which data a source holds: marks that differ when the data does, and a watch over files while they are read.

Files are known by size, time of change, and their first and last bytes; arrays in memory by their shape and a sample of
their values. What else decides about the examples are the options that they are read with. `Checksum` knows files by
all of their bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import zlib
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dotadd._util.compressed import reading
from dotadd.data.batches import Batch
from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Source

ENDS = 1 << 16  # bytes that are looked at where a file begins and where it ends
WHOLE, PIECES = 1 << 24, 256  # larger arrays are looked at in so many pieces
STEP = 1 << 20  # bytes that are read at a time where all are
_FOUND_OUT = {"skipped", "columns"}
_NOT_OPTIONS = {"path", "fasta", "gff", "peaks", "exclude", "labels"} | _FOUND_OUT  # files are marked apart


class Identity(NamedTuple):
    """A mark for the content of a source, and one for the options it is read with."""

    content: str
    options: str


def fingerprint(source: Source) -> str:
    """A short text that stays the same as long as the source yields the same examples."""
    return "-".join(identity(source))


def identity(source: Source) -> Identity:
    """The marks of a source. A copy in another format has those of the source it was made from."""
    if isinstance(known := getattr(source, "stands_for", None), Identity):
        return known
    content, options = hashlib.blake2b(digest_size=12), hashlib.blake2b(digest_size=12)
    options.update(type(source).__name__.encode())
    inner: list[Source] = []
    chunks: list[Chunk] = []
    for name, value in _fields(source).items():
        if parts := _sources(value):
            inner += parts
        elif isinstance(value, Chunk):
            chunks.append(value)
        elif isinstance(value, np.ndarray):
            content.update(_of_array(value))
        else:
            options.update(f"{name}={value!r};".encode())
    for marks in map(identity, inner):
        content.update(marks.content.encode())
        options.update(marks.options.encode())
    files = [] if inner else source.files()
    if not (inner or files or chunks):  # a source of another making: what it begins with has to do
        chunks.append(next(iter(source.chunks())))
    for part in [*(_of_file(path, source) for path in files), *map(_of_chunk, chunks)]:
        content.update(part)
    return Identity(content.hexdigest(), options.hexdigest())


def _fields(source: Source) -> dict[str, object]:
    """What a source was made with."""
    if not dataclasses.is_dataclass(source):
        return {}
    fields = [field for field in dataclasses.fields(source) if field.compare and field.name not in _NOT_OPTIONS]
    return {field.name: getattr(source, field.name) for field in fields}


def variant(source: Source) -> str:
    """A short mark for how a file is read where that is not the plain way, and "" where it is.

    Two ways that are used at a time have different marks. It is no more than a part of a name: what tells them apart in
    any case is `identity`.
    """
    assert dataclasses.is_dataclass(source)
    told = []
    for field in dataclasses.fields(source):
        value = getattr(source, field.name)
        if not field.compare or field.name in {"path", "format"} | _FOUND_OUT or value == field.default:
            continue
        if field.name in _NOT_OPTIONS:  # files, which may have moved together
            value = [os.path.basename(path) for path in ([value] if isinstance(value, str | os.PathLike) else value)]
        told.append(f"{field.name}={value!r}")
    return hashlib.blake2b(";".join(told).encode(), digest_size=4).hexdigest() if told else ""


class Checksum:
    """Of all bytes of all files of a source; taken step by step while they are read, or at once."""

    def __init__(self, source: Source) -> None:
        self._files = source.files()
        self._size = sum(os.path.getsize(path) for path in self._files)
        self._sums: list[tuple[int, int]] = []  # bytes and checksum of each file so far
        self._done = 0

    def reach(self, share: float) -> None:
        """Take on about this share of the bytes, which have just been read and are still in memory."""
        while self._done < share * self._size and self._step():
            pass

    def finished(self) -> str:
        """The checksum of all."""
        while self._step():
            pass
        return hashlib.blake2b(repr(self._sums).encode(), digest_size=12).hexdigest()

    def _step(self) -> bool:
        """Read on; returns whether there was anything left."""
        if not self._sums:
            self._sums.append((0, 0))
        while True:
            size, so_far = self._sums[-1]
            path = self._files[len(self._sums) - 1]
            with reading(path), open(path, "rb") as file:
                file.seek(size)
                found = file.read(STEP)
            if found:
                self._sums[-1] = size + len(found), zlib.crc32(found, so_far)
                self._done += len(found)
                return True
            if len(self._sums) == len(self._files):
                return False
            self._sums.append((0, 0))


def _of_file(path: str, source: Source) -> bytes:
    """A mark for a file. Of the many files in a folder of images, names, sizes and times have to do."""
    root = os.path.join(getattr(source, "path", ""), "")
    if path.startswith(root) and os.path.isdir(root):
        return os.fsencode(f"{path.removeprefix(root)} {_stamp(path)[:2]};")
    with reading(path), open(path, "rb") as file:
        stat = os.fstat(file.fileno())
        first = file.read(ENDS)
        file.seek(max(0, stat.st_size - ENDS))
        return hashlib.blake2b(f"{stat.st_size} {stat.st_mtime_ns}".encode() + first + file.read(ENDS)).digest()


def _of_chunk(chunk: Chunk) -> bytes:
    batch: Batch = chunk.batch
    found = [f"{batch.kind} {len(batch)}".encode()]
    for name, value in vars(batch).items():
        if isinstance(getattr(type(batch), name, None), cached_property):  # there or not: it follows from the others
            continue
        found.append(_of_array(value, WHOLE) if isinstance(value, np.ndarray) else f"{name}={value!r};".encode())
    found += [b"-" if array is None else _of_array(array) for array in (chunk.y, chunk.weight)]
    return b"".join(found)


def _of_array(array: np.ndarray, most: int | None = None) -> bytes:
    """A mark for an array. Of one that has more than `most` bytes, pieces from all over it are looked at."""
    digest = hashlib.blake2b(f"{array.dtype.str} {array.shape}".encode())
    if array.dtype.hasobject:
        digest.update(repr(array.tolist()).encode())
        return digest.digest()
    flat = array.reshape(-1)
    pieces = [flat]
    if most is not None and array.nbytes > most:
        step, length = len(flat) // PIECES, most // PIECES // array.itemsize
        pieces = [flat[first : first + length] for first in range(0, len(flat), step)] + [flat[-length:]]
    for piece in pieces:
        digest.update(np.ascontiguousarray(piece).view(np.uint8).data)
    return digest.digest()


class Watched:
    """The files of a source as they are now. `check` is cheap, and raises DataError when one of them has changed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held = _held(source)
        self._stamps = {path: self._stamp(path) for path in source.files()}

    def check(self) -> None:
        for path in {**self._stamps, **dict.fromkeys(self._source.files())}:  # a folder may have got more
            if path not in self._stamps or self._stamp(path) != self._stamps[path]:
                raise DataError("has changed while it was read; leave it as it is until training has ended", path)

    def _stamp(self, path: str) -> tuple[int, ...]:
        if path not in self._held:
            return _stamp(path)
        with reading(path):
            found = os.stat(self._held[path])
            return found.st_size, found.st_ino


def _held(source: Source) -> dict[str, str]:
    """Files of which somebody has made sure that they stay what they are, whatever happens to their names; and where
    they are read."""
    inner = [part for value in _fields(source).values() for part in _sources(value)]
    held = {path: place for part in inner for path, place in _held(part).items()}
    return held | getattr(source, "held", {})


def _sources(value: object) -> list[Source]:
    """The sources that a field of another one holds."""
    if isinstance(value, Source):
        return [value]
    return value if isinstance(value, list) and value and isinstance(value[0], Source) else []


def changed_at(source: Source) -> float:
    """When anything was last done to a file of the source, in seconds: a time that nobody can set. Windows has none."""
    return max(os.stat(path).st_ctime for path in source.files())


def _stamp(path: str) -> tuple[int, int, int]:
    with reading(path):
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns, found.st_ino
