"""Several labels a row: `y` is then an array of tuples, each the labels of a row in order, none twice; () where a row
has none.

They are given as lists, sets or tuples of labels, as an indicator matrix (dense or sparse: ones where a row has a
label, which are then called 0, 1, 2 and so on), as a column of lists in JSON lines, Arrow and Parquet, or as text with
a separator between labels. Rows with the same labels share one tuple.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, cast

import numpy as np

from dotadd.errors import DataError

Labels = tuple[Hashable, ...]
LISTS, DENSE, SPARSE = "lists", "indicators", "sparse indicators"
KINDS = (LISTS, DENSE, SPARSE)
"""How labels were given, and predictions are."""
ONE_EACH = (
    "there are several labels a row: LinearSVM (dotadd train) takes them on one machine, with a C that is given, and "
    "nothing else does"
)


class GivenLabels(NamedTuple):
    """Labels of all rows, how they were given, and for indicators how many labels there are."""

    y: np.ndarray
    kind: str
    width: int | None = None


def are_sets(y: np.ndarray | None) -> bool:
    """Whether rows have several labels, or may have."""
    return y is not None and y.dtype == np.object_ and y.ndim == 1 and len(y) > 0 and isinstance(y[0], tuple)


def given_sets(y: object) -> GivenLabels | None:
    """Labels that somebody has given, if they are several a row; None where a row has one."""
    if hasattr(y, "tocsr"):
        return _of_indicators(y, SPARSE)
    if isinstance(y, np.ndarray) and are_sets(y):
        return GivenLabels(y, LISTS)
    if getattr(y, "ndim", None) == 2:
        array = np.asarray(y)
        return None if array.shape[1] == 1 else _of_indicators(array, DENSE)
    if getattr(y, "ndim", 1) != 1 or isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        return None
    if isinstance(y, np.ndarray) and y.dtype != np.object_:
        return None
    rows = cast("Sequence[object]", y)
    if not isinstance(next(iter(rows), None), list | tuple | set | frozenset | np.ndarray):
        return None
    rows = list(rows)
    return _of_indicators(np.array(rows), DENSE) if _are_indicators(rows) else GivenLabels(_of_rows(rows), LISTS)


def _of_rows(rows: list[object]) -> np.ndarray:
    """Lists, sets or tuples of labels as sets of them."""
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple | set | frozenset | np.ndarray):
            raise DataError(f"row {number} of y is {type(row).__name__}, and no list of labels as the first one is")
    found = [_plain(row) for row in cast("list[Iterable[object]]", rows)]
    for number, row in enumerate(found):
        for label in row:
            if not isinstance(label, str | int) or label == "":
                shown = "empty" if label == "" else f"{label!r}, and no text and no whole number"
                raise DataError(f"row {number} of y: a label is {shown}")
    kinds = {isinstance(label, str) for label in chain.from_iterable(found)}
    if len(kinds) > 1:
        raise DataError("y has labels that are text and labels that are numbers; give one of them")
    return sets_of(found)


def _plain(row: Iterable[object]) -> list[Hashable]:
    """The labels of a row as Python has them."""
    labels = row.tolist() if isinstance(row, np.ndarray) else row
    plain = (label.item() if isinstance(label, np.generic) else label for label in labels)
    return [int(one) if isinstance(one, float) and one.is_integer() else cast(Hashable, one) for one in plain]


def _are_indicators(rows: Sequence[object]) -> bool:
    """Whether lists are all as long, and of 0 and 1: as scikit-learn does, they are taken for a matrix. As lists of
    labels, all rows would have the same ones."""
    lists = [row for row in rows if isinstance(row, list | tuple | np.ndarray)]
    if len(lists) < len(rows) or len({len(row) for row in lists}) > 1 or len(lists[0]) < 2:
        return False
    return all(not isinstance(label, str) and label in (0, 1) for row in lists for label in row)


def _of_indicators(given: object, kind: str) -> GivenLabels:
    from scipy.sparse import csr_array, issparse

    if not issparse(given):
        array = np.asarray(given)
        if array.dtype.kind not in "biuf":
            raise DataError(f"y must be one-dimensional, or a matrix of 0 and 1; its shape is {array.shape}")
        wrong = np.argwhere((array != 0) & (array != 1))
        if len(wrong):
            row, column = wrong[0].tolist()
            raise DataError(
                f"y must be one-dimensional, or a matrix of 0 and 1 with a column a label: its shape is {array.shape}, "
                f"and row {row}, column {column} is {array[row, column]:g}"
            )
        given = array
    table = csr_array(given)
    table.sum_duplicates()
    if table.nnz and (bad := np.flatnonzero((table.data != 0) & (table.data != 1))).size:
        row = int(np.searchsorted(table.indptr, bad[0], side="right")) - 1
        raise DataError(f"y must be a matrix of 0 and 1: row {row}, column {table.indices[bad[0]]} is another number")
    table.eliminate_zeros()
    names, indices = list(range(table.shape[1])), table.indices.tolist()  # one object for each label, whatever its rows
    rows = [[names[k] for k in indices[first:stop]] for first, stop in pairwise(table.indptr.tolist())]
    return GivenLabels(sets_of(rows), kind, table.shape[1])


def sets_of(rows: Iterable[Iterable[Hashable]]) -> np.ndarray:
    """The labels of each row as a tuple, in order; the same labels are the same tuple."""
    seen: dict[Labels, Labels] = {}
    found = []
    for row in rows:
        labels = tuple(row)
        if (known := seen.get(labels)) is None:
            ordered = tuple(sorted(cast("set[str]", set(labels))))
            known = seen[labels] = seen.setdefault(ordered, ordered)
        found.append(known)
    y = np.empty(len(found), np.object_)
    y[:] = found
    return y


def split_words(words: Iterable[str | tuple[str, ...]], separator: str | None) -> dict[object, tuple[str, ...]]:
    """The labels that each distinct cell names: a list has them, and of a text they stand between separators. Nothing
    stands in a cell without labels; a label of no letters, where others stand beside it, is told as it is."""
    found: dict[object, tuple[str, ...]] = {}
    for word in set(words):
        if isinstance(word, tuple):
            found[word] = tuple(label.strip() for label in word)
        elif separator is None:
            found[word] = (word.strip(),) if word.strip() else ()
        else:
            found[word] = tuple(label.strip() for label in word.split(separator)) if word.strip() else ()
    return found


def members(y: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[tuple[int, object]]]:
    """Sets of labels as rows of a sparse matrix: offsets and numbers among the classes; and of labels that are none of
    these, the row and the label."""
    number_of = {label: number for number, label in enumerate(classes.tolist())}
    offsets, numbers, strange = [0], [], []
    for row, labels in enumerate(y.tolist()):
        for label in labels:
            if (number := number_of.get(label)) is None:
                strange.append((row, label))
            else:
                numbers.append(number)
        offsets.append(len(numbers))
    return np.array(offsets, np.int64), np.array(numbers, np.int32), strange
