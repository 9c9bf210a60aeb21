"""Block minimization: dual coordinate descent on data larger than memory (Yu, Hsieh, Chang and Lin 2010, algorithm 1).

Problem:  as for dcd
Given:    a Problem whose examples are on disk
Returned: w, b, alpha and the relative duality gap, for each of the binary problems

The examples are read in blocks that fit into memory. A block is loaded, its dual variables are optimised by some sweeps
of coordinate descent, all others standing still, and it makes room for the next one; after the last one the first comes
again. w is carried along. Reading and training take turns, as published.

A block is held in parts of some megabytes. Sweeps visit them in random order, some rows at a time, so that in effect
the rows of a block come in random order, and never more than a part of it is in memory twice.

A pass sums up the local gaps of all rows as their blocks are visited for the first time, an estimate of the gap as in
dcd. When that is within the tolerance, the gap itself is computed by reading once more (certify.py).

`minimize_blocks` can keep some of the examples when a block leaves; that is what selective_block_minimization.py does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from time import perf_counter

import numpy as np

from dotadd.core.block import row_numbers, squared_length
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.on_disk import OnDisk, piece_bytes
from dotadd.problem.problem import Intercept, Piece, Problem
from dotadd.solvers.certify import certify, judges_of
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.proof import Certificate
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.run import Run, Settings, shuffle
from dotadd.solvers.store import bytes_beside
from dotadd.solvers.sweep import GAP, HALF_NORM, Descent, Variables, sweep

SWEEPS = 10  # over a block while it is in memory: the best of the 1, 10 and 20 of the paper
RUNS = 8  # that the rows of a part are visited in, with those of other parts between them
RUN_ROWS = 64  # at least, in each of them
PATIENCE = 1.5  # times the passes at the last look at the true gap, if it was missed: then it is time for another


class Held:
    """Some examples in memory for one block, with their numbers, |phi|^2, and for each problem alpha and whether it may
    still move. `fresh` says that they came with this block, and were not kept from an earlier one.
    """

    def __init__(
        self,
        problem: Problem[OnDisk],
        rows: np.ndarray,
        examples: InMemory,
        columns: Columns,
        norms: np.ndarray,
        alphas: list[np.ndarray],
        *,
        fresh: bool = False,
    ) -> None:
        self.whole, self.disk = problem, problem.examples
        self.rows, self.alphas, self.fresh, self.norms = rows, alphas, fresh, norms
        self.problem = Piece(examples, columns, problem.loss, problem.intercept)
        self.active = [(columns.cost(k) > 0.0).astype(np.uint8) for k in range(len(alphas))]

    @property
    def examples(self) -> InMemory:
        return self.problem.examples

    def __len__(self) -> int:
        return len(self.rows)

    def row_bytes(self) -> np.ndarray:
        """What each row takes in memory, all told."""
        return self.examples.batch.row_bytes() + bytes_beside(len(self.problem))

    @property
    def nbytes(self) -> int:
        return int(self.row_bytes().sum())

    def variables(self, k: int) -> Variables:
        """What a sweep moves of binary problem k."""
        return Variables(self.problem.columns[k], self.alphas[k], self.active[k])

    def take(self, at: np.ndarray) -> Held:
        """These rows, held apart."""
        batch, columns = self.examples.batch.take(at).own(), self.problem.columns.take(at)
        alphas = [alpha[at] for alpha in self.alphas]
        return Held(self.whole, self.rows[at], self.disk.over(batch), columns, self.norms[at], alphas)

    def join(self, other: Held) -> Held:
        """The rows of both."""
        batch = type(self.examples.batch).concat((self.examples.batch, other.examples.batch))
        columns = Columns.join([self.problem.columns, other.problem.columns])
        rows, norms = (np.concatenate(two) for two in ((self.rows, other.rows), (self.norms, other.norms)))
        alphas = [np.concatenate(two) for two in zip(self.alphas, other.alphas, strict=True)]
        return Held(self.whole, rows, self.disk.over(batch), columns, norms, alphas)


class State(Run):
    """One binary problem on its way: its variables and its running numbers."""

    alpha: np.ndarray

    def __init__(self, problem: Problem[OnDisk], k: int, tol: float) -> None:
        super().__init__(k, problem.zeros(), problem.dual_variables())
        self.problem = problem
        self.descent = Descent(self.w, problem.intercept)
        self.gap, self.gap_before, self.active = 0.0, np.nan, 0
        self.target, self.look_again = tol, 0

    def begin_pass(self) -> None:
        self.gap, self.active = 0.0, 0

    def begin_block(self) -> None:
        self.descent.forget_thresholds()
        self.certificate = None  # w is going to move

    def progress(self, seconds: float, read: float, cached: int) -> Progress:
        """What is known when so large a share of a pass is read. For the rest of it the gap of the last pass counts."""
        gap = self.gap if read == 1.0 else self.gap + (1.0 - read) * self.gap_before
        gap = abs(gap - self.descent.multiplier_term)
        dual = self.descent.dual
        primal = dual + gap
        relative = gap / primal if primal != 0.0 else 0.0  # not known in the first pass: NaN
        rows = len(self.problem.examples)
        return Progress(self.passes, seconds, primal, dual, relative, self.active, rows, read=read, cached=cached)

    def end_pass(self, seconds: float, multiplier_step: float, cached: int) -> Progress:
        """The estimates that this pass has summed up; the multiplier's update for a free intercept."""
        self.descent.numbers[HALF_NORM] = 0.5 * squared_length(self.w)  # the running one has rounding summed up in it
        self.passes += 1
        progress = self.progress(seconds, 1.0, cached)
        self.gap_before = self.gap
        self.descent.move_multiplier(multiplier_step)
        return progress

    def judge(self, certificate: Certificate, tol: float) -> None:
        """Take note of the true gap: it ends training, or tells at which estimate to look again."""
        self.certificate = certificate
        self.reason = certificate.verdict(tol)
        if self.reason is None:
            self.target = self.trace[-1].gap * tol / certificate.gap
            self.look_again = int(PATIENCE * self.passes) + 1

    def ready(self, tol: float) -> bool:
        """Whether the estimate of the latest pass calls for a look at the true gap."""
        latest = self.trace[-1]
        return latest.gap <= self.target or (latest.gap <= tol and latest.passes >= self.look_again)

    @property
    def settled(self) -> bool:
        """Whether there is a certificate, and alpha is the one that it is about."""
        free = self.problem.intercept is Intercept.FREE
        return self.certificate is not None and (self.reason is Reason.CONVERGED or not free)


