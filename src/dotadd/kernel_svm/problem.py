"""The problem that kernel solvers solve, what they return, the run that leads there, and the table of solvers.

minimise 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (<w, phi(z_i)> + b)), of which the dual is

    maximise D(alpha) = sum_i alpha_i - 1/2 sum_ij alpha_i alpha_j y_i y_j k(z_i, z_j)
    subject to 0 <= alpha_i <= C_i and sum_i alpha_i y_i = 0.

Solvers keep f_i = sum_j alpha_j y_j k(z_j, z_i), so that the output of example i is f_i + b. With

    g_i = y_i - f_i,  up = {i : alpha_i y_i may rise},  low = {i : alpha_i y_i may fall},

alpha is optimal if max over up of g <= min over low of g, and `violation` is by how much that fails. It is what LIBSVM
stops by, and what `tol` bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import NamedTuple

import numpy as np

from dotadd._jit import plain
from dotadd._util.threads import one_blas_thread
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.working_set import intercept, objectives, widest
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.result import Reason, relative_gap


@dataclass(frozen=True)
class KernelProblem:
    """Separate the rows of a square Gram; sign (+1, -1, int8) and cost (C_i, float64) have an entry for each."""

    gram: Gram
    sign: np.ndarray
    cost: np.ndarray

    def __len__(self) -> int:
        return len(self.sign)


class KernelProgress(NamedTuple):
    """How far a solver has come: what it has done so far is told every now and then."""

    steps: int
    """Chunks, or steps of SMO, whatever the solver counts."""
    seconds: float
    dual: float
    violation: float
    support: int
    """Examples with alpha > 0."""
    seen: int
    """Examples whose violation is known; all but in the first chunks of double chunking."""


@dataclass(frozen=True)
class KernelSettings:
    """When to stop, how many bytes kernel values may take, and whom to tell."""

    tol: float = 1e-3
    memory: int = 500_000_000
    max_steps: int | None = None
    max_time: float | None = None
    seed: int = 0
    threads: int = 1
    on_progress: Callable[[KernelProgress], None] | None = field(default=None, compare=False)
    clock: Clock | None = field(default=None, compare=False)
    """To go by, in place of one that is made of max_time."""


@dataclass(frozen=True)
class KernelResult:
    """The answer to one binary problem. `primal`, `dual`, gap and violation are computed from scratch at the end."""

    alpha: np.ndarray
    intercept: float
    primal: float
    dual: float
    violation: float
    reason: Reason
    steps: int
    seconds: dict[str, float]
    trace: list[KernelProgress] = field(default_factory=list)
    solver: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    """What else the solver counted, such as the rows of the kernel matrix that it computed."""

    def __post_init__(self) -> None:
        """Whoever made it: an answer with numbers that are none has diverged."""
        unproved = self.reason is Reason.INTERRUPTED and np.isnan(self.primal)  # no time was left for the proof
        numbers = [] if unproved else [self.primal, self.dual, self.violation]
        if not np.isfinite([self.intercept, *numbers]).all():
            object.__setattr__(self, "reason", Reason.DIVERGED)

    def _repr_html_(self) -> str:
        from dotadd._util.wording import card, duration, number

        facts = {"primal": number(self.primal), "dual": number(self.dual), "violation": number(self.violation, 3)}
        facts |= {"steps": f"{self.steps:,} in {duration(sum(self.seconds.values()))}", "stopped": self.reason.value}
        return card(f"Result of {self.solver or 'a solver'}", facts)

    @property
    def gap(self) -> float:
        """(primal - dual) / primal."""
        return relative_gap(self.primal, self.primal - self.dual)

    @property
    def trained(self) -> bool:
        """Whether there is an answer at all: not where training ended before it came to this problem."""
        return self.converged or bool(self.alpha.any())

    @property
    def converged(self) -> bool:
        return self.reason is Reason.CONVERGED


def worst_of(results: Sequence[KernelResult]) -> KernelResult:
    """The result with the largest violation, or the first whose violation was not measured."""
    return max(results, key=lambda one: np.inf if np.isnan(one.violation) else one.violation)


def answer(
    solver: str,
    reason: Reason,
    f: np.ndarray,
    sign: np.ndarray,
    cost: np.ndarray,
    alpha: np.ndarray,
    *,
    proved: bool = True,
    steps: int = 0,
    seconds: dict[str, float] | None = None,
    trace: list[KernelProgress] | None = None,
    counts: dict[str, int] | None = None,
) -> KernelResult:
    """The result that alpha and its outputs f are; nothing is said about how good it is if f is not from scratch."""
    b = intercept(f, sign, cost, alpha)
    primal, dual = objectives(f, sign, cost, alpha, b)
    return KernelResult(
        alpha=alpha,
        intercept=float(b),
        primal=float(primal) if proved else np.nan,
        dual=float(dual) if proved else np.nan,
        violation=max(0.0, widest(f, sign, cost, alpha)) if proved else np.nan,
        reason=reason if proved else Reason.INTERRUPTED,
        steps=steps,
        seconds=seconds or {},
        trace=trace or [],
        solver=solver,
        counts=counts or {},
    )


@dataclass(frozen=True)
class KernelSolver:
    """A line of the table of kernel solvers. All of them need a Gram and nothing else, and start from any alpha.

    The name is that of the module and of the function in it, which is imported when it is first called.
    """

    name: str
    what: str
    """In words for people."""

    def __call__(
        self, problem: KernelProblem, settings: KernelSettings, alpha: np.ndarray | None = None
    ) -> KernelResult:
        solve: Callable[..., KernelResult] = getattr(import_module(f"dotadd.kernel_svm.{self.name}"), self.name)
        return solve(problem, settings, alpha)


SOLVERS = {
    solver.name: solver
    for solver in (
        KernelSolver("double_chunking", "solves large chunks by small ones"),
        KernelSolver("chunking", "SVM^light's decomposition, with linadd where the kernel is a feature map"),
        KernelSolver("smo", "LIBSVM's method"),
    )
}
USUAL = next(iter(SOLVERS))
TOLD = "\n".join(f'        "{name}": {solver.what}' for name, solver in SOLVERS.items())
"""The lines of a docstring."""


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
        self.clock = Clock(settings.max_time) if settings.clock is None else settings.clock
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

    def solved(self, solve: Callable[[], Reason], result: Callable[[Reason], KernelResult]) -> KernelResult:
        """The result, told why it ended: as the solver says, or by Ctrl-C, or because time is up."""
        with self.clock, one_blas_thread():
            try:
                reason = solve()
            except StoppedError as stopped:
                reason = stopped.reason
            return result(reason)

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
