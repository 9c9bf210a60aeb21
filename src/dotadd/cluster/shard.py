"""Shard: one partition of the examples, where it lives, with its dual variables and its copy of w.

Its rows are loaded if they fit in its memory, and what is left of that keeps rows of phi. If they do not, they are read
again in each round, and each piece is swept while it is there, which is block minimisation (Yu et al. 2010) of the
part's subproblem. Nothing but vectors as long as w and a few numbers leaves it. What it may be asked is in requests.py.

Dual variables live here and nowhere else. After a round they stand at the end of the whole step, and those from before
are kept beside them: the driver learns from all replies how far along the step to go, and says so with its next order
(`theta`). A part that is lost takes its dual variables with it, up to its latest file. Whatever is left is feasible, so
nothing is kept elsewhere for that case: w is built again as the sum of what all parts then contribute, which is one
pass over the data and one sum up the tree, and is exact. To keep each part's contribution at the driver would take K
vectors as long as w, and to keep it with a neighbour would double the traffic of every round.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd._util.memory import Budget
from dotadd.cluster.engine import Message, Replies
from dotadd.cluster.folds import Tries
from dotadd.core.losses import Loss
from dotadd.data.batches import Batch
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.learning import Learner
from dotadd.problem.columns import Columns, Tally, Targets
from dotadd.problem.examples import InMemory, aligned_zeros
from dotadd.problem.folds import Folds
from dotadd.problem.on_disk import OnDisk, piece_bytes
from dotadd.problem.problem import Intercept, Piece, Problem
from dotadd.problem.survey import Survey, Tried, look, usable_rows
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.sources.base import Chunk, Source, TooLargeError
from dotadd.sources.cached import as_arrow
from dotadd.sources.files import NoExamplesError
from dotadd.sources.identity import Watched, fingerprint
from dotadd.sources.memory import MemorySource
from dotadd.sources.table import Layout

if TYPE_CHECKING:
    import pyarrow as pa

HELD = 4  # pieces that the memory would hold: one is worked on while the next is read, and both take room to decode


@dataclass(frozen=True)
class Outline:
    """What a part tells of its rows before training: their shape, the tally of labels, its widest row or another, and
    the names of columns where there are any.

    A part without rows has no shape and no sample.
    """

    tally: Tally
    shape: Shape | None = None
    sample: Chunk | None = None
    columns: list[str] | None = None
    layout: Layout | None = None


@dataclass(frozen=True)
class Task:
    """The problem that all parts solve together: `rows` of them in `shape`, classes and costs, loss and intercept."""

    phi: FeatureMap
    targets: Targets
    shape: Shape
    rows: int
    parts: int
    """How many parts have any rows."""
    loss: Loss = Loss.HINGE
    intercept: Intercept = Intercept.REGULARIZED
    dtype: type = np.float32
    seed: int = 0
    layout: Layout | None = None
    """The columns of the table that the rows come from, if it is one."""
    keep: bool = True
    """Whether rows of phi that take longer to be made than to be read are kept."""
    tries: Tries | None = None
    """The folds and values of C that are tried, each with all classes; C is 1 in `targets` then."""

    @property
    def problems(self) -> int:
        """How many binary problems."""
        return len(self.targets.problems) * (1 if self.tries is None else len(self.tries))


class Order(NamedTuple):
    """What the driver says of one binary problem."""

    k: int
    b: float
    change: Message
    """What is added to w."""
    theta: float = 1.0
    """How far to go along the latest step."""
    fresh: bool = False
    """Whether `change` is w itself."""
    sigma: float = 1.0
    momentum: float = 0.0
    b_change: float = 0.0
    """What was added to b, as `change` is to w."""


class Solved(NamedTuple):
    """What a part tells of a problem of its own: its relative gap, the passes it took, its share of b, and whether
    Ctrl-C ended it early."""

    gap: float
    passes: int
    balance: float
    interrupted: bool = False


class ShardExamples:
    """The examples of one part, loaded if they fit in its memory, and read again and again if not. No source stands for
    no examples at all."""

    def __init__(self, source: Source | None, memory: int, threads: int) -> None:
        self.source, self.memory, self.threads = source, memory, threads
        self._plain = source  # before it was copied, with the columns that are carried along
        self._outline: Outline | None = None
        self._counted: Tally | None = None  # rows that phi can take
        self._data: Chunk | None = None
        self._kept = Budget(0)
        """What loaded rows leave of the memory, for rows of phi."""
        self._watched: Watched | None = None
        self.problem: Problem[InMemory] | Problem[OnDisk] | None = None
        self.folds: Folds | None = None
        """Of these rows, where some are tried."""

    def __len__(self) -> int:
        return 0 if self._counted is None else self._counted.rows

    @property
    def nbytes(self) -> int:
        """Bytes that these rows take of memory: what was loaded and claimed to keep, or else all that they may."""
        return self.memory if self._data is None else self._data.nbytes + self._kept.total - self._kept.left

    @property
    def loaded(self) -> int:
        """Bytes that are in memory already."""
        return 0 if self._data is None else self._data.nbytes + self.kept[1]

    @property
    def kept(self) -> tuple[int, int]:
        """How many rows of phi are kept, and in how many bytes."""
        examples = None if self.problem is None else self.problem.examples
        return examples.kept if isinstance(examples, InMemory) else (0, 0)

    def outline(self) -> Outline:
        """Look at all rows, and keep them if they fit."""
        if self._outline is None:
            self._outline = self._look() or Outline(Tally())
            self._counted = self._outline.tally
        return self._outline

    def _look(self) -> Outline | None:
        source = self.source
        if source is None or (isinstance(source, MemorySource) and not len(source.content)):
            return None
        try:
            self._data = source.load(self.memory)
            chunks: Iterator[Chunk] = iter([self._data])
        except NoExamplesError:
            return None
        except TooLargeError:
            self.source, _ = as_arrow(source)
            source, self._watched = self.source, Watched(self.source)
            chunks = source.outline() or source.chunks(piece_bytes(self.memory))
        return Outline(*look(chunks), source.columns, source.names())

    def tally(self, phi: FeatureMap) -> Tally:
        """The labels of the rows that phi can take. The others are an error, or left out where the source says so."""
        self.outline()
        self._counted = Tally()
        for chunk in self._chunks(phi):
            self._counted.note(chunk)
        return self._counted

    def seen_by(self, learner: Learner, phi: FeatureMap) -> Learner:
        """The learner once it has seen all rows that phi can take."""
        self.outline()
        for chunk in self._chunks(phi):
            learner.see(chunk.batch)
        return learner

    def _chunks(self, phi: FeatureMap, *, ids: bool = False) -> Iterator[Chunk]:
        source = self._plain if ids else self.source  # a copy has not the columns that are carried along
        if source is None:
            return
        if self._data is not None:
            self._data = usable_rows(self._data, phi, source)
            yield self._data
        elif self._watched is not None:
            for chunk in source.chunks(piece_bytes(self.memory)):
                yield usable_rows(chunk, phi, source)

    def labels(self, task: Task, column: str | None) -> tuple[np.ndarray, pa.ChunkedArray | None]:
        """The numbers of the classes of all rows, and their values in a column, if one is named."""
        codes, values = [np.empty(0, np.int64)], []
        for chunk in self._chunks(task.phi, ids=column is not None):
            codes.append(task.targets.codes(chunk))
            if column is not None:
                if chunk.ids is None:
                    raise chunk.error(0, f"column {column!r} is not brought along: open the data with ids=[{column!r}]")
                values.append(chunk.ids.column(column))
        if not values:
            return np.concatenate(codes), None
        import pyarrow as pa

        return np.concatenate(codes), pa.chunked_array(values)

    def begin(self, task: Task, number: int, *, again: bool = False) -> None:
        """Get ready for this task; a part that stands in for a lost one looks at its rows now. Where one task comes
        `again` with other columns, rows of phi stay."""
        outline = self.outline()
        if outline.sample is None or outline.shape is None:
            return
        if self._counted is outline.tally and task.phi.checks_rows:
            self.tally(task.phi)
        assert self._counted is not None
        self.folds, tried = None, None
        if task.tries is not None:
            self.folds = task.tries.folds(number, *self.labels(task, task.tries.column))
            tried = Tried(self.folds, task.tries.Cs)
        if self._data is not None:
            data, targets = self._data, task.targets
            columns = targets.columns(data) if tried is None else tried.columns(targets, data, 0)
            if again and self.problem is not None:
                self.problem = replace(self.problem, columns=columns)
                return
            self._kept = Budget(self.memory - self._data.nbytes)
            budget = self._kept if task.keep else None
            examples = InMemory(task.phi, self._data.batch, dtype=task.dtype, threads=self.threads, budget=budget)
            self.problem = Problem(examples, columns, task.loss, task.intercept)
            return
        assert self.source is not None
        assert self._watched is not None
        skips = self._counted.rows < outline.tally.rows
        survey = Survey(self.source, outline.shape, task.phi, self._counted, skips, self._watched)
        self.problem = survey.problem(
            task.targets, self.memory, task.loss, task.intercept, dtype=task.dtype, threads=self.threads,
            keep=task.keep, tried=tried,
        )  # fmt: skip

    def variables(self) -> np.ndarray:
        """Zeros for all rows."""
        return np.zeros(0) if self.problem is None else self.problem.dual_variables()

    def pieces(self) -> Iterator[Piece]:
        """All rows, as many at a time as there is memory for."""
        if self.problem is not None and len(self):
            with self.problem.read(max(1, self.memory // HELD)) as pieces:
                yield from pieces

    def with_costs_times(self, factor: float) -> Problem[InMemory] | Problem[OnDisk] | None:
        """The part's problem for a solver of its own, each cost multiplied; None if there are no rows."""
        problem = self.problem
        if problem is None or not len(self):
            return None
        if isinstance(problem.examples, InMemory):
            return replace(problem, columns=problem.columns.times(factor))
        disk = problem.examples

        def scaled(nbytes: int) -> Iterator[tuple[Batch, Columns]]:
            for batch, columns in disk.read(nbytes):
                yield batch, columns.times(factor)

        examples = OnDisk(
            disk.phi, scaled, len(disk), disk.memory, dtype=disk.dtype, threads=disk.threads, keep=disk.keep
        )
        return replace(problem, examples=examples)


