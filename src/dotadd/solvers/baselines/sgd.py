"""Stochastic gradient descent with averaging (Bottou 2010; Xu 2011), and Pegasos (Shalev-Shwartz et al. 2007).

Problem:  min_w P(w, b) / sum_i C_i = lambda/2 |w|^2 + mean_i c_i loss(m_i),  lambda = 1 / sum_i C_i, mean_i c_i = 1
Given:    examples as blocks, signs y, costs C
Returned: the average of w over all but the first pass (or the last w, where that is better), and the primal objective

The step size at step t is eta_0 / (1 + lambda eta_0 t). There are two schedules:

    calibrated   the eta_0 that does best on a sample of the data (Bottou)
    pegasos      eta_0 = 1 / (2 lambda), so that the step size is 1 / (lambda (t + 2)) whatever the data

The step is implicit: the gradient is taken at the point the step leads to, not at the one it leaves, which makes it
the dual step of coordinate descent with alpha from 0 and cost eta c. It never overshoots: where the explicit step
with a poor eta_0 runs away (the COFFIN paper saw SGD "fail miserably"), this one is merely slower.

The intercept's steps are `rate` times those of w, with rate = the mean of |phi(z)|^2 where that is below 1: features
much smaller than the constant 1 would otherwise hardly move.

w is kept as scale * v, so that the shrinking by 1 - eta lambda costs nothing; the average as g * (a + f * v), so that
a step touches only the non-zeros of its example.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import perf_counter

import numpy as np

from dotadd._jit import kernel
from dotadd.core.block import row_add, row_dot, row_numbers, squared_length
from dotadd.core.losses import dual_step, total_loss, value
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.free_intercept import best_intercept
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.run import Run, Settings, shuffle
from dotadd.solvers.saving import Saved, Saving, State

SAMPLE = 1000  # examples that the calibration looks at
PATIENCE = 3  # passes that may go by without an improvement, since each pass's estimate is noisy
PATIENT_STEPS = 50_000  # or steps, if the passes are short
# The running numbers of one binary problem.
SCALE, INTERCEPT, STEPS, AVERAGE_G, AVERAGE_F, AVERAGE_INTERCEPT, LOSS, SQUARED_LENGTH = range(8)
N_NUMBERS = 8


class _State(Run):
    """One binary problem on its way: v, the average's a, and the running numbers."""

    def __init__(self, problem: Problem[InMemory], k: int) -> None:
        super().__init__(k, problem.zeros())
        self.v, self.a = self.w, problem.zeros()  # w is made of them at the end
        self.numbers = np.zeros(N_NUMBERS)
        self.best: list[float] = []  # objective met so far, after each pass
        self.clear()

    def clear(self) -> None:
        self.v[:] = 0.0
        self.a[:] = 0.0
        self.numbers[:] = 0.0
        self.numbers[SCALE] = self.numbers[AVERAGE_G] = 1.0

    def state(self) -> State:
        return super().state() | {"a": self.a, "numbers": self.numbers, "best": self.best}

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        saved.into("a", self.a)
        saved.into("numbers", self.numbers)
        self.best = saved["best"]

    def primal(self, problem: Problem[InMemory]) -> float:
        """The objective as the latest pass has met it, each example before its step."""
        penalty = 0.5 * self.numbers[SQUARED_LENGTH]
        if problem.intercept is Intercept.REGULARIZED:
            penalty += 0.5 * self.numbers[INTERCEPT] ** 2
        return penalty + self.numbers[LOSS]

    def last(self) -> tuple[np.ndarray, float]:
        return self.v * self.v.dtype.type(self.numbers[SCALE]), float(self.numbers[INTERCEPT])

    def average(self) -> tuple[np.ndarray, float]:
        g, f = (self.v.dtype.type(self.numbers[name]) for name in (AVERAGE_G, AVERAGE_F))
        return g * (self.a + f * self.v), float(self.numbers[AVERAGE_INTERCEPT])


