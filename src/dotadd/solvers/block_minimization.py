"""Block minimization: dual coordinate descent on data larger than memory (Yu, Hsieh, Chang and Lin 2010, algorithm 1).

Problem:  as for dcd
Given:    a Flow of examples
Returned: w, b, alpha and the relative duality gap, for each of the binary problems

The examples are read in blocks that fit into memory. A block is loaded, its dual variables are optimised by some sweeps
of coordinate descent, all others standing still, and it makes room for the next one; after the last one the first comes
again. w is carried along. Reading and training take turns, as published.

A block is held in parts of some megabytes. Sweeps visit them in random order, some rows at a time, so that in effect
the rows of a block come in random order, and never more than a part of it is in memory twice.

A pass sums up the local gaps of all rows as their blocks are visited for the first time, an estimate of the gap as in
dcd. When that is within the tolerance, the gap itself is computed by reading once more (certificate.py).

`minimize_blocks` can keep some of the examples when a block leaves; that is what selective_block_minimization.py does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from time import perf_counter

import numpy as np

from dotadd.block import squared_length
from dotadd.solvers import descent
from dotadd.solvers.certificate import certify
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.descent import ACTIVE, GAP, HALF_NORM, INTERCEPT, N_NUMBERS, descend
from dotadd.solvers.flow import Flow, Piece, piece_bytes
from dotadd.solvers.problem import Intercept
from dotadd.solvers.proof import Certificate
from dotadd.solvers.result import Progress, Reason, Result, passes_told
from dotadd.solvers.settings import Settings, row_numbers, shuffle

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
        flow: Flow,
        rows: np.ndarray,
        piece: Piece,
        norms: np.ndarray | None,
        alphas: list[np.ndarray],
        *,
        step: float = 0.0,
        fresh: bool = False,
    ) -> None:
        self.flow, self.rows, self.alphas, self.fresh = flow, rows, alphas, fresh
        self.problem = flow.problem(piece)
        self.norms = self.problem.examples.squared_norms() + step if norms is None else norms
        self.active = [(piece.cost > 0.0).astype(np.uint8) for _ in alphas]

    def __len__(self) -> int:
        return len(self.rows)

    def row_bytes(self) -> np.ndarray:
        """What each row takes in memory, all told."""
        return self.problem.examples.batch.row_bytes() + self.flow.beside

    @property
    def nbytes(self) -> int:
        return int(self.row_bytes().sum())

    def take(self, at: np.ndarray) -> Held:
        """These rows, held apart."""
        problem = self.problem
        batch, signs = problem.examples.batch.take(at).own(), [sign[at] for sign in problem.signs]
        piece = Piece(batch, 0, signs, problem.cost[at])
        return Held(self.flow, self.rows[at], piece, self.norms[at], [alpha[at] for alpha in self.alphas])

    def join(self, other: Held) -> Held:
        """The rows of both."""

        def joined(some: list[np.ndarray], others: list[np.ndarray]) -> list[np.ndarray]:
            return [np.concatenate(two) for two in zip(some, others, strict=True)]

        one, two = self.problem, other.problem
        batch = type(one.examples.batch).concat((one.examples.batch, two.examples.batch))
        rows, cost, norms = joined([self.rows, one.cost, self.norms], [other.rows, two.cost, other.norms])
        piece = Piece(batch, 0, joined(one.signs, two.signs), cost)
        return Held(self.flow, rows, piece, norms, joined(self.alphas, other.alphas))


class State:
    """One binary problem on its way: its variables, its running numbers, its trace, its answer once there is one."""

    def __init__(self, flow: Flow, k: int, tol: float) -> None:
        self.flow, self.k, self.w = flow, k, flow.zeros()
        self.alpha = flow.dual_variables()
        self.numbers = np.zeros(N_NUMBERS)
        self.trace: list[Progress] = []
        self.gap, self.gap_before, self.active = 0.0, np.nan, 0
        self.target, self.look_again = tol, 0
        self.certificate: Certificate | None = None
        self.reason: Reason | None = None

    def begin_pass(self) -> None:
        self.gap, self.active = 0.0, 0

    def begin_block(self) -> None:
        descent.forget_thresholds(self.numbers)
        self.certificate = None  # w is going to move

    def progress(self, seconds: float, read: float, cached: int) -> Progress:
        """What is known when so large a share of a pass is read. For the rest of it the gap of the last pass counts."""
        gap = self.gap if read == 1.0 else self.gap + (1.0 - read) * self.gap_before
        gap = abs(gap - descent.multiplier_term(self.numbers, self.flow.intercept))
        dual = descent.dual_objective(self.numbers, self.flow.intercept)
        primal = dual + gap
        relative = gap / primal if primal != 0.0 else 0.0  # not known in the first pass: NaN
        passes = len(self.trace) + (read == 1.0)
        return Progress(passes, seconds, primal, dual, relative, self.active, self.flow.rows, read=read, cached=cached)

    def end_pass(self, seconds: float, multiplier_step: float, cached: int) -> Progress:
        """The estimates that this pass has summed up; the multiplier's update for a free intercept."""
        self.numbers[HALF_NORM] = 0.5 * squared_length(self.w)  # the running one has rounding summed up in it
        self.trace.append(self.progress(seconds, 1.0, cached))
        self.gap_before = self.gap
        descent.move_multiplier(self.numbers, self.flow.intercept, multiplier_step)
        return self.trace[-1]

    def judge(self, certificate: Certificate, tol: float) -> None:
        """Take note of the true gap: it ends training, or tells at which estimate to look again."""
        self.certificate = certificate
        self.reason = certificate.verdict(tol)
        if self.reason is None:
            self.target = self.trace[-1].gap * tol / certificate.gap
            self.look_again = int(PATIENCE * len(self.trace)) + 1

    def ready(self, tol: float) -> bool:
        """Whether the estimate of the latest pass calls for a look at the true gap."""
        latest = self.trace[-1]
        return latest.gap <= self.target or (latest.gap <= tol and latest.passes >= self.look_again)

    @property
    def settled(self) -> bool:
        """Whether there is a certificate, and alpha is the one that it is about."""
        free = self.flow.intercept is Intercept.FREE
        return self.certificate is not None and (self.reason is Reason.CONVERGED or not free)


