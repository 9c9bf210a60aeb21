"""Text files as a stream of bytes: plain or compressed, cut between lines or records, with line numbers.

A piece of text has records: where each begins and ends, and the line it begins on. A record of CSV has fields, quotes
and all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import IO, NamedTuple

import numpy as np

from dotadd._jit import kernel, plain
from dotadd._util.compressed import decompressed, largest_record, read_into, reading, too_large

QUOTE = 34
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)("?)')
_NEWLINE = re.compile(r"\r\n|\n|\r")
_PLAIN = {delimiter: re.compile(rf"[^{delimiter}\r\n]*") for delimiter in (",", ";", "\t")}


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
) -> Generator[Piece, None, None]:
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
                most = largest_record() if largest is None else largest
                if have > most:
                    raise too_large(most, path, line, budget=largest is not None)
                if not ended:  # one record is longer than the buffer
                    longer = bytearray(min(2 * len(buffer), max(len(buffer), most) + 2))
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
    with memoryview(buffer) as view:
        while have < len(buffer) - 1:
            got = read_into(file, view[have:-1], path)
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


@dataclass(frozen=True)
class Records:
    """Start and stop of each record in a buffer, blank lines left out, and its line.

    `unclosed` says that the last one has a quote that is not closed.
    """

    buffer: bytearray
    starts: np.ndarray
    stops: np.ndarray
    lines: np.ndarray
    unclosed: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def whole(self) -> memoryview:
        """The text from the first record to the last."""
        return memoryview(self.buffer)[int(self.starts[0]) : int(self.stops[-1])]

    def are_between(self, first: str, last: str) -> bool:
        """Whether every record begins and ends with these letters; they end in a newline, too, that does not count."""
        letters = np.frombuffer(self.buffer, np.uint8)
        ends = self.stops - 2
        ends = ends - (letters[ends] == 13)
        return bool((letters[self.starts] == ord(first)).all() and (letters[ends] == ord(last)).all())

    def slice(self, first: int, stop: int) -> Records:
        span = slice(first, stop)
        return Records(self.buffer, self.starts[span], self.stops[span], self.lines[span], self.unclosed)

    def __getitem__(self, record: int) -> bytearray:
        return self.buffer[int(self.starts[record]) : int(self.stops[record])]


def records_of(piece: Piece, quote: int = 0, delimiter: str = ",") -> Records:
    """The records of a piece. Where there are quotes, a newline between two of them does not end a record."""
    if not quote or piece.buffer.find(quote, 0, piece.stop) < 0:
        return _lines_of(piece)
    letters = plain(piece.letters)
    room = np.empty(0, np.int64)
    count, _, unclosed = _scan(letters, quote, ord(delimiter), room, room, room)
    starts, stops, lines = (np.empty(count, np.int64) for _ in range(3))
    _scan(letters, quote, ord(delimiter), starts, stops, lines)
    return Records(piece.buffer, starts, stops, lines + piece.line, bool(unclosed))


def after_last_record(buffer: bytearray, have: int, delimiter: str) -> int:
    """Where the last whole record ends, newlines inside quotes not counted; 0 if none does."""
    if buffer.find(QUOTE, 0, have) < 0:
        return after_last_line(buffer, have)
    room = np.empty(0, np.int64)
    return int(_scan(plain(np.frombuffer(buffer, np.uint8, have)), QUOTE, ord(delimiter), room, room, room)[1])


def _lines_of(piece: Piece) -> Records:
    letters = piece.letters
    stops = np.flatnonzero(letters == 10) + 1
    starts = np.concatenate([[0], stops[:-1]])
    lengths = stops - starts
    written = (lengths > 2) | ((lengths == 2) & (letters[starts] != 13))
    lines = np.flatnonzero(written)
    return Records(piece.buffer, starts[lines], stops[lines], lines + piece.line)


@kernel
def _scan(text, quote, delimiter, starts, stops, lines):
    """How many records there are, where the last whole one ends, and whether a quote is left open; the places of as
    many records as there is room for.

    A quote opens a quoted field only where a field begins. A doubled quote closes the field and opens it again.
    """
    count = start = end = line = begun = 0
    blank, inside, fresh = True, False, True
    for p, letter in enumerate(text):
        if inside:
            inside = letter != quote
            fresh = not inside
            line += letter == 10
        elif letter == 10:
            if not blank:
                if count < len(starts):
                    starts[count], stops[count], lines[count] = start, p + 1, begun
                count += 1
            line += 1
            start, end, begun, blank, fresh = p + 1, p + 1, line, True, True
        else:
            inside = fresh and letter == quote
            fresh = letter == delimiter
            blank = blank and letter == 13
    if inside:  # the text ends before the quote is closed
        if count < len(starts):
            starts[count], stops[count], lines[count] = start, len(text), begun
        count += 1
    return count, end, inside


def fields_of(text: str, delimiter: str, at: int = 0, *, cut: bool = False) -> tuple[list[str], int]:
    """The fields of the record that begins at a place, and the place behind it; ValueError where quotes are wrong.

    A field that begins with a quote ends with the next one that is not doubled, and with `cut`, where the text does.
    Python's own reader has one limit for the length of a field for the whole process, and raising it for one line races
    with every other thread that does so.
    """
    found: list[str] = []
    while True:
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            plain = _PLAIN[delimiter].match(text, at)
            assert plain is not None  # it matches nothing, too
            found.append(plain[0])
            at = plain.end()
        elif quoted[2] or cut:
            found.append(quoted[1].replace('""', '"'))
            at = quoted.end()
        else:
            raise ValueError("a quote is not closed")
        if at == len(text):
            return found, at
        if newline := _NEWLINE.match(text, at):
            return found, newline.end()
        if text[at] != delimiter:
            raise ValueError(f"{delimiter!r} expected after a quote")
        at += 1
