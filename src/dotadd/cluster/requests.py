"""Requests: all that a driver asks the parts of a cluster, how a part answers, and what comes back.

Before training:   Describe, CountLabels, Learn     what is in the parts, and what phi learns of it
                   Begin                            the problem that they agree on
Folds:             CountRows, CountValues           what has to be known to deal rows out
                   CountFolds, CountLengths, Room   whether the folds can be, which C to try, and how many at a time
                   Evaluate                         how good answers are on held-out rows
Rounds:            Descend, Measure                 a step of CoCoA+, and the proof of an answer
                   Solve                            the optimum of each part alone
After a loss:      Recall, Contribute               what parts know of their files, and w made anew of what they know
Checkpoints:       Save, Restore
At the end:        DualVariables, Account

Each is asked by `engine.round(request)`. What parts tell comes back in their order, and vectors are summed up.
"""

from __future__ import annotations

import copy
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from dotadd._util.memory import available
from dotadd.cluster.engine import Engine, Message, Replies, Request, Told
from dotadd.cluster.folds import Counted
from dotadd.cluster.shard import Order, Outline, Shard, Solved, Task
from dotadd.cluster.subproblem import Step, Subproblem, balance, descend_rows
from dotadd.features.base import FeatureMap
from dotadd.features.learning import Learner
from dotadd.model.evaluation import Evaluator
from dotadd.model.file import winners
from dotadd.problem.columns import Tally
from dotadd.problem.examples import squared_distance
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.problem import Intercept
from dotadd.solvers.certify import SUM_BYTES, Judge, show
from dotadd.solvers.dcd import dcd
from dotadd.solvers.proof import Certificate, RowSums
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.stream import stream
from dotadd.sources.base import Skipped

INSIDE = 1.0 - 2.0**-50  # times what was scaled up and down again, so that rounding carries it over no bound


@dataclass(frozen=True)
class Describe(Request[Outline], name="outline", prepares=True):
    """Look at all rows, and keep them if they fit; tells what they are like."""

    def answer(self, part: Shard) -> Replies[Outline]:
        return Replies([part.rows.outline()])


@dataclass(frozen=True)
class CountLabels(Request[Tally], name="tally", prepares=True):
    """Tells the labels of the rows that phi can take."""

    phi: FeatureMap

    def answer(self, part: Shard) -> Replies[Tally]:
        return Replies([part.rows.tally(self.phi)])


@dataclass(frozen=True)
class Learn(Request[Learner], name="learn", prepares=True):
    """Tells what a learner knows after all rows that phi can take. The learners of two parts become one on their way,
    so that no machine holds more than two of them."""

    phi: FeatureMap
    learner: Learner

    def answer(self, part: Shard) -> Replies[Learner]:
        return Learners([part.rows.seen_by(copy.deepcopy(self.learner), self.phi)])


class Learners(Replies[Learner]):
    """One learner, joined of those of some parts."""

    def __add__(self, other: Replies[Learner]) -> Learners:
        learner = copy.deepcopy(self.told[0])
        learner.join(other.told[0])
        return Learners([learner])


@dataclass(frozen=True)
class Begin(Request[None], name="begin", prepares=True):
    """Start with alpha = 0 and w = 0. Those that stand in for lost parts are asked it, too."""

    task: Task
    again: bool = False
    """Whether it is the one before with other columns."""

    def answer(self, part: Shard) -> Replies[None]:
        part.begin(self.task, again=self.again)
        return Replies([None])


@dataclass(frozen=True)
class CountRows(Request[np.ndarray], name="rows of classes"):
    """Tells how many rows there are of each class."""

    def answer(self, part: Shard) -> Replies[np.ndarray]:
        codes, _ = part.rows.labels(part.task, None)
        return Replies([np.bincount(codes, minlength=len(part.task.targets.classes))])


@dataclass(frozen=True)
class CountValues(Request[Counted], name="values"):
    """Tells the values of a column, and how many rows of each class have each of them, as one for all parts."""

    column: str

    def answer(self, part: Shard) -> Replies[Counted]:
        codes, values = part.rows.labels(part.task, self.column)
        if values is None:
            return Values([])
        return Values([Counted.of(self.column, values, codes, len(part.task.targets.classes))])


class Values(Replies[Counted]):
    """What some parts have counted, as one."""

    def __add__(self, other: Replies[Counted]) -> Values:
        told = self.told + other.told
        return Values([Counted.joined(told)] if told else [])


@dataclass(frozen=True)
class CountFolds(Request[np.ndarray], name="folds"):
    """Tells how many rows of each class are in each part of the folds."""

    def answer(self, part: Shard) -> Replies[np.ndarray]:
        task, folds = part.task, part.rows.folds
        assert task.tries is not None
        if folds is None:
            return Replies([np.zeros((len(task.targets.classes), task.tries.trains.shape[1]), np.int64)])
        codes, _ = part.rows.labels(task, None)
        return Replies([folds.counts(codes, len(task.targets.classes))])


