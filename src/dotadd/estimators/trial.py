"""Trial: machines for each fold and each C, in memory and on disk, and then the one that is trained on all rows.

In memory each C starts from the one before (solvers/path.py). On disk batch solvers train all values of C in the same
readings, as far as their weights have room. What keeps rows (stream) trains one after the other, all folds together,
each C from the answers at the one before: machines of different C want different rows, and push out each other's.
2,000 mails by words with a tenth of them in memory, C = 7.7 and 28: 24 s one after the other (each from nothing), and
not done after 70 together; with half of them 7.5 and 8.3 s.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dotadd._util.memory import Budget, available, words
from dotadd.errors import DotaddError, StreamingWarning
from dotadd.estimators.choosing import FoldsOf, ranked, spaced, typical
from dotadd.estimators.fitting import Found, How, OnTheWay, Stated, settings_of, solve_on_disk, stated
from dotadd.estimators.held_out import Fitted, HeldOut, Measure, Truth
from dotadd.estimators.linear import LinearSVM
from dotadd.problem.columns import Targets
from dotadd.problem.folds import Folds
from dotadd.problem.on_disk import OnDisk, let_go
from dotadd.problem.problem import Problem
from dotadd.problem.survey import Tried, usable_rows
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.path import path, require_ended
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.table import SOLVERS, Needs, solve
from dotadd.sources.base import Chunk, Source, TooLargeError

if TYPE_CHECKING:
    pass

DECADES = 3, 2  # of C, below and above
LOOKED_AT = 1 << 20  # bytes of rows on disk that tell how long rows are


class Trial:
    """What is tried on a source: values of C in rising order, or how many of them.

    With `keep_all` held-out scores of all values of C are kept, and not of the best one alone; `by_name` says that the
    source carries a column along by which folds are made.
    """

    held: HeldOut
    Cs: list[float]

    def __init__(
        self,
        machine: LinearSVM,
        source: Source,
        how: How,
        folds_of: FoldsOf,
        measure: Measure,
        Cs: list[float] | int,
        tol: float,
        *,
        refit: bool,
        keep_all: bool,
        by_name: bool,
    ) -> None:
        self.machine, self.source, self.how = machine, source, how
        self.folds_of, self.measure, self.asked = folds_of, measure, Cs
        self.tol, self.refit, self.keep_all, self.by_name = tol, refit, keep_all, by_name
        self._copies: list[Path] = []
        self.train: Callable[[], Found]
        """Trains on all rows, with the machine's C."""

    def run(self, memory: int, clock: Clock) -> Reason | None:
        """Try all of it with so many bytes of memory for examples; why it ended early, if it did."""
        solver = SOLVERS.get(self.machine.solver)
        data: Chunk | None = None
        if solver is None or solver.needs is not Needs.PIECES:
            with suppress(TooLargeError):  # and forget it: the traceback would keep what was loaded
                data = self.source.load(memory)
        if data is None and solver is not None and solver.needs is Needs.ROWS:
            raise DotaddError(
                f"solver={solver.name!r} works with examples in memory, and {self.source.name} takes more than "
                f'{words(memory)}: use solver="stream", or raise memory'
            )
        try:
            if data is None:
                self._on_disk(memory, clock)
            else:
                self._in_memory(data, Budget(memory), clock)
        except StoppedError as stopped:
            return stopped.reason
        return None

    def _in_memory(self, data: Chunk, budget: Budget, clock: Clock) -> None:
        machine, how, seen = self.machine, self.how, []

        def folds_of(chunk: Chunk, targets: Targets) -> Folds:
            codes = targets.codes(chunk)
            named = None if chunk.ids is None else ranked([chunk.ids])
            folds = self.folds_of(codes, targets.classes, named)
            seen.append((folds, Truth.of(codes, targets.classes, chunk.weight)))
            return folds

        task = stated(machine, self.source, data, budget, how, folds_of)
        del data
        (folds, truth), problems = seen[0], len(task.targets.problems)
        self.Cs = self._values(lambda: task.examples.squared_norms())
        self.held = held = HeldOut(
            truth, folds, problems, len(self.Cs), self.measure, keep_all=self.keep_all
        )  # fmt: skip
        problem = task.problem(machine, task.columns.only(range(problems * len(folds))))
        total = len(self.Cs) * len(problem) + problems * self.refit
        self.train = lambda: self._train_in_memory(task, budget, total)

        def take(i: int, k: int, result: Result) -> None:
            (scores,) = examples.dot([result.w], held.rows(k))
            held.put(i, k, scores + result.intercept, Fitted.of(result))
            if how.on_progress is not None and result.trace:
                clock.tell(how.on_progress, result.trace[-1], len(held.fitted) - 1, total)

        settings = replace(settings_of(machine, how, len(problem), budget), tol=self.tol)
        with task.examples.narrowed() as examples:
            path(machine.solver, replace(problem, examples=examples), self.Cs, settings, take, clock)

    def _train_in_memory(self, task: Stated, budget: Budget, total: int) -> Found:
        machine, count = self.machine, len(task.targets.problems)
        columns = task.columns.only(range(len(task.columns) - count, len(task.columns)))
        settings = settings_of(machine, self._later(total - count, total), count, budget)
        solver, why, results = solve(machine.solver, task.problem(machine, columns.times(machine.C)), settings)
        return task.found(self.source, results, solver, why)

    def _on_disk(self, memory: int, clock: Clock) -> None:
        from dotadd.sources.cached import as_arrow

        machine, how = self.machine, self.how
        say = how.announce or (lambda line: warnings.warn(line, StreamingWarning, stacklevel=8))
        solver = "stream" if machine.solver == "auto" else machine.solver
        say(f"{self.source.name} takes more than {words(memory)} of memory: it is read while training runs")
        plain = self.source
        self.source, self._copies = as_arrow(plain, announce=say)
        task = OnTheWay.of(machine, self.source, solver, memory, how, say)
        truth = Truth.gathered(task.survey.chunks(task.memory), task.targets)
        named = self._named(plain, task) if self.by_name else None
        folds, problems = self.folds_of(truth.codes, truth.classes, named), len(task.targets.problems)
        self.Cs = self._values(lambda: _some_norms(task))
        self.held = HeldOut(truth, folds, problems, len(self.Cs), self.measure, keep_all=self.keep_all)
        total = len(self.Cs) * len(folds) * problems + problems * self.refit
        self.train = lambda: self._train_on_disk(task, solver, total)
        one = task.survey.phi.dim * np.dtype(machine.dtype).itemsize * len(folds) * problems
        keeps = SOLVERS[solver].needs is Needs.PIECES
        together = 1 if keeps else int(np.clip(available() // 4 // max(1, one), 1, len(self.Cs)))
        results: list[Result] = []
        for first in range(0, len(self.Cs), together):
            clock.check()
            some = self.Cs[first : first + together]
            problem = task.problem(machine, tried=Tried(folds, some))
            told = self._later(first * len(folds) * problems, total)
            settings = replace(
                settings_of(machine, told, len(problem), task.budget), tol=self.tol, max_time=clock.left()
            )
            start = results if SOLVERS[solver].warm and keeps and first else None
            results = solve_on_disk(solver, problem, settings, start)
            require_ended(results)
            self._test_on_disk(problem, results, first, clock)

    def _named(self, plain: Source, task: OnTheWay) -> np.ndarray:
        """The ranks of the column that folds are made by, which an Arrow copy does not have."""
        chunks = (usable_rows(chunk, task.survey.phi, plain) for chunk in plain.chunks(task.memory))
        return ranked([chunk.ids for chunk in chunks if chunk.ids is not None])

    def close(self) -> None:
        """Remove the Arrow copies of what was read from disk, unless they are to be kept."""
        if not self.how.keep_cache:
            from dotadd.sources.cached import remove

            remove(self._copies)

    def _test_on_disk(self, problem: Problem[OnDisk], results: list[Result], first: int, clock: Clock) -> None:
        """The held-out scores of these results, C by C from this one on, in one reading."""
        held, folds = self.held, self.held.folds
        count = len(folds) * held.problems
        scores = [
            problem.examples.column(np.float64, len(results) // len(folds)) for _ in range(len(results) // len(folds))
        ]
        with problem.read() as pieces:
            for piece in pieces:
                parts = folds.parts[piece.rows]
                for fold in range(len(folds)):
                    rows = np.flatnonzero(folds.tests[fold][parts])
                    mine = [
                        (i, j, results[i * count + fold * held.problems + j])
                        for i in range(len(results) // count)
                        for j in range(held.problems)
                    ]
                    outputs = piece.outputs([result.w for _, _, result in mine], rows) if len(rows) else []
                    for (i, j, result), output in zip(mine, outputs, strict=False):
                        scores[i * held.problems + j][piece.rows.start + rows] = output + result.intercept
                let_go(*scores)
                clock.check()
        for k, result in enumerate(results):
            i, column = divmod(k, count)
            of_problem = scores[i * held.problems + column % held.problems]
            held.put(first + i, column, of_problem[held.rows(column)], Fitted.of(result))

    def _train_on_disk(self, task: OnTheWay, solver: str, total: int) -> Found:
        machine, count = self.machine, len(task.targets.problems)
        targets = replace(task.targets, cost_of_class=machine.C * task.targets.cost_of_class)
        settings = settings_of(machine, self._later(total - count, total), count, task.budget)
        results = solve_on_disk(solver, task.problem(machine, targets), settings)
        return task.found(self.source, results, solver, "the examples take more than the memory for them")

    def _later(self, first: int, total: int) -> How:
        """The same, for fits that come after so many, of all."""
        tell = self.how.on_progress
        if tell is None:
            return self.how

        def on_progress(progress: Progress, k: int, n: int) -> None:
            tell(progress, first + k, total)

        return replace(self.how, on_progress=on_progress)

    def _values(self, squared_norms: Callable[[], np.ndarray]) -> list[float]:
        """The values of C: as they are asked for, or spaced."""
        return spaced(self.asked, typical(squared_norms()), DECADES) if isinstance(self.asked, int) else self.asked


def _some_norms(task: OnTheWay) -> np.ndarray:
    """|phi(z)|^2 of the first rows."""
    batch = next(task.survey.pieces(task.targets, LOOKED_AT))[0]
    return task.survey.phi.squared_norms(batch, np.arange(len(batch)))
