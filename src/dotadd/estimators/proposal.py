"""A feature map for a table of which nobody has said what to make of it.

The first rows tell what each column is: numbers, dates, values that come again and again, sequences of DNA, text. What
is chosen is an expression that can be read, edited and given as `phi` (`--features`); columns that are left out are
told, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dotadd.data.batches import Strings
from dotadd.data.table import Cells, Table
from dotadd.features.dates import Date
from dotadd.sources import open as open_source
from dotadd.sources import paths_of
from dotadd.sources.base import Source
from dotadd.sources.memory import first_rows
from dotadd.sources.table import NOTHING, Layout, is_nested

ROWS = 1000  # that are looked at
BYTES = 1 << 20  # of them
SOME = 20  # rows, before all values being different says that they are names and not values
WORDS = 3.0  # in a cell, on average: then it is text
LETTERS = 12.0  # in a cell of no blanks, on average: then parts of it may come again, as in an address
OFTEN = 0.5  # of the rows at most have a value of their own where values come again
ID = re.compile(r"(.*[_\W])?(id|key|index|row|nr|no|uuid|guid)", re.IGNORECASE)
FEW = 100  # values of a column: then each has a slot of its own, and otherwise they are hashed
DNA = re.compile(rb"[ACGTNacgtn]{20,}")


@dataclass(frozen=True)
class Proposal:
    """The expression, and of each column that it does not read, why."""

    expression: str
    left_out: dict[str, str]

    def __str__(self) -> str:
        told = f"features: {self.expression}"
        if self.left_out:
            told += "; left out: " + ", ".join(f"{name!r} ({why})" for name, why in self.left_out.items())
        return told


def propose(x: object) -> Proposal | None:
    """A map for what `dotadd.open` makes of x; None if it is no table, or one of numbers alone, which need none."""
    source = _with_cells(x)
    if source is None:
        return None
    chunks = iter(source.chunks(BYTES))
    sample = next(chunks).batch
    assert isinstance(sample, Table)
    rows = np.arange(min(ROWS, len(sample)))
    all_seen = len(sample) < ROWS and next(chunks, None) is None
    kinds: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    for name in sample.names:
        strings = sample.strings(name).take(rows)
        kind, why = _kind_of(name, [strings[row].strip() for row in rows.tolist()], all_seen)
        if why:
            left_out[name] = why
        else:
            kinds.setdefault(kind, []).append(name)
    if set(kinds) <= {"number"}:
        return None
    parts = [make(kinds[kind]) for kind, make in PARTS.items() if kind in kinds]
    return Proposal(" + ".join(parts), left_out)


def _with_cells(x: object) -> Source | None:
    """The first rows, or all of them, with every column but the label as text."""
    head = first_rows(x, ROWS)
    if head is not None:
        if any(is_nested(field.type) for field in head.schema) or not len(head):
            return None
        return open_source(head, like=Layout.of_cells(dict.fromkeys(head.column_names, "text")))
    if not isinstance(x, Source) and paths_of(x) is None:
        return None
    source = open_source(x)
    names = source.candidates()
    if not names or len(set(names)) < len(names):
        return None
    return source.asked(Layout.of_cells(dict.fromkeys(names, "text")))


def _kind_of(name: str, cells: Sequence[bytes], all_seen: bool) -> tuple[str, str]:
    """What a column holds, or why it is better left out; what is always the same may change where there is more."""
    written = [cell for cell in cells if cell.decode(errors="replace") not in NOTHING]
    distinct = set(written)
    if not written:
        return ("", "empty") if all_seen else ("categories", "")
    if all_seen and len(distinct) == 1 and len(written) == len(cells):
        return "", "always the same"
    if all(map(_is_number, distinct)):
        return ("", "a number for each row") if _counts_rows(name, written) else ("number", "")
    dates = Table.from_columns({name: Cells(strings=Strings.from_list(written))})
    if Date(name).check(dates) is None:
        return "date", ""
    if all(DNA.fullmatch(cell) for cell in distinct):
        return "dna", ""
    if sum(len(cell.split()) for cell in written) >= WORDS * len(written):
        return "text", ""
    if len(distinct) <= max(2.0, OFTEN * len(written)) or len(written) < SOME:
        return ("category" if len(distinct) <= FEW else "categories"), ""
    if len(distinct) == len(written) and ID.fullmatch(name):
        return "", "a name for each row"
    if sum(map(len, written)) >= LETTERS * len(written) or any(b" " in cell for cell in distinct):
        return "letters", ""
    return "", "a name for each row"


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return b"_" not in cell  # which Python allows between digits


def _counts_rows(name: str, cells: Sequence[bytes]) -> bool:
    """Whether numbers only tell rows apart: whole, each once, and one after the other or called an id."""
    values = np.array([float(cell) for cell in cells])
    if len(values) < SOME or not (values == np.floor(values)).all() or len(np.unique(values)) < len(values):
        return False
    return ID.fullmatch(name) is not None or bool((np.diff(values) == 1).all())


def _listed(what: str, names: Sequence[str]) -> str:
    return f"{what}({', '.join(map(repr, names))})"


def _columns(names: Sequence[str], phi: str) -> str:
    return " + ".join(f"Column({name!r}, {phi})" for name in names)


PARTS: dict[str, Callable[[list[str]], str]] = {
    "text": lambda names: _columns(names, "WordNGrams((1, 2)).log().tfidf()"),
    "letters": lambda names: _columns(names, "NGrams((3, 5)).tfidf()"),
    "dna": lambda names: _columns(names, "Spectrum(6).normalized()"),
    "number": lambda names: _listed("Number", names) + '.scaled("std")',
    "category": lambda names: _listed("Category", names) + ".indexed()",
    "categories": lambda names: _listed("Category", names),
    "date": lambda names: _listed("Date", names),
}  # by what columns hold, in the order in which an expression names them
