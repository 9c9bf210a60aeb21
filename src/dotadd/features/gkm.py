"""Gkm: gapped k-mers of DNA as LS-GKM counts them, as a feature map over all l-mers.

phi_u(z) = sum over the l-mers v of z, on both strands, of f(mismatches of u and v); k(z, z') = <phi(z), phi(z')>.

f is the filter of gapped k-mers (gkm_weights.py). With `.normalized()` these are the kernels of Ghandi et al. (2014)
and Lee (2016): LS-GKM's -t 2 (truncated), -t 1 (full) and -t 0 (count), with the kernel's own reach instead of -d; and
with middle=(M, H) its -t 4. It reads letters other than ACGT as A; here the l-mers with them are left out.

An l-mer and its reverse complement have the same value, and are one feature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import cast

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.alphabet import Alphabet, byte_name
from dotadd.features.base import BadRow, Origins
from dotadd.features.gkm_weights import FILTERS, LETTERS, filter_weights
from dotadd.features.kmer_layout import packed
from dotadd.features.kmers import Writer, first_foreign
from dotadd.features.leaves import checked_int
from dotadd.features.mismatch_table import LAYOUTS, LONGEST, MismatchTable, half_slot, place_weight, read_lmers
from dotadd.features.occurrences import Spans, runs_of_letters, stretches
from dotadd.features.tabled import TabledLmers

MOST_NEIGHBOURS = 1 << 12  # of an l-mer that are written one by one; with more of them rows are dense
AMBIGUOUS = b"NRYSWKMBDHV"  # one of several nucleotides
HIGHEST = 255  # what a place may count


class Gkm(TabledLmers):
    """Gapped k-mers: estimated counts of all l-mers, from those of their k letters that are not gaps.

    l: letters of a word, up to 12. k: so many of them are read, the others are gaps.
    filter: "truncated", LS-GKM's default: an l-mer counts for those a few mismatches away, two for l = 11 and k = 7;
        "full": for all l-mers, and for some negatively; "count": the kernel counts the gapped k-mers that two strings
        share. Rows of the last two are dense.
    strands: "both" reads the reverse complement of each string, too; "one" does not.
    middle: (M, H), an l-mer D places from the middle of the string counts min(M, floor(M 2^(-D / H) + 1)) times.
    """

    def __init__(
        self,
        l: int = 11,  # noqa: E741  # as everybody calls it
        k: int = 7,
        *,
        filter: str = "truncated",
        strands: str = "both",
        middle: tuple[int, float] | None = None,
    ) -> None:
        self.l = checked_int("l", l, 1, LONGEST)
        self.k = checked_int("k", k, 1, self.l)
        if filter not in FILTERS:
            raise FeatureError(f"filter has to be one of {', '.join(map(repr, FILTERS))}, and not {filter!r}")
        if strands not in ("one", "both"):
            raise FeatureError(f'strands has to be "one" or "both", and not {strands!r}')
        self.filter, self.strands = filter, strands
        self.middle, self.order = _checked_middle(middle), self.l
        self.bulk = self.whole = True
        self.distinct = self.dense

    @property
    def weights(self) -> tuple[float, ...]:
        """f(0), f(1), .."""
        return filter_weights(self.l, self.k, self.filter)

    @property
    def layout(self) -> str:
        """Of w, as mismatch_table.py calls it."""
        return "one" if self.strands == "one" else "half" if self.l % 2 else "both"

    def tabled(self) -> MismatchTable:
        """The table by which l-mers, counted, become features."""
        return _table(self.l, self.weights, self.layout)

    @property
    def table(self) -> MismatchTable | None:
        return self.tabled()

    @property
    def dim(self) -> int:
        return self.tabled().dim

    @property
    def neighbours(self) -> int:
        """For how many l-mers one counts."""
        return sum(math.comb(self.l, m) * (LETTERS - 1) ** m for m, f in enumerate(self.weights) if f)

    @property
    def dense(self) -> bool:
        """Whether rows have a value in nearly every slot."""
        return self.neighbours > MOST_NEIGHBOURS

    def codes(self) -> np.ndarray:
        return Alphabet("dna").codes

    def check(self, batch: Batch) -> BadRow | None:
        """The first letter that stands for no nucleotide."""
        assert isinstance(batch, Strings)
        rows = np.arange(len(batch), dtype=np.int64)
        starts, ends = batch.bounds(rows)
        row, at = first_foreign(plain(batch.letters), starts, ends, _takes())
        if row < 0:
            return None
        letter = byte_name(int(batch.letters[at]))
        hint = Alphabet("dna").hint(batch.letters[starts[row] : ends[row]].tobytes()).partition(";")[0]
        return BadRow(int(row), int(at - starts[row]) + 1, f"letter {letter} is no nucleotide of DNA{hint}")

    def place_weights(self) -> np.ndarray:
        return super().place_weights() if self.middle is None else _place_weights(*self.middle)

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        if self.dense:
            return self.dim
        if batch.width is not None:
            return max(batch.width - self.l + 1, 0) * self.neighbours
        return np.maximum(batch.lengths() - self.l + 1, 0) * self.neighbours

    def writer(self) -> Writer:
        return neighbour_plan(self.tabled(), self.place_weights())

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        if not self.dense:
            super().fill(batch, rows, block)
            return
        slots, table = np.arange(self.dim), self.tabled()
        for j, row in enumerate(rows):
            phi = np.zeros(self.dim)
            table.gather(self.counted(batch, np.array([row]), np.ones(1), table), phi, 1)
            block.append(j, slots, phi)

    def spans(self, batch: Batch, row: int) -> Spans | None:
        if self.dense:
            return None
        codes, before = self.row_codes(batch, row)
        runs = list(runs_of_letters(codes))
        first, stop = stretches((before + first, stop - first - self.l + 1, self.l) for first, stop in runs)
        return np.repeat(first, self.neighbours), np.repeat(stop, self.neighbours)

    def invert(self, slots: np.ndarray) -> Origins:
        """The l-mer of a slot, the one of two that the slot is called by."""
        names, numbers = Origins.unnamed(repr(self), len(slots)), slots.astype(np.int64)
        if self.layout == "half":
            below = self.l - 1  # bits of the letters after the middle
            flanks, middle = numbers & (1 << 2 * below) - 1, numbers >> 2 * below
            numbers = (flanks >> below) << below + 2 | middle << below | flanks & (1 << below) - 1
        digits = numbers[:, None] >> 2 * np.arange(self.l - 1, -1, -1) & 3
        letters = Alphabet("dna").letter_bytes[digits]
        names.text[:] = [row.tobytes() for row in letters]
        return names


def _checked_middle(middle: object) -> tuple[int, float] | None:
    if middle is None:
        return None
    try:
        most, half = cast("tuple[int, float]", middle)  # what is not a pair raises
        good = isinstance(most, int) and 1 <= most <= HIGHEST and 0 < float(half) < math.inf
    except (TypeError, ValueError):
        good = False
    if not good:
        raise FeatureError(
            f"middle has to be (M, H), a whole number from 1 to {HIGHEST} and a number above 0, and not {middle!r}"
        )
    return int(most), float(half)


@lru_cache
def _takes() -> np.ndarray:
    letters = np.frombuffer(b"ACGT" + AMBIGUOUS, np.uint8)
    takes = np.zeros(256, np.bool_)
    takes[letters] = takes[letters | 32] = True
    return takes


@lru_cache
def _table(order: int, weights: tuple[float, ...], layout: str) -> MismatchTable:
    """One that is its own reverse complement counts on both strands, as if there were two of it."""
    return MismatchTable(order, weights, layout, 2.0**0.5)


@lru_cache
def _place_weights(most: int, half: float) -> np.ndarray:
    """At so many places from the middle, until it is 1 for good."""
    away = np.arange(int(half * math.log2(most)) + 2)
    return np.minimum(most, np.floor(most * np.exp(-math.log(2) * away / half) + 1.0))


def _changes(order: int, most: int) -> Iterator[tuple[int, int, int]]:
    """What turns an l-mer into another one with so many mismatches at most, by exclusive or: the number of mismatches,
    and the number to be combined with, also for the reverse complement."""
    for m in range(most + 1):
        for where in combinations(range(order), m):
            for turns in product(range(1, LETTERS), repeat=m):
                change = sum(turn << 2 * (order - 1 - place) for place, turn in zip(where, turns, strict=True))
                back = sum(turn << 2 * place for place, turn in zip(where, turns, strict=True))
                yield m, change, back


def neighbour_plan(table: MismatchTable, places: np.ndarray) -> Writer:
    """The kernel that writes the neighbours of l-mers that a table has, and what it is told."""
    return write_neighbours, _plan(table, places.tobytes())


@lru_cache
def _plan(table: MismatchTable, places: bytes) -> np.ndarray:
    some = [one for one in _changes(table.order, len(table.weights) - 1) if table.weights[one[0]]]
    mismatches, change, back = (np.array(part) for part in zip(*some, strict=True))
    values = np.array([table.palindrome, *np.array(table.weights)[mismatches]])
    numbers = (table.order, LAYOUTS[table.layout], len(some))
    return packed(numbers, change.astype(np.int64), back.astype(np.int64), values, np.frombuffer(places))


@kernel
def write_neighbours(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    """Append what each l-mer counts for."""
    order, layout, many = plan[0], plan[1], plan[2]
    change, back = plan[3 : 3 + many], plan[3 + many : 3 + 2 * many]
    values = plan[3 + 2 * many : 4 + 3 * many].view(np.float64)
    places = plan[4 + 3 * many :].view(np.float64)
    palindrome = values[0]
    wide = out_indices.dtype.type
    longest = np.int64(1)
    for j in range(len(starts)):
        longest = max(longest, ends[j] - starts[j])
    number, other, where = np.empty(longest, np.uint32), np.empty(longest, np.uint32), np.empty(longest, np.uint32)
    for j in range(len(starts)):
        count = read_lmers(letters, starts[j], ends[j], codes, order, 0, number, other, where)
        slots = ends[j] - starts[j] - order + 1
        p = np.uint64(cursor[j])
        for i in range(count):
            here = scale * place_weight(places, slots, where[i])
            for t in range(np.uint64(many)):
                u, v = number[i] ^ np.uint32(change[t]), other[i] ^ np.uint32(back[t])
                out_indices[p + t] = wide(base) + wide(_slot(u, v, order, layout))
                value = here * values[t + np.uint64(1)]
                out_values[p + t] = value * palindrome if layout == 1 and u == v else value
            p += np.uint64(many)
        cursor[j] = p


@inner
def _slot(u, v, order, layout):
    if layout == 2:
        return half_slot(u, v, order)
    return min(u, v) if layout == 1 else u
