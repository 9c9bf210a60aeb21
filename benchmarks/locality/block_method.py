"""Coordinate descent by blocks, linadd's working set in linear form, against what else one pass can be.

A block method takes some hundred windows at a time: DOT of all of them position by position, their Gram matrix, steps
that read margins from it, and ADD of all that moved, position by position. Two weighted degree rows hold the same
position and order at the same place, so an entry of the matrix is a comparison of two arrays of slots.

All passes begin with the same w and alpha, trained on a part of the windows to a gap of 0.1, and go over more.
One core, hinge loss, C = 1, no intercept. Each window makes one step, or more where steps inside a block are repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import thread_time

import numpy as np

from benchmarks.locality.measuring import Setting, some_rows, table, weighted_degree
from benchmarks.locality.visits import as_arrays
from dotadd._jit import kernel
from dotadd.core.block import Block, row_add, row_dot, squared_length
from dotadd.core.losses import HINGE, dual_step
from dotadd.data.batches import Strings
from dotadd.features.base import FeatureMap
from dotadd.features.filling import Filling
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.dcd import dcd
from dotadd.solvers.run import Settings

PLAIN = "plain: every window visited"
SWEEPS = 10


@dataclass
class State:
    """Windows in the order of the pass, their signs, and the variables; seconds that went into Gram matrices."""

    phi: FeatureMap
    windows: Strings
    signs: np.ndarray
    norms: np.ndarray
    alpha: np.ndarray
    w: np.ndarray
    gram: float = 0.0

    def copy(self) -> State:
        return State(self.phi, self.windows, self.signs, self.norms, self.alpha.copy(), self.w.copy())

    def dual(self) -> float:
        return float(self.alpha.sum()) - 0.5 * squared_length(self.w)

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        out = np.zeros(len(rows))
        self.phi.dot(self.windows, rows, self.w, out)
        return out

    def would_move(self, rows: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Which of the rows a step would move, at these outputs."""
        margins, alpha = self.signs[rows] * outputs, self.alpha[rows]
        return ~(((alpha == 0.0) & (margins >= 1.0)) | ((alpha == 1.0) & (margins <= 1.0)))


