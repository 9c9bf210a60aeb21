"""LinearSVMCV: a linear machine whose C is chosen by cross-validation, in one expansion of the data.

Folds and classes are columns over the same examples, so that phi is made once for all of them. What phi learns of the
data without its labels, such as document frequencies and scales, it learns of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dotadd.errors import DotaddError
from dotadd.estimators.choosing import ChoosesC, Given
from dotadd.estimators.course import FoldsCourse
from dotadd.estimators.fitting import How, OnProgress, memory_for
from dotadd.estimators.held_out import measure_by
from dotadd.estimators.linear import LinearSVM
from dotadd.estimators.notebook import followed
from dotadd.estimators.protocol import column, columns_read
from dotadd.estimators.trial import Trial
from dotadd.features.base import FeatureMap
from dotadd.problem.columns import ClassWeight
from dotadd.solvers.clock import Clock
from dotadd.solvers.result import Reason
from dotadd.sources import open as open_source
from dotadd.sources.base import Source

if TYPE_CHECKING:
    from dotadd.estimators.parts_trial import PartsTrial


class LinearSVMCV(ChoosesC):
    """A LinearSVM whose C is the one that predicts rows best that it was not trained on.

    Parameters
    ----------
    phi, loss, solver, intercept, class_weight, tol, memory, keep, max_passes, random_state, n_jobs, dtype :
        as for LinearSVM
    Cs : int or list of float
        The values of C to try. A number means so many, evenly spaced by their logarithms, from three decades below
        1 / |phi|^2 (rounded to a power of ten) to two above it.
    cv : int or splitter or list
        So many folds, each with its share of every class; or what scikit-learn takes, such as a KFold or pairs of row
        numbers. With `groups` in `fit`, the rows of a group stay together; with `times`, each fold is tested on what
        comes after the rows that it is trained on.
    scoring : str or callable, optional
        What is best: accuracy by default, or any measure that scikit-learn knows by name. A callable is given
        (estimator, numbers of rows, labels).
    rule : {"best", "one_standard_error"}
        The C with the best mean score over folds, the smaller one where two are alike; or the smallest C whose mean is
        within one standard error of that.
    cv_tol : float
        The relative duality gap that is proved for each fold and C; the machine that is trained on all rows in the end
        has `tol`.
    probability : "sigmoid" or "isotonic", optional
        Learn probabilities from the held-out scores at the C that was chosen. The logistic loss has them without.
    threshold : str, optional
        What predictions are for, such as "precision=0.99", "recall=0.9", "fpr=1e-4" or "fp=5,fn=1" (costs): the
        threshold that holds to it on the held-out scores is kept in the model.
    refit : bool
        Whether to train on all rows with the C that was chosen.
    max_time : float, optional
        Seconds for all of it. Values of C that were not reached have no score.

    Attributes
    ----------
    C_, best_index_, best_score_ : the C that was chosen, its place among those tried, and its mean score
    cv_results_ : dict of arrays with an entry for each C, by scikit-learn's names: param_C, split0_test_score and so
        on, mean_test_score, std_test_score, rank_test_score; and pooled_test_score, of all held-out rows together,
        max_gap, max_passes and fit_time
    scores_ : (folds, Cs)
    held_out_scores_ : decision values of each row by the fold that was not trained on it, at C_; NaN where no fold was
        tested on it. Those of parts of the data stay there.
    machine_ : the LinearSVM that was trained on all rows, if `refit`
    model_, result_, coef_, intercept_, classes_, n_iter_, n_features_in_ : as for LinearSVM, if `refit`

    Examples
    --------
    >>> from dotadd import LinearSVMCV, Spectrum
    >>> svm = LinearSVMCV(Spectrum(2), Cs=[0.1, 1], cv=2).fit(["ACACAC", "GTGTGT", "ACACAA", "GTGTTT"], [1, -1, 1, -1])
    >>> svm.C_, svm.predict(["ACAC", "GTTT"])
    (0.1, array([ 1, -1]))
    """

    machine_: LinearSVM

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
        class_weight: ClassWeight | None = None,
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

    @followed(FoldsCourse)
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
        engine: Any = None,
    ) -> Self:
        """Choose C on anything `dotadd.open` takes, and train on all of it with that C.

        `groups` has a value for each row, and rows of the same value are never on both sides of a fold; `times` tells
        the order of rows in time, or is True where they are in order. Either may be the name of a column of X.
        `on_progress(progress, k, n)` is told when fit k of n is done, which a notebook shows by itself; `keep_cache`,
        `announce` and `engine` are those of LinearSVM.fit.

        On parts of the data (`engine`) all folds and values of C are trained in the same rounds. What needs all labels
        or scores in one place is refused there: splitters, `probability`, `threshold`, and measures that are no sums
        over rows. Folds are those of one machine that reads the files in their order.
        """
        self._forget()
        machine = self._machine()
        machine._check_parameters()
        Cs = self._checked_choice(groups, times)
        how = How(
            machine._proposed(X, announce) if self.phi is None and engine is None else self.phi,
            on_progress,
            announce,
            None,
            False,
            keep_cache=keep_cache,
        )
        trial: Trial | PartsTrial
        memory = 0
        if engine is not None:
            from dotadd.estimators.parts_trial import PartsTrial

            if y is not None or sample_weight is not None:
                raise DotaddError("with engine=, labels and weights are read from the files")
            if not keep_cache:
                raise DotaddError("with engine=, copies stay with the workers: keep_cache=False has no meaning")
            trial = PartsTrial(self, machine, X, engine, how, groups, times, Cs)
        else:
            given = Given(self, groups, times)
            here = () if isinstance(X, Source) else given.ids  # a source has been told already which to carry along
            source = open_source(X, column(y), sample_weight, like=columns_read(how.phi), ids=here)
            memory = memory_for(machine, how)
            source.bound(memory)
            folds_of, measure = given.folds_of(source, machine._seed()), measure_by(self.scoring)
            trial = Trial(
                machine, source, how, folds_of, measure, Cs, self.cv_tol,
                refit=self.refit, keep_all=self.rule != "best", by_name=bool(given.ids),
            )  # fmt: skip
        with closing(trial), Clock(self.max_time) as clock:
            stopped = trial.run(memory, clock)
            self._note(trial.held, trial.Cs)
            if stopped is not Reason.INTERRUPTED:
                self._conclude(trial, machine, stopped)
        if engine is None:
            self._remember_feature_names(X)
        if hasattr(self, "model_"):  # Ctrl-C may have come before
            machine._warn_unless_converged()
        return self

    def _conclude(self, trial: Trial | PartsTrial, machine: LinearSVM, stopped: Reason | None) -> None:
        """Train on all rows, if that is wanted, with the C that was chosen."""
        self._require_choice(stopped)
        if not self.refit:
            return
        machine.C = self.C_
        machine._keep(trial.train())
        self._take_over(machine, trial.held)

    def _machine(self) -> LinearSVM:
        """The machine that is trained on all rows, with C = 1 so far."""
        shared = LinearSVM._defaults().keys() - {"C"}
        return LinearSVM(C=1.0, **{name: getattr(self, name) for name in shared})

    @property
    def coef_(self) -> np.ndarray:
        """w: a row of weights for each class; one for two classes."""
        return self.model_.w

    @property
    def intercept_(self) -> np.ndarray:
        """b of each row of weights."""
        return self.model_.intercept
