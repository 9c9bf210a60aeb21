"""How a batch solver meets the data: it asks, and is served.

A batch solver is a generator for one binary problem. It yields requests and is sent the answers:

    output = yield Dot(w)                 <w, phi(z_i)> of all examples
    yield Add(coefficients, out)          out += sum_i coefficients_i phi(z_i)
    yield DotAdd(scales, v, out)          out += sum_i scales_i <v, phi(z_i)> phi(z_i), a product with a Hessian
    yield Hessian(scales, out)            out + out' += sum_i scales_i phi(z_i) phi(z_i)', the Hessian, of few features
    output = yield AddDot(c, room)        <w, phi(z_i)> of all examples for the w = sum_j c_j phi(z_j)
    yield Write(rows, out)                out[j] += phi(z_i) of a few examples, i = rows[j]

so its code reads from top to bottom, and it never knows where the examples are. Once an iteration it says by `run.rest`
what is needed to begin that iteration again, for a checkpoint to hold.

`serve` runs the generators of all binary problems of a Problem and answers the requests of several of them with one
expansion of the examples. Each answer is a pass over the data, but for a few examples in memory: examples count how
often all of them are gone through or read, and a problem has the passes that its answers took. At the end it judges all
answers by the one objective, from scratch.

Numbers: w and the vectors to DOT with in the storage type, outputs and sums in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from dotadd.core.losses import Loss, dual_at
from dotadd.errors import DotaddError
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.certify import Judge, certify
from dotadd.solvers.clock import Clock, StoppedError
from dotadd.solvers.free_intercept import balance, balanced_dual, best_intercept
from dotadd.solvers.result import Progress, Reason, Result, relative_gap
from dotadd.solvers.run import Run, Settings
from dotadd.solvers.saving import Saved, Saving, State


@dataclass(frozen=True)
class Dot:
    """<w, phi(z_i)> of all examples, in float64."""

    w: np.ndarray
    phase: ClassVar[str] = "output"

    @staticmethod
    def answer(examples: InMemory, asked: list[Dot]) -> list[Any]:
        return examples.dot([one.w for one in asked])


@dataclass(frozen=True)
class Add:
    """out += sum_i coefficients_i phi(z_i), and the same with the squares of the features, if wanted."""

    coefficients: np.ndarray
    out: np.ndarray
    squares: np.ndarray | None = None
    phase: ClassVar[str] = "add"

    @staticmethod
    def answer(examples: InMemory, asked: list[Add]) -> list[Any]:
        for some in ([one for one in asked if one.squares is None], [one for one in asked if one.squares is not None]):
            squares = [one.squares for one in some if one.squares is not None]
            if some:
                examples.add([one.coefficients for one in some], [one.out for one in some], squares)
        return [None] * len(asked)


@dataclass(frozen=True)
class DotAdd:
    """out += sum_i scales_i <v, phi(z_i)> phi(z_i)."""

    scales: np.ndarray
    v: np.ndarray
    out: np.ndarray
    phase: ClassVar[str] = "product"

    @staticmethod
    def answer(examples: InMemory, asked: list[DotAdd]) -> list[Any]:
        examples.dot_add([one.scales for one in asked], [one.v for one in asked], [one.out for one in asked])
        return [None] * len(asked)


@dataclass(frozen=True)
class Hessian:
    """out + out' += sum_i scales_i phi(z_i) phi(z_i)', of few features; out is a matrix of float64."""

    scales: np.ndarray
    out: np.ndarray
    phase: ClassVar[str] = "product"

    @staticmethod
    def answer(examples: InMemory, asked: list[Hessian]) -> list[Any]:
        examples.add_products([one.scales for one in asked], [one.out.reshape(-1) for one in asked])
        return [None] * len(asked)


@dataclass(frozen=True)
class AddDot:
    """sum_j coefficients_j <phi(z_j), phi(z_i)> of all examples, in float64."""

    coefficients: np.ndarray
    room: list[np.ndarray]
    """Empty at first; what is made for it stays there for the next one."""
    phase: ClassVar[str] = "product"

    @staticmethod
    def answer(examples: InMemory, asked: list[AddDot]) -> list[np.ndarray]:
        return examples.products([one.coefficients for one in asked], [one.room for one in asked])


@dataclass(frozen=True)
class Write:
    """out[j] += phi(z_i) of example i = rows[j]; out may be wider than phi."""

    rows: np.ndarray
    out: np.ndarray
    phase: ClassVar[str] = "rows"

    @staticmethod
    def answer(examples: InMemory, asked: list[Write]) -> list[Any]:
        examples.dense([(one.rows, np.arange(len(one.rows)), one.out) for one in asked])
        return [None] * len(asked)


Request = Dot | Add | DotAdd | Hessian | AddDot | Write
T = TypeVar("T")
Asks = Generator[Request, Any, T]
Steps = Asks[None]
KINDS: tuple[type[Request], ...] = (Dot, Add, DotAdd, Hessian, AddDot, Write)


class Asking(Run):
    """One binary problem on its way. A solver keeps its best answer so far in `w`, `intercept` and `alpha`, where it is
    found when time is up; `alpha` may stay None if the loss is smooth, since w then tells it."""

    def __init__(
        self,
        problem: Problem,
        k: int,
        settings: Settings,
        clock: Clock,
        start: Result | None,
    ) -> None:
        super().__init__(k, problem.origin(k))
        self.problem, self.settings, self.clock = problem, settings, clock
        self.centre = problem.centre(k)
        self.sign, self.cost = problem.columns.sign(k).astype(np.float64), problem.columns.cost(k)
        self.intercept = 0.0 if self.centre is None else self.centre.b
        self.lacks: np.ndarray | None = None
        """Coefficients of an ADD that is still to be done to w, once its solver has ended."""
        self.resumed: Saved | None = None
        """What it has said by `rest` in an earlier run, if it goes on from there."""
        self._rested: State | None = None
        if start is not None:
            self.w[:] = start.w
            self.intercept = 0.0 if problem.intercept is Intercept.NONE else start.intercept

    def rest(self, more: Callable[[], State] = dict, **needed: np.ndarray | float | list[float]) -> None:
        """An iteration begins, and this is needed to begin it again, beside w and intercept. Arrays are copied, but for
        those of more(), which must not change until the next time. All of it is for those who keep a checkpoint."""
        if self.settings.checkpoint is not None:
            found = more() | {name: one.copy() if isinstance(one, np.ndarray) else one for name, one in needed.items()}
            here = {"w": self.w.copy(), "intercept": self.intercept, "passes": self.passes, "trace": self.trace[:]}
            self._rested = found | here | {"reason": None, "rested": bool(found)}

    def make_way(self) -> None:
        """It is done, or its time is over, and others come: what it has said stays if there is room for it. Otherwise
        whoever goes on with it starts from its w."""
        self.resumed = None
        arrays = [one for one in (self._rested or {}).values() if isinstance(one, np.ndarray)]
        nbytes = sum(array.nbytes for array in arrays)
        if self.done or nbytes > self.settings.budget.left:
            self._rested = None
        else:
            self.settings.budget.take(nbytes)

    def state(self) -> State:
        if (self.done and self.lacks is None) or self._rested is self.resumed is None:
            return super().state() | {"intercept": self.intercept, "rested": False}
        if self._rested is None:  # it was not reached
            assert self.resumed is not None
            return {**self.resumed.record, **self.resumed.below("")}
        return self._rested

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        self.intercept = saved["intercept"]
        self.resumed = saved if saved["rested"] else None

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Count the seconds of what is inside under this name."""
        return self.clock.timed(name)

    @contextmanager
    def room(self, most: int) -> Iterator[int]:
        """Take memory for what the solver collects, at most so many bytes, and a fair share of what is left where the
        problems after this one collect at the same time."""
        waiting = 1 if self.problem.examples.in_memory else len(self.problem) - self.k
        budget = self.settings.budget
        taken = budget.take(min(most, budget.left // waiting))
        try:
            yield taken
        finally:
            budget.release(taken)

    def first_outputs(self) -> Asks[np.ndarray]:
        """<w, phi(z_i)> of the w to begin with, which costs nothing if that is 0."""
        if not self.w.any():
            return np.zeros(len(self.problem.examples))
        return (yield Dot(self.w))

    def margins(self, output: np.ndarray, intercept: float) -> np.ndarray:
        return self.sign * (output + intercept)

    def goes_on(self, primal: float, dual: float = np.nan) -> bool:
        """Note how far it is, and say whether to go on."""
        gap = relative_gap(primal, primal - dual)
        rows = len(self.problem.examples)
        progress = Progress(self.passes, self.clock.elapsed(), primal, dual, gap, rows, rows)
        self.tell(progress, self.clock, self.settings.on_progress)
        if self.reason is not None:
            return False
        if gap <= self.settings.tol:
            self.reason = Reason.CONVERGED
        elif self.passes >= self.settings.max_passes:
            self.reason = Reason.MAX_PASSES
        return self.reason is None


def serve(
    method: Callable[[Asking], Steps], problem: Problem, settings: Settings, start: list[Result] | None = None
) -> list[Result]:
    """Solve each binary problem of `problem` by this method, from the w of earlier results if there are any.

    Where examples have to be expanded, all problems advance together; examples that lie in memory cost nothing to
    visit again, so there one problem comes after the other, and only one needs room for its vectors.
    """
    if start is not None and (len(start) != len(problem) or any(len(one.w) != problem.examples.dim for one in start)):
        raise DotaddError("start does not come from a fit with the same features and classes")
    clock = Clock(settings.max_time)
    runs = [Asking(problem, k, settings, clock, start[k] if start else None) for k in range(len(problem))]
    saving = Saving(settings, clock, runs)
    if saving.resume() is not None and isinstance(problem.examples, InMemory):
        problem.examples.make_kept()
    left = [run for run in runs if run.reason is None]
    groups = [[run] for run in left] if problem.examples.in_memory else [left]
    with clock:
        try:
            for n, group in enumerate(groups):
                clock.obey()
                for run in groups[n - 1] if n else ():
                    run.make_way()
                with saving:
                    _serve(method, problem, group, clock.share(len(groups) - n), saving)
        except StoppedError as stopped:
            for run in runs:
                run.reason = run.reason or stopped.reason
        saving.at_the_end()
        try:
            with clock.proof(), clock.timed("certify"):
                _prove(problem, runs, settings.tol)
        except StoppedError as stopped:  # without the proof
            for run in runs:
                run.unproved(run.intercept, stopped.reason)
                if run.alpha is None:
                    run.primal_alone(np.nan, run.intercept)
    return [run.result(clock.seconds) for run in runs]


def _serve(
    method: Callable[[Asking], Steps], problem: Problem, runs: list[Asking], clock: Clock, saving: Saving
) -> None:
    """Asking these generators until each has ended, or has to; then they are closed, and keep what they have."""
    for run in runs:
        if run.resumed is None:
            run.rest()
    with ExitStack() as stack:
        steps = {run: stack.enter_context(closing(method(run))) for run in runs}
        waiting = {run: request for run in runs if (request := _advance(run, steps[run], None)) is not None}
        try:
            while waiting:
                for kind in KINDS:
                    asked = {run: request for run, request in waiting.items() if isinstance(request, kind)}
                    if not asked:
                        continue
                    clock.check()
                    saving.between_steps()
                    passes = problem.examples.passes
                    with clock.anywhere(), clock.timed(kind.phase):  # answers go to the generators' own vectors
                        answers = kind.answer(problem.examples, list(asked.values()))  # type: ignore[arg-type]  # of it
                    passes = problem.examples.passes - passes
                    for run, answer in zip(asked, answers, strict=True):
                        run.passes += passes
                        request = _advance(run, steps[run], answer)
                        if request is None:
                            del waiting[run]
                        else:
                            waiting[run] = request
        except StoppedError as stopped:
            for run in waiting:
                run.reason = stopped.reason
    for run in runs:
        _complete(run)


def _complete(run: Asking) -> None:
    """Add to w what it lacks: there is no answer without it, so neither time nor Ctrl-C ends this."""
    examples, passes = run.problem.examples, run.problem.examples.passes
    if run.lacks is not None and run.lacks.any():
        with run.phase("add"):
            sums = np.zeros(len(run.w))
            examples.add([run.lacks], [sums])
            run.w += sums
        run.passes += examples.passes - passes
    run.lacks = None


def _advance(run: Asking, steps: Steps, answer: Any) -> Request | None:
    """The generator's next request, or None where it has ended."""
    try:
        return steps.send(answer)
    except StopIteration:
        run.reason = run.reason or Reason.STALLED
        return None


def _prove(problem: Problem, runs: list[Asking], tol: float) -> None:
    """Primal, dual and gap of each answer, from scratch."""
    seen, free = problem.examples.see([run.w for run in runs]), problem.intercept is Intercept.FREE
    judges = {}
    for run, output in zip(runs, seen.outputs, strict=True):
        sign = problem.columns.sign(run.k)
        if free:
            run.intercept = best_intercept(problem.loss, output, sign, run.cost)
        if run.alpha is None and problem.loss is not Loss.HINGE:
            margins = run.margins(output, run.intercept)
            run.alpha = (
                balanced_dual(problem.loss, margins, sign, run.cost)
                if free
                else dual_at(int(problem.loss), margins, run.cost)
            )
        if run.alpha is not None:  # a mean of dual variables fits its bounds and their balance but for its rounding
            np.clip(run.alpha, 0.0, np.inf if problem.loss is Loss.SQUARED_HINGE else run.cost, out=run.alpha)
            if free:
                balance(run.alpha, sign)
        alpha = np.zeros(len(output)) if run.alpha is None else run.alpha
        judges[run] = Judge(problem, run.k, run.w, alpha, run.intercept)
        judges[run].see(problem, slice(None), output, seen.norms, seen.terms)
        judges[run].conclude()
    proved = [run for run in runs if run.alpha is not None]
    certificates = certify(problem, [judges[run] for run in proved]) if proved else []
    for run, certificate in zip(proved, certificates, strict=True):
        run.certificate = certificate
        if run.reason is Reason.CONVERGED and certificate.gap > tol:
            run.reason = Reason.PRECISION
        elif run.reason is Reason.STALLED and certificate.gap <= tol:
            run.reason = Reason.CONVERGED
    for run in runs:
        if run.alpha is None:
            primal = judges[run].rows.primal(run.w, problem.intercept, run.intercept, run.centre)
            run.primal_alone(primal, run.intercept)
