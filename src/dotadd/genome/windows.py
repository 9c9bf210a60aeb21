"""Windows: the windows around all candidates of a signal in a genome, cut while they are read.

An acceptor site is the AG at the end of an intron, a donor site the GT at its beginning. Every AG (GT) on either strand
is a candidate; those where an annotated intron ends (begins) are true sites (label 1), all others decoys (label -1).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dotadd._util.memory import available
from dotadd.data.batches import Strings
from dotadd.data.places import Places, Text, numbered
from dotadd.errors import DataError, DotaddError
from dotadd.genome.cutting import STRETCH, Cut, Draw, Dropped, Holdout, whole_number
from dotadd.genome.files import Annotation, Genome, GenomeSequence
from dotadd.sources.base import CHUNK_BYTES, Source
from dotadd.sources.files import NoExamplesError
from dotadd.sources.located import Coordinates, Located

PARTS = ("all", "train", "holdout")
SHARE = 4  # of the free memory, one part may go to a genome
STEP = 1 << 20  # letters that are looked through at a time, between two looks at the keyboard

Path = str | os.PathLike[str]


@dataclass
class Counts:
    """What the latest pass met: sequences, those that the annotation does not mention, introns, ends of introns that do
    not read as the signal does (`not_canonical`), candidates without a window, windows, and those of true sites."""

    sequences: int = 0
    not_annotated: int = 0
    introns: int = 0
    not_canonical: int = 0
    dropped: Dropped = field(default_factory=Dropped)
    windows: int = 0
    true: int = 0

    @property
    def decoys(self) -> int:
        return self.windows - self.true


@dataclass
class Windows(Source):
    """The windows of a genome as examples, in the order of sequence and position, with their coordinates.

    Each chunk is `Located`: `chunk.coordinates` says where its rows lie.

    Parameters
    ----------
    fasta : one FASTA file or several; .gz, .bz2 and .xz are read directly.
    gff : annotation in GFF3 or GTF, whose introns give the true sites. Without it the windows have no labels.
    signal : "acceptor" or "donor".
    length, before : letters of a window, and how many of them come before the two letters of the signal; by default
        59 of 141 for acceptors, 80 of 141 for donors, and in proportion for other lengths.
    part, holdout : "train" leaves out this share of the genome, in whole stretches, and "holdout" yields it. Windows
        that reach over a border between the parts are in neither. "all" takes the genome undivided.
    stretch : about how many letters a stretch has.
    sample : so many windows of the part, drawn at random.
    seed : decides which stretches are held out and which windows are drawn.
    every : whether every position is a candidate, on both strands, and not only where the signal's letters stand.
    places : whether windows are places in the genome, which is then kept in memory, two bytes a letter; or have letters
        of their own; by default, whichever takes less memory. The letters are the same.
    """

    copied_by: ClassVar[str] = "windows"

    fasta: Path | Sequence[Path]
    gff: Path | None = None
    signal: str = field(kw_only=True)
    length: int = field(default=141, kw_only=True)
    before: int | None = field(default=None, kw_only=True)
    part: str = field(default="all", kw_only=True)
    holdout: float = field(default=0.0, kw_only=True)
    stretch: int = field(default=STRETCH, kw_only=True)
    sample: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    every: bool = field(default=False, kw_only=True)
    places: bool | None = field(default=None, kw_only=True, compare=False)
    counts: Counts = field(default_factory=Counts, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.cut = Cut.of(self.signal, self.length, self.before, every=self.every)
        self.genome = Genome(self.fasta)
        self._most = sys.maxsize  # bytes that may be taken
        if self.part not in PARTS:
            raise DotaddError(f"part is {self.part!r}; it has to be one of {', '.join(PARTS)}")
        if not 0 <= self.holdout < 1:
            raise DotaddError(f"holdout is {self.holdout}; it has to be at least 0 and less than 1")
        if self.holdout and self.part == "all":
            raise DotaddError("with holdout, say which part is wanted: part='train' or part='holdout'")
        if not self.holdout and self.part == "holdout":
            raise DotaddError("part='holdout' needs a holdout above 0, the share of the genome that is held out")
        whole_number("stretch", self.stretch, 1)
        whole_number("seed", self.seed, 0)
        if self.sample is not None:
            whole_number("sample", self.sample, 1)

    @property
    def name(self) -> str:
        return self.genome.name

    @property
    def quick(self) -> bool:
        """Places are found again faster than windows are read from a file."""
        return self.stays

    def bound(self, nbytes: int) -> None:
        self._most = nbytes

    def files(self) -> list[str]:
        return self.genome.paths + ([] if self.gff is None else [os.path.expanduser(os.fspath(self.gff))])

    @cached_property
    def annotation(self) -> Annotation | None:
        """The introns, read once."""
        return None if self.gff is None else Annotation(self.gff)

    @cached_property
    def drawn(self) -> Draw | None:
        """Which windows are drawn; the first time, all have to be counted."""
        if self.sample is None:
            return None
        total = sum(len(places) for _, places, _, _ in self._found())
        return Draw(self.sample, total, self.seed)

    @cached_property
    def stays(self) -> bool:
        """Whether windows are places in a genome that stays in memory."""
        if self.places is not None or self.genome.passing:
            return bool(self.places)
        size = 2 * self.genome.at_most()
        room = min(available() // SHARE, self._most)
        return size <= room and (self.sample is None or size <= self.sample * self.length)

    @property
    def divided(self) -> bool:
        """Whether a part is held out."""
        return bool(self.holdout)

    def held_out(self) -> Windows:
        """The held-out part beside this one, in full. What was read of genome and annotation serves both."""
        other = replace(self, part="holdout", sample=None)
        other.genome, other.annotation, other.stays = self.genome, self.annotation, self.stays
        return other

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Located]:
        rows = max(1, nbytes // self.length)
        drawn = self.drawn
        self.counts = Counts()
        names: list[str] = []
        chunk: _Growing | None = None
        first_row = row = 0
        for sequence, places, minus, sites in self._found(self.counts):
            if not names or names[-1] != sequence.name:
                names.append(sequence.name)
            if drawn is not None:
                taken = drawn.rows(row, row + len(places))
                row += len(places)
                places, minus = places[taken], minus[taken]
            true = _marked(2 * places + minus, sites)
            self.counts.windows += len(places)
            self.counts.true += int(np.count_nonzero(true))
            done = 0
            while done < len(places):
                if chunk is not None and chunk.text is not sequence.text:
                    yield chunk.done(names, self, first_row)
                    first_row, chunk = first_row + chunk.used, None
                chunk = chunk or _Growing(self.cut, rows, sequence.text)
                part = slice(done, done + chunk.room)
                chunk.extend(sequence, len(names) - 1, places[part], minus[part], true[part])
                done = min(part.stop, len(places))
                if not chunk.room:
                    yield chunk.done(names, self, first_row)
                    first_row, chunk = first_row + rows, None
            del sequence
        if chunk is not None:
            yield chunk.done(names, self, first_row)
        if not self.counts.windows:
            raise self._nothing()

    def _found(
        self, counts: Counts | None = None
    ) -> Iterator[tuple[GenomeSequence, np.ndarray, np.ndarray, np.ndarray]]:
        """Stretch after stretch of this part: the sequence, its candidates with whole windows, the true sites on it."""
        counts = Counts() if counts is None else counts
        split = Holdout(self.holdout, self.stretch, self.seed)
        first_name = ""
        if self.stays:
            self.genome.hold()
        for sequence in self.genome.sequences():
            counts.sequences += 1
            first_name = first_name or sequence.name
            size = len(sequence.letters)
            sites = np.empty(0, np.int64)
            if self.annotation is not None:
                if self.annotation.differs_by_prefix(sequence.name):
                    raise self.annotation.mismatch(sequence.name, self.name)
                counts.not_annotated += sequence.name not in self.annotation.furthest
                introns = self.annotation.introns(sequence.name, size)
                sites, other = self.cut.sites(introns, sequence.letters)
                counts.introns += len(introns)
                counts.not_canonical += other
            for low, high, held in split.parts(size) if self.holdout else [(0, size, False)]:
                if held != (self.part == "holdout"):
                    continue
                for first in range(low, high, STEP):
                    stop = min(first + STEP, high)
                    found = self.cut.candidates(sequence.letters, first, stop, low, high, counts.dropped)
                    self._tell(sequence, stop)
                    yield sequence, *found, sites
            del sequence
        if self.annotation is not None and counts.not_annotated == counts.sequences:
            raise self.annotation.mismatch(first_name, self.name)

    def _tell(self, sequence: GenomeSequence, done: int) -> None:
        if self.on_progress is not None:
            start, stop = sequence.share
            self.on_progress(start + (stop - start) * done / len(sequence.letters))

    def _nothing(self) -> DataError:
        dropped = self.counts.dropped
        message = f"the {self.part} part has no window" if self.holdout else "has no window"
        reasons = {"with N": dropped.unknown, "off an end": dropped.off_end, "over a border": dropped.border}
        counted = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        hint = "; give a smaller stretch (--stretch)" if self.holdout else ""
        what = f"{message} of {self.length} letters around a site of the signal {self.signal}"
        return NoExamplesError(f"{what} ({counted}){hint}", self.name)


def _marked(places: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """Which of the places are sites; both are numbered as `Cut.sites` does it, and sorted."""
    marked = np.zeros(len(places), np.bool_)
    if len(places):
        inside = sites[np.searchsorted(sites, places[0]) : np.searchsorted(sites, places[-1], side="right")]
        at = np.searchsorted(places, inside)
        marked[at[places[at] == inside]] = True
    return marked


class _Growing:
    """A chunk while its windows are cut, or found in a text."""

    def __init__(self, cut: Cut, rows: int, text: Text | None) -> None:
        self.cut, self.text, self.used, self.room = cut, text, 0, rows
        self.letters = np.empty(rows * cut.length if text is None else 0, np.uint8)
        self.starts = np.empty(rows if text is not None else 0, np.int64)
        self.sequence, self.places = np.empty(rows, np.int32), np.empty(rows, np.int64)
        self.minus, self.true = np.empty(rows, np.bool_), np.empty(rows, np.bool_)

    def extend(
        self, sequence: GenomeSequence, number: int, places: np.ndarray, minus: np.ndarray, true: np.ndarray
    ) -> None:
        """Take these windows of a sequence; there has to be room for them."""
        rows, letters, length = slice(self.used, self.used + len(places)), sequence.letters, self.cut.length
        if self.text is None:
            self.cut.cut(letters, places, minus, self.letters[rows.start * length : rows.stop * length])
        else:
            self.starts[rows] = self.cut.starts(places, minus, sequence.base, len(letters))
        self.sequence[rows] = number
        self.places[rows], self.minus[rows], self.true[rows] = places, minus, true
        self.used, self.room = rows.stop, self.room - len(places)

    def done(self, names: list[str], windows: Windows, first_row: int) -> Located:
        used, length = self.used, self.cut.length
        if self.text is None:
            batch = Strings(self.letters[: used * length], width=length)
        else:
            batch = Places(self.text, numbered(self.starts[:used], len(self.text)), width=length)
        y = None if windows.gff is None else np.where(self.true[:used], np.int8(1), np.int8(-1))
        rows = self.sequence[:used], self.places[:used] + 1, self.minus[:used]
        at = Coordinates(tuple(names), *rows, length=1 if windows.every else 2)
        return Located(batch, y, None, first_row, windows.name, coordinates=at)
