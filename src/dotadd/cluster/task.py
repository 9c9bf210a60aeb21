"""Task: the problem as all parts have agreed on it. No part sees all of the data, so some rounds come before training.

Each part tells the shape of its rows and the tally of its labels. The shapes together resolve phi, so that a slot means
the same everywhere; the tallies together tell the classes, though no part may have all of them, and their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from dotadd.cluster.engine import Engine
from dotadd.core.losses import Loss
from dotadd.errors import DataError, DotaddError, FeatureError
from dotadd.features.base import FeatureMap, Shape
from dotadd.problem.problem import Intercept
from dotadd.problem.targets import Tally, Targets
from dotadd.sources.base import Chunk, require_alike
from dotadd.sources.table import Layout


@dataclass(frozen=True)
class Outline:
    """What a part tells of its rows before training: their shape, the tally of labels, its widest row or another, and
    the names of columns where there are any.

    A part without rows has no shape and no sample.
    """

    tally: Tally
    shape: Shape | None = None
    sample: Chunk | None = None
    columns: list[str] | None = None
    layout: Layout | None = None


@dataclass(frozen=True)
class Task:
    """The problem that all parts solve together: `rows` of them in `shape`, classes and costs, loss and intercept."""

    phi: FeatureMap
    targets: Targets
    shape: Shape
    rows: int
    parts: int
    """How many parts have any rows."""
    loss: Loss = Loss.HINGE
    intercept: Intercept = Intercept.REGULARIZED
    dtype: type = np.float32
    seed: int = 0
    layout: Layout | None = None
    """The columns of the table that the rows come from, if it is one."""

    @property
    def problems(self) -> int:
        """How many binary problems."""
        return len(self.targets.problems)


def agree(
    engine: Engine,
    resolve: Callable[[Chunk, Shape], FeatureMap],
    *,
    C: float = 1.0,
    class_weight: Mapping[Any, float] | str | None = None,
    loss: Loss = Loss.HINGE,
    intercept: Intercept = Intercept.REGULARIZED,
    dtype: type = np.float32,
    seed: int = 0,
) -> Task:
    """State the problem to all parts, which are ready for a method afterwards.

    resolve(a row, the shape of all) makes the map.
    """
    if intercept is Intercept.FREE:
        raise DotaddError('a free intercept ties the parts together: use intercept="regularized" or "none"')
    outlines: list[Outline] = engine.round("outline").numbers
    samples = [outline.sample for outline in outlines if outline.sample is not None]
    shapes = [outline.shape for outline in outlines if outline.shape is not None]
    if not samples:
        raise DataError("no part has any examples")
    for sample in samples[1:]:
        require_alike(samples[0], sample)
    _require_columns([outline for outline in outlines if outline.sample is not None])
    shape = reduce(Shape.joined, shapes)
    widest = max(samples, key=lambda sample: Shape.of(sample.batch).n_features or 0)
    phi = resolve(widest, shape)
    if phi.learns:
        raise FeatureError(f"{phi!r} numbers features as it meets them, in each part others: use .hashed(bits) instead")
    phi = phi.learn(widest.batch)  # any row will do; where it reads a file, the parts need not have it
    if phi.checks_rows:  # rows that phi cannot take may be left out
        tallies: list[Tally] = engine.round("tally", phi=phi).numbers
    elif (bad := phi.check(widest.batch)) is not None:
        raise widest.error(0, bad.message)
    else:
        tallies = [outline.tally for outline in outlines]
    tally = joined(tallies)
    targets = tally.targets(C, class_weight, None)
    parts = sum(one.rows > 0 for one in tallies)
    layout = next((one.layout for one in outlines if one.layout is not None), None)
    task = Task(phi, targets, shape, tally.rows, parts, loss, intercept, dtype, seed, layout)
    engine.round("begin", task=task)
    return task


def _require_columns(outlines: Sequence[Outline]) -> None:
    """Refuse parts whose columns have other names, or another order."""
    named = [outline for outline in outlines if outline.columns is not None]
    for first, other in pairwise(named):
        if other.columns != first.columns:
            assert first.sample is not None
            assert other.sample is not None
            where = f"{first.sample.path_of(0)} has" if first.sample.from_file else "the first part has"
            raise DataError(f"has the columns {other.columns}, and {where} {first.columns}", other.sample.path_of(0))


def joined(tallies: Sequence[Tally]) -> Tally:
    """The tally of the rows of all parts."""
    total = Tally()
    total.rows = sum(tally.rows for tally in tallies)
    total.lightest = min((tally.lightest for tally in tallies), default=total.lightest)
    known = [tally.classes for tally in tallies if tally.classes is not None]
    if known:
        total.classes = np.unique(np.concatenate(known))
        total.totals = np.zeros(len(total.classes))
        for tally in tallies:
            if tally.classes is not None:
                total.totals[np.searchsorted(total.classes, tally.classes)] += tally.totals
    return total
