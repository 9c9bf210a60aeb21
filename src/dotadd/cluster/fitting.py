"""Training on parts from beginning to end: open them, agree on the problem, solve it.

No part sees all of the data, so some rounds come before training. Each part tells the shape of its rows and the tally
of its labels. The shapes together resolve phi, so that a slot means the same everywhere. The tallies together give the
classes and their weights, though no part may have all of them. What phi learns from all rows is joined from what it
learns from those of each part.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dotadd.cluster.connection import Link, tried
from dotadd.cluster.engine import Engine, PartsLostError
from dotadd.cluster.partitions import Partitions
from dotadd.cluster.requests import Account, Accounted, Begin, CountLabels, Describe, Learn
from dotadd.cluster.shard import Outline, Task
from dotadd.core.losses import Loss
from dotadd.errors import DataError, DotaddError, FeatureError
from dotadd.features.base import FeatureMap, Shape
from dotadd.problem.columns import ClassWeight, Tally
from dotadd.problem.problem import Intercept
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.result import Result
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, that_need
from dotadd.sources.base import Chunk, require_alike

if TYPE_CHECKING:
    from distributed import Client


def method_for(solver: str) -> tuple[str, str]:
    """The method by the name of the solver, and why it is this one."""
    if solver == "auto":
        return "cocoa", "the examples lie in parts, and cocoa finds the optimum of all of them"
    known = that_need(Needs.PARTS)
    if solver not in known:
        names = " or ".join(f'"{name}"' for name in known)
        raise DotaddError(f"solver={solver!r} works on one machine: with engine= use {names}")
    return solver, "asked for"


@contextmanager
def opened(
    engine: Engine | Client,
    data: Partitions | None,
    memory: int | None,
    threads: int | None,
    resumed: Checkpoint | None,
    announce: Callable[[str], None],
) -> Iterator[Engine]:
    """The parts: those that an engine has, or those of the data on a Dask client. A run that is resumed has the same
    parts as it had, however many workers there are now."""
    if isinstance(engine, Engine):
        yield engine
        return
    from dotadd.cluster.dask_engine import DaskEngine

    assert data is not None
    groups = None if resumed is None else resumed.problem_on_disk().get("parts")
    with DaskEngine(engine, data, memory=memory, threads=threads, groups=groups, announce=announce) as parts:
        yield parts


def agree(
    engine: Engine,
    resolve: Callable[[Chunk, Shape], FeatureMap],
    *,
    C: float = 1.0,
    class_weight: ClassWeight | None = None,
    loss: Loss = Loss.HINGE,
    intercept: Intercept = Intercept.REGULARIZED,
    dtype: type = np.float32,
    seed: int = 0,
    keep: bool = True,
) -> Task:
    """State the problem to all parts, which are ready for a method afterwards.

    resolve(a row, the shape of all) makes the map.
    """
    if intercept is Intercept.FREE:
        raise DotaddError('a free intercept ties the parts together: use intercept="regularized" or "none"')
    outlines = engine.round(Describe()).told
    samples = [outline.sample for outline in outlines if outline.sample is not None]
    shapes = [outline.shape for outline in outlines if outline.shape is not None]
    if not samples:
        raise DataError("no part has any examples")
    for sample in samples[1:]:
        require_alike(samples[0], sample)
    _require_columns(outlines)
    shape = reduce(Shape.joined, shapes)
    widest = max(samples, key=lambda sample: Shape.of(sample.batch).n_features or 0)
    phi = resolve(widest, shape)
    learner = phi.learner()
    if not learner.sums:
        raise FeatureError(f"{phi!r} numbers features as it meets them, in each part others: use .hashed(bits) instead")
    # Any row will do where nothing is learned, and none where something is: a file is read here, not by the parts.
    learner.see(widest.batch.slice(0, 0) if phi.learns else widest.batch)
    phi = phi if phi.learns else learner.done()
    if phi.checks_rows:  # rows that phi cannot take may be left out
        tallies = engine.round(CountLabels(phi)).told
    elif (bad := phi.check(widest.batch)) is not None:
        raise widest.error(0, bad.message)
    else:
        tallies = [outline.tally for outline in outlines]
    while phi.learns:
        (learner,) = engine.round(Learn(phi, learner)).told
        if not learner.again():
            phi = learner.done()
            break
    tally = _together(tallies)
    targets = tally.targets(C, class_weight, None)
    parts = sum(one.rows > 0 for one in tallies)
    layout = next((one.layout for one in outlines if one.layout is not None), None)
    task = Task(phi, targets, shape, tally.rows, parts, loss, intercept, dtype, seed, layout, keep)
    engine.round(Begin(task))
    return task


def _require_columns(outlines: Sequence[Outline]) -> None:
    """Refuse parts whose columns have other names, or another order."""
    named = [(one.columns, one.sample) for one in outlines if one.columns is not None and one.sample is not None]
    for (columns, sample), (others, other) in pairwise(named):
        if others != columns:
            where = f"{sample.path_of(0)} has" if sample.from_file else "the first part has"
            raise DataError(f"has the columns {others}, and {where} {columns}", other.path_of(0))


def _together(tallies: Sequence[Tally]) -> Tally:
    """The tally of the rows of all parts."""
    total = Tally()
    total.rows = sum(tally.rows for tally in tallies)
    total.lightest = min((tally.lightest for tally in tallies), default=total.lightest)
    known = [tally.classes for tally in tallies if tally.classes is not None]
    total.sets = {one: weight for tally in tallies for one, weight in tally.sets.items()}
    if known:
        total.classes = np.unique(np.concatenate(known))
        total.totals = np.zeros(len(total.classes))
        for tally in tallies:
            if tally.classes is not None:
                total.totals[np.searchsorted(total.classes, tally.classes)] += tally.totals
    return total


def solve(engine: Engine, task: Task, method: str, settings: Settings) -> list[Result]:
    """The results of all binary problems of the task."""
    if method == "average":
        from dotadd.cluster.average import average

        return average(engine, task, settings)
    from dotadd.cluster.cocoa import cocoa

    checkpoint = settings.checkpoint
    if checkpoint is not None:
        checkpoint.problem = {
            "solver": method, "parts": getattr(engine, "groups", engine.parts), "rows": task.rows,
            "features": repr(task.phi), "loss": task.loss.name.lower(), "intercept": task.intercept.value,
            "cost": task.targets.cost_of_class.tolist(), "dtype": task.dtype.__name__,
        }  # fmt: skip
    return cocoa(engine, task, settings)


def account(engine: Engine, data: Partitions | None, results: Sequence[Result]) -> list[Result]:
    """Tell the data how many rows were left out in all of its parts, and the results how many were kept."""
    told: list[Accounted] = []
    with suppress(PartsLostError):  # at the very end: it is not worth another pass over the data
        told = engine.round(Account()).told
    if data is not None:
        data.skipped.clear()
        for one in told:
            data.skipped.merge(one.skipped)
    rows, nbytes = sum(one.kept_rows for one in told), sum(one.kept_bytes for one in told)
    return [replace(result, kept_rows=rows, kept_bytes=nbytes) for result in results]


def forget_checkpoint(engine: Engine | Client, path: str) -> None:
    """Remove the files that parts have written beside a checkpoint, on all workers."""
    if isinstance(engine, Engine):  # parts in this process
        _remove(path)
        return
    link = Link(engine)
    link.run(tried, _remove, path, workers=link.alive())


def _remove(path: str) -> None:
    for file in glob.glob(f"{glob.escape(path)}.part*"):
        with suppress(OSError):
            os.remove(file)
