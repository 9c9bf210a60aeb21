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

Where a DOT of many examples at once is much cheaper than visits (`bulk`, see problem/examples.py), training begins on
a `Sample`, and all margins are computed not only at the end but whenever the examples at hand are solved
three times as well as all were: only examples that would move are visited until then.

What is returned is the best multiple of w, where w itself is not good enough yet (stretch.py). Now and then all margins
are computed anew to learn what it is worth, and to wake examples that have been shrunk wrongly.

After some passes every other one visits those examples more often whose steps have gained more (favour.py). When few
examples are left that move, and many passes would be needed, they are moved to their joint optimum (tail.py).

A free intercept puts sum_i alpha_i y_i = 0 on the dual; it is met by the method of multipliers, the intercept being
the multiplier, updated after each pass. A regularized one goes to meet that sum in much the same way
(slow_intercept.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import count
from time import perf_counter

import numpy as np

from dotadd._util.threads import for_each
from dotadd.core.block import row_numbers, squared_length
from dotadd.core.losses import Loss, total_dual_term
from dotadd.problem.examples import InMemory, Seen
from dotadd.problem.problem import Intercept, Problem, features_met
from dotadd.solvers.certify import Judge, certify
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.favour import FIRST, TRIED, Favour, gained
from dotadd.solvers.free_intercept import balance, best_intercept
from dotadd.solvers.proof import RowSums
from dotadd.solvers.result import Progress, Reason, Result, Support, passes_left, relative_gap
from dotadd.solvers.run import OnProgress, Run, Settings, shuffle
from dotadd.solvers.sample import Sample
from dotadd.solvers.saving import Saved, Saving, State
from dotadd.solvers.slow_intercept import SlowDescent
from dotadd.solvers.stretch import stretch
from dotadd.solvers.sweep import (
    ACTIVE,
    BALANCE,
    DUAL_TERMS,
    HALF_NORM,
    INTERCEPT,
    Variables,
    sweep,
    would_move,
)
from dotadd.solvers.tail import EARLIEST, FORESEEN, LOOK_BACK, has_tail, pays, room, solved_together

SETTLED = 0.3  # of the last measured gap: then the examples that are visited have told what they can
EVEN = 0.25  # of the passes: over fewer after a look, the gap is too uneven to tell a rate
LOOK_ANYWAY = 32  # passes, and twice, four times as many: examples may have been shrunk wrongly, or w be too short
SEEN = 20  # passes, before the number of those that are left is estimated
LOOK, TAIL, AFTER = "look", "tail", "after"
COUNTED = ("target", "failures", "look_again", "looked", "stretch", "tails", "next_tail", "next_favour", "next")
LAGGED = ("reach", "lag")  # the same of its intercept


class CreepingError(Exception):
    """Another solver should go on from these results, which nothing is proved of."""

    def __init__(self, results: list[Result]) -> None:
        super().__init__("coordinate descent creeps")
        self.results = results


class _State(Run):
    """One binary problem on its way: its variables and its running numbers."""

    alpha: np.ndarray

    def __init__(self, sample: Sample, k: int, alpha: np.ndarray, w: np.ndarray, rng: np.ndarray) -> None:
        super().__init__(k, w, alpha)
        self.sample = sample
        self.over_sample()
        problem = sample.whole_problem
        self.active = (self.cost > 0.0).astype(np.uint8)
        self.centre = problem.centre(k)
        self.began = 0.0 if self.centre is None else 0.5 * squared_length(self.centre.w)
        self.descent = SlowDescent(w, problem.intercept, self.centre)
        self.target, self.failures, self.look_again = 0.0, 0, 0
        self.looked = 0  # at this pass
        self.stretch = 1.0  # by which w and b are multiplied in the end (stretch.py)
        self.tails, self.next_tail = 0, 0
        self.favour: Favour | None = None  # which rows to visit more often than others, while that pays
        self.next_favour = FIRST  # pass, when to try that, or to see what it has gained; 0 for never again
        self.rng = rng
        self.order: np.ndarray | None = None  # of the rows in the pass that goes on
        self.next = ""  # before the next pass: LOOK, TAIL, or a look AFTER the tail
        self.judge: Judge | None = None  # what the latest look at all margins has told
        self.gap = np.nan
        self.restart()
        self.descent.meet()

    def over_sample(self) -> None:
        """Its variables are those of the examples that are visited now."""
        self.problem = problem = self.sample.problem
        self.sign, self.cost = problem.columns.sign(self.k), problem.columns.cost(self.k)

    def move(self, stay: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
        """Go on with the examples that are visited now: those of before in `stay` are at the places `old` among them,
        and new ones that are to move at the places `new`."""
        if self.order is not None:  # of a pass that was cut short
            to = np.full(len(stay), -1)
            to[stay] = old
            order = to[self.unvisited]
            self.order, self.descent.visited = order[order >= 0].astype(self.order.dtype), 0
        self.over_sample()
        alpha, active = np.zeros(len(self.cost)), np.zeros(len(self.cost), np.uint8)
        alpha[old], active[old], active[new] = self.alpha[stay], self.active[stay], 1
        self.alpha, self.active = alpha, active
        if self.judge is not None:  # what it knows of rows stands
            self.judge.alpha = alpha

    @property
    def intercept(self) -> float:
        return self.descent.b

    @property
    def rows(self) -> int:
        """How many examples there are, visited or not."""
        return len(self.sample.whole_problem.examples)

    @property
    def duals(self) -> np.ndarray | Support:
        rows = self.sample.rows
        return self.alpha if rows is None else Support(rows, self.alpha, self.rows)

    @property
    def variables(self) -> Variables:
        return Variables(self.problem.columns[self.k], self.alpha, self.active)

    def state(self) -> State:
        found = super().state() | {"active": self.active, "numbers": self.descent.numbers, "rng": self.rng}
        for names, owner in self._counted:
            found |= {name: getattr(owner, name) for name in names}
        if self.order is not None:
            found["order"] = self.unvisited
        if self.favour is not None:
            found |= self.favour.state()
        return found | {"sums": asdict(self.judge.rows) if self.done and self.judge is not None else None}

    @property
    def _counted(self) -> tuple[tuple[Sequence[str], object], ...]:
        """What is saved as it is, and of whom."""
        return (COUNTED, self), (LAGGED, self.descent)

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        self.active, self.descent.numbers[:], self.rng[:] = (saved[name] for name in ("active", "numbers", "rng"))
        for names, owner in self._counted:
            for name in names:
                if (counted := saved.get(name)) is not None:  # earlier versions had fewer
                    setattr(owner, name, counted)
        self.order = saved.get("order")
        if saved.get("odds") is not None:
            self.favour = Favour(0)
            self.favour.restore(saved)
        if saved["sums"] is not None:
            self.judge = self.new_judge()
            self.judge.rows, self.judge.seen = RowSums(**saved["sums"]), True

    def aim(self, tol: float, *, tighter: bool) -> None:
        done = self.done
        super().aim(tol, tighter=tighter)
        if not self.trace or self.trace[-1].sample is None:
            self.target, self.failures, self.look_again = tol, 0, 0
        if done and not self.done:
            self.next = LOOK

    def restart(self) -> None:
        """Set the running numbers from alpha and w, and forget the shrinking thresholds."""
        problem, numbers = self.problem, self.descent.numbers
        numbers[BALANCE] = float((self.alpha * self.sign).sum())
        numbers[DUAL_TERMS] = total_dual_term(problem.loss, self.alpha, self.cost)
        numbers[HALF_NORM] = 0.5 * squared_length(self.w) - self.began
        self.descent.forget_thresholds()
        numbers[ACTIVE] = self.active.sum()

    def new_judge(self) -> Judge:
        return Judge(self.problem, self.k, self.w, self.alpha, self.intercept)

    def judged(self) -> tuple[float, float]:
        """All rows were seen: note the gap, and return primal and dual."""
        assert self.judge is not None
        self.judge.conclude()
        primal, dual = self.objectives()
        self.gap, self.stretch = relative_gap(primal, primal - dual), 1.0
        return primal, dual

    def objectives(self) -> tuple[float, float]:
        """Primal and dual, as a look at all margins has told."""
        assert self.judge is not None
        b, rows = (self.problem.intercept, self.intercept), self.judge.rows
        primal = rows.primal(self.w, *b, self.centre)
        return primal, primal - rows.gap(*b, self.centre)

    def tail_pays(self, nonzeros: float, features: Callable[[], int], settings: Settings) -> bool:
        """Whether to solve for all active examples at once now."""
        if not max(EARLIEST, self.next_tail) <= self.passes < settings.max_passes:
            return False
        if self.looked and self.passes - self.looked < EVEN * self.passes:
            return False
        since = self.trace[min(-1, self.looked - self.passes) :]
        fits = room(self.trace[-1].active, nonzeros, features()) <= settings.budget.left
        tol = settings.tol if self.problem.examples.bulk else self.target
        return fits and pays(since, nonzeros, features(), tol, settings.max_passes)

    def stretched(self) -> None:
        """Make w and b the ones that are returned, which nobody has looked at yet."""
        if self.stretch != 1.0:
            self.w *= self.w.dtype.type(self.stretch)
            self.descent.numbers[INTERCEPT] *= self.stretch
            self.judge = None

    def solve_tail(self, clock: Clock, tol: float, on_progress: OnProgress | None) -> None:
        """Move the alpha of all active examples to their joint optimum. If examples that were not active spoil it, the
        next time comes later."""
        rows = row_numbers(self.active)

        def check(share: float) -> None:
            clock.tell(on_progress, self.trace[-1]._replace(seconds=clock.elapsed(), tail=share), self.k)
            clock.check()

        check(0.0)
        self.descent.meet()  # as their joint optimum has it
        with clock.anywhere():
            (output,) = self.problem.outputs([self.w], rows)
            output += self.intercept
            gap = tol * abs(self.descent.dual)
            best = solved_together(self.problem, self.k, rows, self.alpha[rows], output, gap, check)
        change = np.zeros(len(self.alpha))
        change[rows] = (best - self.alpha[rows]) * self.sign[rows]
        self.problem.examples.add([change], [self.w])
        self.alpha[rows] = best
        self.descent.numbers[BALANCE] += change.sum()
        self.descent.meet()
        self.passes += 1
        self.tails += 1
        self.next_tail = self.passes + LOOK_BACK * 2**self.tails

    def after_tail(self, seconds: float) -> Progress:
        """What a look at all margins has told after that."""
        primal, dual = self.objectives()
        return Progress(self.passes, seconds, primal, dual, self.gap, int(self.active.sum()), self.rows)

    def look_later(self, tol: float, bulk: bool) -> None:
        """Decide after a look at all margins, at which estimate of the gap to take the next one."""
        if bulk:
            missed = tol / self.gap if self.target <= tol < self.gap else 1.0
            self.target = max(SETTLED * self.gap, tol * missed)
            return
        # The estimate was too rosy: examples had been shrunk wrongly, or it is close to the tolerance. A look costs a
        # pass over all examples, so the wait for the next one grows with the failures.
        self.failures += 1
        self.look_again = self.passes + 1 + self.failures
        told = self.trace[-1].gap if self.trace else 0.0
        self.target = tol * max(1.0, told / self.gap) if self.gap > 0.0 else tol  # which falls as the gap does
        self.looked = self.passes

    def ready(self) -> bool:
        """Whether the latest pass calls for a look at all margins."""
        latest = self.trace[-1]
        seems_done = latest.gap <= self.target and latest.passes >= self.look_again
        stale = not self.problem.examples.bulk and latest.passes >= max(LOOK_ANYWAY, 2 * self.looked)
        return latest.active == 0 or seems_done or stale

    @property
    def favoured(self) -> bool:
        """Whether the pass that comes, or goes on, visits some rows more often than others."""
        return self.favour is not None and self.passes % 2 == 1

    def draw_pass(self, favours: bool) -> None:
        """Begin a pass over the active rows in random order."""
        order = row_numbers(self.active.view(np.bool_))
        if self.favour is None:
            if favours and 0 < self.next_favour <= self.passes and self.passes % 2 == 0:
                self.favour, self.next_favour = Favour(len(self.alpha)), self.passes + TRIED
        elif self.passes == self.next_favour and not gained(self.trace):
            self.favour, self.next_favour = None, 0
        if self.favour is not None:
            order = self.favour.order(order, self.alpha, self.rng, favoured=self.favoured)
        self.begin_pass(order)
        shuffle(order, self.rng)

    def begin_pass(self, rows: np.ndarray) -> None:
        """Begin a pass over these rows in this order."""
        self.descent.begin_sweep()
        self.order = rows

    @property
    def unvisited(self) -> np.ndarray:
        """The rest of a pass, which may have been cut short."""
        assert self.order is not None
        return self.order[self.descent.visited :]

    def end_pass(self, seconds: float, multiplier_step: float, sample: int | None) -> Progress:
        """The estimates that this pass has summed up; the multiplier's update for a free intercept."""
        descent = self.descent
        if self.favoured:  # it has seen some rows twice and others not at all: what is known of all of them stands
            dual, gap, active = descent.dual, self.trace[-1].primal - self.trace[-1].dual, self.trace[-1].active
        else:
            descent.end_sweep()
            dual, gap, active = descent.dual, descent.gap - descent.multiplier_term, descent.active
            if self.favour is not None:
                self.favour.learn(self.alpha, self.sample.norms)
        descent.move_multiplier(multiplier_step)
        primal = dual + gap
        relative = relative_gap(primal, abs(gap)) if primal != 0.0 else 0.0
        self.passes += 1
        self.order = None
        return Progress(self.passes, seconds, primal, dual, relative, active, self.rows, sample)


def dcd(
    problem: Problem[InMemory],
    settings: Settings,
    *,
    alphas: Sequence[np.ndarray] | None = None,
    intercepts: Sequence[float] | None = None,
    shrink: bool = True,
    most_left: float = math.inf,
) -> list[Result]:
    """Solve each binary problem of `problem` to a relative duality gap of `settings.tol`.

    `alphas` is a warm start: dual variables of earlier Results, moved into their bounds where C has changed, and their
    `intercepts`.
    CreepingError is raised when more visits than `most_left` for each example seem to be left.
    """
    clock = Clock(settings.max_time)
    clock.seconds = seconds = {"expand": 0.0, "descend": 0.0, "tail": 0.0, "certify": 0.0}
    bulk = problem.examples.bulk and problem.loss is not Loss.LOGISTIC  # whose dual variables are never 0
    sample = Sample(problem, settings.rng(), grows=bulk and shrink and alphas is None)
    if alphas is None:
        starts = [sample.problem.dual_variables() for _ in range(len(problem))]
    else:
        starts = [_within_bounds(problem, k, alpha) for k, alpha in enumerate(alphas)]
    ws = [problem.origin(k) for k in range(len(problem))]
    if any(alpha.any() for alpha in starts):
        problem.examples.add([alpha * problem.columns.sign(k) for k, alpha in enumerate(starts)], ws)
    states = [_State(sample, k, alpha, w, settings.rng(k)) for k, (alpha, w) in enumerate(zip(starts, ws, strict=True))]
    if intercepts is not None and problem.intercept is Intercept.REGULARIZED:
        for state in states:
            state.descent.numbers[INTERCEPT] = intercepts[state.k]
    for state in states:
        state.target = settings.tol if sample.whole else max(settings.tol, SETTLED)

    tails, nonzeros = shrink and has_tail(problem), sample.problem.examples.mean_length
    features = cache(partial(features_met, problem.examples))
    seconds["expand"] = clock.elapsed()

    saving = Saving(settings, clock, states, sample.state)
    if (saved := saving.resume()) is not None:
        sample.restore(saved)
        for state in states:
            state.over_sample()
    with clock:
        limit = Reason.MAX_PASSES
        try:
            if alphas is not None:
                with clock.anywhere():
                    _look(sample, states, states, settings.tol, seconds)
                for state in states:
                    state.reason = Reason.CONVERGED if state.gap <= settings.tol else None
            while running := [state for state in states if state.reason is None and state.passes < settings.max_passes]:
                saving.between_steps()
                if not any(state.next for state in running):
                    for state in _pass(sample, running, shrink, clock):
                        progress = state.end_pass(clock.elapsed(), sample.step, None if sample.whole else sample.size)
                        state.tell(progress, clock, settings.on_progress)
                        if state.ready():
                            state.next = LOOK
                        elif tails and sample.whole and state.tail_pays(nonzeros, features, settings):
                            state.next = TAIL
                clock.obey()
                running = [state for state in running if state.reason is None]
                if _visits_left(running, settings) > most_left * len(states):
                    for state in states:
                        state.unproved(state.intercept, Reason.MAX_PASSES)
                    raise CreepingError([state.result(seconds) for state in states])
                for state in running:
                    if state.next == TAIL:
                        with clock.timed("tail"):
                            state.solve_tail(clock, settings.tol, settings.on_progress)
                        state.next = AFTER
                ready = [state for state in running if state.next]
                if not sample.whole:
                    if len(ready) < len(running):
                        for state in ready:
                            state.next = ""
                        continue
                    sample.grow()
                with clock.anywhere():
                    _look(sample, states, ready, settings.tol, seconds)
                for state in ready:
                    if state.next == AFTER:
                        state.tell(state.after_tail(clock.elapsed()), clock, settings.on_progress)
                    state.next = ""
                    if sample.whole and state.gap <= settings.tol:
                        state.reason = Reason.CONVERGED
                    else:
                        state.look_later(settings.tol, bulk)
        except StoppedError as stopped:
            limit = stopped.reason
        saving.at_the_end()
        unfinished = [state for state in states if state.reason is None]
        for state in unfinished:
            state.reason = limit
        try:
            with clock.proof():
                sample.all()
                if sample.rows is not None:  # what is known of others may be of a sample, too
                    unfinished += [state for state in states if state.reason is Reason.DIVERGED]
                _look(sample, states, unfinished, settings.tol, seconds)
                for state in states:
                    state.stretched()
                with clock.timed("certify"):
                    certificates = certify(sample.problem, [state.judge or state.new_judge() for state in states])
            for state, certificate in zip(states, certificates, strict=True):
                state.certificate = certificate
                if state.reason is Reason.CONVERGED and certificate.gap > settings.tol:
                    state.reason = Reason.PRECISION
                elif state.reason is Reason.MAX_PASSES and certificate.gap <= settings.tol:
                    state.reason = Reason.CONVERGED
        except StoppedError as stopped:  # without the proof
            for state in states:
                state.unproved(state.intercept, stopped.reason)
    return [state.result(seconds) for state in states]


def _pass(
    sample: Sample,
    states: list[_State],
    shrink: bool,
    clock: Clock,
) -> list[_State]:
    """One pass over the active examples in random order; returns the problems that came to its end.

    Where blocks must be expanded, all problems work on each block while it is there; rows that lie in memory anyway
    cost nothing to visit again, so there each problem makes its pass alone and has the cache for its own w. When time
    is short it then goes no further than its share of it, and the next one comes; each gets one block at least, which
    is less than the proof will take. Problems are shared out to threads; each has random numbers of its own, so that
    the bits are the same on any number of them.
    """
    problem, examples, norms, step = sample.problem, sample.problem.examples, sample.norms, sample.step
    if not examples.in_memory:
        if any(state.order is None for state in states):  # otherwise a pass that was cut short goes on
            order = row_numbers(np.logical_or.reduce([state.active for state in states]))
            shuffle(order, states[0].rng)
            for state in states:
                state.begin_pass(order)
        moved = [(state.descent, state.variables) for state in states]
        sweep(
            examples, states[0].unvisited, moved, norms, step, problem.loss,
            shrink=shrink, seconds=clock.seconds, check=clock.check,
        )  # fmt: skip
        clock.check()
        return states
    done = np.zeros(len(states), np.bool_)
    began = count()

    def visit(n: int) -> None:
        if clock.interrupted:
            return
        state, share = states[n], clock.share(len(states) - next(began))
        if state.order is None:
            state.draw_pass(shrink and has_tail(problem))
        with suppress(StoppedError):  # its share of the time is over, and perhaps more than that
            moved, lets_go = [(state.descent, state.variables)], shrink and not state.favoured
            sweep(examples, state.unvisited, moved, norms, step, problem.loss, shrink=lets_go, check=share.peek)
            done[n] = True

    with clock.timed("descend"):
        for_each(range(len(states)), visit, examples.threads if examples.ready else 1)
    clock.check()
    return [state for state, ended in zip(states, done, strict=True) if ended]


def _look(sample: Sample, states: list[_State], asked: list[_State], tol: float, seconds: dict[str, float]) -> None:
    """Compute all margins of the sample, and from them the primal and the gap of those that are asked about; wake the
    examples that would move."""
    if not asked:
        return
    began = perf_counter()
    if sample.problem.intercept is Intercept.FREE:
        _balance(sample.problem, asked)
    for state in asked:
        state.restart()
    if sample.rows is None:
        _look_at_visited(sample, asked, tol)
    else:
        _look_at_all(sample, states, asked)
    seconds["certify"] += perf_counter() - began


def _balance(problem: Problem[InMemory], states: list[_State]) -> None:
    """Make sum_i alpha_i y_i = 0. Ctrl-C may come at any place, and alpha has to go with its w."""
    alphas, ws = [state.alpha.copy() for state in states], [problem.zeros() for _ in states]
    changes = [balance(alpha, state.sign) for alpha, state in zip(alphas, states, strict=True)]
    for w, state in zip(ws, states, strict=True):
        w[:] = state.w
    problem.examples.add(changes, ws)
    for state, w, alpha in zip(states, ws, alphas, strict=True):
        state.w[:], state.alpha[:] = w, alpha


def _look_at_visited(sample: Sample, states: list[_State], tol: float) -> None:
    """The same where all examples are visited."""
    problem = sample.problem
    for state, output in zip(states, problem.outputs([state.w for state in states]), strict=True):
        if problem.intercept is Intercept.FREE:
            state.descent.numbers[INTERCEPT] = best_intercept(problem.loss, output, state.sign, state.cost)
        elif problem.intercept is Intercept.REGULARIZED:
            state.descent.settle(problem.loss, output, state.sign, state.cost)
        state.judge = state.new_judge()
        margins = state.judge.see(
            problem, slice(None), output, sample.norms, problem.examples.longest, beside=sample.step
        )
        primal, dual = state.judged()
        if state.gap > tol:
            sums = replace(state.judge.rows, gaps=primal - dual)
            t, state.gap = stretch(problem, state.k, margins, primal, sums)
            state.stretch = t if state.gap <= tol else 1.0
        state.active[:] = would_move(int(problem.loss), margins, state.cost, state.alpha)


def _look_at_all(sample: Sample, states: list[_State], asked: list[_State]) -> None:
    """The same where few are: one stretch of rows after the other, of which those are visited from now on that would
    move; and of those that were visited, the ones that may have to come back."""
    problem, ws = sample.whole_problem, [state.w for state in asked]
    looks: Iterable[tuple[np.ndarray, Seen]] = ((piece, sample.see(ws, piece)) for piece in sample.pieces())
    if problem.intercept is Intercept.FREE:
        looks = _with_best_intercepts(problem, asked, list(looks))
    for state in asked:
        state.judge = state.new_judge()
    moving: list[list[np.ndarray]] = [[] for _ in asked]
    for piece, (outputs, norms, longest) in looks:
        (mine, at), columns = sample.among(piece), problem.columns.take(piece)
        for state, output, found in zip(asked, outputs, moving, strict=True):
            assert state.judge is not None
            sign, cost, alpha = columns.sign(state.k), columns.cost(state.k), np.zeros(len(piece))
            alpha[at] = state.alpha[mine]
            margins = (output + state.intercept) * sign
            state.judge.count(margins, alpha, sign, cost, norms, longest)
            moves = would_move(int(problem.loss), margins, cost, alpha)
            state.active[mine] = moves[at]
            moves[at] = 0
            found.append(piece[np.flatnonzero(moves)])
    for state in asked:
        state.judged()
    wanted = [np.concatenate(found) for found in moving]
    stay = np.logical_or.reduce([(state.alpha != 0.0) | (state.active > 0) for state in states])
    old = sample.visit(stay, np.unique(np.concatenate(wanted)))
    more = {state.k: sample.places(rows) for state, rows in zip(asked, wanted, strict=True)}
    for state in states:
        state.move(stay, old, more.get(state.k, old[:0]))


def _with_best_intercepts(
    problem: Problem[InMemory], states: list[_State], looks: list[tuple[np.ndarray, Seen]]
) -> list[tuple[np.ndarray, Seen]]:
    """Give each its best intercept, which takes the outputs of all rows."""
    rows = np.concatenate([piece for piece, _ in looks])
    for n, state in enumerate(states):
        output = np.concatenate([seen.outputs[n] for _, seen in looks])
        sign, cost = problem.columns.sign(state.k, rows), problem.columns.cost(state.k, rows)
        state.descent.numbers[INTERCEPT] = best_intercept(problem.loss, output, sign, cost)
    return looks


def _visits_left(states: list[_State], settings: Settings) -> float:
    """How many visits are left for each example, in all of these problems, as far as the latest passes tell."""
    total = 0.0
    if any(state.next in (TAIL, AFTER) for state in states):  # which ends soon
        return total
    for state in states:
        if SEEN <= state.passes < settings.max_passes:
            left = min(passes_left(state.trace, settings.tol, SEEN // 2), FORESEEN * state.passes)
            total += left * state.trace[-1].active / state.rows
    return total


def _within_bounds(problem: Problem[InMemory], k: int, alpha: np.ndarray) -> np.ndarray:
    """Dual variables of an earlier answer, where those of this problem may be."""
    cost = problem.columns.cost(k)
    upper = np.inf if problem.loss is Loss.SQUARED_HINGE else cost
    return np.where(cost > 0.0, np.clip(np.asarray(alpha, np.float64), 0.0, upper), 0.0)
