"""Peaks: windows around the summits of peaks (label 1), and for each of them some of the background that look alike
(label -1: `background.py`), drawn on the same sequence.

The genome is read once, a sequence at a time, and all windows that are cut are kept. What is drawn on a sequence
depends on its name and the seed alone, and not on what stands before it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dotadd._util.growing import Growing
from dotadd.data.batches import Strings
from dotadd.errors import DataError, DotaddError
from dotadd.genome.background import LONGEST, STEPS, composition, matched
from dotadd.genome.bed import Bed, merged, overlaps, read_bed
from dotadd.genome.cutting import STRETCH, Dropped, Holdout, cut_windows, whole_number
from dotadd.genome.files import Genome, GenomeSequence
from dotadd.genome.sequences import match_names
from dotadd.genome.windows import PARTS, Path
from dotadd.sources.base import CHUNK_BYTES, Skipped, Source
from dotadd.sources.files import NoExamplesError
from dotadd.sources.located import Intervals, Located

_SKIP = "--on-bad-row skip leaves such peaks out"
_CAPITAL = np.uint8(0xDF)  # the bits of a letter but for the one that makes it small


@dataclass
class PeakCounts:
    """What became of the peaks: how many there were, how many have no window and why, how many found no background, how
    many windows of background the others lack, and how many were found in each step."""

    peaks: int = 0
    dropped: Dropped = field(default_factory=Dropped)
    excluded: int = 0
    twice: int = 0
    unmatched: int = 0
    missing: int = 0
    steps: np.ndarray = field(default_factory=lambda: np.zeros(STEPS, np.int64))
    repeats: bool = False  # whether a peak has small letters
    renamed: dict[str, str] = field(default_factory=dict)  # chromosomes that the genome calls otherwise


class Cuts:
    """The windows of one part, in the order of the genome."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.names: list[str] = []
        self.titles: list[str] = []
        self.letters, self.y = Growing(np.empty(0, np.uint8)), Growing(np.empty(0, np.int64))
        self.sequence, self.first = Growing(np.empty(0, np.int32)), Growing(np.empty(0, np.int64))
        self.minus = Growing(np.empty(0, np.bool_))

    def add(
        self, sequence: GenomeSequence, first: np.ndarray, minus: np.ndarray, y: np.ndarray, titles: list[str]
    ) -> None:
        """Cut these windows of a sequence."""
        order = np.lexsort((-y, minus, first))
        first, minus = first[order], minus[order]
        self.sequence.extend(np.full(len(first), len(self.names), np.int32))
        self.names.append(sequence.name)
        self.first.extend(first)
        self.minus.extend(minus)
        self.y.extend(y[order])
        self.letters.extend(cut_windows(sequence.letters, first, minus, self.length) & _CAPITAL)
        self.titles += [titles[row] for row in order.tolist()]

    def located(self, path: str) -> Located:
        """All of them."""
        columns = self.sequence.done(), self.first.done() + 1, self.minus.done()
        at = Intervals(tuple(self.names), *columns, length=self.length, titles=tuple(self.titles))
        return Located(Strings(self.letters.done(), width=self.length), self.y.done(), None, 0, path, coordinates=at)


