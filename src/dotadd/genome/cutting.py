"""Where the two letters of a signal stand on a sequence, and the windows around them, on both strands.

A window has `length` letters, read in the direction of its strand; the signal's two come after the first `before`.
Reverse-complemented, AG reads CT and GT reads AC. So no two candidates of a signal share a letter, whatever their
strands, and the place of a candidate on the forward strand tells the strand.

Which windows are used: whole stretches of the genome are held out, and a sample of fixed size is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.errors import DotaddError
from dotadd.genome.files import Introns

SIGNALS = {"acceptor": (b"AG", b"CT"), "donor": (b"GT", b"AC")}  # on the strand itself, and on the other one
_N = ord("N")
STRETCH = 1_000_000  # letters that are held out together
_BLOCK = 1 << 20  # rows that are drawn from at a time


@dataclass
class Dropped:
    """Candidates without a window, by reason: a letter other than ACGT in it, the end of the sequence, a border."""

    unknown: int = 0
    off_end: int = 0
    border: int = 0


@dataclass(frozen=True)
class Cut:
    """The shape of the windows. `before` is by default that of COFFIN's acceptor windows, 59 of 141 letters, in
    proportion; donor windows are laid out the other way round."""

    signal: str
    length: int
    before: int
    every: bool = False
    """Whether every position is a candidate, on both strands."""

    @classmethod
    def of(cls, signal: str, length: int, before: int | None = None, *, every: bool = False) -> Cut:
        if signal not in SIGNALS:
            raise DotaddError(f"signal is {signal!r}; it has to be one of {', '.join(SIGNALS)}")
        whole_number("length", length, 2)
        if before is None:
            before = length * 59 // 141 if signal == "acceptor" else length - 2 - length * 59 // 141
            before = max(0, min(before, length - 2))
        whole_number("before", before, 0)
        if before + 2 > length:
            message = f"a window of {length} letters is too short for {before} letters and then the two of the signal"
            raise DotaddError(f"{message}; give a larger length or a smaller before")
        return cls(signal, length, before, every)

    def sites(self, introns: Introns, letters: np.ndarray) -> tuple[np.ndarray, int]:
        """The numbers of true sites, each once and sorted, twice where they stand from 0, and one more on the minus
        strand; and how many ends of introns do not read AG (GT)."""
        at_start = introns.minus if self.signal == "acceptor" else ~introns.minus
        places = np.where(at_start, introns.first - 1, introns.last - 2)
        ends = np.unique(np.stack([places, introns.minus], axis=1), axis=0)
        long = introns.last > introns.first  # an intron of one letter has no two letters at its end
        places, minus = places[long], introns.minus[long].astype(np.int64)
        first, second = (np.array([pair[k] for pair in SIGNALS[self.signal]])[minus] for k in (0, 1))
        reads = (letters[places] == first) & (letters[places + 1] == second)
        true = np.unique(2 * places[reads] + minus[reads])
        return true, len(ends) - len(true)

    def candidates(
        self, letters: np.ndarray, first: int, stop: int, low: int, high: int, dropped: Dropped
    ) -> tuple[np.ndarray, np.ndarray]:
        """Candidates that begin in first..stop-1 and whose windows lie in low..high-1: places, and whether minus."""
        room = 2 * (stop - first) if self.every else (stop - first) // 2 + 1
        places, minus, counts = np.empty(room, np.int64), np.empty(room, np.bool_), np.zeros(3, np.int64)
        plus_pair, minus_pair = (np.frombuffer(pair, np.uint8) for pair in SIGNALS[self.signal])
        shape = np.array([self.length, self.before, self.every], np.int64)
        span = np.array([first, stop, low, high], np.int64)
        count = _candidates(plain(letters), span, plain(plus_pair), plain(minus_pair), shape, places, minus, counts)
        dropped.unknown += int(counts[0])
        dropped.off_end += int(counts[1])
        dropped.border += int(counts[2])
        return places[:count], minus[:count]

    def starts(self, places: np.ndarray, minus: np.ndarray, base: int, size: int) -> np.ndarray:
        """Where the windows of these candidates begin in a text, which holds this sequence from `base` on."""
        forward = places - self.before
        return base + np.where(minus, 2 * size - 2 - 2 * self.before - forward, forward)

    def cut(self, letters: np.ndarray, places: np.ndarray, minus: np.ndarray, out: np.ndarray) -> None:
        """Write the windows of these candidates one after the other."""
        _cut(plain(letters), plain(places), plain(minus), self.length, self.before, out)


def cut_windows(letters: np.ndarray, first: np.ndarray, minus: np.ndarray, length: int) -> np.ndarray:
    """The windows that begin there on the forward strand one after the other, each read on its own strand."""
    out = np.empty(len(first) * length, np.uint8)
    _cut(plain(letters), np.where(minus, first + length - 2, first), plain(minus), length, 0, out)
    return out


def whole_number(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise DotaddError(f"{name} is {value!r}; it has to be a whole number, {least} or more")


@inner
def _has_unknown(letters, first, stop):
    for k in range(np.uint64(first), np.uint64(stop)):  # noqa: SIM110 (Numba has no any over a generator)
        if letters[k] == _N:
            return True
    return False


@kernel
def _candidates(letters, span, plus_pair, minus_pair, shape, places, minus, counts):
    """Fill places and minus, and count what is dropped; how many candidates remain.

    `seen` letters have been looked at, and the last unknown one among them stood at `last`. A window that begins behind
    it needs no second look, and almost all do.
    """
    first, stop, low, high = span
    length, before, every = shape
    size = np.int64(len(letters))
    ahead = max(length - before, before + 2)
    behind = max(before, length - before - 2)
    seen, last = max(np.int64(0), first - behind), np.int64(-1)
    count = np.int64(0)
    for p in range(first, min(stop, size - 1)):
        until = min(size, p + ahead)
        while seen < until:
            if letters[np.uint64(seen)] == _N:
                last = seen
            seen += 1
        here, after = letters[np.uint64(p)], letters[np.uint64(p + 1)]
        for strand in range(2):
            pair = minus_pair if strand else plus_pair
            if not every and (here != pair[0] or after != pair[1]):
                continue
            begin = p + 2 + before - length if strand else p - before
            end = begin + length
            if begin < 0 or end > size:
                counts[1] += 1
            elif last >= begin and _has_unknown(letters, begin, end):
                counts[0] += 1
            elif begin < low or end > high:
                counts[2] += 1
            else:
                places[count], minus[count] = p, strand == 1
                count += 1
    return count


@kernel
def _cut(letters, places, minus, length, before, out):
    for row in range(len(places)):
        base = np.uint64(row * length)
        if minus[row]:
            end = np.uint64(places[row] + 1 + before)
            for k in range(np.uint64(length)):
                letter = letters[end - k]
                # Bit 1 tells C and G from A and T; either pair differs in the same bits.
                out[base + k] = letter ^ np.uint8(21 - 17 * ((letter >> 1) & 1))
        else:
            begin = np.uint64(places[row] - before)
            for k in range(np.uint64(length)):
                out[base + k] = letters[begin + k]


def stretches(length: int, stretch: int) -> np.ndarray:
    """The borders of the stretches of a sequence: equally long but for a letter, about `stretch` each."""
    count = max(1, round(length / stretch))
    return np.arange(count + 1) * length // count


class Holdout:
    """Holds out a share of the stretches of each sequence, chosen at random.

    Sequences are asked for in the order of the genome. Shares of stretches that do not come out even are carried over
    to the next sequence, so that many short sequences are divided as one long one is.
    """

    def __init__(self, share: float, stretch: int, *seed: int) -> None:
        self.share, self.stretch = share, stretch
        self.rng = np.random.default_rng([*seed, 0])
        self.due = self.rng.random()

    def parts(self, length: int) -> Iterator[tuple[int, int, bool]]:
        """First letter, stop, and whether held out; neighbouring stretches of one kind are joined."""
        borders = stretches(length, self.stretch)
        count = len(borders) - 1
        self.due += self.share * count
        taken = min(count, math.floor(self.due))
        self.due -= taken
        held = np.zeros(count, np.bool_)
        held[self.rng.permutation(count)[:taken]] = True
        changes = np.flatnonzero(held[1:] != held[:-1]) + 1
        starts = [0, *changes.tolist()]
        for start, stop in zip(starts, [*starts[1:], count], strict=True):
            yield int(borders[start]), int(borders[stop]), bool(held[start])


class Draw:
    """Draws `size` of `total` rows: those whose numbers hash to the smallest values.

    Each row knows by itself whether it is drawn, so that nothing but one threshold is kept. The hash is one to one:
    no two rows share a value, and exactly `size` lie below.
    """

    def __init__(self, size: int, total: int, seed: int) -> None:
        if size > total:
            raise DotaddError(f"sample is {size:,}, but there are {total:,} windows to draw from; leave it out")
        self.salt = np.random.default_rng([seed, 1]).integers(0, 1 << 64, dtype=np.uint64)
        smallest = np.empty(0, np.uint64)
        for first in range(0, total, max(_BLOCK, size)):
            more = self._values(first, min(first + max(_BLOCK, size), total))
            smallest = np.concatenate([smallest, more])
            if len(smallest) > size:
                smallest = np.partition(smallest, size - 1)[:size]
        self.threshold = smallest.max()

    def rows(self, first: int, stop: int) -> np.ndarray:
        """Which of the rows first..stop-1 are drawn, counted from first."""
        return np.flatnonzero(self._values(first, stop) <= self.threshold)

    def _values(self, first: int, stop: int) -> np.ndarray:
        """A mixing of 64 bits (splitmix64): each step, and so the whole, can be undone."""
        value = np.arange(first, stop, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + self.salt
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return value ^ (value >> np.uint64(31))
