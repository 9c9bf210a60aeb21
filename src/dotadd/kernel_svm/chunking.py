"""Chunking: SVM^light's decomposition, by kernel rows or by linadd.

Problem:  maximise D(alpha) of `problem.py`
Given:    a KernelProblem; an alpha to start from, 0 by default
Returned: alpha with a violation of at most tol, measured with f computed from scratch

The alphas of a working set of q examples are optimised while all others stand still, f of all examples is updated, and
the next working set chosen (Joachims 1999): the examples that violate the conditions most, but up to half of it are
free support vectors of the last one, or it would undo what that one has done (Zanni, Serafini and Zanghirati 2006).
There are two ways of updating f:

    rows     f_j += sum over the working set of the change of alpha_i y_i times k(z_i, z_j), with rows from a cache
    linadd   w = sum over the working set of the change of alpha_i y_i phi(z_i), and f_j += <w, phi(z_j)>: clear, add,
             look up (Sonnenburg, Rätsch and Rieck 2007). No kernel row is computed; and since a look-up costs the same
             however many examples were added, the working set is larger.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.errors import DotaddError
from dotadd.kernel_svm.cache import ChunkMatrix, RowCache
from dotadd.kernel_svm.problem import WORK, KernelProblem, KernelResult, KernelRun, KernelSettings
from dotadd.kernel_svm.smo_steps import solve_chunk
from dotadd.kernel_svm.working_set import select, widest
from dotadd.solvers.result import Reason

Q_ROWS = 200  # size of the working set
Q_LINADD = 5.0  # times the root of n: so its kernel matrix takes no longer than some look-ups of all examples
INSIDE = 0.5  # of tol is what working sets are solved to


def chunking(
    problem: KernelProblem,
    settings: KernelSettings,
    alpha: np.ndarray | None = None,
    *,
    q: int | None = None,
    linadd: bool | None = None,
) -> KernelResult:
    """The optimum, to a violation of settings.tol.

    q: the size of the working set; its kernel matrix has to fit into settings.memory
    linadd: whether f is updated through w, as it is by default where the Gram knows how
    """
    linadd = problem.gram.linadd if linadd is None else linadd
    if linadd and not problem.gram.linadd:
        raise DotaddError("linadd needs a kernel with a feature map, such as Spectrum(8), or the linear one")
    q = q or (int(Q_LINADD * len(problem) ** 0.5) if linadd else Q_ROWS)
    solver = _Solver(KernelRun(problem, settings, alpha), q, linadd)
    return solver.run.solved(solver.solve, solver.result)


class _Solver:
    def __init__(self, run: KernelRun, q: int, linadd: bool) -> None:
        n = len(run.alpha)
        self.run = run
        self.q = max(2, min(q, n, int((run.settings.memory / 4) ** 0.5)))
        self.f = np.zeros(n)
        self.proven = not run.alpha.any()  # whether f is from scratch
        self.cache = None if linadd else RowCache(run.gram, np.arange(n), run.settings.memory - 4 * self.q**2)
        self.chunk = ChunkMatrix(run.gram, self.q)

    def solve(self) -> Reason:
        run, tol = self.run, self.run.settings.tol
        now = self._prove()
        while now > tol:
            if run.over():
                return Reason.MAX_PASSES
            moved = self._step(INSIDE * tol)
            run.steps += 1
            now = self._violation()
            run.say(now, len(self.f))
            run.check()
            if now <= tol or not moved:
                now = self._prove()
                if now > tol and run.hopeless(now):
                    return Reason.PRECISION
        return Reason.CONVERGED

    def result(self, reason: Reason) -> KernelResult:
        proved = self.run.proved(self._prove)
        if self.cache is not None:
            self.run.counts = {"rows": self.cache.computed}
        return self.run.result("chunking", reason, self.f, proved=proved)

    def _prove(self) -> float:
        """f and the dual objective from scratch; returns the violation."""
        run = self.run
        if not self.proven:
            with run.timed("certify"), run.clock.anywhere():
                support = np.flatnonzero(run.alpha)
                self.f = run.gram.times(support, run.alpha[support] * run.sign[support])
            run.dual = float(run.alpha.sum() - 0.5 * (run.alpha * run.sign) @ self.f)
            self.proven = True
        return self._violation()

    def _violation(self) -> float:
        return widest(self.f, *self.run.of(slice(None)))

    def _step(self, tol: float) -> bool:
        """Optimise a working set; returns whether that changed anything."""
        run = self.run
        with run.timed("select"):
            rows = self._next()
        with run.timed("matrix"):
            self.chunk.become(rows)
        rows = self.chunk.rows
        sign, cost, alpha = run.of(rows)
        before = self.f[rows]
        after = before.copy()
        with run.timed("solve"):
            solve_chunk(self.chunk.values, sign, cost, alpha, after, tol, max(1, WORK // len(rows)))
        change = sign * (alpha - run.alpha[rows])
        changed = np.flatnonzero(change)
        if len(changed) == 0:
            return False
        with run.timed("update"):
            self._update(rows[changed], change[changed])
        run.change(rows, alpha, before, after)
        return True

    def _next(self) -> np.ndarray:
        """The next working set: free support vectors of the last one, half of it at most, and the worst violators."""
        run, last = self.run, self.chunk.rows
        free = last[(run.alpha[last] > 0.0) & (run.alpha[last] < run.cost[last])][: min(self.q // 2, self.q - 2)]
        left = np.ones(len(self.f), np.bool_)
        left[free] = False
        others = np.flatnonzero(left)
        worst = others[select(self.f[others], *run.of(others), self.q - len(free))]
        return np.concatenate([free, worst])

    def _update(self, rows: np.ndarray, change: np.ndarray) -> None:
        """f of all examples follows these changes of alpha y. Ctrl-C has to wait: f and alpha go together."""
        self.proven = False
        cache = self.cache
        if cache is None:
            self.f += self.run.gram.times(rows, change)
            return
        here, clock = cache.place[rows] >= 0, cache.last_use.max() + 1
        cache.last_use[cache.place[rows[here]]] = clock
        cache.hits += int(np.count_nonzero(here))
        order = np.argsort(~here, kind="stable")  # those that are here first, before others take their place
        rows, change = rows[order], change[order]
        for k in range(len(rows)):
            if cache.place[rows[k]] < 0:
                cache.fetch(int(rows[k]), rows[k + 1 :])
                cache.last_use[cache.place[rows[k]]] = clock
            _add_row(self.f, cache.rows, cache.place[rows[k]], change[k])


@kernel
def _add_row(f, rows, place, change):
    row = rows[place]
    for j in range(np.uint64(len(f))):
        f[j] += change * row[j]
