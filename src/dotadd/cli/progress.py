"""What a person sees while a solver runs: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from dotadd.cli.screen import duration, number

if TYPE_CHECKING:
    from dotadd.solvers.result import Progress

TREND = 10  # passes that the estimate of the time left looks back on


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


class Watch:
    """Called after each pass of each binary problem; keeps the log and the screen up to date."""

    def __init__(
        self, title: str, *, tol: float, max_passes: int, max_time: float | None, log: TextIO | None, quiet: bool
    ) -> None:
        self.tol, self.max_passes, self.max_time, self.log = tol, max_passes, max_time, log
        self.trends: dict[int, list[tuple[float, float]]] = {}
        self.sample: int | None = None
        self.quiet, self.title = quiet, title
        self.bar: Any = None
        self.last_line = time.monotonic()

    def __enter__(self) -> Watch:
        self.before = signal.signal(signal.SIGINT, self.interrupt)
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            text = TextColumn("{task.description}", markup=False)
            self.bar = Bar(BarColumn(24), text, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(f"{self.title}: reading, first pass", total=None)
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)
        if self.bar is not None:
            self.bar.stop()

    def interrupt(self, *_: object) -> None:
        """The first Ctrl-C ends training, which then measures the gap; a second one ends that too."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        said = "dotadd: stopping, and measuring how good the model so far is; Ctrl-C again to leave that out\n"
        if self.bar is not None:
            self.bar.console.print(said, end="", markup=False)
        else:
            sys.stderr.write(said)
        raise KeyboardInterrupt

    def __call__(self, progress: Progress, which: int, classes: int) -> None:
        if progress.sample != self.sample:  # another problem, whose gap says nothing about that of the last
            self.sample = progress.sample
            self.trends.clear()
        self.trends.setdefault(which, []).append((progress.seconds, progress.gap))
        if self.log is not None:
            record = {"class": which, **progress._asdict()}
            write_json_line(self.log, record)
        if self.quiet:
            return
        if self.bar is not None:
            self.bar.update(self.task, description=self.line(progress), total=1.0, completed=self.done())
        elif time.monotonic() - self.last_line >= 1.0:
            self.last_line = time.monotonic()
            sys.stderr.write(f"dotadd: {self.line(progress)}\n")

    def line(self, progress: Progress) -> str:
        """The state of the slowest binary problem, in words."""
        gap = max((trend[-1][1] for trend in self.trends.values()), default=math.nan)
        text = f"pass {progress.passes}  objective {number(progress.primal)}  gap {number(gap, 3)}"
        if progress.sample is not None:
            text += f"  of {progress.sample:,} rows so far"
        left = self.left(progress)
        text += f"  {duration(progress.seconds)}"
        if left is None:
            return text
        return f"{text}, about {duration(left)} left" if left >= 1 else f"{text}, less than 1 s left"

    def left(self, progress: Progress) -> float | None:
        """Seconds until the slowest problem is there, or a limit strikes; None if nobody can tell."""
        if progress.sample is not None:
            return None if self.max_time is None else max(0.0, self.max_time - progress.seconds)
        trends = self.trends.values()
        estimates = [0.0 if trend[-1][1] <= self.tol else seconds_left(trend, self.tol) for trend in trends]
        limits = [progress.seconds / progress.passes * (self.max_passes - progress.passes)] if progress.passes else []
        if self.max_time is not None:
            limits.append(self.max_time - progress.seconds)
        known = [left for left in estimates if left is not None]
        if len(known) == len(estimates):
            limits.append(max(known))
        elif self.max_time is None and self.max_passes > 2 * progress.passes:
            return None  # a limit so far off says nothing
        return max(0.0, min(limits)) if limits else None

    def done(self) -> float:
        """Share of the way from the first gap to the tolerance, on a logarithmic scale, of the slowest problem."""
        if self.sample is not None:
            return 0.0
        shares = [
            math.log(trend[0][1] / trend[-1][1]) / math.log(trend[0][1] / self.tol)
            for trend in self.trends.values()
            if trend[0][1] > self.tol > 0 and trend[-1][1] > 0
        ]
        return min(1.0, max(0.0, min(shares, default=0.0)))


def write_json_line(file: TextIO, record: dict[str, Any]) -> None:
    """One JSON object on a line of its own, at once on disk; numbers that are not finite become null."""
    from dotadd.model import jsonable

    file.write(json.dumps(jsonable(record), allow_nan=False) + "\n")
    file.flush()
