"""Strings read from the other strand, and strings moved by a few letters. They keep their lengths."""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel, plain
from dotadd._util.expression import call_repr
from dotadd.data.batches import Batch, Strings
from dotadd.data.places import Places
from dotadd.data.transforms.base import TransformError, Transforms, steps, whole_number

Array = np.ndarray

# A pairs with T in DNA and with U in RNA. The codes for several letters pair by what they stand for: R = A or G,
# Y = C or T, K = G or T, M = A or C, B = not A, V = not T, D = not C, H = not G; S, W and N pair with themselves.
PAIRS = {"dna": ("ACGTURYKMBVDH", "TGCAAYRMKVBHD"), "rna": ("ACGUTRYKMBVDH", "UGCAAYRMKVBHD")}


def reverse_complement(*, alphabet: str = "dna") -> ReverseComplement:
    """The string, and the string read from the other strand. Case is kept, and letters without a partner stay.

    alphabet: "dna" or "rna".
    """
    if alphabet not in PAIRS:
        raise TransformError(f'alphabet has to be "dna" or "rna", and not {alphabet!r}')
    return ReverseComplement(alphabet)


def shift(letters: int, *, step: int = 1, fill: str = "N") -> Shifts:
    """Moves by up to so many letters to the left and to the right.

    letters, step: the moves are -letters, -letters + step, ..., letters.
    fill:          the letter that is put where one has left.
    """
    letters, step = whole_number("letters", letters), whole_number("step", step)
    if not isinstance(fill, str) or len(fill) != 1 or not fill.isascii():
        raise TransformError(f"fill has to be one ASCII letter, and not {fill!r}")
    moves = steps(letters, step).astype(np.int64)
    options: dict[str, object] = ({} if step == 1 else {"step": step}) | ({} if fill == "N" else {"fill": fill})
    return Shifts(call_repr("shift", letters, **options), moves, fill)


class StringTransforms(Transforms):
    """What sets for strings have in common."""

    takes = (Strings,)

    def apply(self, batch: Batch, rows: np.ndarray, which: np.ndarray) -> Strings:
        assert isinstance(batch, Strings)
        starts, ends = batch.bounds(np.asarray(rows))
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        letters = np.empty(offsets[-1], np.uint8)
        self.make(plain(batch.letters), starts, np.asarray(which), offsets, letters)
        return Strings(letters, offsets) if batch.width is None else Strings(letters, width=batch.width)

    def make(self, letters: Array, starts: Array, which: Array, offsets: Array, out: Array) -> None:
        """Write the string at starts[j], changed by member which[j], to out[offsets[j] : offsets[j + 1]]."""
        raise NotImplementedError


class ReverseComplement(StringTransforms):
    """The string itself and its reverse complement."""

    def __init__(self, alphabet: str) -> None:
        super().__init__(call_repr("reverse_complement", **({} if alphabet == "dna" else {"alphabet": alphabet})))
        self.alphabet = alphabet
        self.partners = np.arange(256, dtype=np.uint8)
        for letters, partners in (PAIRS[alphabet], map(str.lower, PAIRS[alphabet])):
            self.partners[np.frombuffer(letters.encode(), np.uint8)] = np.frombuffer(partners.encode(), np.uint8)

    def __len__(self) -> int:
        return 2

    def names(self) -> list[str]:
        return ["as it is", "reverse complement"]

    def check(self, batch: Batch) -> None:
        """A map made for RNA would not know the letters of DNA in half of the strings, and the other way round."""
        super().check(batch)
        assert isinstance(batch, Strings)
        first, stop = (0, len(batch.letters)) if batch.offsets is None else batch.offsets[[0, -1]]
        foreign, better = ("U", "rna") if self.alphabet == "dna" else ("T", "dna")
        lower = batch.letters[first:stop] | np.uint8(32)
        if (lower == ord(foreign.lower())).any():
            use = reverse_complement(alphabet=better)
            raise TransformError(f"{self!r} is not for strings with the letter {foreign}: use {use!r}")

    def apply(self, batch: Batch, rows: np.ndarray, which: np.ndarray) -> Strings:
        if isinstance(batch, Places) and self.alphabet == "dna":
            return batch.other_strand(np.asarray(rows), np.not_equal(which, 0))
        return super().apply(batch, rows, which)

    def make(self, letters: Array, starts: Array, which: Array, offsets: Array, out: Array) -> None:
        _reverse(letters, starts, np.not_equal(which, 0), self.partners, offsets, out)


class Shifts(StringTransforms):
    """Moves by some numbers of letters."""

    def __init__(self, written: str, moves: np.ndarray, fill: str) -> None:
        super().__init__(written)
        self.moves, self.fill = moves, fill

    def __len__(self) -> int:
        return len(self.moves)

    @property
    def identity(self) -> int:
        return len(self) // 2

    def names(self) -> list[str]:
        ways = [f"{abs(move)} to the {'right' if move > 0 else 'left'}" for move in self.moves.tolist()]
        ways[self.identity] = "as it is"
        return ways

    def check(self, batch: Batch) -> None:
        super().check(batch)
        assert isinstance(batch, Strings)
        if not len(batch):
            return
        shortest = batch.width if batch.width is not None else int(batch.lengths().min())
        if self.moves[-1] >= shortest:
            raise TransformError(f"{self!r} moves a string of {shortest} letters out of its place")

    def make(self, letters: Array, starts: Array, which: Array, offsets: Array, out: Array) -> None:
        _shift(letters, starts, self.moves[which], ord(self.fill), offsets, out)


@kernel
def _reverse(letters, starts, reverse, partners, offsets, out):
    for j in range(len(starts)):
        first, at = np.uint64(starts[j]), np.uint64(offsets[j])
        length = np.uint64(offsets[j + 1]) - at
        if reverse[j]:
            for k in range(length):
                out[at + k] = partners[letters[first + (length - np.uint64(1) - k)]]
        else:
            for k in range(length):
                out[at + k] = letters[first + k]


@kernel
def _shift(letters, starts, moves, fill, offsets, out):
    """Letter k of string j comes from letter k - moves[j] of it."""
    for j in range(len(starts)):
        length = offsets[j + 1] - offsets[j]
        right, left = min(max(moves[j], 0), length), min(max(-moves[j], 0), length)
        source, target = np.uint64(starts[j] + left), np.uint64(offsets[j] + right)
        for k in range(np.uint64(length - right - left)):
            out[target + k] = letters[source + k]
        for k in range(np.uint64(offsets[j]), target):
            out[k] = fill
        for k in range(np.uint64(offsets[j + 1] - left), np.uint64(offsets[j + 1])):
            out[k] = fill
