"""The best free intercept for more outputs than are to be in memory at once, by passes over stretches of rows.

Problem:  min_b f(b) = slant b + sum_i C_i loss(y_i (output_i + b))
Given:    outputs, signs and costs that may lie on a memory map
Returned: b, as the search in memory (free_intercept.py) finds it, up to rounding

For the hinge losses the derivative f' is a chain of straight pieces that meet at the kinks b_i = y_i - output_i. One
pass sums up f' at some hundred pivots, which are quantiles of a sample of the kinks, and tells between which two of
them the zero lies. That is done again with the kinks between these, until they are few. All other examples are straight
there: together they are a line (hinge) or a parabola (squared hinge), and the few go with it to the search in memory.

For the logistic loss Newton's method needs nothing but sums over all examples.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dotadd._jit import plain
from dotadd.core.losses import Loss
from dotadd.problem.on_disk import let_go
from dotadd.solvers.free_intercept import TILT
from dotadd.solvers.line_search import logistic_minimum, logistic_sums, minimum_along

STRETCH = 1 << 16  # rows that are worked on at a time
FEW = 1 << 17  # rows that may be in memory
PIVOTS = 255
SIDES = np.array([1.0, -1.0])
SAMPLE = 16 * (PIVOTS + 1)  # kinks that pivots are chosen from

Stretch = tuple[np.ndarray, np.ndarray, np.ndarray]  # outputs, signs and costs of some rows, in float64


class ColumnOutputs:
    """The outputs, signs and costs of all rows of one binary problem, read again for each pass."""

    def __init__(self, output: np.ndarray, sign: np.ndarray, cost: np.ndarray) -> None:
        self.output, self.sign, self.cost = output, sign, cost

    def __len__(self) -> int:
        return len(self.output)

    def stretches(self) -> Iterator[Stretch]:
        for first in range(0, len(self), STRETCH):
            mine = slice(first, first + STRETCH)
            yield self.output[mine], self.sign[mine].astype(np.float64), self.cost[mine]
            let_go(self.output, self.sign, self.cost)

    def best_intercept(self, loss: Loss) -> float:
        """The b that minimises sum_i C_i loss(y_i (output_i + b)); where many do, the middle between them."""
        if loss is Loss.LOGISTIC:
            return self._logistic()
        tilt = TILT * sum(float(cost.sum()) for _, _, cost in self.stretches())
        return 0.5 * (self._hinge(loss, tilt) + self._hinge(loss, -tilt))

    def _logistic(self) -> float:
        def sums(b: float, derivative: float, rise: float, size: float) -> tuple[float, float, float]:
            for output, sign, cost in self.stretches():
                derivative, rise, size = logistic_sums(sign * output, sign, plain(cost), b, derivative, rise, size)
            return derivative, rise, size

        return logistic_minimum(sums, 1.0 if len(self) else 0.0, 0.0, 0.0, -np.inf)

    def _hinge(self, loss: Loss, slant: float) -> float:
        left, right, inside = -np.inf, np.inf, len(self)
        while inside > FEW:
            pivots = self._pivots(left, right, inside)
            if not len(pivots):  # all of them are at its ends
                break
            left, right, inside = self._bracket(loss, slant, left, right, pivots)
        parts, linear, quadratic, at_right = [], slant, 0.0, np.zeros(2)
        for output, sign, cost in self.stretches():
            kink = sign - output
            between = (left < kink) & (kink < right)
            active = np.where(sign > 0.0, kink > right, kink <= left)
            parts.append([array[between] for array in (sign * output, sign, cost)])
            at_right += [float(cost[(kink == right) & (sign == side)].sum()) for side in SIDES]
            weight = np.where(active, cost, 0.0)
            if loss is Loss.HINGE:
                linear -= float(weight @ sign)
            else:
                quadratic += 2.0 * float(weight.sum())
                linear -= 2.0 * float(weight @ kink)
        if right < np.inf:  # the kinks there, which may be any number, as one of each sign
            parts.append([1.0 - SIDES * right, SIDES, at_right])
        margins, slopes, costs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return min(minimum_along(loss, margins, slopes, costs, linear, quadratic, low=left), right)

    def _pivots(self, left: float, right: float, inside: int) -> np.ndarray:
        """Some of the kinks between left and right, about as many of all between each two of them."""
        step = max(1, inside // SAMPLE)
        some, skip = [], 0
        for output, sign, _ in self.stretches():
            kink = sign - output
            kink = kink[(left < kink) & (kink < right)]
            some.append(kink[skip::step].copy())  # a view would hold all of them
            skip = (skip - len(kink)) % step
        kinks = np.sort(np.concatenate(some))
        return np.unique(kinks[np.linspace(0, len(kinks) - 1, min(PIVOTS, len(kinks))).astype(np.int64)])

    def _bracket(
        self, loss: Loss, slant: float, left: float, right: float, pivots: np.ndarray
    ) -> tuple[float, float, int]:
        """The two neighbours among left, the pivots and right that have the zero between them, or at the second; and
        how many kinks are between them."""
        bins = 2 * len(pivots) + 1  # before, at and after each pivot
        counts = np.zeros(bins, np.int64)
        weights, moments = np.zeros(bins), np.zeros(bins)  # what the derivative gains at kinks: steps, or turns
        rise, level = 0.0, slant  # of f' before the first kink of all
        for output, sign, cost in self.stretches():
            kink = sign - output
            positive = np.where(sign > 0.0, cost, 0.0)
            if loss is Loss.HINGE:
                weight = cost
                level -= float(positive.sum())
            else:
                weight = -2.0 * sign * cost
                rise += 2.0 * float(positive.sum())
                level -= 2.0 * float(positive @ kink)
            at = np.searchsorted(pivots, kink) + np.searchsorted(pivots, kink, side="right")
            counts += np.bincount(at[(left < kink) & (kink < right)], minlength=bins)
            weights += np.bincount(at, weight, bins)
            if loss is not Loss.HINGE:
                moments += np.bincount(at, weight * kink, bins)
        passed, moment = np.cumsum(weights)[1::2], np.cumsum(moments)[1::2]  # up to each pivot, and with it
        derivative = level + passed if loss is Loss.HINGE else (rise + passed) * pivots + level - moment
        k = int(np.argmax(derivative >= 0.0)) if (derivative >= 0.0).any() else len(pivots)
        left = float(pivots[k - 1]) if k else left
        right = float(pivots[k]) if k < len(pivots) else right
        return left, right, int(counts[2 * k])
