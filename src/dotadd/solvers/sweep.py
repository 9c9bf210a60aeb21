"""The sweep of dual coordinate descent over rows: what dcd, stream, the block minimisers and parts of a cluster share.

Each step takes one example, DOTs it with w, moves its alpha to the exact optimum and ADDs the change to w. Examples
whose alpha sits at a bound and wants to stay there, by more than the thresholds, become inactive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel, prefetch
from dotadd._util.threads import for_each
from dotadd.core.block import row_add, row_dot
from dotadd.core.losses import HINGE, LOGISTIC, SQUARED_HINGE, Loss, dual_step, dual_term, value
from dotadd.features.filling import Picked
from dotadd.problem.columns import BinaryColumn
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Centre, Intercept
from dotadd.solvers.partner import (
    BASE,
    are_together,
    hear_sum,
    join,
    new_talk,
    partner,
    say_coefficient,
    say_sum,
    stay_together,
    worth_it,
)

# The running numbers of one binary problem, in one array so that a kernel call leaves them consistent. HALF_NORM is
# |w|^2 / 2, and less than that by what w began with where it is drawn to a centre.
INTERCEPT, BALANCE, DUAL_TERMS, HALF_NORM, GAP, PG_MAX, PG_MIN, OLD_PG_MAX, OLD_PG_MIN, ACTIVE = range(10)
N_NUMBERS = 10
SEVERAL = 4  # binary problems: fewer are not worth threads for each block
AHEAD = 3  # rows: the next but two is fetched into the cache while this one is worked on


class Descent:
    """The w of one binary problem on its way by coordinate descent, and the numbers that run along with it."""

    def __init__(self, w: np.ndarray, intercept: Intercept, centre: Centre | None = None) -> None:
        self.w, self.intercept = w, intercept
        self.origin = 0.0 if centre is None else centre.b
        self.numbers = np.zeros(N_NUMBERS)
        self.numbers[INTERCEPT] = self.origin
        self.visited = 0
        """Rows of the order of this sweep that are done."""
        self.talk = new_talk()
        self.forget_thresholds()

    @property
    def b(self) -> float:
        return float(self.numbers[INTERCEPT])

    @property
    def gap(self) -> float:
        """The local gaps of the rows that this sweep has visited, each as it was before its step."""
        return float(self.numbers[GAP])

    @property
    def active(self) -> int:
        """How many of the rows that this sweep has visited may move again."""
        return int(self.numbers[ACTIVE])

    def begin_sweep(self) -> None:
        """Forget what the last sweep has summed up."""
        self.visited = 0
        self.numbers[GAP], self.numbers[ACTIVE] = 0.0, 0
        self.numbers[PG_MAX], self.numbers[PG_MIN] = -np.inf, np.inf

    def end_sweep(self) -> None:
        """Make the largest projected gradients of this sweep the thresholds of the next one."""
        highest, lowest = self.numbers[PG_MAX], self.numbers[PG_MIN]
        self.set_thresholds(highest if highest > 0.0 else np.inf, lowest if lowest < 0.0 else -np.inf)

    def set_thresholds(self, highest: float, lowest: float) -> None:
        """Let examples at a bound become inactive whose projected gradients lie beyond these."""
        self.numbers[OLD_PG_MAX], self.numbers[OLD_PG_MIN] = highest, lowest

    def forget_thresholds(self) -> None:
        """Let no example become inactive in the next sweep."""
        self.set_thresholds(np.inf, -np.inf)

    @property
    def dual(self) -> float:
        """D(alpha), as far as rounding lets the running numbers tell."""
        dual = float(self.numbers[DUAL_TERMS] - self.numbers[HALF_NORM])
        if self.intercept is Intercept.REGULARIZED:
            dual -= 0.5 * (self.b * self.b - self.origin * self.origin)
        return dual

    @property
    def multiplier_term(self) -> float:
        """What a free intercept takes from the sum of the local gaps while sum_i alpha_i y_i is not 0."""
        return float(self.numbers[INTERCEPT] * self.numbers[BALANCE]) if self.intercept is Intercept.FREE else 0.0

    def move_multiplier(self, step: float) -> None:
        """The method of multipliers for a free intercept, after a pass. Moved more often it runs away."""
        if self.intercept is Intercept.FREE:
            self.numbers[INTERCEPT] += step * self.numbers[BALANCE]


class Variables(NamedTuple):
    """What a sweep reads and moves of some rows, for one binary problem; `active` says which may still move."""

    column: BinaryColumn
    alpha: np.ndarray
    active: np.ndarray


def sweep(
    examples: InMemory,
    order: np.ndarray,
    moved: Sequence[tuple[Descent, Variables]],
    norms: np.ndarray,
    step: float,
    loss: Loss,
    *,
    shrink: bool = True,
    seconds: dict[str, float] | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Visit these rows in this order. All binary problems work on each block while it is there.

    `step` is by how much the intercept moves with an alpha, and `norms` are |phi(z_i)|^2 + step. Between two blocks,
    where everything belongs together, check() may raise. Where the time goes is added to `seconds`.
    """
    seconds = {} if seconds is None else seconds
    mark = perf_counter()
    with _help(examples, order, moved):
        for number, picked in enumerate(examples.blocks(order, ahead=True, focus=True)):
            if number:
                check()
            expanded = perf_counter()
            visit = partial(_visit, picked, norms, step, int(loss), shrink)
            for_each(moved, visit, examples.threads if len(moved) >= SEVERAL else 1)
            done = perf_counter()
            seconds["expand"] = seconds.get("expand", 0.0) + expanded - mark
            seconds["descend"] = seconds.get("descend", 0.0) + done - expanded
            mark = done


