"""Alleles: the changes that the lines of a VCF file speak of, each in one form however it was written.

A change takes some letters out of a chromosome and puts others in their place. Letters that REF and ALT share at their
end, and then at their beginning, are left out; a change that only inserts or only deletes is moved as far to the left
as it can go without another outcome (Tan, Abecasis and Kang 2015). So changes that give the same sequence in one place
are one change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.genome.vcf import ALLELES, ALT, NUMBER, REF, Lines

LONGEST = 10_000  # letters that a change may insert or delete


class SkipReason(IntEnum):
    """Why an ALT has no score."""

    NONE = 0
    SYMBOLIC = 1
    STAR = 2
    BREAKEND = 3
    NO_ALT = 4
    FOREIGN = 5
    NO_CHROMOSOME = 6
    MISMATCH = 7
    OFF_END = 8
    UNKNOWN = 9
    LONG = 10

    @property
    def told(self) -> str:
        return _TOLD[self]


_TOLD = {
    SkipReason.NONE: "scored",
    SkipReason.SYMBOLIC: "symbolic ALT",
    SkipReason.STAR: "ALT *",
    SkipReason.BREAKEND: "breakend",
    SkipReason.NO_ALT: "no ALT",
    SkipReason.FOREIGN: "ALT with a letter other than ACGT",
    SkipReason.NO_CHROMOSOME: "chromosome not in the FASTA",
    SkipReason.MISMATCH: "REF is not what the FASTA has",
    SkipReason.OFF_END: "too near to the end of the chromosome",
    SkipReason.UNKNOWN: "N within reach",
    SkipReason.LONG: f"more than {LONGEST:,} letters",
}

# The same as plain numbers, for kernels.
_SYMBOLIC, _STAR, _BREAKEND, _NO_ALT, _FOREIGN, _NO_CHROMOSOME, _MISMATCH, _OFF_END, _UNKNOWN, _LONG = range(1, 11)
_N = ord("N")
_PLAIN = np.full(256, _N, np.uint8)  # letters of alleles as those of a Genome
for _letter in b"ACGT":
    _PLAIN[[_letter, _letter + 32]] = _letter


START, DELETED, FIRST, COUNT, WHY = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Alleles:
    """Changes on one chromosome, each a row of `moves`: from START on, DELETED letters go, and COUNT letters come that
    lie in `inserted` from FIRST on; WHY is the reason if it cannot be scored."""

    moves: np.ndarray
    inserted: np.ndarray

    def __len__(self) -> int:
        return len(self.moves)

    @property
    def position(self) -> np.ndarray:
        """POS as VCF has it, from 1: before an insertion or a deletion stands the letter in front of it."""
        alone = (self.moves[:, DELETED] == 0) | (self.moves[:, COUNT] == 0)
        return self.moves[:, START] + np.where(alone, 0, 1)

    def slice(self, first: int, stop: int) -> Alleles:
        return Alleles(self.moves[first:stop], self.inserted)

    def within(self, letters: np.ndarray, before: int, after: int) -> Alleles:
        """The same, without those for which a letter is N, or missing, among so many before and after the change."""
        moves = self.moves.copy()
        _reach(letters, moves, before, after)
        return Alleles(moves, self.inserted)


def changes(lines: Lines, first: int, stop: int, letters: np.ndarray | None) -> Alleles:
    """The changes of these lines, whose chromosome has these letters; None if there is none of this name."""
    facts = lines.facts[first:stop]
    moves = np.zeros((int(facts[:, ALLELES].sum()), 5), np.int64)
    inserted = np.empty(int((facts[:, ALT] - facts[:, REF]).sum()), np.uint8)
    found = np.empty(0, np.uint8) if letters is None else letters
    _changes(lines.text, facts, _PLAIN, found, letters is not None, moves, inserted)
    return Alleles(moves, inserted)


def single_letters(places: np.ndarray, letters: np.ndarray) -> Alleles:
    """Changes of one letter each."""
    moves = np.zeros((len(places), 5), np.int64)
    moves[:, START], moves[:, FIRST] = places, np.arange(len(places))
    moves[:, DELETED] = moves[:, COUNT] = 1
    return Alleles(moves, plain(letters))


@kernel
def _changes(text, facts, table, letters, known, moves, inserted):
    row, used = np.int64(0), np.int64(0)
    for line in range(len(facts)):
        ref, ref_end = facts[line, REF - 1] + 1, facts[line, REF]
        at = facts[line, NUMBER] - 1
        wrong = _reference(text, ref, ref_end, table, letters, at) if known else _NO_CHROMOSOME
        alt = ref_end + 1
        for _ in range(facts[line, ALLELES]):
            alt_end = alt
            while alt_end < facts[line, ALT] and text[alt_end] != 44:
                alt_end += 1
            why = _kind(text, alt, alt_end, table)
            if why == 0:
                why = wrong
            a, b, c, d, place = ref, ref_end, alt, alt_end, at
            if why == 0:
                while b > a and d > c and table[text[b - 1]] == table[text[d - 1]]:
                    b, d = b - 1, d - 1
                while b > a and d > c and table[text[a]] == table[text[c]]:
                    a, c, place = a + 1, c + 1, place + 1
                if b - a > LONGEST or d - c > LONGEST:
                    why = _LONG
            if why == 0:
                gone, new = b - a, d - c
                for k in range(new):
                    inserted[used + k] = table[text[c + k]]
                if (gone == 0) != (new == 0):
                    place = _to_the_left(letters, place, gone, inserted[used : used + new])
                moves[row, START], moves[row, DELETED] = place, gone
                moves[row, FIRST], moves[row, COUNT] = used, new
                used += new
            moves[row, WHY] = why
            row += 1
            alt = alt_end + 1


@inner
def _kind(text, first, stop, table):
    """Why the ALT is no sequence of letters; 0 if it is one."""
    if text[first] == 60:
        return _SYMBOLIC
    if stop - first == 1 and (text[first] == 42 or text[first] == 46):
        return _STAR if text[first] == 42 else _NO_ALT
    strange = stop == first
    for k in range(first, stop):
        if text[k] == 91 or text[k] == 93:
            return _BREAKEND
        strange = strange or table[text[k]] == _N
    if strange and (text[first] == 46 or text[stop - 1] == 46):
        return _BREAKEND
    return _FOREIGN if strange else 0


@inner
def _reference(text, first, stop, table, letters, at):
    """0 if REF is what stands there."""
    if at < 0 or at + stop - first > len(letters):
        return _OFF_END
    for k in range(stop - first):
        if table[text[first + k]] != letters[at + k]:
            return _MISMATCH
    return 0


@inner
def _to_the_left(letters, place, gone, new):
    """Move an insertion or a deletion as far as the letters allow; what is inserted turns around with it."""
    moved, many = 0, len(new)
    while place > 0 and letters[place - 1] != _N:
        last = letters[place + gone - 1] if many == 0 else new[many - 1 - moved % many]
        if letters[place - 1] != last:
            break
        place -= 1
        moved += 1
    if many > 0 and moved % many:
        turned = np.empty(many, np.uint8)
        for k in range(many):
            turned[(k + moved) % many] = new[k]
        new[:] = turned
    return place


@kernel
def _reach(letters, moves, before, after):
    for j in range(len(moves)):
        low, high = moves[j, START] - before, moves[j, START] + moves[j, DELETED] + after
        if moves[j, WHY]:
            continue
        if low < 0 or high > len(letters):
            moves[j, WHY] = _OFF_END
        else:
            unknown = np.int64(0)
            for k in range(np.uint64(low), np.uint64(high)):
                unknown += letters[k] == _N
            if unknown:
                moves[j, WHY] = _UNKNOWN
