"""Problem: what a solver is given, and the one objective by which every answer is judged.

    P(w, b) = 1/2 |w|^2 [+ 1/2 b^2 if the intercept is regularized] + sum_i C_i loss(y_i (<w, phi(z_i)> + b))

Several binary problems may share the examples (one against the rest): they differ in their signs only, and a solver
expands each block once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from dotadd import block as blocks
from dotadd._jit import kernel
from dotadd.expand import Expansion
from dotadd.losses import Loss, total_dual_term, total_loss

EXACT_BYTES = 256 << 20
CACHE_LINE = 64


class Intercept(Enum):
    """What b is: absent, one more weight on a constant feature, or free of any penalty."""

    NONE = "none"
    REGULARIZED = "regularized"
    FREE = "free"


@dataclass(frozen=True)
class Problem:
    """Examples, the signs (+1, -1) of each binary problem on them, the cost C_i of each example, loss and intercept."""

    examples: Expansion
    signs: list[np.ndarray]
    cost: np.ndarray
    loss: Loss = Loss.HINGE
    intercept: Intercept = Intercept.REGULARIZED

    def __len__(self) -> int:
        return len(self.signs)

    def zeros(self) -> np.ndarray:
        """A w of zeros that begins on a cache line, as maps that group features by the line count on."""
        dtype = np.dtype(self.examples.dtype)
        room = np.zeros(self.examples.dim + CACHE_LINE // dtype.itemsize, dtype)
        first = -room.ctypes.data % CACHE_LINE // dtype.itemsize
        return room[first : first + self.examples.dim]

    def outputs(self, ws: list[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        """<w, phi(z_i)> of these examples (all by default) for each of several w, each block expanded once."""
        outputs = [np.empty(len(self.examples) if rows is None else len(rows)) for _ in ws]
        first = 0
        for block, at, some in self.examples.blocks(rows):
            for w, output in zip(ws, outputs, strict=True):
                out = output[first : first + len(some)]
                blocks.dot(block.start, block.end, block.indices, block.values, at, w, out)
            first += len(some)
        return outputs

    def add(self, coefficients: list[np.ndarray], ws: list[np.ndarray]) -> None:
        """w += sum_i coefficient_i phi(z_i) for each of several w, each block expanded once."""
        used = np.flatnonzero(np.logical_or.reduce([some != 0.0 for some in coefficients]))
        for block, at, rows in self.examples.blocks(used):
            for some, w in zip(coefficients, ws, strict=True):
                blocks.add(block.start, block.end, block.indices, block.values, at, some[rows], w)

    def distances(self, coefficients: list[np.ndarray], ws: list[np.ndarray]) -> list[float]:
        """|w - sum_i coefficient_i phi(z_i)|^2 for each of several w, the sum built from scratch in float64.

        The sum is built for so many slots at a time that it stays within EXACT_BYTES.
        """
        used = np.flatnonzero(np.logical_or.reduce([some != 0.0 for some in coefficients]))
        step = max(1, EXACT_BYTES // (8 * len(ws)))
        totals = [0.0] * len(ws)
        for first in range(0, self.examples.dim, step):
            stop = min(first + step, self.examples.dim)
            sums = [np.zeros(stop - first) for _ in ws]
            for block, at, rows in self.examples.blocks(used):
                for some, part in zip(coefficients, sums, strict=True):
                    _add_within(block.start, block.end, block.indices, block.values, at, some[rows], first, part)
            for k, (w, part) in enumerate(zip(ws, sums, strict=True)):
                totals[k] += _squared_distance(w[first:stop], part)
        return totals

    def norms(self) -> np.ndarray:
        """|phi(z_i)|^2 of every example."""
        norms = np.empty(len(self.examples))
        for block, at, rows in self.examples.blocks():
            out = norms[rows[0] : rows[-1] + 1]
            blocks.squared_norms(block.start, block.end, block.indices, block.values, at, block.distinct, out)
        return norms

    def primal(self, w: np.ndarray, intercept: float, output: np.ndarray, k: int) -> float:
        """P(w, b) of binary problem k, given the outputs of w."""
        penalty = 0.5 * blocks.squared_length(w)
        if self.intercept is Intercept.REGULARIZED:
            penalty += 0.5 * intercept**2
        return penalty + total_loss(self.loss, self.signs[k] * (output + intercept), self.cost)

    def local_gaps(self, output: np.ndarray, intercept: float, alpha: np.ndarray, k: int) -> float:
        """sum_i [ C_i loss(m_i) - dual_term(alpha_i) + alpha_i m_i ], a sum of terms >= 0.

        With w_alpha = sum_i alpha_i y_i phi(z_i), P(w, b) - D(alpha) is this plus |w - w_alpha|^2 / 2, provided that
        b = sum_i alpha_i y_i where the intercept is regularized, and sum_i alpha_i y_i = 0 where it is free.
        """
        margins = self.signs[k] * (output + intercept)
        losses, terms = total_loss(self.loss, margins, self.cost), total_dual_term(self.loss, alpha, self.cost)
        return losses - terms + float(alpha @ margins)


@kernel
def _squared_distance(a, b):
    total = 0.0
    for k in range(np.uint64(len(a))):
        difference = np.float64(a[k]) - np.float64(b[k])
        total += difference * difference
    return total


@kernel
def _add_within(start, end, indices, values, at, coefficients, first, out):
    """ADD, for the slots from `first` on that `out` has room for."""
    low, high = np.uint64(first), np.uint64(first + len(out))
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            if low <= slot < high:
                out[slot - low] += coefficients[j] * (1.0 if values is None else np.float64(values[k]))
