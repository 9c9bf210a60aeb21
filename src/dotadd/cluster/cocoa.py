"""CoCoA+: dual coordinate descent on parts of the data that know of each other through w alone (Ma et al. 2015).

Problem:  as for dcd; the examples lie in K parts, each with the dual variables of its own rows
Given:    an Engine whose parts have agreed on a Task
Returned: w, b and the relative duality gap over all parts, for each of the binary problems

In each round a part gets what was added to w, raises a model of the dual around it (subproblem.py) and returns its
difference v_k; the driver adds them up, w += V = sum_k v_k. Each reply also tells losses and local gaps at the w that
the round began with, so the gap is known without another round. Once it is within the tolerance, the step that was
computed meanwhile is taken back and one more round proves the gap from scratch (requests.py).

Changes to the paper:

- sigma' is measured. Parts see each other through |V|^2 <= sigma' sum_k |v_k|^2, which the paper makes safe by
  sigma' = K, the worst case: all v_k alike. Both sides are known after a round. So sigma' starts at sqrt(K), grows to
  what was measured and a third more, and otherwise falls slowly.
- The length of the step is searched, so that a sigma' that was too small does no harm: with dual terms T, which are
  concave, D(alpha + theta delta) - D(alpha) >= theta (dT - <u, V>) - theta^2/2 |V|^2, and theta in [0, 1] is the best
  for this bound. The right side needs numbers that the driver has, and the dual never falls.
- Momentum, restarted whenever theta < 1. It costs no traffic (subproblem.py). With sigma' = K on a9a it halved the
  rounds of 4 parts, and left a seventh of those of 64.

A part works in a round until the gap of its subproblem is `accuracy` times what it was. Rows that would not move are
not visited.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from dotadd.cluster.engine import Engine, Message, PartsLostError
from dotadd.cluster.requests import Contribute, Descend, DualVariables, Recall, Restore, Save, certify_parts
from dotadd.cluster.shard import Order, Task
from dotadd.cluster.subproblem import Step
from dotadd.core.block import inner_product, squared_length
from dotadd.errors import DotaddError
from dotadd.problem.examples import aligned_zeros, squared_distance
from dotadd.solvers.checkpoint import CheckpointError
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.proof import Certificate
from dotadd.solvers.result import Progress, Reason, Result, relative_gap
from dotadd.solvers.run import Run, Settings

ACCURACY = 0.1  # on a9a, C = 1: 0.3 took half as many rounds again, 0.02 a fifth fewer for 1.6 times the visits
SWEEPS = 20  # in a round, at most
MARGIN = 1.3  # times the sigma' that was measured
FALL = 0.97  # of sigma', a round
HOPE = 0.9  # of the tolerance that the rounding of w leaves
STUCK = 3  # rounds without any rise of the dual: rounding of w has the last word


class _State(Run):
    """One binary problem on its way, as the driver sees it. Its passes are the rounds."""

    def __init__(self, k: int, w: np.ndarray, sigma: float, target: float) -> None:
        super().__init__(k, w)
        self.sigma = sigma
        self.target = target  # the relative gap at which to prove it
        self.b, self.stuck = 0.0, 0
        self.adrift = False  # whether parts lost dual variables since it was done: its w is proved, but not of theirs
        self.last, self.b_last = np.zeros_like(self.w), 0.0  # what was added to w and b in the latest round
        self.theta = 0.0  # how far the parts are to go along their latest step; not at all, unless it is said
        self.momentum, self.pace = 0.0, 1.0
        self.fresh = False
        self._change = self._nothing = Message.of(np.zeros_like(self.w))

    def order(self) -> Order:
        """What the parts have to know by now; it is sent once."""
        change = Message.of(self.w.copy()) if self.fresh else self._change
        order = Order(self.k, self.b, change, self.theta, self.fresh, self.sigma, self.momentum, self.b_last)
        self._change, self.fresh, self.theta = self._nothing, False, 0.0
        return order

    def renew(self) -> None:
        """Send the whole w next time, and go on without momentum."""
        self.fresh = True
        self.halt()

    def halt(self) -> None:
        """Lose momentum."""
        self.momentum, self.pace, self.b_last = 0.0, 1.0, 0.0
        self.last[:] = 0.0

    def step(self, steps: list[Step], total: np.ndarray, ceiling: float | None) -> None:
        """Add up what the parts have found; `total` is V. sigma' is left as it is without a ceiling."""
        real = self.w.dtype.type
        b_total = sum(step.balance_gained for step in steps)
        rise = sum(step.terms_gained for step in steps) - inner_product(self.w, total) - self.b * b_total
        length = squared_length(total) + b_total * b_total
        theta = float(real(min(max(rise / length, 0.0), 1.0))) if length > 0.0 else 0.0
        apart = sum(step.length for step in steps)
        if ceiling is not None:
            away = squared_distance(total, real(self.momentum) * self.last)
            away += (b_total - self.momentum * self.b_last) ** 2
            measured = away / apart if apart > 0.0 else 0.0
            self.sigma = min(max(MARGIN * measured, FALL * self.sigma, 1.0), ceiling)
        self.stuck = self.stuck + 1 if theta == 0.0 and not self.momentum else 0
        np.multiply(total, real(theta), out=self.last)
        self._change = Message.of(self.last.copy())
        self._change.add_to(self.w)
        self.theta, self.b_last = theta, theta * b_total
        self.b = sum(step.balance for step in steps) + self.b_last
        self.passes += 1

    def gather_pace(self) -> None:
        """Nesterov's momentum for the next round."""
        if self.theta < 1.0:
            self.pace = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.pace**2))
        self.momentum, self.pace = (self.pace - 1.0) / following, following


