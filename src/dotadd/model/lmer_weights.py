"""The weight of each l-mer in a model of gapped k-mers: the table that deltaSVM reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dotadd.data.batches import Strings
from dotadd.errors import ModelError
from dotadd.features.alphabet import Alphabet
from dotadd.features.base import FeatureMap
from dotadd.features.gkm import Gkm
from dotadd.features.gkm_weights import LETTERS
from dotadd.features.mismatch_spectrum import MismatchSpectrum
from dotadd.features.tabled import TabledLmers
from dotadd.features.terms import Term
from dotadd.kernel_svm.gkm_kernel import GkmRBF
from dotadd.model.file import Classifier
from dotadd.model.kernel import KernelModel
from dotadd.model.linear import Model

AT_ONCE = 1 << 18  # l-mers


def map_of_lmers(model: Classifier, path: str) -> TabledLmers:
    """The map of gapped k-mers, or of k-mers with mismatches, that a model has."""
    phi = lmer_map(model)
    if phi is None:
        raise ModelError(f"{path}: the model does not count gapped k-mers: train it with Gkm(), or give one of LS-GKM")
    if not model.two:
        raise ModelError(f"{path}: the model has {len(model.classes)} classes, and l-mers a weight for each of them")
    return phi


def lmer_map(model: Classifier) -> TabledLmers | None:
    """The same, or None."""
    phi: FeatureMap | None = None
    if isinstance(model, Model):
        phi = model.phi
    elif isinstance(model, KernelModel) and isinstance(model.kernel, GkmRBF):
        phi = model.kernel.phi
    while isinstance(phi, Term) and not phi.moved:
        phi = phi.phi
    if isinstance(phi, MismatchSpectrum) and phi.table is not None and phi.alphabet.name == "dna" and phi.span is None:
        return phi
    return phi if isinstance(phi, Gkm) else None


def lmer_scores(
    model: Classifier, phi: TabledLmers, *, n_jobs: int | None = None
) -> Iterator[tuple[Strings, np.ndarray]]:
    """All l-mers, some at a time, and the score of each as a sequence of its own.

    Where both strands count, an l-mer and its reverse complement have one score, and only the first of them in the
    alphabet is told.
    """
    shifts = 2 * np.arange(phi.order - 1, -1, -1)
    for first in range(0, LETTERS**phi.order, AT_ONCE):
        digits = np.arange(first, min(first + AT_ONCE, LETTERS**phi.order))[:, None] >> shifts & 3
        if phi.strands == "both":
            turned = ((3 - digits[:, ::-1]) << shifts).sum(axis=1)
            digits = digits[(digits << shifts).sum(axis=1) <= turned]
        if len(digits):
            words = Strings(Alphabet("dna").letter_bytes[digits].reshape(-1), width=phi.order)
            yield words, model.decision_function(words, n_jobs=n_jobs)
