"""Double chunking: large chunks, each solved by small ones, and the next one filled while outputs are computed.

Problem:  maximise D(alpha) of `problem.py`
Given:    a KernelProblem; an alpha to start from, 0 by default
Returned: alpha with a violation of at most tol, measured with f computed from scratch

Pérez-Cruz, Figueiras-Vidal and Artés-Rodríguez (2004). The kernel matrix of a large chunk is in memory, so solving it
is cheap; what costs is the kernel between support vectors and all other examples. So

- examples outside are looked at in pieces, and that ends as soon as there are enough violators for the next chunk;
  while it ends like that, chunks are solved less exactly;
- free support vectors stay in the chunk, and so do examples next to the margin where there is room for them.

Beyond the paper:

- The size of the large chunk follows the number of free support vectors (its open question): they are to take up no
  more than the part that is not for newcomers. While violators abound, it doubles.
- No example is looked at that cannot violate the conditions, w having moved by so little (`KernelOutputs`). Where the
  kernel is an inner product for sure, that proves as much as a look: neither gap nor violation would be another.
- The others come in the order of how likely they violate: by margin over the bound on its change. So violators come
  first, and a look that has found some ends when they become rare: after the next chunk all would have to be looked at
  again anyhow.
- Only what is new in the chunk's kernel matrix is computed (`ChunkMatrix`).
"""

from __future__ import annotations

import math

import numpy as np

from dotadd.kernel_svm.cache import ChunkMatrix
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.irwls import solve_small
from dotadd.kernel_svm.problem import WORK, KernelProblem, KernelResult, KernelRun, KernelSettings
from dotadd.kernel_svm.smo_steps import solve_chunk
from dotadd.kernel_svm.working_set import Limits, intercept, margins, next_chunk, select, widest
from dotadd.solvers.result import Reason

FIRST = 1000  # examples in the first large chunk, and at least in later ones
NEWCOMERS = 0.6  # the share of a large chunk that is for violators
GROWTH = 2.0  # of the large chunk, while violators abound
LOOSE, CLOSER = 0.05, 0.1  # violation left in a chunk that is not the last one: at most, and for each before
INSIDE = 0.5  # of tol is what chunks are solved to, so that the others have some play
RARE = 0.03  # of the violators found so far: a piece with fewer ends the look
SURE = 1.1  # times the bound on how far f is off: farther beyond the margin there is no doubt
PIECE, PIECE_VALUES = 2048, 1 << 23  # examples, and kernel values, that are looked at before anything is checked


def double_chunking(
    problem: KernelProblem,
    settings: KernelSettings,
    alpha: np.ndarray | None = None,
    *,
    large: int | None = None,
    small: int | None = None,
    newcomers: float = NEWCOMERS,
) -> KernelResult:
    """The optimum, to a violation of settings.tol.

    large: the size of all large chunks, in place of one that adapts; never more than settings.memory has room for
    small: the size of small chunks that are solved by IRWLS, as in the paper; without it SMO solves the large chunk
    newcomers: the share of a large chunk that is for violators, above 0 and below 1
    """
    solver = _Solver(KernelRun(problem, settings, alpha), large, small, newcomers)
    return solver.run.solved(solver.solve, solver.result)


