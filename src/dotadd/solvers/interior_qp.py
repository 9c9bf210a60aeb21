"""A quadratic program within a box, by an interior point method (Mehrotra 1992).

Problem:  min_x x' Q x / 2 - r' x,  0 <= x_i <= upper_i (which may be infinite), Q symmetric and positive semidefinite
Given:    Q as a matrix (Full) or as few features of many rows (low_rank.py), a start within the box, how far above the
          minimum x may be
Returned: x

Multipliers z of x >= 0 and v of x <= upper go with x: Q x - r = z - v, and at the minimum x_i z_i = 0 and (upper_i -
x_i) v_i = 0. All stay positive, and the products are brought down together: each step solves the conditions, linear in
all of them, for products of 0 (predictor), and again for products that are as small as the predictor has shown them to
be within reach, with its second-order terms (corrector). One Cholesky decomposition serves both. Some five to fifteen
steps suffice, however many x_i end at their bounds and however alike rows of Q are, where methods that move from bound
to bound (box_qp.py) need a step for each.

A start counts for as much as it is worth: x is that, pushed off its bounds, and the multipliers are its slopes plus
what makes each product an even share of its duality gap. From coordinate descent's alpha (10,000 mails by words, C =
100, a gap of 20 %) that takes 4 steps, where half of the box takes 15; with products a tenth as large it takes 6 to 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from dotadd._util.lapack import cholesky

MOST_STEPS = 60
INSIDE = 0.3  # of the mean x: at least so far from the bounds it starts
SPEEDING_UP = 0.65  # steps come nearer by more and more: a fifth of the way, by the logarithm, is a third of the steps
STAY_INSIDE = 0.995  # of the way to the nearest bound
AT_BOUND = 1e-9  # of the largest x: what is nearer to a bound, and is pressed against it, belongs there
RIDGE = 1e-12  # of the diagonal, where rounding has made it indefinite


class Quadratic(Protocol):
    """Q, as far as the method asks for it."""

    def times(self, x: np.ndarray) -> np.ndarray:
        """Q x."""
        ...

    def solver(self, diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        """What solves (Q + diag(diagonal)) x = b for x; None if rounding leaves no way."""
        ...


class Full:
    """Q as a matrix."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def times(self, x: np.ndarray) -> np.ndarray:
        product: np.ndarray = self.matrix @ x
        return product

    def solver(self, diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        at = np.diag_indices_from(self.matrix)
        for ridge in (0.0, RIDGE, 1e4 * RIDGE):
            matrix = self.matrix.copy()
            matrix[at] = matrix[at] * (1.0 + ridge) + diagonal
            if (solve := cholesky(matrix)) is not None:
                return solve
        return None


def interior_qp(
    Q: Quadratic,
    r: np.ndarray,
    upper: np.ndarray,
    start: np.ndarray,
    gap: float,
    check: Callable[[float], None] = lambda share: None,
) -> np.ndarray:
    """x at most `gap` above the minimum, or as near as rounding allows; float64 throughout. Before each step
    check(share of the way that is done) may raise."""
    finite = np.isfinite(upper)
    pairs = len(r) + int(finite.sum())
    x, z, v = _pushed_inside(Q, r, upper, start, gap)
    best, lowest, first = x, np.inf, 0.0
    for _ in range(MOST_STEPS):
        if not (x.min(initial=1.0) > 0.0 and (x < upper).all()):  # rounding has brought it to the border
            break
        s = np.where(finite, upper - x, 1.0)
        rest = Q.times(x) - r - z + v
        total = float(x @ z + s @ v)
        worst = total + float(np.abs(rest) @ np.where(finite, upper, x))
        if worst < lowest:
            best, lowest = x, worst
        if worst <= gap or not np.isfinite(worst):
            break
        first = first or worst
        check((math.log(first / lowest) / math.log(first / gap)) ** SPEEDING_UP if 0.0 < gap < first else 0.0)
        solve = Q.solver(z / x + v / s)
        if solve is None:
            break

        def step(
            xz: np.ndarray,
            sv: np.ndarray,
            at: tuple[np.ndarray, ...] = (x, z, s, v, rest),
            solve: Callable[[np.ndarray], np.ndarray] = solve,
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """The step after which the products would be these, if they were linear."""
            x, z, s, v, rest = at
            dx = solve(-rest + (xz - x * z) / x - (sv - s * v) / s)
            return dx, (xz - x * z - z * dx) / x, (sv - s * v + v * dx) / s

        zero = np.zeros(len(x))
        dx, dz, dv = step(zero, zero)
        dv[~finite] = 0.0
        t = _longest((x, dx), (s, np.where(finite, -dx, 0.0)), (z, dz), (v, dv))
        reached = float((x + t * dx) @ (z + t * dz) + (s - t * dx)[finite] @ (v + t * dv)[finite])
        aim = (reached / total) ** 3 * total / pairs
        dx, dz, dv = step(aim - dx * dz, np.where(finite, aim + dx * dv, 0.0))
        dv[~finite] = 0.0
        t = min(1.0, STAY_INSIDE * _longest((x, dx), (s, np.where(finite, -dx, 0.0)), (z, dz), (v, dv), most=2.0))
        x, z, v = x + t * dx, z + t * dz, v + t * dv
    return _at_bounds(Q, r, upper, best)


def _pushed_inside(
    Q: Quadratic, r: np.ndarray, upper: np.ndarray, start: np.ndarray, gap: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, z and v to start from."""
    finite = np.isfinite(upper)
    if not start.any():
        start = np.where(finite, 0.5 * np.where(finite, upper, 1.0), 1.0)
    room = INSIDE * np.minimum(start.mean(), upper)
    x = np.clip(start, room, upper - room)
    slope, away = Q.times(start) - r, np.where(finite, upper - start, start)
    total = float(start @ np.maximum(slope, 0.0) + away @ np.maximum(-slope, 0.0))
    product = max(total, gap) / (len(r) + int(finite.sum()))
    return (
        x,
        np.maximum(slope, 0.0) + product / x,
        np.where(finite, np.maximum(-slope, 0.0) + product / (upper - x), 0.0),
    )


def _at_bounds(Q: Quadratic, r: np.ndarray, upper: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x with what is as good as at a bound, and wants to stay there, at it."""
    slope = Q.times(x) - r
    near = AT_BOUND * x.max(initial=0.0)
    out = np.where((x < near) & (slope > 0.0), 0.0, x)
    return np.where((upper - x < near) & (slope < 0.0), upper, out)


def _longest(*ways: tuple[np.ndarray, np.ndarray], most: float = 1.0) -> float:
    """The longest step, up to `most`, with which these numbers stay positive."""
    return min(most, *(float(np.min(-at[d < 0.0] / d[d < 0.0], initial=most)) for at, d in ways))
