"""HeldOut: scores of rows that a fold has not trained on, for each C, and how good they are.

The scores of a C are there while its folds come in, and those of the best C so far; all others are forgotten as soon as
they were judged, so that a long path of C takes no more memory than a short one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock
from typing import NamedTuple

import numpy as np

from dotadd.errors import DotaddError
from dotadd.model.evaluation import accuracy
from dotadd.model.file import classifier_tags, winners
from dotadd.problem.columns import Targets
from dotadd.problem.folds import Folds
from dotadd.solvers.result import Result
from dotadd.sources.base import Chunk


class Fitted(NamedTuple):
    """What is told of the answer to one column at one C."""

    gap: float
    passes: int
    seconds: float
    converged: bool

    @classmethod
    def of(cls, result: Result) -> Fitted:
        gap = np.nan if result.gap is None else result.gap
        return cls(gap, result.passes, sum(result.seconds.values()), result.converged)


class Truth(NamedTuple):
    """What held-out scores are compared with: the class of each row by number, the classes, weights of rows."""

    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None

    @classmethod
    def of(cls, codes: np.ndarray, classes: np.ndarray, weight: np.ndarray | None) -> Truth:
        return cls(codes.astype(np.uint16), classes, weight)

    @classmethod
    def gathered(cls, chunks: Iterable[Chunk], targets: Targets) -> Truth:
        """The truth about rows that pass by."""
        codes, weights = [], []
        for chunk in chunks:
            codes.append(targets.codes(chunk).astype(np.uint16))
            if chunk.weight is not None:
                weights.append(np.asarray(chunk.weight, np.float64))
        return cls(np.concatenate(codes), targets.classes, np.concatenate(weights) if weights else None)

    def labels(self, rows: np.ndarray) -> np.ndarray:
        return self.classes[self.codes[rows]]


Winners = Callable[[np.ndarray], np.ndarray]
Measure = Callable[[Truth, np.ndarray, np.ndarray], float]
"""How good scores are: measure(truth, numbers of rows, scores of these), the larger the better."""


class Judged:
    """How good each C is: `judged` has the score of each C and fold, NaN where there is none yet, and `pooled` that of
    all held-out rows together."""

    def __init__(self, problems: int, Cs: int, folds: int) -> None:
        self.problems = problems
        self.judged, self.pooled = np.full((Cs, folds), np.nan), np.full(Cs, np.nan)
        self.fitted: dict[tuple[int, int], Fitted] = {}
        self.best = -1
        """The number of the C that is best so far."""

    def note(self, i: int, judged: list[float], pooled: float) -> None:
        """How good C number i is in each fold, and in all of them."""
        self.judged[i], self.pooled[i] = judged, pooled
        if self.best < 0 or np.mean(judged) > np.mean(self.judged[self.best]):
            self.best = i


class HeldOut(Judged):
    """The same with scores by C number, row and binary problem, of the best C, or of all with `keep_all`."""

    def __init__(
        self,
        truth: Truth,
        folds: Folds,
        problems: int,
        Cs: int,
        measure: Measure,
        *,
        keep_all: bool = False,
        together: Callable[[np.ndarray], np.ndarray] = lambda scores: scores,
    ) -> None:
        super().__init__(problems, Cs, len(folds))
        self.truth, self.folds, self.measure = truth, folds, measure
        self.together = together
        """Makes scores of classes of those of several binary problems, where they are something else."""
        self._tables: dict[int, np.ndarray] = {}
        self._keep_all = keep_all
        self._rows = [folds.held_out(fold) for fold in range(len(folds))]
        self._coming: dict[int, tuple[np.ndarray, int]] = {}
        self._lock = Lock()

    def rows(self, k: int) -> np.ndarray:
        """The rows that column k is tested on."""
        return self._rows[k // self.problems]

    @property
    def tested(self) -> np.ndarray:
        """All rows that any fold is tested on."""
        return np.unique(np.concatenate(self._rows))

    def put(self, i: int, k: int, scores: np.ndarray, fitted: Fitted) -> None:
        """The scores by column k at C number i, of the rows that it is tested on."""
        fold, problem = divmod(k, self.problems)
        with self._lock:
            self.fitted[i, k] = fitted
            if i not in self._coming:
                self._coming[i] = np.full((len(self.truth.codes), self.problems), np.nan), 0
            table, seen = self._coming[i]
            table[self._rows[fold], problem] = scores
            self._coming[i] = table, seen + 1
            if seen + 1 < self.problems * len(self.folds):
                return
            del self._coming[i]
        judged = [self._judge(table, rows) for rows in self._rows]
        with self._lock:
            self.note(i, judged, self._judge(table, self.tested))
            self._tables[i] = table
            if not self._keep_all:
                self._tables = {self.best: self._tables[self.best]}

    def scores(self, i: int) -> np.ndarray:
        """The scores of all rows at C number i, the best one unless all are kept; NaN where nobody tested a row."""
        return self._of_classes(self._tables[i])

    def _judge(self, table: np.ndarray, rows: np.ndarray) -> float:
        return self.measure(self.truth, rows, self._of_classes(table[rows]))

    def _of_classes(self, table: np.ndarray) -> np.ndarray:
        return table[:, 0] if self.problems == 1 else self.together(table)


def measure_by(scoring: object, winners: Winners = winners) -> Measure:
    """How good scores are by this measure: accuracy for None, or what scikit-learn knows under this name, or a
    callable of scikit-learn's form (estimator, X, y), which is given the numbers of rows for X. `winners` says which
    class scores speak for."""
    if scoring is None or scoring == "accuracy":
        return partial(_accuracy, winners)
    from sklearn.metrics import check_scoring

    def measure(truth: Truth, rows: np.ndarray, scores: np.ndarray) -> float:
        machine = _Scored(truth.classes, scores, winners)
        scorer = check_scoring(machine, scoring=scoring)
        weight = {} if truth.weight is None or callable(scoring) else {"sample_weight": truth.weight[rows]}
        return float(scorer(machine, rows, truth.labels(rows), **weight))

    try:
        check_scoring(_Scored(np.array([0, 1]), np.zeros(2), winners), scoring=scoring)
    except ValueError as error:
        raise DotaddError(f"scoring is {scoring!r}, and has to be a name that scikit-learn knows: {error}") from None
    return measure


def _accuracy(winners: Winners, truth: Truth, rows: np.ndarray, scores: np.ndarray) -> float:
    weight = None if truth.weight is None else truth.weight[rows]
    return accuracy(truth.codes[rows], winners(scores), sample_weight=weight)


class _Scored:
    """To scikit-learn's scorers a classifier, which has scored the rows already."""

    _estimator_type = "classifier"

    def __init__(self, classes: np.ndarray, scores: np.ndarray, winners: Winners) -> None:
        self.classes_, self._scores, self._winners = classes, scores, winners

    def fit(self, X: object, y: object) -> None:
        raise AssertionError("it is trained")

    def __sklearn_tags__(self) -> object:
        return classifier_tags()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: object) -> np.ndarray:
        return self._scores

    def predict(self, X: object) -> np.ndarray:
        labels: np.ndarray = self.classes_[self._winners(self._scores)]
        return labels
