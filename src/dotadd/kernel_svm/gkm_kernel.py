"""GkmRBF: LS-GKM's kernels gkmrbf and wgkmrbf, exp(gamma (k(z, z') - 1)) of its kernel k of gapped k-mers.

k is a sum over pairs of l-mers, divided by the lengths of both strings (features/lmer_counts.py). Since k(z, z) = 1,
this is the RBF kernel of its features, with half of this gamma. Rows of these features are too wide to be multiplied,
so values come from pairs of l-mers, 48 at a time (features/mismatch_pairs.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dotadd._util.threads import for_each
from dotadd.data.batches import Batch, Strings
from dotadd.errors import DotaddError
from dotadd.features.gkm_weights import kernel_weights
from dotadd.features.lmer_counts import LmerCounts
from dotadd.features.mismatch_pairs import products
from dotadd.kernel_svm.gram import Gram, TiledGram
from dotadd.kernel_svm.kernels import Kernel

COLUMNS = 8  # strings that one kernel call takes, with all rows of a tile: some tenths of a second


@dataclass(frozen=True, repr=False)
class GkmRBF(Kernel):
    """exp(gamma (k(z, z') - 1)); phi says which k."""

    phi: LmerCounts
    gamma: float = 1.0
    takes = (Strings,)

    def __post_init__(self) -> None:
        if not isinstance(self.phi, LmerCounts):
            raise DotaddError(f"GkmRBF takes LmerCounts(...), and not {self.phi!r}")
        if isinstance(self.gamma, bool) or not isinstance(self.gamma, int | float) or not 0.0 < self.gamma < np.inf:
            raise DotaddError(f"gamma has to be a number above 0, and not {self.gamma!r}")
        object.__setattr__(self, "gamma", float(self.gamma))

    @property
    def doubtful(self) -> bool:
        """Whether pairs with more mismatches would count, so that k is cut off."""
        return any(kernel_weights(self.phi.weights, self.phi.l)[self.phi.mismatches + 1 :])

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        return GkmGram(self, a, a if b is None else b, threads)


class GkmGram(TiledGram):
    """Its values between the strings of two batches."""

    def __init__(self, kernel: GkmRBF, a: Batch, b: Batch, threads: int) -> None:
        self.kernel, self.a, self.b, self.threads = kernel, a, b, threads
        self.shape = len(a), len(b)
        self._lengths = [kernel.phi.lengths(batch, np.arange(len(batch))) for batch in (a, b)]

    def diagonal(self) -> np.ndarray:
        return np.ones(len(self.a))

    def _values(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        phi, out = self.kernel.phi, np.empty((len(rows), len(columns)))
        letters, starts, ends, codes = phi.read(self.a, rows)
        others, begins, stops, _ = phi.read(self.b, columns)
        plan = phi.pair_plan()

        def work(first: int) -> None:
            some = slice(first, first + COLUMNS)
            found = np.empty((len(rows), len(begins[some])))
            products(letters, starts, ends, others, begins[some], stops[some], codes, plan, found)
            out[:, some] = found

        for_each(range(0, len(columns), COLUMNS), work, self.threads)
        lengths = np.multiply.outer(self._lengths[0][rows], self._lengths[1][columns])
        cosine = np.divide(out, lengths, out=np.zeros_like(out), where=lengths > 0.0)
        return np.exp(self.kernel.gamma * (cosine - 1.0))
