"""The rows that a model is most wrong about: kept while rows pass by, as many as are shown, and explained."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd.data.batches import Images
from dotadd.errors import DotaddError, as_written
from dotadd.explain.html import STYLE, shown_row
from dotadd.model.linear import Model
from dotadd.report.drawing import text
from dotadd.sources.label_sets import members
from dotadd.sources.memory import MemorySource

if TYPE_CHECKING:
    from dotadd.model.file import Classifier
    from dotadd.sources.base import Chunk

SHOWN = 8
LARGEST = 8  # features that are named of each row
EXPLAINED = 20_000  # bytes of a row that is explained; of others the beginning is shown
LETTERS = 600  # of a row that is not explained


class Mistake(NamedTuple):
    """A row: where it stood, its class, the class that it was taken for, and by how much of a score that is wrong."""

    wrong: float
    row: int
    where: str
    truth: str
    taken: str
    chunk: Chunk


@dataclass
class Mistakes:
    """Sees rows with their scores, and keeps those that are most wrong."""

    model: Classifier
    most: int = SHOWN
    kept: list[tuple[float, int, Mistake]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ticket = itertools.count(0, -1)  # of rows that are equally wrong the first stays

    def see(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Some more rows, which have labels that the model knows."""
        wrong = self._by_label(chunk, scores) if self.model.several is not None else self._by_class(chunk, scores)
        wrong = np.nan_to_num(wrong, nan=0.0)
        worst = np.argsort(-wrong, kind="stable")[: self.most]
        for row in worst[wrong[worst] > 0.0].tolist():
            by = float(wrong[row])
            if len(self.kept) == self.most and by <= self.kept[0][0]:
                break
            entry = (by, next(self._ticket), self._mistake(chunk, row, scores[row], by))
            (heapq.heappush if len(self.kept) < self.most else heapq.heapreplace)(self.kept, entry)

    def worst(self) -> list[Mistake]:
        """From the worst on."""
        return [mistake for _, _, mistake in sorted(self.kept, key=lambda entry: (-entry[0], -entry[1]))]

    def _by_class(self, chunk: Chunk, scores: np.ndarray) -> np.ndarray:
        """By how much the class that was taken is ahead of the true one; 0 where they are the same."""
        assert chunk.y is not None
        taken, truth = self.model.winners(scores), np.searchsorted(self.model.classes, chunk.y)
        if scores.ndim == 1:
            cut = 0.0 if self.model.threshold is None else self.model.threshold.value
            ahead = np.abs(scores - cut)
        else:
            rows = np.arange(len(scores))
            with np.errstate(invalid="ignore"):
                ahead = scores[rows, taken] - scores[rows, truth]
        return np.where(taken != truth, np.maximum(ahead, np.finfo(float).tiny), 0.0)

    def _by_label(self, chunk: Chunk, scores: np.ndarray) -> np.ndarray:
        """By how much the label that is most wrong is on the wrong side."""
        from dotadd.model.several_labels import as_sets

        assert chunk.y is not None
        offsets, numbers, _ = members(as_sets(chunk.y), self.model.classes)
        sign = np.ones(scores.shape)
        sign[np.repeat(np.arange(len(scores)), np.diff(offsets)), numbers] = -1.0
        found: np.ndarray = np.maximum(sign * scores, 0.0).max(axis=1, initial=0.0)
        return found

    def _mistake(self, chunk: Chunk, row: int, score: np.ndarray, by: float) -> Mistake:
        single = chunk.take(np.array([row]))
        assert single.y is not None
        truth = single.y.tolist()[0]
        if self.model.several is not None:
            names = self.model.classes[score > 0.0].tolist()
            told, found = _labels(truth if isinstance(truth, tuple) else (truth,)), _labels(names)
        else:
            taken = self.model.classes[self.model.winners(score[None])]
            told, found = as_written(truth), as_written(taken.tolist()[0])
        where = f"row {chunk.first_row + row + 1}"
        if chunk.lines is not None:
            where += f", line {int(chunk.lines[row])}"
        path = chunk.path_of(row)
        return Mistake(by, chunk.first_row + row, where + (f" of {path}" if path else ""), told, found, single)


def _labels(labels: object) -> str:
    assert isinstance(labels, tuple | list)
    return ", ".join(map(as_written, labels)) or "no label"


def mistakes_section(model: Classifier, worst: list[Mistake]) -> str:
    """The rows, each with what speaks for the class that it was taken for."""
    parts = [_shown(model, mistake) for mistake in worst]
    return f'<div class="dotadd-explained"><style>{STYLE}</style>\n{"".join(parts)}</div>'


def _shown(model: Classifier, mistake: Mistake) -> str:
    title = f"{mistake.where}: {mistake.truth} taken for {mistake.taken}, wrong by {mistake.wrong:.3g}"
    batch = mistake.chunk.batch
    if isinstance(model, Model) and batch.nbytes <= EXPLAINED and not isinstance(batch, Images):
        from dotadd.model.explanation import explain

        columns = model.columns.features if model.columns is not None and model.columns.dense else None
        source = MemorySource(replace(mistake.chunk, first_row=0, ids=None), columns=columns)
        try:
            found = explain(model, source, largest=LARGEST, n_jobs=1)
        except DotaddError:  # what cannot be explained is shown as it is
            found = None
        if found is not None and found.method != "ism":
            return shown_row(replace(found.rows[0], name=title), found.alphabet)
    shown = "" if isinstance(batch, Images) else _beginning(mistake.chunk)
    return f"<h3>{text(title)}</h3>" + (f'<div class="text">{text(shown, LETTERS)}</div>' if shown else "")


def _beginning(chunk: Chunk) -> str:
    from dotadd.data.batches import Strings

    if isinstance(chunk.batch, Strings):
        return chunk.batch[0][: 2 * LETTERS].decode("utf-8", "replace")
    return str(chunk.batch.to_arrow()[0].as_py())[: 2 * LETTERS]
