"""What a notebook shows while training runs: one line below the cell that changes in place, and stays as the last.

Nothing is shown outside of notebooks, where somebody else is told (`on_progress`), nor of training that is over at
once. Fits that follow each other in one cell, as those of a search do, take each other's line. It is plain HTML by
IPython's `update_display`: nothing has to be installed, and programs that run notebooks keep the last state.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import wraps
from html import escape
from itertools import count
from typing import ParamSpec, Protocol, Self, TypeVar, cast

from dotadd._util.interrupts import Interrupts
from dotadd._util.wording import duration, number
from dotadd.estimators.course import AnyCourse, Ends

AFTER, EVERY = 1.0, 0.25  # seconds before the line appears, and between two changes of it
P = ParamSpec("P")
T = TypeVar("T")


class Shell(Protocol):
    """The IPython shell of a notebook, as far as it is asked."""

    execution_count: int


class NotebookLine:
    """A bar and words, for notebooks and for programs that read text alone."""

    def __init__(self, share: float, words: str) -> None:
        self.share, self.words = share, words

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self.share:.4f}" max="1"></progress>'
        return f'<div style="font-family: monospace; white-space: pre-wrap">{bar} {escape(self.words)}</div>'


class CellLine:
    """Where lines are shown: one place for each cell."""

    def __init__(self) -> None:
        self.cell: tuple[int, str] | None = None
        self.fits, self.there, self.numbers = 0, False, count(1)

    def begin(self, shell: Shell) -> None:
        """Another fit is to be shown."""
        if self.cell is None or self.cell[0] != shell.execution_count:
            self.fits, self.there, self.cell = (
                0,
                False,
                (shell.execution_count, f"dotadd-{time.time_ns()}-{next(self.numbers)}"),
            )
        self.fits += 1

    def show(self, line: NotebookLine) -> None:
        from IPython.display import display

        assert self.cell is not None
        if self.fits > 1:
            line = NotebookLine(line.share, f"fit {self.fits} of this cell: {line.words}")
        display(line, display_id=self.cell[1], update=self.there)
        self.there = True


CELL = CellLine()


def notebook() -> Shell | None:
    """The shell, where this runs in a kernel of Jupyter; None on a terminal, and in plain Python."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return cast(Shell, shell) if hasattr(shell, "kernel") else None


class NotebookBar:
    """Told of progress, it shows the course of a fit."""

    def __init__(self, title: str, course: AnyCourse, shell: Shell) -> None:
        self.title, self.course, self.shell = title, course, shell
        self.began = time.monotonic()
        self.last: float | None = None
        self.broken = False

    @classmethod
    def of(cls, svm: object, kind: type[AnyCourse]) -> Self | None:
        """For a fit of this estimator, in a notebook."""
        shell = notebook()
        if shell is None:
            return None
        limits = Ends(getattr(svm, "tol", 0.0), getattr(svm, "max_passes", None), getattr(svm, "max_time", None))
        return cls(type(svm).__name__, kind(limits), shell)

    def __call__(self, progress: object, which: int, problems: int) -> None:
        self.course.note(progress, which, problems)
        now = time.monotonic()
        if now - self.began >= AFTER and (self.last is None or now - self.last >= EVERY):
            if self.last is None:
                CELL.begin(self.shell)
            self.last = now
            self.show(self.course.done(), self.course.line())

    def end(self, words: str) -> None:
        """The last state, where any was shown."""
        if self.last is not None:
            self.show(1.0, f"{words}  {duration(time.monotonic() - self.began)}")

    def show(self, share: float, words: str) -> None:
        """A display that fails is not tried again, and ends no training."""
        try:
            if not self.broken:
                CELL.show(NotebookLine(share, f"{self.title}: {words}"))
        except Exception:
            self.broken = True


def followed(kind: type[AnyCourse]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A `fit` that shows its course in notebooks, unless it is given an `on_progress`; and that Ctrl-C, or the
    interruption of a kernel, ends early, but with everything kept: only then it is raised again."""

    def around(fit: Callable[P, T]) -> Callable[P, T]:
        @wraps(fit)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            bar = None if kwargs.get("on_progress") is not None else NotebookBar.of(args[0], kind)
            if bar is not None:
                kwargs["on_progress"] = bar
            try:
                with Interrupts() as interrupts:
                    done = fit(*args, **kwargs)
                if interrupts.raised is not None:
                    raise interrupts.raised
            except BaseException as error:
                if bar is not None:
                    stopped = isinstance(error, KeyboardInterrupt)
                    kept = "; the model so far is kept" * hasattr(args[0], "result_")
                    bar.end(ended(args[0]) + kept if stopped else "ended by an error")
                raise
            if bar is not None:
                bar.end(ended(args[0]))
            return done

        return run

    return around


def ended(svm: object) -> str:
    """What was found, in words."""
    results = getattr(svm, "result_", None)
    if results is None:
        return "training ended before there was a model"
    several = results if isinstance(results, list) else [results]
    gaps = [result.gap for result in several if result.gap is not None]
    gap = f", gap {number(max(gaps), 3)}" if gaps else ""
    reason = next((result.reason.value for result in several if not result.converged), several[0].reason.value)
    return f"{reason}{gap}"
