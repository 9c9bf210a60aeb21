"""Targets where rows have several labels: each label is a binary problem of its own, with it against without it.

The code of a row is its set of labels: rows share sets, so that codes are few (Reuters has some hundred), and at most
as many as rows. A table from sets to signs would have an entry for each pair of a set and a label; held is, for each
label, which sets have it, and signs are written out for the problem that is worked on. A label that all rows have, or
none, has nothing to learn from: it is predicted always, or never.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dotadd.errors import DataError
from dotadd.problem.columns import MOST_CODES, Columns, LabelTable, Targets
from dotadd.problem.folds import Folds
from dotadd.sources.base import Chunk
from dotadd.sources.label_sets import Labels


@dataclass(frozen=True)
class LabelTargets(Targets):
    """The labels in order; `cost_of_class` has C times the weights of rows without each label, and of those with it."""

    code_of: Mapping[Labels, int] = field(default_factory=dict)
    having: Sequence[np.ndarray] = ()
    """For each label, the codes of the sets that have it."""
    constant: Mapping[int, float] = field(default_factory=dict)
    """Labels by number that all rows have, or none of them, and the score that says so for any row."""

    @classmethod
    def of(
        cls, sets: Mapping[Labels, float], labels: np.ndarray, costs: np.ndarray, constant: Mapping[int, float]
    ) -> LabelTargets:
        """Of the sets that occur. `costs` has two rows, without and with each label."""
        number_of = {label: number for number, label in enumerate(labels.tolist())}
        having: list[list[int]] = [[] for _ in number_of]
        code_of = {one: code for code, one in enumerate(sets)}
        for one, code in code_of.items():
            for label in one:
                having[number_of[label]].append(code)
        codes = [np.array(some, np.uint32) for some in having]
        return cls(labels, costs, code_of=code_of, having=codes, constant=constant)

    @property
    def problems(self) -> list[int]:
        return [k for k in range(len(self.classes)) if k not in self.constant]

    @cached_property
    def _tables(self) -> tuple[list[LabelTable], list[np.ndarray | LabelTable]]:
        """Signs and costs by code; where weights of labels are 1, all problems have the same costs."""
        size, (without, having) = len(self.code_of), self.cost_of_class
        signs = [LabelTable(size, self.having[k], -1, 1) for k in self.problems]
        if (self.cost_of_class == without[0]).all():
            return signs, [np.full(size, without[0])] * len(signs)
        return signs, [LabelTable(size, self.having[k], float(without[k]), float(having[k])) for k in self.problems]

    def columns(self, chunk: Chunk, folds: Folds | None = None) -> Columns:
        assert folds is None  # those who make folds have refused several labels
        weight = None if chunk.weight is None else np.asarray(chunk.weight, np.float64)
        return Columns(self.codes(chunk), *self._tables, weight)

    def codes(self, chunk: Chunk) -> np.ndarray:
        """The number of each example's set of labels."""
        kind = np.uint16 if len(self.code_of) <= MOST_CODES else np.uint32
        sets = [] if chunk.y is None else chunk.y.tolist()
        try:
            return np.fromiter(map(self.code_of.__getitem__, sets), kind, len(sets))
        except KeyError:
            row = next(row for row, one in enumerate(sets) if one not in self.code_of)
            raise chunk.error(row, f"labels {sets[row]} were not there before: the data has changed") from None


def labels_in(sets: Mapping[Labels, float], width: int | None, path: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The labels in order, and the weight of the rows that have each; of indicators there are `width`, used or not."""
    totals: dict[object, float] = dict.fromkeys(range(width or 0), 0.0)
    for one, total in sets.items():
        for label in one:
            totals[label] = totals.get(label, 0.0) + total
    if not totals:
        raise DataError("no row has a label: there is nothing to learn", path)
    labels = np.unique(np.array(list(totals)))
    return labels, np.array([totals[label] for label in labels.tolist()])
