"""Which columns of a table are the examples, the label and the weight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dotadd.errors import DataError, UnusedColumnsWarning


@dataclass(frozen=True)
class Layout:
    """The columns that are read. `dense` says that the features are scalar columns, set side by side; otherwise the
    one feature column holds a whole example in each cell."""

    features: list[str]
    dense: bool
    label: str | None
    weight: str | None
    header: bool = True
    """Whether the columns have names; those of a file without a header are their numbers, from 0."""

    @property
    def columns(self) -> list[str]:
        """Everything that has to be read, each column once."""
        beside = [name for name in (self.label, self.weight) if name is not None]
        return list(dict.fromkeys([*self.features, *beside]))

    def to_dict(self) -> dict[str, object]:
        """What a model file keeps; weights of examples mean nothing to a model."""
        return {"features": self.features, "dense": self.dense, "label": self.label, "header": self.header}

    @classmethod
    def from_dict(cls, record: Any) -> Layout:
        """From `to_dict`; TypeError or KeyError where it is damaged."""
        features, label = record["features"], record["label"]
        if not isinstance(features, list) or not all(isinstance(name, str) for name in [*features, label or ""]):
            raise TypeError("names of columns are not text")
        return cls(features, bool(record["dense"]), label, None, bool(record["header"]))


def choose(
    names: Sequence[str],
    numeric: Sequence[str],
    whole: Sequence[str],
    *,
    column: str | None,
    label: str | None,
    weight: str | None,
    path: str | None,
    usual: str | None = None,
    like: Layout | None = None,
    guessed: bool = False,
) -> Layout:
    """The layout of a table with these columns, of which some are numbers and some hold whole examples (text, lists).

    Without a `column`, all numbers but the label and the weight are features; where there are none, the one column
    that holds whole examples is read. `usual` is the label where none is asked for. With `like`, the columns of an
    earlier table are read, in the order that they have there, and its label if it is here. `guessed` says that only a
    look at some rows tells which columns are numbers: then an earlier table knows better.
    """
    for asked in (column, label, weight):
        if asked is not None and asked not in names:
            raise DataError(f"there is no column {asked!r}; the columns are {listed(names)}", path)
    if like is not None and like.header and column is None:
        require_names(like.features, names, path, hint="" if like.dense else "; name another with column= (--column)")
        fitting = set(names if guessed else numeric if like.dense else whole)
        for name in like.features:
            if name not in fitting:
                kind = "numbers" if like.dense else "text or lists"
                raise DataError(f"column {name!r} holds no {kind}, unlike where the model was trained", path)
        return Layout(like.features, like.dense, like.label if label is None and like.label in names else label, weight)
    if label is None and usual in names:
        label = usual
    if column is not None:
        if column not in numeric and column not in whole:
            raise DataError(f"column {column!r} holds neither numbers nor text nor lists of numbers", path)
        dense = like.dense if guessed and like is not None else column in numeric
        return Layout([column], dense, label, weight)
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


def require_names(wanted: Sequence[str], names: Sequence[str], path: str | None, hint: str = "") -> None:
    """Refuse a table that lacks columns that a model was trained on."""
    missing = list(dict.fromkeys(wanted).keys() - set(names))
    if missing:
        missing.sort(key=list(wanted).index)
        several = "s" if len(missing) > 1 else ""
        raise DataError(
            f"lacks the column{several} {listed(missing)} that the model was trained on; "
            f"the columns are {listed(names)}{hint}",
            path,
        )


def listed(names: Sequence[str], most: int = 20) -> str:
    """Column names for a message, cut off when there are very many, or when one is very long."""
    shown = ", ".join(repr(name if len(name) <= 60 else name[:60] + "...") for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
