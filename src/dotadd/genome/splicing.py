"""Gain and loss: what a change does to the splice sites around it, by a model of windows.

A place is a candidate if the two letters of the signal stand there, on either strand (see `genome.cutting`), and its
score is that of the window around it. The chromosome as it is and as it is after the change are compared at all places
within a distance of the change: gain is the largest rise of a score, loss the largest fall. A place stays the same one
where letters before it come or go; inserted letters are new places, and deleted ones have none.

A place that is no candidate has the score `floor`, and so have places with a score below it. For probabilities the
floor is 0. For margins it is the score that nine in ten candidates of the genome stay below: what happens among those
matters little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.threads import for_each
from dotadd.data.batches import Strings
from dotadd.errors import ModelError
from dotadd.features.base import FeatureMap
from dotadd.features.gkm import Gkm
from dotadd.features.kmers import KmerMap
from dotadd.features.outer import OuterMap
from dotadd.features.stack import Stack
from dotadd.genome.alleles import COUNT, DELETED, FIRST, START, WHY, Alleles
from dotadd.genome.cutting import SIGNALS, Cut, whole_number
from dotadd.genome.scan import window_length
from dotadd.genome.vcf import Field
from dotadd.model.file import Classifier
from dotadd.model.linear import Model

PIECE = 1 << 10  # changes that a thread takes at a time: some ten thousand windows
DECOYS = 0.9  # of the candidates have the floor for a score


def _require_dna(phi: FeatureMap, path: str) -> None:
    """Refuse a map that reads anything but the letters of DNA."""
    if isinstance(phi, Stack):
        for part in phi.parts:
            _require_dna(part, path)
    elif isinstance(phi, OuterMap):
        _require_dna(phi.phi, path)
    elif not isinstance(phi, Gkm) and not (isinstance(phi, KmerMap) and set(phi.alphabet.letters) == set("ACGT")):
        raise ModelError(
            f"{path}: the model reads {phi!r}, and not the letters of DNA; variants cannot be scored with it"
        )


class SiteModel:
    """A model of the windows of one signal."""

    def __init__(self, model: Classifier, path: str, signal: str, before: int | None = None) -> None:
        if isinstance(model, Model):
            _require_dna(model.phi, path)
        self.model, self.cut = model, Cut.of(signal, window_length(model, before), before)
        self.probable = model.probability is not None
        self.floor = 0.0 if self.probable else -1.0

    @property
    def outward(self) -> int:
        """Letters of a window on that side of the signal that has more of them, the signal among them."""
        return max(self.cut.before + 2, self.cut.length - self.cut.before)

    def scores(self, windows: np.ndarray) -> np.ndarray:
        """The scores of windows that lie one after the other, on one thread: callers share out windows among threads,
        in pieces that do not depend on how many there are."""
        if not len(windows):
            return np.empty(0)
        found = self.model.decision_function(Strings(windows, width=self.cut.length), n_jobs=1)
        if self.probable:
            assert self.model.probability is not None
            found = self.model.probability.probabilities(found)[:, 1]
        return np.asarray(found, np.float64)


class Splicing:
    """Scores changes by gain and loss of the sites of one signal, or of acceptors and donors."""

    def __init__(self, models: list[SiteModel], *, distance: int = 50, name: str = "DOTADD") -> None:
        whole_number("distance", distance, 1)
        self.models, self.distance = models, distance
        self.before = self.after = distance + max(model.outward for model in models)
        each = ["probabilities" if model.probable else "margins" for model in models]
        self.scale = each[0] if len(set(each)) == 1 else " and ".join(each)
        self.fields = self._one(name) if len(models) == 1 else self._both(name)

    @property
    def told(self) -> str:
        """What the numbers are."""
        floors = " and ".join(f"{model.floor:.6g}" for model in self.models)
        return f"{self.scale}, those below {floors} and places that are no candidates count as that"

    def _one(self, name: str) -> list[Field]:
        within = f"sites ({self.models[0].cut.signal}) within {self.distance} letters"
        base = "position of the letter of the exon next to it, less that of the variant (trimmed, left-aligned)"
        return [
            Field(f"{name}_GAIN", (4,), "Float", f"Largest rise of a score of {within} ({self.scale})"),
            Field(f"{name}_LOSS", (4,), "Float", f"Largest fall of a score of {within} ({self.scale})"),
            Field(f"{name}_GAIN_POS", (0,), "Integer", f"Site of the gain: {base}"),
            Field(f"{name}_LOSS_POS", (0,), "Integer", f"Site of the loss: {base}"),
        ]

    def _both(self, name: str) -> list[Field]:
        about = (
            f"Gain and loss of acceptor and donor sites within {self.distance} letters, as differences of {self.scale} "
            "and not those of SpliceAI, with the positions of the letters of exons next to them, less that of the "
            "variant (trimmed, left-aligned). Format: ALLELE|SYMBOL|DS_AG|DS_AL|DS_DG|DS_DL|DP_AG|DP_AL|DP_DG|DP_DL"
        )
        return [Field(f"{name}_SPLICE", (4, 4, 4, 4, 0, 0, 0, 0), "String", about)]

    def scores(self, letters: np.ndarray, alleles: Alleles, threads: int) -> np.ndarray:
        """A row for each change: gain and loss by each model, and then their places; NaN where there is a reason for
        none."""
        half = 2 * len(self.models)
        out = np.full((len(alleles), 2 * half), np.nan)

        def work(task: tuple[int, int]) -> None:
            first, k = task
            some = slice(first, first + PIECE)
            found = self._compared(self.models[k], letters, alleles.slice(first, first + PIECE))
            out[some, 2 * k : 2 * k + 2], out[some, half + 2 * k : half + 2 * k + 2] = found[:, :2], found[:, 2:]

        tasks = [(first, k) for first in range(0, len(alleles), PIECE) for k in range(len(self.models))]
        for_each(tasks, work, threads)
        return out

    def strength(self, values: np.ndarray) -> np.ndarray:
        """The largest of all gains and losses."""
        return values[:, : 2 * len(self.models)].max(axis=1)

    def set_floors(self, around: Sequence[tuple[np.ndarray, Alleles]]) -> None:
        """Learn the floors of margins from the candidates around these changes, on one chromosome or several."""
        for model in self.models:
            if not model.probable:
                windows = []
                for letters, alleles in around:
                    _, sites = self._sites(model, letters, alleles, changed=False)
                    windows.append(_cut(model, letters, np.unique(sites)))
                scores = model.scores(np.concatenate(windows)) if windows else np.empty(0)
                model.floor = float(np.quantile(scores, DECOYS)) if len(scores) else -1.0

    def _sites(
        self, model: SiteModel, letters: np.ndarray, alleles: Alleles, *, changed: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The candidates around each change whose windows it touches, on the chromosome as it is or as it becomes.
        Those of change j are sites[ends[j]:ends[j + 1]], each twice its place, and one more on the minus strand."""
        lengths = alleles.moves[:, COUNT if changed else DELETED]
        room = int((lengths // 2 + self.distance + 1).sum())
        ends, sites = np.zeros(len(alleles) + 1, np.int64), np.empty(room, np.int64)
        pairs = plain(np.frombuffer(b"".join(SIGNALS[model.cut.signal]), np.uint8))
        shape = np.array([model.cut.length, model.cut.before, self.distance, changed], np.int64)
        _find(letters, alleles.moves, alleles.inserted, pairs, shape, ends, sites)
        return ends, sites[: ends[-1]]

    def _compared(self, model: SiteModel, letters: np.ndarray, alleles: Alleles) -> np.ndarray:
        ref_ends, ref = self._sites(model, letters, alleles, changed=False)
        alt_ends, alt = self._sites(model, letters, alleles, changed=True)
        known, shared = np.unique(ref, return_inverse=True)  # neighbouring changes share their windows
        windows = _cut(model, letters, known, len(alt))
        shape = np.array([model.cut.length, model.cut.before, self.before], np.int64)
        rest = windows[len(known) * model.cut.length :]
        _cut_changed(letters, alleles.moves, alleles.inserted, alt_ends, alt, shape, rest)
        scores = np.maximum(model.scores(windows), model.floor)
        out = np.empty((len(alleles), 4))
        ref_scores, alt_scores = scores[: len(known)][shared], scores[len(known) :]
        _compare(alleles.moves, ref_ends, ref, ref_scores, alt_ends, alt, alt_scores, model.floor, out)
        exons = _exon_places(out[:, 2:], after=model.cut.signal == "acceptor")
        out[:, 2:] = exons + 1 - alleles.position[:, None]
        out[alleles.moves[:, WHY] > 0] = np.nan
        return out


def _cut(model: SiteModel, letters: np.ndarray, sites: np.ndarray, more: int = 0) -> np.ndarray:
    """The windows of these sites, and room for some more."""
    windows = np.empty((len(sites) + more) * model.cut.length, np.uint8)
    model.cut.cut(letters, sites >> 1, (sites & 1).astype(np.bool_), windows)
    return windows


def _exon_places(sites: np.ndarray, *, after: bool) -> np.ndarray:
    """From sites to the letters of exons next to them: after acceptors and before donors, as they are read."""
    places = np.floor(sites / 2)
    to_the_right = (sites == 2 * places) == after
    return np.where(to_the_right, places + 2, places - 1)


@inner
def _changed(letters, move, inserted, around, out):
    """The letters around a change, once it has been made: so many before it, those that come, and so many after it."""
    start, end, new = np.uint64(move[START]), np.uint64(move[START] + move[DELETED]), np.uint64(move[COUNT])
    wide, first = np.uint64(around), np.uint64(move[FIRST])
    for k in range(wide):
        out[k] = letters[start - wide + k]
        out[wide + new + k] = letters[end + k]
    for k in range(new):
        out[wide + k] = inserted[first + k]


@inner
def _longest(moves):
    longest = np.int64(0)
    for j in range(len(moves)):
        longest = max(longest, moves[j, COUNT])
    return longest


@kernel
def _find(letters, moves, inserted, pairs, shape, ends, sites):
    length, before, distance, changed = shape
    count, text = np.int64(0), np.empty(_longest(moves) + 2 * distance, np.uint8)
    for j in range(len(moves)):
        move = moves[j]
        if move[WHY] == 0:
            start, stop, here = move[START], move[START] + move[DELETED], letters[move[START] - distance :]
            if changed:
                stop = start + move[COUNT]
                _changed(letters, move, inserted, distance, text)
                here = text
            for k in range(np.uint64(stop - start + 2 * distance - 1)):
                a, b = here[k], here[k + np.uint64(1)]
                minus = a == pairs[2] and b == pairs[3]
                if minus or (a == pairs[0] and b == pairs[1]):
                    p = start - distance + np.int64(k)
                    begin = p + 2 + before - length if minus else p - before
                    sites[count] = 2 * p + minus
                    count += begin < stop and begin + length > start
        ends[j + 1] = count


@kernel
def _cut_changed(letters, moves, inserted, ends, sites, shape, out):
    """The windows of the sites of each change, once it has been made."""
    length, before, around = shape
    text, row = np.empty(_longest(moves) + 2 * around, np.uint8), np.uint64(0)
    for j in range(len(moves)):
        if ends[j] < ends[j + 1]:
            _changed(letters, moves[j], inserted, around, text)
        for i in range(ends[j], ends[j + 1]):
            at = (sites[i] >> 1) - moves[j, START] + around
            if sites[i] & 1:
                end = np.uint64(at + 1 + before)
                for k in range(np.uint64(length)):
                    letter = text[end - k]
                    out[row + k] = letter ^ np.uint8(21 - 17 * ((letter >> 1) & 1))  # as `genome.cutting` has it
            else:
                begin = np.uint64(at - before)
                for k in range(np.uint64(length)):
                    out[row + k] = text[begin + k]
            row += np.uint64(length)


@kernel
def _compare(moves, ref_ends, ref, ref_scores, alt_ends, alt, alt_scores, floor, out):
    """Gain and loss of each change, and the sites where they are."""
    for j in range(len(moves)):
        start, gone, new = moves[j, START], moves[j, DELETED], moves[j, COUNT]
        gain, loss, gained, lost = 0.0, 0.0, np.nan, np.nan
        r, stop = ref_ends[j], ref_ends[j + 1]
        for a in range(alt_ends[j], alt_ends[j + 1]):
            place, minus, added = alt[a] >> 1, alt[a] & 1, False  # where that is on the chromosome as it is
            if place >= start + new:
                place += gone - new
            elif place >= start + gone:
                place, added = max(start, start + gone - 1), True
            while r < stop and not added and ref[r] >> 1 < place:
                if ref_scores[r] - floor > loss:
                    loss, lost = ref_scores[r] - floor, np.float64(ref[r])
                r += 1
            before = floor
            if r < stop and not added and ref[r] == 2 * place + minus:
                before = ref_scores[r]
                r += 1
            if alt_scores[a] - before > gain:
                gain, gained = alt_scores[a] - before, np.float64(2 * place + minus)
            if before - alt_scores[a] > loss:
                loss, lost = before - alt_scores[a], np.float64(2 * place + minus)
        while r < stop:
            if ref_scores[r] - floor > loss:
                loss, lost = ref_scores[r] - floor, np.float64(ref[r])
            r += 1
        out[j, 0], out[j, 1], out[j, 2], out[j, 3] = gain, loss, gained, lost
