"""Positional oligomer importance (Sonnenburg et al. 2008): what a k-mer at its place does to the score.

    Q(u, i) = E[ s(X) | X[i:i+k] = u ] - E[ s(X) ]

X is a random string whose letters are independent, with chances of their own at each position; s is the score. Weights
of overlapping k-mers share the credit for a motif among them; Q adds up what all of them make of it.

The model is seen through its scores alone, so any map of strings will do. The same N random strings serve every u and
i: u is planted at i in each, and for each string E[s(X)] is taken over what could stand at i, sum_v p(v) s(v planted).
So sum_u p(u) Q(u, i) = 0 exactly, and what the rest of a string does to its score cancels out before it can be noise.
Only the longest k-mers are planted: with independent letters, shorter ones are averages over the letters beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dotadd.data.batches import Strings
from dotadd.errors import DataError, DotaddError
from dotadd.features.alphabet import FOREIGN, Alphabet
from dotadd.features.base import FeatureMap
from dotadd.model.linear import Model

ORDER, SAMPLES = 3, 50
MAX_LETTERS = 32  # k-mers of more letters than those of proteins cannot be gone through
MAX_KMERS = 1 << 16
ROWS_SCORED = 1 << 15  # at a time


class Oligomer(NamedTuple):
    """A k-mer at a position (from 0), its importance and that number's standard error."""

    position: int
    text: str
    importance: float
    error: float


