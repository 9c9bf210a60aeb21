"""Records in a piece of text: where each begins and ends, and the line it begins on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.sources.text import Piece, after_last_line

QUOTE = 34


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
