"""Settings: what every solver is told. Run: one binary problem on its way to an answer, and the Result at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dotadd._jit import kernel
from dotadd._util.memory import Budget
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.clock import Clock
from dotadd.solvers.proof import Certificate
from dotadd.solvers.result import Progress, Reason, Result, Support
from dotadd.solvers.saving import Saved, State


@dataclass(frozen=True)
class Settings:
    """When to stop, where the random numbers start, and whom to tell how far each binary problem is."""

    tol: float = 1e-3
    max_passes: int = 1000
    max_time: float | None = None
    seed: int = 0
    on_progress: Callable[[Progress, int], None] | None = field(default=None, compare=False)
    budget: Budget = field(default_factory=lambda: Budget(1 << 31), compare=False)
    """Memory for what solvers collect, such as cutting planes."""

    checkpoint: Checkpoint | None = None
    """Where a solver that can be resumed writes what it has; with `resume` it goes on from there."""
    resume: bool = False

    def rng(self, k: int | None = None) -> np.ndarray:
        """The state of a 64-bit generator, to be handed to kernels; for binary problem k one of its own."""
        seeds = np.random.SeedSequence(self.seed, spawn_key=() if k is None else (k,))
        return seeds.generate_state(1, np.uint64) | np.uint64(1)


@kernel
def shuffle(order, rng):
    """Fisher and Yates, with a 64-bit xorshift whose state is rng[0]."""
    s = rng[0]
    n = len(order)
    for i in range(n - 1):
        s ^= s << np.uint64(13)
        s ^= s >> np.uint64(7)
        s ^= s << np.uint64(17)
        j = i + np.int64(((s >> np.uint64(32)) * np.uint64(n - i)) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]
    rng[0] = s


OnProgress = Callable[[Progress, int], None]


class Run:
    """Binary problem k: the best w and alpha so far, how far they have come, why it ended, and the proof once there is
    one. `alpha` stays None where a solver has no dual variables, or they lie elsewhere."""

    def __init__(self, k: int, w: np.ndarray, alpha: np.ndarray | None = None) -> None:
        self.k, self.w, self.alpha = k, w, alpha
        self.passes = 0
        self.trace: list[Progress] = []
        self.reason: Reason | None = None
        self.certificate: Certificate | None = None
        self._without_dual = False

    def tell(self, progress: Progress, clock: Clock, on_progress: OnProgress | None) -> None:
        """Note how far it is, and tell whoever wants to know. A number that is none ends it."""
        self.trace.append(progress)
        clock.tell(on_progress, progress, self.k)
        if not np.isfinite(progress.primal):
            self.reason = Reason.DIVERGED

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do for it."""
        return self.reason is not None and not self.reason.goes_on

    def state(self) -> State:
        """What it has to have to go on from here in another process, to the same bits."""
        found: State = {"w": self.w, "passes": self.passes, "trace": self.trace}
        found["reason"] = self.reason.name if self.reason is not None and self.done else None
        return found if self.alpha is None else found | {"alpha": self.alpha}

    def restore(self, saved: Saved) -> None:
        """Go on from such a state."""
        saved.into("w", self.w)
        self.alpha = saved.get("alpha")
        self.passes, self.trace = saved["passes"], [Progress(*row) for row in saved["trace"]]
        self.reason = None if saved["reason"] is None else Reason[saved["reason"]]

    def aim(self, tol: float, *, tighter: bool) -> None:
        """Go on to another tolerance than before: what was done may have to be done better."""
        if tighter and self.reason in (Reason.CONVERGED, Reason.STALLED):
            self.reason = None

    def unproved(self, b: float, reason: Reason) -> None:
        """There was no time for the proof."""
        self.certificate, self.reason = Certificate.missing(b), reason

    def primal_alone(self, primal: float, b: float) -> None:
        """The objective is all that is known: there are no dual variables, or nobody asked for the proof."""
        self.certificate, self._without_dual = Certificate.missing(b)._replace(primal=primal), True

    @property
    def duals(self) -> np.ndarray | Support | None:
        """The dual variables that the answer has."""
        return self.alpha

    def result(self, seconds: dict[str, float]) -> Result:
        assert self.reason is not None
        assert self.certificate is not None
        primal, dual, gap, intercept, _ = self.certificate
        return Result(
            w=self.w,
            intercept=intercept,
            duals=self.duals,
            primal=primal,
            dual=None if self._without_dual else dual,
            gap=None if self._without_dual else gap,
            reason=self.reason,
            passes=self._passes_told(self.reason),
            seconds=seconds,
            trace=self.trace,
        )

    def _passes_told(self, reason: Reason) -> int:
        """One pass that was cut short counts if nothing else does but w has moved; none counts if the time, or the
        patience of the user, was over before w had."""
        if reason in (Reason.MAX_TIME, Reason.INTERRUPTED):
            return max(1, self.passes) if self.w.any() else 0
        return self.passes
