"""explain: what features, letters and columns add to the scores of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

import numpy as np

from dotadd._util.threads import thread_count
from dotadd.data.batches import Batch, Strings
from dotadd.errors import DotaddError, as_written
from dotadd.explain.contributions import Contributions, by_column, on_letters, texts_of
from dotadd.explain.explanation import ExplainedFeature, ExplainedRow, ExplainedText, Explanation
from dotadd.explain.matching import hypothetical, unfolded
from dotadd.explain.mutations import changes
from dotadd.features.alphabet import FOREIGN, Alphabet
from dotadd.features.base import FeatureMap
from dotadd.features.gkm import Gkm
from dotadd.features.lmer_counts import LmerCounts
from dotadd.features.outer import OuterMap
from dotadd.features.stack import Stack
from dotadd.features.terms import Term
from dotadd.model.file import Classifier
from dotadd.model.linear import Model
from dotadd.model.lsgkm import LsgkmModel
from dotadd.sources.base import Source

METHODS = ("auto", "features", "matching", "ism")
LARGEST = 20  # features that are named


def explain(
    model: Classifier,
    X: object,
    *,
    method: str = "auto",
    target: object = None,
    largest: int = LARGEST,
    rows: int | None = None,
    n_jobs: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Explanation:
    """Why the rows of anything `dotadd.open` takes have their scores.

    method: "features" shares out what each feature adds, weight times value, evenly over the letters, or the column,
        that it is made of. "matching", for gapped k-mers, shares out what each pair of l-mers adds over the letters
        that they have in common, as gkmexplain does. "ism" is in-silico mutagenesis: a letter adds as much as the score
        lies above the mean of the scores with each letter of the alphabet at its place. "auto" takes "matching" for
        gapped k-mers, "ism" where nobody knows where features come from, and "features" otherwise.
    target: the class whose score to explain. By default, of two classes the second, whose score is positive where it is
        predicted; of several the one that is predicted.
    largest: so many features of each row are named.
    rows: so many first rows; all by default.
    """
    from dotadd.sources import open as open_source

    if method not in METHODS:
        raise DotaddError(f"method={method!r}: give one of {', '.join(METHODS)}")
    source = X if isinstance(X, Source) else open_source(X, like=model.like(labels=False), read_as=model.read_as)
    work = _Explainer(model, method, _number_of(model, target), largest, thread_count(n_jobs))
    found: list[ExplainedRow] = []
    for chunk, scores in model.decision_chunks(source, n_jobs=n_jobs):
        batch = chunk.batch.own()
        if rows is not None and len(found) + len(batch) > rows:
            batch, scores = batch.slice(0, rows - len(found)), scores[: rows - len(found)]
        names = [""] * len(batch)
        if chunk.ids is not None and "name" in chunk.ids.schema.names:
            names = chunk.ids.column("name").to_pylist()
        if not found:
            work.begin(batch, model.feature_names or source.columns)
        found += work.rows(batch, scores, names, len(found), on_progress)
        if rows is not None and len(found) >= rows:
            break
    return Explanation(found, work.method, work.alphabet)


def _number_of(model: Classifier, target: object) -> int | None:
    """The number of a class, by its label or as it is written."""
    if target is None:
        return None
    for number, label in enumerate(model.classes.tolist()):
        if label == target or as_written(label) == str(target):
            return number
    known = ", ".join(as_written(label) for label in model.classes.tolist())
    raise DotaddError(f"the model has no class {target!r}; it has {known}")


def _leaves(phi: FeatureMap) -> Iterator[FeatureMap]:
    parts = phi.parts if isinstance(phi, Stack) else (phi.phi,) if isinstance(phi, OuterMap) else None
    if parts is None:
        yield phi
    else:
        for part in parts:
            yield from _leaves(part)


def alphabet_of(model: Classifier) -> Alphabet | None:
    """That of the sequences which a model reads, if it reads sequences."""
    inside = model.phi if isinstance(model, Model) else getattr(model, "kernel", None)
    if not isinstance(inside, FeatureMap):
        inside = getattr(inside, "phi", None)
    if not isinstance(inside, FeatureMap) or Strings not in inside.takes:
        return None
    for leaf in _leaves(inside):
        if isinstance(leaf, Gkm):
            return Alphabet("dna")
        if isinstance(found := getattr(leaf, "alphabet", None), Alphabet):
            return found
    return None


@dataclass
class _Explainer:
    """The method that is meant, and what it needs to be worked out once."""

    model: Classifier
    method: str
    target: int | None
    largest: int
    threads: int
    alphabet: Alphabet | None = None
    columns: list[str] | None = None
    counts: dict[int, np.ndarray] = field(default_factory=dict)

    def begin(self, batch: Batch, columns: list[str] | None) -> None:
        """Look at the first rows, and say which method is meant by "auto", or what is wrong with another."""
        self.columns, self.alphabet = columns, alphabet_of(self.model)
        sequences = self.alphabet is not None and isinstance(batch, Strings)
        linear = isinstance(self.model, Model)
        if self.method == "auto":
            known = linear and (not sequences or self._placed(batch))
            self.method = "matching" if self._lmers() is not None else "features" if known else "ism"
        if self.method == "matching" and self._lmers() is None:
            raise DotaddError('method="matching" is for linear models of gapped k-mers, Gkm(...) or those of LS-GKM')
        if self.method == "features" and not linear:
            raise DotaddError('a kernel machine has no weights of features: explain its sequences with method="ism"')
        if self.method == "ism" and not sequences:
            what = "a kernel machine of other rows cannot be explained" if not linear else 'take method="features"'
            raise DotaddError(f"in-silico mutagenesis changes letters of sequences with an alphabet; {what}")

    def _placed(self, batch: Batch) -> bool:
        """Whether it is known where features of strings come from."""
        phi = cast("Model", self.model).phi
        found = [phi.occurrences(batch, row) for row in range(min(len(batch), 10))]
        return any((some.first >= 0).any() for some in found) or not any(len(some.slots) for some in found)

    def _lmers(self) -> Gkm | None:
        """The map of gapped k-mers, where a linear model has one whose pairs are known."""
        if not isinstance(self.model, Model):
            return None
        phi = self.model.phi
        while isinstance(phi, Term) and not phi.moved:
            phi = phi.phi
        if not isinstance(phi, Gkm) or (isinstance(phi, LmerCounts) and not isinstance(self.model, LsgkmModel)):
            return None
        return phi

    def rows(
        self,
        batch: Batch,
        scores: np.ndarray,
        names: list[str],
        first: int,
        on_progress: Callable[[float], None] | None,
    ) -> list[ExplainedRow]:
        winners = self.model.winners(scores)
        two = scores.ndim == 1
        spoken = np.full(len(batch), 1) if two else winners
        spoken = spoken if self.target is None else np.full(len(batch), self.target)
        tables: list[np.ndarray] | None = None
        if self.method == "ism":
            tables = self._changes(cast("Strings", batch), spoken, two, on_progress)
        elif self.method == "matching":
            tables = self._matching(cast("Strings", batch), spoken)
        found = []
        for row in range(len(batch)):
            number = int(spoken[row])
            sign = -1.0 if two and number == 0 else 1.0
            score = sign * float(scores[row]) if two else float(scores[row, number])
            table = None if tables is None else tables[row]
            found.append(self._row(batch, row, number, score, first + row, names[row], table))
            if on_progress is not None and self.method != "ism":
                on_progress((row + 1) / len(batch))
        return found

    def weights(self, number: int) -> tuple[np.ndarray, float, float]:
        """The row of w that speaks for a class, its sign, and the intercept with this sign."""
        model = cast("Model", self.model)
        if len(model.w) > 1:
            return model.w[number], 1.0, float(model.intercept[number])
        sign = 1.0 if number == 1 else -1.0
        return model.w[0], sign, sign * float(model.intercept[0])

    def _row(
        self, batch: Batch, row: int, number: int, score: float, at: int, name: str, table: np.ndarray | None
    ) -> ExplainedRow:
        label, model = self.model.classes.tolist()[number], self.model
        if not isinstance(model, Model):
            assert table is not None
            return ExplainedRow(at, name, label, score, 0.0, *self._by_table(batch, row, table))
        w, sign, intercept = self.weights(number)
        phi, single = model.phi, batch.take(np.array([row]))

        @lru_cache
        def contributions() -> Contributions:
            found = Contributions.of(phi, single, 0, w)
            return found._replace(adds=sign * found.adds)

        def working() -> tuple[Contributions, list[ExplainedFeature]]:
            return contributions(), self._named(single, contributions(), sign, w)

        if table is not None:
            shown = self._by_table(batch, row, table)
            return ExplainedRow(at, name, label, score, intercept, *shown, working=working)
        adds, found = contributions(), phi.occurrences(single, 0)
        shares, texts = adds.shares(found), {}
        for column, text in texts_of(single, 0, found).items():
            mine = np.flatnonzero(found.column == column)
            texts[column] = ExplainedText(text, on_letters(found.take(mine), shares[mine], len(text)))
        columns, placed = by_column(found, shares), (found.first >= 0) | (found.column != "")
        elsewhere = float(adds.adds.sum() - shares[placed].sum()) if (texts or columns) and not placed.all() else 0.0
        return ExplainedRow(at, name, label, score, intercept, texts, columns, elsewhere, working=working)

    def _by_table(
        self, batch: Batch, row: int, table: np.ndarray
    ) -> tuple[dict[str, ExplainedText], dict[str, float], float, np.ndarray, np.ndarray | None]:
        """What the letters add that are there, of what each letter would."""
        assert isinstance(batch, Strings)
        assert self.alphabet is not None
        text = batch[row]
        codes = self.alphabet.codes[np.frombuffer(text, np.uint8)]
        at, letters = np.flatnonzero(codes != FOREIGN), np.zeros(len(text))
        changed = table if self.method == "ism" else None
        would = table - table.mean(axis=0) if self.method == "ism" else table
        letters[at] = would[codes[at], at]
        return {"": ExplainedText(text, letters)}, {}, 0.0, would, changed

    def _changes(
        self, batch: Strings, spoken: np.ndarray, two: bool, on_progress: Callable[[float], None] | None
    ) -> list[np.ndarray]:
        assert self.alphabet is not None
        found: list[np.ndarray] = [np.empty(0)] * len(batch)
        for number in np.unique(spoken).tolist():
            mine = np.flatnonzero(spoken == number)

            def score(some: Strings, number: int = number) -> np.ndarray:
                scores = self.model.decision_function(some, n_jobs=self.threads)
                return (scores if number == 1 else -scores) if two else scores[:, number]

            tables = changes(batch.take(mine), self.alphabet, score, on_progress=on_progress)
            for row, table in zip(mine.tolist(), tables, strict=True):
                found[row] = table
        return found

    def _matching(self, batch: Strings, spoken: np.ndarray) -> list[np.ndarray]:
        model, phi = cast("Model", self.model), self._lmers()
        assert phi is not None
        rows, outer, factors = np.arange(len(batch)), model.phi, np.ones(len(batch))
        while isinstance(outer, Term):
            factors = factors * outer.factors(batch, rows)
            outer = outer.phi
        if isinstance(phi, LmerCounts):
            lengths = phi.lengths(batch, rows)
            factors = factors * np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        found: list[np.ndarray] = [np.empty(0)] * len(batch)
        for number in np.unique(spoken).tolist():
            mine = np.flatnonzero(spoken == number)
            w, sign, _ = self.weights(number)
            if number not in self.counts:
                counts = model.counts() if isinstance(model, LsgkmModel) else unfolded(phi.tabled(), w)
                self.counts[number] = counts
            weights = phi.pair if isinstance(phi, LmerCounts) else phi.weights
            tables = hypothetical(
                phi, batch.take(mine), self.counts[number], weights, sign * factors[mine], self.threads
            )
            for row, table in zip(mine.tolist(), tables, strict=True):
                found[row] = table
        return found

    def _named(self, batch: Batch, adds: Contributions, sign: float, w: np.ndarray) -> list[ExplainedFeature]:
        """The features of a row that add most, by name."""
        phi = cast("Model", self.model).phi
        most = np.lexsort((adds.slots, -abs(adds.adds)))[: self.largest]
        most = most[adds.adds[most] != 0.0]
        slots, found = adds.slots[most], phi.occurrences(batch, 0)
        names = phi.names(slots, None)
        origins, _ = phi.origins(batch, np.zeros(len(most), np.int64), adds.nth[most])
        named = []
        for k, slot in enumerate(slots.tolist()):
            here = np.flatnonzero(found.slots == slot)
            here = here[np.lexsort((found.stop[here], found.first[here]))]
            spans = [(int(found.first[h]), int(found.stop[h])) for h in here if found.first[h] >= 0]
            name = self._name(origins.text[k], int(origins.position[k])) or names[k] or f"slot {slot}"
            column = str(found.column[here[0]]) if len(here) else ""
            value, weight = float(adds.values[most[k]]), sign * float(w[slot])
            adding = float(adds.adds[most[k]])
            named.append(ExplainedFeature(name, slot, value, weight, adding, tuple(dict.fromkeys(spans)), column))
        return named

    def _name(self, text: bytes, position: int) -> str:
        """What a feature is called; positions count from 1, as those of `inspect`."""
        if text:
            return text.decode("utf-8", "backslashreplace") + (f"@{position + 1}" if position >= 0 else "")
        if position < 0:
            return ""
        return self.columns[position] if self.columns and position < len(self.columns) else f"x{position}"
