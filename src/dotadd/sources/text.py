"""Text files as a stream of bytes: plain or compressed, cut between lines or records, with line numbers."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, NamedTuple

import numpy as np

from dotadd.errors import DataError

COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}


class Piece(NamedTuple):
    """Whole lines of a file, in the first `stop` bytes of a buffer that the next piece will use again.

    The last line is ended by a newline even if the file's is not. `line` is the number of the first, from 1.
    """

    buffer: bytearray
    stop: int
    line: int

    @property
    def letters(self) -> np.ndarray:
        return np.frombuffer(self.buffer, np.uint8, self.stop)


@contextmanager
def decompressed(path: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file as it lies on disk, whose position tells how far reading has come, and its bytes: decompressed if it is
    gzip, bzip2 or xz (seen by its first bytes, whatever its name)."""
    with ExitStack() as stack:
        with reading(path):
            raw = stack.enter_context(open(path, "rb"))
            magic = raw.read(6)
            raw.seek(0)
            opener = next((opener for start, opener in COMPRESSED.items() if magic.startswith(start)), None)
            file = raw if opener is None else stack.enter_context(opener(raw, "rb"))  # type: ignore[operator]
        yield raw, file


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what can go wrong with a file into one clear line."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except IsADirectoryError:
        raise DataError("is a folder; give the files in it, for example by a pattern like folder/*.csv", path) from None
    except PermissionError:
        raise DataError("may not be read (permission denied)", path) from None
    except EOFError:
        raise DataError("the compressed file ends too early; it was cut off, copy it again", path) from None
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, OSError) as error:
        raise DataError(f"cannot be read: {error}", path) from None


def after_last_line(text: bytearray, stop: int) -> int:
    """Where the last whole line ends, 0 if none does."""
    return text.rfind(b"\n", 0, stop) + 1


def pieces(
    path: str,
    nbytes: int,
    cut: Callable[[bytearray, int], int] = after_last_line,
    on_progress: Callable[[float], None] | None = None,
) -> Iterator[Piece]:
    """The file in pieces of about so many bytes, each ending where `cut(buffer, have)` says; 0 means: read on.

    `on_progress` is told with each piece what share of the file is done.
    """
    buffer, have, line = bytearray(max(nbytes, 1) + 1), 0, 1
    with decompressed(path) as (raw, file):
        size = max(1, os.fstat(raw.fileno()).st_size)
        ended = False
        while not ended:
            have, ended = _fill(file, path, buffer, have)
            stop = have if ended else cut(buffer, have)
            if stop == 0:
                if not ended:  # one record is longer than the buffer
                    buffer = buffer + bytes(len(buffer))
                continue
            if ended and buffer[stop - 1] != 10:
                buffer[stop] = 10
                stop = have = stop + 1
            piece = Piece(buffer, stop, line)
            yield piece
            if on_progress is not None:
                on_progress(min(1.0, raw.tell() / size))
            line += count_lines(piece.letters)
            buffer[: have - stop] = buffer[stop:have]
            have -= stop


def _fill(file: IO[bytes], path: str, buffer: bytearray, have: int) -> tuple[int, bool]:
    """Fill the buffer from the file but for its last byte: how many bytes it then holds, and whether the file ended."""
    with memoryview(buffer) as view, reading(path):
        while have < len(buffer) - 1:
            got = file.readinto(view[have:-1])  # type: ignore[attr-defined]
            if not got:
                return have, True
            have += got
    return have, False


def count_lines(letters: np.ndarray) -> int:
    """Newlines in some text, looked at in parts that stay in the cache."""
    part = 1 << 18
    return sum(int(np.count_nonzero(letters[first : first + part] == 10)) for first in range(0, len(letters), part))


def first_lines(path: str, nbytes: int = 1 << 16) -> bytes:
    """The beginning of a file, decompressed."""
    with decompressed(path) as (_, file), reading(path):
        return file.read(nbytes)
