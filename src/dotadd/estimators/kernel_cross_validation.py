"""KernelSVMCV: a kernel machine whose C is chosen by cross-validation, with kernel values that are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dotadd._util.memory import parse_bytes
from dotadd.estimators.choosing import ChoosesC, Given, ranked, spaced, typical
from dotadd.estimators.course import FoldsCourse
from dotadd.estimators.held_out import Fitted, HeldOut, Truth, measure_by
from dotadd.estimators.kernel import KernelExamples, KernelSVM
from dotadd.estimators.notebook import followed
from dotadd.estimators.protocol import OneOrEach, column
from dotadd.features.base import FeatureMap
from dotadd.kernel_svm.kernels import Kernel
from dotadd.kernel_svm.one_against_one import OnProgress, pairs
from dotadd.kernel_svm.path import HeldOutPart, kernel_path, whole_or_not
from dotadd.kernel_svm.problem import SOLVERS, USUAL, KernelProgress, KernelResult, KernelSettings
from dotadd.model.file import winners
from dotadd.model.kernel import counted, votes
from dotadd.problem.columns import ClassWeight, Tally
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.result import Reason
from dotadd.sources import open as open_source
from dotadd.sources.base import Source

DECADES = 2, 3  # of C, below and above where it weighs the losses as much as an example is long


class KernelSVMCV(ChoosesC):
    """A KernelSVM whose C is the one that predicts rows best that it was not trained on.

    The kernel is the same for all of it, so that its values are made once; "scale" of gamma is that of all rows.

    Parameters
    ----------
    kernel, of, gamma, degree, coef0, solver, tol, memory, class_weight, random_state, n_jobs : as for KernelSVM
    Cs : int or list of float
        The values of C to try. A number means so many, evenly spaced by their logarithms, from two decades below
        1 / k(z, z) (rounded to a power of ten) to three above it.
    cv, scoring, rule, probability, threshold, refit, max_time : as for LinearSVMCV
    cv_tol : float
        By how much the optimality conditions may be violated for each fold and C; for the machine that is trained on
        all rows in the end it is `tol`.

    Attributes
    ----------
    C_, best_index_, best_score_, cv_results_, scores_, held_out_scores_ : as for LinearSVMCV; several classes have
        scores by votes, as KernelSVM has
    machine_ : the KernelSVM that was trained on all rows, if `refit`
    model_, result_, classes_, n_iter_, n_features_in_ : as for KernelSVM, if `refit`

    KernelExamples
    --------
    >>> from dotadd import KernelSVMCV
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.1], [0.0, 0.9], [1.0, 0.1], [1.0, 0.9]]
    >>> svm = KernelSVMCV(gamma=1.0, Cs=[1, 10], cv=2, random_state=0).fit(X, [0, 1, 1, 0, 0, 1, 1, 0])
    >>> svm.predict([[0.0, 0.2], [1.0, 0.2]])
    array([0, 1])
    """

    machine_: KernelSVM
    result_: OneOrEach[KernelResult]

    def __init__(
        self,
        kernel: str | Kernel | FeatureMap | Callable[[Any, Any], Any] = "rbf",
        *,
        Cs: int | Iterable[float] = 10,
        cv: Any = 5,
        scoring: object = None,
        rule: str = "best",
        cv_tol: float = 1e-2,
        probability: str | None = None,
        threshold: str | None = None,
        refit: bool = True,
        of: FeatureMap | str | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        solver: str = USUAL,
        tol: float = 1e-3,
        memory: str | int = "500MB",
        class_weight: ClassWeight | None = None,
        max_time: float | None = None,
        random_state: object = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.cv_tol = cv_tol
        self.probability = probability
        self.threshold = threshold
        self.refit = refit
        self.of = of
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.tol = tol
        self.memory = memory
        self.class_weight = class_weight
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs

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
    ) -> Self:
        """Choose C on anything `dotadd.open` takes, and train on all of it with that C.

        `groups` and `times` are those of LinearSVMCV.fit; `on_progress(progress, k, n)` is told when fit k of n is
        done.
        """
        self._forget()
        machine = KernelSVM(C=1.0, **{name: getattr(self, name) for name in KernelSVM._defaults().keys() - {"C"}})
        kernel, Cs = machine._checked_kernel(), self._checked_choice(groups, times)
        given = Given(self, groups, times)
        here = () if isinstance(X, Source) else given.ids  # a source has been told already which to carry along
        source = open_source(X, column(y), sample_weight, ids=here)
        data = machine._loaded(source, kernel)
        tally = Tally()
        tally.note(data)
        targets = tally.targets(1.0, self.class_weight, source.name if data.from_file else data.path)
        seed = machine._seed()
        named = None if data.ids is None else ranked([data.ids])
        folds = given.folds_of(source, seed)(targets.codes(data), targets.classes, named)
        examples = machine._examples(kernel, data, targets, seed)
        folds = replace(folds, parts=folds.parts[examples.used])
        weight = None if data.weight is None else np.asarray(data.weight, np.float64)[examples.used]
        everyone = examples.gram(np.arange(len(examples.codes)))
        values = Cs if isinstance(Cs, list) else spaced(Cs, typical(everyone.diagonal()), DECADES)
        held = HeldOut(
            Truth.of(examples.codes, targets.classes, weight),
            folds,
            len(list(pairs(len(targets.classes)))),
            len(values),
            measure_by(self.scoring, lambda scores: winners(counted(scores))),
            keep_all=self.rule != "best",
            together=lambda scores: votes(scores.T, len(targets.classes)),
        )
        with Clock(self.max_time) as clock:
            stopped = None
            try:
                made = whole_or_not(everyone, parse_bytes(self.memory) // 2, min(self.tol, self.cv_tol), clock.check)
                examples = examples._replace(made=made)
                self._try(examples, held, values, seed, clock, on_progress)
            except StoppedError as error:
                stopped = error.reason
            self._note(held, values)
            if stopped is not Reason.INTERRUPTED:
                self._require_choice(stopped)
            if stopped is not Reason.INTERRUPTED and self.refit:
                self._train(machine, examples, held, source, seed, on_progress)
        self._remember_feature_names(X)
        if hasattr(self, "model_"):  # Ctrl-C may have come before
            machine._warn_unless_converged(self.result_ if isinstance(self.result_, list) else [self.result_])
        return self

    def _try(
        self,
        examples: KernelExamples,
        held: HeldOut,
        Cs: list[float],
        seed: int,
        clock: Clock,
        on_progress: OnProgress | None,
    ) -> None:
        """Solve each pair of classes of each fold for each C, and score the rows that were held out."""
        classes, folds = len(held.truth.classes), held.folds
        parts: list[HeldOutPart] = []
        for fold in range(len(folds)):
            trained = folds.trains[fold][folds.parts]
            for i, j in pairs(classes):
                rows = np.flatnonzero(trained & ((examples.codes == i) | (examples.codes == j)))
                sign = np.where(examples.codes[rows] == (1 if classes == 2 else i), 1, -1).astype(np.int8)
                parts.append(HeldOutPart(rows, sign, examples.cost[rows], held.rows(len(parts))))
        total = len(Cs) * len(parts) + held.problems * self.refit

        def take(i: int, k: int, outputs: np.ndarray, result: KernelResult) -> None:
            told = Fitted(result.gap, result.steps, sum(result.seconds.values()), result.converged)
            held.put(i, k, outputs, told)
            if on_progress is not None and result.trace:
                clock.tell(on_progress, result.trace[-1], len(held.fitted) - 1, total)

        settings = KernelSettings(self.cv_tol, parse_bytes(self.memory) // 2, seed=seed, threads=examples.threads)
        assert examples.made is not None
        kernel_path(examples.made, parts, Cs, SOLVERS[self.solver], settings, take, clock)

    def _train(
        self,
        machine: KernelSVM,
        examples: KernelExamples,
        held: HeldOut,
        source: Source,
        seed: int,
        on_progress: OnProgress | None,
    ) -> None:
        """Train on all rows with the C that was chosen."""
        machine.C = self.C_
        before = len(held.fitted)

        def later(progress: KernelProgress, k: int, n: int) -> None:
            assert on_progress is not None
            on_progress(progress, before + k, before + n)

        examples = examples._replace(cost=self.C_ * examples.cost)
        results = machine._solve(examples, len(held.truth.classes), seed, None if on_progress is None else later)
        machine._keep(examples, held.truth.classes, results, source)
        self._take_over(machine, held)
