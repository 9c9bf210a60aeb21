"""Tabix: the index (.tbi) of a sorted VCF file in BGZF, while the file is written.

Records fall into bins of 16 kb, 128 kb, 1 Mb, 8 Mb, 64 Mb and 512 Mb, each into the smallest that holds it whole. The
index says for each bin where its records lie, in stretches, and for each 16 kb where the first record that reaches into
it lies. Stretches are joined as they come, so that an index in the making is small however many records there are.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from dotadd._util.bgzf import BlockWriter

FURTHEST = 1 << 29  # letters of a chromosome that bins reach
_WINDOW = 14  # bits: 16 kb
_VCF = struct.pack("<6i", 2, 1, 2, 0, ord("#"), 0)  # the columns of name and place, and how other lines begin


class _Sequence:
    """What is known of one chromosome."""

    def __init__(self) -> None:
        self.bins: dict[int, list[tuple[int, int]]] = {}
        self.first = np.full(16, -1, np.int64)  # the first record of each window

    def add(self, begin: np.ndarray, end: np.ndarray, start: np.ndarray, stop: np.ndarray) -> None:
        bins = _bins(begin, end)
        runs = np.flatnonzero(np.r_[True, bins[1:] != bins[:-1]])
        lasts = np.r_[runs[1:], len(bins)] - 1
        for number, low, high in zip(bins[runs].tolist(), start[runs].tolist(), stop[lasts].tolist(), strict=True):
            chunks = self.bins.setdefault(number, [])
            if chunks and chunks[-1][1] == low:
                chunks[-1] = chunks[-1][0], high
            else:
                chunks.append((low, high))
        windows, reach = begin >> _WINDOW, (end - 1) >> _WINDOW
        if int(reach.max()) >= len(self.first):
            more = max(2 * len(self.first), int(reach.max()) + 1)
            self.first = np.r_[self.first, np.full(more - len(self.first), -1, np.int64)]
        once, at = np.unique(windows, return_index=True)  # records come in order: the first of them is the first there
        new = self.first[once] < 0
        self.first[once[new]] = start[at[new]]
        for k in np.flatnonzero(reach > windows):
            some = self.first[windows[k] : reach[k] + 1]
            some[some < 0] = start[k]
            np.minimum(some, start[k], out=some)


class Tabix:
    """An index that grows. `lost` tells why there will be none."""

    def __init__(self) -> None:
        self.sequences: dict[bytes, _Sequence] = {}
        self.lost = ""
        self._current: bytes | None = None
        self._latest = -1

    def add(self, name: bytes, begin: np.ndarray, end: np.ndarray, start: np.ndarray, stop: np.ndarray) -> None:
        """Records of one chromosome: their letters, from 0 and without the end, and their bytes in the text."""
        if self.lost or not len(begin):
            return
        if name != self._current:
            if name in self.sequences:
                self.lost = "its chromosomes are not in one piece each"
                return
            self._current, self._latest = name, -1
            self.sequences[name] = _Sequence()
        if begin[0] < self._latest or (np.diff(begin) < 0).any():
            self.lost = "it is not sorted"
        elif int(end.max()) > FURTHEST:
            self.lost = f"it has positions beyond {FURTHEST:,}"
        else:
            self._latest = int(begin[-1])
            self.sequences[name].add(begin, np.maximum(end, begin + 1), start, stop)

    def write(self, path: Path, text: BlockWriter) -> None:
        """The file of the index, once the text has been written."""
        names = b"".join(name + b"\0" for name in self.sequences)
        out = [b"TBI\1", struct.pack("<i", len(self.sequences)), _VCF, struct.pack("<i", len(names)), names]
        for sequence in self.sequences.values():
            out.append(struct.pack("<i", len(sequence.bins)))
            for number, chunks in sequence.bins.items():
                out += [struct.pack("<Ii", number, len(chunks)), text.places(np.array(chunks).reshape(-1)).tobytes()]
            known = np.flatnonzero(sequence.first >= 0)
            first = sequence.first[: known[-1] + 1]
            filled = np.maximum.accumulate(np.where(first >= 0, np.arange(len(first)), -1))
            places = np.where(filled >= 0, text.places(np.maximum(first[np.maximum(filled, 0)], 0)), np.uint64(0))
            out += [struct.pack("<i", len(first)), places.astype(np.uint64).tobytes()]
        with open(path, "wb") as file, BlockWriter(file) as blocks:
            blocks.write(b"".join(out))


def _bins(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The number of the smallest bin that holds each record whole."""
    found, last = np.zeros(len(begin), np.int64), end - 1
    for shift, first in ((26, 1), (23, 9), (20, 73), (17, 585), (14, 4681)):
        inside = begin >> shift == last >> shift
        found[inside] = first + (begin[inside] >> shift)
    return found
