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
SHARE = 1e-3  # of counted work, after which it is noted again


class Trend:
    """The gap of one problem over time, down to a tolerance. What falls and rises counts as the lowest that it was."""

    def __init__(self, tol: float) -> None:
        self.tol = math.log(tol) if tol > 0 else -math.inf
        self.first: float | None = None
        self.last = 0.0  # seconds at which the latest gap was told
        self.points: list[tuple[float, float]] = []  # seconds, and the logarithm of a gap lower than all before

    def note(self, seconds: float, gap: float) -> None:
        self.last = seconds
        if gap <= 0.0:
            gap = math.exp(max(self.tol, -700.0))
        if not math.isfinite(gap):
            return
        log = math.log(gap)
        self.first = log if self.first is None else self.first
        if not self.points or log < self.points[-1][1]:
            self.points.append((seconds, log))

    def left(self, now: float) -> float | None:
        """Seconds until the gap reaches the tolerance if its logarithm goes on falling as it did; None before it has
        halved, or if it does not fall. What was said last runs down until the next gap is told."""
        if not self.points or self.points[-1][1] > HALF:
            return None
        _, lowest = self.points[-1]
        if lowest <= self.tol:
            return 0.0
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

    def left(self) -> float | None:
        """Seconds; None before anything is done. What was said last runs down until more is done."""
        at, share = self.latest
        if share <= 0.0:
            return None
        before, earlier = self.points[bisect_right(self.points, share / 2, key=lambda point: point[1]) - 1]
        left = (1.0 - share) * (at - before) / (share - earlier)
        return max(0.0, left - (self.spent - at))


def left_text(left: float | None) -> str:
    """Of seconds, behind what is told."""
    if left is None:
        return ""
    return f", about {duration(left)} left" if left >= 1 else ", less than 1 s left"
