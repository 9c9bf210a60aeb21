"""Dual coordinate descent (Hsieh et al. 2008, algorithm 3; Yu, Huang and Lin 2011 for the logistic loss).

Problem:  max_alpha D(alpha) = sum_i dual_term(alpha_i) - 1/2 |w|^2,  w = sum_i alpha_i y_i phi(z_i)
Given:    examples as blocks, signs y, costs C
Returned: w, b, alpha and the relative duality gap, for each of the binary problems

Each step takes one example, DOTs it with w, moves its alpha to the exact optimum and ADDs the change to w. Examples
whose alpha sits at a bound and wants to stay there are shrunk away; the thresholds are LIBLINEAR's.

The stop is the duality gap itself, and it comes almost for nothing. For any alpha,

    P(w) - D(alpha) = sum_i [ C_i loss(m_i) - dual_term(alpha_i) + alpha_i m_i ],

a sum over examples of terms >= 0, each known at the moment its example is visited, and exactly 0 for an example that
is rightly shrunk. So a pass sums up an estimate of the gap, and only when the estimate is within the tolerance are all
margins computed anew, for the sum itself; they also tell which shrunk examples must come back.

In floating point w drifts away from sum_i alpha_i y_i phi(z_i). The margins are those of w as it is, and each step
corrects them, so w stays good for the primal; the identity above gains the term |w - sum_i alpha_i y_i phi(z_i)|^2 / 2,
which is added at the end, the sum built from scratch in float64.

Where a DOT of many examples at once is much cheaper than visits (`bulk`, see expand.py), training begins on a sample
(sample.py), and all margins are computed not only at the end but whenever the examples at hand are solved three times
as well as all were: only examples that would move are visited until then.

A free intercept puts sum_i alpha_i y_i = 0 on the dual; it is met by the method of multipliers, the intercept being
the multiplier, updated after each pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from dotadd._jit import kernel
from dotadd.block import squared_length
from dotadd.losses import HINGE, LOGISTIC, Loss, total_dual_term
from dotadd.solvers import descent
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.descent import ACTIVE, BALANCE, DUAL_TERMS, GAP, HALF_NORM, INTERCEPT, N_NUMBERS, descend
from dotadd.solvers.free_intercept import balance, best_intercept
from dotadd.solvers.problem import Intercept, Problem
from dotadd.solvers.proof import Certificate, Rounding, RowSums
from dotadd.solvers.result import Progress, Reason, Result, passes_told, relative_gap
from dotadd.solvers.sample import Sample
from dotadd.solvers.settings import Settings, row_numbers, shuffle

SETTLED = 0.3  # of the last measured gap: then the examples that are visited have told what they can


class _State:
    """One binary problem on its way: its variables, its running numbers, its trace, its answer once there is one."""

    def __init__(self, problem: Problem, k: int, alpha: np.ndarray, w: np.ndarray) -> None:
        self.problem, self.k, self.alpha, self.w = problem, k, alpha, w
        self.active = (problem.cost > 0.0).astype(np.uint8)
        self.numbers = np.zeros(N_NUMBERS)
        self.trace: list[Progress] = []
        self.target, self.failures, self.look_again = 0.0, 0, 0
        self.reason: Reason | None = None
        self.sums = RowSums()
        self.primal = self.gap = np.nan
        self.certificate: Certificate | None = None
        self.restart()

    @property
    def intercept(self) -> float:
        return float(self.numbers[INTERCEPT])

    def restart(self) -> None:
        """Set the running numbers from alpha and w, and forget the shrinking thresholds."""
        problem, numbers = self.problem, self.numbers
        numbers[BALANCE] = float(self.alpha @ problem.signs[self.k])
        if problem.intercept is Intercept.REGULARIZED:
            numbers[INTERCEPT] = numbers[BALANCE]
        numbers[DUAL_TERMS] = total_dual_term(problem.loss, self.alpha, problem.cost)
        numbers[HALF_NORM] = 0.5 * squared_length(self.w)
        descent.forget_thresholds(numbers)
        numbers[ACTIVE] = self.active.sum()

    def measured(self, sums: RowSums) -> None:
        """Take note of primal and gap at the margins of all rows; what rounding adds is only known at the end."""
        self.sums, self.certificate = sums, None
        self.primal = sums.primal(self.w, self.problem.intercept, self.intercept)
        self.gap = relative_gap(self.primal, sums.gaps)

    def prove(self, distance: float) -> None:
        """Judge the answer as it was measured, given |w - w_alpha|^2."""
        self.certificate = self.sums.certificate(self.w, self.problem.intercept, self.intercept, distance)

    def look_later(self, tol: float, bulk: bool) -> None:
        """Decide after a look at all margins, at which estimate of the gap to take the next one."""
        if bulk:
            missed = tol / self.gap if self.target <= tol < self.gap else 1.0
            self.target = max(SETTLED * self.gap, tol * missed)
            return
        # The estimate was too rosy: examples had been shrunk wrongly, or it is close to the tolerance. A look costs a
        # pass over all examples, so the wait for the next one grows with the failures.
        self.failures += 1
        self.look_again = len(self.trace) + 1 + self.failures

    def ready(self) -> bool:
        """Whether the latest pass calls for a look at all margins."""
        latest = self.trace[-1]
        return latest.active == 0 or (latest.gap <= self.target and latest.passes >= self.look_again)

    def end_pass(self, seconds: float, multiplier_step: float, sample: int | None) -> Progress:
        """The estimates that this pass has summed up; the multiplier's update for a free intercept."""
        numbers, intercept = self.numbers, self.problem.intercept
        descent.end_sweep(numbers)
        dual = descent.dual_objective(numbers, intercept)
        gap = numbers[GAP] - descent.multiplier_term(numbers, intercept)
        descent.move_multiplier(numbers, intercept, multiplier_step)
        primal = dual + gap
        relative = relative_gap(primal, abs(gap)) if primal != 0.0 else 0.0
        active, rows = int(numbers[ACTIVE]), len(self.alpha)
        progress = Progress(len(self.trace) + 1, seconds, primal, dual, relative, active, rows, sample)
        self.trace.append(progress)
        return progress


