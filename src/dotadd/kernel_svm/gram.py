"""Gram: the kernel between the rows of two batches, computed in blocks and never stored whole.

The narrow waist of kernel machines: kernels fill blocks, solvers see blocks. A solver asks for some rows of the matrix
(`block`), or for what it really wants, a sum of some rows for all columns (`times`), which kernels that know their
feature space compute through w without a single kernel value: clear, ADD, DOT (linadd).
"""

from __future__ import annotations

import numpy as np


class Gram:
    """k(a_i, b_j) of the rows a_i of one batch and b_j of another, which may be the same."""

    shape: tuple[int, int]
    """Rows and columns."""

    linadd: bool = False
    """Whether `times` goes through w: its cost does not depend on how many rows are summed up."""

    def diagonal(self) -> np.ndarray:
        """k(a_i, a_i) in float64; of a square Gram only."""
        raise NotImplementedError

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """k(a_i, b_j) for these rows and columns (all by default), in float32: an array of their lengths."""
        raise NotImplementedError

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """sum_i coefficients[i] k(a_rows[i], b_j) for these columns j (all by default), in float64."""
        raise NotImplementedError