@dataclass
class Peaks(Source):
    """Windows of peaks and of their background as examples, in the order of sequence and position, with their places.

    Parameters
    ----------
    fasta : one FASTA file or several; .gz, .bz2 and .xz are read directly. Repeats are in small letters.
    peaks : BED or narrowPeak, plain or compressed. Chromosomes are found under their names, with or without "chr".
    length : letters of a window; the summit is the one after the first half.
    negatives : how many windows of background each peak has.
    exclude : BED files of places where no window may lie, such as a blacklist.
    part : "train" or "holdout", where some of the genome is held out; "all" takes it undivided.
    test_chromosomes : those that are held out.
    holdout, stretch : hold out such a share of each sequence, in stretches of about so many letters. Windows over a
        border are in neither part.
    seed : decides which stretches are held out and what is drawn.
    """

    fasta: Path | Sequence[Path]
    peaks: Path
    length: int = field(default=300, kw_only=True)
    negatives: int = field(default=1, kw_only=True)
    exclude: Sequence[Path] = field(default=(), kw_only=True)
    part: str = field(default="all", kw_only=True)
    test_chromosomes: Sequence[str] = field(default=(), kw_only=True)
    holdout: float = field(default=0.0, kw_only=True)
    stretch: int = field(default=STRETCH, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    counts: PeakCounts = field(default_factory=PeakCounts, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.genome = Genome(self.fasta, masked=True)
        whole_number("length", self.length, 1)
        if self.length > LONGEST:
            raise DotaddError(f"length is {self.length:,}; windows have at most {LONGEST:,} letters")
        for name, least in {"negatives": 1, "stretch": 1, "seed": 0}.items():
            whole_number(name, getattr(self, name), least)
        if not 0 <= self.holdout < 1:
            raise DotaddError(f"holdout is {self.holdout}; it has to be at least 0 and less than 1")
        if self.holdout and self.test_chromosomes:
            raise DotaddError("give either test chromosomes or a holdout, the share of each sequence to hold out")
        if self.part not in PARTS or (self.part == "all") == self.divided:
            wanted = "part='train' or part='holdout'" if self.divided else "part='all', as nothing is held out"
            raise DotaddError(f"part is {self.part!r}; it has to be {wanted}")
        self._drawn: dict[bool, Located] | None = None

    @property
    def divided(self) -> bool:
        """Whether a part of the genome is held out."""
        return bool(self.holdout or self.test_chromosomes)

    @property
    def name(self) -> str:
        return os.fspath(self.peaks)

    def files(self) -> list[str]:
        return [*self.genome.paths, *(os.path.expanduser(os.fspath(path)) for path in (self.peaks, *self.exclude))]

    def held_out(self) -> Peaks:
        """The held-out part beside this one; what was drawn serves both."""
        other = replace(self, part="holdout", skipped=Skipped())
        other._drawn, other.counts = self.drawn(), self.counts
        return other

    @property
    def windows(self) -> Located:
        """What this part has."""
        return self.drawn()[self.part == "holdout"]

    @property
    def positives(self) -> int:
        """How many of its windows are peaks."""
        y = self.windows.y
        return 0 if y is None else int(np.count_nonzero(y == 1))

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Located]:
        whole, rows = self.windows, max(1, nbytes // self.length)
        for first in range(0, len(whole), rows):
            yield whole.slice(first, min(len(whole), first + rows))

    def drawn(self) -> dict[bool, Located]:
        """What was cut for training (False) and held out (True); the first time, the genome is read."""
        if self._drawn is None:
            self._drawn = self._draw()
        return self._drawn

    def _draw(self) -> dict[bool, Located]:
        self.skipped.clear()
        bed, away = read_bed(self.peaks, self.bad_row), [read_bed(path) for path in self.exclude]
        self.counts, cuts = PeakCounts(len(bed)), {held: Cuts(self.length) for held in (False, True)}
        peaks, tests = _Sought(bed.chromosomes), _Sought(self.test_chromosomes)
        for sequence in self.genome.sequences():
            here, test = peaks.called(sequence.name), tests.called(sequence.name)
            if sequence.name in self.counts.renamed:
                both = f"{self.counts.renamed[sequence.name]!r} and {sequence.name!r}"
                raise DataError(f"has {both}, and peaks may be on either; take one of them out", self.genome.name)
            self.counts.renamed |= {name: sequence.name for name in here if name != sequence.name}
            if here:
                self._cut(sequence, bed, bed.on(here), _intervals(away, sequence.name), cuts, test=bool(test))
            if self.on_progress is not None:
                self.on_progress(sequence.share[1])
            del sequence
        if tests.missing:
            name = next(iter(tests.missing))
            raise DotaddError(f"the test chromosome {name!r} is not in {self.genome.name}, with or without 'chr'")
        for row in bed.on(set(peaks.missing)).tolist():
            what = f"{bed.chromosomes[bed.of[row]]!r} is not in {self.genome.name}, with or without 'chr'"
            self.bad_row(bed.error(row, f"{what}; {_SKIP}"))
        drawn = {held: part.located(self.name) for held, part in cuts.items()}
        for held in (False, True)[: 1 + self.divided]:
            if not len(drawn[held]):
                raise self._nothing(held)
        return drawn

    def _cut(
        self,
        sequence: GenomeSequence,
        bed: Bed,
        rows: np.ndarray,
        away: tuple[np.ndarray, np.ndarray],
        cuts: dict[bool, Cuts],
        *,
        test: bool,
    ) -> None:
        """Cut the windows of the peaks in these rows, which lie on the sequence, and of their background."""
        letters, length, size, counts = sequence.letters, self.length, len(sequence.letters), self.counts
        for row in rows[bed.end[rows] > size].tolist():
            what = f"the interval ends at {bed.end[row]:,}, but sequence {sequence.name!r} has {size:,} letters"
            self.bad_row(bed.error(row, f"{what}; are these peaks of this genome? If so, {_SKIP}"))
        rows = rows[bed.end[rows] <= size]
        first = bed.summit[rows] - length // 2
        blocked = merged(
            np.concatenate([bed.start[rows], first, away[0]]), np.concatenate([bed.end[rows], first + length, away[1]])
        )
        order = np.lexsort((bed.minus[rows], first))
        rows, first = rows[order], first[order]

        def drop(bad: np.ndarray) -> int:
            nonlocal rows, first
            rows, first = rows[~bad], first[~bad]
            return int(np.count_nonzero(bad))

        mark = int.from_bytes(hashlib.blake2b(sequence.name.encode(), digest_size=8).digest(), "little")
        spans = [(0, size, test)]
        if self.holdout:
            spans = list(Holdout(self.holdout, self.stretch, self.seed, mark).parts(size))
        low, high, held = (np.array(column) for column in zip(*spans, strict=True))
        counts.dropped.off_end += drop((first < 0) | (first + length > size))
        counted = composition(letters, first, length)
        counts.repeats |= bool(np.any(counted.repeats))
        counts.dropped.unknown += drop(counted.unknown > 0)
        counts.excluded += drop(overlaps(*away, first, length))
        counts.twice += drop(np.append(False, (np.diff(first) == 0) & (np.diff(bed.minus[rows]) == 0))[: len(first)])
        counts.dropped.border += drop(first + length > high[np.searchsorted(low, first, side="right") - 1])
        in_test = held[np.searchsorted(low, first, side="right") - 1]
        for part in sorted(set(held.tolist())):
            mine, begins = rows[in_test == part], first[in_test == part]
            room = np.stack([low, high], axis=1)[held == part]
            rng = np.random.default_rng([self.seed, mark, part])
            found = matched(letters, begins, length, self.negatives, room, blocked, rng)
            has = np.bincount(found.peak, minlength=len(begins))
            counts.unmatched += int(np.count_nonzero(has == 0))
            counts.missing += int(np.sum((self.negatives - has)[has > 0]))
            counts.steps += np.bincount(found.step, minlength=STEPS)
            kept = np.flatnonzero(has)
            titles = [bed.names[row] for row in mine[kept].tolist()] + [""] * len(found.first)
            minus = bed.minus[mine[np.concatenate([kept, found.peak])]]
            y = np.repeat(np.array([1, -1]), [len(kept), len(found.first)])
            cuts[part].add(sequence, np.concatenate([begins[kept], found.first]), minus, y, titles)

    def _nothing(self, held: bool) -> DataError:
        counts = self.counts
        reasons = {
            "off an end": counts.dropped.off_end, "with N": counts.dropped.unknown, "excluded": counts.excluded,
            "over a border": counts.dropped.border, "without a match": counts.unmatched,
        }  # fmt: skip
        counted = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count) or "none dropped"
        part = ("held-out part" if held else "training part") if self.divided else "genome"
        hint = "; hold out a larger share, or give a smaller stretch (--stretch)" if self.holdout else ""
        what = f"no window of {self.length} letters around a peak is left in the {part}"
        return NoExamplesError(f"{what} (of {counts.peaks:,} peaks {counted}){hint}", self.name)


class _Sought:
    """Names of chromosomes that have not been met yet."""

    def __init__(self, names: Sequence[str]) -> None:
        self.missing = dict.fromkeys(names)

    def called(self, name: str) -> set[str]:
        """Those that mean the sequence of this name; they are met now."""
        found = set(match_names(self.missing, [name]))
        self.missing = dict.fromkeys(other for other in self.missing if other not in found)
        return found


def _intervals(files: Sequence[Bed], name: str) -> tuple[np.ndarray, np.ndarray]:
    """All intervals of these files on the sequence of this name, merged."""
    rows = [bed.on(set(match_names(bed.chromosomes, [name]))) for bed in files]
    begin = [bed.start[on] for bed, on in zip(files, rows, strict=True)]
    end = [bed.end[on] for bed, on in zip(files, rows, strict=True)]
    none = [np.empty(0, np.int64)]
    return merged(np.concatenate(begin + none), np.concatenate(end + none))
