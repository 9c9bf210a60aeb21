"""LIBSVM text: `label index:value index:value ... # comment`, one example a line, indices increasing from 1.

The kernel reads a piece of the file from its first byte to its last, and stops where it needs Python: at something
bad, or at a number that takes `float` to be rounded correctly. Its state is a small array, so it goes on from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.compressed import decompressed, lines_of
from dotadd.data.batches import LARGEST_VALUE, SparseRows
from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.labels import EXACT
from dotadd.sources.sound import TOO_LARGE
from dotadd.sources.text import NOT_A_NUMBER, ODD, Piece, number, pieces

INT32_LIMIT = 2**31 - 1
INDEX_LIMIT = 10**18  # indices of up to 18 digits are read

# Where the kernel stands. AT: the byte it stopped at; TOKEN: where the number it was reading begins; INDEX: the index
# that came last in this row, -1 before the first; LARGEST: over all rows; ONES: whether every value so far was 1.
AT, LINE, ROW, NONZERO, TOKEN, INDEX, LARGEST, ONES, IN_ROW = range(9)

# Why the kernel stopped.
DONE, ODD_LABEL, ODD_VALUE, WIDE, BAD_LABEL, BAD_INDEX, BAD_VALUE, NOT_FINITE, FALLING, LOW, QID, LARGE = range(12)

COMPLAINTS = {
    BAD_LABEL: "label {token!r} is not a number",
    BAD_INDEX: "expected index:value, found {token!r}",
    BAD_VALUE: "value {token!r} is not a number",
    NOT_FINITE: "value {token!r} is not finite; NaN and infinity cannot be used",
    FALLING: "index in {token!r} is not above the index before it; indices must increase within a line",
    WIDE: "index in {token!r} is too large (the limit is 10^18)",
    LOW: "index 0 in {token!r}: indices start at 1; if yours start at 0, say so with zero_based=True (--zero-based)",
    LARGE: TOO_LARGE.format(value="{token!r}"),
    QID: "{token!r} belongs to ranking data, which cannot be used; remove the qid fields",
}


@dataclass
class LibsvmFile(FileSource):
    """One file of LIBSVM text. `n_features` of a batch is the largest index that the file has shown so far."""

    zero_based: bool = field(default=False, kw_only=True)
    dtype: type = field(default=np.float32, kw_only=True)

    @property
    def stride(self) -> int:
        return 1 << 20  # text and numbers then stay in the cache until they are joined

    def sound(self, chunk: Chunk) -> Chunk:
        return chunk  # the kernel has looked at each number

    def read(self, nbytes: int) -> Iterator[Chunk]:
        largest = -1
        for piece in pieces(
            self.path, nbytes, on_progress=self.on_progress, largest=self.largest, line=self.first_line
        ):
            chunk, largest = self._parse(piece, largest)
            yield chunk

    def column_of(self, path: str, line: int, index: int) -> int | None:
        written = re.compile(rb"[ \t]0*%d:" % (index + (not self.zero_based)))
        with decompressed(self.path) as (_, file):
            for number, text in lines_of(file, self.path):
                if number == line:
                    found = written.search(text.partition(b"#")[0])
                    return None if found is None else found.start() + 2
        return None

    def _parse(self, piece: Piece, largest: int) -> tuple[Chunk, int]:
        letters = plain(piece.letters)
        colons, newlines = (int(count) for count in _count(letters))
        state = np.zeros(9, np.int64)
        state[LINE], state[LARGEST], state[ONES] = piece.line, largest, 1
        offsets = np.zeros(newlines + 1, np.int64)
        indices = np.empty(colons, np.int32)
        values: np.ndarray = np.empty(colons, self.dtype)
        labels, lines = np.empty(newlines), np.empty(newlines, np.int64)
        base = 0 if self.zero_based else 1
        large: dict[int, int] = {}  # by row, labels that float64 does not hold
        while True:
            limit = INT32_LIMIT if indices.dtype == np.int32 else INDEX_LIMIT
            code = _parse_lines(letters, state, base, limit, LARGEST_VALUE, offsets, indices, values, labels, lines)
            if code == DONE:
                break
            if code == WIDE and limit == INT32_LIMIT:
                indices = indices.astype(np.int64)
                continue
            if code in (ODD_LABEL, ODD_VALUE):
                code = _round(piece, state, code, labels if code == ODD_LABEL else values, large)
            if code != DONE:
                self.bad_row(_complaint(self.path, piece, state, code))
                _skip_line(piece, state, offsets)
        rows, nonzeros = int(state[ROW]), int(state[NONZERO])
        largest = int(state[LARGEST])
        used_values = None if state[ONES] else values[:nonzeros]
        batch = SparseRows(offsets[: rows + 1], indices[:nonzeros], used_values, largest + 1)
        return Chunk(batch, _whole(labels[:rows], large), None, 0, self.path, lines[:rows]), largest


def _whole(labels: np.ndarray, large: dict[int, int]) -> np.ndarray:
    """Labels as integers, if all of them are whole and fit; `large` are some of them by row, as they were written."""
    if not (np.abs(labels) < 2.0**63).all():
        return labels
    whole = labels.astype(np.int64)
    if (whole != labels).any():
        return labels
    for row, label in large.items():
        if row < len(whole):  # and not of a last row that was left out
            whole[row] = label
    return whole


def _round(piece: Piece, state: np.ndarray, code: int, out: np.ndarray, large: dict[int, int]) -> int:
    """Let Python read the number the kernel stopped at, so that the kernel goes on behind it."""
    token = piece.buffer[state[TOKEN] : state[AT]]
    value = float(token)
    if not abs(value) <= float(np.finfo(out.dtype).max):
        return BAD_LABEL if code == ODD_LABEL else NOT_FINITE
    if code == ODD_LABEL:
        out[state[ROW]] = value
        large.pop(int(state[ROW]), None)  # of a line that was skipped
        if EXACT <= abs(value) < 2.0**63 and token.lstrip(b"+-").isdigit():
            large[int(state[ROW])] = int(token)
    elif abs(value) > LARGEST_VALUE:
        return LARGE
    else:
        out[state[NONZERO]] = value
        state[ONES] &= value == 1
        state[NONZERO] += 1
    return DONE


def _skip_line(piece: Piece, state: np.ndarray, offsets: np.ndarray) -> None:
    """Forget the row that is being read, and go on with the next line."""
    state[NONZERO] = offsets[state[ROW]]
    state[AT] = piece.buffer.find(b"\n", state[AT]) + 1
    state[LINE] += 1
    state[IN_ROW] = 0


def _complaint(path: str, piece: Piece, state: np.ndarray, code: int) -> DataError:
    token = int(state[TOKEN])
    line_start = piece.buffer.rfind(b"\n", 0, token) + 1
    words = piece.buffer[token : piece.buffer.find(b"\n", token)].split(None, 1)
    shown = bytes(words[0]).decode(errors="replace") if words else ""
    shown = shown if len(shown) <= 40 else shown[:40] + "..."
    return DataError(COMPLAINTS[code].format(token=shown), path, int(state[LINE]), token - line_start + 1)


@kernel
def _count(text):
    """How many non-zeros and rows there can be at most: colons and newlines."""
    colons, newlines = np.int64(0), np.int64(0)
    for p in range(np.uint64(len(text))):
        colons += np.int64(text[p] == 58)
        newlines += np.int64(text[p] == 10)
    return colons, newlines


@inner
def _blank(letter):
    return letter == 32 or letter == 9 or letter == 13


@inner
def _after_blanks(text, p):
    while _blank(text[p]):
        p += np.uint64(1)
    return p


@inner
def _line_end(text, p):
    while text[p] != 10:
        p += np.uint64(1)
    return p


@inner
def _ends(letter):
    """Whether a number may end before this letter: a blank, a newline or a comment."""
    return _blank(letter) or letter == 10 or letter == 35


@inner
def _names_no_number(text, p):
    """Whether a word is a way to write NaN or infinity."""
    letter = text[p + np.uint64(1)] if text[p] == 45 or text[p] == 43 else text[p]
    return letter == 110 or letter == 78 or letter == 105 or letter == 73


@kernel
def _parse_lines(text, state, base, limit, largest_value, offsets, indices, values, labels, lines):
    """Read on from where the state stands, until the text ends or Python is needed."""
    p, k = np.uint64(state[AT]), np.uint64(state[NONZERO])
    line, row, last, largest = state[LINE], state[ROW], state[INDEX], state[LARGEST]
    ones, in_row = state[ONES] != 0, state[IN_ROW] != 0
    code, token = DONE, p
    while p < np.uint64(len(text)):
        if not in_row:
            p = _after_blanks(text, p)
            if text[p] == 35:
                p = _line_end(text, p)
            if text[p] == 10:
                p += np.uint64(1)
                line += 1
                continue
            token = p
            value, p, what = number(text, p)
            if what == NOT_A_NUMBER or not _ends(text[p]):
                code = BAD_LABEL
                break
            in_row, last = True, np.int64(-1)
            if what == ODD or abs(value) >= EXACT:
                code = ODD_LABEL
                break
            labels[row] = value
        while True:
            p = _after_blanks(text, p)
            if text[p] == 10 or text[p] == 35:
                break
            token = p
            index = np.int64(0)
            digit = np.int64(text[p]) - 48
            while 0 <= digit < 10:
                index = index * 10 + digit
                p += np.uint64(1)
                digit = np.int64(text[p]) - 48
            if p == token or text[p] != 58:
                code = QID if text[token] == 113 else BAD_INDEX
                break
            index -= base
            if index > limit or p - token > np.uint64(18):
                p, code = token, WIDE
                break
            if index <= last:
                code = LOW if index < 0 else FALLING
                break
            p += np.uint64(1)
            first = p
            value, p, what = number(text, p)
            if what == NOT_A_NUMBER or not _ends(text[p]):
                token = first
                code = NOT_FINITE if _names_no_number(text, first) else BAD_VALUE
                break
            indices[k] = index
            last = index
            if what == ODD or abs(value) > largest_value:
                token, code = first, ODD_VALUE
                break
            values[k] = value
            ones = ones and value == 1.0
            k += np.uint64(1)
        if code != DONE:
            break
        p = _line_end(text, p) + np.uint64(1)
        lines[row] = line
        line += 1
        row += 1
        offsets[row] = k
        largest = max(largest, last)
        in_row = False
    state[AT], state[NONZERO], state[LINE], state[ROW] = p, k, line, row
    state[INDEX], state[LARGEST], state[TOKEN], state[ONES], state[IN_ROW] = last, largest, token, ones, in_row
    return code
