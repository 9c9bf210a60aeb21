"""Maps that read strings letter by letter, each through a kernel and its plan; and those whose features are k-mers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.data.places import Places
from dotadd.features import kmer_tables
from dotadd.features.alphabet import FOREIGN, Alphabet, Span, byte_name, clip
from dotadd.features.base import Arrays, BadRow, Origins, checked_dim
from dotadd.features.kmer_layout import KmerLayout, write_kmers
from dotadd.features.leaves import Leaf, TiledLeaf
from dotadd.features.occurrences import Spans, runs_of_letters, stretches

if TYPE_CHECKING:
    from dotadd.features.kmer_stretches import SharedWindows

TRANSPOSED = 1 << 24  # letters that stand transposed at a time; more strings at once make better use of the cache
CHECKED = 1 << 18  # rows that are looked at at a time for letters that are none
MOST_COUNTED = 1 << 22  # slots of a space in which occurrences are counted to find lengths

Writer = tuple[Callable[..., None], np.ndarray]


class LetterMap(Leaf):
    """A map that reads strings letter by letter. Subclasses bring the kernel that writes features."""

    takes = (Strings,)
    span: Span | None = None

    def writer(self) -> Writer:
        """The kernel, and the parameters that it wants in one array, made once. It is called with the letters of all
        rows, where each row begins and ends, the letters' numbers, these parameters, and the block to be written to."""
        raise NotImplementedError

    def codes(self) -> np.ndarray:
        """The letter's number for each of the 256 bytes."""
        raise NotImplementedError

    def places(self, batch: Strings, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the part of each row that this map reads begins and ends."""
        return clip(self.span, *batch.bounds(rows))

    def row_codes(self, batch: Batch, row: int) -> tuple[np.ndarray, int]:
        """The numbers of the letters of a row that this map reads, and where in the row they begin."""
        assert isinstance(batch, Strings)
        rows = np.array([row])
        (first,), (stop,) = self.places(batch, rows)
        return self.codes()[batch.letters[first:stop]], int(first - batch.bounds(rows)[0][0])

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        assert isinstance(batch, Strings)
        write, plan = self.writer()
        write(
            plain(batch.letters), *self.places(batch, rows), self.codes(), plan,
            block.base, block.scale, block.end, block.indices, block.values,
        )  # fmt: skip


def foreign_letter(phi: LetterMap, batch: Batch, alphabet: Alphabet) -> BadRow | None:
    """The first letter, among those that this map reads, that is not in the alphabet."""
    assert isinstance(batch, Strings)
    takes = alphabet.takes
    if takes.all():
        return None
    for first in range(0, len(batch), CHECKED):
        rows = np.arange(first, min(first + CHECKED, len(batch)), dtype=np.int64)
        starts, ends = phi.places(batch, rows)
        row, at = _first_foreign(batch, starts, ends, takes)
        if row >= 0:
            column = int(at - batch.bounds(rows[row : row + 1])[0][0]) + 1
            letter = byte_name(int(batch.letters[at]))
            hint = alphabet.hint(batch.letters[starts[row] : ends[row]].tobytes())
            return BadRow(first + row, column, f"letter {letter} is not in the alphabet {alphabet.title}{hint}")
    return None


class KmerMap(LetterMap, TiledLeaf):
    """A map whose features are k-mers. Subclasses say how they are weighted and laid out."""

    keeps = False  # they are made about as fast as they could be read
    alphabet: Alphabet

    def layout(self) -> KmerLayout:
        raise NotImplementedError

    def writer(self) -> Writer:
        return write_kmers, self.layout().plan

    @property
    def as_they_stand(self) -> bool:
        """Whether k-mers are read as they stand in the string."""
        return True

    @property
    def kernel_fills(self) -> bool:
        """Whether `fill` writes k-mers as they stand, and is not another one's: what it writes can then be named, and
        tables may stand for it."""
        return self.as_they_stand and type(self).fill is LetterMap.fill

    def codes(self) -> np.ndarray:
        return self.alphabet.codes

    def check(self, batch: Batch) -> BadRow | None:
        """The first letter, among those that this map reads, that is not in the alphabet."""
        return foreign_letter(self, batch, self.alphabet)

    def counts(self) -> dict[int, int]:
        """How many non-zeros begin wherever so many letters more follow."""
        return {int(k) - 1: 1 for k in np.flatnonzero(self.layout().values)}

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        checked_dim(self, self.dim)
        fixed = batch.width is not None
        starts, ends = self.places(batch, np.arange(min(len(batch), 1) if fixed else len(batch), dtype=np.int64))
        total = np.zeros(len(starts), np.int64)
        for more, count in self.counts().items():
            total += count * np.maximum(ends - starts - more, 0)
        return int(total.max(initial=0)) if fixed else total

    @property
    def place_slots(self) -> int:
        return self.layout().stride if self.bulk else 0

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        assert isinstance(batch, Strings)
        if not self.bulk or self.place_slots:
            super().dot(batch, rows, w, out)
            return
        places, codes, plan = self.places(batch, rows), self.codes(), self.layout().plan
        shared = self._shared(batch, *places)
        if shared is None or not shared.spectrum_dot(codes, plan, w, out):
            kmer_tables.shared_dot(plain(batch.letters), *places, codes, plan, w, out)

    def _shared(self, batch: Strings, starts: np.ndarray, ends: np.ndarray) -> SharedWindows | None:
        """These rows as windows of one length in letters that they share, if they are."""
        if not isinstance(batch, Places) or not len(starts):
            return None
        from dotadd.features.kmer_stretches import SharedWindows  # files have no places

        return SharedWindows(batch, starts, int(ends[0] - starts[0]))

    def _whole(self, shared: SharedWindows) -> np.ndarray:
        """Which of these windows have no foreign letter."""
        ends = shared.starts + shared.length
        return shared.batch.text.first_foreign(shared.starts, ends, self.codes() != FOREIGN) == ends

    def touch(self, batch: Batch, rows: np.ndarray, first: int, ws: Arrays, numbers: Arrays, *, adding: bool) -> None:
        """Strings are transposed once for all w."""
        assert isinstance(batch, Strings)
        layout = self.layout()
        starts, ends = self.places(batch, rows)
        shared = None if adding or first else self._shared(batch, starts, ends)
        if shared is not None and self._whole(shared).all():
            left = [
                (w, sums)
                for w, sums in zip(ws, numbers, strict=True)
                if not shared.tables_dot(self.codes(), layout.plan, w, sums)
            ]
            ws, numbers = [w for w, _ in left], [sums for _, sums in left]
        longest = max(1, int((ends - starts).max(initial=0)))
        step = max(1, TRANSPOSED // longest)
        last = first + len(ws[0]) // layout.stride if len(ws) else first  # positions at which k-mers begin
        reach = last + len(layout.values) - 2  # letters that they reach
        for at in range(0, len(rows), step):
            some = slice(at, at + step)
            text = kmer_tables.transposed(plain(batch.letters), starts[some], ends[some], self.codes(), first, reach)
            for w, sums in zip(ws, numbers, strict=True):
                kmer_tables.dot_or_add(text, layout.plan, first, w, sums[some], adding)

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        from dotadd.features import pair_lengths  # maps of text have no need of it

        assert isinstance(batch, Strings)
        places, layout = self.places(batch, rows), self.layout()
        counted = layout.stride == 0
        too_many = counted and (self.dim > MOST_COUNTED or np.subtract(*places).min(initial=0) <= -(1 << 16))
        if not self.bulk or too_many:
            return super().squared_norms(batch, rows)
        out = np.empty(len(rows))
        text = plain(batch.letters), *places, self.codes()
        longest = -int(np.subtract(*places).min(initial=0))
        shared = self._shared(batch, *places)
        if shared is not None and (
            shared.spectrum_lengths(self.codes(), layout.plan, self.dim, out)
            if counted
            else self._lengths_of_whole(shared, out)
        ):
            return out
        if counted and layout.size == pair_lengths.LETTERS and longest <= pair_lengths.LONGEST:
            pair_lengths.pair_lengths(*text, layout.values, out)
        elif counted:
            kmer_tables.shared_lengths(*text, layout.plan, self.dim, out)
        else:
            kmer_tables.squared_lengths(*text, layout.values, out)
        return out

    def _lengths_of_whole(self, shared: SharedWindows, out: np.ndarray) -> bool:
        """Where each position has tables of its own, windows without a foreign letter are all as long as the first;
        says whether these are all."""
        if not self._whole(shared).all():
            return False
        one = shared.starts[:1], shared.starts[:1] + shared.length
        kmer_tables.squared_lengths(plain(shared.batch.letters), *one, self.codes(), self.layout().values, out[:1])
        out[:] = out[0]
        return True

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        assert isinstance(batch, Strings)
        if not self.kernel_fills:
            return super().origins(batch, rows, nth)
        layout, names = self.layout(), Origins.unnamed(repr(self), len(nth))
        found = np.empty((3, len(nth)), np.int64)
        text = np.zeros((len(nth), len(layout.values) - 1), np.uint8)
        letters = plain(batch.letters), *self.places(batch, rows), self.codes(), self.alphabet.letter_bytes
        _find(*letters, layout.values, plain(nth), found, text)
        at, order, rest = found
        names.text[:] = _texts(text)
        if layout.stride:
            names.position[:] = at - batch.bounds(rows)[0]
        return names, np.where(order > 0, -1, rest)

    def spans(self, batch: Batch, row: int) -> Spans | None:
        if not self.kernel_fills:
            return None
        (codes, before), orders = self.row_codes(batch, row), np.flatnonzero(self.layout().values).tolist()
        runs = list(runs_of_letters(codes))
        return stretches((before + first, stop - first - k + 1, k) for first, stop in runs for k in orders)

    def invert(self, slots: np.ndarray) -> Origins:
        """The inverse of what `fill` does for orders that are counted through."""
        if type(self).fill is not LetterMap.fill:
            return super().invert(slots)
        layout, size = self.layout(), self.alphabet.size
        names = Origins.unnamed(repr(self), len(slots))
        first = 0 if self.span is None or self.span[0] is None else self.span[0]
        if layout.stride and first < 0:
            return names  # positions from the end of strings, which may differ in length
        inside = slots.astype(np.int64)
        position = np.zeros_like(inside)
        if layout.stride:
            position, inside = inside // layout.stride, inside % layout.stride
        stir = (position * 0x9E3779B1 & 0xFFFFFFFF) >> (32 - layout.bits)  # no bits: everything is shifted out
        orders = np.arange(1, layout.explicit + 1)
        if not np.diff(layout.offsets[orders].astype(np.int64)).all():  # one table: the order that is written has it
            orders = np.flatnonzero(layout.values[: layout.explicit + 1])
        for k in orders.tolist():
            number = (inside - int(layout.offsets[k])) ^ stir
            found = np.flatnonzero((inside >= int(layout.offsets[k])) & (number >= 0) & (number < size**k))
            digits = number[found, None] // size ** np.arange(k - 1, -1, -1) % size
            names.text[found] = _texts(self.alphabet.letter_bytes[digits])
            if layout.stride:
                names.position[found] = position[found] + first
        return names


def _texts(letters: np.ndarray) -> list[bytes]:
    """The rows of a matrix of letters, without the zeros at their ends."""
    return np.ascontiguousarray(letters).view(f"S{letters.shape[1]}")[:, 0].tolist() if letters.size else []


def _first_foreign(batch: Strings, starts: np.ndarray, ends: np.ndarray, takes: np.ndarray) -> tuple[int, int]:
    """The first of these strings that has a letter which is not among these, and where; -1 if there is none."""
    if isinstance(batch, Places):  # a letter is looked at once, however many places share it
        at = batch.text.first_foreign(starts, ends, takes)
        found = np.flatnonzero(at < ends)[:1]
        return (int(found[0]), int(at[found[0]])) if len(found) else (-1, -1)
    row, place = first_foreign(plain(batch.letters), starts, ends, takes)
    return int(row), int(place)


@kernel
def first_foreign(letters, starts, ends, takes):
    for j in range(len(starts)):
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            if not takes[letters[i]]:
                return np.int64(j), np.int64(i)
    return np.int64(-1), np.int64(-1)


@kernel
def _find(letters, starts, ends, codes, names, values, nth, found, text):
    """Which k-mer of letters[starts[h]:ends[h]] is written as its nth[h]-th non-zero: where it begins, and its letters.

    Goes through the k-mers as `fill` does, from one foreign letter to the next, order by order. Order 0 means that
    there are fewer, and `rest` tells how far beyond them nth is. All three come as `found`.
    """
    at, order, rest = found[0], found[1], found[2]
    for h in range(len(nth)):
        left = nth[h]
        order[h] = 0
        stop = starts[h]
        while stop < ends[h] and order[h] == 0:
            first = stop
            while first < ends[h] and codes[letters[first]] == FOREIGN:
                first += 1
            stop = first
            while stop < ends[h] and codes[letters[stop]] != FOREIGN:
                stop += 1
            for k in range(1, min(len(values) - 1, stop - first) + 1):
                if values[k] == 0.0:
                    continue
                count = stop - first - k + 1
                if left < count:
                    order[h] = k
                    at[h] = first + left
                    break
                left -= count
        rest[h] = left
        for i in range(order[h]):
            text[h, i] = names[codes[letters[at[h] + i]]]