Keep = Callable[[list[Held], list[State], int, Callable[[], None]], list[Held]]


def block_minimization(flow: Flow, settings: Settings) -> list[Result]:
    """Solve each binary problem of `flow` to a relative duality gap of `settings.tol`."""
    return minimize_blocks(flow, settings)


def minimize_blocks(flow: Flow, settings: Settings, keep: Keep | None = None, kept: float = 0.0) -> list[Result]:
    """Algorithm 1. What `keep` returns stays when a block leaves, in so large a share of the memory.

    keep(parts in memory, problems that go on, bytes for what is kept, check) may empty the list of parts, and calls
    check() between two of them.
    """
    run = _Run(flow, settings, keep, kept)
    with run.clock:
        limit = Reason.MAX_PASSES
        try:
            for _ in range(settings.max_passes):
                running = [state for state in run.states if state.reason is None]
                if not running:
                    break
                run.one_pass(running)
                run.certify([state for state in running if state.reason is None and state.ready(settings.tol)])
        except StoppedError as stopped:
            limit = stopped.reason
        run.kept = []
        for state in run.states:
            state.reason = state.reason or limit
        unsettled = [state for state in run.states if not state.settled]
        try:
            with run.clock.proof():
                run.certify(unsettled, final=True)
        except StoppedError as stopped:  # without the proof
            for state in unsettled:
                state.certificate, state.reason = None, stopped.reason
    return [_result(state, run.seconds) for state in run.states]


def _result(state: State, seconds: dict[str, float]) -> Result:
    assert state.reason is not None
    primal, dual, gap, intercept, _ = state.certificate or Certificate.missing(float(state.numbers[INTERCEPT]))
    return Result(
        w=state.w,
        intercept=intercept,
        alpha=state.alpha,
        primal=primal,
        dual=dual,
        gap=gap,
        reason=state.reason,
        passes=passes_told(len(state.trace), state.w, state.reason),
        seconds=seconds,
        trace=state.trace,
    )


