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

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from dotadd._jit import kernel
from dotadd.ahead import ReadAhead
from dotadd.block import inner_product
from dotadd.errors import DotaddError
from dotadd.expand import Expansion
from dotadd.losses import HINGE, LOGISTIC, total_dual_term, total_loss
from dotadd.solvers import descent
from dotadd.solvers.certificate import certify
from dotadd.solvers.checkpoint import Arrays, CheckpointError
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.descent import GAP, INTERCEPT, N_NUMBERS, OLD_PG_MAX, OLD_PG_MIN, descend
from dotadd.solvers.flow import Flow, Piece, piece_bytes
from dotadd.solvers.problem import Intercept
from dotadd.solvers.proof import Certificate
from dotadd.solvers.result import Progress, Reason, Result, passes_told
from dotadd.solvers.settings import Settings, row_numbers, shuffle
from dotadd.solvers.standing import Standing
from dotadd.solvers.store import Store

IN_FLIGHT = 3  # pieces that are being read, decoded and worked on beside the examples that are kept
ARRIVAL = {False: 1.0, True: 0.2}  # visits that an arriving row costs; less where DOT of many rows is quick (`bulk`)
PATIENCE = 10  # visits for each row that has arrived, at most
ENOUGH = 0.25  # of the gap that is asked for: examples in memory whose share is smaller are left as they are
SLICE = 1 << 10  # rows in memory, at least, that are visited before it is asked whether to go on
TELL_EVERY = 0.2  # seconds


def stream(flow: Flow, settings: Settings) -> list[Result]:
    """Solve each binary problem of the flow to a relative duality gap of `settings.tol`."""
    return _Trainer(flow, settings).solve()


