"""A small quadratic program within a box.

Problem:  min_x x' Q x / 2 - r' x,  0 <= x_i <= upper_i, Q symmetric and positive semidefinite
Given:    a start within the box
Returned: x

Sweeps of coordinate descent find which x_i lie inside the box. Newton's step on these, cut where it meets the box, does
what very many sweeps would; it is taken again without the x_i that it has brought to their bounds, until it is whole.
Both only go down, and they take turns until the optimality conditions hold.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel, plain

ROUNDS, SWEEPS = 100, 5
EXACT = 1e-13  # violation of the conditions, relative to the sums that it is the difference of
RIDGE = 1e-14  # of Q's diagonal: Q may be singular, as where an example occurs twice


def box_qp(Q: np.ndarray, r: np.ndarray, upper: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The minimum, as exact as rounding allows; float64 throughout."""
    x = np.clip(start, 0.0, upper)
    Q, r, upper = plain(Q), plain(r), plain(upper)
    enough = EXACT * (np.abs(Q) @ upper + np.abs(r))
    for _ in range(ROUNDS):
        if not _descend(Q, r, upper, enough, x, SWEEPS):
            break
        while not _newton(Q, r, upper, x):
            pass
    return x


def _newton(Q: np.ndarray, r: np.ndarray, upper: np.ndarray, x: np.ndarray) -> bool:
    """Newton's step on the x_i inside the box; returns whether it stayed inside."""
    free = np.flatnonzero((x > 0.0) & (x < upper))
    inside = Q[np.ix_(free, free)]
    inside[np.diag_indices_from(inside)] *= 1.0 + RIDGE
    try:
        move = np.linalg.solve(inside, r[free] - Q[free] @ x)
    except np.linalg.LinAlgError:
        return True
    bound = np.where(move > 0.0, upper[free], 0.0)
    room = np.divide(bound - x[free], move, out=np.full(len(free), np.inf), where=move != 0.0)
    t = room.min(initial=1.0)
    x[free] = np.where(room <= t, bound, np.clip(x[free] + t * move, 0.0, upper[free]))
    return t >= 1.0


@kernel
def _descend(Q, r, upper, enough, x, sweeps):
    """Sweeps of coordinate descent; returns whether the last of them met a violation that is not small enough."""
    moved = False
    for _ in range(sweeps):
        moved = False
        for i in range(len(x)):
            slope = -r[i]
            for j in range(len(x)):
                slope += Q[i, j] * x[j]
            if (slope > enough[i] and x[i] > 0.0) or (slope < -enough[i] and x[i] < upper[i]):
                moved = True
                if Q[i, i] > 0.0:
                    x[i] = min(max(x[i] - slope / Q[i, i], 0.0), upper[i])
                else:
                    x[i] = upper[i] if slope < 0.0 else 0.0
        if not moved:
            break
    return moved
