"""Favour: examples whose steps gain more are visited more often (Glasmachers and Dogan 2013, adaptive frequencies).

Problem:  in which examples to look for what is left, when each has been visited some times
Given:    the rows that are active, and by how much a pass over each of them once has moved their alpha
Returned: as many visits as there are such rows, more of them for those that have gained more

Where C is large, a few examples go on moving long after most have found their place, and a pass visits all alike. So
every other pass is a favoured one. The passes between visit each row once: they tell the gap, let rows become inactive,
and compare gains. What a step gains is |phi|^2 change^2 / 2 unless a bound stopped it. Five times 8,000 mails by words,
each C warm from the one before, a gap of 1 % (benchmarks.choosing): 75 to 128 passes for C = 28 instead of 165 to 454,
and 111 to 231 for C = 100 instead of 211 to 579 with the tails of four folds.

The first favoured pass tells whether it pays: where a visit of it does not raise the dual by twice as much as one of
the passes around it, all passes visit each row once from then on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dotadd._jit import kernel
from dotadd.solvers.result import Progress
from dotadd.solvers.saving import Saved, State

FIRST = 8  # passes come before: most problems are solved by then, and where examples end says little before
TRIED = 3  # passes, of which the second is a favoured one: then it is seen whether that has paid
MORE = 2.0  # times the gain of a visit in the passes around it: 3.1 to 4.1 where favour pays, 1.3 to 1.8 elsewhere
RATE = 0.3  # at which odds grow with what a row gains beyond the mean
MOST = 20.0  # times as many visits as the mean, or as few
LUCKY = 10.0  # times the mean gain: more than that counts as much


def gained(trace: Sequence[Progress]) -> bool:
    """Whether the first favoured pass has raised the dual by so much more a visit than those around it, the last."""
    passes = trace[-TRIED - 1 :]
    visits = [max(1, progress.active) for progress in passes[:-1]]
    before, favoured, after = np.diff([progress.dual for progress in passes]) / visits
    return not favoured**2 < MORE**2 * before * after


class Favour:
    """The odds of rows, each in a place of its own, and where alpha was when the pass over each of them began."""

    def __init__(self, count: int) -> None:
        self.odds = np.ones(count, np.float32)
        self.rows, self.before = np.empty(0, np.uint32), np.empty(0)

    def order(self, rows: np.ndarray, alpha: np.ndarray, rng: np.ndarray, *, favoured: bool) -> np.ndarray:
        """The visits of the pass over these rows that begins now."""
        if favoured:
            return self.draw(rows, rng)
        self.rows, self.before = rows.copy(), alpha[rows]
        return rows

    def learn(self, alpha: np.ndarray, norms: np.ndarray) -> None:
        """A pass over each row once has ended."""
        _learn(self.rows, self.before, alpha, norms, self.odds)

    def draw(self, rows: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """As many visits of these rows, in their order; the generator is to move on afterwards."""
        return _draw(rows, self.odds, float(rng[0]) / 2.0**64)

    def state(self) -> State:
        return {"odds": self.odds, "favoured_rows": self.rows, "favoured_before": self.before}

    def restore(self, saved: Saved) -> None:
        self.odds, self.rows, self.before = (saved[name] for name in ("odds", "favoured_rows", "favoured_before"))


@kernel
def _learn(rows, before, alpha, norms, odds):
    """The odds after a pass in which these rows began with such alpha, over which their gains are written."""
    mean = 0.0
    for j in range(len(rows)):
        i = np.uint64(rows[j])
        change = alpha[i] - before[j]
        before[j] = norms[i] * change * change
        mean += before[j] / len(rows)
    if not 0.0 < mean < np.inf:  # numbers may have become too large, which is told elsewhere
        return
    for j in range(len(rows)):
        i = np.uint64(rows[j])
        factor = math.exp(RATE * min(before[j] / mean - 1.0, LUCKY))
        odds[i] = min(max(odds[i] * factor, 1.0 / MOST), MOST)


@kernel
def _draw(rows, odds, share):
    """Row j as often as there are whole numbers between the sums of shares up to it and with it."""
    total, count = 0.0, np.uint64(0)
    for j in range(len(rows)):
        total += odds[np.uint64(rows[j])]
    out = np.empty(len(rows) + 1, rows.dtype)
    for j in range(len(rows)):
        share += odds[np.uint64(rows[j])] * (len(rows) / total)
        while count < len(out) and np.float64(count) + 1.0 <= share:
            out[count] = rows[j]
            count += np.uint64(1)
    return out[:count]
