"""What a person sees while a solver runs: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Self, TextIO, cast

from dotadd._util.forgiving import Forgiving
from dotadd._util.interrupts import SIGNALS
from dotadd.cli.screen import duration, number, tell
from dotadd.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from dotadd.cli.options import Training
    from dotadd.kernel_svm.problem import KernelProgress
    from dotadd.model.file import Record
    from dotadd.solvers.result import Progress

TREND = 10  # passes that the estimate of the time left looks back on
LINE, LINE_INSIDE = 1.0, 10.0  # seconds between plain lines, and between those that tell of the same pass
SPACING = 0.2  # of the time since the start, between plain lines: an hour is told in forty, and a day in sixty
BAR_INSIDE = 0.2  # seconds between moves of the bar within a pass


def seconds_left(points: list[tuple[float, float]], tol: float) -> float | None:
    """When the gap will reach the tolerance if its logarithm goes on falling as it did; None if it does not fall.

    `points` are (seconds, gap). The slope is the least-squares line through the latest of them. While the gap is near 1
    its logarithm hardly moves, however fast the solver is, so nothing is said before it has halved.
    """
    if not points or points[-1][1] > 0.5:
        return None
    points = [(at, math.log(gap)) for at, gap in points[-TREND:] if gap > 0 and math.isfinite(gap)]
    if len(points) < 2 or tol <= 0:
        return None
    mean_at = sum(at for at, _ in points) / len(points)
    mean_log = sum(log for _, log in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    slope = sum((at - mean_at) * (log - mean_log) for at, log in points) / spread if spread else 0.0
    return max(0.0, (points[-1][1] - math.log(tol)) / -slope) if slope < 0 else None


def inside(progress: Progress) -> bool:
    """Whether this tells of a pass that goes on; those over data on disk are so long that they do."""
    return progress.read is not None and progress.read < 1.0


def passed(progress: Progress) -> float:
    """How many passes are over, and the share of the one that goes on, which `passes` counts already."""
    return progress.passes - 1 + (1.0 if progress.read is None else progress.read)


def started_bar(title: str, total: float | None) -> tuple[Bars, TaskID]:
    """A bar on the terminal, and the task that it shows."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    console, text = Console(stderr=True), TextColumn("{task.description}", markup=False)
    bar = Bars(BarColumn(24 if console.width >= 100 else 10), text, console=console, transient=True)
    task = bar.add_task(title, total=total)
    bar.start()
    return bar, task


class Attendant:
    """What watches over training of any kind have in common: the bar, and signals that end training."""

    def __init__(self, title: str, solving: Training, *, log: TextIO | None, quiet: bool) -> None:
        self.tol, self.max_passes, self.max_time, self.log = solving.tol, solving.max_passes, solving.max_time, log
        self.trends: dict[int, list[tuple[float, float]]] = {}
        self.gaps: dict[int, float] = {}
        self.first: tuple[float, float] | None = None
        self.sample: int | None = None
        self.quiet, self.title, self.unit = quiet, printable(title), "pass"
        self.bar: Bars | None = None
        self.opened = self.last_shown = time.monotonic()
        self.stopping = False
        self.exit_code = 130  # of a command that was interrupted

    def __enter__(self) -> Self:
        handlers = {which: signal.getsignal(which) for which in SIGNALS}
        self.before = {which: handler for which, handler in handlers.items() if callable(handler)}
        for which in self.before:
            signal.signal(which, self.interrupt)
        if not self.quiet and sys.stderr.isatty():
            self.bar, self.task = started_bar(f"{self.title}: reading, first {self.unit}", None)
        return self

    def __exit__(self, *_: object) -> None:
        for which, handler in self.before.items():
            signal.signal(which, handler)
        if self.bar is not None:
            self.bar.stop()

    def interrupt(self, which: int, frame: FrameType | None) -> None:
        """The first Ctrl-C ends training, which then measures the gap; a second one ends that too."""
        self.exit_code = 128 + which
        if self.first is not None and not self.stopping:  # there is a model so far
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


