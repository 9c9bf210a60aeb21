"""PartsTrial: machines for each fold and each C on parts of the data, all in the same rounds.

Folds, values of C and classes are columns over the rows of each part. Parts score their own held-out rows, and what
comes back is an evaluation, which is a sum: neither scores nor labels leave them. As many values of C are trained
together as all machines have room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from dotadd.cluster.engine import Engine, Message, PartsLostError, Replies, Request, Told
from dotadd.cluster.folds import ByClass, ByValue, Deal, InOrder, Tries
from dotadd.cluster.partitions import Partitions
from dotadd.cluster.requests import Begin, CountFolds, CountLengths, CountRows, CountValues, Evaluate, Room
from dotadd.cluster.shard import Order
from dotadd.errors import DotaddError
from dotadd.estimators.choosing import ChoosesC, spaced
from dotadd.estimators.fitting import Found, How, OnParts, agreed, budget_on_parts, settings_of
from dotadd.estimators.held_out import Fitted, Judged
from dotadd.estimators.linear import LinearSVM
from dotadd.estimators.protocol import whole
from dotadd.estimators.trial import DECADES
from dotadd.model.evaluation import Evaluation, Evaluator
from dotadd.problem.folds import Folds, cuts_in_time, folds_of_groups, parts_of_times, require_classes, require_rows
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.path import require_ended
from dotadd.solvers.result import Progress, Reason, Result

if TYPE_CHECKING:
    from distributed import Client

SCORES: dict[str, Callable[[Evaluation], float]] = {
    "accuracy": lambda found: found.accuracy,
    "balanced_accuracy": lambda found: found.balanced_accuracy,
    "f1_macro": lambda found: found.macro_f1,
    "f1_micro": lambda found: found.micro_f1,
    "matthews_corrcoef": lambda found: found.matthews,
    "roc_auc": lambda found: found.auroc[0],
    "average_precision": lambda found: found.auprc[0],
}
"""Measures that are sums over rows, by scikit-learn's names."""
AREAS = ("roc_auc", "average_precision")  # of the second of two classes
VECTORS = 4  # as long as w, that each machine of a path takes in a part, and no fewer in the driver


