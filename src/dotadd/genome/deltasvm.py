"""deltaSVM: what a change does to the sum of the weights of l-mers (Lee et al. 2015).

delta = sum of the weights of the l-mers of the changed sequence that touch the change
      - sum of the weights of the l-mers of the sequence as it was that touch it

A weight is the score of an l-mer as a sequence of its own, as `dotadd kmers` writes it. After an insertion there are
more l-mers than before, and so it counts the model's intercept more often.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dotadd._jit import inner, kernel
from dotadd._util.threads import for_each
from dotadd.features.alphabet import Alphabet
from dotadd.features.gkm_weights import LETTERS
from dotadd.genome.alleles import COUNT, DELETED, FIRST, START, WHY, Alleles
from dotadd.genome.vcf import Field
from dotadd.model.file import Classifier
from dotadd.model.lmer_weights import lmer_scores, map_of_lmers

PIECE = 1 << 13  # changes that a thread takes at a time


class DeltaSVM:
    """Scores changes by a model of gapped k-mers. Its weights of all l-mers are made once."""

    def __init__(
        self,
        model: Classifier,
        path: str,
        *,
        name: str = "DOTADD",
        n_jobs: int | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        phi = map_of_lmers(model, path)
        self.order, self.table = phi.order, np.empty(LETTERS**phi.order, np.float32)
        self.before = self.after = self.order - 1
        shifts = 2 * np.arange(self.order - 1, -1, -1)
        codes = Alphabet("dna").codes
        for words, scores in lmer_scores(model, phi, n_jobs=n_jobs):
            digits = codes[words.letters.reshape(-1, self.order)].astype(np.int64)
            numbers = (digits << shifts).sum(axis=1)
            self.table[numbers] = scores
            if phi.strands == "both":
                self.table[((3 - digits[:, ::-1]) << shifts).sum(axis=1)] = scores
            if on_progress is not None:
                on_progress(float(numbers[-1] + 1) / len(self.table))
        about = f"sum of the weights of the {self.order}-mers of ALT that touch the change, less those of REF"
        self.fields = [Field(f"{name}_DELTA", (6,), "Float", f"deltaSVM: {about}")]

    @property
    def told(self) -> str:
        """What the numbers are."""
        return f"sums of weights of {self.order}-mers"

    def scores(self, letters: np.ndarray, alleles: Alleles, threads: int) -> np.ndarray:
        """A row with delta for each change; NaN where there is a reason for none."""
        out, codes = np.full((len(alleles), 1), np.nan), Alphabet("dna").codes

        def work(first: int) -> None:
            some = alleles.slice(first, first + PIECE)
            _deltas(letters, some.moves, some.inserted, codes, self.order, self.table, out[first : first + PIECE, 0])

        for_each(range(0, len(alleles), PIECE), work, threads)
        return out

    def strength(self, values: np.ndarray) -> np.ndarray:
        """How much a change matters, in either direction."""
        return np.abs(values[:, 0])


@kernel
def _deltas(letters, moves, inserted, codes, order, table, out):
    mask = (np.uint64(1) << np.uint64(2 * order)) - np.uint64(1)
    for j in range(len(moves)):
        if moves[j, WHY]:
            continue
        start, first = moves[j, START], moves[j, FIRST]
        begin, end = start - order + 1, start + moves[j, DELETED]
        number, have, total = np.uint64(0), 0, 0.0
        for k in range(begin, end + order - 1):
            number, have = _next(number, have, letters[np.uint64(k)], codes, mask)
            if have >= order:
                total -= table[number]
        number, have = np.uint64(0), 0
        for k in range(begin, start):
            number, have = _next(number, have, letters[np.uint64(k)], codes, mask)
        for k in range(first, first + moves[j, COUNT]):
            number, have = _next(number, have, inserted[np.uint64(k)], codes, mask)
            if have >= order:
                total += table[number]
        for k in range(end, end + order - 1):
            number, have = _next(number, have, letters[np.uint64(k)], codes, mask)
            if have >= order:
                total += table[number]
        out[j] = total


@inner
def _next(number, have, letter, codes, mask):
    return (number << np.uint64(2) | np.uint64(codes[letter])) & mask, have + 1
