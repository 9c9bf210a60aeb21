"""Text files as a stream of bytes: plain or compressed, cut between lines or records, with line numbers.

A piece of text has records: where each begins and ends, and the line it begins on. A record of CSV has fields, quotes
and all. Kernels read decimal numbers with `number`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple

import numpy as np

from dotadd._jit import inner, kernel, plain
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
    line: int = 1,
) -> Generator[Piece, None, None]:
    """The file in pieces of about so many bytes, each ending where `cut(buffer, have)` says; 0 means: read on.

    `on_progress` is told with each piece what share of the file is done. A record of more than `largest` bytes is
    refused as soon as it is that large. `line` is the number of the first line.
    """
    have = 0
    with decompressed(path) as (raw, file):
        size = max(1, os.fstat(raw.fileno()).st_size)
        # To clear 32 MB takes longer than to read a small file, so there is no more room than for all of it, if its
        # size is known (that of a pipe is 0).
        room = min(nbytes, size + 1) if file is raw and size > 1 else nbytes
        buffer = bytearray(max(room, 1) + 1)
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

    def __iter__(self) -> Iterator[bytearray]:
        return (self[record] for record in range(len(self)))


def records_of(piece: Piece, quote: int = 0, delimiter: str = ",") -> Records:
    """The records of a piece. Where there are quotes, a newline between two of them does not end a record."""
    if not quote or piece.buffer.find(quote, 0, piece.stop) < 0:
        return _lines_of(piece)
    letters = plain(piece.letters)
    starts, stops, lines = (np.empty(count_lines(letters) + 1, np.int64) for _ in range(3))
    count, _, unclosed = _scan(letters, quote, ord(delimiter), starts, stops, lines)
    return Records(piece.buffer, starts[:count], stops[:count], lines[:count] + piece.line, bool(unclosed))


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


# Decimal numbers, correctly rounded to float64 without a call to the C library. Most have at most 53 bits of digits and
# a small exponent, and one multiplication by an exact power of ten rounds them correctly. For the rest the digits are
# multiplied with the first 64 bits of the power of ten as integers; where the bits left over do not settle the rounding
# (about one number in a thousand of those), or the number is close to the ends of the range, the kernel says ODD and
# Python's `float` decides.

NUMBER, NOT_A_NUMBER, ODD = 0, 1, 2

_SMALLEST, _LARGEST = -290, 270  # powers of ten that keep 19 digits well inside float64


def _mantissas() -> np.ndarray:
    """The first 64 bits of each power of ten, rounded down."""
    found = []
    for exponent in range(_SMALLEST, _LARGEST + 1):
        if exponent >= 0:
            power = 10**exponent
            shift = power.bit_length() - 64
            found.append(power >> shift if shift >= 0 else power << -shift)
        else:
            power = 10**-exponent
            scaled = (1 << (power.bit_length() + 64)) // power
            found.append(scaled >> (scaled.bit_length() - 64))
    return np.array(found, np.uint64)


_POWERS = np.array([10.0**exponent for exponent in range(23)])
_MANTISSAS = _mantissas()
_BINARY = np.array([2.0**exponent for exponent in range(-1022, 1024)])
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_TEN = np.uint64(10)


@inner
def _scaled(digits, exponent):
    """digits * 10**exponent in float64, and whether its rounding is certain."""
    shift = np.uint64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if digits >> np.uint64(64 - step) == np.uint64(0):
            digits <<= np.uint64(step)
            shift += np.uint64(step)
    power = _MANTISSAS[exponent - _SMALLEST]
    # The upper 64 bits of the product; the bits of the power that were cut off could raise them by one at most.
    low_low = (digits & _LOW) * (power & _LOW)
    high_low = (digits >> _HALF) * (power & _LOW)
    low_high = (digits & _LOW) * (power >> _HALF)
    middle = (low_low >> _HALF) + (high_low & _LOW) + (low_high & _LOW)
    upper = (digits >> _HALF) * (power >> _HALF) + (high_low >> _HALF) + (low_high >> _HALF) + (middle >> _HALF)
    normal = upper >> np.uint64(63)
    spare = np.uint64(10) + normal
    rest = upper & ((_ONE << spare) - _ONE)
    half = _ONE << (spare - _ONE)
    rounded = (upper >> spare) + (_ONE if rest > half else np.uint64(0))
    # floor(exponent * log2(10)) + 1 is the power's length in bits before it was cut to 64.
    length = ((exponent * 217706) >> 16) + 1
    binary = length - np.int64(shift) + np.int64(spare)
    return np.float64(rounded) * _BINARY[binary + 1022], rest != half and rest != half - _ONE


@inner
def _significand(text, p):
    """Digits with a point among them, however many: the first 19 that count, their exponent, and whether these are all.

    The careful twin of the loop in `number`, for long numbers.
    """
    digits, exponent, exact = np.uint64(0), np.int64(0), True
    seen, behind_point = 0, False
    while text[p] == 46 or 48 <= text[p] <= 57:
        if text[p] == 46:
            behind_point = True
        else:
            if seen < 19:
                digits = digits * np.uint64(10) + np.uint64(text[p] - 48)
                seen += digits != np.uint64(0)  # leading zeros do not count
                exponent -= behind_point
            else:
                exact = exact and text[p] == 48
                exponent += not behind_point
        p += _ONE
    return digits, exponent, exact


@inner
def number(text, p):
    """The number that begins at p: its value, where it ends, and NUMBER, NOT_A_NUMBER or ODD.

    The text has to end in a newline, so no digit loop runs over its end.
    """
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += _ONE
    first = p
    digits, exponent, exact = np.uint64(0), np.int64(0), True
    digit = np.int64(text[p]) - 48
    while 0 <= digit < 10:
        digits = digits * _TEN + np.uint64(digit)
        p += _ONE
        digit = np.int64(text[p]) - 48
    length = p - first
    if text[p] == 46:
        p += _ONE
        point = p
        digit = np.int64(text[p]) - 48
        while 0 <= digit < 10:
            digits = digits * _TEN + np.uint64(digit)
            p += _ONE
            digit = np.int64(text[p]) - 48
        length += p - point
        exponent = -np.int64(p - point)
    if length == np.uint64(0):
        return 0.0, p, NOT_A_NUMBER
    if length > np.uint64(19):
        digits, exponent, exact = _significand(text, first)
    if text[p] == 101 or text[p] == 69:
        p += _ONE
        down = text[p] == 45
        if down or text[p] == 43:
            p += _ONE
        digit = np.int64(text[p]) - 48
        if not 0 <= digit < 10:
            return 0.0, p, NOT_A_NUMBER
        written = np.int64(0)
        while 0 <= digit < 10:
            written = min(written * 10 + digit, np.int64(100_000))
            p += _ONE
            digit = np.int64(text[p]) - 48
        exponent += -written if down else written
    certain = exact
    if digits == np.uint64(0):
        value = 0.0
    elif digits <= np.uint64(1 << 53) and -22 <= exponent <= 22:
        value = np.float64(np.int64(digits))
        value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
    elif exact and _SMALLEST <= exponent <= _LARGEST:
        value, certain = _scaled(digits, exponent)
    else:
        value, certain = 0.0, False
    return -value if negative else value, p, NUMBER if certain else ODD
