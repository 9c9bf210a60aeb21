"""Which examples make up the next large chunk, and how close others are to being wanted.

A chunk that has been solved leaves an interval of g: its members in `up` lie below, those in `low` above, but for the
tolerance. An example outside violates the conditions with the chunk if its g lies on the wrong side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel
from dotadd.kernel_svm.working_set import may_fall, may_rise, select, violation


class Limits(NamedTuple):
    """g of examples in `up` has to be `high` at most, that of examples in `low` at least `low`."""

    low: float
    high: float

    @classmethod
    def of(cls, f: np.ndarray, sign: np.ndarray, cost: np.ndarray, alpha: np.ndarray, tol: float) -> Limits:
        """Limits that hold within a solved chunk, with half of the tolerance on either side.

        An example beyond them violates the conditions by half of tol or more together with some member of the chunk.
        """
        up_max, low_min, *_ = violation(f, sign, cost, alpha)
        middle = 0.5 * (up_max + low_min)
        return cls(min(middle, up_max) - 0.5 * tol, max(middle, low_min) + 0.5 * tol)


@kernel
def margins(f, sign, cost, alpha, low, high):
    """How far each example is from breaking the limits: by how much g may move; below 0 it breaks them already."""
    out = np.full(len(f), np.inf)
    for i in range(len(f)):
        g = sign[i] - f[i]
        if may_rise(sign[i], cost[i], alpha[i]):
            out[i] = high - g
        if may_fall(sign[i], cost[i], alpha[i]):
            out[i] = min(out[i], g - low)
    return out


def next_chunk(
    f: np.ndarray,
    sign: np.ndarray,
    cost: np.ndarray,
    alpha: np.ndarray,
    size: int,
    newcomers: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """At most `size` of these examples; f is as of now.

    The pair that violates the conditions most is among them, so every chunk makes progress. Free support vectors stay,
    as far as they leave room for this many newcomers; the rest of the room is for those that violate most, and then for
    those nearest to it, as many of `up` as of `low`.
    """
    free = np.flatnonzero((alpha > 0.0) & (alpha < cost))
    if len(free) > (places := size - max(2, newcomers)):
        free = rng.choice(free, places, replace=False)
    chosen = np.zeros(len(f), np.bool_)
    chosen[free] = True
    others = rng.permutation(np.flatnonzero(~chosen))  # at first all are alike: a random sample of both classes
    room = size - len(free)
    chosen[others[select(f[others], sign[others], cost[others], alpha[others], room)]] = True
    return np.flatnonzero(chosen)
