"""The quadratic of many rows that have few features among them: Q = Y Z Z' Y + diag(ridge), for interior_qp.py.

Z has a row phi(z_i) for each example and a column for each feature, Y the signs y_i. Its Gram matrix would be as large
as the number of rows squared. But to solve with Q plus a diagonal, D in all, a matrix of features by features is enough
(Woodbury):

    (D + Y Z Z' Y)^-1 = D^-1 - D^-1 Y Z (1 + Z' D^-1 Z)^-1 Z' Y D^-1

So a step of the interior point method takes time in proportion to the rows. Ferris and Munson (2003) have trained SVMs
on all rows in this way; here it ends coordinate descent where many rows of narrow data are active. Rows that have most
of the features are a dense matrix, whose products are BLAS's; of others the pairs of features are gone through.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dotadd._util.lapack import cholesky
from dotadd.core.block import Block, add_products, every_row
from dotadd.problem.row_products import write_columns

DENSE = 0.25  # of the features, from which on a row is better written in full


class LowRank:
    """Q of the rows of a block with numbered features, a constant for the intercept beside them."""

    def __init__(self, rows: Block, sign: np.ndarray, constant: float, ridge: np.ndarray | float = 0.0) -> None:
        assert rows.indices is not None
        self.rows, self.sign, self.constant, self.ridge = rows, sign, constant, ridge
        self.features = int(rows.indices.max()) + 1 if len(rows.indices) else 0
        self.dense = None
        if np.mean(rows.end - rows.start) > DENSE * self.features:
            self.dense = np.zeros((len(rows), self.features))
            write_columns(rows.start, rows.end, rows.indices, rows.values, np.arange(self.features), self.dense)

    def times(self, x: np.ndarray) -> np.ndarray:
        return self._outputs(self._sums(x)) + self.ridge * x

    def solver(self, diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        weight = 1.0 / (diagonal + self.ridge)
        inner = cholesky(self._squares(weight))
        if inner is None:
            return None

        def solve(b: np.ndarray) -> np.ndarray:
            x = weight * b
            return x - weight * self._outputs(inner(self._sums(x)))

        return solve

    def _sums(self, x: np.ndarray) -> np.ndarray:
        """Z' Y x, the constant's part last."""
        signed, out = self.sign * x, np.zeros(self.features + 1)
        if self.dense is None:
            self.rows.add(signed, out)
        else:
            out[:-1] = signed @ self.dense
        out[-1] = self.constant * signed.sum()
        return out

    def _outputs(self, u: np.ndarray) -> np.ndarray:
        """Y Z u."""
        out = self.rows.dot(u) if self.dense is None else self.dense @ u[:-1]
        return np.asarray(self.sign * (out + self.constant * u[-1]))

    def _squares(self, weight: np.ndarray) -> np.ndarray:
        """1 + Z' diag(weight) Z."""
        m = self.features
        out = np.zeros((m + 1, m + 1))
        if self.dense is None:
            rows, every, flat = self.rows, every_row(len(self.rows)), out.reshape(-1)
            add_products(rows.start, rows.end, rows.indices, rows.values, every, weight, m + 1, flat)
            out += out.T
        else:
            out[:m, :m] = (self.dense * weight[:, None]).T @ self.dense
        beside = np.zeros(m + 1)
        self.rows.add(self.constant * weight, beside)
        out[m], out[:, m] = beside, beside
        out[m, m] = self.constant**2 * weight.sum()
        out[np.diag_indices_from(out)] += 1.0
        return out
