"""Run: what kernel solvers keep beside f: alpha, the clock, whom to tell, and the answer in the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from dotadd._jit import plain
from dotadd.kernel_svm.problem import KernelProblem, KernelProgress, KernelResult, KernelSettings, answer
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.result import Reason

NO_BETTER = 3  # violations in a row, each of f from scratch, that do not fall: what is left is rounding
BALANCED = 1e-12  # what sum_i alpha_i y_i may be, relative to the sum of one side
SAY_EVERY = 0.2  # seconds
WORK = 1 << 26  # numbers to pass over before the clock is looked at


class KernelRun:
    """One binary problem on its way through a solver."""

    def __init__(self, problem: KernelProblem, settings: KernelSettings, alpha: np.ndarray | None) -> None:
        self.gram, self.sign, self.cost = problem.gram, plain(problem.sign), plain(problem.cost)
        self.settings = settings
        self.alpha = np.zeros(len(problem)) if alpha is None else feasible(alpha, self.sign, self.cost)
        self.steps, self.dual = 0, 0.0
        self.trace: list[KernelProgress] = []
        self.counts: dict[str, int] = {}
        self.clock = Clock(settings.max_time)
        self._said = -SAY_EVERY
        self._least, self._worse = np.inf, 0

    def over(self) -> bool:
        """Whether as many steps were made as may be."""
        return self.settings.max_steps is not None and self.steps >= self.settings.max_steps

    def timed(self, phase: str) -> AbstractContextManager[None]:
        return self.clock.timed(phase)

    def check(self) -> None:
        """Leave, if Ctrl-C was pressed or time is up."""
        self.clock.check()

    def of(self, rows: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sign, cost and alpha of these examples."""
        return self.sign[rows], self.cost[rows], self.alpha[rows]

    def change(self, rows: np.ndarray, alpha: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
        """These examples get these alphas, which turns their outputs from `before` to `after`."""
        more = alpha - self.alpha[rows]
        self.dual += float(more @ (1.0 - 0.5 * self.sign[rows] * (before + after)))
        self.alpha[rows] = alpha

    def hopeless(self, violation: float) -> bool:
        """Whether violations, each of f from scratch, no longer fall: what is left is rounding."""
        self._worse = self._worse + 1 if violation >= self._least else 0
        self._least = min(self._least, violation)
        return self._worse == NO_BETTER

    @property
    def due(self) -> bool:
        """Whether it is time to tell how far it is."""
        return self.clock.elapsed() >= self._said + SAY_EVERY

    def say(self, violation: float, seen: int, *, always: bool = False) -> None:
        if not always and not self.due:
            return
        self._said = elapsed = self.clock.elapsed()
        support = int(np.count_nonzero(self.alpha))
        self.trace.append(KernelProgress(self.steps, elapsed, self.dual, violation, support, seen))
        self.clock.tell(self.settings.on_progress, self.trace[-1])

    def until_the_end(self, solve: Callable[[], Reason]) -> Reason:
        """Why it ended: as the solver says, or by Ctrl-C, or because time is up."""
        try:
            return solve()
        except StoppedError as stopped:
            return stopped.reason

    def proved(self, prove: Callable[[], object]) -> bool:
        """Whether f is from scratch in the end: nobody has left that out by a second Ctrl-C."""
        try:
            with self.clock.proof():
                prove()
        except StoppedError:
            return False
        return True

    def result(self, solver: str, reason: Reason, f: np.ndarray, *, proved: bool) -> KernelResult:
        """The answer; nothing is said about how good it is if f is not from scratch."""
        return answer(
            solver, reason, f, self.sign, self.cost, self.alpha,
            proved=proved, steps=self.steps, seconds=self.clock.seconds, trace=self.trace, counts=self.counts,
        )  # fmt: skip


def feasible(alpha: np.ndarray, sign: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """An alpha like this one within the bounds and with sum_i alpha_i y_i = 0: the heavier side is scaled down."""
    alpha = np.clip(np.asarray(alpha, np.float64), 0.0, cost)
    positive, negative = float(alpha[sign > 0].sum()), float(alpha[sign < 0].sum())
    if abs(positive - negative) > BALANCED * max(positive, negative):
        side = sign > 0 if positive > negative else sign < 0
        alpha[side] *= min(positive, negative) / max(positive, negative)
    return alpha
