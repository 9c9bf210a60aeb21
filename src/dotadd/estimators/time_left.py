"""How long work will still take: a gap falls by about the same factor in the same time, and counted work goes on at the
rate of its latest part. `benchmarks/time_left.py` holds what is said against what came true."""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right

from dotadd._util.wording import duration

HALF = math.log(0.5)  # while the gap is near 1 its logarithm hardly moves, however fast the solver is
FALL = 2.0  # the trend is that of the time in which the logarithm of the gap fell by so much: longer looks too far back
#             where passes become slower or faster, shorter follows every stumble of a gap that does not fall steadily
RISE = math.log(3.0)  # a gap that jumps up by so much is that of another solver, or was too rosy: a trend begins anew
FORESEEN, LATE, STEEPEST = 0.4, 0.2, 10 * math.log(2.0)  # of all fits, before; of those that are done; twice a tenth
SHARE = 1e-3  # of counted work, after which it is noted again


class Trend:
    """The gap of one problem over time, down to a tolerance. What falls and rises counts as the lowest that it was."""

    def __init__(self, tol: float) -> None:
        self.tol = math.log(tol) if tol > 0 else -math.inf
        self.first: float | None = None
        self.last = 0.0  # seconds at which the latest gap was told
        self.points: list[tuple[float, float]] = []  # seconds, and the logarithm of a gap lower than all before
        self.reached = 0  # how often it was within the tolerance
        self.step: tuple[float, float, float] | None = None  # that goes on: since when, seconds and share of the latest

    def within(self, seconds: float, share: float) -> None:
        """A step that takes long, and ends it or begins another trend, is done so far."""
        since = seconds if self.step is None or share == 0.0 else self.step[0]
        self.step = (since, seconds, share)

    def note(self, seconds: float, gap: float) -> None:
        self.last = seconds
        if gap <= 0.0:
            gap = math.exp(max(self.tol, -700.0))
        if not math.isfinite(gap):
            return
        log = math.log(gap)
        if self.step is not None or (self.points and log > self.points[-1][1] + RISE):
            self.step, self.points = None, []
        self.first = log if self.first is None else self.first
        self.reached += log <= self.tol
        if not self.points or log < self.points[-1][1]:
            self.points.append((seconds, log))

    def left(self, now: float) -> float | None:
        """Seconds until the gap reaches the tolerance if its logarithm goes on falling as it did; None before it has
        halved, or if it does not fall. What was said last runs down until the next gap is told."""
        if self.step is not None:
            since, at, share = self.step
            return max(0.0, (1.0 - share) * (at - since) / share - (now - at)) if share else None
        if not self.points or self.points[-1][1] > HALF:
            return None
        _, lowest = self.points[-1]
        if lowest <= self.tol:
            return 0.0 if self.reached == 1 else None  # it was too rosy, as the proof has said
        since = bisect_left(self.points, -(lowest + FALL), key=lambda point: -point[1])
        at, log = self.points[min(since, len(self.points) - 2)] if len(self.points) > 1 else self.points[0]
        if log <= lowest or self.last <= at or self.tol == -math.inf:
            return None
        left = (lowest - self.tol) * (self.last - at) / (log - lowest)
        return max(0.0, left - (now - self.last))

    def share(self) -> float:
        """Of the way from the first gap to the tolerance, on a logarithmic scale."""
        if self.first is None or not self.first > self.tol > -math.inf:
            return 0.0
        return min(1.0, max(0.0, (self.first - self.points[-1][1]) / (self.first - self.tol)))


class Rate:
    """Counted work, told as the share that is done. It goes on as fast as the latest half of what is done was: what
    comes before the first piece is not for ever, and later pieces may be harder than earlier ones."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.latest = (0.0, 0.0)  # seconds, and the share that was done
        self.points = [self.latest]

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    def note(self, share: float) -> None:
        if share > self.latest[1]:
            self.latest = (self.spent, share)
            if len(self.points) == 1 or share > self.points[-1][1] + SHARE:
                self.points.append(self.latest)

    def at(self, share: float) -> float:
        """The seconds at which so much was done, in a straight line between what was noted."""
        behind = min(bisect_right(self.points, share, key=lambda point: point[1]), len(self.points) - 1)
        (before, earlier), (after, later) = self.points[behind - 1], self.points[behind]
        return before + (after - before) * min(1.0, (share - earlier) / (later - earlier))

    def left(self) -> float | None:
        """Seconds; None before anything is done. What was said last runs down until more is done."""
        at, share = self.latest
        if share <= 0.0:
            return None
        before, earlier = self.points[bisect_right(self.points, share / 2, key=lambda point: point[1]) - 1]
        left = (1.0 - share) * (at - before) / (share - earlier)
        return max(0.0, left - (self.spent - at))


class Fits(Rate):
    """Fits along a path of C. Those of large C come last and take longest: how much longer is not known before so many
    are done. Then two guesses, of which one is mostly too high and the other too low, are averaged: each piece takes
    longer than the one before by the same factor as of late, and what is done grows as a power of the time."""

    def left(self) -> float | None:
        at, share = self.latest
        if share < FORESEEN:
            return None
        width = 0.5 * LATE * share
        half, before, earlier, now = map(self.at, (0.5 * share, share - 2 * width, share - width, share))
        if not half < before < earlier < now:
            return super().left()
        slope = min(max(math.log((now - earlier) / (earlier - before)) / width, 1e-6), STEEPEST)
        factor = math.exp(0.5 * slope * width) * math.expm1(slope * (1.0 - share)) / slope
        power = max(1.0, math.log2(now / half))
        left = math.sqrt((now - earlier) / width * factor * now * (share**-power - 1.0))
        return max(0.0, left - (self.spent - at))


def left_text(left: float | None) -> str:
    """Of seconds, behind what is told."""
    if left is None:
        return ""
    return f", about {duration(left)} left" if left >= 1 else ", less than 1 s left"
