"""The arithmetic of a proof: what the rows of an answer sum up to, and primal, dual and gap that follow from it.

For any w and b and any dual variables alpha, with margins m_i of w and b and w_alpha = sum_i alpha_i y_i phi(z_i),

    P(w, b) - D(alpha) = sum_i [ C_i loss(m_i) - dual_term(alpha_i) + alpha_i m_i ] + 1/2 |w - w_alpha|^2,

provided that sum_i alpha_i y_i = 0 where the intercept is free; where it is regularized, there is also 1/2 (b - sum_i
alpha_i y_i)^2. Each term is >= 0. Where w and b are drawn to a centre w0 and b0, these are added to w_alpha and to
sum_i alpha_i y_i.

`RowSums` are sums over rows, so those of pieces, of parts and of machines are added up; `certificate` ends the sum. All
of it is computed in float64. What rounding may have done to it is bounded, and counts as a part of the gap, so that no
dual objective is claimed that alpha does not have. On ordinary data this is some 1e-12 of the objective. Where it is
more than the tolerance, as with a column of milliseconds since 1970 beside rates, the answer says PRECISION.

The bound. A sum of n numbers is wrong by at most n u times the sum of their sizes, in whatever order they are added,
u = 2^-53. So a margin is wrong by at most e_i = (n + 3) u (|w| |phi(z_i)| + |b|), n being the number of non-zeros; a
local gap by e_i times alpha_i and the steepest slope near m_i; and w_alpha by n u sum_i alpha_i |phi(z_i)|.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel
from dotadd.core.block import squared_length
from dotadd.core.losses import LOGISTIC, SQUARED_HINGE, dual_term, slope, value
from dotadd.problem.problem import Centre, Intercept, half_length
from dotadd.solvers.result import Reason, relative_gap

U = 2.0**-53
FEW = 64  # roundings of what is computed of a row's margin and alpha, logarithms among them


class Certificate(NamedTuple):
    """Primal and dual objective, gap = (primal - dual) / primal, and the intercept that they belong to."""

    primal: float
    dual: float
    gap: float
    intercept: float
    drift: float
    """What of the gap comes from rounding: w is not quite sum_i alpha_i y_i phi(z_i), and sums are not quite sums."""

    @classmethod
    def missing(cls, intercept: float) -> Certificate:
        """What is known of an answer that nobody had time to prove."""
        return cls(np.nan, np.nan, np.nan, intercept, np.nan)

    def verdict(self, tol: float) -> Reason | None:
        """Why to stop; None if more steps would help: all but the drift may still shrink."""
        if not np.isfinite(self.gap):
            return Reason.DIVERGED
        if self.gap <= tol:
            return Reason.CONVERGED
        return Reason.PRECISION if self.drift > 0.5 * tol and self.gap - self.drift <= tol else None


class Rounding(NamedTuple):
    """What the error of a margin depends on: the most non-zeros of a row, |w| and b."""

    terms: int
    length: float
    intercept: float

    @classmethod
    def of(cls, w: np.ndarray, intercept: float, terms: int) -> Rounding:
        return cls(terms, float(np.sqrt(squared_length(w))), intercept)


@dataclass(frozen=True)
class RowSums:
    """What rows add up to in the proof of an answer."""

    losses: float = 0.0
    gaps: float = 0.0
    """Local gaps, each >= 0."""
    balance: float = 0.0
    """sum_i alpha_i y_i."""
    mass: float = 0.0
    """sum_i alpha_i."""
    pull: float = 0.0
    """sum_i alpha_i |phi(z_i)|."""
    doubt: float = 0.0
    """By how much losses and gaps may be wrong through their margins."""
    sizes: float = 0.0
    """The sizes of all terms of `gaps`."""
    farthest: float = 0.0
    """The largest |phi(z_i)|."""
    rows: float = 0.0

    @classmethod
    def of(
        cls,
        loss: int,
        margins: np.ndarray,
        alpha: np.ndarray,
        sign: np.ndarray,
        cost: np.ndarray,
        norms: np.ndarray,
        rounding: Rounding,
        *,
        beside: float = 0.0,
    ) -> RowSums:
        """The sums over these rows; norms are |phi(z_i)|^2, and `beside` that the solver has added to each."""
        out = np.zeros(len(fields(cls)))
        unit = U * (rounding.terms + 3.0)
        reach, offset = unit * rounding.length, unit * abs(rounding.intercept)
        _sum_rows(int(loss), margins, alpha, sign, cost, norms, beside, reach, offset, out)
        return cls(*map(float, out))

    def __add__(self, other: RowSums) -> RowSums:
        sums = [getattr(self, one.name) + getattr(other, one.name) for one in fields(self)]
        joined = RowSums(*sums)
        return RowSums(**{**joined.__dict__, "farthest": max(self.farthest, other.farthest)})

    def primal(self, w: np.ndarray, intercept: Intercept, b: float, centre: Centre | None = None) -> float:
        """P(w, b)."""
        return half_length(w, b, intercept, centre) + self.losses

    def gap(self, intercept: Intercept, b: float, centre: Centre | None = None) -> float:
        """P(w, b) - D(alpha), but for rounding: local gaps, and how far a regularized b is from sum_i alpha_i y_i."""
        if intercept is not Intercept.REGULARIZED:
            return self.gaps
        apart = b - (0.0 if centre is None else centre.b) - self.balance
        return self.gaps + 0.5 * apart * apart

    def certificate(
        self, w: np.ndarray, intercept: Intercept, b: float, distance: float, centre: Centre | None = None
    ) -> Certificate:
        """What all rows prove of w and b, given |w - w_alpha|^2."""
        primal = self.primal(w, intercept, b, centre)
        many = U * (self.rows + FEW)
        half = primal - self.losses
        wrong = self.doubt + 2.0 * many * self.sizes + U * (len(w) + FEW) * half  # in the gap, and in the primal
        length = np.sqrt(2.0 * half)
        apart = np.sqrt(distance) * (1.0 + U * (len(w) + FEW)) + many * self.pull
        apart_b = origin = 0.0
        if centre is not None:  # which was added to w_alpha, and taken from w
            origin, away = centre.b, float(np.sqrt(squared_length(centre.w)))
            length += away
            apart += U * FEW * (away + abs(origin))
        if intercept is Intercept.REGULARIZED:
            apart_b = abs(b - origin - self.balance) + many * self.mass
        elif intercept is Intercept.FREE:  # sum_i alpha_i y_i = 0 up to rounding, and moving alpha there costs this
            wrong += many * self.mass * (FEW + abs(b) + length * self.farthest)
        drift = 0.5 * (apart * apart + apart_b * apart_b) + wrong
        gap = self.gaps + drift
        relative = relative_gap(primal, gap)
        dual = primal - max(0.0, gap) if np.isfinite(relative) else np.nan
        return Certificate(primal, dual, relative, b, drift / primal if primal > 0.0 else drift)


@kernel
def _sum_rows(loss, margins, alpha, sign, cost, norms, beside, reach, offset, out):
    """The fields of RowSums, in their order. Rows of cost 0 do not count."""
    losses, gaps, balance, mass, pull, doubt, sizes, farthest, rows = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(margins)):
        c, a, m = cost[i], alpha[i], margins[i]
        if c == 0.0:
            if a != 0.0:  # w_alpha has it, and no bound allows it
                doubt = np.inf
            continue
        if a < 0.0 or (a > c and loss != SQUARED_HINGE):  # outside of its bounds, where alpha proves nothing
            doubt = np.inf
        norm = norms[i] - beside
        far = np.sqrt((norm if norm > 0.0 else 0.0) + 4.0 * U * beside)
        error = reach * far + offset
        here, term = c * value(loss, m), dual_term(loss, a, c)
        losses += here
        gaps += here - term + a * m
        balance += a * sign[i]
        mass += a
        pull += a * far
        doubt += (a - c * slope(loss, m - error)) * error
        if loss == LOGISTIC:  # of whose entropy little may be left when 1 - alpha / C is rounded
            doubt += FEW * U * c
        sizes += here + abs(term) + a * abs(m)
        farthest = max(farthest, far)
        rows += 1.0
    out[0], out[1], out[2], out[3], out[4] = losses, gaps, balance, mass, pull
    out[5], out[6], out[7], out[8] = doubt, sizes, farthest, rows
