"""Result: what every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np


class Reason(Enum):
    """Why a solver stopped, in a sentence for people."""

    CONVERGED = "the relative duality gap is within the tolerance"
    STALLED = "the objective no longer improves by more than the tolerance"
    PRECISION = "rounding of the weights keeps the relative duality gap above the tolerance"
    MAX_PASSES = "the limit on passes was reached"
    MAX_TIME = "the time limit was reached"
    AVERAGED = "the mean of the parts' answers was taken, which is not the best answer to the whole"
    INTERRUPTED = "training was interrupted"


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


@dataclass(frozen=True)
class Result:
    """The answer to one binary problem, with the proof of how good it is.

    `primal`, `dual` and `gap = (primal - dual) / primal` are recomputed from scratch at the end. Methods without dual
    variables leave `alpha`, `dual` and `gap` None.
    """

    w: np.ndarray
    intercept: float
    alpha: np.ndarray | None
    primal: float
    dual: float | None
    gap: float | None
    reason: Reason
    passes: int
    seconds: dict[str, float]
    trace: list[Progress] = field(default_factory=list)
    solver: str = ""
    why: str = ""
    """The solver that found it, and why this one was chosen."""

    @property
    def converged(self) -> bool:
        return self.reason in (Reason.CONVERGED, Reason.STALLED)
