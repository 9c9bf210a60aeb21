"""Sample: the examples that take part in dual coordinate descent so far, and those among them that are visited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dotadd.core.block import row_type
from dotadd.problem.examples import InMemory, Seen
from dotadd.problem.problem import Problem
from dotadd.solvers.run import shuffle
from dotadd.solvers.saving import Saved, State
from dotadd.solvers.slow_intercept import step_of

FIRST = 5000  # examples of a sample; with some thousand, a pass costs little and w is already worth something
LOOKED_AT = 1 << 20  # rows whose margins are computed at a time
PREPARED = 1 << 24  # rows for which what can be computed once, such as their lengths, is kept


class Sample:
    """The examples that take part in training: few at first, then twice as many again and again, until all do.

    On large data most examples are classified well by a w that has seen only some of them, and a dual solver never has
    to touch these: their dual variables are 0 and stay 0. One DOT of all examples tells which they are. Where a DOT of
    many examples is much cheaper than visiting them one by one, it pays to find w on a sample, to double the sample,
    and to visit only the newcomers that the DOT finds on the wrong side of the margin.

    `problem` is over the examples that are visited, `rows` their numbers among all, in order. All that coordinate
    descent keeps for an example it keeps for these alone, so that a hundred million others take no room but their own.
    Where a sample does not grow, all examples are visited, and `rows` is None. `norms` are |phi(z_i)|^2 + step of those
    that are visited, step being by how much the intercept moves with an alpha.
    """

    rows: np.ndarray | None

    def __init__(self, problem: Problem[InMemory], rng: np.ndarray, *, grows: bool) -> None:
        self.whole_problem, self.problem = problem, problem
        self.size, self.rows = len(problem.examples), None
        grows = grows and self.size > FIRST
        self.order: np.ndarray = np.empty(0, row_type(self.size))
        self.norms = self._some_norms() if grows else problem.examples.squared_norms()
        self.step = step_of(problem.intercept, self.norms, exact=problem.examples.bulk)
        self.norms += self.step
        if grows:
            order = np.arange(self.size, dtype=self.order.dtype)
            shuffle(order, rng)
            order.resize(self.size // 2)  # no sample is larger, but the whole
            self.order = order
            self._take(FIRST)
            self._visit(self.order[:FIRST].copy())

    def _some_norms(self) -> np.ndarray:
        """|phi(z_i)|^2 of examples that are spread evenly over all."""
        examples = self.whole_problem.examples
        squared = examples.take(np.linspace(0, self.size - 1, FIRST).astype(np.int64)).squared_norms()
        if examples.on_norms is not None:
            examples.on_norms(squared)
        return squared

    def state(self) -> State:
        """What `restore` needs."""
        if self.rows is None:
            return {}
        return {"size": self.size, "order": self.order, "rows": self.rows}

    def restore(self, saved: Saved) -> None:
        if self.rows is None:
            return
        self.size, order, rows = saved["size"], saved.get("order"), saved.get("rows")
        self.order = self.order[:0].copy() if order is None else order
        if rows is None:  # earlier versions had variables of all examples
            rows = np.arange(len(self.whole_problem.examples), dtype=self.order.dtype)
        self._visit(rows)

    @property
    def whole(self) -> bool:
        """Whether all examples take part."""
        return self.size == len(self.whole_problem.examples)

    def grow(self) -> None:
        """Twice as many, or all if that leaves less than as many again."""
        if 4 * self.size > len(self.whole_problem.examples):
            self.all()
        else:
            self._take(2 * self.size)

    def _take(self, size: int) -> None:
        """So many take part, the first ones of `order`, which stand there in order from now on."""
        self.size = size
        self.order[:size].sort()

    def all(self) -> None:
        """Let all examples take part."""
        self.size, self.order = len(self.whole_problem.examples), self.order[:0].copy()

    def pieces(self) -> Iterator[np.ndarray]:
        """The numbers of the examples that take part, in order, some at a time."""
        for first in range(0, self.size, LOOKED_AT):
            stop = min(first + LOOKED_AT, self.size)
            yield np.arange(first, stop, dtype=self.order.dtype) if self.whole else self.order[first:stop]

    def see(self, ws: list[np.ndarray], piece: np.ndarray) -> Seen:
        """What a proof asks of the examples of a piece."""
        examples = self.whole_problem.examples
        if len(examples) <= PREPARED:
            return Seen(examples.dot(ws, piece), examples.squared_norms(piece), examples.longest)
        return examples.take(piece).see(ws)

    def among(self, piece: np.ndarray) -> tuple[slice, np.ndarray]:
        """Which of the visited examples are in this piece, and where in it they are."""
        assert self.rows is not None
        mine = slice(*np.searchsorted(self.rows, [piece[0], piece[-1] + 1]).tolist())
        return mine, np.searchsorted(piece, self.rows[mine])

    def visit(self, stay: np.ndarray, more: np.ndarray) -> np.ndarray:
        """Visit those that have a flag in `stay` from now on, and `more`; returns where the former are now."""
        assert self.rows is not None
        old = self.rows[stay]
        self._visit(np.sort(np.concatenate([old, more])))
        return np.searchsorted(self.rows, old)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Where these are among the visited examples."""
        assert self.rows is not None
        return np.searchsorted(self.rows, rows)

    def _visit(self, rows: np.ndarray) -> None:
        self.rows = rows
        problem = self.whole_problem
        self.problem = replace(problem, examples=problem.examples.take(rows), columns=problem.columns.take(rows))
        self.norms = self.problem.examples.squared_norms() + self.step