Keep = Callable[[list[Held], list[State], int, Callable[[], None]], list[Held]]


def block_minimization(problem: Problem[OnDisk], settings: Settings) -> list[Result]:
    """Solve each binary problem to a relative duality gap of `settings.tol`."""
    return minimize_blocks(problem, settings)


def minimize_blocks(
    problem: Problem[OnDisk], settings: Settings, keep: Keep | None = None, kept: float = 0.0
) -> list[Result]:
    """Algorithm 1. What `keep` returns stays when a block leaves, in so large a share of the memory.

    keep(parts in memory, problems that go on, bytes for what is kept, check) may empty the list of parts, and calls
    check() between two of them.
    """
    run = _Minimizer(problem, settings, keep, kept)
    with run.clock:
        limit = Reason.MAX_PASSES
        try:
            for _ in range(settings.max_passes):
                running = [state for state in run.states if state.reason is None]
                if not running:
                    break
                run.one_pass(running)
                run.prove([state for state in running if state.reason is None and state.ready(settings.tol)])
        except StoppedError as stopped:
            limit = stopped.reason
        run.kept = []
        for state in run.states:
            state.reason = state.reason or limit
        unsettled = [state for state in run.states if not state.settled]
        try:
            with run.clock.proof():
                run.prove(unsettled, final=True)
        except StoppedError as stopped:  # without the proof
            for state in unsettled:
                state.unproved(state.descent.b, stopped.reason)
    return [state.result(run.seconds) for state in run.states]


