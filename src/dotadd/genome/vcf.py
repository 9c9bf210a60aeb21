"""VCF: lines of variants, some thousand at a time, and the same lines with more INFO.

Text is read in pieces of whole lines, plain or compressed; a kernel finds the columns, so that Python never sees a
single line. What is added stands at the end of INFO, and every other byte stays as it was. pysam turns BCF into such
text and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.compressed import decompressed, largest_record, lines_of, reading, too_large
from dotadd.errors import DataError, require_extra

BYTES = 4 << 20  # of text that is worked on at a time
COLUMNS = 8  # that every line has: CHROM, POS, ID, REF, ALT, QUAL, FILTER and INFO
CHROM, POS, REF, ALT, INFO = 0, 1, 3, 4, 7
FIRST, STOP, NUMBER, ALLELES, LAST, FACTS = 8, 9, 10, 11, 12, 13
MOST = (1 << 31) - 1  # POS of VCF and BCF is an int32

_FEW, _NO_NUMBER, _NO_REF = 1, 2, 3  # what may be wrong with a line
_WRONG = {
    _FEW: f"a line of VCF has {COLUMNS} columns or more with tabs between them, and this one has fewer",
    _NO_NUMBER: f"POS has to be a whole number from 0 to {MOST:,}",
    _NO_REF: "REF and ALT are not to be empty",
}


@dataclass(frozen=True)
class Lines:
    """Some lines, and of each of them a row of `facts`: where each column from CHROM to INFO ends, one byte before the
    next begins; where the line begins (FIRST) and stops (STOP), newline and all; POS as a number (NUMBER), how many
    ALLELES there are in ALT, and the LAST letter that it speaks of, by REF or by END in INFO.

    `runs` are the numbers of the lines with which another chromosome begins.
    """

    text: np.ndarray
    facts: np.ndarray
    runs: np.ndarray

    def __len__(self) -> int:
        return len(self.facts)

    def name(self, line: int) -> bytes:
        """The chromosome."""
        return self.text[self.facts[line, FIRST] : self.facts[line, CHROM]].tobytes()


@contextmanager
def opened(path: str) -> Iterator[tuple[list[bytes], Iterator[tuple[float, Lines]]]]:
    """The lines of the header, and the others in pieces, each with the share of the file that has been read by then."""
    with reading(path), open(path, "rb") as raw:
        magic = raw.read(18)
        size = max(1, raw.seek(0, 2))
    if magic.startswith(b"BCF") or (path.lower().endswith(".bcf") and magic.startswith(b"\x1f\x8b")):
        with _opened_bcf(path) as (told, pieces):
            yield told, ((0.0, parsed(piece, path, None)) for piece in pieces)
        return
    with decompressed(path) as (raw, file):
        head: list[bytes] = []
        for number, line in lines_of(file, path):
            if not line.startswith(b"#") or (number == 1 and not line.startswith(b"##fileformat=VCF")):
                raise DataError(
                    "is no VCF file: expected lines that begin with ##fileformat=VCF and #CHROM", path, number
                )
            head.append(line if line.endswith(b"\n") else line + b"\n")
            if not line.startswith(b"##"):
                break
        else:
            raise DataError("is no VCF file: it has no line that begins with #CHROM", path)
        yield head, _pieces(raw, file, path, len(head), size)


def _pieces(raw: IO[bytes], file: IO[bytes], path: str, line: int, size: int) -> Iterator[tuple[float, Lines]]:
    rest, most = b"", largest_record()
    while True:
        with reading(path):
            more = file.read(BYTES)
        cut = more.rfind(b"\n") + 1 if more else 0
        if more and not cut:
            rest += more
            if len(rest) > most:
                raise too_large(most, path, line + 1)
            continue
        piece, rest = rest + more[:cut] if more else rest, more[cut:]
        if piece:
            lines = parsed(piece, path, line)
            line += len(lines)
            yield min(1.0, raw.tell() / size), lines
        if not more:
            return


@contextmanager
def _opened_bcf(path: str) -> Iterator[tuple[list[bytes], Iterator[bytes]]]:
    require_extra("pysam", f"{path}: BCF needs")
    import pysam

    with reading(path), pysam.VariantFile(path) as file:

        def pieces() -> Iterator[bytes]:
            waiting, length = [], 0
            try:
                for record in file:
                    waiting.append(str(record).encode())
                    length += len(waiting[-1])
                    if length >= BYTES:
                        yield b"".join(waiting)
                        waiting, length = [], 0
            except OSError as error:
                raise DataError(f"cannot be read: {error}", path) from None
            if waiting:
                yield b"".join(waiting)

        yield str(file.header).encode().splitlines(keepends=True), pieces()


def parsed(piece: bytes, path: str, before: int | None) -> Lines:
    """The columns of whole lines; `before` says how many lines of the file came earlier."""
    if not piece.endswith(b"\n"):
        piece += b"\n"
    text = plain(np.frombuffer(piece, np.uint8))
    count = int(np.count_nonzero(text == ord("\n")))
    facts, runs = np.empty((count, FACTS), np.int64), np.empty(count, np.int64)
    lines, many, wrong = _parse(text, facts, runs)
    if wrong:
        raise DataError(_WRONG[wrong], path, None if before is None else before + int(lines) + 1)
    return Lines(text, facts, runs[:many])


@kernel
def _parse(text, facts, runs):
    """How many lines there are and how often the chromosome changes; or the number of a line, and what is wrong."""
    at, many = np.int64(0), np.int64(0)
    for line in range(len(facts)):
        found = facts[line]
        found[FIRST] = at
        column = 0
        while text[at] != 10:
            if text[at] == 9 and column < COLUMNS:
                found[column] = at
                column += 1
            at += 1
        end = at - 1 if at > found[FIRST] and text[at - 1] == 13 else at
        at += 1
        found[STOP] = at
        if column == COLUMNS - 1:
            found[column] = end
        elif column < COLUMNS - 1:
            return np.int64(line), many, _FEW
        number = _number(text, found[CHROM] + 1, found[POS])
        if number < 0 or number > MOST:
            return np.int64(line), many, _NO_NUMBER
        reference = found[REF] - found[REF - 1] - 1
        if reference < 1 or found[ALT] - found[REF] < 2:
            return np.int64(line), many, _NO_REF
        furthest = _end_of(text, found[INFO - 1] + 1, found[INFO])
        found[NUMBER] = number
        found[LAST] = furthest if furthest >= number else number - 1 + reference
        commas = np.int64(1)
        for k in range(found[REF] + 1, found[ALT]):
            commas += text[k] == 44
        found[ALLELES] = commas
        before = facts[max(0, line - 1)]
        if line == 0 or not _same(text, before[FIRST], before[CHROM], found[FIRST], found[CHROM]):
            runs[many] = line
            many += 1
    return np.int64(len(facts)), many, 0


@inner
def _same(text, first, stop, other, end):
    if stop - first != end - other:
        return False
    for k in range(stop - first):  # noqa: SIM110 (Numba has no all over a generator)
        if text[first + k] != text[other + k]:
            return False
    return True


@inner
def _number(text, first, stop):
    """The whole number that is written there; -1 if it is none, or has more than 12 digits."""
    if stop <= first or stop - first > 12:
        return np.int64(-1)
    number = np.int64(0)
    for k in range(first, stop):
        if text[k] < 48 or text[k] > 57:
            return np.int64(-1)
        number = number * 10 + np.int64(text[k]) - 48
    return number


@inner
def _end_of(text, first, stop):
    """What INFO says by END=; -1 if it says nothing."""
    for k in range(first, stop - 4):
        starts = k == first or text[k - 1] == 59
        if starts and text[k] == 69 and text[k + 1] == 78 and text[k + 2] == 68 and text[k + 3] == 61:
            until = k + 4
            while until < stop and text[until] != 59:
                until += 1
            return _number(text, k + 4, until)
    return np.int64(-1)


@dataclass(frozen=True)
class Field:
    """An entry of INFO with a number for each ALT, or several of them behind its letters, with bars between them."""

    name: str
    decimals: tuple[int, ...]
    kind: str
    describes: str

    @property
    def barred(self) -> bool:
        return self.kind == "String"

    def header(self) -> bytes:
        return f'##INFO=<ID={self.name},Number=A,Type={self.kind},Description="{self.describes}">\n'.encode()


def annotated(lines: Lines, fields: list[Field], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The text with these entries, and where each line begins in it. `values` has a row for each ALT of each line, one
    after the other; NaN is written as missing."""
    names = [f"{field.name}=".encode() for field in fields]
    name_ends = np.cumsum([len(name) for name in names])
    decimals = np.array([one for field in fields for one in field.decimals], np.int64)
    widths = np.array([-len(field.decimals) if field.barred else 1 for field in fields], np.int64)
    letters = int((lines.facts[:, ALT] - lines.facts[:, REF]).sum()) * int((widths < 0).sum())
    room = len(lines.text) + letters + values.size * 24 + len(lines) * (int(name_ends[-1]) + 2 * len(fields))
    out, starts = np.empty(room + len(values) * 4 * len(fields), np.uint8), np.empty(len(lines) + 1, np.int64)
    told = plain(np.frombuffer(b"".join(names), np.uint8)), name_ends, widths, decimals
    _annotate(lines.text, lines.facts, *told, values, out, starts)
    return out[: starts[-1]], starts


