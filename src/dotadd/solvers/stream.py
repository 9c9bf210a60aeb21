"""StreamSVM: dual coordinate descent on data larger than memory (Matsushima, Vishwanathan and Smola 2012).

Problem:  as for dcd; the examples pass by again and again, and some of them are kept in memory
Given:    a Problem whose examples are on disk, and how much memory may be taken by those that are kept
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

What is returned is the best multiple of w (stretch.py), of which the margins of a pass tell by how much. A start from
an answer begins with the w of its alpha.

The pass sums up an estimate of the gap as dcd does: each example's share when it was last looked at. If that is within
the tolerance, or M+ - M- is as good as zero, for half of the problems, one more pass proves it. A problem that is
proved stands still from then on, and has no more rows in memory that others could have: 2,000 mails by words with a
tenth of them in memory, five folds at C = 7.7, jump up and down between 0.3 and 2 % and are seldom low together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from dotadd._util.ahead import ReadAhead
from dotadd.core.block import inner_product, row_numbers, squared_length
from dotadd.core.losses import Loss, total_dual_term
from dotadd.problem.examples import InMemory
from dotadd.problem.on_disk import IN_FLIGHT, OnDisk
from dotadd.problem.problem import Intercept, Piece, Problem, half_length
from dotadd.solvers.certify import certify, judges_of
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.proof import Certificate
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.run import Run, Settings, shuffle
from dotadd.solvers.saving import Saved, Saving, State
from dotadd.solvers.standing import Standing
from dotadd.solvers.store import Store
from dotadd.solvers.stretch import FACTORS, has_stretch, local_gaps
from dotadd.solvers.sweep import (
    BALANCE,
    DUAL_TERMS,
    HALF_NORM,
    INTERCEPT,
    Descent,
    Variables,
    sweep,
    would_move,
)

ARRIVAL = {False: 1.0, True: 0.2}  # visits that an arriving row costs; less where DOT of many rows is quick (`bulk`)
UNPACKED = 10.0  # visits by one problem that it costs besides, where those in memory have had their features made
PATIENCE = 10  # visits for each row that has arrived, at most
ENOUGH = {False: 0.25, True: 0.1}
"""Of the gap that is asked for: examples in memory whose share is smaller are left as they are; more than that is worth
its visits where features lie in memory."""
SLICE = 1 << 10  # rows in memory, at least, that are visited before it is asked whether to go on
TELL_EVERY = 0.2  # seconds


def stream(problem: Problem[OnDisk], settings: Settings, start: list[Result] | None = None) -> list[Result]:
    """Solve each binary problem to a relative duality gap of `settings.tol`. It may start from answers to the same
    problems with other costs."""
    return _Trainer(problem, settings, start or []).solve()


class _Trainer:
    def __init__(self, problem: Problem[OnDisk], settings: Settings, start: Sequence[Result]) -> None:
        self.problem, self.settings, self.memory = problem, settings, problem.examples.memory
        self.clock = Clock(settings.max_time)
        self.clock.seconds = {"read": 0.0, "arrive": 0.0, "sweep": 0.0, "certify": 0.0}
        self.ws = [problem.origin(k) for k in range(len(problem))]
        self.alphas = [problem.dual_variables() for _ in range(len(problem))]
        self.descents = [Descent(w, problem.intercept, problem.centre(k)) for k, w in enumerate(self.ws)]
        for result, w, alpha, descent in zip(start, self.ws, self.alphas, self.descents, strict=False):
            descent.numbers[HALF_NORM] = -0.5 * squared_length(w)
            w[:], alpha[:] = result.w, result.alpha
            w /= w.dtype.type(result.stretch)
            descent.numbers[HALF_NORM] += 0.5 * squared_length(w)
            descent.numbers[INTERCEPT] = result.intercept / result.stretch
        capacity = max(self.memory - IN_FLIGHT * problem.examples.piece_bytes, self.memory // 2)
        self.store = Store(problem, self.alphas, capacity, settings.seed)
        self.rng = settings.rng()
        self.saving = Saving(settings, self.clock, more=self._state)
        self.at = Standing.at_the_start(len(problem), settings.tol)
        self._told = 0.0

    def solve(self) -> list[Result]:
        if (saved := self.saving.resume()) is not None:
            self._restore(saved)
        with self.clock:
            try:
                with self.saving:
                    reason, certificates = self._train()
            except StoppedError as stopped:
                reason, certificates = stopped.reason, None
            if self.saving.checkpoint is not None and reason not in (Reason.CONVERGED, Reason.PRECISION):
                self.saving.save()
            if certificates is None:
                try:
                    with self.clock.proof():
                        certificates = self._prove(lambda: None, last=True)
                except StoppedError as stopped:  # without the proof
                    reason, self.at.stretch = stopped.reason, [1.0] * len(self.problem)
                    certificates = [Certificate.missing(descent.b) for descent in self.descents]
        return [self._result(k, reason, certificate) for k, certificate in enumerate(certificates)]

    def _train(self) -> tuple[Reason, list[Certificate] | None]:
        """Passes until a proof succeeds; why they ended, and the proof if alpha is the one that it is about."""
        tol = self.settings.tol
        while self.at.passes < self.settings.max_passes:
            self._pass()
            calls, ready = self.at.calls_for_proof, self.at.ready
            self.at.begin_pass()
            if not np.isfinite([trace[-1].primal for trace in self.at.trace]).all():
                return Reason.DIVERGED, None
            if not calls:
                continue
            last = self.at.passes == self.settings.max_passes and not self._goes_on_from_alpha
            certificates = self._prove(self.clock.check, tol, last=last)
            verdicts = [certificate.verdict(tol) for certificate in certificates]
            if all(verdict is Reason.CONVERGED for verdict in verdicts):
                return Reason.CONVERGED, certificates
            for ends in (Reason.DIVERGED, Reason.PRECISION):
                if ends in verdicts:
                    return ends, None
            self.at.proved = [verdict is Reason.CONVERGED for verdict in verdicts]
            if failed := [certificates[k].gap for k in ready if not self.at.proved[k]]:
                self.at.not_proved(max(failed))
            if last:
                return Reason.MAX_PASSES, certificates
            self.store.wake(self.at.proved)
        return Reason.MAX_PASSES, None

    @property
    def _goes_on_from_alpha(self) -> bool:
        """Whether somebody wants the w of alpha after the last pass: alpha is scaled, or a checkpoint is written."""
        return self.problem.intercept is Intercept.FREE or self.saving.checkpoint is not None

    def _pass(self) -> None:
        """The rest of a pass of the reader."""
        with self.problem.read(after=self.at.position) as pieces:
            while True:
                with self.clock.timed("read"):
                    self._wait(pieces)
                    piece = next(pieces, None)
                if piece is None:
                    break
                before = self._duals()
                with self.clock.timed("arrive"):
                    before += self._arrive(piece)
                self.at.position = piece.rows.stop
                with self.clock.timed("sweep"):
                    self._sweep(pieces, len(piece.examples), self._duals() - before)
                self._tell()
                self.saving.between_steps()
                self.clock.check()
        self._end_pass()

    def _arrive(self, piece: Piece) -> float:
        """Look at all examples of a piece, visit those that would move, keep those that may move again; returns what
        the duals have from an earlier answer."""
        problem, at, columns, again = self.problem, self.at, piece.columns, self.problem.asked_again(piece)
        examples = again.examples
        if problem.loss is Loss.LOGISTIC:  # of which all would
            piece = again
        if not at.step and problem.intercept is not Intercept.NONE:
            free = problem.intercept is Intercept.FREE
            at.step = max(float(examples.squared_norms().mean()), 1e-3) if free else 1.0
        new = np.flatnonzero(~self.store.kept[piece.rows] & columns.counts(slice(None)))
        alphas = [alpha[piece.rows] for alpha in self.alphas]  # views: what is visited here is written there
        active = [np.zeros(len(examples), np.uint8) for _ in self.ws]
        had = 0.0
        running = [k for k, proved in enumerate(at.proved) if not proved]
        for k, output in zip(running, piece.outputs([self.ws[k] for k in running], new), strict=True):
            margins = (output + self.descents[k].b) * columns.sign(k, new)
            alpha, cost = alphas[k][new], columns.cost(k, new)
            gaps = local_gaps(int(problem.loss), margins, alpha, cost, FACTORS)
            at.arrived[k].append(float(gaps[0]))
            at.saw(k, gaps)
            if not at.passes:  # what the earlier answer has of these rows
                numbers, terms = self.descents[k].numbers, total_dual_term(problem.loss, alpha, cost)
                numbers[DUAL_TERMS] += terms
                numbers[BALANCE] += inner_product(alpha, columns.sign(k, new))
                had += terms
            active[k][new] = would_move(int(problem.loss), margins, cost, alpha)
        wanted = row_numbers(np.logical_or.reduce(active))
        norms = np.zeros(len(examples))
        norms[wanted] = examples.squared_norms(wanted) + at.step
        order = wanted.copy()
        shuffle(order, self.rng)
        moved = [Variables(columns[k], alphas[k], active[k]) for k in range(len(problem))]
        gaps = self._visit(examples, order, moved, norms)
        stay = wanted[np.logical_or.reduce([some[wanted] for some in active]).astype(np.bool_)]
        several = ([array[stay] for array in some] for some in (alphas, active))
        self.store.add(again, stay, norms[stay], *several)
        for k, gap in enumerate(gaps):
            at.new_gap[k] += gap
        return had

    def _sweep(self, pieces: ReadAhead[Piece], rows: int, gained: float) -> None:
        """Visit examples in memory as long as that pays, and until the reader has the next piece.

        It pays while a visit raises the duals by more than visits and arriving rows have on average since the piece of
        so many rows came, which has `gained` so much: an animal leaves a bush when it finds less there than elsewhere.
        Nor does it pay when the examples in memory are as good as solved, and only others can close the gap. While the
        reader is behind, visits cost nothing.
        """
        store, most = self.store, PATIENCE * rows
        spent = rows * (1.0 + UNPACKED / len(self.problem) if store.expanded else ARRIVAL[self.problem.examples.bulk])
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
        at, left, enough = self.at, len(self.store.order), ENOUGH[bool(self.store.expanded)]
        solved = (at.kept(k, left) <= enough * at.target * self._dual(k) for k in range(len(self.problem)))
        return all(proved or done for proved, done in zip(at.proved, solved, strict=True))

    def _visit_some(self, most: int) -> int:
        """Visit the next examples of a round over the memory; returns how many."""
        at, store = self.at, self.store
        if not len(store.order):
            at.begin_round(store.begin_round(self.rng))
        examples, some = store.next(most)
        gaps = self._visit(examples, some, [store.variables(k) for k in range(len(self.problem))], store.norms)
        for k, descent in enumerate(self.descents):
            at.visited_in_round(k, descent.numbers, gaps[k])
        store.release(some)
        if not len(store.order):
            at.end_round(full=store.full)
        return len(some)

    def _duals(self) -> float:
        return sum(self._dual(k) for k in range(len(self.problem)))

    def _dual(self, k: int) -> float:
        return self.descents[k].dual

    def _visit(
        self, examples: InMemory, order: np.ndarray, variables: list[Variables], norms: np.ndarray
    ) -> list[float]:
        """Coordinate descent over these rows, in this order; returns their shares of the gap."""
        at = self.at
        for descent, eps in zip(self.descents, at.eps, strict=True):
            descent.begin_sweep()
            descent.set_thresholds(eps, -eps)
        moved = list(zip(self.descents, variables, strict=True))
        sweep(examples, order, moved, norms, at.step, self.problem.loss, check=self.clock.check)
        for k, descent in enumerate(self.descents):
            at.visited(k, descent.numbers)
        self.clock.check()
        return [descent.gap for descent in self.descents]

    def _end_pass(self) -> None:
        at = self.at
        at.end_pass()
        if has_stretch(self.problem):
            self._choose_stretches()
        for k in range(len(self.problem)):
            at.trace[k].append(self._progress(k, 1.0))
        self._tell(1.0)
        for descent in self.descents:
            descent.move_multiplier(at.step)

    def _choose_stretches(self) -> None:
        """By which factor w is the best answer: rows that passed by have told it when they came, and those in memory do
        now."""
        at, store = self.at, self.store
        ks = [k for k, proved in enumerate(at.proved) if not proved]
        places = store.places()
        outputs = store.over().dot([self.ws[k] for k in ks], places) if len(places) else []
        for k, output in zip(ks, outputs, strict=False):
            column, alpha = store.variables(k).column, store.alphas[k][places]
            margins = (output + self.descents[k].b) * column.signs[column.codes[places]]
            at.saw(k, local_gaps(int(self.problem.loss), margins, alpha, column.cost()[places], FACTORS))
        for k in ks:
            w, b = self.ws[k], self.descents[k].b
            at.choose_stretch(k, half_length(w, b, self.problem.intercept))

    def _progress(self, k: int, read: float) -> Progress:
        """Where problem k stands; nothing is known of its gap before the first pass has ended."""
        dual = self._dual(k)
        gap = self.at.gap(k, len(self.store.order)) - self.descents[k].multiplier_term
        gap = abs(gap) if self.at.passes else np.nan
        relative = gap / (dual + gap) if dual + gap != 0.0 else 0.0
        kept = len(self.store)
        passes = self.at.passes if read == 1.0 else self.at.passes + 1
        return Progress(
            passes, self.clock.elapsed(), dual + gap, dual, relative, kept, len(self.problem.examples), read=read,
            cached=kept,
        )  # fmt: skip

    def _tell(self, read: float | None = None) -> None:
        """Report how far it is, a few times a second."""
        tell = self.settings.on_progress
        now = perf_counter()
        if tell is None or (read is None and now < self._told + TELL_EVERY):
            return
        self._told = now
        share = (
            read
            if read is not None
            else min(self.at.position / max(1, len(self.problem.examples)), np.nextafter(1.0, 0.0))
        )
        for k in range(len(self.problem)):
            self.clock.tell(tell, self._progress(k, share), k)

    def _prove(self, check: Callable[[], None], tol: float = np.inf, *, last: bool) -> list[Certificate]:
        """The proof of the multiples of w, which are what w is afterwards if it succeeds, or is the last one."""
        with self.clock.timed("certify"):
            self.store.write_back()
            certificates: list[Certificate] = []
            self._multiply(self.at.stretch)
            try:
                bs = [stretch * descent.b for stretch, descent in zip(self.at.stretch, self.descents, strict=True)]
                judges = judges_of(self.problem, range(len(self.problem)), self.ws, bs, self.alphas)
                certificates = certify(self.problem, judges, check, tol=tol)
            finally:  # it goes on with the w of alpha
                if not certificates or not (last or all(certificate.gap <= tol for certificate in certificates)):
                    self._multiply([1.0 / stretch for stretch in self.at.stretch])
            return certificates

    def _multiply(self, factors: Sequence[float]) -> None:
        for w, factor in zip(self.ws, factors, strict=True):
            if factor != 1.0:
                w *= w.dtype.type(factor)

    def _state(self) -> State:
        """What a checkpoint holds."""
        self.store.write_back()
        found: State = {f"w.{k}": w for k, w in enumerate(self.ws)}
        found |= {f"alpha.{k}": alpha for k, alpha in enumerate(self.alphas)}
        found |= {f"numbers.{k}": descent.numbers for k, descent in enumerate(self.descents)} | {"rng": self.rng}
        found |= {f"store.{name}": array for name, array in self.store.state().items()}
        found |= {"random": self.store.random.bit_generator.state, "memory": self.memory}
        return found | self.at.record()

    def _restore(self, saved: Saved) -> None:
        for k in range(len(self.problem)):
            saved.into(f"w.{k}", self.ws[k])
            saved.into(f"alpha.{k}", self.alphas[k])
            saved.into(f"numbers.{k}", self.descents[k].numbers)
        self.rng[:] = saved["rng"]
        self.store.random.bit_generator.state = saved["random"]
        self.at = Standing.of_record(saved.record, self.settings.tol)
        self.store.restore(saved.below("store."))

    def _result(self, k: int, reason: Reason, certificate: Certificate) -> Result:
        run = Run(k, self.ws[k], self.alphas[k])
        run.passes, run.trace, run.reason, run.certificate = self.at.passes, self.at.trace[k], reason, certificate
        rows, nbytes = self.store.features
        return replace(run.result(self.clock.seconds), kept_rows=rows, kept_bytes=nbytes, stretch=self.at.stretch[k])

    def _wait(self, pieces: ReadAhead[Piece]) -> None:
        while not pieces.wait(TELL_EVERY):
            self.clock.check()
