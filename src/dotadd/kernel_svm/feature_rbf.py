"""FeatureRBF: the RBF kernel of the features of any map, exp(-gamma |phi(z) - phi(z')|^2).

Distances come from inner products of rows of phi. Gapped k-mers have too many of them for that, and have their own
kernel, which goes through pairs of l-mers (gkm_kernel.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dotadd._util.expression import call_repr
from dotadd.data.batches import Batch
from dotadd.features.base import FeatureMap
from dotadd.features.gkm import Gkm
from dotadd.features.gkm_weights import kernel_weights
from dotadd.features.lmer_counts import LmerCounts
from dotadd.features.terms import Term
from dotadd.kernel_svm.gkm_kernel import GkmRBF
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.kernels import LOG2_E, FeatureKernel, Kernel, number_for, of_distances, sparse_distances
from dotadd.problem.examples import InMemory

WANTED = 'a number above 0, or "scale"'


@dataclass(frozen=True, repr=False)
class FeatureRBF(FeatureKernel):
    """exp(-gamma |phi(z) - phi(z')|^2). With "scale", gamma is 1 / |phi(z)|^2 on average, and so 1 for rows of length
    one."""

    gamma: float | str = "scale"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gamma != "scale":
            object.__setattr__(self, "gamma", number_for("gamma", self.gamma, WANTED, 0.0))

    @property
    def resolved(self) -> bool:
        return super().resolved and not isinstance(self.gamma, str)

    def resolve(self, batch: Batch) -> Self:
        kernel = super().resolve(batch)
        if not isinstance(kernel.gamma, str):
            return kernel
        norms = InMemory(kernel.phi, self._own(batch)).squared_norms()
        mean = float(norms.mean()) if len(norms) else 0.0
        return replace(kernel, gamma=1.0 / mean if mean > 0.0 else 1.0)

    def _gram(self, a: Batch, b: Batch | None, threads: int) -> Gram:
        return self.between(*self.expanded(a, b, threads), threads)

    def between(self, rows: InMemory, columns: InMemory, threads: int) -> Gram:
        """The kernel between phi of some rows and of others."""
        scale = math.sqrt(2.0 * float(self.gamma) * LOG2_E)
        return of_distances(*sparse_distances(rows, columns, scale), threads)

    def __repr__(self) -> str:
        return call_repr("FeatureRBF", self.phi, gamma=self.gamma)


def rbf_of(phi: FeatureMap, gamma: float | str) -> Kernel:
    """The RBF kernel of these features, in the form in which it is fastest."""
    if not (isinstance(phi, Term) and isinstance(phi.phi, Gkm) and repr(phi) == repr(phi.phi.normalized())):
        return FeatureRBF(phi, gamma)
    gkm = phi.phi
    shared = np.flatnonzero(kernel_weights(gkm.weights, gkm.l))
    counts = LmerCounts(gkm.l, gkm.k, int(shared[-1]), filter=gkm.filter, strands=gkm.strands, middle=gkm.middle)
    exponent = 1.0 if gamma == "scale" else number_for("gamma", gamma, WANTED, 0.0)
    return GkmRBF(counts, 2.0 * exponent)  # |phi(z) - phi(z')|^2 = 2 - 2 k(z, z')
