"""SomeRows: the part of a Gram that belongs to some of its examples."""

from __future__ import annotations

import numpy as np

from dotadd.kernel_svm.gram import Gram


class SomeRows(Gram):
    """A square Gram's rows and columns `rows`, without a copy of its values."""

    def __init__(self, gram: Gram, rows: np.ndarray) -> None:
        self.gram, self.rows = gram, rows
        self.shape, self.linadd = (len(rows), len(rows)), gram.linadd

    def diagonal(self) -> np.ndarray:
        return self.gram.diagonal()[self.rows]

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return self.gram.block(self.rows[rows], self._columns(columns))

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return self.gram.times(self.rows[rows], coefficients, self._columns(columns))

    def _columns(self, columns: np.ndarray | None) -> np.ndarray:
        return self.rows if columns is None else self.rows[columns]
