"""Labels written as words: numbers where they are numbers, else names, and the same choice through all of a pass.

Where all numbers of a chunk are whole, they are int64, which tells all of them apart: from 2^53 on float64 has one
number for several, and training refuses such labels.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np

from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Source
from dotadd.sources.label_sets import sets_of, split_words
from dotadd.sources.sound import require_letters
from dotadd.sources.text import pieces

EXACT = 2.0**53  # from here on float64 takes whole numbers for their neighbours
LARGEST = 2**63  # and here int64 ends
LOOK = 1 << 20  # bytes of examples whose labels tell whether all of them are numbers
ROW = 8  # bytes that a row counts for beside its own, so that rows of no letters have an end


def settled(source: Source, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks with labels made of their words, without the rows whose label cannot be used.

    The first rows decide whether labels are numbers or names. How many these are depends on the rows alone, and not on
    how many come at a time: so small chunks are held back until there are enough.
    """
    held: list[Chunk] = []
    seen: list[str | tuple[str, ...]] = []
    room, numeric, separator = LOOK, True, separator_of(source)
    for chunk in chunks:
        held.append(chunk)
        if chunk.words is not None and room > 0:
            ends = np.cumsum(chunk.batch.row_bytes() + ROW)
            seen += chunk.words[: int(np.searchsorted(ends, room)) + 1]
            room -= int(ends[-1]) if len(ends) else 0
            if room > 0:
                continue
            numeric = _all_numbers(seen, separator)
        yield from (_labelled(source, one, numeric, separator) for one in held)
        held = []
    numeric = _all_numbers(seen, separator)
    yield from (_labelled(source, one, numeric, separator) for one in held)


def separator_of(source: Source) -> str | None:
    """What stands between the labels of a row, where somebody has said so."""
    return getattr(source, "separator", None)  # tables have it


def _several(words: Sequence[str | tuple[str, ...]], separator: str | None) -> bool:
    return separator is not None or (len(words) > 0 and isinstance(words[0], tuple))


def _all_numbers(words: Sequence[str | tuple[str, ...]], separator: str | None) -> bool:
    if not _several(words, separator):
        return are_numbers(cast("list[str]", words))
    labels = split_words(words, separator)
    return are_numbers([label for word in words for label in labels[word]])


def _labelled(source: Source, chunk: Chunk, numeric: bool, separator: str | None) -> Chunk:
    if chunk.words is None:
        return chunk
    several = _several(chunk.words, separator)
    y, complaints = (
        parsed_sets(chunk.words, separator, numeric) if several else parsed(cast("list[str]", chunk.words), numeric)
    )
    return without(source, dataclasses.replace(chunk, y=y, words=None), complaints)


def parsed_sets(
    words: Sequence[str | tuple[str, ...]], separator: str | None, numeric: bool
) -> tuple[np.ndarray, dict[int, str]]:
    """The labels of each row, and a complaint for each that has some that cannot be used."""
    found: dict[object, tuple[str, ...] | tuple[int, ...]] = {}
    bad: dict[object, str] = {}
    for word, labels in split_words(words, separator).items():
        numbers = [_number(label) for label in labels] if numeric else []
        wrong = [label for label, number in zip(labels, numbers, strict=False) if not isinstance(number, int)]
        if "" in labels:
            shown = repr(word if len(str(word)) <= 40 else str(word)[:40] + "...")
            bad[word] = f"a label of {shown} is empty"
        elif wrong:
            bad[word] = f"label {wrong[0][:40]!r} is no whole number, unlike the others"
        found[word] = () if word in bad else tuple(number for number in numbers if isinstance(number, int)) or labels
    complaints = {row: bad[word] for row, word in enumerate(words) if word in bad} if bad else {}
    return sets_of(found[word] for word in words), complaints


def are_numbers(words: Sequence[str]) -> bool:
    """Whether nine of ten are numbers, those that are missing not counted."""
    names = {word for word in set(words) if word.strip() and _number(word) is None}
    return 10 * sum(word in names for word in words) <= len(words) if names else True


def parsed(words: Sequence[str], numeric: bool) -> tuple[np.ndarray, dict[int, str]]:
    """Words as numbers or as names, and a complaint for each row that has none that can be used."""
    distinct = set(words)  # few, so that each is looked at once
    if not numeric:
        name_of = {word: word.strip() for word in distinct}
        names = np.array([name_of[word] for word in words], np.str_)
        return names, {int(row): _complaint("") for row in np.flatnonzero(names == "")}
    number_of = {word: _number(word) for word in distinct}
    bad = {word for word, number in number_of.items() if number is None}
    fractions = any(isinstance(number, float) for number in number_of.values())
    sound = {word: 0 if number is None else number for word, number in number_of.items()}
    numbers = np.fromiter(map(sound.__getitem__, words), np.float64 if fractions else np.int64, len(words))
    return numbers, {row: _complaint(word) for row, word in enumerate(words) if word in bad} if bad else {}


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


def label_table(path: str, split: Callable[[str], list[str]] | None = None) -> dict[str, str]:
    """Names and labels out of a second file, a name and its label on each line. `split` makes words of a line; without
    it, they stand between tabs, or else between blanks."""
    table: dict[str, str] = {}
    for piece in pieces(path, 1 << 24):
        for line, text in enumerate(bytes(piece.letters).decode(errors="replace").split("\n"), piece.line):
            if not text.strip():
                continue
            text = text.rstrip("\r")
            words = split(text) if split is not None else text.split("\t" if "\t" in text else None)
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