@kernel
def _annotate(text, facts, names, name_ends, widths, decimals, values, out, starts):
    at, row = np.int64(0), np.int64(0)
    for line in range(len(facts)):
        starts[line] = at
        known = facts[line]
        begin, end = known[INFO - 1] + 1, known[INFO]
        empty = end == begin or (end == begin + 1 and text[begin] == 46)
        at = _copy(text, known[FIRST], begin if empty else end, out, at)
        column, name_begin = 0, np.int64(0)
        for f in range(len(widths)):
            if f > 0 or not empty:
                out[at] = 59
                at += 1
            at = _copy(names, name_begin, name_ends[f], out, at)
            name_begin = name_ends[f]
            letter = known[REF] + 1
            for a in range(known[ALLELES]):
                if a > 0:
                    out[at] = 44
                    at += 1
                if widths[f] < 0:
                    until = letter
                    while until < known[ALT] and text[until] != 44:
                        until += 1
                    at = _copy(text, letter, until, out, at)
                    letter = until + 1
                    out[at], out[at + 1] = 124, 46  # the gene that it lies in is not known
                    at += 2
                for c in range(abs(widths[f])):
                    if widths[f] < 0:
                        out[at] = 124
                        at += 1
                    at = _write(values[row + a, column + c], decimals[column + c], out, at)
            column += abs(widths[f])
        row += known[ALLELES]
        at = _copy(text, end, known[STOP], out, at)
    starts[len(facts)] = at


@inner
def _copy(text, first, stop, out, at):
    for k in range(np.uint64(stop - first)):
        out[np.uint64(at) + k] = text[np.uint64(first) + k]
    return at + stop - first


@inner
def _write(value, decimals, out, at):
    """A number with so many decimals at most, and a point for none."""
    if np.isnan(value):
        out[at] = 46
        return at + 1
    scale = np.int64(1)
    for _ in range(decimals):
        scale *= 10
    number = np.int64(np.rint(min(max(value, -1e9), 1e9) * scale))
    if number < 0:
        out[at] = 45
        at += 1
        number = -number
    while decimals > 0 and number % 10 == 0:
        number //= 10
        decimals -= 1
    digits, left = np.int64(1), number // 10
    while left > 0:
        digits, left = digits + 1, left // 10
    if decimals > 0:
        digits = max(digits, np.int64(decimals + 1)) + 1
    for k in range(digits - 1, -1, -1):
        if decimals > 0 and k == digits - 1 - decimals:
            out[at + k] = 46
        else:
            out[at + k] = 48 + number % 10
            number //= 10
    return at + digits
