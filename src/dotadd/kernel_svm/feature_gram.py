"""FeatureGram: <phi(a_i), phi(b_j)>, and sums of it by linadd: clear w, ADD the rows, DOT with all columns.

A sum of kernel rows costs one DOT a column, however many rows there are: not one kernel value is computed.
"""

from __future__ import annotations

import numpy as np

from dotadd.expand import Expansion
from dotadd.kernel_svm.grams import TiledGram, block_of_products
from dotadd.kernel_svm.products import Products
from dotadd.kernel_svm.sparse_products import SparseProducts

EXACT_SLOTS = 1 << 27  # of a w in float64: 1 GB. A sum from scratch in float32 is off by more than solvers notice
MOST_SLOTS = 1 << 30  # of a w in float32: 4 GB. In larger spaces kernel values are cheaper


class FeatureGram(TiledGram):
    """The kernel of a map. `products` may bring a faster way to single values than sparse rows."""

    def __init__(self, a: Expansion, b: Expansion, products: Products | None = None) -> None:
        self.a, self.b = a, b
        self.products = SparseProducts(a, b, threads=b.threads) if products is None else products
        self.shape, self.linadd = (len(a), len(b)), a.dim <= MOST_SLOTS

    def diagonal(self) -> np.ndarray:
        return self.products.a_norms

    def block(self, rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return block_of_products(self.products, rows, columns)

    def times(self, rows: np.ndarray, coefficients: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        if not self.linadd or len(rows) == 0:
            return super().times(rows, coefficients, columns)
        w = np.zeros(self.a.dim, np.float64 if self.a.dim <= EXACT_SLOTS else np.float32)
        self.a.add([np.bincount(rows, coefficients, len(self.a))], [w])
        return self.b.dot([w], columns)[0]

    _values = block
