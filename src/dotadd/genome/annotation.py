"""GFF3 and GTF: the introns of a genome, which lie between the exons of each transcript.

Lines of type `exon` are read; they name their transcripts as `Parent=a,b` (GFF3) or `transcript_id "a"` (GTF).
Positions count from 1 and include both ends.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np

from dotadd._util.compressed import decompressed, lines_of
from dotadd.errors import DataError

_PARENT = re.compile(rb"(?:^|;)\s*Parent=([^;]+)")
_TRANSCRIPT_ID = re.compile(rb'(?:^|;)\s*transcript_id\s+"?([^";]+)')

FURTHEST = 10**12  # where an exon may end


@dataclass(frozen=True)
class Introns:
    """The different introns of one sequence, sorted: first and last position, and whether on the minus strand."""

    first: np.ndarray
    last: np.ndarray
    minus: np.ndarray

    def __len__(self) -> int:
        return len(self.first)


class Annotation:
    """The introns of all sequences in a GFF3 or GTF file, by name of the sequence.

    `furthest` tells for each sequence the last position of an exon and the line that says so.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.expanduser(os.fspath(path))
        self.furthest: dict[str, tuple[int, int]] = {}
        exons = _Exons(self.path)
        for line, fields in _features(self.path):
            if fields[2] == b"exon":
                name, end = exons.add(line, fields)
                if end > self.furthest.get(name, (0, 0))[0]:
                    self.furthest[name] = end, line
        self._introns = exons.introns()
        if not self._introns:
            raise DataError(f"has no introns: {exons.summary()}", self.path)

    def introns(self, name: str, length: int) -> Introns:
        """The introns of this sequence, which has so many letters."""
        end, line = self.furthest.get(name, (0, 0))
        if end > length:
            message = f"the exon ends at {end:,}, but sequence {name!r} has {length:,} letters; is this its annotation?"
            raise DataError(message, self.path, line)
        none = np.empty(0, np.int64)
        return self._introns.get(name, Introns(none, none, none.astype(np.bool_)))

    def mismatch(self, name: str, genome: str) -> DataError:
        """The complaint that no sequence of the genome, whose first is called `name`, is in this file."""
        first = next(iter(self.furthest))
        other = name.removeprefix("chr") if name.startswith("chr") else f"chr{name}"
        hint = ""
        if other in self.furthest:
            hint = f" (the names differ by 'chr': write {name!r} for {other!r} in one of the files)"
        message = f"no sequence name agrees with {genome}: here the first is {first!r}, there {name!r}{hint}"
        return DataError(message, self.path)

    def differs_by_prefix(self, name: str) -> bool:
        """Whether a sequence of this name is missing here, and there with, or without, a leading chr."""
        return name not in self.furthest and not {f"chr{name}", name.removeprefix("chr")}.isdisjoint(self.furthest)


def _features(path: str) -> Iterator[tuple[int, list[bytes]]]:
    """Number and columns of each line that describes something; sequences at the end of a GFF3 file are left out."""
    seen = False
    with decompressed(path) as (_, file):
        for number, line in lines_of(file, path):
            if line.startswith(b"#") or not line.strip():
                if line.startswith(b"##FASTA"):
                    return
                continue
            if line.startswith(b">") and seen:
                return
            fields = line.rstrip(b"\r\n").split(b"\t")
            if len(fields) != 9:
                message = f"a line of GFF3 or GTF has 9 columns with tabs between them, and this one has {len(fields)}"
                raise DataError(message, path, number)
            seen = True
            yield number, fields


class _Exons:
    """Exons while they are read, a few numbers each. A transcript on two sequences or strands counts as two."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.transcripts: dict[tuple[str, bytes, bytes], int] = {}
        self.transcript, self.first, self.last = array("q"), array("q"), array("q")
        self.count = self.orphans = self.without_strand = 0

    def add(self, line: int, fields: list[bytes]) -> tuple[str, int]:
        """Take one line; the name of its sequence, and where it ends."""
        name, strand, attributes = fields[0], fields[6], fields[8]
        try:
            first, last = int(fields[3]), int(fields[4])
        except ValueError:
            start, end = (text.decode(errors="replace") for text in fields[3:5])
            message = f"start and end of an exon have to be whole numbers, and not {start!r} and {end!r}"
            raise DataError(message, self.path, line) from None
        if first < 1:
            raise DataError(f"the exon begins at {first}, and positions count from 1", self.path, line)
        if last > FURTHEST:
            raise DataError(f"the exon ends at {last}, beyond any sequence", self.path, line)
        if first > last:
            raise DataError(f"the exon begins at {first}, behind its end at {last}", self.path, line)
        if strand not in (b"+", b"-", b".", b"?"):
            raise DataError(f"the strand is {strand.decode(errors='replace')!r}, and not + or -", self.path, line)
        sequence = unquote(name.decode(errors="replace"))
        self.count += 1
        if strand in b".?":
            self.without_strand += 1
            return sequence, last
        if found := _PARENT.search(attributes):
            transcripts = found[1].split(b",")
        elif found := _TRANSCRIPT_ID.search(attributes):
            transcripts = [found[1]]
        else:
            self.orphans += 1
            return sequence, last
        for transcript in transcripts:
            key = (sequence, strand, transcript.strip())
            self.transcript.append(self.transcripts.setdefault(key, len(self.transcripts)))
            self.first.append(first)
            self.last.append(last)
        return sequence, last

    def introns(self) -> dict[str, Introns]:
        """What lies between the exons of each transcript, each intron once, by sequence."""
        transcript, first, last = (np.array(numbers, np.int64) for numbers in (self.transcript, self.first, self.last))
        order = np.lexsort((last, first, transcript))
        transcript, first, last = transcript[order], first[order], last[order]
        # Exons may overlap, so what counts is the furthest end so far; adding the transcript's number keeps
        # it from reaching over to the next transcript.
        size = int(last.max(initial=0)) + 1
        reached = np.maximum.accumulate(transcript * size + last) - transcript * size
        between = (transcript[1:] == transcript[:-1]) & (first[1:] > reached[:-1] + 1)
        begins, ends, of = reached[:-1][between] + 1, first[1:][between] - 1, transcript[1:][between]

        keys = list(self.transcripts)
        minus = np.array([strand == b"-" for _, strand, _ in keys], np.bool_)[of]
        numbers: dict[str, int] = {}
        sequence = np.array([numbers.setdefault(name, len(numbers)) for name, _, _ in keys], np.int64)[of]
        distinct = np.unique(np.stack([sequence, begins, ends, minus], axis=1), axis=0)
        edges = np.searchsorted(distinct[:, 0], np.arange(len(numbers) + 1))
        found = {}
        for (name, _), start, stop in zip(numbers.items(), edges[:-1], edges[1:], strict=True):
            rows = distinct[start:stop]
            if len(rows):
                found[name] = Introns(rows[:, 1].copy(), rows[:, 2].copy(), rows[:, 3].astype(np.bool_))
        return found

    def summary(self) -> str:
        """Why there may be no introns."""
        if not self.count:
            return "no line is of type exon"
        without = f"{self.orphans:,} without Parent= or transcript_id, {self.without_strand:,} without a strand"
        return f"{self.count:,} exons in {len(self.transcripts):,} transcripts ({without})"