@dataclass(frozen=True)
class CountLengths(Request[dict[int, int]], name="lengths"):
    """Tells how many rows are of each length, as the power of ten that is next to |phi|^2; those of 0 do not count."""

    def answer(self, part: Shard) -> Replies[dict[int, int]]:
        counts: Counter[int] = Counter()
        for piece in part.rows.pieces():
            squared = piece.examples.squared_norms()
            decades, times = np.unique(np.round(np.log10(squared[squared > 0.0])), return_counts=True)
            counts.update(dict(zip(decades.astype(int).tolist(), times.tolist(), strict=True)))
        return Replies([dict(counts)])


@dataclass(frozen=True)
class Room(Request[tuple[str, int, int]], name="room"):
    """Tells on which machine the part is, how many bytes are free there, and how many rows the part has."""

    def answer(self, part: Shard) -> Replies[tuple[str, int, int]]:
        return Replies([(platform.node(), available(), len(part.rows))])


@dataclass(frozen=True)
class Ordered(Request[Told]):
    """A request that brings orders, one for each binary problem that it is about."""

    orders: Sequence[Order]

    @property
    def messages(self) -> Sequence[Message]:
        return [order.change for order in self.orders]


@dataclass(frozen=True)
class Descend(Ordered[list[Step]], name="descend"):
    """A round of CoCoA+: measure where the shared w stands, and move from there (subproblem.py). Each binary problem
    tells a Step and sends v_k, what this part adds to w."""

    accuracy: float
    sweeps: int
    seconds: float = np.inf
    """After which a part begins no further sweep."""

    def answer(self, part: Shard) -> Replies[list[Step]]:
        until = perf_counter() + self.seconds
        part.untouched = False
        subs = []
        for order in self.orders:
            k = order.k
            part.receive(order)
            part.before[k][:] = part.alpha[k]
            part.unsettled.add(k)
            subs.append(Subproblem(order, part.w[k], part.local[k], part.v[k], part.b_gained[k]))
        for piece in part.rows.pieces():
            if not part.norms_known:
                step = 1.0 if piece.intercept is Intercept.REGULARIZED else 0.0
                part.norms[piece.rows] = piece.examples.squared_norms() + step
            alphas, norms = [part.alpha[sub.k][piece.rows] for sub in subs], part.norms[piece.rows]
            descend_rows(piece, subs, alphas, norms, part.rng, self.accuracy, self.sweeps, until)
        part.norms_known = True
        for sub in subs:
            part.b_gained[sub.k] = sub.balance_gained
        return Replies([[sub.finish() for sub in subs]], [Message.of(sub.v.copy()) for sub in subs])


@dataclass(frozen=True)
class Measure(Ordered[list[RowSums]], name="measure"):
    """Tells what the rows prove at the shared w; with `sums`, sends what alpha contributes to w, in float64."""

    sums: bool

    def answer(self, part: Shard) -> Replies[list[RowSums]]:
        for order in self.orders:
            part.receive(order)
        problem = part.rows.problem
        totals = [np.zeros(part.task.phi.dim) for _ in self.orders] if self.sums else []
        if problem is None:
            return Replies([[RowSums() for _ in self.orders]], [Message.of(total) for total in totals])
        judges = [Judge(problem, one.k, part.w[one.k], part.alpha[one.k], one.b) for one in self.orders]
        for piece in part.rows.pieces():
            show(piece, judges)
            if self.sums:
                piece.examples.add([judge.coefficients(piece, piece.rows)[0] for judge in judges], totals)
        return Replies([[judge.rows for judge in judges]], [Message.of(total) for total in totals])


@dataclass(frozen=True)
class Evaluate(Ordered[list[Evaluator]], name="evaluate"):
    """Tells how good answers are on the rows that they were not trained on, for each C and fold; with `areas`, areas
    under curves, too. What two parts have seen becomes one on its way."""

    areas: bool

    def answer(self, part: Shard) -> Replies[list[Evaluator]]:
        for order in self.orders:
            part.receive(order)
        targets, folds = part.task.targets, part.rows.folds
        many = len(targets.problems)
        seen = [Evaluator(targets.classes, areas=self.areas) for _ in self.orders[::many]]
        for piece in part.rows.pieces() if folds is not None else ():
            assert folds is not None
            column, where = piece.columns[0], folds.parts[piece.rows]
            codes = column.codes // folds.trains.shape[1]
            for fold in range(len(folds)):
                rows = np.flatnonzero(folds.tests[fold][where])
                mine = range(fold, len(seen), len(folds))
                orders = [order for one in mine for order in self.orders[one * many : (one + 1) * many]]
                outputs = piece.outputs([part.w[order.k] for order in orders], rows) if len(rows) else []
                scores = [output + order.b for order, output in zip(orders, outputs, strict=False)]
                truth, weight = targets.classes[codes[rows]], column.weight[rows] if len(column.weight) else None
                for at, one in enumerate(mine if len(rows) else ()):
                    some = scores[at * many] if many == 1 else np.stack(scores[at * many : (at + 1) * many], axis=1)
                    seen[one].see(truth, some, targets.classes[winners(some)], weight)
        return Evaluators([[one.packed() for one in seen]])


