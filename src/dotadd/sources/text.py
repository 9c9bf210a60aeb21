"""Text files as a stream of bytes: plain or compressed, cut between lines or records, with line numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import numpy as np

from dotadd.compressed import decompressed, largest_record, reading, too_large


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


def after_last_line(text: bytearray, stop: int) -> int:
    """Where the last whole line ends, 0 if none does."""
    return text.rfind(b"\n", 0, stop) + 1


def pieces(
    path: str,
    nbytes: int,
    cut: Callable[[bytearray, int], int] = after_last_line,
    on_progress: Callable[[float], None] | None = None,
    largest: int | None = None,
) -> Iterator[Piece]:
    """The file in pieces of about so many bytes, each ending where `cut(buffer, have)` says; 0 means: read on.

    `on_progress` is told with each piece what share of the file is done. A record of more than `largest` bytes is
    refused as soon as it is that large.
    """
    buffer, have, line = bytearray(max(nbytes, 1) + 1), 0, 1
    with decompressed(path) as (raw, file):
        size = max(1, os.fstat(raw.fileno()).st_size)
        ended = False
        while not ended:
            have, ended = _fill(file, path, buffer, have)
            stop = have if ended else cut(buffer, have)
            if stop == 0:
                largest = largest_record() if largest is None else largest
                if have > largest:
                    raise too_large(largest, path, line)
                if not ended:  # one record is longer than the buffer
                    longer = bytearray(min(2 * len(buffer), max(len(buffer), largest) + 2))
                    longer[:have] = memoryview(buffer)[:have]
                    buffer = longer
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
