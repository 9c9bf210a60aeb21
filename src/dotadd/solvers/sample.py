"""Sample: the examples that take part in dual coordinate descent so far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dotadd.core.block import row_numbers
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers.run import shuffle
from dotadd.solvers.saving import Saved, State

FIRST = 5000  # examples of a sample; with some thousand, a pass costs little and w is already worth something


class Sample:
    """The examples that take part in training: few at first, then twice as many again and again, until all do.

    On large data most examples are classified well by a w that has seen only some of them, and a dual solver never has
    to touch these: their dual variables are 0 and stay 0. One DOT of all examples tells which they are. Where a DOT of
    many examples is much cheaper than visiting them one by one, it pays to find w on a sample, to double the sample,
    and to visit only the newcomers that the DOT finds on the wrong side of the margin.

    Examples outside have cost 0 in `problem`; `rows` is None for all.
    """

    def __init__(self, problem: Problem[InMemory], rng: np.ndarray, *, grows: bool) -> None:
        self.whole_problem = problem
        self.size = len(problem.examples)
        if grows and self.size > FIRST:
            self.order = row_numbers(np.ones(self.size, np.bool_))
            shuffle(self.order, rng)
            self.size = FIRST
        self._choose()

    def state(self) -> State:
        """What `restore` needs."""
        return {"size": self.size} if self.whole else {"size": self.size, "order": self.order}

    def restore(self, saved: Saved) -> None:
        self.size = saved["size"]
        if self.size < len(self.whole_problem.examples):
            self.order = saved["order"]
        self._choose()

    @property
    def whole(self) -> bool:
        return self.rows is None

    def grow(self) -> None:
        """Twice as many, or all if that leaves less than as many again."""
        self.size *= 2
        if 2 * self.size > len(self.order):
            self.size = len(self.order)
        self._choose()

    def _choose(self) -> None:
        self.problem = self.whole_problem
        self.rows: np.ndarray | None = None
        if self.size < len(self.problem.examples):
            self.rows = np.sort(self.order[: self.size]).astype(np.int64)
            self.problem = replace(self.problem, columns=self.problem.columns.within(self.rows))
        else:
            self.order = np.empty(0, np.uint32)  # of many millions of rows
