"""Result: what every solver returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np

from dotadd.core.block import row_numbers, squared_length


class Reason(Enum):
    """Why a solver stopped, in a sentence for people."""

    CONVERGED = "the relative duality gap is within the tolerance"
    STALLED = "the objective no longer improves by more than the tolerance"
    PRECISION = "rounding keeps the relative duality gap above the tolerance"
    MAX_PASSES = "the limit on passes was reached"
    MAX_TIME = "the time limit was reached"
    AVERAGED = "the mean of the parts' answers was taken, which is not the best answer to the whole"
    INTERRUPTED = "training was interrupted"
    DIVERGED = "numbers became too large to be computed with"

    @property
    def goes_on(self) -> bool:
        """Whether training could go on from where it is."""
        return self in (Reason.MAX_PASSES, Reason.MAX_TIME, Reason.INTERRUPTED)


def relative_gap(primal: float, gap: float) -> float:
    """gap / primal, by which every answer is judged; NaN if either is not a number that an objective can have."""
    if not (np.isfinite(primal) and np.isfinite(gap)) or primal < 0.0:
        return np.nan
    if primal == 0.0:
        return 0.0 if gap <= 0.0 else np.inf
    return max(0.0, gap) / primal


class Progress(NamedTuple):
    """How far a solver has come after a pass. Primal and gap are estimates while it runs."""

    passes: int
    seconds: float
    primal: float
    dual: float
    gap: float
    active: int
    rows: int
    sample: int | None = None
    """How many of the rows take part so far, where not all do; primal, dual and gap are those of their problem."""
    read: float | None = None
    """The share of this pass over the data that is done, where data is read while training runs."""
    cached: int | None = None
    """How many rows are in memory, where not all are."""
    tail: float | None = None
    """The share that is done of moving all active rows at once (tail.py), while that goes on."""

    def later(self, passes: int, seconds: float) -> Progress:
        """The same, for whoever counts from so many passes and seconds earlier."""
        return self._replace(passes=self.passes + passes, seconds=self.seconds + seconds)


def passes_left(trace: Sequence[Progress], tol: float, back: int) -> float:
    """How many more passes it takes to this gap, if it goes on falling as it did over the latest `back` passes."""
    before, now = trace[-back], trace[-1]
    if not 0.0 < now.gap < before.gap:
        return 0.0 if now.gap == 0.0 else math.inf
    return max(0.0, math.log(tol / now.gap) / math.log(now.gap / before.gap)) * (now.passes - before.passes)


class Support(NamedTuple):
    """The dual variables of so many rows in short: those that may differ from 0, and which rows they belong to."""

    rows: np.ndarray
    values: np.ndarray
    total: int

    @classmethod
    def of(cls, alpha: np.ndarray) -> Support:
        rows = row_numbers(alpha)
        return cls(rows, alpha[rows], len(alpha))

    def array(self) -> np.ndarray:
        alpha = np.zeros(self.total)
        alpha[self.rows] = self.values
        return alpha


@dataclass(frozen=True)
class Result:
    """The answer to one binary problem, with the proof of how good it is.

    `primal`, `dual` and `gap = (primal - dual) / primal` are recomputed from scratch at the end. They are what `alpha`
    proves: `dual` may be below 0, although alpha = 0 would prove 0, and `gap` above 1. Methods without dual variables
    leave `alpha`, `dual` and `gap` None.
    """

    w: np.ndarray
    intercept: float
    duals: np.ndarray | Support | None
    """The dual variables, in short where most rows were never visited; `alpha` has those of all rows."""
    primal: float
    dual: float | None
    gap: float | None
    reason: Reason
    passes: int
    """Over the data, to find the answer: on a stream, the whole readings that served this problem. Not counted:
    those before (the survey; labels and costs for a batch solver) and those that prove the gap and do not move w. 0
    where training ended before w had moved, and there is no answer."""
    seconds: dict[str, float]
    trace: list[Progress] = field(default_factory=list)
    solver: str = ""
    why: str = ""
    """The solver that found it, and why this one was chosen."""
    kept_rows: int = 0
    kept_bytes: int = 0
    """Rows of phi that were made once and kept, and the bytes that they took."""
    stretch: float = 1.0
    """`w` and `intercept` are those that belong to `duals` times this (stretch.py), as far as that is known."""

    @property
    def alpha(self) -> np.ndarray | None:
        """The dual variables of all rows."""
        return self.duals.array() if isinstance(self.duals, Support) else self.duals

    @property
    def usable(self) -> bool:
        """Whether there is a model at all: weights and an intercept that are numbers."""
        return bool(np.isfinite(self.intercept + squared_length(self.w)))

    def __post_init__(self) -> None:
        """Whoever made it: an answer with numbers that are none has diverged, and nothing is claimed of it."""
        numbers = [0.0]
        if not (self.reason is Reason.INTERRUPTED and np.isnan(self.primal)):  # no time was left for the proof
            numbers = [self.primal] if self.gap is None else [self.primal, self.gap]
        if not (self.usable and np.isfinite(numbers).all()):
            object.__setattr__(self, "reason", Reason.DIVERGED)
            object.__setattr__(self, "dual", None if self.dual is None else np.nan)
            object.__setattr__(self, "gap", None if self.gap is None else np.nan)

    def _repr_html_(self) -> str:
        from dotadd._util.wording import card, duration, number

        facts = {"primal": number(self.primal), "dual": number(self.dual), "gap": number(self.gap, 3)}
        facts |= {"passes": f"{self.passes:,} in {duration(sum(self.seconds.values()))}", "stopped": self.reason.value}
        return card(f"Result of {self.solver or 'a solver'}", facts | ({"because": self.why} if self.why else {}))

    @property
    def trained(self) -> bool:
        """Whether there is an answer at all: not where training ended before it came to this problem."""
        return self.passes > 0 or self.converged

    @property
    def converged(self) -> bool:
        """Whether it is as good as was asked for; methods without a gap can only tell that they no longer improve."""
        return self.reason is Reason.CONVERGED or (self.reason is Reason.STALLED and self.gap is None)


def worst_of(results: list[Result]) -> Result:
    """The answer of which the least is known to be good: no number at all, then the largest gap, then none measured."""

    def badness(result: Result) -> float:
        return -1.0 if result.gap is None else np.inf if np.isnan(result.gap) else result.gap

    return max(results, key=badness)