class PartsTrial:
    """What is tried on parts of the data: values of C in rising order, or how many of them."""

    held: Judged
    Cs: list[float]

    def __init__(
        self, svm: ChoosesC, machine: LinearSVM, X: object, engine: Engine | Client, how: How, groups: object,
        times: object, Cs: list[float] | int,
    ) -> None:  # fmt: skip
        self.svm, self.machine, self.engine, self.how = svm, machine, engine, how
        self.groups, self.times, self.asked = groups, times, Cs
        ids = tuple(name for name in (groups, times) if isinstance(name, str))
        self.X = None if X is None else Partitions.of(X, ids=ids)  # a source has been told already
        self.scoring = "accuracy" if svm.scoring is None else svm.scoring
        self._open = ExitStack()
        self._refuse()

    def _refuse(self) -> None:
        """Refuse what needs all labels, or all scores, in one place."""
        svm = self.svm
        if not whole(svm.cv):
            raise DotaddError("on a cluster cv= is a number of folds: a splitter needs all rows in one place")
        if not isinstance(self.scoring, str) or self.scoring not in SCORES:
            raise DotaddError(f"scoring is {self.scoring!r}; on a cluster it is one of {', '.join(SCORES)}")
        for name, given, kinds in (("groups", self.groups, str | None), ("times", self.times, str | bool | None)):
            if not isinstance(given, kinds):
                raise DotaddError(f"on a cluster {name}= is the name of a column of the files")
        if svm.probability is not None or svm.threshold is not None:
            raise DotaddError(
                "probability= and threshold= learn from held-out scores, which stay with the parts of a cluster: "
                "calibrate the model afterwards, on rows that it was not trained on"
            )

    def run(self, memory: int, clock: Clock) -> Reason | None:
        """Try all of it; why it ended early, if it did."""
        try:
            self._run(clock)
        except StoppedError as stopped:
            return stopped.reason
        return None

    def _run(self, clock: Clock) -> None:
        self.parts = parts = self._open.enter_context(agreed(self.machine, self.X, self.engine, self.how, None))
        task = parts.task
        if self.scoring in AREAS and len(task.targets.classes) > 2:
            raise DotaddError(f"scoring={self.scoring!r} is for two classes, and there are {len(task.targets.classes)}")
        tries, problems = self._tries(parts), len(task.targets.problems)
        self.Cs = spaced(self.asked, _typical(parts.engine), DECADES) if isinstance(self.asked, int) else self.asked
        self.held = Judged(problems, len(self.Cs), len(tries.trains))
        columns = len(tries.trains) * problems
        self._total = len(self.Cs) * columns + problems * self.svm.refit
        together = _together(parts, columns)
        for first in range(0, len(self.Cs), together):
            clock.check()
            some = self.Cs[first : first + together]
            tried = replace(task, tries=replace(tries, Cs=tuple(some)))
            _asked(parts.engine, Begin(tried, again=True))
            if not first:
                counts = np.sum(_asked(parts.engine, CountFolds()).told, axis=0)
                require_classes(tries.trains, tries.tests, counts, task.targets.classes)
            settings = settings_of(
                self.machine, self._later(first * columns), tried.problems, budget_on_parts(self.machine)
            )
            results = parts.solve(tried, replace(settings, tol=self.svm.cv_tol, max_time=clock.left()))
            require_ended(results)
            self._judge(results, first)

    def _tries(self, parts: OnParts) -> Tries:
        """The folds."""
        count, task, engine = int(self.svm.cv), parts.task, parts.engine
        deal: Deal
        one_each = Folds.one_part_each(np.empty(0, np.uint16), count)
        in_time = Folds.one_after_the_other(np.empty(0, np.uint16), count)
        column = self.groups if self.groups is not None else self.times
        if isinstance(column, str):
            (counted,) = _asked(engine, CountValues(column)).told
            if self.groups is not None:
                folds, deal = one_each, ByValue(counted.values, folds_of_groups(counted.sizes, count))
            else:
                folds = in_time
                deal = ByValue(counted.values, parts_of_times(counted.sizes.sum(axis=1), count))
            return Tries((), folds.trains, folds.tests, deal, column)
        rows = np.stack(_asked(engine, CountRows()).told)
        before = np.cumsum(rows, axis=0) - rows
        if column is True:
            deal = InOrder(cuts_in_time(task.rows, count), before.sum(axis=1))
            return Tries((), in_time.trains, in_time.tests, deal)
        require_rows(rows.sum(axis=0), task.targets.classes, count)
        return Tries((), one_each.trains, one_each.tests, ByClass(count, task.seed, before))

    def _judge(self, results: list[Result], first: int) -> None:
        """How good these results are on held-out rows, C by C from this one on."""
        held, folds = self.held, self.held.judged.shape[1]
        orders = [
            Order(k, result.intercept, Message.of(result.w.copy()), fresh=True) for k, result in enumerate(results)
        ]
        (seen,) = _asked(self.parts.engine, Evaluate(orders, self.scoring in AREAS)).told
        for i in range(len(seen) // folds):
            mine = seen[i * folds : (i + 1) * folds]
            for k in range(folds * held.problems):
                held.fitted[first + i, k] = Fitted.of(results[i * folds * held.problems + k])
            held.note(first + i, [self._score(one) for one in mine], self._score(reduce(add, mine)))

    def _score(self, seen: Evaluator) -> float:
        return float(SCORES[str(self.scoring)](seen.finish(intervals=False)))

    def train(self) -> Found:
        """Train on all rows, with the machine's C."""
        parts, machine = self.parts, self.machine
        targets = parts.task.targets
        task = replace(parts.task, targets=replace(targets, cost_of_class=machine.C * targets.cost_of_class))
        _asked(parts.engine, Begin(task, again=True))
        told = self._later(self._total - task.problems, each=True)
        settings = settings_of(machine, told, task.problems, budget_on_parts(machine))
        return parts.found(parts.solve(task, settings))

    def close(self) -> None:
        """Let go of the parts."""
        self._open.close()

    def _later(self, first: int, *, each: bool = False) -> How:
        """Tells of fits that come after so many: of those that are done, as they are, or `each` time."""
        tell, done = self.how.on_progress, set[int]()
        if tell is None:
            return self.how

        def on_progress(progress: Progress, k: int, n: int) -> None:
            if each:
                tell(progress, first + k, self._total)
            elif progress.gap <= self.svm.cv_tol and k not in done:
                done.add(k)
                tell(progress, first + len(done) - 1, self._total)

        return replace(self.how, on_progress=on_progress)


def _asked(engine: Engine, request: Request[Told]) -> Replies[Told]:
    """What parts answer, however often some are lost: those that stand in for them know as much."""
    while True:
        try:
            return engine.round(request)
        except PartsLostError:
            continue


def _typical(engine: Engine) -> float:
    """The median of |phi|^2, to the next power of ten; of two in the middle the larger one."""
    counts = sum(map(Counter, _asked(engine, CountLengths()).told), Counter[int]())
    decades = sorted(counts)
    if not decades:
        return 1.0
    ends = np.cumsum([counts[one] for one in decades])
    return float(10.0 ** decades[int(np.searchsorted(ends, ends[-1] // 2, side="right"))])


def _together(parts: OnParts, columns: int) -> int:
    """How many values of C have room together in a quarter of what is free on any of the machines."""
    told = _asked(parts.engine, Room()).told
    here = Counter(machine for machine, _, _ in told)
    vectors = VECTORS * parts.task.phi.dim * np.dtype(parts.task.dtype).itemsize
    return max(1, min(free // 4 // here[machine] // (columns * (vectors + 17 * rows)) for machine, free, rows in told))