class _Trainer:
    def __init__(self, flow: Flow, settings: Settings) -> None:
        self.flow, self.settings = flow, settings
        self.clock = Clock(settings.max_time)
        self.clock.seconds = {"read": 0.0, "arrive": 0.0, "sweep": 0.0, "certify": 0.0}
        self.piece_bytes = piece_bytes(flow.memory)
        self.ws = [flow.zeros() for _ in range(flow.problems)]
        self.alphas = [flow.dual_variables() for _ in range(flow.problems)]
        self.numbers = [np.zeros(N_NUMBERS) for _ in range(flow.problems)]
        capacity = max(flow.memory - IN_FLIGHT * self.piece_bytes, flow.memory // 2)
        self.store = Store(flow, self.alphas, capacity, settings.seed)
        self.rng = settings.rng()
        self.at = Standing.at_the_start(flow.problems, settings.tol)
        self._told = 0.0

    def solve(self) -> list[Result]:
        settings = self.settings
        if settings.checkpoint is not None and settings.resume:
            self._restore(*settings.checkpoint.load())
        with self.clock:
            try:
                reason, certificates = self._train()
            except StoppedError as stopped:
                reason, certificates = stopped.reason, None
            except (DotaddError, OSError) as error:
                raise self._given_up(error) from error
            if settings.checkpoint is not None and reason not in (Reason.CONVERGED, Reason.PRECISION):
                self.save()
            if certificates is None:
                try:
                    with self.clock.proof():
                        certificates = self._certify(lambda: None)
                except StoppedError as stopped:  # without the proof
                    reason = stopped.reason
                    certificates = [Certificate.missing(float(some[INTERCEPT])) for some in self.numbers]
        return [self._result(k, reason, certificate) for k, certificate in enumerate(certificates)]

    def _train(self) -> tuple[Reason, list[Certificate] | None]:
        """Passes until a proof succeeds; why they ended, and the proof if alpha is the one that it is about."""
        tol = self.settings.tol
        while self.at.passes < self.settings.max_passes:
            self._pass()
            ready = self.at.calls_for_proof
            self.at.begin_pass()
            if not np.isfinite([trace[-1].primal for trace in self.at.trace]).all():
                return Reason.DIVERGED, None
            if not ready:
                continue
            certificates = self._certify(self.clock.check, tol)
            verdicts = [certificate.verdict(tol) for certificate in certificates]
            if all(verdict is Reason.CONVERGED for verdict in verdicts):
                return Reason.CONVERGED, certificates
            for ends in (Reason.DIVERGED, Reason.PRECISION):
                if ends in verdicts:
                    return ends, None
            self.at.not_proved(max(certificate.gap for certificate in certificates))
        return Reason.MAX_PASSES, None

    def _pass(self) -> None:
        """The rest of a pass of the reader."""
        with ReadAhead(self.flow.pieces(after=self.at.position), ahead=self.flow.threads > 1) as pieces:
            while True:
                with self.clock.timed("read"):
                    self._wait(pieces)
                    piece = next(pieces, None)
                if piece is None:
                    break
                before = self._duals()
                with self.clock.timed("arrive"):
                    self._arrive(piece)
                self.at.position = piece.first_row + len(piece)
                with self.clock.timed("sweep"):
                    self._sweep(pieces, len(piece), self._duals() - before)
                self._tell()
                checkpoint = self.settings.checkpoint
                if checkpoint is not None and checkpoint.due:
                    self.save()
                self.clock.check()
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
        wanted = row_numbers(np.logical_or.reduce(active))
        norms = np.zeros(len(piece))
        norms[wanted] = problem.examples.squared_norms(wanted) + at.step
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
        Nor does it pay when the examples in memory are as good as solved, and only others can close the gap. While the
        reader is behind, visits cost nothing.
        """
        store, spent, most = self.store, ARRIVAL[self.flow.phi.bulk] * rows, PATIENCE * rows
        while len(store.order) or store.present.any():
            if self._settled() and pieces.wait(0.0):
                return
            before = self._duals()
            visits = max(1, self._visit_some(max(SLICE, rows // 2)))
            gain = self._duals() - before
            gained, spent, most = gained + gain, spent + visits, most - visits
            if (most <= 0 or gain / visits < gained / spent) and pieces.wait(0.0 if gain > 0.0 else TELL_EVERY):
                return

    def _settled(self) -> bool:
        """Whether the examples in memory have at most a small part of the gap that is asked for, in all problems."""
        at, left = self.at, len(self.store.order)
        return all(at.kept(k, left) <= ENOUGH * at.target * self._dual(k) for k in range(self.flow.problems))

    def _visit_some(self, most: int) -> int:
        """Visit the next examples of a round over the memory; returns how many."""
        at, store = self.at, self.store
        if not len(store.order):
            at.begin_round(store.begin_round(self.rng))
        examples, some = store.next(most)
        gaps = self._visit(examples, some, store.signs, store.cost, store.norms, store.alphas, store.active)
        for k, numbers in enumerate(self.numbers):
            at.visited_in_round(k, numbers, gaps[k])
        store.release(some)
        if not len(store.order):
            at.end_round(full=store.full)
        return len(some)

    def _duals(self) -> float:
        return sum(self._dual(k) for k in range(self.flow.problems))

    def _dual(self, k: int) -> float:
        return descent.dual_objective(self.numbers[k], self.flow.intercept)

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
            descent.begin_sweep(numbers)
            numbers[OLD_PG_MAX], numbers[OLD_PG_MIN] = at.eps[k], -at.eps[k]
        for block, place, rows in examples.blocks(order, ahead=True):
            for k, w in enumerate(self.ws):
                descend(
                    block.start, block.end, block.indices, block.values, place, rows, examples.in_memory,
                    signs[k], cost, norms, at.step, int(self.flow.loss), True, alphas[k], active[k], w, self.numbers[k],
                )  # fmt: skip
            self.clock.check()
        for k, numbers in enumerate(self.numbers):
            at.visited(k, numbers)
        return [float(numbers[GAP]) for numbers in self.numbers]

    def _end_pass(self) -> None:
        at = self.at
        at.end_pass()
        for k in range(self.flow.problems):
            at.trace[k].append(self._progress(k, 1.0))
        self._tell(1.0)
        for numbers in self.numbers:
            descent.move_multiplier(numbers, self.flow.intercept, at.step)

    def _progress(self, k: int, read: float) -> Progress:
        """Where problem k stands; nothing is known of its gap before the first pass has ended."""
        numbers, intercept = self.numbers[k], self.flow.intercept
        dual = self._dual(k)
        gap = self.at.gap(k, len(self.store.order)) - descent.multiplier_term(numbers, intercept)
        gap = abs(gap) if self.at.passes else np.nan
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
            self.clock.tell(tell, self._progress(k, share), k)

    def _certify(self, check: Callable[[], None], tol: float = np.inf) -> list[Certificate]:
        with self.clock.timed("certify"):
            self.store.write_back()
            intercepts = [float(numbers[INTERCEPT]) for numbers in self.numbers]
            return certify(self.flow, self.ws, intercepts, self.alphas, check, tol=tol)

    def save(self) -> None:
        """Write a checkpoint."""
        assert self.settings.checkpoint is not None
        self.store.write_back()
        arrays = {f"w.{k}": w for k, w in enumerate(self.ws)} | {f"alpha.{k}": a for k, a in enumerate(self.alphas)}
        arrays |= {f"numbers.{k}": numbers for k, numbers in enumerate(self.numbers)} | {"rng": self.rng}
        arrays |= {f"store.{name}": array for name, array in self.store.state().items()}
        record = self.at.record(self.clock.elapsed()) | {"seconds": self.clock.seconds, "memory": self.flow.memory}
        record["random"] = self.store.random.bit_generator.state
        self.settings.checkpoint.save(arrays, record)

    def _restore(self, arrays: Arrays, record: dict[str, Any]) -> None:
        for k in range(self.flow.problems):
            arrays.into(f"w.{k}", self.ws[k])
            arrays.into(f"alpha.{k}", self.alphas[k])
            arrays.into(f"numbers.{k}", self.numbers[k])
        self.rng[:] = arrays["rng"]
        record.pop("memory", None)  # what there was; what there is now is another matter
        self.store.random.bit_generator.state = record.pop("random")
        self.clock.seconds = record.pop("seconds")
        self.at = Standing.of_record(record, self.settings.tol)
        state = {name[len("store.") :]: arrays[name] for name in arrays if name.startswith("store.")}
        self.store.restore(state, self.at.step)

    def _given_up(self, error: Exception) -> Exception:
        """The error, with where to find what was learned until then."""
        if self.settings.checkpoint is None or isinstance(error, CheckpointError):
            return error
        try:
            self.save()
        except CheckpointError as another:
            return DotaddError(f"{error}; and {another}")
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
            passes=passes_told(self.at.passes, self.ws[k], reason),
            seconds=self.clock.seconds,
            trace=self.at.trace[k],
        )

    def _wait(self, pieces: ReadAhead[Piece]) -> None:
        while not pieces.wait(TELL_EVERY):
            self.clock.check()


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
