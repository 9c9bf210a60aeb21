"""Plain twins of genome, annotation and windows, written from their definitions; and small genomes made at random."""

from __future__ import annotations

import random
from dataclasses import dataclass

READS = {"acceptor": "AG", "donor": "GT"}


@dataclass(frozen=True)
class Transcript:
    """Exons as (first, last), counted from 1, in the order of the sequence."""

    sequence: str
    strand: str
    exons: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Window:
    sequence: str
    position: int  # of the leftmost of the two letters, from 1
    strand: str
    letters: str
    first: int  # of the window on the forward strand, from 1


def reverse_complement(text: str) -> str:
    return text[::-1].translate(str.maketrans("ACGTacgt", "TGCAtgca"))


def windows(
    genome: dict[str, str], signal: str, length: int, before: int, *, every: bool = False
) -> tuple[list[Window], int, int]:
    """All windows by sequence and position, how many had another letter than ACGT, and how many ran off an end."""
    found, unknown, off_end = [], 0, 0
    for name, text in genome.items():
        here = []
        for strand in "+-":
            read = text.upper() if strand == "+" else reverse_complement(text.upper())
            for at in range(len(read) - 1):
                if not every and read[at : at + 2] != READS[signal]:
                    continue
                first = at - before
                if first < 0 or first + length > len(read):
                    off_end += 1
                elif set(letters := read[first : first + length]) - set("ACGT"):
                    unknown += 1
                elif strand == "+":
                    here.append(Window(name, at + 1, strand, letters, first + 1))
                else:
                    begin = len(read) - (first + length) + 1
                    here.append(Window(name, len(read) - at - 1, strand, letters, begin))
        found += sorted(here, key=lambda window: window.position)
    return found, unknown, off_end


def introns(transcripts: list[Transcript]) -> set[tuple[str, int, int, str]]:
    """Each maximal run of positions between the exons of a transcript: (sequence, first, last, strand)."""
    found = set()
    for transcript in transcripts:
        covered = {p for first, last in transcript.exons for p in range(first, last + 1)}
        gaps = [p for p in range(min(covered), max(covered) + 1) if p not in covered]
        for p in gaps:
            if p - 1 in covered:
                last = next(q for q in range(p, max(covered) + 1) if q + 1 in covered)
                found.add((transcript.sequence, p, last, transcript.strand))
    return found


def true_sites(genome: dict[str, str], transcripts: list[Transcript], signal: str) -> set[tuple[str, int, str]]:
    """(sequence, position, strand) of introns that end with AG (begin with GT), read on their strand."""
    found = set()
    for name, first, last, strand in introns(transcripts):
        letters = genome[name][first - 1 : last].upper()
        letters = letters if strand == "+" else reverse_complement(letters)
        at_end = signal == "acceptor"
        if len(letters) >= 2 and (letters[-2:] if at_end else letters[:2]) == READS[signal]:
            found.add((name, last - 1 if at_end == (strand == "+") else first, strand))
    return found


def random_genome(rng: random.Random, sequences: int = 2, most: int = 300) -> dict[str, str]:
    """Sequences rich in the letters of the signals, some soft-masked, some with N."""
    genome = {}
    for number in range(sequences):
        text = "".join(rng.choices("ACGTagctN", (8, 8, 8, 8, 2, 2, 2, 2, rng.choice((0, 0.2))), k=rng.randint(0, most)))
        genome[f"chr{number}"] = text
    return genome


def random_transcripts(rng: random.Random, genome: dict[str, str], count: int = 6) -> list[Transcript]:
    made = []
    for _ in range(count):
        name = rng.choice([name for name, text in genome.items() if len(text) > 20])
        edges = sorted(rng.sample(range(1, len(genome[name]) + 1), 2 * rng.randint(1, 4)))
        exons = tuple(zip(edges[::2], edges[1::2], strict=True))
        made.append(Transcript(name, rng.choice("+-"), exons))
    return made


def with_signals(genome: dict[str, str], transcripts: list[Transcript]) -> dict[str, str]:
    """The genome with GT and AG written at the ends of introns, later ones over earlier ones."""
    texts = {name: list(text) for name, text in genome.items()}
    for name, first, last, strand in sorted(introns(transcripts)):
        if last - first >= 3:
            pairs = ("GT", "AG") if strand == "+" else ("CT", "AC")
            texts[name][first - 1 : first + 1], texts[name][last - 2 : last] = pairs
    return {name: "".join(text) for name, text in texts.items()}


def fasta(genome: dict[str, str], width: int = 60) -> str:
    lines = []
    for name, text in genome.items():
        lines += [f">{name} some words", *(text[k : k + width] for k in range(0, len(text), width))]
    return "\n".join(lines) + "\n"


def _lines(transcripts: list[Transcript], rng: random.Random, attributes) -> str:
    lines = []
    for number, made in enumerate(transcripts):
        first, last = made.exons[0][0], made.exons[-1][1]
        lines.append(f"{made.sequence}\there\tmRNA\t{first}\t{last}\t.\t{made.strand}\t.\tID=t{number};Parent=gene")
        for exon in made.exons:
            place = f"{exon[0]}\t{exon[1]}"
            lines.append(f"{made.sequence}\there\texon\t{place}\t.\t{made.strand}\t.\t{attributes(number)}")
    rng.shuffle(lines)
    return "\n".join(["##gff-version 3", "", *lines]) + "\n"


def gff3(transcripts: list[Transcript], rng: random.Random) -> str:
    """The lines of a GFF3 file, in any order."""
    return _lines(transcripts, rng, lambda number: f"ID=exon;Parent=t{number};rank=1")


def gtf(transcripts: list[Transcript], rng: random.Random) -> str:
    """The same as GTF."""
    return _lines(transcripts, rng, lambda number: f'gene_id "g"; transcript_id "t{number}"; exon_number "1";')
