"""StreamSVM: dual coordinate descent on data larger than memory (Matsushima, Vishwanathan and Smola 2012).

Problem:  as for dcd; the examples pass by again and again, and some of them are kept in memory
Given:    a Flow of examples, and how much memory may be taken by those that are kept
Returned: w, b, alpha and the relative duality gap, for each of the binary problems

A reader brings piece after piece. The margins of all examples of a piece are computed at once; those whose alpha would
move are visited, and stay in memory if they may move again. Meanwhile, in random order, the examples in memory are
visited. One whose alpha sits at a bound, and would stay there even if its gradient were wrong by eps, has told what it
can and leaves; eps is the largest projected gradient of the latest round, and lower when memory is nearly full. When it
is full, others leave at random. Nothing is lost by leaving: the example comes again with the next pass of the reader.

Changes to the paper: only examples that would move are let in, where the paper lets in all and finds out when it first
picks them; eps is taken from a round over the memory and not from as many steps as there are examples; and how many
visits come between two pieces is decided by what they gain, not by how fast the reader is, unless it is slow. With one
thread nothing depends on the clock, and the same seed gives the same bits.

The pass sums up an estimate of the gap as dcd does: each example's share when it was last looked at. If that is within
the tolerance, or M+ - M- is as good as zero, one more pass proves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from dotadd._jit import kernel
from dotadd.ahead import ReadAhead
from dotadd.block import inner_product
from dotadd.errors import DotaddError
from dotadd.expand import Expansion
from dotadd.interrupts import Interrupts
from dotadd.losses import HINGE, LOGISTIC, total_dual_term, total_loss
from dotadd.solvers.certificate import Certificate, certify
from dotadd.solvers.descent import (
    BALANCE,
    DUAL_TERMS,
    GAP,
    HALF_NORM,
    INTERCEPT,
    N_NUMBERS,
    OLD_PG_MAX,
    OLD_PG_MIN,
    PG_MAX,
    PG_MIN,
    descend,
)  # fmt: skip
from dotadd.solvers.flow import Flow, Piece, piece_bytes
from dotadd.solvers.problem import Intercept
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.settings import Deadline, Settings, TimeUpError, shuffle
from dotadd.solvers.store import Store

IN_FLIGHT = 3  # pieces that are being read, decoded and worked on beside the examples that are kept
ARRIVAL = {False: 1.0, True: 0.2}  # visits that an arriving row costs; less where DOT of many rows is quick (`bulk`)
PATIENCE = 10  # visits for each row that has arrived, at most
TIGHTEN = 0.9  # eps, at each round while memory is nearly full
STILL = 1e-4  # M+ - M-: nothing would move any more
SLICE = 1 << 10  # rows in memory, at least, that are visited before it is asked whether to go on
TELL_EVERY = 0.2  # seconds
PAUSE = 0.02  # seconds that the reader is waited for before visits go on that gain less than the next piece would


@dataclass
class _Counters:
    """Where training stands, in numbers that a checkpoint can write down; lists have an entry for each problem."""

    passes: int = 0
    position: int = 0  # rows of this pass that have arrived
    step: float = 0.0  # what the constant feature adds to |phi|^2, or the weight of the multiplier of a free intercept
    tol: float = 0.0  # as it was asked for
    target: float = 0.0  # estimate of the gap at which to prove it
    still: float = STILL
    elapsed: float = 0.0  # seconds of earlier runs
    eps: list[float] = field(default_factory=list)
    worst: list[float] = field(default_factory=list)  # projected gradient of this round
    round_rows: int = 0
    round_gap: list[float] = field(default_factory=list)  # of this round so far
    last_gap: list[float] = field(default_factory=list)  # of the round before
    new_gap: list[float] = field(default_factory=list)  # of rows that came since
    highest: list[float] = field(default_factory=list)  # projected gradient of this pass, M+
    lowest: list[float] = field(default_factory=list)  # M-
    arrived: list[list[float]] = field(default_factory=list)  # gap of each piece of this pass
    before: list[list[float]] = field(default_factory=list)  # and of the pass before
    trace: list[list[Progress]] = field(default_factory=list)


def stream(flow: Flow, settings: Settings) -> list[Result]:
    """Solve each binary problem of the flow to a relative duality gap of `settings.tol`."""
    with Interrupts() as interrupts:
        return _Trainer(flow, settings, interrupts).solve()


class _Trainer:
    def __init__(self, flow: Flow, settings: Settings, interrupts: Interrupts) -> None:
        self.flow, self.settings, self.interrupts = flow, settings, interrupts
        self.clock = Deadline(settings.max_time)
        self.seconds = {"read": 0.0, "arrive": 0.0, "sweep": 0.0, "certify": 0.0}
        self.piece_bytes = piece_bytes(flow.memory)
        self.ws = [flow.zeros() for _ in range(flow.problems)]
        self.alphas = [flow.dual_variables() for _ in range(flow.problems)]
        self.numbers = [np.zeros(N_NUMBERS) for _ in range(flow.problems)]
        capacity = max(flow.memory - IN_FLIGHT * self.piece_bytes, flow.memory // 2)
        self.store = Store(flow, self.alphas, capacity, settings.seed)
        self.rng = settings.rng()
        nothing, k = [0.0] * flow.problems, flow.problems
        self.at = _Counters(
            tol=settings.tol, target=settings.tol, eps=[np.inf] * k, worst=nothing[:], round_gap=nothing[:],
            last_gap=nothing[:], new_gap=nothing[:], before=[[] for _ in range(k)], trace=[[] for _ in range(k)],
        )  # fmt: skip
        self._begin_pass()
        self._told = 0.0

    def solve(self) -> list[Result]:
        checkpoint = self.settings.checkpoint
        certificates: list[Certificate] | None = None
        try:
            if checkpoint is not None and self.settings.resume:
                self._restore(*checkpoint.load())
            reason = Reason.MAX_PASSES
            while self.at.passes < self.settings.max_passes:
                self._pass()
                if not self._ready():
                    continue
                certificates = self._certify(self.settings.tol)
                if (proved := self._judge(certificates)) is not None:
                    reason = proved
                    break
                certificates = None
        except TimeUpError:
            reason = Reason.MAX_TIME
        except KeyboardInterrupt:
            reason = Reason.INTERRUPTED
        except Exception as error:
            raise self._given_up(error) from error
        if checkpoint is not None:
            self.save()
        if certificates is None:
            self.clock.limit = np.inf
            try:
                certificates = self._certify()
            except KeyboardInterrupt:  # a second one: leave without the proof
                nan = np.nan
                certificates = [Certificate(nan, nan, nan, float(some[INTERCEPT]), nan) for some in self.numbers]
        return [self._result(k, reason, certificate) for k, certificate in enumerate(certificates)]

    def _pass(self) -> None:
        """The rest of a pass of the reader."""
        with ReadAhead(self.flow.pieces(after=self.at.position), ahead=self.flow.threads > 1) as pieces:
            while True:
                with self._timed("read"):
                    self._wait(pieces)
                    piece = next(pieces, None)
                if piece is None:
                    break
                before = self._duals()
                with self._timed("arrive"):
                    self._arrive(piece)
                with self._timed("sweep"):
                    self._sweep(pieces, len(piece), self._duals() - before)
                self.at.position = piece.first_row + len(piece)
                self._tell()
                checkpoint = self.settings.checkpoint
                if checkpoint is not None and checkpoint.due:
                    self.save()
        self._end_pass()

    def _arrive(self, piece: Piece) -> None:
        """Look at all examples of a piece, visit those that would move, keep those that may move again."""
        flow, at = self.flow, self.at
        problem = flow.problem(piece)
        if not at.step and flow.intercept is not Intercept.NONE:
            free = flow.intercept is Intercept.FREE
            at.step = max(float(problem.examples.squared_norms().mean()), 1e-3) if free else 1.0
        mine = slice(piece.first_row, piece.first_row + len(piece))
        new = np.flatnonzero(~self.store.kept[mine] & (piece.cost > 0.0))
        alphas = [alpha[mine] for alpha in self.alphas]  # views: what is visited here is written there
        active = [np.zeros(len(piece), np.uint8) for _ in self.ws]
        cost = piece.cost[new]
        for k, output in enumerate(problem.outputs(self.ws, new)):
            margins = (output + self.numbers[k][INTERCEPT]) * piece.signs[k][new]
            alpha = alphas[k][new]
            losses, terms = total_loss(flow.loss, margins, cost), total_dual_term(flow.loss, alpha, cost)
            at.arrived[k].append(losses - terms + inner_product(alpha, margins))
            active[k][new] = _would_move(int(flow.loss), margins, cost, alpha)
        wanted = np.flatnonzero(np.logical_or.reduce(active)).astype(np.int32)
        norms = np.zeros(len(piece))
        norms[wanted] = flow.phi.squared_norms(piece.batch, wanted) + at.step
        order = wanted.copy()
        shuffle(order, self.rng)
        gaps = self._visit(problem.examples, order, piece.signs, piece.cost, norms, alphas, active)
        stay = wanted[np.logical_or.reduce([some[wanted] for some in active]).astype(np.bool_)]
        self.store.add(
            piece.first_row + stay.astype(np.int64), piece.batch.take(stay), [sign[stay] for sign in piece.signs],
            piece.cost[stay], norms[stay], [alpha[stay] for alpha in alphas], [some[stay] for some in active],
        )  # fmt: skip
        for k, gap in enumerate(gaps):
            at.new_gap[k] += gap

    def _sweep(self, pieces: ReadAhead[Piece], rows: int, gained: float) -> None:
        """Visit examples in memory as long as that pays, and until the reader has the next piece.

        It pays while a visit raises the duals by more than visits and arriving rows have on average since the piece of
        so many rows came, which has `gained` so much: an animal leaves a bush when it finds less there than elsewhere.
        """
        store, spent, most = self.store, ARRIVAL[self.flow.phi.bulk] * rows, PATIENCE * rows
        while len(store.order) or store.present.any():
            before = self._duals()
            visits = max(1, self._visit_some(max(SLICE, rows // 2)))
            gain = self._duals() - before
            gained, spent, most = gained + gain, spent + visits, most - visits
            if (most <= 0 or gain / visits < gained / spent) and pieces.wait(PAUSE if gain > 0.0 else TELL_EVERY):
                return

    def _visit_some(self, most: int) -> int:
        """Visit the next examples of a round over the memory; returns how many."""
        at, store = self.at, self.store
        if not len(store.order):
            self._begin_round()
        examples, some = store.next(most)
        gaps = self._visit(examples, some, store.signs, store.cost, store.norms, store.alphas, store.active)
        for k, numbers in enumerate(self.numbers):
            at.round_gap[k] += gaps[k]
            at.worst[k] = max(at.worst[k], numbers[PG_MAX], -numbers[PG_MIN])
        store.release(some)
        if not len(store.order):
            self._end_round()
        return len(some)

    def _duals(self) -> float:
        return sum(self._dual(k) for k in range(self.flow.problems))

    def _begin_round(self) -> None:
        at = self.at
        at.round_rows = self.store.begin_round(self.rng)
        for k in range(self.flow.problems):
            at.round_gap[k] = at.new_gap[k] = at.worst[k] = 0.0

    def _end_round(self) -> None:
        at = self.at
        at.last_gap = at.round_gap[:]
        at.round_rows = 0
        at.eps = [worst * (TIGHTEN if self.store.full else 1.0) for worst in at.worst]

    def _visit(
        self,
        examples: Expansion,
        order: np.ndarray,
        signs: list[np.ndarray],
        cost: np.ndarray,
        norms: np.ndarray,
        alphas: list[np.ndarray],
        active: list[np.ndarray],
    ) -> list[float]:
        """Coordinate descent over these rows, in this order; returns their shares of the gap."""
        at = self.at
        for k, numbers in enumerate(self.numbers):
            numbers[GAP], numbers[PG_MAX], numbers[PG_MIN] = 0.0, -np.inf, np.inf
            numbers[OLD_PG_MAX], numbers[OLD_PG_MIN] = at.eps[k], -at.eps[k]
        for block, place, rows in examples.blocks(order, ahead=True):
            for k, w in enumerate(self.ws):
                descend(
                    block.start, block.end, block.indices, block.values, place, rows, examples.in_memory,
                    signs[k], cost, norms, at.step, int(self.flow.loss), True, alphas[k], active[k], w, self.numbers[k],
                )  # fmt: skip
            self._check()
        for k, numbers in enumerate(self.numbers):
            at.highest[k], at.lowest[k] = max(at.highest[k], numbers[PG_MAX]), min(at.lowest[k], numbers[PG_MIN])
        return [float(numbers[GAP]) for numbers in self.numbers]

    def _begin_pass(self) -> None:
        at, problems = self.at, range(self.flow.problems)
        at.position = 0
        at.highest, at.lowest = [0.0 for _ in problems], [0.0 for _ in problems]
        at.arrived = [[] for _ in problems]

    def _end_pass(self) -> None:
        self.at.passes += 1
        for k in range(self.flow.problems):
            self.at.trace[k].append(self._progress(k, 1.0))
        self._tell(1.0)
        self.at.before = self.at.arrived
        if self.flow.intercept is Intercept.FREE:  # the multiplier; moved more often than once a pass it runs away
            for numbers in self.numbers:
                numbers[INTERCEPT] += self.at.step * numbers[BALANCE]

    def _passing_gap(self, k: int) -> float:
        """The gap of the examples that pass by, each as it was when it was last looked at."""
        arrived, before = self.at.arrived[k], self.at.before[k]
        return sum(arrived) + sum(before[len(arrived) :])

    def _kept_gap(self, k: int) -> float:
        """The gap of the examples in memory."""
        at = self.at
        left = len(self.store.order) / at.round_rows if at.round_rows else 0.0
        return at.new_gap[k] + (at.round_gap[k] + left * at.last_gap[k] if at.round_rows else at.last_gap[k])

    def _dual(self, k: int) -> float:
        numbers = self.numbers[k]
        dual = float(numbers[DUAL_TERMS] - numbers[HALF_NORM])
        return dual - 0.5 * float(numbers[INTERCEPT]) ** 2 if self.flow.intercept is Intercept.REGULARIZED else dual

    def _gap(self, k: int) -> float:
        """The estimate of primal minus dual; nothing is known before the first pass has ended."""
        if not self.at.passes:
            return np.nan
        gap = self._passing_gap(k) + self._kept_gap(k)
        if self.flow.intercept is Intercept.FREE:
            gap -= float(self.numbers[k][INTERCEPT] * self.numbers[k][BALANCE])
        return abs(gap)

    def _progress(self, k: int, read: float) -> Progress:
        dual, gap = self._dual(k), self._gap(k)
        relative = gap / (dual + gap) if dual + gap != 0.0 else 0.0
        kept = len(self.store)
        passes = self.at.passes if read == 1.0 else self.at.passes + 1
        seconds = self.at.elapsed + self.clock.elapsed()
        return Progress(passes, seconds, dual + gap, dual, relative, kept, self.flow.rows, read=read, cached=kept)

    def _tell(self, read: float | None = None) -> None:
        """Report how far it is, a few times a second."""
        tell = self.settings.on_progress
        now = perf_counter()
        if tell is None or (read is None and now < self._told + TELL_EVERY):
            return
        self._told = now
        share = read if read is not None else min(self.at.position / max(1, self.flow.rows), np.nextafter(1.0, 0.0))
        for k in range(self.flow.problems):
            tell(self._progress(k, share), k)

    def _ready(self) -> bool:
        """Whether the pass that has ended calls for a proof. The next one begins."""
        at = self.at
        ready = all(
            at.trace[k][-1].gap <= at.target or at.highest[k] - at.lowest[k] <= at.still
            for k in range(self.flow.problems)
        )
        self._begin_pass()
        return ready

    def _judge(self, certificates: list[Certificate]) -> Reason | None:
        """Why to stop, if the gaps that were proved are a reason."""
        tol, at = self.settings.tol, self.at
        worst = max(certificate.gap for certificate in certificates)
        if worst <= tol:
            return Reason.CONVERGED
        if max(certificate.drift for certificate in certificates) > 0.5 * tol:
            return Reason.PRECISION
        at.target *= max(0.1, 0.5 * tol / worst)
        at.still *= 0.1
        return None

    def _certify(self, tol: float = np.inf) -> list[Certificate]:
        with self._timed("certify"):
            self.store.write_back()
            intercepts = [float(numbers[INTERCEPT]) for numbers in self.numbers]
            return certify(self.flow, self.ws, intercepts, self.alphas, self._check, tol=tol)

    def save(self) -> None:
        """Write a checkpoint."""
        assert self.settings.checkpoint is not None
        self.store.write_back()
        arrays = {f"w.{k}": w for k, w in enumerate(self.ws)} | {f"alpha.{k}": a for k, a in enumerate(self.alphas)}
        arrays |= {f"numbers.{k}": numbers for k, numbers in enumerate(self.numbers)} | {"rng": self.rng}
        arrays |= {f"store.{name}": array for name, array in self.store.state().items()}
        record = asdict(self.at) | {"elapsed": self.at.elapsed + self.clock.elapsed(), "seconds": self.seconds}
        record["random"] = self.store.random.bit_generator.state
        self.settings.checkpoint.save(arrays, record)

    def _restore(self, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        for k in range(self.flow.problems):
            self.ws[k][:], self.alphas[k][:] = arrays[f"w.{k}"], arrays[f"alpha.{k}"]
            self.numbers[k][:] = arrays[f"numbers.{k}"]
        self.rng[:] = arrays["rng"]
        self.store.random.bit_generator.state = record.pop("random")
        self.seconds = record.pop("seconds")
        self.at = _Counters(**record)
        if self.at.tol != self.settings.tol:
            self.at.tol = self.at.target = self.settings.tol
        self.at.trace = [[Progress(*row) for row in rows] for rows in self.at.trace]
        state = {name[len("store.") :]: array for name, array in arrays.items() if name.startswith("store.")}
        self.store.restore(state, self.at.step, self._check)

    def _given_up(self, error: Exception) -> Exception:
        """The error, with where to find what was learned until then."""
        if self.settings.checkpoint is None or not isinstance(error, DotaddError | OSError):
            return error
        if "checkpoint" in str(error):
            return error
        self.save()
        where = f"training stopped in pass {self.at.passes + 1}, and resume (--resume) goes on from "
        return DotaddError(f"{error}; {where}{self.settings.checkpoint.path}")

    def _result(self, k: int, reason: Reason, certificate: Certificate) -> Result:
        return Result(
            w=self.ws[k],
            intercept=certificate.intercept,
            alpha=self.alphas[k],
            primal=certificate.primal,
            dual=certificate.dual,
            gap=certificate.gap,
            reason=reason,
            passes=self.at.passes,
            seconds=self.seconds,
            trace=self.at.trace[k],
        )

    def _check(self) -> None:
        self.interrupts.check()
        self.clock.check()

    def _wait(self, pieces: ReadAhead[Piece]) -> None:
        while not pieces.wait(TELL_EVERY):
            self._check()

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += perf_counter() - began


@kernel
def _would_move(loss, margins, cost, alpha):
    """Of each example, whether its alpha is not where it should be for this margin."""
    out = np.empty(len(margins), np.uint8)
    for i in range(len(margins)):
        if loss == LOGISTIC:
            out[i] = 1
        elif alpha[i] == 0.0:
            out[i] = margins[i] < 1.0
        else:
            out[i] = loss != HINGE or alpha[i] < cost[i] or margins[i] > 1.0
    return out