def dcd(
    problem: Problem, settings: Settings, *, alphas: Sequence[np.ndarray] | None = None, shrink: bool = True
) -> list[Result]:
    """Solve each binary problem of `problem` to a relative duality gap of `settings.tol`.

    `alphas` is a warm start: dual variables of an earlier Result, moved into their bounds where C has changed.
    """
    clock = Clock(settings.max_time)
    clock.seconds = seconds = {"expand": 0.0, "descend": 0.0, "certify": 0.0}
    upper = np.inf if problem.loss is Loss.SQUARED_HINGE else problem.cost
    if alphas is None:
        starts = [_start(problem) for _ in problem.signs]
    else:
        starts = [np.where(problem.cost > 0.0, np.clip(np.asarray(a, np.float64), 0.0, upper), 0.0) for a in alphas]
    rng = settings.rng()
    bulk = problem.examples.bulk and problem.loss is not Loss.LOGISTIC  # whose dual variables are never 0
    sample = Sample(problem, rng, grows=bulk and shrink and alphas is None)
    ws = [problem.zeros() for _ in problem.signs]
    if any(alpha.any() for alpha in starts):
        problem.examples.add([alpha * sign for alpha, sign in zip(starts, problem.signs, strict=True)], ws)
    states = [_State(problem, k, alpha, w) for k, (alpha, w) in enumerate(zip(starts, ws, strict=True))]
    for state in states:
        state.active[sample.problem.cost == 0.0] = 0
        state.target = settings.tol if sample.whole else max(settings.tol, SETTLED)

    norms = problem.examples.squared_norms()
    step = {Intercept.NONE: 0.0, Intercept.REGULARIZED: 1.0}.get(problem.intercept, max(float(norms.mean()), 1e-3))
    norms += step
    seconds["expand"] = clock.elapsed()

    with clock:
        limit = Reason.MAX_PASSES
        try:
            if alphas is not None:
                with clock.anywhere():
                    _measure(sample, states, norms, step, seconds)
                for state in states:
                    state.reason = Reason.CONVERGED if state.gap <= settings.tol else None
            for _ in range(settings.max_passes):
                running = [state for state in states if state.reason is None]
                if not running:
                    break
                done = _pass(problem, running, norms, step, rng, shrink, clock)
                for state in done:
                    progress = state.end_pass(clock.elapsed(), step, None if sample.whole else sample.size)
                    clock.tell(settings.on_progress, progress, state.k)
                    if not np.isfinite(progress.primal):
                        state.reason = Reason.DIVERGED
                clock.obey()
                running = [state for state in running if state.reason is None]
                ready = [state for state in done if state.reason is None and state.ready()]
                if not sample.whole:
                    if len(ready) < len(running):
                        continue
                    sample.grow()
                with clock.anywhere():
                    _measure(sample, ready, norms, step, seconds)
                for state in ready:
                    if sample.whole and state.gap <= settings.tol:
                        state.reason = Reason.CONVERGED
                    else:
                        state.look_later(settings.tol, bulk)
        except StoppedError as stopped:
            limit = stopped.reason
        unfinished = [state for state in states if state.reason is None]
        for state in unfinished:
            state.reason = limit
        try:
            with clock.proof():
                _measure(Sample(problem, rng, grows=False), unfinished, norms, step, seconds)
                _prove(problem, states, seconds)
            for state in states:
                if state.reason is Reason.CONVERGED and state.certificate and state.certificate.gap > settings.tol:
                    state.reason = Reason.PRECISION
        except StoppedError as stopped:  # without the proof
            for state in states:
                state.certificate, state.reason = None, stopped.reason
    return [_result(state, seconds) for state in states]


