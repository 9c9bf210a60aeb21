"""How far training has come, as a line for people: what terminals and notebooks show alike.

A solver tells its progress; a Course notes it, and answers with a line, the share of the way that lies behind, and the
seconds that are left (`time_left.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple, cast

from dotadd._util.wording import duration, number
from dotadd.estimators.time_left import Fits, Rate, Trend, left_text

if TYPE_CHECKING:
    from dotadd.kernel_svm.problem import KernelProgress
    from dotadd.solvers.result import Progress


class Ends(NamedTuple):
    """What ends training."""

    tol: float
    max_passes: int | None = None
    max_time: float | None = None


class Course:
    """The course of linear machines, told after each pass of each binary problem, and now and then within the long
    passes over data that is read from disk."""

    counted, keeps = "class", True  # what a number is the number of, in a log; whether Ctrl-C leaves a model

    def __init__(self, limits: Ends, unit: str = "pass") -> None:
        self.limits, self.unit = limits, unit
        self.trends: dict[int, Trend] = {}
        self.gaps: dict[int, float] = {}
        self.points: list[tuple[float, float]] = []  # passes that are over, and the seconds that they took
        self.tail_since, self.tails = math.nan, 0.0  # when the tail that goes on has begun, and seconds in all of them
        self.latest: Progress | None = None

    def note(self, told: object, which: int, problems: int) -> None:
        progress = cast("Progress", told)
        before, self.latest = self.latest, progress
        if before is not None and progress.sample != before.sample:  # another problem, whose gap says nothing of this
            self.trends.clear()
            self.gaps.clear()
        if progress.tail is not None:
            self.tail_since = progress.seconds if before is None or before.tail is None else self.tail_since
            self.trends.setdefault(which, Trend(self.limits.tol)).within(progress.seconds, progress.tail)
            return
        if before is not None and before.tail is not None:
            self.tails += progress.seconds - self.tail_since
        if not self.points and progress.passes <= 1 and not self.inside:
            self.points.append(
                (0.0, 0.0)
            )  # but training that goes on from a checkpoint has passes that nobody saw here
        if not self.points or passed(progress) > self.points[-1][0]:
            self.points.append((passed(progress), progress.seconds - self.tails))
        if which not in self.gaps or progress.gap == progress.gap:
            self.gaps[which] = progress.gap
        if not self.inside:
            self.trends.setdefault(which, Trend(self.limits.tol)).note(progress.seconds, progress.gap)

    @property
    def beginning(self) -> str:
        """What there is to say before anything is told."""
        return f"reading, first {self.unit}"

    @property
    def inside(self) -> bool:
        """Whether a pass goes on; those over data on disk are so long that they tell, as a tail is."""
        latest = self.latest
        return latest is not None and (latest.tail is not None or (latest.read is not None and latest.read < 1.0))

    def line(self) -> str:
        """The state of the slowest binary problem, in words."""
        progress = self.latest
        assert progress is not None
        gap = number(max(self.gaps.values(), default=math.nan), 3)
        if progress.read is None:
            text = f"{self.unit} {progress.passes}  objective {number(progress.primal)}  gap {gap}"
        else:
            text = f"pass {progress.passes}, {progress.read:.0%} read  gap ~{gap}"
        if progress.tail is not None:
            text += f"  all active rows at once {progress.tail:.0%}"
        if progress.sample is not None:
            text += f"  of {progress.sample:,} rows so far"
        text += f"  {duration(progress.seconds)}{left_text(self.left())}"
        return text if progress.cached is None else f"{text}  {progress.cached:,} rows in memory"

    def left(self) -> float | None:
        """Seconds until the slowest problem is there, or a limit strikes; None if nobody can tell.

        Trends are made of whole passes. Within one, what they said at its start runs down, but never below the rest of
        the pass, for nothing ends before that.
        """
        progress, (_, max_passes, max_time) = self.latest, self.limits
        assert progress is not None
        if progress.sample is not None:
            return None if max_time is None else max(0.0, max_time - progress.seconds)
        if progress.tail is not None:
            max_passes = None  # it counts as a pass, and may take longer than all others
        passes, (first_pass, first_second), (last, seconds) = passed(progress), self.points[0], self.points[-1]
        half = bisect_right(self.points, (first_pass + last) / 2, key=lambda point: point[0]) - 1
        before, earlier = self.points[half]  # later passes are often shorter: rows are left out
        pace = (seconds - earlier) / (last - before) if last > before else 0.0
        limits = [pace * (max_passes - passes)] if pace and max_passes is not None else []
        if max_time is not None:
            limits.append(max_time - (progress.seconds - first_second))
        estimates = [trend.left(progress.seconds) for trend in self.trends.values()]
        known = [left for left in estimates if left is not None]
        if known and len(known) == len(estimates):
            limits.append(max(*known, pace * (progress.passes - passes)))
        elif max_time is None and (max_passes is None or max_passes > max(1.0, 2.0 * passes)):
            return None  # a limit so far off says nothing
        return max(0.0, min(limits)) if limits else None

    def done(self) -> float:
        """Share of the pass where data is read from disk, as passes are long. Otherwise of the way from the first gap
        to the tolerance, on a logarithmic scale, of the slowest problem."""
        progress = self.latest
        assert progress is not None
        if progress.read is not None:
            return progress.read
        if progress.sample is not None:
            return 0.0
        return min((trend.share() for trend in self.trends.values()), default=0.0)


class KernelCourse:
    """The same for kernel machines, whose solvers tell every now and then; pairs of classes come one by one."""

    counted, keeps, inside = "problem", True, False
    beginning = "reading, first steps"

    def __init__(self, limits: Ends) -> None:
        self.limits, self.which, self.problems = limits, 0, 1
        self.trends: dict[int, Trend] = {}
        self.rate = Rate()
        self.latest: KernelProgress | None = None

    def note(self, told: object, which: int, problems: int) -> None:
        progress = cast("KernelProgress", told)
        self.latest, self.which, self.problems = progress, which, problems
        self.trends.setdefault(which, Trend(self.limits.tol)).note(progress.seconds, progress.violation)
        self.rate.note(self.done())

    def line(self) -> str:
        progress = self.latest
        assert progress is not None
        text = f"steps {progress.steps:,}  dual {number(progress.dual)}  violation {number(progress.violation, 3)}"
        text += f"  support vectors {progress.support:,}  {duration(progress.seconds)}{left_text(self.left())}"
        return text if self.problems == 1 else f"pair {len(self.trends)} of {self.problems}: {text}"

    def left(self) -> float | None:
        """Seconds until the violation is within the tolerance, or the time is over; pairs are counted."""
        progress, max_time = self.latest, self.limits.max_time
        assert progress is not None
        left = self.trends[self.which].left(progress.seconds) if self.problems == 1 else self.rate.left()
        rest = None if max_time is None else max(0.0, max_time - self.rate.spent)
        return min((one for one in (rest, left) if one is not None), default=None)

    def done(self) -> float:
        """Pairs are begun in an order of their own, and told of when they are."""
        return (len(self.trends) - 1 + self.trends[self.which].share()) / self.problems


class FoldsCourse:
    """The course of many fits, each told when it is done; but the last, on all rows, tells how far it is as ever."""

    counted, keeps, inside = "fit", False, False
    beginning = "reading, first fits"

    def __init__(self, limits: Ends) -> None:
        self.limits, self.most, self.fits = limits, 0, 1
        self.rate = Fits()
        self.last: Course | KernelCourse | None = None

    def note(self, told: object, which: int, fits: int) -> None:
        if which < self.most:  # told again: this is no fit that is done
            if self.last is None:
                self.last = (KernelCourse if hasattr(told, "violation") else Course)(
                    self.limits._replace(max_time=None)
                )
            self.last.note(told, which, fits)
            return
        self.most, self.fits = which + 1, fits
        self.rate.note(self.most / fits)

    def line(self) -> str:
        if self.last is not None:
            return f"on all rows: {self.last.line()}"
        return f"fit {self.most:,} of {self.fits:,}  {duration(self.rate.spent)}{left_text(self.left())}"

    def left(self) -> float | None:
        return self.rate.left() if self.last is None else self.last.left()

    def done(self) -> float:
        return self.most / self.fits


def passed(progress: Progress) -> float:
    """How many passes are over, and the share of the one that goes on, which `passes` counts already."""
    return progress.passes - 1 + (1.0 if progress.read is None else progress.read)


AnyCourse = Course | KernelCourse | FoldsCourse
