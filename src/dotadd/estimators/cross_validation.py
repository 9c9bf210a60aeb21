"""LinearSVMCV: a linear machine whose C is chosen by cross-validation, in one expansion of the data.

Folds and classes are columns over the same examples, so that phi is made once for all of them. What phi learns of the
data without its labels, such as document frequencies and scales, it learns of all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any, Self

import numpy as np

from dotadd._util.interrupts import interruptible
from dotadd.errors import DotaddError
from dotadd.estimators.fitting import How, OnProgress, memory_for
from dotadd.estimators.held_out import HeldOut, measure_by
from dotadd.estimators.linear import LinearSVM
from dotadd.estimators.protocol import Estimator, column, columns_read, whole
from dotadd.estimators.trial import Trial
from dotadd.features.base import FeatureMap
from dotadd.model.probability import METHODS, calibrate
from dotadd.model.threshold import Purpose, choose_threshold
from dotadd.problem.columns import positive
from dotadd.problem.folds import FEWEST, MOST, Folds, require_classes
from dotadd.solvers.clock import Clock
from dotadd.solvers.result import Reason
from dotadd.sources import open as open_source
from dotadd.sources.base import Source

RULES = ("best", "one_standard_error")


class LinearSVMCV(Estimator):
    """A LinearSVM whose C is the one that predicts rows best that it was not trained on.

    Parameters
    ----------
    phi, loss, solver, intercept, class_weight, tol, memory, keep, max_passes, random_state, n_jobs, dtype :
        as for LinearSVM
    Cs : int or list of float
        The values of C to try. A number means so many, evenly spaced by their logarithms, from three decades below
        1 / |phi|^2 (rounded to a power of ten) to two above it.
    cv : int, splitter or list of (train, test)
        So many folds, each with its share of every class; or what scikit-learn takes, such as a KFold or pairs of row
        numbers. With `groups` in `fit`, the rows of a group stay together; with `times`, each fold is tested on what
        comes after the rows that it is trained on.
    scoring : str, callable or None
        What is best: accuracy by default, or any measure that scikit-learn knows by name. A callable is given
        (estimator, numbers of rows, labels).
    rule : "best" or "one_standard_error"
        The C with the best mean score over folds, the smaller one where two are alike; or the smallest C whose mean is
        within one standard error of that.
    cv_tol : float
        The relative duality gap that is proved for each fold and C; the machine that is trained on all rows in the end
        has `tol`.
    probability : "sigmoid", "isotonic" or None
        Learn probabilities from the held-out scores at the C that was chosen. The logistic loss has them without.
    threshold : str or None
        What predictions are for, such as "precision=0.99", "recall=0.9", "fpr=1e-4" or "fp=5,fn=1" (costs): the
        threshold that holds to it on the held-out scores is kept in the model.
    refit : bool
        Whether to train on all rows with the C that was chosen.
    max_time : float or None
        Seconds for all of it. Values of C that were not reached have no score.

    Attributes
    ----------
    C_, best_index_, best_score_ : the C that was chosen, its place among those tried, and its mean score
    cv_results_ : dict of arrays with an entry for each C, by scikit-learn's names: param_C, split0_test_score and so
        on, mean_test_score, std_test_score, rank_test_score; and pooled_test_score, of all held-out rows together,
        max_gap, max_passes and fit_time
    scores_ : (folds, Cs)
    held_out_scores_ : decision values of each row by the fold that was not trained on it, at C_; NaN where no fold was
        tested on it
    machine_ : the LinearSVM that was trained on all rows, if `refit`
    model_, result_, coef_, intercept_, classes_, n_iter_, n_features_in_ : as for LinearSVM, if `refit`

    Examples
    --------
    >>> from dotadd import LinearSVMCV, Spectrum
    >>> svm = LinearSVMCV(Spectrum(2), Cs=[0.1, 1], cv=2).fit(["ACACAC", "GTGTGT", "ACACAA", "GTGTTT"], [1, -1, 1, -1])
    >>> svm.C_, svm.predict(["ACAC", "GTTT"])
    (0.1, array([ 1, -1]))
    """

    def __init__(
        self,
        phi: FeatureMap | str | None = None,
        *,
        Cs: int | Iterable[float] = 10,
        cv: Any = 5,
        scoring: object = None,
        rule: str = "best",
        cv_tol: float = 1e-2,
        probability: str | None = None,
        threshold: str | None = None,
        refit: bool = True,
        loss: str = "hinge",
        solver: str = "auto",
        intercept: str = "regularized",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-3,
        memory: str | int | None = None,
        keep: bool = True,
        max_passes: int = 1000,
        max_time: float | None = None,
        random_state: object = None,
        n_jobs: int | None = None,
        dtype: str = "float32",
    ) -> None:
        self.phi = phi
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.cv_tol = cv_tol
        self.probability = probability
        self.threshold = threshold
        self.refit = refit
        self.loss = loss
        self.solver = solver
        self.intercept = intercept
        self.class_weight = class_weight
        self.tol = tol
        self.memory = memory
        self.keep = keep
        self.max_passes = max_passes
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.dtype = dtype

    @interruptible
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        groups: object = None,
        times: object = None,
        on_progress: OnProgress | None = None,
        keep_cache: bool = True,
        announce: Callable[[str], None] | None = None,
    ) -> Self:
        """Choose C on anything `dotadd.open` takes, and train on all of it with that C.

        `groups` has a value for each row, and rows of the same value are never on both sides of a fold; `times` tells
        the order of rows in time, or is True where they are in order. Either may be the name of a column of X.
        `on_progress(progress, k, n)` is told when fit k of n is done; `keep_cache` and `announce` are those of
        LinearSVM.fit.
        """
        self._forget()
        machine = self._machine()
        Cs = self._checked(machine, groups, times)
        how = How(
            machine._proposed(X, announce) if self.phi is None else self.phi,
            on_progress,
            announce,
            None,
            False,
            keep_cache=keep_cache,
        )
        ids = [name for name in (groups, times) if isinstance(name, str)]
        here = () if isinstance(X, Source) else ids  # a source has been told already which to carry along
        source = open_source(X, column(y), sample_weight, like=columns_read(how.phi), ids=here)
        memory = memory_for(machine, how)
        source.bound(memory)
        seed = machine._seed()

        def folds_of(codes: np.ndarray, classes: np.ndarray, named: np.ndarray | None) -> Folds:
            if ids and named is None:
                raise DotaddError(f"{source.name} does not bring column {ids[0]!r} along: open it with ids={ids}")
            together, order = (named if isinstance(given, str) else given for given in (groups, times))
            folds = self._folds(codes, together, order, seed)
            require_classes(folds, codes, classes)
            return folds

        trial = Trial(
            machine, source, how, folds_of, measure_by(self.scoring), Cs, self.cv_tol,
            refit=self.refit, keep_all=self.rule != "best", by_name=bool(ids),
        )  # fmt: skip
        with closing(trial), Clock(self.max_time) as clock:
            stopped = trial.run(memory, clock)
            self._note(trial.held, trial.Cs, len(trial.held.folds))
            if stopped is not Reason.INTERRUPTED:
                self._conclude(trial, machine, stopped)
        self._remember_feature_names(X)
        if hasattr(self, "model_"):  # Ctrl-C may have come before
            machine._warn_unless_converged()
        return self

    def _conclude(self, trial: Trial, machine: LinearSVM, stopped: Reason | None) -> None:
        """Train on all rows, if that is wanted, with the C that was chosen."""
        if trial.held.best < 0:
            raise DotaddError(f"the time limit of {self.max_time:g} s was reached before one C was tried on all folds")
        if stopped is not None:
            missing = int(np.isnan(self.scores_).any(axis=0).sum())
            told = f"the time limit was reached before {missing} of {len(trial.Cs)} values of C were tried"
            warnings.warn(told, stacklevel=5)
        if not self.refit:
            return
        machine.C = self.C_
        machine._keep(trial.train())
        for name in ("model_", "result_", "n_iter_", "n_features_in_"):
            if hasattr(machine, name):
                setattr(self, name, getattr(machine, name))
        self.machine_ = machine
        self.model_.training["cross_validation"] = self._told()
        truth, tested = trial.held.truth, trial.held.tested
        scores, labels = self.held_out_scores_[tested], truth.labels(tested)
        weight = None if truth.weight is None else truth.weight[tested]
        if self.probability is not None:
            found = calibrate(scores, labels, truth.classes, method=self.probability, weight=weight)
            self.model_.calibration = found
        if self.threshold is not None:
            self.model_.threshold = choose_threshold(scores, labels, truth.classes, self.threshold, weight=weight)

    def _note(self, held: HeldOut, Cs: list[float], folds: int) -> None:
        """The attributes that tell of the folds, and the C that follows."""
        self.scores_ = held.judged.T
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

    def _folds(self, codes: np.ndarray, groups: object, times: object, seed: int) -> Folds:
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
        return Folds.stratified(codes, int(self.cv), seed)

    def _machine(self) -> LinearSVM:
        """The machine that is trained on all rows, with C = 1 so far."""
        shared = LinearSVM._defaults().keys() - {"C"}
        return LinearSVM(C=1.0, **{name: getattr(self, name) for name in shared})

    def _checked(self, machine: LinearSVM, groups: object, times: object) -> list[float] | int:
        """The values of C in rising order, or how many; refuses parameters that cannot act."""
        machine._check_parameters()
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

    @property
    def coef_(self) -> np.ndarray:
        return self.model_.w

    @property
    def intercept_(self) -> np.ndarray:
        return self.model_.intercept


def _beside(values: object, name: str, rows: int) -> np.ndarray:
    found = np.asarray(values)
    if found.ndim != 1 or len(found) != rows:
        raise DotaddError(f"{name}= has the shape {found.shape}, and there are {rows:,} rows to train on")
    return found
