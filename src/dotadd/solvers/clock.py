"""Clock: what a solver's run needs to end in time, and to tell where its time went.

Between two steps, where everything belongs together, a solver calls `check`; it raises StoppedError when the time limit
is reached or Ctrl-C was pressed meanwhile, and the solver ends with what it has:

    with clock:
        try:
            while ...:
                ...
                clock.check()
        except StoppedError as stopped:
            reason = stopped.reason
        with clock.proof(): ...
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from time import perf_counter
from typing import Self

import numpy as np

from dotadd._util.interrupts import Interrupts
from dotadd.solvers.result import Reason


class StoppedError(Exception):
    """Training has to end, for this reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Clock:
    """Seconds since it was made and a limit on them, Ctrl-C while it is entered, and the seconds of each phase."""

    def __init__(self, max_time: float | None = None) -> None:
        self.began = perf_counter()
        self.limit = np.inf if max_time is None else self.began + max_time
        self.seconds: dict[str, float] = defaultdict(float)
        self._scope = Interrupts()
        self._interrupts = self._scope.outermost()

    def __enter__(self) -> Self:
        self._interrupts = self._scope.__enter__()
        self._interrupts.put_off()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._scope.__exit__(kind, *rest)

    def elapsed(self) -> float:
        return perf_counter() - self.began

    def go_on(self, elapsed: float, seconds: Mapping[str, float]) -> None:
        """Count from what an earlier run had come to. The time limit is for this one alone."""
        self.began -= elapsed
        for phase, some in seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + some

    def left(self) -> float | None:
        """Seconds until the time limit, None if there is none."""
        return None if self.limit == np.inf else max(0.0, self.limit - perf_counter())

    def check(self) -> None:
        """Raise StoppedError if training has to end."""
        self.obey()
        if perf_counter() > self.limit:
            raise StoppedError(Reason.MAX_TIME)

    def obey(self) -> None:
        """The same, but for the time limit."""
        if self._interrupts.obey():
            raise StoppedError(Reason.INTERRUPTED)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed, obeyed or not."""
        return self._interrupts.pending

    def peek(self) -> None:
        """`check` for threads that help: a signal is left to the thread that asked them to."""
        if self.interrupted:
            raise StoppedError(Reason.INTERRUPTED)
        if perf_counter() > self.limit:
            raise StoppedError(Reason.MAX_TIME)

    def share(self, parts: int) -> Clock:
        """This clock for the first of so many parts of what is left to do, with its share of the time that is left."""
        one, now = copy(self), perf_counter()
        one.limit = now + max(0.0, self.limit - now) / parts
        return one

    def tell(self, whom: Callable[..., None] | None, *what: object) -> None:
        """Tell somebody who may want to know how far it is. If they raise KeyboardInterrupt, that is their Ctrl-C."""
        if whom is None:
            return
        try:
            whom(*what)
        except KeyboardInterrupt as error:
            self._interrupts.raised = error

    @contextmanager
    def anywhere(self) -> Iterator[None]:
        """What is inside takes long and changes nothing that is kept: Ctrl-C ends it at any place."""
        try:
            with self._interrupts.at_once():
                yield
        except BaseException as error:
            if error is not self._interrupts.raised:
                raise
            raise StoppedError(Reason.INTERRUPTED) from None

    @contextmanager
    def proof(self) -> Iterator[None]:
        """What is inside measures how good the answer is, beyond any time limit. Ctrl-C ends it, a second one if a
        first has ended training; where there is no time, after SIGTERM, StoppedError is raised at once."""
        self._interrupts.obey()
        if self._interrupts.hurried:
            raise StoppedError(Reason.INTERRUPTED)
        with self.anywhere():
            yield

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Count the seconds of what is inside under this name."""
        began = perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] += perf_counter() - began