def _help(
    examples: InMemory, order: np.ndarray, moved: Sequence[tuple[Descent, Variables]]
) -> AbstractContextManager[None]:
    """Another thread that takes a half of the work, where there is a single problem and its rows are long."""
    block, (descent, variables) = examples.view, moved[0]
    if len(moved) > 1 or examples.threads == 1 or block is None or not worth_it(block, order):
        return nullcontext()
    descent.talk[BASE] = 0.0
    return partner(block, order, variables.active, descent.w, descent.talk)


def _visit(
    picked: Picked, norms: np.ndarray, step: float, loss: int, shrink: bool, moved: tuple[Descent, Variables]
) -> None:
    (block, at, rows), (descent, (column, alpha, active)) = picked, moved
    descend(
        block.start, block.end, block.indices, block.values, at, rows, block.mid, block.cold,
        *column, norms, step, loss, shrink, alpha, active, descent.w, descent.numbers,
        None if block.mid is None else descent.talk,
    )  # fmt: skip
    descent.visited += len(rows)
    descent.talk[BASE] += len(rows)


@kernel
def would_move(loss, margins, cost, alpha):
    """Of each example, whether its alpha is not where it should be for this margin."""
    out = np.empty(len(margins), np.uint8)
    for i in range(len(margins)):
        c, a, m = cost[i], alpha[i], margins[i]
        if loss == LOGISTIC:
            stays = False
        elif a == 0.0:
            stays = m >= 1.0
        else:
            stays = loss == HINGE and a == c and m <= 1.0
        out[i] = c > 0.0 and not stays
    return out


@kernel
def descend(
    start, end, indices, values, at, rows, mid, cold,
    codes, signs, costs, weight, norms, step, loss, shrink,
    alpha, active, w, numbers, talk,
):  # fmt: skip
    """Algorithm 3 over the rows of one block. `cold`: the rows lie far away, so fetch them ahead of their turn.

    Where rows are in two parts, a partner may do the second ones (partner.py).
    """
    b, balance = numbers[INTERCEPT], numbers[BALANCE]
    dual_terms, half_norm, gap = numbers[DUAL_TERMS], numbers[HALF_NORM], numbers[GAP]
    pg_max, pg_min, kept = numbers[PG_MAX], numbers[PG_MIN], numbers[ACTIVE]
    old_pg_max, old_pg_min = numbers[OLD_PG_MAX], numbers[OLD_PG_MIN]
    n, weighted = len(at), len(weight) > 0
    together, split = False, np.int64(0)
    if mid is not None:
        base = np.int64(talk[BASE])
        together = are_together(talk)
    for j in range(n):
        if cold and j + 2 * AHEAD < n:
            far = np.uint64(rows[j + 2 * AHEAD])
            prefetch(start, far)
            prefetch(alpha, far)
            prefetch(norms, far)
            prefetch(codes, far)
            if weighted:
                prefetch(weight, far)
            near = np.uint64(at[j + AHEAD])
            first, stop = np.uint64(start[near]), np.uint64(end[near])
            for k in range(first, min(stop, first + np.uint64(128)), np.uint64(16)):  # a line of the cache at a time
                if indices is not None:
                    prefetch(indices, k)
                if values is not None:
                    prefetch(values, k)
        i = np.uint64(rows[j])
        if active[i] == 0:
            continue
        lo, hi = start[np.uint64(at[j])], end[np.uint64(at[j])]
        y, c, a = np.float64(signs[codes[i]]), costs[codes[i]], alpha[i]
        if weighted:
            c *= weight[i]
        if mid is None:
            output = row_dot(indices, values, lo, hi, w)
        else:
            split, row = mid[np.uint64(at[j])], base + np.int64(j)
            together = (together and stay_together(talk)) or join(talk, row)
            output = row_dot(indices, values, lo, split, w)
            if not together:
                say_sum(talk, row, row_dot(indices, values, split, hi, w))
            output += hear_sum(talk, row, together)
        m = y * (output + b)
        old_term = dual_term(loss, a, c)
        gap += c * value(loss, m) - old_term + a * m
        if loss != LOGISTIC:
            pg = m - 1.0
            if loss == SQUARED_HINGE:
                pg += 0.5 * a / c
            if a == 0.0:
                if shrink and pg > old_pg_max:
                    active[i] = 0
                    if mid is not None:
                        say_coefficient(talk, row, 0.0)
                    continue
                pg = min(pg, 0.0)
            elif a == c and loss == HINGE:
                if shrink and pg < old_pg_min:
                    active[i] = 0
                    if mid is not None:
                        say_coefficient(talk, row, 0.0)
                    continue
                pg = max(pg, 0.0)
            pg_max, pg_min = max(pg_max, pg), min(pg_min, pg)
            if abs(pg) <= 1e-12:
                kept += 1
                if mid is not None:
                    say_coefficient(talk, row, 0.0)
                continue
        kept += 1
        new = dual_step(loss, a, c, m, norms[i])
        change = new - a
        if mid is not None:
            say_coefficient(talk, row, change * y)
        if change != 0.0:
            alpha[i] = new
            half_norm += change * (m - y * b) + 0.5 * change * change * (norms[i] - step)
            dual_terms += dual_term(loss, new, c) - old_term
            row_add(indices, values, lo, split if together else hi, w.dtype.type(change * y), w)
            b += step * change * y
            balance += change * y
    numbers[INTERCEPT], numbers[BALANCE] = b, balance
    numbers[DUAL_TERMS], numbers[HALF_NORM], numbers[GAP] = dual_terms, half_norm, gap
    numbers[PG_MAX], numbers[PG_MIN], numbers[ACTIVE] = pg_max, pg_min, kept
