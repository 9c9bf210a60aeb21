"""Background of peaks: windows drawn at random that have the same length, GC and repeats as the peaks have.

Shares of G and C, and of small letters (repeats), are cut into bins of 0.02. Each peak wants so many windows of its own
bin. Places are drawn at random and taken by a peak that still wants one, as gkmSVM's genNullSeqs does; those that lie
on a peak, on an excluded place, on an N or on one that was taken are passed over. When a sweep (a place for each window
that has room on the sequence) helps next to nobody, the peaks that are left take windows of the bins around theirs, one
step of 0.02 further each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.genome.bed import overlaps

BINS = 50  # a share of 1 alone has one more
STEPS = 3  # distances of bins that are tried: beyond them GC alone would tell peaks from background
LONGEST = 1 << 17  # letters of a window
_SWEEP, _SWEEPS = 1 << 15, 20  # places of a sweep at least, and how many sweeps a step has
_FEW = 50  # a sweep that helps fewer than one of so many ends a step
_BATCH, _LETTERS = 1 << 18, 1 << 28  # places, and letters, that are looked at between two looks at the keyboard
_REPEAT, _UNKNOWN = 21, 42  # bits from which on small letters and others than ACGT are counted

_COUNTS = np.full(256, 1 << _UNKNOWN, np.int64)
for _letter in b"ACGTacgt":
    _COUNTS[_letter] = (_letter in b"CGcg") + ((_letter >= ord("a")) << _REPEAT)


@dataclass(frozen=True)
class Composition:
    """For each window the letters that are G or C, those that are small, and those that are none of ACGT."""

    gc: np.ndarray
    repeats: np.ndarray
    unknown: np.ndarray

    def bins(self, length: int) -> np.ndarray:
        """The bin of each window, by GC and then by repeats."""
        return self.gc * BINS // length * (BINS + 1) + self.repeats * BINS // length


def composition(letters: np.ndarray, first: np.ndarray, length: int) -> Composition:
    """Count the letters of windows, which lie on the sequence."""
    counts, step = np.empty(len(first), np.int64), max(1, _LETTERS // length)
    for row in range(0, len(first), step):
        _count(plain(letters), plain(first[row : row + step]), length, _COUNTS, counts[row : row + step])
    mask = (1 << _REPEAT) - 1
    return Composition(counts & mask, (counts >> _REPEAT) & mask, counts >> _UNKNOWN)


@dataclass(frozen=True)
class Matched:
    """Windows by their first letters, which of the peaks each belongs to, and in which step it was found."""

    first: np.ndarray
    peak: np.ndarray
    step: np.ndarray


def matched(
    letters: np.ndarray,
    peaks: np.ndarray,
    length: int,
    each: int,
    spans: np.ndarray,
    blocked: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
) -> Matched:
    """Up to `each` windows for each of the windows that begin at `peaks`, sorted. They lie in one of the `spans` (rows
    of first letter and stop), share no letter with each other and none with what is blocked."""
    each = min(each, len(letters) // length + 1)  # more have no room
    wanted = len(peaks) * each  # number n is of peak n % len(peaks), so that each has one before any has two
    open_ = _Open(np.tile(composition(letters, peaks, length).bins(length), each))
    room = np.maximum(0, spans[:, 1] - spans[:, 0] - length + 1)
    before = np.concatenate([[0], np.cumsum(room)])
    found, step = np.full(wanted, -1, np.int64), np.zeros(wanted, np.int64)
    taken = np.full(len(letters) // length + 3, -1, np.int64)  # windows do not overlap: at most one begins in a cell
    sweep = max(_SWEEP, int(before[-1]) // length)
    for distance in range(STEPS if before[-1] else 0):
        for _ in range(_SWEEPS):
            left, done = open_.count, 0
            while open_.count and done < sweep:
                size = min(_BATCH, sweep - done, max(4096, 8 * open_.count))
                done += size
                drawn = rng.integers(0, before[-1], size)
                span = np.searchsorted(before, drawn, side="right") - 1
                first = spans[span, 0] + drawn - before[span]
                first = first[~overlaps(*blocked, first, length)]
                looks = composition(letters, first, length)
                known = looks.unknown == 0
                of = looks.bins(length)[known]
                helped = _take(first[known], of, length, distance, open_.heads, open_.nexts, taken, found)
                open_.count -= helped
            step[(found >= 0) & (step == 0)] = distance + 1
            if not open_.count or (left - open_.count) * _FEW <= left:
                break
    got = np.flatnonzero(found >= 0)
    got = got[np.argsort(found[got])]
    return Matched(found[got], got % max(1, len(peaks)), step[got] - 1)


class _Open:
    """What is still wanted: for each bin a list, whose first is in `heads` and the one after n in `nexts[n]`."""

    def __init__(self, bins: np.ndarray) -> None:
        self.count = len(bins)
        self.heads = np.full((BINS + 1) ** 2, -1, np.int64)
        self.nexts = np.full(len(bins), -1, np.int64)
        order = np.argsort(bins, kind="stable")
        of = bins[order]
        first = np.ones(len(of), np.bool_)
        first[1:] = of[1:] != of[:-1]
        self.heads[of[first]] = order[first]
        self.nexts[order[:-1]] = np.where(first[1:], -1, order[1:])


@kernel
def _count(letters, first, length, table, counts):
    for row in range(len(first)):
        begin = np.uint64(first[row])
        count = np.int64(0)
        for k in range(np.uint64(length)):
            count += table[letters[begin + k]]
        counts[row] = count


@kernel
def _take(places, bins, length, distance, heads, nexts, taken, found):
    """Give each place, in this order, to somebody of the nearest bin that wants one; how many were given."""
    side = np.int64(BINS + 1)
    given = np.int64(0)
    for row in range(len(places)):
        place, gc, repeats = places[row], bins[row] // side, bins[row] % side
        best, nearest = np.int64(-1), distance + 1
        for a in range(max(0, gc - distance), min(side, gc + distance + 1)):
            for b in range(max(0, repeats - distance), min(side, repeats + distance + 1)):
                away = max(abs(a - gc), abs(b - repeats))
                if away < nearest and heads[a * side + b] >= 0:
                    best, nearest = a * side + b, away
        if best < 0:
            continue
        cell = place // length + 1
        if taken[cell] >= 0 or (taken[cell - 1] >= 0 and taken[cell - 1] + length > place) or (
            taken[cell + 1] >= 0 and taken[cell + 1] < place + length
        ):  # fmt: skip
            continue
        taken[cell] = place
        wanting = heads[best]
        heads[best] = nexts[wanting]
        found[wanting] = place
        given += 1
    return given
