"""SMO over all examples, with rows of the kernel matrix from a cache: LIBSVM's method.

Problem:  maximise D(alpha) of `problem.py`
Given:    a KernelProblem; an alpha to start from, 0 by default
Returned: alpha with a violation of at most tol, measured with f computed from scratch

The steps are those of `smo_steps.py` (Fan, Chen and Lin 2005); their rows come from a RowCache, and a kernel goes on
until one is missing. Every thousand steps the examples that cannot move for now are left out (shrinking; Joachims
1999), and the cache keeps shorter rows for more of the others. Since that may be wrong while alpha is far from its
optimum, all are looked at again once near the end, and whenever those that take part are done.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.interrupts import Interrupts
from dotadd.kernel_svm.cache import RowCache
from dotadd.kernel_svm.problem import KernelProblem, KernelProgress, KernelResult, KernelSettings
from dotadd.kernel_svm.smo_steps import (
    FEWER,
    ROUNDING,
    SHRINK_AFTER,
    SLACK,
    highest,
    membership,
    move,
    partner,
    update,
    worth_keeping,
)
from dotadd.kernel_svm.working_set import intercept, objectives, select, violation
from dotadd.solvers.result import Reason
from dotadd.solvers.settings import Deadline, TimeUpError

NEAR = 10.0  # times tol: where shrinking is reconsidered
INSIDE = 0.99  # of tol is what the steps go for, so that f from scratch, rounded otherwise, agrees
NO_BETTER = 3  # violations in a row, each of f from scratch, that do not fall: what is left is rounding
BALANCED = 1e-12  # what sum_i alpha_i y_i may be, relative to the sum of one side
SAY_EVERY = 0.2  # seconds
WORK = 1 << 26  # numbers to pass over before the clock is looked at


def smo(problem: KernelProblem, settings: KernelSettings, alpha: np.ndarray | None = None) -> KernelResult:
    """The optimum, to a violation of settings.tol; kernel values take settings.memory at most."""
    run = _Run(problem, settings, alpha)
    try:
        with Interrupts() as interrupts:
            reason = run.solve(interrupts)
    except KeyboardInterrupt:
        reason = Reason.INTERRUPTED
    except TimeUpError:
        reason = Reason.MAX_TIME
    return run.result(reason)


class _Active(NamedTuple):
    """What moves of the examples that are not left out; f is as of now, that of others is not."""

    examples: np.ndarray
    diagonal: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    alpha: np.ndarray
    f: np.ndarray

    def violation(self) -> float:
        up_max, low_min, *_ = violation(self.f, self.sign, self.cost, self.alpha)
        return float(up_max - low_min)

    def likely(self, count: int, among: np.ndarray) -> np.ndarray:
        """So many of these that violate the conditions most: their rows will probably be wanted next."""
        return among[select(self.f[among], self.sign[among], self.cost[among], self.alpha[among], count)]


class _Run:
    """alpha and f of all examples, and the active ones among them."""

    def __init__(self, problem: KernelProblem, settings: KernelSettings, alpha: np.ndarray | None) -> None:
        n = len(problem)
        self.gram, self.sign, self.cost = problem.gram, plain(problem.sign), plain(problem.cost)
        self.settings = settings
        self.deadline = Deadline(settings.max_time)
        self.said = self.deadline.elapsed()
        self.seconds = {"kernel": 0.0, "steps": 0.0, "certify": 0.0}
        self.trace: list[KernelProgress] = []
        self.steps = 0
        self.running = np.zeros(2)  # the dual objective, and the largest change of f in a step
        self.diagonal = problem.gram.diagonal().astype(np.float32)
        self.alpha = np.zeros(n) if alpha is None else feasible(alpha, self.sign, self.cost)
        self.f = np.zeros(n)
        self.certified = True  # whether f of all examples is from scratch
        self.cache = RowCache(problem.gram, np.arange(n), settings.memory)
        self.active = self._take(np.arange(n))

    def solve(self, interrupts: Interrupts) -> Reason:
        everyone = np.arange(len(self.alpha))
        if self.alpha.any():
            self._certify()
            self._activate(everyone)
        tol, limit = self.settings.tol, self.settings.max_steps
        reconsidered, worse, least = False, 0, np.inf
        while limit is None or self.steps < limit:
            most = SHRINK_AFTER if limit is None else min(SHRINK_AFTER, limit - self.steps)
            if self._advance(most, interrupts):
                self._certify()
                now = self._take(everyone).violation()
                if now <= tol:
                    return Reason.CONVERGED
                worse = worse + 1 if now >= least else 0
                if worse == NO_BETTER:
                    return Reason.PRECISION
                least = min(least, now)
                self._activate(_worth_keeping(self.f, self.sign, self.cost, self.alpha))
            elif not reconsidered and self.active.violation() <= NEAR * tol:
                reconsidered = True
                self._put_back()
                self._compute(np.setdiff1d(everyone, self.active.examples, assume_unique=True))
                self._activate(_worth_keeping(self.f, self.sign, self.cost, self.alpha))
            else:
                *_, sign, cost, alpha, f = self.active
                keep = _worth_keeping(f, sign, cost, alpha)
                if len(keep) <= FEWER * len(f):
                    self._put_back()
                    self._activate(self.active.examples[keep])
        return Reason.MAX_PASSES

    def result(self, reason: Reason) -> KernelResult:
        if not self.certified:
            self._certify()
        b = intercept(self.f, self.sign, self.cost, self.alpha)
        primal, dual = objectives(self.f, self.sign, self.cost, self.alpha, b)
        return KernelResult(
            alpha=self.alpha,
            intercept=float(b),
            primal=float(primal),
            dual=float(dual),
            violation=max(0.0, self._take(np.arange(len(self.alpha))).violation()),
            reason=reason,
            steps=self.steps,
            seconds=self.seconds,
            trace=self.trace,
            solver="smo",
            counts={"hits": self.cache.hits, "misses": self.cache.misses, "rows": self.cache.computed},
        )

    def _advance(self, most: int, interrupts: Interrupts) -> bool:
        """Some steps among the active examples; returns whether they are done."""
        active, cache = self.active, self.cache
        tol, pause = INSIDE * self.settings.tol, max(1, WORK // max(1, len(active.f)))
        done = False
        while most > 0 and not done:
            began = perf_counter()
            self.certified = False
            taken, wanted, hits, done = _take_steps(
                cache.rows, cache.place, cache.last_use, *active[1:], tol, min(most, pause), self.running
            )
            most -= taken
            self.steps += taken
            cache.hits += hits
            stepped = perf_counter()
            self.seconds["steps"] += stepped - began
            if wanted >= 0:
                cache.fetch(wanted, active.likely(cache.together, np.flatnonzero(cache.place < 0)))
                self.seconds["kernel"] += perf_counter() - stepped
            if self.deadline.elapsed() > self.said + SAY_EVERY:
                self._say()
            interrupts.check()
            self.deadline.check()
        return done

    def _say(self) -> None:
        self.said = self.deadline.elapsed()
        support = np.count_nonzero(self.active.alpha) + np.count_nonzero(self.alpha)
        support -= np.count_nonzero(self.alpha[self.active.examples])
        progress = KernelProgress(
            self.steps, self.said, float(self.running[0]), self.active.violation(), int(support), len(self.alpha)
        )
        self.trace.append(progress)
        if self.settings.on_progress is not None:
            self.settings.on_progress(progress)

    def _take(self, examples: np.ndarray) -> _Active:
        """A copy of what is known of these examples."""
        return _Active(examples, *(x[examples] for x in (self.diagonal, self.sign, self.cost, self.alpha, self.f)))

    def _activate(self, examples: np.ndarray) -> None:
        began = perf_counter()
        self.active = self._take(examples)
        self.cache.change(examples)
        self.seconds["kernel"] += perf_counter() - began

    def _put_back(self) -> None:
        self.alpha[self.active.examples], self.f[self.active.examples] = self.active.alpha, self.active.f

    def _compute(self, rows: np.ndarray | None) -> None:
        """f of these examples, or of all, from scratch."""
        support = np.flatnonzero(self.alpha)
        f = self.gram.times(support, self.alpha[support] * self.sign[support], rows)
        self.f[slice(None) if rows is None else rows] = f

    def _certify(self) -> None:
        """f of all examples, and the dual objective, from scratch."""
        began = perf_counter()
        self._put_back()
        self._compute(None)
        self.running[0] = objectives(self.f, self.sign, self.cost, self.alpha, 0.0)[1]
        self.certified = True
        self.seconds["certify"] += perf_counter() - began


def feasible(alpha: np.ndarray, sign: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """An alpha like this one within the bounds and with sum_i alpha_i y_i = 0: the heavier side is scaled down."""
    alpha = np.clip(np.asarray(alpha, np.float64), 0.0, cost)
    positive, negative = float(alpha[sign > 0].sum()), float(alpha[sign < 0].sum())
    if abs(positive - negative) > BALANCED * max(positive, negative):
        side = sign > 0 if positive > negative else sign < 0
        alpha[side] *= min(positive, negative) / max(positive, negative)
    return alpha


@kernel
def _worth_keeping(f, sign, cost, alpha):
    rise, fall = membership(sign, cost, alpha)
    return worth_keeping(sign - f, rise, fall)


@kernel
def _take_steps(rows, place, last_use, diagonal, sign, cost, alpha, f, tol, max_steps, running):
    """Steps of SMO with the rows that are there; running[0] grows by what they gain.

    Returns their number, an example whose row is needed to go on (or -1), how often rows were there, and whether the
    conditions hold or rounding ends it.
    """
    g = sign - f
    rise, fall = membership(sign, cost, alpha)
    clock = last_use.max()
    step, wanted, hits, done = 0, -1, 0, False
    i, exact = highest(g, rise), True
    while step < max_steps:
        if i < 0:
            done = True
            break
        if place[i] < 0:
            wanted = i
            break
        row_i = rows[place[i]]
        clock += 1
        last_use[place[i]] = clock
        j, widest = partner(row_i, diagonal, g, fall, i)
        enough = max(tol, ROUNDING * running[1])
        if not exact and widest <= enough + SLACK * abs(g[i]):
            i, exact = highest(g, rise), True
            continue
        if widest <= enough:
            done = True
            break
        if place[j] < 0:
            wanted = j
            break
        row_j = rows[place[j]]
        clock += 1
        last_use[place[j]] = clock
        below = g[i] - g[j]
        to_i, to_j = move(sign, cost, alpha, diagonal, g, rise, fall, i, j, row_i[j])
        if to_i == 0.0 or to_j == 0.0:
            done = True
            break
        running[0] += to_i * (below - 0.5 * to_i * (diagonal[i] + diagonal[j] - 2.0 * row_i[j]))
        running[1] = max(running[1], to_i * diagonal[i], -to_j * diagonal[j])
        hits += 2
        step += 1
        i, exact = update(g, row_i, row_j, to_i, to_j, rise), False
    for k in range(len(f)):
        f[k] = sign[k] - g[k]
    return step, wanted, hits, done
