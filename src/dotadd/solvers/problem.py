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

    def combine(self, alphas: list[np.ndarray], which: list[int]) -> list[np.ndarray]:
        """w = sum_i alpha_i y_i phi(z_i) for some of the binary problems, from scratch."""
        ws = [np.zeros(self.examples.dim, self.examples.dtype) for _ in which]
        used = np.flatnonzero(np.logical_or.reduce([alpha != 0.0 for alpha in alphas]))
        for block, at, rows in self.examples.blocks(used):
            for k, alpha, w in zip(which, alphas, ws, strict=True):
                coefficients = alpha[rows] * self.signs[k][rows]
                blocks.add(block.start, block.end, block.indices, block.values, at, coefficients, w)
        return ws

    def norms(self) -> np.ndarray:
        """|phi(z_i)|^2 of every example."""
        norms = np.empty(len(self.examples))
        for block, at, rows in self.examples.blocks():
            out = norms[rows[0] : rows[-1] + 1]
            blocks.squared_norms(block.start, block.end, block.indices, block.values, at, block.distinct, out)
        return norms

    def primal(self, w: np.ndarray, intercept: float, output: np.ndarray, k: int) -> float:
        """P(w, b) of binary problem k, given the outputs of w."""
        penalty = 0.5 * squared_length(w)
        if self.intercept is Intercept.REGULARIZED:
            penalty += 0.5 * intercept**2
        return penalty + total_loss(self.loss, self.signs[k] * (output + intercept), self.cost)

    def dual(self, w: np.ndarray, intercept: float, alpha: np.ndarray) -> float:
        """D(alpha), given w = sum_i alpha_i y_i phi(z_i) (and intercept = sum_i alpha_i y_i where it is regularized)."""
        penalty = 0.5 * squared_length(w)
        if self.intercept is Intercept.REGULARIZED:
            penalty += 0.5 * intercept**2
        return total_dual_term(self.loss, alpha, self.cost) - penalty


def squared_length(w: np.ndarray) -> float:
    """|w|^2 in float64, without a float64 copy of w."""
    return _squared_length(w)


@kernel
def _squared_length(w):
    total = 0.0
    for k in range(np.uint64(len(w))):
        total += np.float64(w[k]) * np.float64(w[k])
    return total