@dataclass(frozen=True)
class Poim:
    """Importance of every k-mer at every position, for the orders k = 1, 2, ...

    `importance[k - 1][i, u]` is Q(u, i), where u is the number that the k-mer's letters write in base len(letters), and
    `error` has the standard errors. `chances[i, a]` is the chance of letter a at position i of the random strings.
    """

    letters: str
    chances: np.ndarray
    importance: list[np.ndarray]
    error: list[np.ndarray]
    samples: int

    @property
    def length(self) -> int:
        return len(self.chances)

    def kmer(self, order: int, number: int) -> str:
        size = len(self.letters)
        return "".join(self.letters[number // size**place % size] for place in reversed(range(order)))

    def possible(self, order: int) -> np.ndarray:
        """Which k-mers can occur at each position; the importance of others is that of strings that do not exist."""
        return _products(self.chances, order) > 0

    def differential(self) -> np.ndarray:
        """The largest |Q(u, i)| over the k-mers u that can occur, a row for each order; NaN where none fits."""
        largest = np.full((len(self.importance), self.length), np.nan)
        for k, q in enumerate(self.importance, 1):
            largest[k - 1, : len(q)] = np.where(self.possible(k), np.abs(q), 0.0).max(axis=1)
        return largest

    def strongest(self, order: int, count: int) -> list[Oligomer]:
        """The k-mers of this order with the largest |Q(u, i)|, among those that can occur."""
        q, error = self.importance[order - 1], self.error[order - 1]
        size = np.where(self.possible(order), np.abs(q), -1.0).ravel()
        best = np.argsort(-size, kind="stable")[:count]
        places = [divmod(int(at), q.shape[1]) for at in best if size[at] >= 0]
        return [Oligomer(i, self.kmer(order, u), float(q[i, u]), float(error[i, u])) for i, u in places]


def oligomer_importance(
    model: Model,
    *,
    order: int = ORDER,
    samples: int = SAMPLES,
    chances: object = None,
    strings: Strings | None = None,
    target: object = None,
    seed: int = 0,
    n_jobs: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Poim:
    """Positional oligomer importance of all k-mers of lengths 1 to `order`.

    samples : so many random strings.
    chances : of the letters, in the order of the alphabet: one number a letter, or a row of them for each position, as
        `letter_chances` finds them in data. Equal by default.
    strings : plant into these strings, of the model's length, and not into random ones drawn by `chances`.
    target : the label whose score is explained, for models of more than two classes.
    on_progress : called with the share that is done.
    """
    length, alphabet = _strings_of(model)
    letters = alphabet.letters
    if not 1 <= order <= length or len(letters) ** order > MAX_KMERS:
        raise DotaddError(
            f"order {order}: give one from 1 to the strings' length, {length}, that leaves at most {MAX_KMERS:,} k-mers"
        )
    if samples < 2:
        raise DotaddError(f"{samples} samples: give at least 2, or there is no telling how far off they are")
    column = _column(model, target)
    p = _checked_chances(chances, length, len(letters))
    codes = np.frombuffer(letters.encode(), np.uint8)
    if strings is None:
        drawn = np.random.default_rng(seed).random((samples, length, 1))
        background = codes[(drawn >= np.cumsum(p, axis=1)[None, :, :-1]).sum(axis=2)]
    else:
        if (strings.lengths() != length).any():
            raise DataError(f"strings to plant into have to be as long as the model's, {length} letters")
        background = strings.letters[strings.bounds(np.arange(len(strings)))[0][:, None] + np.arange(length)]

    kmers = codes[np.indices((len(letters),) * order).reshape(order, -1).T]
    importance = [np.empty((length - k + 1, len(letters) ** k)) for k in range(1, order + 1)]
    error = [np.empty_like(q) for q in importance]
    places = length - order + 1
    step = max(1, ROWS_SCORED // (len(kmers) * len(background)))
    for first in range(0, places, step):
        some = range(first, min(first + step, places))
        scores = model.decision_function(_planted(background, kmers, some), n_jobs=n_jobs)
        scores = (scores if scores.ndim == 1 else scores[:, column]).reshape(len(some), len(kmers), len(background))
        for i, planted in zip(some, scores, strict=True):
            _summarize(planted, i, p, order, importance, error)
        if on_progress is not None:
            on_progress((some[-1] + 1) / places)
    return Poim(letters, p, importance, error, len(background))


def _planted(background: np.ndarray, kmers: np.ndarray, places: range) -> Strings:
    """Every string with every k-mer at every one of these places, strings running fastest."""
    length, order = background.shape[1], kmers.shape[1]
    letters = np.broadcast_to(background, (len(places), len(kmers), *background.shape)).copy()
    for block, i in zip(letters, places, strict=True):
        block[:, :, i : i + order] = kmers[:, None, :]
    return Strings(letters.reshape(-1), width=length)


def _summarize(
    scores: np.ndarray, i: int, p: np.ndarray, order: int, importance: list[np.ndarray], error: list[np.ndarray]
) -> None:
    """Means and standard errors at position i, from the scores (k-mer, string) of what was planted there.

    Shorter k-mers that begin at i are averages over the letters that follow; those that begin too late for the longest
    ones lie in the last of these, and are averages over the letters before and after.
    """
    size, samples = p.shape[1], scores.shape[1]
    last = i + order == len(p)
    for begin in range(i, i + order if last else i + 1):
        lead = _products(p[i:begin], begin - i)[0] if begin > i else np.ones(1)
        for k in range(order - (begin - i), 0, -1):
            follow = order - (begin - i) - k
            trail = _products(p[begin + k : i + order], follow)[0] if follow else np.ones(1)
            shaped = scores.reshape(len(lead), size**k, len(trail), samples)
            mean = np.einsum("a,auvn,v->un", lead, shaped, trail)
            mean = mean - _products(p[begin : begin + k], k)[0] @ mean
            importance[k - 1][begin] = mean.mean(axis=1)
            error[k - 1][begin] = mean.std(axis=1, ddof=1) / np.sqrt(samples)


def _products(p: np.ndarray, order: int) -> np.ndarray:
    """The chance of each k-mer at each position."""
    found = p[: len(p) - order + 1]
    for k in range(1, order):
        found = (found[:, :, None] * p[k : len(p) - order + 1 + k, None, :]).reshape(len(found), -1)
    return found


def _checked_chances(chances: object, length: int, size: int) -> np.ndarray:
    p = np.full(size, 1.0 / size) if chances is None else np.asarray(chances, np.float64)
    if p.shape not in ((size,), (length, size)) or not (p >= 0).all() or not np.allclose(p.sum(axis=-1), 1.0):
        raise DotaddError(f"chances have to be {size} numbers that sum to 1, or {length} rows of such numbers")
    return np.broadcast_to(p / p.sum(axis=-1, keepdims=True), (length, size))


def _column(model: Model, target: object) -> int:
    """Which column of the scores to explain."""
    classes = model.classes.tolist()
    if model.two:
        if target is not None and target != classes[1]:
            raise DotaddError(f"scores of a model with two classes are those of the second, {classes[1]!r}")
        return 0
    if target not in classes:
        raise DotaddError(f"the model has a score for each class: choose one of {classes}, and not {target!r}")
    return classes.index(target)


def alphabet_of(phi: FeatureMap) -> Alphabet | None:
    """The alphabet of a map of strings, or of the first of its parts that has one."""
    found = getattr(phi, "alphabet", None)
    if isinstance(found, Alphabet):
        return found
    inside = [*getattr(phi, "parts", ()), *([phi.phi] if hasattr(phi, "phi") else [])]
    return next((found for part in inside if (found := alphabet_of(part)) is not None), None)


def _strings_of(model: Model) -> tuple[int, Alphabet]:
    """Length and alphabet of the strings that the model reads."""
    alphabet = alphabet_of(model.phi)
    if model.shape.length is None or alphabet is None or alphabet.size > MAX_LETTERS:
        raise DotaddError(
            f"oligomers are for maps of strings over at most {MAX_LETTERS} letters, not for {model.phi!r}"
        )
    return model.shape.length, alphabet


def letter_chances(data: object, model: Model, *, rows: int | None = None) -> np.ndarray:
    """How often each letter of the model's alphabet stands at each position of the data's first rows (None: all).

    Positions that no string reaches get the frequencies of all others together.
    """
    from dotadd.sources import open as open_source

    length, alphabet = _strings_of(model)
    letters, codes, source = alphabet.letters, alphabet.codes, open_source(data)
    counts = np.zeros((length, len(letters)), np.int64)
    done = 0
    for chunk in source.chunks():
        batch = chunk.batch
        if not isinstance(batch, Strings):
            raise DataError(f"holds {batch.kind}, and the model reads strings", chunk.path)
        batch = batch.slice(0, len(batch) if rows is None else min(len(batch), rows - done))
        starts, ends = batch.bounds(np.arange(len(batch)))
        for i in range(length):
            found = codes[batch.letters[(starts + i)[starts + i < ends]]]
            counts[i] += np.bincount(found[found != FOREIGN], minlength=len(letters))
        done += len(batch)
        if rows is not None and done >= rows:
            break
    if not counts.any():
        raise DataError(f"has no letters of the alphabet {letters}", source.name)
    counts[counts.sum(axis=1) == 0] = counts.sum(axis=0)
    return counts / counts.sum(axis=1, keepdims=True)
