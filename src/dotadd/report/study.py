"""Study: what a page tells of how good a model is on some rows. One pass over them, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dotadd.errors import DataError
from dotadd.model.evaluation import Evaluation, Evaluator
from dotadd.model.plots import rank_pairs
from dotadd.model.ranking import Ranked, Ranking
from dotadd.model.several_labels import LabelEvaluation, as_sets
from dotadd.report.mistakes import SHOWN, Mistake, Mistakes

if TYPE_CHECKING:
    from dotadd.model.file import Classifier
    from dotadd.sources.base import Chunk, Source


@dataclass(frozen=True)
class Study:
    """On which rows (`where`), the measures, rows by score, what became of probabilities, and the worst rows."""

    where: str
    evaluation: Evaluation | LabelEvaluation
    rankings: Sequence[Ranking]
    reliability: np.ndarray | None
    worst: list[Mistake]
    seconds: float


def studied(model: Classifier, source: Source, where: str, *, most: int = SHOWN, n_jobs: int | None = None) -> Study:
    """Score all rows of a source, which must have labels."""
    started = time.perf_counter()
    mistakes, pairs = Mistakes(model, most), Ranked()

    def seen(chunk: Chunk, scores: np.ndarray) -> None:
        mistakes.see(chunk, scores)
        if model.several is not None and chunk.y is not None:
            rank_pairs(pairs, as_sets(chunk.y), scores, model.classes, chunk.weight)

    found = model.evaluated(source, n_jobs=n_jobs, seen=seen)
    if not found.rows:
        raise DataError("has no rows that can be used", source.name)
    rankings, bins = pairs.rankings(), None
    if isinstance(found, Evaluator):
        rankings, bins = found.rankings(), found.reliability()
    return Study(where, found.finish(), rankings, bins, mistakes.worst(), time.perf_counter() - started)


def held_out(model: Classifier, source: Source, scores: np.ndarray, where: str, *, most: int = SHOWN) -> Study | None:
    """The same of the rows of a cross-validation, with the scores of machines that had not seen them; None where rows
    and scores do not pair up, as those of virtual examples. Rows of NaN were in no fold."""
    started = time.perf_counter()
    mistakes, found, first = Mistakes(model, most), Evaluator(model.classes), 0
    for chunk in source.chunks():
        mine = scores[first : first + len(chunk)]
        first += len(chunk)
        if chunk.y is None or len(mine) != len(chunk):
            return None
        known = np.flatnonzero(np.isin(chunk.y, model.classes) & ~np.isnan(mine.reshape(len(mine), -1)).any(axis=1))
        some, whole, mine = chunk.take(known), mine, mine[known]
        assert some.y is not None
        found.see(some.y, mine, model.classes[model.winners(mine)], some.weight)
        mistakes.see(chunk, whole)
    if first != len(scores) or not found.rows:
        return None
    return Study(where, found.finish(), found.rankings(), None, mistakes.worst(), time.perf_counter() - started)
