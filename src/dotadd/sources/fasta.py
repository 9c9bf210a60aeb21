"""FASTA: `>name ... label` and the letters of a sequence on the lines below.

The label is the last word of the header (`label=1`, `label:1` or the word itself), the field named by `label`
(`class=1` for label="class"), or stands in a second file of names and labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.data.batches import Strings
from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.labels import label_table, without
from dotadd.sources.text import Piece, pieces

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "name"  # what the names of sequences are called where they are carried along
NO_LABEL = "the header has no label as its last word, like '>name label=1'; or name a file with labels="


@dataclass
class FastaFile(FileSource):
    """One FASTA file. `labels` is the path of a file with a name and a label on each line, a tab between them."""

    label: str | None = field(default=None, kw_only=True)
    labels: str | None = field(default=None, kw_only=True)
    ids: tuple[str | int, ...] = field(default=(), kw_only=True, compare=False)

    def __post_init__(self) -> None:
        for name in self.ids:
            if name != NAME:
                raise DataError(f"there is no column {name!r}; sequences have the column {NAME!r}", self.path)

    def files(self) -> list[str]:
        return [self.path] if self.labels is None else [self.path, self.labels]

    def read(self, nbytes: int) -> Iterator[Chunk]:
        table = None if self.labels is None or not self.labelled else label_table(self.labels)
        labelled: bool | None = None
        for piece in pieces(self.path, nbytes, _after_last_record, self.on_progress, self.largest):
            chunk, headers = self._parse(piece)
            if not len(chunk):
                continue
            if labelled is None:
                last = headers[0, 2:]
                written = table is not None or self.label is not None or bool(last[0] < last[1])
                labelled = written and self.labelled
            if self.ids:
                chunk = dataclasses.replace(chunk, ids=_names(headers, piece.buffer))
            yield self._labelled(chunk, headers, piece.buffer, table) if labelled else chunk

    def _labelled(self, chunk: Chunk, headers: np.ndarray, buffer: bytearray, table: dict[str, str] | None) -> Chunk:
        """The chunk with the labels that its headers give."""
        by_header = table is not None or self.label is not None
        firsts, stops = (headers[:, :2] if by_header else headers[:, 2:]).T.tolist()
        words = [buffer[first:stop].decode(errors="replace") for first, stop in zip(firsts, stops, strict=True)]
        complaints = {}
        if by_header:
            for row, header in enumerate(words):
                try:
                    words[row] = self._word(header, table)
                except ValueError as error:
                    words[row], complaints[row] = "", str(error)
        else:
            value_of = {word: word.removeprefix("label=").removeprefix("label:") for word in set(words)}
            complaints = {row: NO_LABEL for row, word in enumerate(words) if not word}
            words = [value_of[word] for word in words]
        return without(self, dataclasses.replace(chunk, words=words), complaints)

    def _word(self, header: str, table: dict[str, str] | None) -> str:
        words = header.split()
        if table is not None:
            name = words[0] if words else ""
            if name not in table:
                raise ValueError(f"{name!r} has no label in {self.labels}")
            return table[name]
        for word in words:
            if word.startswith((f"{self.label}=", f"{self.label}:")):
                return word[len(self.label or "") + 1 :]
        raise ValueError(f"the header has no field {self.label}=...")

    def _parse(self, piece: Piece) -> tuple[Chunk, np.ndarray]:
        """The records, and the bounds of each header and of its last word."""
        letters = plain(piece.letters)
        count = int(_count_records(letters))
        headers = np.empty((count, 4), np.int64)
        lines = np.empty(count, np.int64)
        offsets = np.zeros(count + 1, np.int64)
        sequence = np.empty(len(letters), np.uint8)
        used, stray = (int(number) for number in _parse_records(letters, headers, lines, offsets, sequence))
        if stray >= 0:
            raise DataError("expected a header that begins with '>'", self.path, piece.line + stray, 1)
        chunk = Chunk(Strings(sequence[:used], offsets), None, None, 0, self.path, lines + piece.line)
        return self._with_letters(chunk, headers)

    def _with_letters(self, chunk: Chunk, headers: np.ndarray) -> tuple[Chunk, np.ndarray]:
        """Without the records that have no letters."""
        assert isinstance(chunk.batch, Strings)
        lengths = chunk.batch.lengths()
        if (lengths > 0).all():
            return chunk, headers
        for row in np.flatnonzero(lengths == 0):
            self.bad_row(chunk.error(int(row), "the sequence has no letters"))
        keep = np.flatnonzero(lengths > 0)
        return chunk.take(keep), headers[keep]


def _names(headers: np.ndarray, buffer: bytearray) -> pa.RecordBatch:
    """The first word of each header."""
    import pyarrow as pa

    texts = [bytes(buffer[first:stop]).decode(errors="replace") for first, stop in headers[:, :2].tolist()]
    return pa.RecordBatch.from_pydict({NAME: pa.array([next(iter(text.split()), "") for text in texts])})


def _after_last_record(buffer: bytearray, have: int) -> int:
    return buffer.rfind(b"\n>", 0, have) + 1


@kernel
def _count_records(text):
    count = np.int64(0)
    previous = np.uint8(10)
    for letter in text:
        count += np.int64(letter == 62 and previous == 10)
        previous = letter
    return count


@kernel
def _parse_records(text, headers, lines, offsets, sequence):
    """Header bounds, header lines and sequences of all records; how many letters there are, and the line of a letter
    before the first header, or -1."""
    record, used, line = np.int64(-1), np.uint64(0), np.int64(0)
    p = np.uint64(0)
    while p < np.uint64(len(text)):
        if text[p] == 62:
            record += 1
            first = word = stop = p + np.uint64(1)
            while text[p] != 10:
                p += np.uint64(1)
                if text[p] > 32:
                    if text[p - np.uint64(1)] <= 32:
                        word = p
                    stop = p + np.uint64(1)
            headers[record, 0], headers[record, 1] = first, p
            headers[record, 2], headers[record, 3] = word, stop if word > first else word
            lines[record] = line
        else:
            while text[p] != 10:
                if record < 0 and text[p] > 32:
                    return used, line
                sequence[used] = text[p]
                used += np.uint64(text[p] > 32)
                p += np.uint64(1)
        p += np.uint64(1)
        line += 1
        if record >= 0:
            offsets[record + 1] = used
    return used, np.int64(-1)