class Watch(Attendant):
    """Called after each pass of each binary problem, and now and then within the long passes over data that is read
    from disk; keeps the log and the screen up to date."""

    def __call__(self, progress: Progress, which: int, classes: int) -> None:
        if progress.sample != self.sample:  # another problem, whose gap says nothing about that of the last
            self.sample = progress.sample
            self.trends.clear()
            self.gaps.clear()
        if self.first is None:  # training that goes on from a checkpoint has passes behind it that nobody saw here
            whole = progress.passes <= 1 and not inside(progress)
            self.first = (0.0, 0.0) if whole else (passed(progress), progress.seconds)
        if which not in self.gaps or progress.gap == progress.gap:
            self.gaps[which] = progress.gap
        if not inside(progress):
            self.trends.setdefault(which, []).append((progress.seconds, progress.gap))
            if self.log is not None:
                write_json_line(self.log, {"class": which, **progress._asdict()})
        if not self.quiet:
            self.show(progress)

    def show(self, progress: Progress) -> None:
        """The bar moves a few times a second; where there is none, a plain line appears now and then."""
        within = inside(progress)
        if not self.due(time.monotonic(), LINE_INSIDE if within else LINE, BAR_INSIDE if within else 0.0):
            return
        if self.bar is not None:
            self.bar.update(self.task, description=self.line(progress), total=1.0, completed=self.done(progress))
        else:
            tell(self.line(progress))
        self.last_shown = time.monotonic()

    def line(self, progress: Progress) -> str:
        """The state of the slowest binary problem, in words."""
        gap = number(max(self.gaps.values(), default=math.nan), 3)
        if progress.read is None:
            text = f"{self.unit} {progress.passes}  objective {number(progress.primal)}  gap {gap}"
        else:
            text = f"pass {progress.passes}, {progress.read:.0%} read  gap ~{gap}"
        if progress.sample is not None:
            text += f"  of {progress.sample:,} rows so far"
        left = self.left(progress)
        text += f"  {duration(progress.seconds)}"
        if left is not None:
            text += f", about {duration(left)} left" if left >= 1 else ", less than 1 s left"
        return text if progress.cached is None else f"{text}  {progress.cached:,} rows in memory"

    def left(self, progress: Progress) -> float | None:
        """Seconds until the slowest problem is there, or a limit strikes; None if nobody can tell.

        Trends are made of whole passes. Within one, what they said at its start runs down, but never below the rest of
        the pass, for nothing ends before that.
        """
        if progress.sample is not None:
            return None if self.max_time is None else max(0.0, self.max_time - progress.seconds)
        passes, (first_pass, first_second) = passed(progress), self.first or (0.0, 0.0)
        pace = (progress.seconds - first_second) / (passes - first_pass) if passes > first_pass else 0.0
        limits = [pace * (self.max_passes - passes)] if pace else []
        if self.max_time is not None:
            limits.append(self.max_time - (progress.seconds - first_second))
        trends = self.trends.values()
        estimates = [0.0 if trend[-1][1] <= self.tol else seconds_left(trend, self.tol) for trend in trends]
        known = [left for left in estimates if left is not None]
        if known and len(known) == len(estimates):
            ago = progress.seconds - max(trend[-1][0] for trend in trends)
            limits.append(max(max(known) - ago, pace * (progress.passes - passes)))
        elif self.max_time is None and self.max_passes > max(1.0, 2.0 * passes):
            return None  # a limit so far off says nothing
        return max(0.0, min(limits)) if limits else None

    def done(self, progress: Progress) -> float:
        """Share of the pass where data is read from disk, as passes are long. Otherwise of the way from the first gap
        to the tolerance, on a logarithmic scale, of the slowest problem."""
        if progress.read is not None:
            return progress.read
        if self.sample is not None:
            return 0.0
        shares = [
            math.log(trend[0][1] / trend[-1][1]) / math.log(trend[0][1] / self.tol)
            for trend in self.trends.values()
            if trend[0][1] > self.tol > 0 and trend[-1][1] > 0
        ]
        return min(1.0, max(0.0, min(shares, default=0.0)))


class KernelWatch(Attendant):
    """The same for kernel machines, whose solvers call it every now and then."""

    def __call__(self, progress: KernelProgress, which: int, problems: int) -> None:
        self.first = (0.0, 0.0)
        widest = self.trends.setdefault(which, [(progress.seconds, progress.violation)])[0][1]
        if self.log is not None:
            write_json_line(self.log, {"problem": which, **progress._asdict()})
        if self.quiet or not self.due(time.monotonic(), LINE, BAR_INSIDE):
            return
        self.last_shown = time.monotonic()
        text = f"steps {progress.steps:,}  dual {number(progress.dual)}  violation {number(progress.violation, 3)}"
        text += f"  support vectors {progress.support:,}  {duration(progress.seconds)}"
        if problems > 1:
            text = f"pair {which + 1} of {problems}: {text}"
        if self.bar is None:
            tell(text)
            return
        share = 0.0
        if widest > self.tol and progress.violation > 0.0:
            share = min(1.0, max(0.0, math.log(widest / progress.violation) / math.log(widest / self.tol)))
        self.bar.update(self.task, description=text, total=problems, completed=which + share)


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
        self.started = self.last_line = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty():
            if now - self.last_line >= max(AGAIN, SPACING * (now - self.started)):
                self.last_line = now
                tell(self.line(share, now))
            return
        if self.bar is None:
            if now - self.started < FIRST:
                return
            self.bar, self.task = started_bar(self.title, 1.0)
        self.bar.update(self.task, description=self.line(share, now), completed=share)

    def line(self, share: float, now: float) -> str:
        spent = now - self.started
        left = f", about {duration(max(1.0, spent / share - spent))} left" if 0 < share < 1 else ""
        return f"{self.title} {share:.0%}  {duration(spent)}{left}"