class Shard:
    """Shard `number`: its source (None for no examples), the bytes that examples may take, and threads."""

    def __init__(self, source: Source | None, memory: int, *, number: int = 0, threads: int = 1) -> None:
        self.number = number
        self.rows = ShardExamples(source, memory, threads)

    def begin(self, task: Task, *, again: bool = False) -> None:
        """Start with alpha = 0 and w = 0."""
        self.task = task
        self.rows.begin(task, self.number, again=again)
        problems = range(task.problems)
        self.alpha = [self.rows.variables() for _ in problems]
        self.before = [self.rows.variables() for _ in problems]
        self.w, self.local, self.v = ([aligned_zeros(task.phi, task.dtype) for _ in problems] for _ in range(3))
        self.b_gained = [0.0 for _ in problems]
        self.unsettled: set[int] = set()
        self.untouched = True
        self.norms = self.rows.variables()
        self.norms_known = False
        self.solved: Replies[list[Solved]] | None = None
        self.rng = np.random.SeedSequence([task.seed, self.number]).generate_state(1, np.uint64) | np.uint64(1)

    def receive(self, order: Order) -> None:
        """Bring dual variables and w up to date."""
        self.settle(order.k, order.theta)
        if order.fresh:
            self.w[order.k][:] = 0.0
        order.change.add_to(self.w[order.k])

    def settle(self, k: int, theta: float) -> None:
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

    def save(self, path: str, round: int) -> None:
        """Write what cannot be found out again, the dual variables and the random numbers, beside the driver's file."""
        with suppress(OSError):  # the folder need not be on this machine, too; what cannot be written is told below
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        arrays = {f"alpha.{k}": alpha for k, alpha in enumerate(self.alpha)}
        self._file(path).save(arrays | {"rng": self.rng}, {"round": round})

    def restore(self, path: str) -> int:
        """Take up what the file has; returns the round after which it was written, -1 if there is no file."""
        file = self._file(path)
        if not os.path.exists(file.path):
            return -1
        arrays, record = file.load()
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