class Evaluators(Replies[list[Evaluator]]):
    """What some parts have seen, as one."""

    def __add__(self, other: Replies[list[Evaluator]]) -> Evaluators:
        return Evaluators([[one + another for one, another in zip(self.told[0], other.told[0], strict=True)]])


@dataclass(frozen=True)
class Contribute(Request[float], name="contribute"):
    """Tells what alpha adds to b, and sends what it adds to w, from scratch. A step that was not settled is taken
    back."""

    k: int

    def answer(self, part: Shard) -> Replies[float]:
        part.settle(self.k, 0.0)
        total, b = np.zeros(part.task.phi.dim), 0.0
        for piece in part.rows.pieces():
            alpha = part.alpha[self.k][piece.rows]
            piece.examples.add([alpha * piece.columns.sign(self.k)], [total])
            b += balance(piece, self.k, alpha)
        return Replies([b], [Message.of(total)])


@dataclass(frozen=True)
class Solve(Request[list[Solved]], name="solve"):
    """Solve a problem of one's own (average.py); alpha becomes this part's share of the common dual point, and what is
    sent its share of w.

    When it is asked again because another part was lost, it gives the same answer without any work.
    """

    settings: Settings

    def answer(self, part: Shard) -> Replies[list[Solved]]:
        if part.solved is None:
            part.solved = self._solved(part)
        return part.solved

    def _solved(self, part: Shard) -> Replies[list[Solved]]:
        task, told, sent = part.task, [], []
        share = len(part.rows) / task.rows
        problem = part.rows.with_costs_times(1.0 / share) if share else None
        if problem is None:
            empty = [Message.of(np.zeros(task.phi.dim, task.dtype)) for _ in part.alpha]
            return Replies([[Solved(0.0, 0, 0.0) for _ in part.alpha]], empty)
        settings = replace(self.settings, seed=int(part.rng[0] >> np.uint64(1)))
        results = stream(problem, settings) if isinstance(problem.examples, OnDisk) else dcd(problem, settings)
        for alpha, result in zip(part.alpha, results, strict=True):
            assert result.alpha is not None
            np.multiply(result.alpha, share * INSIDE, out=alpha)
            interrupted = result.reason is Reason.INTERRUPTED
            told.append(Solved(float(result.gap or 0.0), result.passes, share * result.intercept, interrupted))
            sent.append(Message.of(result.w * task.dtype(share)))
        return Replies([told], sent)


@dataclass(frozen=True)
class DualVariables(Request[np.ndarray], name="dual_variables"):
    """Tells alpha of binary problem k, as it is settled."""

    k: int

    def answer(self, part: Shard) -> Replies[np.ndarray]:
        return Replies([np.array(part.alpha[self.k])])


@dataclass(frozen=True)
class Save(Request[None], name="save"):
    """Write a file beside the driver's, on the part's own disk; `thetas` settle the latest step."""

    path: str
    round: int
    thetas: Sequence[float]

    def answer(self, part: Shard) -> Replies[None]:
        for k, theta in enumerate(self.thetas):
            part.settle(k, theta)
        part.save(self.path, self.round)
        return Replies([None])


@dataclass(frozen=True)
class Restore(Request[int], name="restore"):
    """Take up what the file has; tells the round after which it was written, -1 if there is no file."""

    path: str

    def answer(self, part: Shard) -> Replies[int]:
        return Replies([part.restore(self.path)])


@dataclass(frozen=True)
class Recall(Restore, name="recall"):
    """The same for parts that stand in for lost ones, and have done nothing yet."""

    def answer(self, part: Shard) -> Replies[int]:
        return super().answer(part) if part.untouched else Replies([-1])


class Accounted(NamedTuple):
    """What became of the rows of a part: those that were left out, with the first complaint, and those whose features
    are kept, in how many bytes."""

    skipped: Skipped
    kept_rows: int
    kept_bytes: int


@dataclass(frozen=True)
class Account(Request[Accounted], name="account"):
    """Tells what became of the rows."""

    def answer(self, part: Shard) -> Replies[Accounted]:
        source = part.rows.source
        return Replies([Accounted(Skipped() if source is None else source.skipped, *part.rows.kept)])


def certify_parts(
    engine: Engine, intercept: Intercept, ws: Sequence[np.ndarray], orders: Sequence[Order], *, exact: bool = True
) -> list[Certificate]:
    """The other half of `Measure`: what all parts have summed up is joined on its way, and the sum is ended here.

    It proves each (w, b): orders name the binary problems, and bring the parts' copies of w up to date. If not `exact`,
    no vector is summed, and the gap leaves out the distance of w from w_alpha.
    """
    found: list[Certificate] = []
    together = max(1, SUM_BYTES // (8 * max(1, len(ws[0])))) if len(ws) and exact else len(ws)
    for first in range(0, len(ws), max(1, together)):
        some = slice(first, first + together)
        replies = engine.round(Measure(orders[some], exact))
        for j, (w, order) in enumerate(zip(ws[some], orders[some], strict=True)):
            rows = sum((sums[j] for sums in replies.told), RowSums())
            distance = squared_distance(w, replies.vectors[j].vector()) if exact else 0.0
            found.append(rows.certificate(w, intercept, order.b, distance))
    return found
