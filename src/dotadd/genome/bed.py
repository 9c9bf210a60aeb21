"""BED files: intervals of a genome, such as peaks and places to stay away from. They may be compressed.

A line is chromosome, start and end (from 0, without the end), and then as much as there is of name, score and strand.
One of ten columns is narrowPeak, whose last column says how far behind the start the summit is; -1 says that nobody
knows. Where there is no summit, the middle of the interval stands for it.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dotadd._util.compressed import decompressed, lines_of
from dotadd.errors import DataError
from dotadd.genome.files import FURTHEST

NARROW_PEAK = 10  # columns
_NOT_DATA = (b"#", b"track ", b"browser ")


@dataclass(frozen=True)
class Bed:
    """Intervals in the order of the file: the name ("" where there is none), whether on
    the minus strand, the number of the chromosome, start, end and summit, and the line."""

    path: str
    chromosomes: tuple[str, ...]
    names: list[str]
    minus: np.ndarray
    of: np.ndarray
    start: np.ndarray
    end: np.ndarray
    summit: np.ndarray
    lines: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def on(self, chromosomes: set[str]) -> np.ndarray:
        """The rows on chromosomes of these names."""
        wanted = np.array([name in chromosomes for name in self.chromosomes], np.bool_)
        return np.flatnonzero(wanted[self.of])

    def error(self, row: int, message: str) -> DataError:
        return DataError(message, self.path, int(self.lines[row]))


def _refused(error: DataError) -> None:
    raise error


def read_bed(path: str | os.PathLike[str], on_bad_row: Callable[[DataError], None] = _refused) -> Bed:
    """All intervals of a file. A line that cannot be used is an error, unless `on_bad_row` returns."""
    path = os.path.expanduser(os.fspath(path))
    chromosomes: dict[str, int] = {}
    of, start, end, summit, minus, lines = (array("q") for _ in range(6))
    names: list[str] = []
    with decompressed(path) as (_, file):
        for number, line in lines_of(file, path):
            if not line.strip() or line.startswith(_NOT_DATA):
                continue
            fields = [field.strip() for field in line.split(b"\t")] if b"\t" in line else line.split()
            try:
                places = _places(fields)
            except ValueError as error:
                on_bad_row(DataError(str(error), path, number))
                continue
            for column, value in zip((start, end, summit), places, strict=True):
                column.append(value)
            of.append(chromosomes.setdefault(fields[0].decode(errors="replace"), len(chromosomes)))
            minus.append(len(fields) > 5 and fields[5] == b"-")
            name = fields[3].decode(errors="replace") if len(fields) > 3 else ""
            names.append("" if name == "." else name)
            lines.append(number)
    columns = [np.array(column, np.int64) for column in (of, start, end, summit, lines)]
    return Bed(path, tuple(chromosomes), names, np.array(minus, np.bool_), *columns)


def _places(fields: list[bytes]) -> tuple[int, int, int]:
    """Start, end and summit of a line; ValueError says what is wrong with it."""
    if len(fields) < 3 or not fields[0]:
        raise ValueError(
            f"a line of BED has at least chromosome, start and end with tabs between them, and this one has "
            f"{len(fields)} column{'s' * (len(fields) != 1)}"
        )
    if not (fields[1].isdigit() and fields[2].isdigit()):
        first, last = (field.decode(errors="replace") for field in fields[1:3])
        raise ValueError(f"start and end have to be whole numbers of at least 0, and not {first!r} and {last!r}")
    start, end = int(fields[1][:20]), int(fields[2][:20])
    if end > FURTHEST:
        raise ValueError(f"the interval ends at {end}, beyond any sequence")
    if start >= end:
        raise ValueError(f"the interval begins at {start}, not before its end at {end}; BED counts from 0")
    if len(fields) == NARROW_PEAK and fields[9] != b"-1":
        if not fields[9].isdigit() or int(fields[9][:20]) >= end - start:
            offset = fields[9].decode(errors="replace")
            raise ValueError(
                f"column 10, the summit behind the start, is {offset!r}, and the interval has {end - start:,} letters; "
                "give a whole number below that, or -1 for the middle"
            )
        return start, end, start + int(fields[9])
    return start, end, (start + end) // 2


def merged(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same letters as intervals that are sorted and do not touch."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order]) if len(end) else end
    opens = np.ones(len(begin), np.bool_)
    opens[1:] = begin[1:] > end[:-1]
    last = np.append(opens[1:], True)[: len(begin)]
    return begin[opens], end[last]


def overlaps(begin: np.ndarray, end: np.ndarray, first: np.ndarray, length: int) -> np.ndarray:
    """Which of the windows share a letter with one of these merged intervals."""
    if not len(begin):
        return np.zeros(len(first), np.bool_)
    at = np.searchsorted(end, first, side="right")  # the first interval that ends behind the window's first letter
    return (at < len(begin)) & (begin[np.minimum(at, len(begin) - 1)] < first + length)
