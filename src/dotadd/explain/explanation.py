"""Explanation: why rows have the scores that they have, as an object to look at, to draw and to write down."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dotadd._util.atomic import replacing
from dotadd.errors import DotaddError, as_written
from dotadd.explain.contributions import Contributions
from dotadd.features.alphabet import FOREIGN, Alphabet

SHOWN = 20  # rows of an explanation in a notebook


class ExplainedFeature(NamedTuple):
    """A feature of a row: what it is called, its value in the row, its weight, and their product, what it adds to the
    score. `spans` are the bytes that it was made of each time it occurs, `column` the column of the table."""

    name: str
    slot: int
    value: float
    weight: float
    contribution: float
    spans: tuple[tuple[int, int], ...]
    column: str


class ExplainedText(NamedTuple):
    """A string of a row, and what each of its bytes adds to the score."""

    text: bytes
    adds: np.ndarray


def _none() -> tuple[Contributions, list[ExplainedFeature]]:
    """Of a kernel machine."""
    return Contributions(*(np.empty(0, kind) for kind in (np.int64, np.float64, np.float64, np.int64))), []


@dataclass(frozen=True)
class ExplainedRow:
    """Why a row has its score.

    row: its number, from 0; name: what it is called, where it has a name.
    label: the class whose score is explained. score, intercept: of this class.
    texts: its strings by column, or under "" where the row is a string, and what their letters add.
    hypothetical: (letters of the alphabet, positions), what each letter would add; for sequences, where it is known.
    changes: likewise, by how much the score changes with this letter; from in-silico mutagenesis.
    columns: what each column of a table adds. elsewhere: what is added by features that nobody can place.
    features: those that add most, by name. slots, values, contributions: of all features that the row has. They are
    worked out when they are asked for.
    """

    row: int
    name: str
    label: object
    score: float
    intercept: float
    texts: dict[str, ExplainedText]
    columns: dict[str, float]
    elsewhere: float
    hypothetical: np.ndarray | None = None
    changes: np.ndarray | None = None
    working: Callable[[], tuple[Contributions, list[ExplainedFeature]]] = field(default=_none, repr=False)

    @property
    def title(self) -> str:
        return self.name or f"row {self.row + 1}"

    @property
    def letters(self) -> np.ndarray | None:
        """What each byte of a row that is a string adds to the score."""
        found = self.texts.get("")
        return None if found is None else found.adds

    @cached_property
    def _found(self) -> tuple[Contributions, list[ExplainedFeature]]:
        return self.working()

    @property
    def features(self) -> list[ExplainedFeature]:
        return self._found[1]

    @property
    def slots(self) -> np.ndarray:
        return self._found[0].slots

    @property
    def values(self) -> np.ndarray:
        return self._found[0].values

    @property
    def contributions(self) -> np.ndarray:
        return self._found[0].adds

    def _repr_html_(self) -> str:
        from dotadd.explain.html import fragment

        return fragment([self], None)


@dataclass(frozen=True)
class Explanation:
    """Rows, each with its score and why it has it; `alphabet` is that of sequences."""

    rows: list[ExplainedRow]
    method: str
    alphabet: Alphabet | None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ExplainedRow]:
        return iter(self.rows)

    def __getitem__(self, row: int) -> ExplainedRow:
        return self.rows[row]

    def __repr__(self) -> str:
        return f"<explanation of {len(self):,} rows by {self.method}>"

    def _repr_html_(self) -> str:
        from dotadd.explain.html import fragment

        return fragment(self.rows[:SHOWN], self.alphabet, len(self))

    def to_html(self, path: str | os.PathLike[str], title: str = "Explanation") -> None:
        """Write a page that needs nothing but itself."""
        from dotadd.explain.html import page

        with replacing(path) as temporary:
            temporary.write_text(page(self.rows, self.alphabet, title), encoding="utf-8")

    def logo(self, row: int = 0, path: str | os.PathLike[str] | None = None) -> str:
        """The sequence of a row as a logo, in SVG, letters as high as what they add; also written to a file."""
        from dotadd.explain.logo import logo

        found = self.rows[row]
        if found.letters is None:
            raise DotaddError("a logo is drawn of sequences, and these rows have none")
        picture = logo(found.texts[""].text.decode("latin-1"), found.letters, found.title)
        if path is not None:
            with replacing(path) as temporary:
                temporary.write_text(picture, encoding="utf-8")
        return picture

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """What letters add, and which letters there are, both (rows, letters of the alphabet, positions) as TF-MoDISco
        reads them; zeros behind rows that are shorter than others.

        The first array holds what each letter would add where that is known, as it is for gapped k-mers and from
        in-silico mutagenesis; otherwise it holds what the letters of the row add.
        """
        alphabet = self.alphabet
        if alphabet is None:
            raise DotaddError("arrays of letters and positions are for sequences over an alphabet")
        longest = max((len(row.texts[""].text) for row in self.rows), default=0)
        adds = np.zeros((len(self), alphabet.size, longest), np.float32)
        present = np.zeros((len(self), alphabet.size, longest), np.int8)
        for k, row in enumerate(self.rows):
            text, letters = row.texts[""]
            codes = alphabet.codes[np.frombuffer(text, np.uint8)]
            at = np.flatnonzero(codes != FOREIGN)
            present[k, codes[at], at] = 1
            if row.hypothetical is not None:
                adds[k, :, : len(text)] = row.hypothetical
            else:
                adds[k, codes[at], at] = letters[at]
        return adds, present

    def to_dicts(self) -> Iterator[dict[str, object]]:
        """Plain data for JSON; positions count from 0."""
        for row in self.rows:
            known: dict[str, object] = {"row": row.row + 1}
            known |= {"name": row.name} if row.name else {}
            known |= {"class": as_written(row.label), "score": row.score, "intercept": row.intercept}
            known |= {"columns": row.columns} if row.columns else {}
            known |= {"elsewhere": row.elsewhere} if row.elsewhere else {}
            for column, (text, adds) in row.texts.items():
                beside = {"column": column} if column else {}
                written = text.decode("utf-8", "backslashreplace")
                known.setdefault("texts", [])
                found = known["texts"]
                assert isinstance(found, list)
                found.append(beside | {"text": written, "adds": np.round(adds, 9).tolist()})
            if row.changes is not None and self.alphabet is not None:
                pairs = zip(self.alphabet.letters, row.changes.tolist(), strict=True)
                known["changes"] = dict(pairs)
            known["features"] = [
                {name: value for name, value in feature._asdict().items() if value not in ("", ())}
                for feature in row.features
            ]
            yield known