def _start(problem: Problem) -> np.ndarray:
    """alpha = 0, but for the logistic loss, whose dual term has an infinite slope there."""
    if problem.loss is Loss.LOGISTIC:
        return np.minimum(0.001 * problem.cost, 1e-8)
    return np.zeros(len(problem.examples))


def _result(state: _State, seconds: dict[str, float]) -> Result:
    assert state.reason is not None
    primal, dual, gap, intercept, _ = state.certificate or Certificate.missing(state.intercept)
    return Result(
        w=state.w,
        intercept=intercept,
        alpha=state.alpha,
        primal=primal,
        dual=dual,
        gap=gap,
        reason=state.reason,
        passes=passes_told(len(state.trace), state.w, state.reason),
        seconds=seconds,
        trace=state.trace,
    )


def _pass(
    problem: Problem,
    states: list[_State],
    norms: np.ndarray,
    step: float,
    rng: np.ndarray,
    shrink: bool,
    clock: Clock,
) -> list[_State]:
    """One pass over the active examples in random order; returns the problems that came to its end.

    Where blocks must be expanded, all problems work on each block while it is there; rows that lie in memory anyway
    cost nothing to visit again, so there each problem makes its pass alone and has the cache for its own w. When time
    is short it then goes no further than its share of it, and the next one comes; each gets one block at least, which
    is less than the proof will take.
    """
    in_memory, seconds = problem.examples.in_memory, clock.seconds
    for state in states:
        descent.begin_sweep(state.numbers)
    groups = [[state] for state in states] if in_memory else [states]
    done: list[_State] = []
    for n, group in enumerate(groups):
        share = clock.share(len(groups) - n)
        order = row_numbers(np.logical_or.reduce([state.active for state in group]))
        shuffle(order, rng)
        mark = perf_counter()
        try:
            for number, (block, at, rows) in enumerate(problem.examples.blocks(order, ahead=True)):
                if number:
                    share.check()
                expanded = perf_counter()
                seconds["expand"] += expanded - mark
                for state in group:
                    descend(
                        block.start, block.end, block.indices, block.values, at, rows, in_memory,
                        problem.signs[state.k], problem.cost, norms, step, int(problem.loss), shrink,
                        state.alpha, state.active, state.w, state.numbers,
                    )  # fmt: skip
                mark = perf_counter()
                seconds["descend"] += mark - expanded
            done += group
        except StoppedError:  # its share of the time is over, and perhaps more than that
            clock.obey()
    clock.check()
    return done


def _measure(sample: Sample, states: list[_State], norms: np.ndarray, step: float, seconds: dict[str, float]) -> None:
    """Compute all margins of the sample, and from them primal and gap; wake the examples that would move."""
    if not states:
        return
    began = perf_counter()
    problem, rows = sample.problem, sample.rows
    if problem.intercept is Intercept.FREE:
        changes = [balance(state.alpha, problem.signs[state.k]) for state in states]
        problem.examples.add(changes, [state.w for state in states])
    for state, output in zip(states, problem.outputs([state.w for state in states], rows), strict=True):
        if rows is not None:  # the others have cost 0: whatever their output, they do not count
            given, output = output, np.zeros(len(problem.examples))
            output[rows] = given
        state.restart()
        sign = problem.signs[state.k]
        if problem.intercept is Intercept.FREE:
            state.numbers[INTERCEPT] = best_intercept(problem.loss, output, sign, problem.cost)
        margins = problem.margins(output, state.intercept, state.k)
        rounding = Rounding.of(state.w, state.intercept, problem.examples.longest)
        sums = RowSums.of(problem.loss, margins, state.alpha, sign, problem.cost, norms, rounding, beside=step)
        state.measured(sums)
        _wake(int(problem.loss), margins, problem.cost, state.alpha, state.active)
    seconds["certify"] += perf_counter() - began


def _prove(problem: Problem, states: list[_State], seconds: dict[str, float]) -> None:
    """Judge all answers, with what w differs from sum_i alpha_i y_i phi(z_i)."""
    began = perf_counter()
    coefficients = [state.alpha * problem.signs[state.k] for state in states]
    distances = problem.examples.squared_distances(coefficients, [state.w for state in states])
    for state, distance in zip(states, distances, strict=True):
        state.prove(distance)
    seconds["certify"] += perf_counter() - began


@kernel
def _wake(loss, margins, cost, alpha, active):
    """Mark as active each example whose alpha would move."""
    for i in range(len(margins)):
        c, a, m = cost[i], alpha[i], margins[i]
        if loss == LOGISTIC:
            stays = False
        elif a == 0.0:
            stays = m >= 1.0
        else:
            stays = loss == HINGE and a == c and m <= 1.0
        active[i] = c > 0.0 and not stays
