"""Two threads at one binary problem whose rows are many and share few features: each visits a half of them.

A pass is cut into rounds. In a round either thread visits its half of the rows with a w of its own, and then both
changes are added up. Rows of 50 of 2^20 features hardly meet in so short a time, so the joint step raises the dual by
as much as both steps did. What they do share is the intercept: each half moves it by twice as much as it does in the
end, as if the other half did the same, or both would bring it to where one should. And halves are drawn anew for each
round, or they would have an intercept each to agree about, in many rounds.

Where the sum of both changes gains less than either promised, features are shared after all, and the problem goes on
on one thread. Nothing depends on which thread was faster: whoever is there takes a half, or both.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from dotadd._jit import kernel
from dotadd._util.threads import PIECE, for_each
from dotadd.core.losses import Loss
from dotadd.problem.examples import InMemory
from dotadd.solvers.sweep import (
    ACTIVE,
    BALANCE,
    DUAL_TERMS,
    GAP,
    HALF_NORM,
    INTERCEPT,
    PG_MAX,
    PG_MIN,
    Descent,
    Variables,
    sweep,
)

ROUND = 2.0  # non-zeros for each slot of w, which is read and written three times to add up changes
LEAST = 1 << 20  # non-zeros of a round: some milliseconds
LINE = 6  # 64 rows, whose alpha are eight lines of the cache, go together
LOST = 0.25  # of what both halves have gained: then features are shared, and more rounds lose more
SUMMED = [INTERCEPT, BALANCE, DUAL_TERMS, HALF_NORM, GAP, ACTIVE]


def rows_of_round(examples: InMemory) -> float:
    """So many rows are a round; infinitely many where one thread is better."""
    block = examples.view
    alone = examples.threads < 2 or block is None or block.indices is None or block.mid is not None
    nonzeros = ROUND * examples.dim
    return np.inf if alone or nonzeros < LEAST else nonzeros / examples.mean_length


class Rounds:
    """A sweep in such rounds over these examples, for one binary problem."""

    def __init__(self, examples: InMemory, size: int) -> None:
        self.examples, self.one, self.size = examples, examples.alone(), size
        self.ws: list[np.ndarray] = [np.empty(examples.dim, examples.dtype) for _ in range(2)]

    def sweep(
        self,
        order: np.ndarray,
        descent: Descent,
        variables: Variables,
        norms: np.ndarray,
        step: float,
        loss: Loss,
        *,
        shrink: bool,
        check: Callable[[], None],
    ) -> bool:
        """Visit these rows, a round at least. Says whether that was worth two threads."""
        twice = norms + step
        for w in self.ws:
            w[:] = descent.w
        while len(order):
            some = order if len(order) < 2 * self.size else order[: self.size]
            order = order[len(some) :]
            found = [self._twin(descent, w) for w in self.ws]

            def visit(half: tuple[Descent, np.ndarray]) -> None:
                twin, rows = half
                sweep(self.one, rows, [(twin, variables)], twice, 2.0 * step, loss, shrink=shrink)

            for_each(list(zip(found, _halves(some), strict=True)), visit, 2)
            lost = self._join(descent, found)
            descent.visited += len(some)
            if lost > LOST:
                return False
            if len(order):
                check()
        return True

    def _twin(self, descent: Descent, w: np.ndarray) -> Descent:
        twin = copy(descent)
        twin.w, twin.numbers, twin.talk = w, descent.numbers.copy(), descent.talk.copy()
        return twin

    def _join(self, descent: Descent, found: list[Descent]) -> float:
        """Add up the changes of both. Returns which share of what they have gained is lost, for the same intercept."""
        numbers, after = descent.numbers, np.array([twin.numbers for twin in found])
        change = (after[:, SUMMED] - numbers[SUMMED]).sum(0)
        intercept, balance, dual_terms, half_norm = change[:4]
        gained = dual_terms - half_norm - descent.b * balance
        change[0] = 0.5 * intercept
        numbers[SUMMED] += change
        numbers[PG_MAX], numbers[PG_MIN] = after[:, PG_MAX].max(), after[:, PG_MIN].min()
        firsts = range(0, len(descent.w), PIECE)
        shared = np.zeros(len(firsts))

        def add(n: int) -> None:
            piece = slice(firsts[n], firsts[n] + PIECE)
            shared[n] = _add_changes(descent.w[piece], *(w[piece] for w in self.ws))

        for_each(range(len(firsts)), add, 2)
        lost = float(shared.sum())
        numbers[HALF_NORM] += lost
        return lost / float(gained) if gained > 0.0 else 0.0


def _halves(rows: np.ndarray) -> list[np.ndarray]:
    """These rows in two halves, about, drawn by the first of them."""
    factor = np.uint64(int(rows[0]) * 0x9E3779B97F4A7C15 % 2**64 | 1)
    second = ((rows >> LINE).astype(np.uint64) * factor >> np.uint64(63)).astype(np.bool_)
    return [rows[~second], rows[second]]


@kernel
def _add_changes(w, one, other):
    """Both changes of w are written to all three; returns their inner product."""
    shared = 0.0
    for k in range(np.uint64(len(w))):
        change, more = one[k] - w[k], other[k] - w[k]
        shared += np.float64(change) * np.float64(more)
        w[k] = one[k] = other[k] = one[k] + more
    return shared
