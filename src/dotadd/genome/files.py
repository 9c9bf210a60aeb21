"""The files of a genome: FASTA with its sequences, GFF3 or GTF with its introns. Both may be compressed.

Sequences come one after the other, and never more than one is in memory. Letters come in capitals whether they were
soft-masked or not, unless somebody asks for small ones, and every letter other than ACGT (N, and the codes for one of
several letters) comes as N. Sequences may stand on lines of any length.

Introns lie between the exons of each transcript. Lines of type `exon` are read; they name their transcripts as
`Parent=a,b` (GFF3) or `transcript_id "a"` (GTF). Positions count from 1 and include both ends.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO
from urllib.parse import unquote

import numpy as np

from dotadd._jit import kernel, plain
from dotadd._util.compressed import ENDINGS, decompressed, lines_of, read_into, reading
from dotadd._util.growing import Growing
from dotadd._util.memory import available, words
from dotadd.data.places import Text
from dotadd.errors import DataError, DotaddError

BUFFER = 4 << 20  # small enough for Ctrl-C while xz decompresses it
LONGEST = 16 << 20  # bytes of a header
PASSING = 16 << 20  # letters of short sequences that share a text
NO_HEADER = "expected a header that begins with '>'; is this a FASTA file?"

_SPACE, _FOREIGN = 0, 255  # what _CLEAN says of bytes that are no letters
_CLEAN = np.full(256, _FOREIGN, np.uint8)
_CLEAN[np.frombuffer(b" \t\r\n\v\f", np.uint8)] = _SPACE
for _letter in range(ord("A"), ord("Z") + 1):
    _CLEAN[[_letter, _letter + 32]] = _letter if _letter in b"ACGT" else ord("N")
_CLEAN[np.frombuffer(b"-*.?", np.uint8)] = ord("N")  # gaps and stops, in alignments and old files
_MASKED = _CLEAN.copy()  # the same with repeats in small letters, as they are written
_MASKED[np.frombuffer(b"acgt", np.uint8)] = np.frombuffer(b"acgt", np.uint8)
_NO_LETTERS = np.where(_CLEAN == _SPACE, _SPACE, _FOREIGN).astype(np.uint8)  # what may stand before the first header

FURTHEST = 10**12  # where an exon may end
_PARENT = re.compile(rb"(?:^|;)\s*Parent=([^;]+)")
_TRANSCRIPT_ID = re.compile(rb'(?:^|;)\s*transcript_id\s+"?([^";]+)')


@dataclass(frozen=True)
class GenomeSequence:
    """One sequence: its name (the first word of the header) and its letters, a byte each.

    `share` is where it begins and ends in the bytes of all files, as fractions of the whole; for progress. `base` is
    where it begins in a text, if it lies in one.
    """

    name: str
    letters: np.ndarray
    share: tuple[float, float]
    text: Text | None = None
    base: int = 0


class Genome:
    """FASTA files that are read again and again. Where they hold one sequence only, it is read once and kept; after
    `hold`, all sequences are. With `passing`, sequences come in texts, one of which is in memory at a time.

    With `masked`, small letters stay small: repeats are written so.
    """

    def __init__(
        self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, masked: bool = False
    ) -> None:
        several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not several:
            raise DotaddError("give a FASTA file with the genome")
        self.paths = [os.path.expanduser(os.fspath(path)) for path in several]
        self._table = _MASKED if masked else _CLEAN
        self._only: tuple[GenomeSequence, str, int, bool] | None = None
        self.passing = False
        self._text: Text | None = None  # that holds all of them
        self._held: list[tuple[GenomeSequence, int]] = []  # without letters, and how many it has
        self._complete = False

    def hold(self) -> Text:
        """Keep what is read from now on, both strands of it, in one text, and read no file twice."""
        if self._text is None:
            self._text = Text(2 * self.at_most())
        return self._text

    def at_most(self) -> int:
        """How many letters the files have, about and at most. A byte holds no more than four letters of DNA, unless
        letters are repeated; a text that turns out longer is only moved."""
        total = 0
        for path in self.paths:
            with reading(path):
                total += os.path.getsize(path) * (5 if path.lower().endswith(tuple(ENDINGS)) else 1)
        return total

    @property
    def name(self) -> str:
        """What to call it in messages."""
        more = len(self.paths) - 1
        return self.paths[0] + (f" and {more} more" if more else "")

    def sequences(self) -> Iterator[GenomeSequence]:
        """All sequences in the order of the files. Let go of one before you ask for the next, or both are in memory.

        Where a text holds all, their letters are a part of it.
        """
        if self._complete:
            yield from map(self._held_sequence, range(len(self._held)))
            return
        passing = Text()
        names: dict[str, None] = {}
        for sequence, path, line, last in self._read() if self._only is None else [self._only]:
            if sequence.name in names:
                raise DataError(f"a second sequence is called {sequence.name!r}; names have to differ", path, line)
            if self._text is not None:
                sequence = self._holding(sequence, len(names))
            elif last and not names and len(self.paths) == 1:
                self._only = sequence, path, line, last
            if self._text is None and self.passing:
                passing = passing if len(passing) < PASSING else Text()
                sequence = replace(sequence, text=passing, base=passing.add(sequence.letters))
            names[sequence.name] = None
            yield sequence
            del sequence
        if not names:
            raise DataError("has no sequences", self.name)
        if self._text is not None:
            self._only, self._complete = None, len(self._held) == len(names)

    def _holding(self, sequence: GenomeSequence, number: int) -> GenomeSequence:
        """The sequence as the text holds it, to which it is added if it is new."""
        text = self.hold()
        if number == len(self._held):
            size, none = len(sequence.letters), np.empty(0, np.uint8)
            self._held.append((replace(sequence, letters=none, text=text, base=text.add(sequence.letters)), size))
        return self._held_sequence(number)

    def _held_sequence(self, number: int) -> GenomeSequence:
        sequence, size = self._held[number]
        return replace(sequence, letters=self.hold().letters[sequence.base : sequence.base + size])

    def lengths(self) -> dict[str, int]:
        """The length of each sequence, by name."""
        return {sequence.name: len(sequence.letters) for sequence in self.sequences()}

    def _read(self) -> Iterator[tuple[GenomeSequence, str, int, bool]]:
        """Each sequence with the file and the line of its header, and whether it is the last of the file."""
        sizes = []
        for path in self.paths:
            with reading(path):
                if os.path.isdir(path):
                    raise IsADirectoryError(path)
                sizes.append(os.path.getsize(path))
        whole, before = max(1, sum(sizes)), 0
        for path, size in zip(self.paths, sizes, strict=True):
            with decompressed(path) as (raw, file):
                share = before / whole
                for header, line, letters, last in _records(file, path, self._table):
                    name = (header.split() or [""])[0]
                    if not name:
                        raise DataError("the header names no sequence; expected '>name'", path, line)
                    start, share = share, (before + min(raw.tell(), size)) / whole
                    yield GenomeSequence(name, letters, (start, share)), path, line, last
                    del letters
            before += size


def _records(file: IO[bytes], path: str, kept: np.ndarray) -> Iterator[tuple[str, int, np.ndarray, bool]]:
    """Header, its line, the letters of each record, and whether it is the last. Lines need not fit into the buffer;
    `kept` tells what becomes of each letter."""
    buffer, clean = bytearray(BUFFER), np.empty(BUFFER, np.uint8)
    text = np.frombuffer(buffer, np.uint8)
    header: bytearray | None = None  # of the record whose letters are being read
    letters = Growing(np.empty(0, np.uint8))
    line, header_line = 1, 0
    most = available() // 4  # of letters, which lie in memory twice when the array grows
    in_header, line_start = False, True
    while True:
        have = read_into(file, buffer, path)
        if not have:
            break
        at = 0
        while at < have:
            if in_header:
                assert header is not None
                end = buffer.find(b"\n", at, have)
                header += buffer[at : have if end < 0 else end]
                if len(header) > LONGEST:
                    raise DataError(f"the header is longer than {words(LONGEST)}", path, header_line)
                at = have if end < 0 else end + 1
                if end >= 0:
                    in_header, line_start, line = False, True, line + 1
                continue
            table = _NO_LETTERS if header is None else kept
            at, used, lines, line_start, stray = _clean(plain(text), at, have, line_start, table, clean)
            line += lines
            if stray:
                what = f"{chr(buffer[at])!r} is no letter of a sequence" if header is not None else NO_HEADER
                raise DataError(what, path, line)
            letters.extend(clean[:used])
            if len(letters) > most:
                raise DataError(f"the sequence takes more than the {words(most)} that it may", path, header_line)
            if at < have:  # the next header
                if header is not None:
                    yield header.decode(errors="replace"), header_line, letters.done(), False
                    letters = Growing(np.empty(0, np.uint8))
                header, header_line, in_header, at = bytearray(), line, True, at + 1
    if header is not None:
        yield header.decode(errors="replace"), header_line, letters.done(), True


@kernel
def _clean(text, at, stop, line_start, table, clean):
    """Copy letters until a header begins, a byte is no letter, or the text ends.

    Returns where that is, how many letters and newlines there were, whether a line begins there, and whether the byte
    there is no letter.
    """
    used, lines = np.int64(0), np.int64(0)
    for k in range(np.uint64(at), np.uint64(stop)):
        letter = text[k]
        if letter == 10:
            lines += 1
            line_start = True
            continue
        if letter == 62 and line_start:
            return np.int64(k), used, lines, line_start, False
        line_start = False
        code = table[letter]
        if code == _FOREIGN:
            return np.int64(k), used, lines, line_start, True
        clean[used] = code
        used += np.int64(code != _SPACE)
    return np.int64(stop), used, lines, line_start, False


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