class _Solver:
    def __init__(self, run: KernelRun, large: int | None, small: int | None, newcomers: float) -> None:
        n = len(run.alpha)
        self.run = run
        self.most = max(2, min(n, math.isqrt(run.settings.memory // 4)))
        self.large = large if large is None else max(2, min(large, self.most))
        self.size = self.large or min(FIRST if run.gram.whole is None else n, self.most)
        self.small, self.newcomers = small, newcomers
        self.rng = np.random.default_rng(run.settings.seed)
        self.shuffled = self.rng.permutation(n)
        self.outputs = KernelOutputs(run.gram, run.alpha * run.sign)
        self.chunk = ChunkMatrix(run.gram, self.most)
        self.abound = self.size < n  # whether the last look ended because there were enough violators

    def solve(self) -> Reason:
        run, tol = self.run, self.run.settings.tol
        now, known = self._begin(), len(run.alpha)
        while now > tol or known < len(run.alpha):
            if run.over():
                return Reason.MAX_PASSES
            moved = self._solve_large(tol, now)
            run.steps += 1
            rows = self.chunk.rows
            known = self._look_outside(Limits.of(self.outputs.f[rows], *run.of(rows), tol))
            now = self._violation()
            run.say(now, known, always=True)
            if not moved or (now <= tol and known == len(run.alpha)):
                now, known = self._prove(), len(run.alpha)
                if now > tol and run.hopeless(now):
                    return Reason.PRECISION
        return Reason.CONVERGED

    def result(self, reason: Reason) -> KernelResult:
        proved = self.run.proved(self._prove)
        self.run.counts = {"values": self.chunk.computed + self.outputs.values}
        return self.run.result("double_chunking", reason, self.outputs.f, proved=proved)

    def _begin(self) -> float:
        """f of all examples; returns the violation."""
        now = self._prove()
        self.run.dual = float(self.run.alpha.sum() - 0.5 * self.outputs.signed @ self.outputs.f)
        return now

    def _prove(self) -> float:
        """f from scratch of all examples but those that are beyond doubt; returns the violation."""
        run, outputs = self.run, self.outputs
        with run.timed("certify"), run.clock.anywhere():
            rows = np.arange(len(run.alpha))
            if run.gram.definite and len(outputs.fresh()) < len(rows):
                support = np.flatnonzero(run.alpha)
                outputs.prove(support)
                free = support[run.alpha[support] < run.cost[support]]
                if len(free):
                    b = intercept(outputs.f[free], *run.of(free))
                    rows = np.flatnonzero((run.alpha > 0.0) | ~outputs.beyond_doubt(run.sign, b, run.settings.tol))
            outputs.prove(rows)
        return self._violation()

    def _violation(self) -> float:
        """Among the examples whose f is as of now."""
        rows = self.outputs.fresh()
        return widest(self.outputs.f[rows], *self.run.of(rows))

    def _solve_large(self, tol: float, now: float) -> bool:
        """Choose a large chunk and solve it; returns whether that changed anything."""
        run, outputs, chunk = self.run, self.outputs, self.chunk
        with run.timed("select"):
            rows = outputs.fresh()
            newcomers = int(self.newcomers * self.size)
            rows = rows[next_chunk(outputs.f[rows], *run.of(rows), self.size, newcomers, self.rng)]
        with run.timed("matrix"):
            chunk.become(rows)
        rows = chunk.rows
        sign, cost, alpha = run.of(rows)
        before = outputs.f[rows]
        f, inside = before.copy(), INSIDE * tol
        if self.abound:
            inside = max(inside, min(LOOSE, CLOSER * now))
        try:
            with run.timed("solve"):
                self._solve(chunk.values, sign, cost, alpha, f, inside)
        finally:  # it is feasible, however far it came
            run.change(rows, alpha, before, f)
            moved = outputs.move(rows, alpha * sign, f)
        return moved

    def _solve(
        self, K: np.ndarray, sign: np.ndarray, cost: np.ndarray, alpha: np.ndarray, f: np.ndarray, tol: float
    ) -> None:
        """Solve the large chunk with kernel matrix K: alpha and f change in place."""
        if self.small is None:
            steps = max(1, WORK // len(f))
            while solve_chunk(K, sign, cost, alpha, f, tol, steps) == steps:
                self.run.check()
            return
        while True:
            if widest(f, sign, cost, alpha) <= tol:
                return
            some = select(f, sign, cost, alpha, self.small)
            theirs, outputs = alpha[some], f[some]
            solve_small(K[np.ix_(some, some)], sign[some], cost[some], theirs, outputs, INSIDE * tol)
            change = sign[some] * (theirs - alpha[some])
            if not change.any():  # rounding
                return
            alpha[some] = theirs
            f += change @ K[some]
            self.run.check()

    def _look_outside(self, limits: Limits) -> int:
        """Bring f up to date where an example may break the limits, until enough do; sets the next chunk's size.

        Returns of how many examples it is known whether they do.
        """
        run, outputs = self.run, self.outputs
        free = int(np.count_nonzero((run.alpha > 0.0) & (run.alpha < run.cost)))
        least = max(FIRST, free / (1.0 - self.newcomers))
        enough = self.newcomers * self._within(max(least, GROWTH * self.size))
        with run.timed("look"):
            order = self._suspects(limits)
            step = max(PIECE // 8, min(PIECE, PIECE_VALUES // max(1, int(np.count_nonzero(outputs.signed)))))
            found, looked = 0, 0
            while looked < len(order) and found < enough:
                rows = order[looked : looked + step]
                outputs.look(rows)
                looked += len(rows)
                here = int(np.count_nonzero(margins(outputs.f[rows], *run.of(rows), *limits) < 0.0))
                found += here
                run.check()
                if here < RARE * found:
                    break
        self.abound = found >= enough
        self.size = self._within(max(least, min(found, enough) / self.newcomers))
        return len(run.alpha) - len(order) + looked

    def _suspects(self, limits: Limits) -> np.ndarray:
        """The examples that may break the limits for all that is known, those that probably do first."""
        outputs = self.outputs
        margin, drift = margins(outputs.f, *self.run.of(slice(None)), *limits), outputs.drift()
        rows = self.shuffled[drift[self.shuffled] > np.maximum(margin[self.shuffled], 0.0)]
        return rows[np.argsort(margin[rows] / drift[rows], kind="stable")]

    def _within(self, size: float) -> int:
        """The size of a large chunk where this one is wanted: all examples, if it is half of them and all fit in."""
        n = len(self.run.alpha)
        return self.large or int(min(n if size > n / 2 and self.most == n else size, self.most))


MUCH_FEWER = 0.75  # changed alphas for each support vector; above, f from scratch is worth it: it counts as a proof
TINY = 1e-150  # length of an example without any


class KernelOutputs:
    """f of all examples, each as of the alpha it was last looked at with, and how far it can be off by now.

    Since f_i = <w, phi(z_i)>, no f_i moves by more than |phi(z_i)| times the way that w has gone since, and that way is
    known without a look at the example: where alpha changes within a chunk, |change of w|^2 is the sum over the chunk
    of the change of alpha y times that of f. So examples far from the margin need no look while w moves by little.
    (Where a kernel is indefinite this bounds nothing; but then the end is judged by f of all examples from scratch.)

    A look at an example costs a kernel value for each alpha that has changed since the last one, or for each support
    vector, whichever are fewer; by linadd it costs one DOT. `signed` is alpha y as it is now.
    """

    def __init__(self, gram: Gram, signed: np.ndarray) -> None:
        n = len(signed)
        self.gram, self.signed = gram, signed
        self.f = np.zeros(n)
        self.values = 0
        """Kernel values that looks took; of a Gram with linadd the number of looks."""
        self._length = np.maximum(np.sqrt(np.maximum(gram.diagonal(), 0.0)), TINY)
        self._way = 0.0  # that w has gone
        self._way_then = np.full(n, -np.inf)  # at the last look
        self._now = 1 if signed.any() else 0  # how many alphas there have been
        self._stamp = np.zeros(n, np.int64)  # which of them f belongs to
        self._scratch = np.zeros(n, np.int64)  # which of them f was last computed from scratch with
        self._past = {0: (np.zeros(0, np.int64), np.zeros(0))}

    def fresh(self) -> np.ndarray:
        """The examples whose f is as of now."""
        return np.flatnonzero(self._stamp == self._now)

    def drift(self) -> np.ndarray:
        """Bounds on how far each f is off; infinite where there was no look yet."""
        return np.where(self._stamp == self._now, 0.0, self._length * (self._way - self._way_then))

    def move(self, rows: np.ndarray, signed: np.ndarray, f: np.ndarray) -> bool:
        """alpha y of these examples, whose f was as of now, has become this, and their f that.

        Returns whether that changes anything.
        """
        change = signed - self.signed[rows]
        if not change.any():
            return False
        support = np.flatnonzero(self.signed)
        in_use = set(np.unique(self._stamp).tolist())
        self._past = {stamp: past for stamp, past in self._past.items() if stamp in in_use}
        self._past[self._now] = support, self.signed[support]
        self._way += float(np.sqrt(max(0.0, change @ (f - self.f[rows]))))
        self._now += 1
        self.signed[rows] = signed
        self.f[rows] = f
        self._note(rows)
        return True

    def look(self, rows: np.ndarray) -> None:
        """Bring f of these examples up to date."""
        rows = rows[self._stamp[rows] < self._now]
        support = np.count_nonzero(self.signed)
        stamps = self._stamp[rows]
        anew = np.zeros(len(rows), np.bool_)
        for stamp in np.unique(stamps):
            some = stamps == stamp
            then, signed_then = self._past[int(stamp)]
            change = self.signed.copy()
            change[then] -= signed_then
            changed = np.flatnonzero(change)
            if self.gram.linadd or len(changed) > MUCH_FEWER * support:
                anew |= some
            else:
                self.f[rows[some]] += self._times(changed, change, rows[some])
        if anew.any():
            self._compute(rows[anew])
        self._note(rows)

    def beyond_doubt(self, sign: np.ndarray, b: float, tol: float) -> np.ndarray:
        """Which examples lie beyond the margin for all that w has gone since f was computed from scratch."""
        return (self._stamp == self._scratch) & (sign * (self.f + b) - 1.0 > SURE * self.drift() + tol)

    def prove(self, rows: np.ndarray) -> None:
        """Have f of these examples from scratch; what a look has computed with the alpha of now is."""
        self._compute(rows[self._scratch[rows] < self._now])

    def _compute(self, rows: np.ndarray) -> None:
        support = np.flatnonzero(self.signed)
        self.f[rows] = self._times(support, self.signed, rows)
        self._scratch[rows] = self._now
        self._note(rows)

    def _times(self, support: np.ndarray, signed: np.ndarray, rows: np.ndarray) -> np.ndarray:
        self.values += len(rows) * (1 if self.gram.linadd else len(support))
        everyone = len(rows) == len(self.f)  # in some order
        found = self.gram.times(support, signed[support], None if everyone else rows)
        return found[rows] if everyone else found

    def _note(self, rows: np.ndarray) -> None:
        self._stamp[rows], self._way_then[rows] = self._now, self._way
