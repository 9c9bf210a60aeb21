"""Which columns of a table are the examples, the label and the weight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from dotadd.errors import DataError, UnusedColumnsWarning


@dataclass(frozen=True)
class Layout:
    """The columns that are read. `dense` says that the features are scalar columns, set side by side; otherwise the
    one feature column holds a whole example in each cell."""

    features: list[str]
    dense: bool
    label: str | None
    weight: str | None

    @property
    def columns(self) -> list[str]:
        """Everything that has to be read, each column once."""
        beside = [name for name in (self.label, self.weight) if name is not None]
        return list(dict.fromkeys([*self.features, *beside]))


def choose(
    names: Sequence[str],
    numeric: Sequence[str],
    whole: Sequence[str],
    *,
    column: str | None,
    label: str | None,
    weight: str | None,
    path: str | None,
) -> Layout:
    """The layout of a table with these columns, of which some are numbers and some hold whole examples (text, lists).

    Without a `column`, all numbers but the label and the weight are features; where there are none, the one column
    that holds whole examples is read.
    """
    for asked in (column, label, weight):
        if asked is not None and asked not in names:
            raise DataError(f"there is no column {asked!r}; the columns are {listed(names)}", path)
    if column is not None:
        if column not in numeric and column not in whole:
            raise DataError(f"column {column!r} holds neither numbers nor text nor lists of numbers", path)
        return Layout([column], column in numeric, label, weight)
    features = [name for name in numeric if name not in (label, weight)]
    candidates = [name for name in whole if name not in (label, weight)]
    if features:
        if candidates:
            message = f"only columns of numbers are read; left out: {listed(candidates)} (name one to read it instead)"
            warnings.warn(message if path is None else f"{path}: {message}", UnusedColumnsWarning, stacklevel=2)
        return Layout(features, True, label, weight)
    if len(candidates) == 1:
        return Layout(candidates, False, label, weight)
    raise DataError(f"which column holds the examples? Name it with column=; the columns are {listed(names)}", path)


def listed(names: Sequence[str], most: int = 20) -> str:
    """Column names for a message, cut off when there are very many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
