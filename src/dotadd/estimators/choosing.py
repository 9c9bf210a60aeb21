"""ChoosesC: what machines have in common whose C is chosen by cross-validation, whatever they are trained by."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dotadd.errors import DotaddError
from dotadd.estimators.held_out import HeldOut, Judged
from dotadd.estimators.protocol import Estimator, whole
from dotadd.model.probability import METHODS, calibrate
from dotadd.model.threshold import Purpose, choose_threshold
from dotadd.problem.columns import positive
from dotadd.problem.folds import FEWEST, MOST, Folds, in_order, require_classes, require_rows
from dotadd.solvers.result import Reason
from dotadd.sources.base import Source

if TYPE_CHECKING:
    import pyarrow as pa

RULES = ("best", "one_standard_error")


FoldsOf = Callable[[np.ndarray, np.ndarray, "np.ndarray | None"], Folds]
"""Folds of rows by the numbers of their classes, the classes, and the ranks of the values in a column, if one is
named."""


class ChoosesC(Estimator):
    """An estimator that tries values of C on folds, and trains on all rows with the best of them."""

    Cs: int | Iterable[float]
    cv: Any
    scoring: object
    rule: str
    cv_tol: float
    probability: str | None
    threshold: str | None
    refit: bool
    machine_: Any

    def _note(self, held: Judged, Cs: list[float]) -> None:
        """The attributes that tell of the folds, and the C that follows."""
        self.scores_, folds = held.judged.T, held.judged.shape[1]
        mean, spread = held.judged.mean(axis=1), held.judged.std(axis=1)
        fitted = [[held.fitted.get((i, k)) for k in range(folds * held.problems)] for i in range(len(Cs))]
        done = [[one for one in row if one is not None] for row in fitted]
        order = np.argsort(np.argsort(np.where(np.isnan(mean), np.inf, -mean), kind="stable"), kind="stable")
        ties = [int(np.flatnonzero(mean == one)[0]) if not np.isnan(one) else i for i, one in enumerate(mean)]
        self.cv_results_: dict[str, Any] = {
            "params": [{"C": C} for C in Cs],
            "param_C": np.array(Cs),
            **{f"split{fold}_test_score": held.judged[:, fold] for fold in range(folds)},
            "mean_test_score": mean,
            "std_test_score": spread,
            "rank_test_score": (order[ties] + 1).astype(np.int32),
            "pooled_test_score": held.pooled,
            "max_gap": np.array([max((one.gap for one in row), default=np.nan) for row in done]),
            "max_passes": np.array([max((one.passes for one in row), default=0) for row in done]),
            "fit_time": np.array([sum(one.seconds for one in row) for row in done]),
        }
        if held.best < 0:
            return
        chosen = held.best
        if self.rule == "one_standard_error":
            error = float(np.std(held.judged[chosen], ddof=1)) / np.sqrt(folds) if folds > 1 else 0.0
            within = np.flatnonzero(mean >= mean[chosen] - error)
            chosen = int(within[np.argmin(np.array(Cs)[within])])
        self.C_, self.best_index_, self.best_score_ = float(Cs[chosen]), chosen, float(mean[chosen])
        if isinstance(held, HeldOut):
            self.held_out_scores_ = held.scores(chosen)

    def _told(self) -> dict[str, Any]:
        """What a model tells of how its C was chosen."""
        found = self.cv_results_
        return {
            "C": found["param_C"].tolist(),
            "folds": len(self.scores_),
            "scoring": self.scoring if isinstance(self.scoring, str) else "accuracy" if self.scoring is None else "own",
            "rule": self.rule,
            "mean": found["mean_test_score"].tolist(),
            "std": found["std_test_score"].tolist(),
            "pooled": found["pooled_test_score"].tolist(),
            "gap": found["max_gap"].tolist(),
        }

    def _require_choice(self, stopped: Reason | None) -> None:
        """Refuse to go on where time was up before any C was tried, and tell of those that were not."""
        if not hasattr(self, "C_"):
            raise DotaddError(f"the time limit of {self.max_time:g} s was reached before one C was tried on all folds")
        if stopped is not None:
            missing = int(np.isnan(self.scores_).any(axis=0).sum())
            told = f"the time limit was reached before {missing} of {self.scores_.shape[1]} values of C were tried"
            warnings.warn(told, stacklevel=6)

    def _take_over(self, machine: Estimator, held: Judged) -> None:
        """Have what the machine has that was trained on all rows, and what held-out scores tell beside it."""
        for name in ("model_", "result_", "n_iter_", "n_features_in_"):
            if hasattr(machine, name):
                setattr(self, name, getattr(machine, name))
        self.machine_ = machine
        self.model_.training["cross_validation"] = self._told()
        if isinstance(held, HeldOut):
            self._learn_from(held)

    def _folds(self, codes: np.ndarray, classes: np.ndarray, groups: object, times: object, seed: int) -> Folds:
        """The folds of these rows, whose classes are numbered."""
        rows = len(codes)
        if groups is not None:
            groups = _beside(groups, "groups", rows)
        if not whole(self.cv):
            splits = self.cv.split(np.zeros((rows, 1)), codes, groups) if hasattr(self.cv, "split") else self.cv
            return Folds.given(splits, rows)
        if groups is not None:
            return Folds.by_group(groups, codes, int(self.cv))
        if times is not None and times is not False:
            order = np.arange(rows) if times is True else _beside(times, "times", rows)
            return Folds.by_time(order, int(self.cv))
        require_rows(np.bincount(codes, minlength=len(classes)), classes, int(self.cv))
        return Folds.stratified(codes, int(self.cv), seed)

    def _learn_from(self, held: HeldOut) -> None:
        """Give the model the probabilities and the threshold that are asked for, by its held-out scores."""
        truth, tested = held.truth, held.tested
        scores, labels = self.held_out_scores_[tested], truth.labels(tested)
        weight = None if truth.weight is None else truth.weight[tested]
        if self.probability is not None:
            found = calibrate(scores, labels, truth.classes, method=self.probability, weight=weight)
            self.model_.calibration = found
        if self.threshold is not None:
            self.model_.threshold = choose_threshold(scores, labels, truth.classes, self.threshold, weight=weight)

    def _checked_choice(self, groups: object, times: object) -> list[float] | int:
        """The values of C in rising order, or how many; refuses parameters that cannot act."""
        require = self._require
        require(positive(self.cv_tol), "cv_tol", "a positive number")
        require(self.rule in RULES, "rule", " or ".join(map(repr, RULES)))
        require(self.probability in (None, *METHODS), "probability", "None, " + " or ".join(map(repr, METHODS)))
        if self.threshold is not None:
            Purpose.of(self.threshold)
        require(isinstance(self.refit, bool | np.bool_), "refit", "True or False")
        sound = whole(self.cv, at_least=FEWEST) and self.cv <= MOST if isinstance(self.cv, int) else self.cv is not None
        require(sound, "cv", f"a number of folds from {FEWEST} on, a splitter, or pairs of row numbers")
        if groups is not None and times is not None:
            raise DotaddError("groups= and times= cut the rows in two ways: give one of them")
        if isinstance(self.Cs, int | np.integer) and not isinstance(self.Cs, bool):
            require(1 <= self.Cs <= MOST, "Cs", f"a number from 1 to {MOST}, or a list of values of C")
            return int(self.Cs)
        values = list(self.Cs) if isinstance(self.Cs, Iterable) and not isinstance(self.Cs, str) else []
        require(len(values) > 0 and all(map(positive, values)), "Cs", "a list of positive numbers, or how many")
        return sorted({float(value) for value in values})


class Given(NamedTuple):
    """By what the folds of an estimator are made: arrays, or the names of columns."""

    svm: ChoosesC
    groups: object
    times: object

    @property
    def ids(self) -> list[str]:
        """The column that a source has to carry along."""
        return [name for name in (self.groups, self.times) if isinstance(name, str)]

    def folds_of(self, source: Source, seed: int) -> FoldsOf:
        """Makes the folds of this source's rows."""

        def folds_of(codes: np.ndarray, classes: np.ndarray, named: np.ndarray | None) -> Folds:
            if self.ids and named is None:
                name, ids = self.ids[0], self.ids
                raise DotaddError(f"{source.name} does not bring column {name!r} along: open it with ids={ids}")
            together, order = (named if isinstance(one, str) else one for one in (self.groups, self.times))
            folds = self.svm._folds(codes, classes, together, order, seed)
            require_classes(folds.trains, folds.tests, folds.counts(codes, len(classes)), classes)
            return folds

        return folds_of


def spaced(count: int, squared_norm: float, decades: tuple[int, int]) -> list[float]:
    """So many values of C, evenly spaced by their logarithms, from so many decades below to so many above the one by
    which an example's own loss can move w by its length."""
    scale = 10.0 ** np.round(np.log10(squared_norm))
    exponents = np.linspace(-decades[0], decades[1], count) if count > 1 else np.zeros(1)
    return [float(f"{C:.3g}") for C in 10.0**exponents / scale]


def typical(squared_norms: np.ndarray) -> float:
    """The median of those that are not 0."""
    lengths = squared_norms[squared_norms > 0.0]
    return float(np.median(lengths)) if len(lengths) else 1.0


def _beside(values: object, name: str, rows: int) -> np.ndarray:
    found = np.asarray(values)
    if found.ndim != 1 or len(found) != rows:
        raise DotaddError(f"{name}= has the shape {found.shape}, and there are {rows:,} rows to train on")
    return found


def ranked(ids: list[pa.RecordBatch]) -> np.ndarray:
    """The rank of each row's value in the first column of these: equal ranks for equal values, and in their order."""
    import pyarrow as pa

    return in_order(pa.chunked_array([some.column(0) for some in ids]), ids[0].schema.names[0])[1]
