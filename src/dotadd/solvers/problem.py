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
from dotadd.expand import Expansion
from dotadd.features.base import FeatureMap
from dotadd.losses import Loss, total_loss

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
        """A w of zeros."""
        return aligned_zeros(self.examples.phi, self.examples.dtype)

    def outputs(self, ws: list[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        """<w, phi(z_i)> of these examples (all by default) for each of several w."""
        return self.examples.dot(ws, rows)

    def margins(self, output: np.ndarray, intercept: float, k: int) -> np.ndarray:
        """y_i (output_i + b) of binary problem k, written over the outputs: there may be many millions."""
        output += intercept
        output *= self.signs[k]
        return output

    def primal(self, w: np.ndarray, intercept: float, margins: np.ndarray) -> float:
        """P(w, b), given the margins of w and b."""
        penalty = 0.5 * blocks.squared_length(w)
        if self.intercept is Intercept.REGULARIZED:
            penalty += 0.5 * intercept * intercept  # a power of a float raises where this is infinite
        return penalty + total_loss(self.loss, margins, self.cost)


def aligned_zeros(phi: FeatureMap, dtype: type) -> np.ndarray:
    """A w of zeros that lies in memory as maps that group features by the cache line count on."""
    size = np.dtype(dtype).itemsize
    room: np.ndarray = np.zeros(phi.dim + CACHE_LINE // size, dtype)
    first = -(room.ctypes.data + phi.anchor * size) % CACHE_LINE // size
    return room[first : first + phi.dim]
