"""Variants: the lines of a VCF file, with what a model says of the changes in them.

Lines pass in pieces of some megabytes. One chromosome after the other, the changes in a piece are brought into one form
(`genome.alleles`), scored (`genome.deltasvm`, `genome.splicing`), and written with their scores. Beside a score stands
its quantile: the share of random changes of single letters, drawn from the same genome, that score less.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from dotadd._util.ahead import ReadAhead
from dotadd._util.atomic import FULL, replacing
from dotadd._util.bgzf import BlockWriter
from dotadd._util.threads import thread_count
from dotadd._version import __version__
from dotadd.errors import DataError, DotaddError, printable, require_extra
from dotadd.genome.alleles import WHY, Alleles, SkipReason, changes, single_letters
from dotadd.genome.cutting import whole_number
from dotadd.genome.files import Genome
from dotadd.genome.sequences import Letters, match_names
from dotadd.genome.splicing import Splicing
from dotadd.genome.tabix import Tabix
from dotadd.genome.vcf import ALLELES, LAST, NUMBER, Field, Lines, annotated, opened

FLOOR_SITES = 2_000  # random changes whose candidates tell what scores decoys have
ENOUGH = 1_000  # REFs that tell whether the file is of this genome
TRIES = 20  # random places for each that is wanted: most may be N
_LETTERS = np.frombuffer(b"ACGT", np.uint8)


class Scorer(Protocol):
    """What scores changes: the entries of INFO, how far it looks, and a row of numbers for each change."""

    fields: list[Field]
    before: int
    after: int

    @property
    def told(self) -> str: ...

    def scores(self, letters: np.ndarray, alleles: Alleles, threads: int) -> np.ndarray: ...

    def strength(self, values: np.ndarray) -> np.ndarray: ...


@dataclass
class Scored:
    """How many lines and ALTs there were, and what became of them; why there is no index, if there is none."""

    lines: int = 0
    alleles: int = 0
    reasons: Counter[SkipReason] = field(default_factory=Counter)
    random: int = 0
    not_indexed: str = ""

    @property
    def scored(self) -> int:
        return self.reasons[SkipReason.NONE]

    def skipped(self) -> Iterator[tuple[int, str]]:
        for reason in SkipReason:
            if reason and self.reasons[reason]:
                yield self.reasons[reason], reason.told


def output_kind(path: str) -> str:
    """vcf, vcf.gz or bcf, by the end of the name; raises if it is none of them, or if nothing could write it."""
    name = path.lower()
    for kind, endings in {"vcf": (".vcf",), "vcf.gz": (".gz", ".bgz"), "bcf": (".bcf",)}.items():
        if name.endswith(endings):
            if kind == "bcf":
                require_extra("pysam", f"{path}: BCF needs")
            return kind
    raise DotaddError(f"{path}: scored variants are written to .vcf, .vcf.gz or .bcf; name it so")


def score_variants(
    path: str | os.PathLike[str],
    genome: Genome,
    scorer: Scorer,
    output: str | os.PathLike[str],
    *,
    model_names: str = "",
    name: str = "DOTADD",
    random: int = 10_000,
    seed: int = 0,
    n_jobs: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Scored:
    """Write the file with scores. It appears whole or not at all, sorted ones in BGZF with an index beside it."""
    path, output = os.path.expanduser(os.fspath(path)), os.fspath(output)
    kind = output_kind(output)
    whole_number("random", random, 0)
    whole_number("seed", seed, 0)
    with opened(path) as (head, pieces):
        fields = [*scorer.fields]
        if random:
            fields.append(
                Field(f"{name}_Q", (4,), "Float", f"Share of {random:,} random changes of a letter that score less")
            )
        _require_new(head, fields, path)
        work = _Work(path, genome, scorer, fields, thread_count(n_jobs))
        work.draw(random, seed)
        told = f"{__version__} variants; {model_names}; {scorer.told}; {random:,} random, seed {seed}"
        own = f'##dotadd="{printable(told).replace(chr(34), chr(39))}"\n'.encode()
        head = [*head[:-1], own, *(one.header() for one in fields), head[-1]]
        with ReadAhead(pieces) as ahead, ExitStack() as stack:
            temporary = stack.enter_context(replacing(output, ending=".vcf" if kind == "bcf" else ""))
            if kind == "bcf":  # once the text has been written and closed
                stack.push(lambda *error: None if error[0] else _to_bcf(temporary, output))
            raw = stack.enter_context(open(temporary, "wb"))
            file = stack.enter_context(BlockWriter(raw, work.threads)) if kind == "vcf.gz" else raw
            work.write(head, ahead, file, on_progress)
        work.index(output, kind, file)
    return work.found


class _Work:
    """A file on its way."""

    def __init__(self, path: str, genome: Genome, scorer: Scorer, fields: list[Field], threads: int) -> None:
        self.path, self.genome, self.scorer, self.fields, self.threads = path, genome, scorer, fields, threads
        self.letters = Letters(genome)
        self.found, self.tabix = Scored(), Tabix()
        self.names: dict[bytes, str | None] = {}
        self.strengths = np.empty(0)
        self.checked = self.wrong = 0

    def draw(self, random: int, seed: int) -> None:
        """Score random changes; other changes are drawn before to learn the score of places that are no sites."""
        if isinstance(self.scorer, Splicing):
            self.scorer.set_floors(self._random(FLOOR_SITES, seed, 1))
        strengths = [
            self.scorer.strength(self.scorer.scores(letters, alleles, self.threads))
            for letters, alleles in self._random(random, seed, 0)
        ]
        self.strengths = np.sort(np.concatenate([np.empty(0), *strengths]))
        self.found.random = len(self.strengths)

    def _random(self, count: int, seed: int, stream: int) -> list[tuple[np.ndarray, Alleles]]:
        """So many changes of one letter anywhere in the genome, as far as any can be scored, by chromosome."""
        rng = np.random.default_rng([seed, stream])
        sequences = list(self.letters.values())
        ends = np.cumsum([len(letters) for letters in sequences])
        count = count if ends[-1] else 0
        places, others = rng.integers(0, max(1, ends[-1]), TRIES * count), rng.integers(1, 4, TRIES * count)
        which = np.searchsorted(ends, places, side="right")
        drawn, good = [], np.zeros(len(places), np.bool_)
        for k, letters in enumerate(sequences):
            rows = np.flatnonzero(which == k)
            at = places[rows] - (ends[k] - len(letters))
            number = np.searchsorted(_LETTERS, letters[at])  # N has one as well, but cannot be scored
            alleles = single_letters(at, _LETTERS[(number + others[rows]) % 4])
            alleles = alleles.within(letters, self.scorer.before, self.scorer.after)
            good[rows] = alleles.moves[:, WHY] == 0
            drawn.append((letters, alleles, rows))
        good[np.flatnonzero(good)[count:]] = False
        return [
            (letters, Alleles(alleles.moves[good[rows]], alleles.inserted))
            for letters, alleles, rows in drawn
            if good[rows].any()
        ]

    def write(
        self,
        head: list[bytes],
        pieces: ReadAhead[tuple[float, Lines]],
        file: IO[bytes] | BlockWriter,
        on_progress: Callable[[float], None] | None,
    ) -> None:
        written = file.write(b"".join(head))
        for share, lines in pieces:
            values = self._values(lines)
            text, starts = annotated(lines, self.fields, values)
            file.write(text.data)
            for first, stop in self._runs(lines):
                begin, last = lines.facts[first:stop, NUMBER] - 1, lines.facts[first:stop, LAST]
                some = starts[first : stop + 1] + written
                self.tabix.add(lines.name(first), np.maximum(begin, 0), last, some[:-1], some[1:])
            written += len(text)
            if on_progress is not None:
                on_progress(share)
            if self.checked >= ENOUGH:
                self._require_same_genome()
        self._require_same_genome()
        if self.names and not any(self.names.values()):
            here, there = next(iter(self.names)).decode(errors="replace"), next(iter(self.letters))
            message = f"no chromosome is in {self.genome.name}: here the first is {here!r}, there {there!r}"
            raise DataError(message, self.path)

    def _runs(self, lines: Lines) -> Iterator[tuple[int, int]]:
        """Lines of one chromosome that stand together."""
        yield from zip(lines.runs.tolist(), [*lines.runs[1:].tolist(), len(lines)], strict=True)

    def _values(self, lines: Lines) -> np.ndarray:
        """The numbers of all ALTs of these lines."""
        parts = []
        for first, stop in self._runs(lines):
            letters = self._chromosome(lines.name(first))
            alleles = changes(lines, first, stop, letters)
            why = np.bincount(alleles.moves[:, WHY], minlength=len(SkipReason))
            self.wrong += int(why[SkipReason.MISMATCH] + why[SkipReason.OFF_END])
            self.checked += int(why[[SkipReason.NONE, SkipReason.MISMATCH, SkipReason.OFF_END, SkipReason.LONG]].sum())
            columns = sum(len(one.decimals) for one in self.fields)
            values = np.full((len(alleles), columns), np.nan)
            if letters is not None:
                alleles = alleles.within(letters, self.scorer.before, self.scorer.after)
                scores = self.scorer.scores(letters, alleles, self.threads)
                values[:, : scores.shape[1]] = scores
                if len(self.strengths):
                    good = alleles.moves[:, WHY] == 0
                    less = np.searchsorted(self.strengths, self.scorer.strength(scores[good]))
                    values[good, -1] = less / len(self.strengths)
            why = np.bincount(alleles.moves[:, WHY], minlength=len(SkipReason))
            self.found.reasons.update({reason: int(why[reason]) for reason in SkipReason})
            self.found.lines += stop - first
            self.found.alleles += int(lines.facts[first:stop, ALLELES].sum())
            parts.append(values)
        return np.concatenate(parts)

    def _chromosome(self, name: bytes) -> np.ndarray | None:
        if name not in self.names:
            wanted = name.decode(errors="replace")
            self.names[name] = match_names([wanted], self.letters).get(wanted)
        found = self.names[name]
        return None if found is None else self.letters[found]

    def _require_same_genome(self) -> None:
        if 2 * self.wrong > self.checked:
            raise DataError(
                f"{self.wrong:,} of {self.checked:,} REFs are not what {self.genome.name} has there: these are "
                "variants of another genome",
                self.path,
            )

    def index(self, output: str, kind: str, file: IO[bytes] | BlockWriter) -> None:
        """Write the index, or remove the one that an earlier file had."""
        beside = Path(output + (".csi" if kind == "bcf" else ".tbi"))
        if kind == "bcf" and not self.tabix.lost:
            pysam = import_module("pysam")  # whose types do not know that it takes "bcf"
            pysam.tabix_index(output, preset="bcf", force=True)
        elif isinstance(file, BlockWriter) and not self.tabix.lost:
            with replacing(beside) as temporary:
                self.tabix.write(temporary, file)
        else:
            beside.unlink(missing_ok=True)
            self.found.not_indexed = self.tabix.lost if kind != "vcf" else "it is plain text; write .vcf.gz for one"


def _require_new(head: list[bytes], fields: list[Field], path: str) -> None:
    """Refuse a file that has such fields."""
    for one in fields:
        for number, line in enumerate(head, 1):
            if line.startswith((f"##INFO=<ID={one.name},".encode(), f"##INFO=<ID={one.name}>".encode())):
                message = f"has an INFO field {one.name} already; give the new ones another name (--name)"
                raise DataError(message, path, number)


def _to_bcf(path: Path, output: str) -> None:
    """Turn the VCF text of a file into BCF; `output` is what it will be called."""
    import pysam

    other, loud = path.with_name(path.name + ".bcf"), pysam.set_verbosity(0)  # what it would say is said here
    try:
        with pysam.VariantFile(str(path)) as text, pysam.VariantFile(str(other), "wb", header=text.header) as file:
            for record in text:
                file.write(record)
        os.replace(other, path)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        what = "cannot be written as BCF, whose header has to name all chromosomes (##contig) and fields"
        raise DotaddError(f"{output}: {what}; write .vcf.gz") from None
    finally:
        pysam.set_verbosity(loud)
        other.unlink(missing_ok=True)