class _Run:
    """The problems on their way through the blocks."""

    def __init__(self, flow: Flow, settings: Settings, keep: Keep | None, kept: float) -> None:
        self.flow, self.settings, self.keep = flow, settings, keep
        self.clock, self.rng = Clock(settings.max_time), settings.rng()
        self.clock.seconds = self.seconds = {"read": 0.0, "expand": 0.0, "descend": 0.0, "select": 0.0, "certify": 0.0}
        self.part_bytes = min(piece_bytes(flow.memory), max(1, flow.memory // 4))
        room = flow.memory - self.part_bytes
        self.kept_bytes, self.block_bytes = int(kept * room), int((1.0 - kept) * room)
        self.kept: list[Held] = []
        self.step = _step(flow, self.part_bytes)
        self.states = [State(flow, k, settings.tol) for k in range(flow.problems)]

    def one_pass(self, running: list[State]) -> None:
        """One pass over the blocks."""
        for state in running:
            state.begin_pass()
        read = 0
        with closing(self.flow.pieces(self.part_bytes)) as pieces:
            while block := self._load(pieces):
                read += sum(len(part) for part in block)
                cached = self._minimize(block, running)
                for state in running:
                    if read < self.flow.rows:
                        progress = state.progress(self.clock.elapsed(), read / self.flow.rows, cached)
                    else:
                        progress = state.end_pass(self.clock.elapsed(), self.step, cached)
                        if not np.isfinite(progress.primal):
                            state.reason = Reason.DIVERGED
                    self.clock.tell(self.settings.on_progress, progress, state.k)
                self.clock.obey()

    def certify(self, states: list[State], *, final: bool = False) -> None:
        """The true gap of these problems; the time limit does not hold for it, since no answer is without."""
        if not states:
            return
        began = perf_counter()
        certificates = certify(
            self.flow,
            [state.w for state in states],
            [float(state.numbers[INTERCEPT]) for state in states],
            [state.alpha for state in states],
            (lambda: None) if final else self.clock.obey,
            which=[state.k for state in states],
            tol=np.inf if final else self.settings.tol,
            together=False,
        )
        for state, certificate in zip(states, certificates, strict=True):
            if final:
                state.certificate = certificate
            else:
                state.judge(certificate, self.settings.tol)
        self.seconds["certify"] += perf_counter() - began

    def _load(self, pieces: Generator[Piece, None, None]) -> list[Held]:
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
        rows = np.arange(piece.first_row, piece.first_row + len(piece))
        alphas = [np.array(state.alpha[rows[0] : rows[-1] + 1]) for state in self.states]
        held = Held(self.flow, rows, piece, None, alphas, step=self.step, fresh=True)
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
                if not any(state.numbers[ACTIVE] for state in running):
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
            descent.begin_sweep(state.numbers)
        loss = int(self.flow.loss)
        for part, order in (runs[turn] for turn in turns):
            problem = part.problem
            mark = perf_counter()
            for block, at, rows in problem.examples.blocks(order, ahead=True):
                expanded = perf_counter()
                self.seconds["expand"] += expanded - mark
                for state in running:
                    state.numbers[GAP] = 0.0
                    descend(
                        block.start, block.end, block.indices, block.values, at, rows, problem.examples.in_memory,
                        problem.signs[state.k], problem.cost, part.norms, self.step, loss, True,
                        part.alphas[state.k], part.active[state.k], state.w, state.numbers,
                    )  # fmt: skip
                    if first and part.fresh:
                        state.gap += state.numbers[GAP]
                mark = perf_counter()
                self.seconds["descend"] += mark - expanded
                self.clock.check()
        for state in running:
            descent.end_sweep(state.numbers)


def _step(flow: Flow, nbytes: int) -> float:
    """By how much the intercept moves with each alpha; where it is free, about as far as outputs move with w."""
    if flow.intercept is Intercept.FREE:
        with closing(flow.pieces(nbytes)) as pieces:
            for piece in pieces:
                return max(float(flow.problem(piece).examples.squared_norms().mean()), 1e-3)
    return 1.0 if flow.intercept is Intercept.REGULARIZED else 0.0


def _without(part: Held, first: int, last: int) -> Held:
    """The rows that are not among these."""
    outside = (part.rows < first) | (part.rows > last)
    return part if outside.all() else part.take(np.flatnonzero(outside))
