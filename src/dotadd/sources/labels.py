"""Labels written as words: numbers where they are numbers, else names, and the same choice through all of a pass."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Source
from dotadd.sources.text import pieces


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
            numbers = np.fromiter(map(number_of.__getitem__, words), np.float64, len(words))
            bad = np.flatnonzero(~np.isfinite(numbers)).tolist()
            written = [row for row in bad if words[row].strip()]
            if self.numeric is None and len(words):
                self.numeric = 10 * len(written) <= len(words)
            if self.numeric:
                return numbers, {row: _complaint(words[row]) for row in bad}
        name_of = {word: word.strip() for word in distinct}
        names = np.array([name_of[word] for word in words], np.str_)
        return names, {int(row): _complaint("") for row in np.flatnonzero(names == "")}


def attach_array(source: Source, chunk: Chunk, values: np.ndarray) -> Chunk:
    """The chunk with the labels of an array, numbers or text, without the rows whose label is missing."""
    if values.dtype.kind in "US":
        y = np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values
        missing = y == ""
    else:
        y = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
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


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def _complaint(word: str) -> str:
    return f"label {word!r} is not a number, unlike the others" if word.strip() else "the label is missing"