def sgd(
    problem: Problem[InMemory], settings: Settings, *, schedule: str = "calibrated", average: bool = True
) -> list[Result]:
    """Minimise each binary problem of `problem` until a pass improves the objective by less than `settings.tol`."""
    if schedule not in ("calibrated", "pegasos"):
        raise ValueError(f"unknown schedule {schedule!r}; choose from calibrated, pegasos")
    clock = Clock(settings.max_time)
    clock.seconds = seconds = {"expand": 0.0, "calibrate": 0.0, "descend": 0.0, "certify": 0.0}
    states = [_State(problem, k) for k in range(len(problem))]
    norms = problem.examples.squared_norms()
    rate = 0.0 if problem.intercept is Intercept.NONE else min(1.0, float(norms.mean()))
    norms += rate
    seconds["expand"] = clock.elapsed()
    rng = settings.rng()
    rows, visited, eta_0 = row_numbers(problem.columns.cost(0) > 0.0), 0, 0.5 * float(problem.columns.cost(0).sum())
    saving = Saving(settings, clock, states, lambda: {"order": rows, "visited": visited, "rng": rng, "eta_0": eta_0})
    if (saved := saving.resume()) is not None:
        rows, visited, rng, eta_0 = (saved[name] for name in ("order", "visited", "rng", "eta_0"))
    elif schedule == "calibrated":
        with clock.timed("calibrate"):
            eta_0 = _calibrate(problem, states, norms, rate, rows, rng)

    patience = max(PATIENCE, PATIENT_STEPS // max(1, len(rows)))
    with clock:
        limit = Reason.MAX_PASSES
        try:
            passes = max(state.passes for state in states)
            while passes < settings.max_passes and (running := [state for state in states if state.reason is None]):
                saving.between_steps()
                if not visited:
                    shuffle(rows, rng)
                    for state in running:
                        state.numbers[LOSS] = 0.0
                for count in _pass(problem, running, norms, rate, rows[visited:], eta_0, average, clock):
                    visited += count
                    clock.check()
                passes, visited = passes + 1, 0
                for state in running:
                    primal = state.primal(problem)
                    state.passes = passes
                    progress = Progress(passes, clock.elapsed(), primal, np.nan, np.nan, len(rows), len(norms))
                    state.tell(progress, clock, settings.on_progress)
                    if state.reason is not None:
                        continue
                    state.best.append(min(primal, state.best[-1]) if state.best else primal)
                    if passes > patience and state.best[-1 - patience] <= (1.0 + settings.tol) * state.best[-1]:
                        state.reason = Reason.STALLED
                clock.obey()
        except StoppedError as stopped:
            limit = stopped.reason
        saving.at_the_end()
        for state in states:
            state.reason = state.reason or limit
        try:
            with clock.proof(), clock.timed("certify"):
                answers = _best(problem, states)
        except StoppedError as stopped:  # nobody knows how good they are
            answers = [(np.nan, *reversed(state.last())) for state in states]
            for state in states:
                state.reason = stopped.reason
    for state, (primal, b, w) in zip(states, answers, strict=True):
        state.w = w
        state.primal_alone(primal, b)
    return [state.result(seconds) for state in states]


def _best(problem: Problem[InMemory], states: list[_State]) -> list[tuple[float, float, np.ndarray]]:
    """Objective, b and w of the last iterate or the average, whichever is better, for each problem."""
    candidates = [[state.last()] + ([state.average()] if state.numbers[AVERAGE_F] > 0.0 else []) for state in states]
    outputs = iter(problem.outputs([w for pairs in candidates for w, _ in pairs]))
    return [
        min((_judge(problem, state.k, w, b, next(outputs)) for w, b in pairs), key=lambda one: one[0])
        for state, pairs in zip(states, candidates, strict=True)
    ]


def _judge(
    problem: Problem[InMemory], k: int, w: np.ndarray, b: float, output: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """The objective of an answer, whose free intercept is set to its best value, since the outputs are there."""
    if problem.intercept is Intercept.FREE:
        b = best_intercept(problem.loss, output, problem.columns.sign(k), problem.columns.cost(k))
    return problem.primal(w, b, problem.margins(output, b, k), k), b, w


def _pass(
    problem: Problem[InMemory],
    states: list[_State],
    norms: np.ndarray,
    rate: float,
    rows: np.ndarray,
    eta_0: float,
    average: bool,
    clock: Clock,
) -> Iterator[int]:
    """One pass over these rows in this order; all problems work on a block while it is there. After each block it tells
    how many rows that had."""
    columns = problem.columns
    total, weighted = float(columns.cost(0).sum()), np.count_nonzero(columns.cost(0))
    average_after = weighted if average else np.iinfo(np.int64).max
    seconds = clock.seconds
    mark = perf_counter()
    for block, at, some in problem.examples.blocks(rows, ahead=True):
        expanded = perf_counter()
        seconds["expand"] += expanded - mark
        for state in states:
            _descend(
                block.start, block.end, block.indices, block.values, at, some,
                columns.sign(state.k), columns.cost(state.k), norms, int(problem.loss),
                weighted / total, 1.0 / total, eta_0, average_after,
                rate, problem.intercept is Intercept.REGULARIZED,
                state.v, state.a, state.numbers,
            )  # fmt: skip
        mark = perf_counter()
        seconds["descend"] += mark - expanded
        yield len(some)


def _calibrate(
    problem: Problem[InMemory], states: list[_State], norms: np.ndarray, rate: float, rows: np.ndarray, rng: np.ndarray
) -> float:
    """The eta_0 whose pass over a sample ends at the lowest objective there; doubled or halved while that helps."""
    order = rows.copy()
    shuffle(order, rng)
    sample = order[:SAMPLE]
    unlimited = Clock()
    cost = problem.columns.cost(0)
    share = float(cost[sample].sum() / cost.sum())

    def objective(eta_0: float) -> float:
        total = 0.0
        for state in states:
            state.clear()
        deque(_pass(problem, states, norms, rate, sample, eta_0, False, unlimited), 0)
        for state in states:
            w, b = state.last()
            margins = problem.columns.sign(state.k, sample) * (problem.outputs([w], sample)[0] + b)
            total += share * 0.5 * squared_length(w) + total_loss(problem.loss, margins, cost[sample])
        return total

    eta_0 = 1.0 / max(1e-12, float(norms[sample].mean()))
    best = objective(eta_0)
    for factor in (2.0, 0.5):
        tried = best
        while (trial := objective(eta_0 * factor)) < best:
            eta_0, best = eta_0 * factor, trial
        if best < tried:
            break
    for state in states:
        state.clear()
    return eta_0


@kernel
def _descend(
    start, end, indices, values, at, rows,
    sign, cost, norms, loss, normalizer, decay, eta_0, average_after, rate, shrink_intercept,
    v, a, numbers,
):  # fmt: skip
    """Steps over the rows of one block."""
    scale, b, t = numbers[SCALE], numbers[INTERCEPT], numbers[STEPS]
    g, f, b_average = numbers[AVERAGE_G], numbers[AVERAGE_F], numbers[AVERAGE_INTERCEPT]
    squared, total = numbers[SQUARED_LENGTH], numbers[LOSS]
    for j in range(len(at)):
        i = np.uint64(rows[j])
        lo, hi = start[np.uint64(at[j])], end[np.uint64(at[j])]
        y, c = np.float64(sign[i]), cost[i] * normalizer
        output = scale * row_dot(indices, values, lo, hi, v)
        total += cost[i] * value(loss, y * (output + b))
        eta = eta_0 / (1.0 + decay * eta_0 * t)
        shrink = 1.0 - eta * decay
        scale *= shrink
        squared *= shrink * shrink
        output *= shrink
        if shrink_intercept:
            b *= 1.0 - eta * rate * decay
        m = y * (output + b)
        change = y * dual_step(loss, 0.0, eta * c, m, norms[i])
        if change != 0.0:
            row_add(indices, values, lo, hi, v.dtype.type(change / scale), v)
            if f != 0.0:
                row_add(indices, values, lo, hi, v.dtype.type(-f * change / scale), a)
            squared += change * (2.0 * output + change * (norms[i] - rate))
            b += rate * change
        t += 1.0
        if t > average_after:
            mu = 1.0 / (t - average_after)
            if mu == 1.0:
                g, f = 1.0, scale
                b_average = b
            else:
                g *= 1.0 - mu
                f += mu * scale / g
                b_average += mu * (b - b_average)
        if scale < 1e-4:
            v *= v.dtype.type(scale)
            f /= scale
            scale = 1.0
    numbers[SCALE], numbers[INTERCEPT], numbers[STEPS] = scale, b, t
    numbers[AVERAGE_G], numbers[AVERAGE_F], numbers[AVERAGE_INTERCEPT] = g, f, b_average
    numbers[SQUARED_LENGTH], numbers[LOSS] = squared, total
