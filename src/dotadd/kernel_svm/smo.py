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

from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel
from dotadd.kernel_svm.cache import RowCache
from dotadd.kernel_svm.problem import WORK, KernelProblem, KernelResult, KernelRun, KernelSettings
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
from dotadd.kernel_svm.working_set import objectives, select, widest
from dotadd.solvers.result import Reason

NEAR = 10.0  # times tol: where shrinking is reconsidered
INSIDE = 0.99  # of tol is what the steps go for, so that f from scratch, rounded otherwise, agrees
DUAL, COARSEST, TOL = 0, 1, 2  # numbers that run along: the dual objective, the largest change of f in a step; and tol


def smo(problem: KernelProblem, settings: KernelSettings, alpha: np.ndarray | None = None) -> KernelResult:
    """The optimum, to a violation of settings.tol; kernel values take settings.memory at most."""
    solver = _Solver(KernelRun(problem, settings, alpha))
    return solver.run.solved(solver.solve, solver.result)


class _Active(NamedTuple):
    """What moves of the examples that are not left out; f is as of now, that of others is not."""

    examples: np.ndarray
    diagonal: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    alpha: np.ndarray
    f: np.ndarray

    def violation(self) -> float:
        return widest(self.f, self.sign, self.cost, self.alpha)

    def likely(self, count: int, among: np.ndarray) -> np.ndarray:
        """So many of these that violate the conditions most: their rows will probably be wanted next."""
        return among[select(self.f[among], self.sign[among], self.cost[among], self.alpha[among], count)]


class _Solver:
    """f of all examples, and the active ones among them."""

    def __init__(self, run: KernelRun) -> None:
        n = len(run.alpha)
        self.run = run
        self.running = np.array([0.0, 0.0, INSIDE * run.settings.tol])
        self.diagonal = run.gram.diagonal().astype(np.float32)
        self.f = np.zeros(n)
        self.proven = True  # whether f of all examples is from scratch
        self.cache = RowCache(run.gram, np.arange(n), run.settings.memory)
        self.active = self._take(np.arange(n))

    def solve(self) -> Reason:
        run, everyone = self.run, np.arange(len(self.f))
        if run.alpha.any():
            self._prove()
            self._activate(everyone)
        tol, limit = run.settings.tol, run.settings.max_steps
        reconsidered = False
        while not run.over():
            most = SHRINK_AFTER if limit is None else min(SHRINK_AFTER, limit - run.steps)
            if self._advance(most):
                self._prove()
                now = self._take(everyone).violation()
                if now <= tol:
                    return Reason.CONVERGED
                if run.hopeless(now):
                    return Reason.PRECISION
                self._activate(_worth_keeping(self.f, *run.of(slice(None))))
            elif not reconsidered and self.active.violation() <= NEAR * tol:
                reconsidered = True
                self._put_back()
                self._compute(np.setdiff1d(everyone, self.active.examples, assume_unique=True))
                self._activate(_worth_keeping(self.f, *run.of(slice(None))))
            else:
                *_, sign, cost, alpha, f = self.active
                keep = _worth_keeping(f, sign, cost, alpha)
                if len(keep) <= FEWER * len(f):
                    self._put_back()
                    self._activate(self.active.examples[keep])
        return Reason.MAX_PASSES

    def result(self, reason: Reason) -> KernelResult:
        self._put_back()
        proved = self.proven or self.run.proved(self._prove)
        cache = self.cache
        self.run.counts = {"hits": cache.hits, "misses": cache.misses, "rows": cache.computed}
        return self.run.result("smo", reason, self.f, proved=proved)

    def _advance(self, most: int) -> bool:
        """Some steps among the active examples; returns whether they are done."""
        run, active, cache = self.run, self.active, self.cache
        pause = max(1, WORK // max(1, len(active.f)))
        done = False
        while most > 0 and not done:
            self.proven = False
            with run.timed("steps"):
                taken, wanted, hits, done = _take_steps(
                    cache.rows, cache.place, cache.last_use, *active[1:], min(most, pause), self.running
                )
            most -= taken
            run.steps += taken
            cache.hits += hits
            if wanted >= 0:
                with run.timed("kernel"):
                    cache.fetch(wanted, active.likely(cache.together, np.flatnonzero(cache.place < 0)))
            if run.due:
                self._put_back()
                run.dual = float(self.running[DUAL])
                run.say(active.violation(), len(self.f))
            run.check()
        return done

    def _take(self, examples: np.ndarray) -> _Active:
        """A copy of what is known of these examples."""
        return _Active(examples, self.diagonal[examples], *self.run.of(examples), self.f[examples])

    def _activate(self, examples: np.ndarray) -> None:
        with self.run.timed("kernel"):
            self.active = self._take(examples)
            self.cache.change(examples)

    def _put_back(self) -> None:
        self.run.alpha[self.active.examples], self.f[self.active.examples] = self.active.alpha, self.active.f

    def _compute(self, rows: np.ndarray | None) -> None:
        """f of these examples, or of all, from scratch."""
        run = self.run
        support = np.flatnonzero(run.alpha)
        with run.clock.anywhere():
            f = run.gram.times(support, run.alpha[support] * run.sign[support], rows)
        self.f[slice(None) if rows is None else rows] = f

    def _prove(self) -> None:
        """f of all examples, and the dual objective, from scratch."""
        with self.run.timed("certify"):
            self._put_back()
            self._compute(None)
            self.running[DUAL] = objectives(self.f, *self.run.of(slice(None)), 0.0)[1]
            self.proven = True


@kernel
def _worth_keeping(f, sign, cost, alpha):
    rise, fall = membership(sign, cost, alpha)
    return worth_keeping(sign - f, rise, fall)


@kernel
def _take_steps(rows, place, last_use, diagonal, sign, cost, alpha, f, max_steps, running):
    """Steps of SMO with the rows that are there; running[DUAL] grows by what they gain.

    Returns their number, an example whose row is needed to go on (or -1), how often rows were there, and whether the
    conditions hold or rounding ends it.
    """
    tol = running[TOL]
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
        enough = max(tol, ROUNDING * running[COARSEST])
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
        running[DUAL] += to_i * (below - 0.5 * to_i * (diagonal[i] + diagonal[j] - 2.0 * row_i[j]))
        running[COARSEST] = max(running[COARSEST], to_i * diagonal[i], -to_j * diagonal[j])
        hits += 2
        step += 1
        i, exact = update(g, row_i, row_j, to_i, to_j, rise), False
    for k in range(len(f)):
        f[k] = sign[k] - g[k]
    return step, wanted, hits, done
