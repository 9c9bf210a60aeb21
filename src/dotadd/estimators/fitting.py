"""The three ways of a linear machine's fit: on examples in memory, on disk, and on parts of the data elsewhere.

Each states the problem, has it solved, and returns what was `Found`. With a checkpoint, data and parameters are written
down with the state of training, and nobody goes on with others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dotadd._util.memory import Budget, available, parse_bytes, words
from dotadd._util.threads import thread_count
from dotadd.core.losses import Loss
from dotadd.errors import DataError, DotaddError
from dotadd.estimators.groups import solve_in_groups, with_constants
from dotadd.estimators.protocol import columns_read
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.expression import parse
from dotadd.features.learning import learned_on
from dotadd.problem.columns import NO_LABELS, Columns, Tally, Targets
from dotadd.problem.examples import InMemory
from dotadd.problem.folds import Folds
from dotadd.problem.label_columns import LabelTargets
from dotadd.problem.lengths import READ, Lengths
from dotadd.problem.on_disk import IN_FLIGHT, LEAST, OnDisk, least_memory, piece_bytes
from dotadd.problem.problem import Intercept, Problem
from dotadd.problem.survey import Survey, Tried, require_room, resolved_map, usable_rows
from dotadd.solvers.checkpoint import Checkpoint, CheckpointError, Unasked, none_kept
from dotadd.solvers.result import Progress, Result
from dotadd.solvers.run import Settings
from dotadd.solvers.saving import State
from dotadd.solvers.table import SOLVERS, Needs, Solver, batch_solver, solve
from dotadd.sources.base import Chunk, Source
from dotadd.sources.table import Layout

if TYPE_CHECKING:
    from distributed import Client

    from dotadd.cluster.engine import Engine
    from dotadd.cluster.partitions import Partitions
    from dotadd.cluster.shard import Task
    from dotadd.estimators.linear import LinearSVM
    from dotadd.estimators.update import Update

OnProgress = Callable[[Progress, int, int], None]
MakeFolds = Callable[[Chunk, Targets], Folds]


@dataclass(frozen=True)
class Found:
    """What a fit has found, and on what."""

    phi: FeatureMap
    shape: Shape
    classes: np.ndarray
    results: list[Result]
    rows: int
    source: Any
    solver: str
    why: str
    names: Layout | None
    spread: float | None = None
    scales: float | None = None
    several: str | None = None
    """Where rows have several labels, how these were given; the results are then those of all labels."""
    strength: float | None = None
    """Of an earlier model that was updated."""


@dataclass(frozen=True)
class How:
    """How a fit goes about it, beside its parameters; `phi` is the map that was given, or chosen for a table."""

    phi: FeatureMap | str | None
    on_progress: OnProgress | None
    announce: Callable[[str], None] | None
    checkpoint: Checkpoint | None
    resume: bool
    start: list[Result] | None = None
    keep_cache: bool = True
    several: str | None = None
    """How labels were given where rows may have several; None where that is refused."""
    width: int | None = None
    """How many columns indicators had."""
    update: Update | None = None

    def solver(self, name: str) -> Solver | None:
        """The solver that was asked for, or else the one that wrote the checkpoint to go on from; None for "auto"."""
        asked = SOLVERS.get(name)
        if not self.resume:
            return asked
        assert self.checkpoint is not None
        if asked is not None and not asked.checkpoints:
            raise DotaddError(f"solver={name!r} cannot resume what it has begun; {_that_can(asked)} can")
        wrote, where = self.checkpoint.solver_on_disk(), self.checkpoint.path
        if wrote not in SOLVERS or (asked is not None and wrote != name):
            raise CheckpointError(f"{where}: is a checkpoint of another problem: solver was {wrote}, and is {name}")
        if asked is None and SOLVERS[wrote].needs is Needs.PARTS:
            raise CheckpointError(f"{where}: is a checkpoint of parts of the data: give engine= (--workers)")
        return SOLVERS[wrote]

    def checkpoint_by(self, solver: str, *, in_memory: bool) -> Checkpoint | None:
        """The checkpoint that this solver is to write; one that nobody has asked for is written where data is streamed.
        Refuses one that would not be, and to begin anew over what an earlier run has come to."""
        where = self.checkpoint
        if solver in SOLVERS and not SOLVERS[solver].checkpoints:  # those that "auto" takes do
            none_kept(where, f"solver={solver!r}", _that_can(SOLVERS[solver]))
            return None
        if where is not None and not self.resume:
            if in_memory and isinstance(where.path, Unasked):
                return None
            where.require_new()
        return where


def _that_can(solver: Solver) -> str:
    """A solver that can be resumed, for data like that of another one."""
    other = {Needs.PIECES: "stream", Needs.PARTS: "cocoa"}.get(solver.needs, "dcd")
    return f'solver="{other}"'


@dataclass
class Stated:
    """What is to be trained on in memory: examples, their classes, and who looks at the lengths of rows."""

    examples: InMemory
    targets: Targets
    columns: Columns
    shape: Shape
    lengths: Lengths
    several: str | None = None

    def found(self, source: Source, results: list[Result], solver: str, why: str) -> Found:
        """What a fit has found on them."""
        kept_rows, kept_bytes = self.examples.kept
        results = [replace(result, kept_rows=kept_rows, kept_bytes=kept_bytes) for result in results]
        phi, batch = self.phi, self.examples.batch
        spread, scales = self.lengths.measure(phi, batch), self.lengths.scales
        if isinstance(self.targets, LabelTargets):
            results = with_constants(results, self.targets.constant)
        return Found(
            phi, self.shape, self.targets.classes, results, len(batch), source, solver, why, source.names(), spread,
            scales, self.several,
        )  # fmt: skip

    @property
    def phi(self) -> FeatureMap:
        """The map as it was learned, for a model."""
        return self.examples.given

    def problem(self, svm: LinearSVM, columns: Columns) -> Problem[InMemory]:
        return Problem(self.examples, columns, Loss.named(svm.loss), Intercept(svm.intercept))


def stated(
    svm: LinearSVM, source: Source, data: Chunk, budget: Budget, how: How, folds: MakeFolds | None = None
) -> Stated:
    """What is to be trained on, as these rows in memory tell; with folds, columns are those of each fold."""
    if data.y is None and data.from_file:
        raise DataError(NO_LABELS, data.path_of(0))
    if data.y is None:
        raise DataError(f"{type(svm).__name__} requires y to be passed, but the target y is None", data.path)
    shape, dtype, update = Shape.of(data.batch), np.dtype(svm.dtype).type, how.update
    if update is None:
        phi = resolved_map(how.phi, data, shape)
    else:
        data = update.fitting(data)
        phi, shape = update.bound(data), update.model.shape
    data = usable_rows(data, phi, source)
    threads = thread_count(svm.n_jobs)
    phi = phi if update is not None else learned_on(threads, phi, data.batch)
    require_room(phi, dtype, data, source)
    tally = Tally()
    tally.note(data)
    tally = tally if update is None else update.joined(tally)
    path = source.name if data.from_file else data.path
    targets = tally.targets(svm.C, svm.class_weight, path, several=how.several is not None, width=how.width)
    columns, batch = targets.columns(data, None if folds is None else folds(data, targets)), data.batch
    del data  # labels of many millions of rows, as signs by now
    budget.take(batch.nbytes)
    examples = InMemory(phi, batch, dtype=dtype, threads=threads, budget=budget if svm.keep else None)
    lengths = Lengths(how.announce)
    lengths.look(phi, batch)
    examples.on_norms = lengths.note
    return Stated(
        examples, targets, columns, shape, lengths, how.several if isinstance(targets, LabelTargets) else None
    )


def on_examples(svm: LinearSVM, source: Source, data: Chunk, budget: Budget, how: How) -> Found:
    """Train on examples in memory."""
    task = stated(svm, source, data, budget, how)
    del data
    problem, drawn = task.problem(svm, task.columns), None
    if how.update is not None:
        drawn = how.update.drawn(problem, task.targets, svm.C, len(problem.examples))
        problem = replace(problem, columns=problem.columns.times(drawn.factors), centres=drawn.centres)
    settings = settings_of(svm, how, len(problem), budget)
    if (checkpoint := how.checkpoint_by(svm.solver, in_memory=True)) is not None:
        checkpoint.problem = _stated(svm, source, task.phi, task.targets, how)
        settings = replace(settings, checkpoint=checkpoint, resume=how.resume)
    if how.start is None:
        solver, why, results = solve_in_groups(svm.solver, problem, settings)
    else:
        solver, why, results = solve(svm.solver, problem, settings, how.start)
    return replace(task.found(source, results, solver, why), strength=None if drawn is None else drawn.strength)


@dataclass(frozen=True)
class OnTheWay:
    """What is to be trained on while it is read again and again: the survey of it, its classes, the memory for its
    examples, and the budget of what solvers collect."""

    survey: Survey
    targets: Targets
    memory: int
    budget: Budget
    lengths: Lengths
    spread: float | None
    several: str | None = None

    @classmethod
    def of(
        cls, svm: LinearSVM, source: Source, solver: str, budget: int, how: How, announce: Callable[[str], None]
    ) -> OnTheWay:
        """Read the source to know it."""

        update = how.update

        def resolved(data: Chunk, shape: Shape) -> FeatureMap:
            return resolved_map(how.phi, data, shape) if update is None else update.bound(data)

        examples = source if update is None else update.around(source)
        chunk_bytes, dtype = piece_bytes(max(budget, LEAST)), np.dtype(svm.dtype).type
        survey = Survey.of(examples, resolved, chunk_bytes, dtype, learned=update is not None)
        if update is not None:
            survey = replace(survey, shape=update.model.shape, tally=update.joined(survey.tally))
        several = how.several is not None
        targets = survey.tally.targets(svm.C, svm.class_weight, source.name, several=several, width=how.width)
        least = least_memory(survey.tally.rows)
        if budget < least:
            announce(f"{words(budget)} of memory is too little for {survey.tally.rows} rows: {words(least)} are used")
        memory = max(budget, least)
        shared = Budget(memory)
        shared.take(memory if SOLVERS[solver].needs is Needs.PIECES else IN_FLIGHT * piece_bytes(memory))
        lengths, some = Lengths(announce), next(survey.pieces(targets, READ))[0]
        lengths.look(survey.phi, some)
        spread = lengths.measure(survey.phi, some)
        return cls(
            survey, targets, memory, shared, lengths, spread,
            how.several if isinstance(targets, LabelTargets) else None,
        )  # fmt: skip

    def problem(self, svm: LinearSVM, targets: Targets | None = None, tried: Tried | None = None) -> Problem[OnDisk]:
        """The problem, or all problems of the folds and values of C that are tried."""
        return self.survey.problem(
            targets or self.targets, self.memory, Loss.named(svm.loss), Intercept(svm.intercept),
            dtype=np.dtype(svm.dtype).type, threads=thread_count(svm.n_jobs), keep=svm.keep, tried=tried,
        )  # fmt: skip

    def found(self, source: Source, results: list[Result], solver: str, why: str) -> Found:
        """What a fit has found."""
        survey = self.survey
        if isinstance(self.targets, LabelTargets):
            results = with_constants(results, self.targets.constant)
        return Found(
            survey.phi, survey.shape, self.targets.classes, results, survey.tally.rows, source, solver, why,
            source.names(), self.spread, self.lengths.scales, self.several,
        )  # fmt: skip


def solve_on_disk(
    solver: str, problem: Problem[OnDisk], settings: Settings, start: list[Result] | None = None
) -> list[Result]:
    """The answers by a solver for examples on disk."""
    return SOLVERS[solver](problem.hold() if SOLVERS[solver].needs is Needs.PASSES else problem, settings, start)


def _on_disk_by(svm: LinearSVM, how: How) -> str:
    """The solver that "auto" takes for data on disk: one that sees all rows at once where phi is made for that."""
    phi = parse(how.phi) if isinstance(how.phi, str) else how.phi
    return batch_solver(Loss.named(svm.loss)) if phi is not None and phi.whole else "stream"


def on_disk(svm: LinearSVM, source: Source, budget: int, how: How, announce: Callable[[str], None]) -> Found:
    """Train on examples that are read again and again."""
    from dotadd.sources.cached import as_arrow, remove

    asked = how.solver(svm.solver)
    solver, why = (_on_disk_by(svm, how) if asked is None else asked.name), "asked for"
    if svm.solver == "auto":
        why = f"the examples take more than {words(budget)} of memory"
    checkpoint = how.checkpoint_by(solver, in_memory=False)
    copies: list[Path] = []
    try:
        if not how.resume and (svm.solver != solver or SOLVERS[solver].needs is Needs.PASSES):
            announce(f"{source.name} takes more than {words(budget)} of memory: it is read while training runs")
        source, copies = as_arrow(source, announce=announce)
        task = OnTheWay.of(svm, source, solver, budget, how, announce)
        problem, drawn = task.problem(svm), None
        if how.update is not None:
            drawn = how.update.drawn(problem, task.targets, svm.C, len(problem.examples))
            problem = task.problem(svm, replace(task.targets, factors=drawn.factors))
            problem = replace(problem, centres=drawn.centres)
        settings = settings_of(svm, how, len(problem), task.budget)
        if checkpoint is not None:
            checkpoint.problem = {"solver": solver, **_stated(svm, source, task.survey.phi, task.targets, how)}
            settings = replace(settings, checkpoint=checkpoint, resume=how.resume)
        results = solve_on_disk(solver, problem, settings)
    finally:
        if not how.keep_cache:
            remove(copies)
    return replace(task.found(source, results, solver, why), strength=None if drawn is None else drawn.strength)


@dataclass(frozen=True)
class OnParts:
    """What is to be trained on where it lies in parts: the engine that asks them, what they have agreed on, the files,
    the method and why it was chosen."""

    engine: Engine
    task: Task
    data: Partitions | None
    method: str
    why: str

    def solve(self, task: Task, settings: Settings) -> list[Result]:
        from dotadd.cluster import fitting

        return fitting.solve(self.engine, task, self.method, settings)

    def found(self, results: list[Result]) -> Found:
        """What a fit has found."""
        from dotadd.cluster import fitting

        task, results = self.task, fitting.account(self.engine, self.data, results)
        classes = task.targets.classes
        return Found(task.phi, task.shape, classes, results, task.rows, self.data, self.method, self.why, task.layout)


@contextmanager
def agreed(svm: LinearSVM, X: object, engine: Engine | Client, how: How, where: Checkpoint | None) -> Iterator[OnParts]:
    """The parts of the data, which have agreed on the problem."""
    from dotadd.cluster import fitting
    from dotadd.cluster.partitions import Partitions

    method, why = fitting.method_for(svm.solver)
    memory = None if svm.memory is None else parse_bytes(svm.memory)
    data = None if X is None else Partitions.of(X)
    if data is not None and (columns := columns_read(how.phi)) is not None:
        data = data.reading(columns)
    say = how.announce or (lambda line: None)

    def resolved(data: Chunk, shape: Shape) -> FeatureMap:
        return resolved_map(how.phi, data, shape)

    with fitting.opened(engine, data, memory, svm.n_jobs, where if how.resume else None, say) as parts:
        task = fitting.agree(
            parts, resolved, C=svm.C, class_weight=svm.class_weight, loss=Loss.named(svm.loss),
            intercept=Intercept(svm.intercept), dtype=np.dtype(svm.dtype).type, seed=svm._seed(), keep=svm.keep,
        )  # fmt: skip
        yield OnParts(parts, task, data, method, why)


def on_parts(svm: LinearSVM, X: object, engine: Engine | Client, how: How) -> Found:
    """Train on parts of the data that live elsewhere."""
    from dotadd.cluster.fitting import method_for

    method, _ = method_for(svm.solver)
    if how.resume and not SOLVERS[method].checkpoints:
        raise DotaddError(f'solver="{method}" is done in one round, and there is nothing to resume')
    how.solver(method)  # refuses what another one wrote
    where = how.checkpoint_by(method, in_memory=False)
    if where is not None:
        where.path = os.path.abspath(where.path)
    with agreed(svm, X, engine, how, where) as parts:
        settings = settings_of(svm, how, parts.task.problems, budget_on_parts(svm))
        return parts.found(parts.solve(parts.task, replace(settings, checkpoint=where, resume=how.resume)))


def budget_on_parts(svm: LinearSVM) -> Budget:
    """What the solver of a part may collect."""
    return Budget(available() // 2 if svm.memory is None else parse_bytes(svm.memory))


def memory_for(svm: LinearSVM, how: How) -> int:
    """Bytes that examples may take: as asked for, or as the run to go on with had, or half of what is free."""
    if svm.memory is not None:
        return parse_bytes(svm.memory)
    had = how.checkpoint.memory_on_disk() if how.resume and how.checkpoint is not None else None
    return available() // 2 if had is None else had


def _stated(svm: LinearSVM, source: Source, phi: FeatureMap, targets: Targets, how: How) -> State:
    """What has to be the same when training goes on."""
    from dotadd.sources.identity import fingerprint

    return {
        "data": fingerprint(source), "features": repr(phi), "loss": svm.loss, "intercept": svm.intercept,
        "cost": targets.cost_of_class.tolist(), "dtype": svm.dtype,
        **({} if how.update is None else {"update": how.update.identity()}),
    }  # fmt: skip


def settings_of(svm: LinearSVM, how: How, problems: int, budget: Budget) -> Settings:
    def tell(progress: Progress, k: int) -> None:
        assert how.on_progress is not None
        how.on_progress(progress, k, problems)

    told = tell if how.on_progress else None
    return Settings(svm.tol, svm.max_passes, svm.max_time, svm._seed(), told, budget)
