"""GappySpectrum: how often each k-mer occurs in a string, letters between its own being skipped.

k(z, z') = sum over k-mers u of phi_u(z) phi_u(z'), where, over all i_1 < .. < i_k at which z has the letters of u,

    phi_u(z) = sum of decay ** (letters skipped), for at most `gaps` letters skipped between the first and the last

This is the gappy kernel of Leslie and Kuang (2004) with its window of k + gaps letters anchored: the occurrence begins
with the window's first letter. Where each window counts every k-mer inside it, an occurrence counts once for each
window that it fits in, those without gaps most often and those at the ends of the string least; here each counts once,
and `decay` says what a gap costs.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dotadd.errors import FeatureError
from dotadd.features.base import checked_int
from dotadd.features.patterns import Patterns
from dotadd.features.span import Span
from dotadd.features.spectrum import MAX_ORDER, StringMap

MAX_PATTERNS = 2**16


class GappySpectrum(StringMap):
    """Counts of all k-mers of length k that occur with at most `gaps` letters skipped between their own.

    An occurrence with s letters skipped counts decay**s. There are C(k - 1 + gaps, gaps) ways to skip, and so many
    non-zeros for each letter of the string. An index may occur several times in a row.

    decay: what a skipped letter takes from the count, above 0 and at most 1.
    alphabet, span, strands: as for Spectrum. A foreign letter can neither be taken nor be skipped.
    """

    def __init__(
        self,
        k: int,
        gaps: int,
        *,
        decay: float = 1.0,
        alphabet: str = "dna",
        span: Span | None = None,
        strands: str = "one",
    ) -> None:
        super().__init__(checked_int("k", k, 1, MAX_ORDER), alphabet, span, strands)
        self.gaps = checked_int("gaps", gaps, 0, MAX_ORDER)
        if isinstance(decay, bool) or not isinstance(decay, int | float | np.number) or not 0 < decay <= 1:
            raise FeatureError(f"decay has to be a number above 0 and at most 1, and not {decay!r}")
        self.decay = float(decay)
        patterns = math.comb(self.order + self.gaps, self.gaps + 1)  # all nodes of the tree
        if patterns > MAX_PATTERNS:
            raise FeatureError(f"{self!r} reads {patterns:.3g} patterns, more than {MAX_PATTERNS}: allow fewer gaps")

    def _arguments(self) -> tuple[Any, ...]:
        return self.order, self.gaps

    def _options(self) -> dict[str, Any]:
        return ({} if self.decay == 1.0 else {"decay": self.decay}) | super()._options()

    def patterns(self) -> Patterns:
        return _patterns(self.order, self.gaps, self.decay, self.alphabet.size)


@lru_cache
def _patterns(order: int, gaps: int, decay: float, size: int) -> Patterns:
    nodes, open_nodes = [], [(1, 0)]
    while open_nodes:
        depth, offset = open_nodes.pop()
        skipped = offset + 1 - depth
        nodes.append((depth, offset, decay**skipped if depth == order else 0.0))
        if depth < order:
            open_nodes += [(depth + 1, offset + 1 + more) for more in range(gaps - skipped + 1)]
    return Patterns.of(nodes, size)
