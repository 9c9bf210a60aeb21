"""Selective block minimization (Chang and Roth 2011): block minimization that keeps informative examples in memory.

Problem:  as for dcd
Given:    a Problem whose examples are on disk
Returned: w, b, alpha and the relative duality gap, for each of the binary problems

Half of the memory is for the block that is being read, half for examples of earlier ones. Both together are optimised
by some sweeps of coordinate descent. Then it is decided anew which examples stay: of those whose dual variable may
still move, the ones closest to the margin.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dotadd.core.losses import Loss
from dotadd.problem.on_disk import OnDisk, piece_bytes
from dotadd.problem.problem import Problem
from dotadd.solvers.baselines.block_minimization import Held, State, minimize_blocks
from dotadd.solvers.result import Result
from dotadd.solvers.run import Settings

KEPT = 0.5  # of the memory is for examples that are kept


def selective_block_minimization(problem: Problem[OnDisk], settings: Settings) -> list[Result]:
    """Solve each binary problem to a relative duality gap of `settings.tol`."""
    return minimize_blocks(problem, settings, closest, KEPT)


def closest(parts: list[Held], running: list[State], nbytes: int, check: Callable[[], None]) -> list[Held]:
    """The examples closest to the margin, as many as fit into so many bytes. The others leave: `parts` is emptied."""
    distances = []
    for part in parts:
        distances.append(_distances(part, running))
        check()
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    sizes = np.concatenate([part.row_bytes() for part in parts])
    every = np.concatenate(distances)
    order = np.argsort(every, kind="stable")
    stay = np.zeros(len(every), np.bool_)
    stay[order] = (np.cumsum(sizes[order]) <= nbytes) & np.isfinite(every[order])
    kept: list[Held] = []
    for chosen in np.split(stay, cuts):
        part = parts.pop(0)
        if not chosen.any():
            continue
        stays = part.take(np.flatnonzero(chosen))
        if kept and kept[-1].nbytes + stays.nbytes <= piece_bytes(part.disk.memory):
            kept[-1] = kept[-1].join(stays)
        else:
            kept.append(stays)
    return kept


def _distances(part: Held, running: list[State]) -> np.ndarray:
    """How far from the margin each example is, in the problem where it is closest; infinity if it would not move.

    The logistic loss has no margin, so there it is the boundary between the classes that counts.
    """
    problem = part.problem
    margin = 0.0 if problem.loss is Loss.LOGISTIC else 1.0
    nearest = np.full(len(part), np.inf)
    for state, output in zip(running, problem.outputs([state.w for state in running]), strict=True):
        margins = problem.margins(output, state.descent.b, state.k)
        np.minimum(nearest, np.abs(margins - margin), out=nearest, where=part.active[state.k] > 0)
    return nearest
