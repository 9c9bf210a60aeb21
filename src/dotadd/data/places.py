"""Places: strings of one width that lie somewhere in letters which all of them share, and may overlap.

A window of a genome is then a number of four bytes and not its letters: those of a chromosome are in memory once,
however many windows cross them. The letters are a Text: sequences one after the other, each as it stands and then its
reverse complement, so that a window on either strand is a number, kernels read both alike, and the other strand of a
place is a place again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np

from dotadd._jit import kernel, plain
from dotadd._util.growing import Growing
from dotadd.data.batches import Strings
from dotadd.data.ragged import Parts

if TYPE_CHECKING:
    import pyarrow as pa

_N = ord("N")
STEP = 1 << 24  # letters that are looked through at a time, between two looks at the keyboard


class Runs(NamedTuple):
    """Neighbouring letters of one sort: where each run of them begins, and where it ends."""

    first: np.ndarray
    stop: np.ndarray


class Text:
    """Letters that places lie in. Sequences are added at the end, and what was added stays where it is.

    `room` letters are set aside; memory counts once it is written to.
    """

    def __init__(self, room: int = 0) -> None:
        self._buffer, self._used = np.empty(room, np.uint8), 0
        self._borders = Growing(np.zeros(1, np.int64))  # where each sequence begins, and where the last one ends
        self._runs: dict[bytes, tuple[int, list[Runs]]] = {}  # by kind of letter: what was looked through, and found

    def add(self, letters: np.ndarray) -> int:
        """Write a sequence and its reverse complement; returns where it begins. Letters are ACGTN in capitals."""
        first, size = self._used, len(letters)
        stop = first + 2 * size
        self._make_room(stop)
        self._buffer[first : first + size] = letters
        for done in range(0, size, STEP):
            _complement(self._buffer[first : first + size], done, min(done + STEP, size), self._buffer[:stop])
        self._used = stop
        self._borders.extend(np.array([stop]))
        return first

    def append(self, other: Text) -> Self:
        """Write all of another text behind this one."""
        first = self._used
        self._make_room(first + len(other))
        self._used = first + len(other)
        self._buffer[first : self._used] = other.letters
        self._borders.extend(other._borders.done()[1:] + first)
        return self

    def _make_room(self, size: int) -> None:
        if size > len(self._buffer):
            larger = np.empty(max(size, len(self._buffer) * 3 // 2), np.uint8)
            larger[: self._used] = self._buffer[: self._used]
            self._buffer = larger

    @property
    def letters(self) -> np.ndarray:
        return self._buffer[: self._used]

    def __len__(self) -> int:
        return self._used

    def other_strand(self, starts: np.ndarray, width: int) -> np.ndarray:
        """Where the reverse complements begin of the strings of this width that begin here."""
        borders = self._borders.done()
        of = np.searchsorted(borders, starts, side="right")
        return (borders[of - 1] + borders[of] - width - starts).astype(starts.dtype)

    def runs(self, takes: np.ndarray) -> Runs:
        """The runs of letters that are not among these (a flag for each byte), found once."""
        key = takes.tobytes()
        done, found = self._runs.get(key, (0, []))
        for first in range(done, self._used, STEP):
            some = takes[self._buffer[first : min(first + STEP, self._used)]]
            edges = np.flatnonzero(np.diff(some, prepend=True, append=True)) + first
            found = [*found, Runs(edges[::2], edges[1::2])]
        self._runs[key] = self._used, found
        none = np.empty(0, np.int64)
        return Runs(*(np.concatenate([none, *(run[k] for run in found)]) for k in (0, 1)))

    def first_foreign(self, starts: np.ndarray, ends: np.ndarray, takes: np.ndarray) -> np.ndarray:
        """Where each of these strings has its first letter that is not among these; its end where it has none."""
        first, stop = self.runs(takes)
        if not len(first):
            return ends
        run = np.searchsorted(stop, starts, side="right")
        at = np.maximum(first[np.minimum(run, len(first) - 1)], starts)
        return np.where((run < len(first)) & (at < ends), at, ends)


class Places(Strings):
    """The strings of `width` letters that begin at `starts` in a text."""

    def __init__(self, text: Text, starts: np.ndarray, *, width: int) -> None:
        super().__init__(text.letters, width=width)
        self.text, self.starts = text, starts

    def __len__(self) -> int:
        return len(self.starts)

    def parts(self) -> Parts:
        return Parts((), (self.starts,), (0,))

    @classmethod
    def of(cls, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        """Places in no text yet: they become those of the first batch that is written among them."""
        return cls(Text(), arrays[0], width=0)

    def made(self, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        assert self.width is not None
        return type(self)(self.text, arrays[0], width=self.width)

    def alike(self, other: Self) -> tuple[Self, Self]:
        return (self, other) if len(self) or self.mixes(other) else (other.slice(0, 0), other)

    def mixes(self, other: object) -> bool:
        return isinstance(other, Places) and self.text is other.text and self.width == other.width

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + len(self.text)

    @property
    def shared(self) -> object:
        return self.text

    def bounds(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self.width is not None
        starts = self.starts[rows].astype(np.int64)
        return starts, starts + self.width

    def together(self) -> Strings:
        assert self.width is not None
        letters = np.empty(len(self) * self.width, np.uint8)
        _copy(plain(self.letters), self.starts.astype(np.int64), self.width, letters)
        return Strings(letters, width=self.width)

    def with_offsets(self) -> Self:
        return cast("Self", self.together().with_offsets())  # which need no text any more

    def to_arrow(self) -> pa.Array:
        return self.together().to_arrow()

    def other_strand(self, rows: np.ndarray, other: np.ndarray) -> Self:
        """A batch of these rows, those with a flag in `other` as the other strand has them."""
        assert self.width is not None
        starts = self.starts[rows]
        return self.made((), (np.where(other, self.text.other_strand(starts, self.width), starts),))

    @classmethod
    def _joined(cls, batches: Iterator[Self]) -> Self:
        """Where they lie in several texts, these are written one after the other into a new one."""
        first = next(batches)
        text, width, starts = first.text, first.width, Growing(first.starts)
        bases, several = {id(text): 0}, [text]  # which are held, so that their ids stay theirs
        for batch in batches:
            if len(batch) and not len(starts):
                text, width, bases, several = batch.text, batch.width, {id(batch.text): 0}, [batch.text]
            if len(batch) and batch.width != width:
                raise ValueError(f"windows of {batch.width} letters cannot be joined with windows of {width}")
            if len(batch) and id(batch.text) not in bases:
                text = text if len(several) > 1 else Text().append(text)
                bases[id(batch.text)] = len(text)
                several.append(batch.text)
                text.append(batch.text)
            base = bases.get(id(batch.text), 0)
            starts.extend(batch.starts if not base else numbered(batch.starts.astype(np.int64) + base, len(text)))
        assert width is not None
        return cls(text, starts.done(), width=width)


def numbered(starts: np.ndarray, size: int) -> np.ndarray:
    """Places in a text of this size, in four bytes each where that is enough."""
    return starts.astype(np.uint32 if size <= 1 << 32 else np.int64)


@kernel
def _complement(letters, first, stop, out):
    """Write the partners of these letters from the end of `out` on, in reverse."""
    end = np.uint64(len(out) - 1)
    for k in range(np.uint64(first), np.uint64(stop)):
        letter = letters[k]
        # Bit 1 tells C and G from A and T; either pair differs in the same bits. N, which has it too, stays.
        change = np.uint8(21 - 17 * ((letter >> 1) & 1)) if letter != _N else np.uint8(0)
        out[end - k] = letter ^ change


@kernel
def _copy(letters, starts, width, out):
    for row in range(len(starts)):
        first, base = np.uint64(starts[row]), np.uint64(row * width)
        for k in range(np.uint64(width)):
            out[base + k] = letters[first + k]