def report(given: Setting) -> str:
    """Seconds of one pass, the share of it that the Gram matrices take, and what the pass gained."""
    head = ["one pass", "seconds", "of it Gram", "windows moved", "dual gained, of plain"]
    bits = given.bits[0]
    start = trained(bits, given)
    passes: dict[str, Callable[[State], None]] = {
        PLAIN: visit_all,
        "**DOT of all, then visits of movers**": visit_movers,
    }
    for size in given.sizes:
        passes[f"blocks of {size:,}, Gram matrix of all"] = partial(by_blocks, size=size, whole=True)
    for size in (*given.sizes, 8 * given.sizes[-1]):
        passes[f"blocks of {size:,}, Gram matrix of movers"] = partial(by_blocks, size=size, whole=False)
    size = given.sizes[-1]
    passes[f"blocks of {size:,}, Gram matrix of movers, {SWEEPS} steps each"] = partial(
        by_blocks, size=size, whole=False, sweeps=SWEEPS
    )
    few = start.copy()
    few.windows = few.windows.slice(0, 64)
    for run in passes.values():
        run(few)  # compiles
    done: dict[str, tuple[float, State]] = {}
    for _ in range(max(1, given.repeat // 2)):
        for name, run in passes.items():
            state = start.copy()
            began = thread_time()
            run(state)
            seconds = thread_time() - began
            if name not in done or seconds < done[name][0]:
                done[name] = seconds, state
    plain = done[PLAIN][1].dual() - start.dual()
    rows = []
    for name, (seconds, state) in done.items():
        moved = int((state.alpha != start.alpha).sum())
        cells = [f"{seconds:.2f}", f"{state.gram / seconds:.0%}", f"{moved:,}"]
        rows.append([name, *cells, f"{(state.dual() - start.dual()) / plain:.2f}"])
    return f"{bits} bits, {len(start.alpha):,} windows, {given.trained:,} of them known:\n\n" + table(head, rows)


def trained(bits: int, given: Setting) -> State:
    """Windows in random order, w and alpha of some of them; the others are new."""
    rows = some_rows(given.passed, given.windows)
    windows, signs = given.windows.take(rows), given.signs[rows]
    phi = weighted_degree(bits, windows)
    known = some_rows(given.trained, windows)
    examples = InMemory(phi, windows.take(known))
    problem = Problem(examples, Columns.of([signs[known]], np.ones(len(known))), intercept=Intercept.NONE)
    result = dcd(problem, Settings(tol=0.1))[0]
    alpha = np.zeros(len(rows))
    alpha[known] = result.alpha
    return State(phi, windows, signs, phi.squared_norms(windows, np.arange(len(rows))), alpha, result.w)


def visit_all(state: State) -> None:
    """Dual coordinate descent as it is written: DOT, step, ADD, window by window."""
    _visit_rows(state, np.arange(len(state.windows)))


def visit_movers(state: State) -> None:
    """What dcd does where DOT of many windows is cheap."""
    rows = np.arange(len(state.windows))
    _visit_rows(state, rows[state.would_move(rows, state.outputs(rows))])


def by_blocks(state: State, size: int, whole: bool, sweeps: int = 1) -> None:
    """The block method. `whole`: all windows of a block take part, not only those that would move at its beginning."""
    for first in range(0, len(state.windows), size):
        rows = np.arange(first, min(first + size, len(state.windows)))
        outputs = state.outputs(rows)
        if not whole:
            movers = state.would_move(rows, outputs)
            rows, outputs = rows[movers], outputs[movers]
        if len(rows) == 0:
            continue
        began = thread_time()
        matrix = gram_matrix(state, rows)
        state.gram += thread_time() - began
        changes = np.zeros(len(rows))
        for _ in range(sweeps):
            _descend_inside(matrix, rows, state.signs, state.norms, outputs, state.alpha, changes)
        moved = changes != 0.0
        state.phi.add(state.windows, rows[moved], changes[moved], state.w)


def gram_matrix(state: State, rows: np.ndarray) -> np.ndarray:
    """<phi(z_i), phi(z_j)> of these rows."""
    block = Block.scratch(np.full(len(rows), int(np.max(state.phi.bound(state.windows)))), state.phi.dim)
    state.phi.fill(state.windows, rows, block)
    indices, values = as_arrays(block, len(rows))
    matrix = np.empty((len(rows), len(rows)), np.float32)
    _compare(indices, values[0] ** 2, matrix)
    return matrix


def _visit_rows(state: State, rows: np.ndarray) -> None:
    for block, _, some in Filling(state.phi, state.windows).blocks(rows):
        _descend(
            block.start, block.end, block.indices, block.values, some,
            state.signs, state.norms, state.alpha, state.w,
        )  # fmt: skip


@kernel
def _descend(start, end, indices, values, rows, signs, norms, alpha, w):
    """One step for each row of a block."""
    for j in range(len(rows)):
        i = rows[j]
        margin = signs[i] * row_dot(indices, values, start[j], end[j], w)
        change = dual_step(HINGE, alpha[i], 1.0, margin, norms[i]) - alpha[i]
        if change != 0.0:
            alpha[i] += change
            row_add(indices, values, start[j], end[j], w.dtype.type(change * signs[i]), w)


@kernel
def _descend_inside(matrix, rows, signs, norms, outputs, alpha, changes):
    """One step for each row; outputs follow through the Gram matrix. w has yet to gain changes[j] times row j."""
    for j in range(len(rows)):
        i = rows[j]
        change = dual_step(HINGE, alpha[i], 1.0, signs[i] * outputs[j], norms[i]) - alpha[i]
        if change != 0.0:
            alpha[i] += change
            changes[j] += change * signs[i]
            for other in range(np.uint64(len(rows))):
                outputs[other] += change * signs[i] * matrix[j, other]


@kernel
def _compare(indices, squares, out):
    """out[i, j]: the squared values of the places at which rows i and j have the same slot, summed up."""
    width = np.uint64(indices.shape[1])
    for i in range(len(indices)):
        row = indices[i]
        for j in range(i, len(indices)):
            other = indices[j]
            total = np.float32(0.0)
            for k in range(width):
                total += squares[k] if row[k] == other[k] else np.float32(0.0)
            out[i, j] = out[j, i] = total
