"""The options for peaks and splice sites of a genome, from which windows are cut and machines trained, and what is told
of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from dotadd.cli.options import Count, Flag, Real
from dotadd.cli.progress import Bar
from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from dotadd.cli.options import Reading
    from dotadd.genome.peaks import Peaks
    from dotadd.genome.windows import Counts, Windows
    from dotadd.model.file import Record

PEAKS = Group("Peaks of a genome", sort_key=6)
FEATURES = "Gkm().normalized()"  # LS-GKM's kernel, where nobody says otherwise
SITE_FEATURES = "WeightedDegree(20).hashed(12).normalized()"  # COFFIN's
LENGTH = 300  # letters of a window around a peak
SITE_LENGTH = 141  # and around a splice site
Files = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]


@Parameter(name="*", group=PEAKS)
@dataclass(frozen=True, kw_only=True)
class PeakOptions:
    """Which peaks, and what stands against them."""

    peaks: str | None = None
    """Peaks of the genome, BED or narrowPeak, plain or compressed; with the label 1, and the background with -1."""

    negatives: Annotated[Count | None, Parameter(show_default=False)] = None
    """Windows of background for each peak, 1 by default, with the same share of GC and of small letters (repeats)."""

    exclude: Files = None
    """BED files of places where no window may lie, such as a blacklist."""

    test_chromosomes: str | None = None
    """Hold these out for testing, such as chr8,chr9; or some of every chromosome by --holdout."""

    def refuse_without(self) -> None:
        """Refuse options that would not act where there are no peaks."""
        for name in (field.name for field in fields(self)):
            if self.peaks is None and getattr(self, name) not in (None, False):
                raise DotaddError(f"--{name.replace('_', '-')} is for --peaks: give a BED file of them")

    def source(self, fasta: list[str], holdout: float, **more: object) -> Peaks:
        """The windows of the part to train on."""
        from dotadd.genome.peaks import Peaks

        assert self.peaks is not None
        tests = [name.strip() for name in (self.test_chromosomes or "").split(",") if name.strip()]
        if self.test_chromosomes is not None and not tests:
            raise DotaddError("--test-chromosomes is empty: write names such as chr8,chr9")
        how: Record = {"negatives": self.negatives or 1, "exclude": tuple(self.exclude or ()), **more}
        part = "train" if tests or holdout else "all"
        return Peaks(fasta, self.peaks, test_chromosomes=tuple(tests), holdout=holdout, part=part, **how)


@Parameter(name="*", group=PEAKS)
@dataclass(frozen=True, kw_only=True)
class GenomeToTrainOn(PeakOptions):
    """The same where no file of windows is written, and for splice sites."""

    fasta: Files = None
    """The genome, one file or several; .gz, .bz2 and .xz are read directly."""

    signal: Literal["acceptor", "donor"] | None = None
    """Train on every AG (acceptor) or GT (donor), those where an intron ends (begins) with the label 1."""

    gff: str | None = None
    """The annotation that tells where introns are, GFF3 or GTF; for --signal."""

    every: Flag = False
    """Not only AG or GT, but every position of both strands; for --signal."""

    length: Annotated[Count | None, Parameter(show_default=False)] = None
    """Letters of a window, 300 by default, the summit in its middle; 141 around sites."""

    holdout: Annotated[Real | None, Parameter(show_default=False)] = None
    """Share of the genome to hold out for testing, in whole stretches."""

    stretch: Annotated[Count | None, Parameter(show_default=False)] = None
    """About how many letters a stretch has, 1,000,000 by default."""

    @property
    def wanted(self) -> bool:
        """Whether windows are to be cut, and no file is read."""
        return self.peaks is not None or self.signal is not None

    @property
    def features(self) -> str:
        """Where nobody has said which."""
        return FEATURES if self.signal is None else SITE_FEATURES

    @property
    def titles(self) -> tuple[str, ...]:
        """What to call the data."""
        return (self.peaks,) if self.peaks is not None else tuple(self.fasta or ())

    @property
    def called(self) -> str:
        """What counts of them are called in JSON."""
        return "sites" if self.peaks is None else "peaks"

    @property
    def held_out_title(self) -> str:
        return self.test_chromosomes or "the stretches that were held out"

    def refuse_without(self) -> None:
        if self.peaks is not None and self.signal is not None:
            raise DotaddError("give --peaks or --signal, and not both")
        if self.signal is None:
            for name in ("gff", "every"):
                if getattr(self, name):
                    raise DotaddError(f"--{name} is for --signal, the splice sites to train on")
            super().refuse_without()
            return
        for name in (field.name for field in fields(PeakOptions)):
            if getattr(self, name) is not None:
                raise DotaddError(f"--{name.replace('_', '-')} is for --peaks: give a BED file of them")
        if self.fasta is None or self.gff is None:
            raise DotaddError("--signal is for sites of a genome: give it with --fasta, and its introns with --gff")

    def drawn(self, reading: Reading, seed: int, *, columns: list[str]) -> Peaks | Windows:
        """The windows to train on. Those of peaks are cut now."""
        if self.fasta is None:
            raise DotaddError("--peaks are places of a genome: give it with --fasta")
        asked = "--peaks" if self.signal is None else "--signal"
        unused = [name for name in reading.given() if name != "on_bad_row"]
        if self.signal is not None and reading.on_bad_row != "error":
            unused.append("on_bad_row")
        if unused or columns:
            name = f"--{unused[0].replace('_', '-')}" if unused else f"the column {columns[0]!r}"
            raise DotaddError(f"{name} means nothing with {asked}: write a file by dotadd windows, and train on that")
        letters = letters_held_out(self.stretch, self.holdout or 0.0)
        numbers: Record = {"stretch": letters, "seed": seed}
        if self.signal is not None:
            from dotadd.genome.windows import Windows

            return Windows(
                self.fasta, self.gff, signal=self.signal, length=self.length or SITE_LENGTH, every=self.every,
                holdout=self.holdout or 0.0, part="train" if self.holdout else "all", **numbers,
            )  # fmt: skip
        numbers["length"] = self.length or LENGTH
        source = self.source(self.fasta, self.holdout or 0.0, on_bad_row=reading.on_bad_row, **numbers)
        draw(source)
        return source


def letters_held_out(stretch: int | None, holdout: float) -> int:
    """The length of a stretch; refuses one that would not act."""
    from dotadd.genome.cutting import STRETCH

    if stretch is None:
        return STRETCH
    if not holdout:
        raise DotaddError("--stretch is the length of what --holdout holds out: give its share, such as --holdout 0.2")
    return stretch


def draw(source: Peaks) -> None:
    """Read the genome, and show how far that has come."""
    with Bar(f"cutting windows of {os.path.basename(source.name)}") as source.on_progress:
        source.drawn()
    source.on_progress = None


def peak_lines(source: Peaks) -> dict[str, str]:
    """What became of the peaks, and what of it could not be matched."""
    from dotadd.genome.background import BINS

    counts = source.counts
    dropped = {
        "over the end of a sequence": counts.dropped.off_end, "with a letter other than ACGT": counts.dropped.unknown,
        "over the border of a held-out stretch": counts.dropped.border, "on excluded places": counts.excluded,
        "at the place of another": counts.twice,
    }  # fmt: skip
    reasons = [f"{number:,} {why}" for why, number in dropped.items() if number]
    steps = [f"{n:,} within {(k + 1) / BINS:.2f}" for k, n in enumerate(counts.steps.tolist()) if n]
    alike = "GC and repeats" if counts.repeats else "GC; there are no small letters to tell repeats by"
    told = {"peaks": f"{counts.peaks:,} in {source.name}"}
    if counts.renamed:
        (name, other), more = next(iter(counts.renamed.items())), len(counts.renamed) - 1
        told["names"] = f"{name} is {other} in {source.genome.name}" + (f", and {more} more such" if more else "")
    told |= {"dropped": ", ".join(reasons) or "none", "matched": f"{', '.join(steps)} of {alike}"}
    if counts.unmatched or counts.missing:
        lost = [f"{counts.unmatched:,} peaks without background, which are left out"] * bool(counts.unmatched)
        lost += [f"{counts.missing:,} windows of background too few for others"] * bool(counts.missing)
        told["unmatched"] = ", ".join(lost)
    return told


def peak_size(source: Peaks) -> str:
    """How many windows a part has."""
    rows, peaks = len(source.windows), source.positives
    return f"{rows:,} windows, {peaks:,} of peaks and {rows - peaks:,} of background"


def site_lines(first: Windows, counts: Sequence[Counts]) -> dict[str, str]:
    """What became of the candidates, in one part of the genome or several."""
    dropped = [
        (sum(count.dropped.unknown for count in counts), "with a letter other than ACGT"),
        (sum(count.dropped.off_end for count in counts), "over the end of a sequence"),
        (sum(count.dropped.border for count in counts), "over the border of a held-out stretch"),
    ]
    reads = "last letters are not AG" if first.signal == "acceptor" else "first letters are not GT"
    return {
        "sequences": f"{first.counts.sequences:,}, {first.counts.not_annotated:,} of them without annotation",
        "introns": f"{first.counts.introns:,}",
        "not canonical": f"{first.counts.not_canonical:,} sites whose {reads}; not used as true sites",
        "dropped": ", ".join(f"{number:,} {why}" for number, why in dropped if number) or "none",
    }


def genome_lines(source: Peaks | Windows) -> dict[str, str]:
    """What became of what windows were to be cut around."""
    from dotadd.genome.windows import Windows

    return site_lines(source, [source.counts]) if isinstance(source, Windows) else peak_lines(source)
