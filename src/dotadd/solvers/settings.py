"""What every solver is told, and the random order that it takes examples in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dotadd._jit import kernel
from dotadd.core.budget import Budget
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.result import Progress


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
    """Where a streaming solver writes what it has; with `resume` it goes on from there."""
    resume: bool = False

    def rng(self) -> np.ndarray:
        """The state of a 64-bit generator, to be handed to kernels."""
        return np.random.SeedSequence(self.seed).generate_state(1, np.uint64) | np.uint64(1)


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
