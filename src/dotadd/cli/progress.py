"""What a person sees while a solver runs: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import json
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Self, TextIO, cast

from dotadd._util.forgiving import Forgiving
from dotadd._util.interrupts import SIGNALS
from dotadd.cli.screen import duration, tell
from dotadd.errors import printable
from dotadd.estimators.time_left import Rate, left_text

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from dotadd.estimators.course import AnyCourse
    from dotadd.kernel_svm.problem import KernelProgress
    from dotadd.model.file import Record
    from dotadd.solvers.result import Progress

LINE, LINE_INSIDE = 1.0, 10.0  # seconds between plain lines, and between those that tell of the same pass
SPACING = 0.2  # of the time since the start, between plain lines: an hour is told in forty, and a day in sixty
BAR = 0.2  # seconds between moves of the bar
STILL = 3.0  # seconds without a word, after which the bar counts them: one step may take long


def started_bar(title: str, total: float | None) -> tuple[Bars, TaskID]:
    """A bar on the terminal, and the task that it shows."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Still(ProgressColumn):
        """For how long nothing was told."""

        def render(self, task: Task) -> Text:
            still = time.monotonic() - task.fields["told"]
            return Text(f"for {duration(still)} now" if still >= STILL else "")

    console, text = Console(stderr=True), TextColumn("{task.description}", markup=False)
    bar = Bars(BarColumn(24 if console.width >= 100 else 10), Still(), text, console=console, transient=True)
    task = bar.add_task(title, total=total, told=time.monotonic())
    bar.start()
    return bar, task


class Watch:
    """Told of the progress of training by `fit`, it shows its course: a bar or plain lines, and a log. Signals end
    training while it is entered."""

    def __init__(self, title: str, course: AnyCourse, *, log: TextIO | None, quiet: bool) -> None:
        self.course, self.log, self.quiet, self.title = course, log, quiet, printable(title)
        self.bar: Bars | None = None
        self.opened = self.last_shown = time.monotonic()
        self.told = self.stopping = False
        self.exit_code = 130  # of a command that was interrupted

    def __call__(self, progress: Progress | KernelProgress, which: int, problems: int) -> None:
        self.course.note(progress, which, problems)
        if self.log is not None and not self.course.inside:
            write_json_line(self.log, {self.course.counted: which, **progress._asdict()})
        if not self.quiet:
            self.show()
        self.told = True

    def show(self) -> None:
        """The bar moves a few times a second; where there is none, a plain line appears now and then."""
        if not self.due(time.monotonic(), LINE_INSIDE if self.course.inside else LINE, BAR if self.told else 0.0):
            return
        if self.bar is not None:
            now, done = time.monotonic(), self.course.done()
            self.bar.update(self.task, description=self.line(), total=1.0, completed=done, told=now)
        else:
            tell(self.line())
        self.last_shown = time.monotonic()

    def line(self) -> str:
        return self.course.line()

    def __enter__(self) -> Self:
        handlers = {which: signal.getsignal(which) for which in SIGNALS}
        self.before = {which: handler for which, handler in handlers.items() if callable(handler)}
        for which in self.before:
            signal.signal(which, self.interrupt)
        if not self.quiet and sys.stderr.isatty():
            from dotadd._jit import NOTICE

            self.bar, self.task = started_bar(f"{self.title}: {self.course.beginning}", None)
            self.notice, NOTICE.show = NOTICE.show, self.compiling
        return self

    def __exit__(self, *_: object) -> None:
        for which, handler in self.before.items():
            signal.signal(which, handler)
        if self.bar is not None:
            from dotadd._jit import NOTICE

            NOTICE.show = self.notice
            self.bar.stop()

    def compiling(self, what: str) -> None:
        """What the compiler is at, in place of how far training is."""
        if self.bar is not None:
            self.bar.update(self.task, description=f"{self.title}: {what or self.course.beginning}")

    def interrupt(self, which: int, frame: FrameType | None) -> None:
        """The first Ctrl-C ends training, which then measures the gap; a second one ends that too."""
        self.exit_code = 128 + which
        if self.told and self.course.keeps and not self.stopping:  # there is a model so far
            self.stopping = True
            measuring = ", and measuring how good the model so far is; Ctrl-C again to leave that out"
            self.say("stopping" + measuring * (which == signal.SIGINT))
        self.before[which](which, frame)

    def due(self, now: float, plain: float, bar: float = 0.0) -> bool:
        """Whether the screen has stood still long enough: so many seconds where there is a bar; or for plain lines,
        which are fewer and fewer as time goes by."""
        still = now - self.last_shown
        return still >= bar if self.bar is not None else still >= max(plain, SPACING * (now - self.opened))

    def announce(self, message: str) -> None:
        """A line for people who want to know what is going on."""
        if not self.quiet:
            self.say(message)

    def say(self, message: str) -> None:
        """A line on stderr, above the bar if there is one."""
        if self.bar is not None:
            said = f"dotadd: {printable(message)}"
            self.bar.console.print(said, markup=False, highlight=False, soft_wrap=True)
        else:
            tell(message)


def opened_log(path: str, mode: str) -> TextIO:
    """The file for such lines. If it cannot be written to any more, that is told once, and training goes on."""

    def failed(why: str) -> None:
        tell(f"{path}: the log cannot be written: {why}; training goes on without it")

    return cast(TextIO, Forgiving(open(path, mode, encoding="utf-8"), failed))


def write_json_line(file: TextIO, record: Record) -> None:
    """One JSON object on a line of its own, at once on disk; numbers that are not finite become null."""
    from dotadd.model.file import jsonable

    file.write(json.dumps(jsonable(record), allow_nan=False) + "\n")
    file.flush()


FIRST, AGAIN = 1.0, 10.0  # seconds before the bar appears, and between two plain lines


class Bar:
    """Call it with the share that is done, from 0 to 1."""

    def __init__(self, title: str) -> None:
        self.title = printable(title)
        self.bar: Bars | None = None

    def __enter__(self) -> Self:
        self.rate, self.last_line = Rate(), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, share: float) -> None:
        self.rate.note(share)
        now, spent = time.monotonic(), self.rate.spent
        if not sys.stderr.isatty():
            if now - self.last_line >= max(AGAIN, SPACING * spent):
                self.last_line = now
                tell(self.line(share))
            return
        if self.bar is None:
            if spent < FIRST:
                return
            self.bar, self.task = started_bar(self.title, 1.0)
        self.bar.update(self.task, description=self.line(share), completed=share, told=now)

    def line(self, share: float) -> str:
        left = left_text(self.rate.left()) if share < 1 else ""
        return f"{self.title} {share:.0%}  {duration(self.rate.spent)}{left}"