class _Minimizer:
    """The problems on their way through the blocks."""

    def __init__(self, problem: Problem[OnDisk], settings: Settings, keep: Keep | None, kept: float) -> None:
        self.problem, self.settings, self.keep = problem, settings, keep
        memory, self.total = problem.examples.memory, len(problem.examples)
        self.clock, self.rng = Clock(settings.max_time), settings.rng()
        self.clock.seconds = self.seconds = {"read": 0.0, "expand": 0.0, "descend": 0.0, "select": 0.0, "certify": 0.0}
        self.part_bytes = min(piece_bytes(memory), max(1, memory // 4))
        room = memory - self.part_bytes
        self.kept_bytes, self.block_bytes = int(kept * room), int((1.0 - kept) * room)
        self.kept: list[Held] = []
        self.step = _step(problem, self.part_bytes)
        self.states = [State(problem, k, settings.tol) for k in range(len(problem))]

    def one_pass(self, running: list[State]) -> None:
        """One pass over the blocks."""
        for state in running:
            state.begin_pass()
        read = 0
        with closing(self.problem.pieces(self.part_bytes)) as pieces:
            while block := self._load(pieces):
                read += sum(len(part) for part in block)
                cached = self._minimize(block, running)
                for state in running:
                    if read < self.total:
                        progress = state.progress(self.clock.elapsed(), read / self.total, cached)
                        self.clock.tell(self.settings.on_progress, progress, state.k)
                    else:
                        progress = state.end_pass(self.clock.elapsed(), self.step, cached)
                        state.tell(progress, self.clock, self.settings.on_progress)
                self.clock.obey()

    def prove(self, states: list[State], *, final: bool = False) -> None:
        """The true gap of these problems; the time limit does not hold for it, since no answer is without."""
        if not states:
            return
        began = perf_counter()
        judges = judges_of(
            self.problem,
            [state.k for state in states],
            [state.w for state in states],
            [state.descent.b for state in states],
            [state.alpha for state in states],
        )
        check, tol = ((lambda: None), np.inf) if final else (self.clock.obey, self.settings.tol)
        certificates = certify(self.problem, judges, check, tol=tol, together=False)
        for state, certificate in zip(states, certificates, strict=True):
            if final:
                state.certificate = certificate
            else:
                state.judge(certificate, self.settings.tol)
        self.seconds["certify"] += perf_counter() - began

    def _load(self, pieces: Iterator[Piece]) -> list[Held]:
        """The next block: as many parts as fit, at least one; none at the end."""
        block: list[Held] = []
        size = 0
        while size == 0 or size + block[-1].nbytes <= self.block_bytes:
            began = perf_counter()
            piece = next(pieces, None)
            self.seconds["read"] += perf_counter() - began
            if piece is None:
                break
            block.append(self._held(piece))
            size += block[-1].nbytes
            self.clock.check()
        return block

    def _held(self, piece: Piece) -> Held:
        began = perf_counter()
        rows = np.arange(piece.rows.start, piece.rows.stop)
        alphas = [np.array(state.alpha[piece.rows]) for state in self.states]
        norms = piece.examples.squared_norms() + self.step
        held = Held(self.problem, rows, piece.examples, piece.columns, norms, alphas, fresh=True)
        self.seconds["expand"] += perf_counter() - began
        return held

    def _minimize(self, block: list[Held], running: list[State]) -> int:
        """Some sweeps over a block and what was kept before; then neither is in memory, but for what is kept now.

        Returns how many rows were in memory.
        """
        first, last = int(block[0].rows[0]), int(block[-1].rows[-1])
        parts = [*block, *(_without(part, first, last) for part in self.kept)]
        block.clear()
        self.kept = []
        rows = sum(len(part) for part in parts)
        for state in running:
            state.begin_block()
        try:
            for number in range(SWEEPS):
                self._sweep(parts, running, first=number == 0)
                if not any(state.descent.active for state in running):
                    break
        finally:  # whatever ends it, w and alpha belong together
            for part in parts:
                for state in running:
                    state.alpha[part.rows] = part.alphas[state.k]
        for state in running:
            state.active += sum(int(part.active[state.k].sum()) for part in parts if part.fresh)
        if self.keep is not None:
            began = perf_counter()
            self.kept = self.keep(parts, running, self.kept_bytes, self.clock.check)
            self.seconds["select"] += perf_counter() - began
        return rows

    def _sweep(self, parts: list[Held], running: list[State], *, first: bool) -> None:
        """Visit the rows that may move once, in random order; the first time, sum up the gaps of those just read."""
        runs = []
        for part in parts:
            order = row_numbers(np.logical_or.reduce([part.active[state.k] for state in running]))
            shuffle(order, self.rng)
            runs += [(part, some) for some in np.array_split(order, min(RUNS, -(-len(order) // RUN_ROWS)) or 1)]
        turns = np.arange(len(runs), dtype=np.uint32)
        shuffle(turns, self.rng)
        for state in running:
            state.descent.begin_sweep()
        for part, order in (runs[turn] for turn in turns):
            for state in running:
                state.descent.numbers[GAP] = 0.0
            moved = [(state.descent, part.variables(state.k)) for state in running]
            sweep(
                part.examples, order, moved, part.norms, self.step, self.problem.loss,
                seconds=self.seconds, check=self.clock.check,
            )  # fmt: skip
            if first and part.fresh:
                for state in running:
                    state.gap += state.descent.gap
            self.clock.check()
        for state in running:
            state.descent.end_sweep()


def _step(problem: Problem[OnDisk], nbytes: int) -> float:
    """By how much the intercept moves with each alpha; where it is free, about as far as outputs move with w."""
    if problem.intercept is Intercept.FREE:
        with closing(problem.pieces(nbytes)) as pieces:
            for piece in pieces:
                return max(float(piece.examples.squared_norms().mean()), 1e-3)
    return 1.0 if problem.intercept is Intercept.REGULARIZED else 0.0


def _without(part: Held, first: int, last: int) -> Held:
    """The rows that are not among these."""
    outside = (part.rows < first) | (part.rows > last)
    return part if outside.all() else part.take(np.flatnonzero(outside))
