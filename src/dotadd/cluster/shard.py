"""Shard: one partition of the examples, where it lives, with its dual variables and its copy of w.

Its rows are loaded if they fit in its memory. If not, they are read again in each round, and each piece is swept while
it is there, which is block minimisation (Yu et al. 2010) of the part's subproblem. Nothing but vectors as long as w and
a few numbers leaves it. Each method that an engine calls has the form `method(vectors, ...) -> (numbers, vectors)`.

Dual variables live here and nowhere else. After a round they stand at the end of the whole step, and those from before
are kept beside them: the driver learns from all replies how far along the step to go, and says so with its next message
(`theta`). A part that is lost takes its dual variables with it, up to its latest file. Whatever is left is feasible, so
nothing is kept elsewhere for that case: w is built again as the sum of what all parts then contribute, which is one
pass over the data and one sum up the tree, and is exact. To keep each part's contribution at the driver would take K
vectors as long as w, and to keep it with a neighbour would double the traffic of every round.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dotadd.cluster.engine import Engine
from dotadd.cluster.shard_examples import ShardExamples
from dotadd.cluster.subproblem import Step, Subproblem, balance, descend_rows
from dotadd.cluster.task import Outline, Task
from dotadd.cluster.transport import Message
from dotadd.features.base import FeatureMap
from dotadd.problem.examples import aligned_zeros, squared_distance
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.problem import Intercept
from dotadd.problem.targets import Tally
from dotadd.solvers.certify import SUM_BYTES, Judge, show
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.dcd import dcd
from dotadd.solvers.proof import Certificate, RowSums
from dotadd.solvers.result import Reason
from dotadd.solvers.settings import Settings
from dotadd.solvers.stream import stream
from dotadd.sources.base import Skipped, Source
from dotadd.sources.identity import fingerprint

Vectors = Sequence[Message]
NOTHING: Vectors = ()
INSIDE = 1.0 - 2.0**-50  # times what was scaled up and down again, so that rounding carries it over no bound


class Order(NamedTuple):
    """What the driver says of one binary problem; the message that comes with it is what is added to w."""

    k: int
    b: float
    theta: float = 1.0
    """How far to go along the latest step."""
    fresh: bool = False
    """Whether the message is w itself."""
    sigma: float = 1.0
    momentum: float = 0.0
    b_change: float = 0.0
    """What was added to b, as the message is to w."""


class Solved(NamedTuple):
    """What a part tells of a problem of its own: its relative gap, the passes it took, its share of b, and whether
    Ctrl-C ended it early."""

    gap: float
    passes: int
    balance: float
    interrupted: bool = False


class Shard:
    """Shard `number`: its source (None for no examples), the bytes that examples may take, and threads."""

    def __init__(
        self,
        source: Source | None,
        memory: int,
        *,
        number: int = 0,
        threads: int = 1,
        announce: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.number = number
        self.rows = ShardExamples(source, memory, threads, announce)

    def outline(self, vectors: Vectors = ()) -> tuple[Outline, Vectors]:
        return self.rows.outline(), NOTHING

    def tally(self, vectors: Vectors = (), *, phi: FeatureMap) -> tuple[Tally, Vectors]:
        return self.rows.tally(phi), NOTHING

    def skipped(self, vectors: Vectors = ()) -> tuple[Skipped, Vectors]:
        """How many rows were left out, and the first complaint."""
        return Skipped() if self.rows.source is None else self.rows.source.skipped, NOTHING

    def begin(self, vectors: Vectors = (), *, task: Task) -> tuple[int, Vectors]:
        """Start with alpha = 0 and w = 0; returns how many rows there are."""
        self.task = task
        self.rows.begin(task)
        problems = range(task.problems)
        self.alpha = [self.rows.variables() for _ in problems]
        self.before = [self.rows.variables() for _ in problems]
        self.w, self.local, self.v = ([aligned_zeros(task.phi, task.dtype) for _ in problems] for _ in range(3))
        self.b_gained = [0.0 for _ in problems]
        self.unsettled: set[int] = set()
        self.untouched = True
        self.norms = self.rows.variables()
        self.norms_known = False
        self.solved: tuple[list[Solved], Vectors] | None = None
        self.rng = np.random.SeedSequence([task.seed, self.number]).generate_state(1, np.uint64) | np.uint64(1)
        return len(self.rows), NOTHING

    def descend(
        self, vectors: Vectors, *, orders: Sequence[Order], accuracy: float, sweeps: int, seconds: float = np.inf
    ) -> tuple[list[Step], Vectors]:
        """A round of CoCoA+: measure where the shared w stands, and move from there (see subproblem.py)."""
        until = perf_counter() + seconds
        self.untouched = False
        subs = []
        for order, change in zip(orders, vectors, strict=True):
            k = order.k
            self._receive(order, change)
            self.before[k][:] = self.alpha[k]
            self.unsettled.add(k)
            subs.append(Subproblem(k, self.w[k], order.b, order.sigma, self.local[k], self.v[k]))
            subs[-1].start(change, order.b_change, order.momentum, self.b_gained[k])
        for piece in self.rows.pieces():
            if not self.norms_known:
                step = 1.0 if piece.intercept is Intercept.REGULARIZED else 0.0
                self.norms[piece.rows] = piece.examples.squared_norms() + step
            alphas = [self.alpha[sub.k][piece.rows] for sub in subs]
            in_time = (lambda: True) if seconds == np.inf else (lambda: perf_counter() < until)
            descend_rows(piece, subs, alphas, self.norms[piece.rows], self.rng, accuracy, sweeps, in_time)
        self.norms_known = True
        for sub in subs:
            self.b_gained[sub.k] = sub.balance_gained
        return [sub.finish() for sub in subs], [Message.of(sub.v.copy()) for sub in subs]

    def measure(self, vectors: Vectors, *, orders: Sequence[Order], sums: bool) -> tuple[list[RowSums], Vectors]:
        """What the rows prove at the shared w, and with `sums` what this part's alpha contributes to it, in float64."""
        for order, change in zip(orders, vectors, strict=True):
            self._receive(order, change)
        problem = self.rows.problem
        totals = [np.zeros(self.task.phi.dim) for _ in orders] if sums else []
        if problem is None:
            return [RowSums() for _ in orders], [Message.of(total) for total in totals]
        judges = [Judge(problem, one.k, self.w[one.k], self.alpha[one.k], one.b) for one in orders]
        for piece in self.rows.pieces():
            show(piece, judges)
            if sums:
                piece.examples.add([judge.coefficients(piece, piece.rows)[0] for judge in judges], totals)
        return [judge.rows for judge in judges], [Message.of(total) for total in totals]

    def contribute(self, vectors: Vectors = (), *, k: int) -> tuple[float, Vectors]:
        """What alpha adds to b and to w, from scratch. A step that was not settled is taken back."""
        self._settle(k, 0.0)
        total, b = np.zeros(self.task.phi.dim), 0.0
        for piece in self.rows.pieces():
            alpha = self.alpha[k][piece.rows]
            piece.examples.add([alpha * piece.columns.sign(k)], [total])
            b += balance(piece, k, alpha)
        return b, [Message.of(total)]

    def solve(self, vectors: Vectors = (), *, settings: Settings) -> tuple[list[Solved], Vectors]:
        """Solve a problem of one's own (see average.py); alpha becomes this part's share of the common dual point.

        Asked again, as happens where another part was lost, it gives the same answer without any work.
        """
        if self.solved is not None:
            return self.solved
        share = len(self.rows) / self.task.rows
        found = self.rows.with_costs_times(1.0 / share) if share else None
        if found is None:
            empty = [Message.of(np.zeros(self.task.phi.dim, self.task.dtype)) for _ in self.alpha]
            self.solved = [Solved(0.0, 0, 0.0) for _ in self.alpha], empty
            return self.solved
        settings = replace(settings, seed=int(self.rng[0] >> np.uint64(1)))
        results = stream(found, settings) if isinstance(found.examples, OnDisk) else dcd(found, settings)
        told, sent = [], []
        for alpha, result in zip(self.alpha, results, strict=True):
            assert result.alpha is not None
            np.multiply(result.alpha, share * INSIDE, out=alpha)
            interrupted = result.reason is Reason.INTERRUPTED
            told.append(Solved(float(result.gap or 0.0), result.passes, share * result.intercept, interrupted))
            sent.append(Message.of(result.w * self.task.dtype(share)))
        self.solved = told, sent
        return self.solved

    def dual_variables(self, vectors: Vectors = (), *, k: int) -> tuple[np.ndarray, Vectors]:
        """alpha of binary problem k, as it is settled."""
        return np.array(self.alpha[k]), NOTHING

    def save(self, vectors: Vectors = (), *, path: str, round: int, thetas: Sequence[float]) -> tuple[None, Vectors]:
        """Write this part's file beside the driver's, on its own disk; `thetas` settle the latest step."""
        for k, theta in enumerate(thetas):
            self._settle(k, theta)
        with suppress(OSError):  # the folder need not be on this machine, too; what cannot be written is told below
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self._file(path).save(*self.state(round))
        return None, NOTHING

    def restore(self, vectors: Vectors = (), *, path: str) -> tuple[int, Vectors]:
        """Take up what the file has; returns the round after which it was written, -1 if there is no file."""
        file = self._file(path)
        if not os.path.exists(file.path):
            return -1, NOTHING
        return self.set_state(*file.load()), NOTHING

    def recall(self, vectors: Vectors = (), *, path: str) -> tuple[None, Vectors]:
        """The same for a part that stands in for a lost one, and has done nothing yet."""
        if self.untouched:
            self.restore(path=path)
        return None, NOTHING

    def state(self, round: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What cannot be found out again: the dual variables and the random numbers."""
        arrays = {f"alpha.{k}": alpha for k, alpha in enumerate(self.alpha)}
        return arrays | {"rng": self.rng}, {"round": round}

    def set_state(self, arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> int:
        """Go on from such a state; returns its round."""
        for k, alpha in enumerate(self.alpha):
            alpha[:] = arrays[f"alpha.{k}"]
        self.rng[:] = arrays["rng"]
        self.unsettled.clear()
        return int(record["round"])

    def _file(self, path: str) -> Checkpoint:
        source, task = self.rows.source, self.task
        data = None if source is None else fingerprint(source)
        problem = {"data": data, "rows": len(self.rows), "features": repr(task.phi), "loss": task.loss.name}
        cost = {"cost": task.targets.cost_of_class.tolist()}  # alpha has to lie within these bounds
        return Checkpoint(f"{path}.part{self.number}", problem=problem | cost)

    def _receive(self, order: Order, change: Message) -> None:
        self._settle(order.k, order.theta)
        if order.fresh:
            self.w[order.k][:] = 0.0
        change.add_to(self.w[order.k])

    def _settle(self, k: int, theta: float) -> None:
        """Go `theta` of the way from the dual variables before the latest step to those after it."""
        if k not in self.unsettled:
            return
        self.unsettled.discard(k)
        self.v[k] *= self.task.dtype(theta)
        self.b_gained[k] *= theta
        alpha, before = self.alpha[k], self.before[k]
        if theta == 0.0:
            alpha[:] = before
        elif theta != 1.0:
            highest = np.maximum(alpha, before)
            alpha -= before
            alpha *= theta
            alpha += before
            np.minimum(alpha, highest, out=alpha)  # rounding must not carry it over a bound


def certify_parts(
    engine: Engine,
    intercept: Intercept,
    ws: Sequence[np.ndarray],
    orders: Sequence[Order],
    messages: Sequence[Message],
    *,
    exact: bool = True,
) -> list[Certificate]:
    """The other half of `Shard.measure`: what all parts have summed up is joined on its way, and the sum is ended here.

    It proves each (w, b): `orders` name the binary problems, `messages` bring the parts' copies of w up to date.

    If not `exact`, no vector is summed, and the gap leaves out what w differs from w_alpha.
    """
    found: list[Certificate] = []
    together = max(1, SUM_BYTES // (8 * max(1, len(ws[0])))) if len(ws) and exact else len(ws)
    for first in range(0, len(ws), max(1, together)):
        some = slice(first, first + together)
        replies = engine.round("measure", messages[some], orders=list(orders[some]), sums=exact)
        for j, (w, order) in enumerate(zip(ws[some], orders[some], strict=True)):
            rows = sum((numbers[j] for numbers in replies.numbers), RowSums())
            distance = squared_distance(w, replies.vectors[j].vector()) if exact else 0.0
            found.append(rows.certificate(w, intercept, order.b, distance))
    return found