def cocoa(
    engine: Engine,
    task: Task,
    settings: Settings,
    *,
    sigma: float | None = None,
    momentum: bool = True,
    gather: bool = False,
) -> list[Result]:
    """Solve each binary problem of the task to a relative duality gap of `settings.tol`.

    It takes `settings.max_passes` rounds at most. `sigma` is fixed if given, and measured otherwise. `alpha` of the
    results is None, since dual variables stay with their parts, unless they are to be gathered in the order of the
    parts.
    """
    return _Driver(engine, task, settings, sigma, momentum, gather).solve()


class _Driver:
    def __init__(
        self, engine: Engine, task: Task, settings: Settings, sigma: float | None, momentum: bool, gather: bool
    ) -> None:
        self.engine, self.task, self.settings, self.momentum, self.gather = engine, task, settings, momentum, gather
        self.ceiling = float(max(1, task.parts)) if sigma is None else None
        start = float(np.sqrt(max(1, task.parts))) if sigma is None else sigma
        ws = [aligned_zeros(task.phi, task.dtype) for _ in range(task.problems)]
        self.states = [_State(k, w, start, settings.tol) for k, w in enumerate(ws)]
        self.clock = Clock(settings.max_time)
        self.elapsed = 0.0  # seconds of earlier runs
        self.files = False  # whether the parts have files of this run
        self.clock.seconds = {"rounds": 0.0, "certify": 0.0}

    def solve(self) -> list[Result]:
        settings = self.settings
        try:
            while settings.checkpoint is not None and settings.resume and not self._resume():
                pass  # parts were lost: others have taken their place
            with self.clock:
                limit = self._train()
                unfinished = [state for state in self.states if state.reason is None]
                while not self._end(unfinished):
                    self._rebuild()
        except DotaddError as error:
            raise self._given_up(error) from error
        for state in unfinished:
            if state.reason is None:
                assert state.certificate is not None
                state.reason = Reason.CONVERGED if state.certificate.gap <= settings.tol else limit
        return [state.result(self.clock.seconds) for state in self.states]

    def _train(self) -> Reason:
        """Rounds until all problems are solved; why they ended for those that are not."""
        settings = self.settings
        try:
            while running := [s for s in self.states if s.reason is None and s.passes < settings.max_passes]:
                self.clock.check()
                try:
                    self._round(running)
                except PartsLostError:
                    self._rebuild()
        except StoppedError as stopped:
            return stopped.reason
        return Reason.MAX_PASSES

    def _end(self, unfinished: list[_State]) -> bool:
        """Keep and prove the answers so far of unfinished problems; returns whether no part was lost meanwhile."""
        try:
            if self.settings.checkpoint is not None and unfinished:
                self._save()
            with self.clock.proof():
                self._prove(unfinished)
        except PartsLostError:
            return False
        except StoppedError:  # without the proof
            for state in unfinished:
                state.unproved(state.b, Reason.INTERRUPTED)
        return True

    def _round(self, running: list[_State]) -> None:
        with self.clock.timed("rounds"):
            left = self.clock.limit - perf_counter()
            replies = self.engine.round(Descend([state.order() for state in running], ACCURACY, SWEEPS, left))
        ready, stuck = [], []
        for j, state in enumerate(running):
            steps = [told[j] for told in replies.told]
            gap = self._note(state, steps)
            if not np.isfinite(gap):
                state.reason = Reason.DIVERGED
                ready.append(state)
                continue
            if gap <= state.target:
                ready.append(state)  # and leave w: the parts go back to the dual variables that it was made of
                continue
            state.step(steps, replies.vectors[j].vector(), self.ceiling)
            if self.momentum:
                state.gather_pace()
            if state.stuck >= STUCK:
                stuck.append(state)
        self._prove(ready + stuck)
        for state in ready + stuck:
            assert state.certificate is not None
            verdict = state.certificate.verdict(self.settings.tol) or (Reason.PRECISION if state in stuck else None)
            state.reason = state.reason or verdict
            if state.reason is None:  # w was too far from what it was made of, but that leaves room for a better alpha
                state.target = HOPE * (self.settings.tol - state.certificate.drift)
                state.certificate = None
        checkpoint = self.settings.checkpoint
        if checkpoint is not None and (checkpoint.due or not self.files):  # there is one from the first round on
            self._save()

    def _note(self, state: _State, steps: list[Step]) -> float:
        """Tell how far the w is that the round began with; returns its relative gap."""
        gap = sum(step.gaps for step in steps)
        primal = sum(step.losses for step in steps) + (0.5 * squared_length(state.w) + 0.5 * state.b * state.b)
        relative = relative_gap(primal, gap)
        self._tell(state, primal, primal - gap, relative, sum(step.active for step in steps))
        return relative

    def _tell(self, state: _State, primal: float, dual: float, gap: float, active: int) -> None:
        """Tell how far a problem is after a round, once."""
        if state.passes > (state.trace[-1].passes if state.trace else 0):
            progress = Progress(state.passes, self._now(), primal, dual, gap, active, self.task.rows)
            state.tell(progress, self.clock, self.settings.on_progress)

    def _prove(self, states: list[_State]) -> None:
        """The certificates of these answers, and their dual variables if wanted."""
        for state in states:
            state.halt()
        with self.clock.timed("certify"):
            orders = [state.order() for state in states]
            found = certify_parts(self.engine, self.task.intercept, [state.w for state in states], orders)
            for state, certificate in zip(states, found, strict=True):
                state.certificate = certificate
                if self.gather:
                    state.alpha = np.concatenate(self.engine.round(DualVariables(state.k)).told)
                self._tell(state, *certificate[:3], state.trace[-1].active if state.trace else self.task.rows)

    def _rebuild(self) -> None:
        """Make w anew of the dual variables that the parts have now, whatever became of some of them."""
        while True:
            try:
                if self.files and self.settings.checkpoint is not None:
                    self.engine.round(Recall(self.settings.checkpoint.path))
                for state in self.states:
                    if state.reason is not None:
                        state.adrift = True
                        continue
                    replies = self.engine.round(Contribute(state.k))
                    state.w[:] = replies.vectors[0].vector()
                    state.b = sum(replies.told)
                    state.certificate, state.adrift = None, False
                    state.renew()
                return
            except PartsLostError:  # another one
                continue

    def _save(self) -> None:
        """Write the parts' files, then the driver's."""
        checkpoint = self.settings.checkpoint
        assert checkpoint is not None
        number = max(state.passes for state in self.states)
        self.engine.round(Save(checkpoint.path, number, [state.theta for state in self.states]))
        self.files = True
        kept = ("sigma", "b", "passes", "trace", "certificate", "adrift")
        states = [
            {name: getattr(state, name) for name in kept} | {"reason": state.reason.name if state.reason else None}
            for state in self.states
        ]
        record = {"round": number, "elapsed": self._now(), "states": states}
        checkpoint.save({f"w.{state.k}": state.w for state in self.states}, record)

    def _resume(self) -> bool:
        """Go on from the files; returns whether no part was lost meanwhile. Where parts are not where the driver was, w
        is built anew, as is that of a problem that was done for a larger tolerance when parts were lost."""
        checkpoint = self.settings.checkpoint
        assert checkpoint is not None
        arrays, record = checkpoint.load()
        try:
            rounds = self.engine.round(Restore(checkpoint.path)).told
        except PartsLostError:
            return False
        self.files = True
        self.elapsed = record["elapsed"]
        for state, told in zip(self.states, record["states"], strict=True):
            state.w[:] = arrays[f"w.{state.k}"]
            state.b, state.passes = told["b"], told["passes"]
            state.sigma = state.sigma if self.ceiling is None else min(told["sigma"], self.ceiling)
            state.trace = [Progress(*row) for row in told["trace"]]
            state.certificate = Certificate(*told["certificate"]) if told["certificate"] else None
            state.reason = Reason[told["reason"]] if told["reason"] else None
            state.adrift = told["adrift"]
            if state.certificate is not None and state.certificate.gap > self.settings.tol:
                state.reason = state.certificate = None  # the tolerance is another one now
            state.renew()
        lost = any(number != record["round"] for number in rounds)
        if lost or any(state.adrift and state.reason is None for state in self.states):
            self._rebuild()
        return True

    def _given_up(self, error: DotaddError) -> DotaddError:
        """The error, with where to find what was learned until then."""
        checkpoint, number = self.settings.checkpoint, max(state.passes for state in self.states) + 1
        if checkpoint is None or not self.files or isinstance(error, CheckpointError):
            return error
        where = f"training stopped in round {number}, and resume (--resume) goes on from {checkpoint.path}"
        return DotaddError(f"{error}; {where}")

    def _now(self) -> float:
        return self.elapsed + self.clock.elapsed()
