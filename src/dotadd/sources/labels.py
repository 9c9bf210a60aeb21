"""Labels written as words: numbers where they are numbers, else names, and the same choice through all of a pass.

Where all numbers of a chunk are whole, they are int64, which tells all of them apart: from 2^53 on float64 has one
number for several, and training refuses such labels.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Source
from dotadd.sources.sound import require_letters
from dotadd.sources.text import pieces

EXACT = 2.0**53  # from here on float64 takes whole numbers for their neighbours
LARGEST = 2**63  # and here int64 ends


class Labels:
    """Decides with the first words it sees whether labels are numbers (nine of ten have to be) or names."""

    def __init__(self) -> None:
        self.numeric: bool | None = None

    def attach(
        self, source: Source, chunk: Chunk, words: Sequence[str], complaints: dict[int, str] | None = None
    ) -> Chunk:
        """The chunk with these words as its labels, without the rows whose label cannot be used.

        `complaints` are about rows that are known to have no word that can be used.
        """
        y, found = self.parse(words)
        found |= complaints or {}
        return without(source, dataclasses.replace(chunk, y=y), found)

    def parse(self, words: Sequence[str]) -> tuple[np.ndarray, dict[int, str]]:
        """The labels, and a complaint for each row that has none that can be used."""
        distinct = set(words)  # few, so that each is looked at once
        if self.numeric is not False:
            number_of = {word: _number(word) for word in distinct}
            bad_words = {word for word, number in number_of.items() if number is None}
            bad = [row for row, word in enumerate(words) if word in bad_words] if bad_words else []
            written = [row for row in bad if words[row].strip()]
            if self.numeric is None and len(words):
                self.numeric = 10 * len(written) <= len(words)
            if self.numeric:
                fractions = any(isinstance(number, float) for number in number_of.values())
                sound = {word: 0 if number is None else number for word, number in number_of.items()}
                found = map(sound.__getitem__, words)
                numbers = np.fromiter(found, np.float64 if fractions else np.int64, len(words))
                return numbers, {row: _complaint(words[row]) for row in bad}
        name_of = {word: word.strip() for word in distinct}
        names = np.array([name_of[word] for word in words], np.str_)
        return names, {int(row): _complaint("") for row in np.flatnonzero(names == "")}


def exact_labels(y: np.ndarray) -> np.ndarray:
    """Numbers of any type as int64, or as float64 where they have fractions or do not fit."""
    if y.dtype.kind == "f":
        return y.astype(np.float64, copy=False)
    fits = y.dtype != np.uint64 or not len(y) or y.max() < LARGEST
    return y.astype(np.int64 if fits else np.float64, copy=False)


def attach_array(source: Source, chunk: Chunk, values: np.ndarray) -> Chunk:
    """The chunk with the labels of an array, numbers or text, without the rows whose label is missing."""
    if values.dtype.kind in "US":
        require_letters(values)
        y = np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values
        missing = y == ""
    else:
        y = exact_labels(values)
        missing = ~np.isfinite(y)
    found = {row: _complaint("") for row in np.flatnonzero(missing).tolist()}
    return without(source, dataclasses.replace(chunk, y=y), found)


def label_table(path: str, split: Callable[[str], list[str]]) -> dict[str, str]:
    """Names and labels out of a second file, a name and its label on each line; `split` makes words of a line."""
    table: dict[str, str] = {}
    for piece in pieces(path, 1 << 24):
        for line, text in enumerate(bytes(piece.letters).decode(errors="replace").split("\n"), piece.line):
            if not text.strip():
                continue
            words = split(text.rstrip("\r"))
            if len(words) != 2:
                raise DataError("expected a name, a tab and a label", path, line)
            if table.setdefault(words[0].strip(), words[1].strip()) != words[1].strip():
                raise DataError(f"{words[0]!r} has another label further up", path, line)
    return table


def without(source: Source, chunk: Chunk, found: dict[int, str]) -> Chunk:
    """The chunk without the rows that there are complaints about."""
    if not found:
        return chunk
    for row in sorted(found):
        source.bad_row(chunk.error(row, found[row]))
    return chunk.take(np.array([row for row in range(len(chunk)) if row not in found], np.int64))


def _number(word: str) -> int | float | None:
    """A whole number as an integer if int64 holds it; None if the word is no number."""
    try:
        whole = int(word)
    except ValueError:
        try:
            value = float(word)
        except ValueError:
            return None
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    if -LARGEST <= whole < LARGEST:
        return whole
    try:
        return float(whole)
    except OverflowError:
        return None


def _complaint(word: str) -> str:
    shown = word if len(word) <= 40 else word[:40] + "..."
    return f"label {shown!r} is not a number, unlike the others" if word.strip() else "the label is missing"
