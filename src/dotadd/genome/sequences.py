"""A genome: the sequences of FASTA files, one after the other and never more than one in memory.

Letters come in capitals whether they were soft-masked or not, and every letter other than ACGT (N, and the codes for
one of several letters) as N. Sequences may stand on lines of any length. Files may be compressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from dotadd._jit import kernel, plain
from dotadd._util.compressed import decompressed, read_into, reading
from dotadd._util.growing import Growing
from dotadd._util.memory import available, words
from dotadd.errors import DataError, DotaddError

BUFFER = 4 << 20  # small enough for Ctrl-C while xz decompresses it
LONGEST = 16 << 20  # bytes of a header
NO_HEADER = "expected a header that begins with '>'; is this a FASTA file?"

_SPACE, _FOREIGN = 0, 255  # what _CLEAN says of bytes that are no letters
_CLEAN = np.full(256, _FOREIGN, np.uint8)
_CLEAN[np.frombuffer(b" \t\r\n\v\f", np.uint8)] = _SPACE
for _letter in range(ord("A"), ord("Z") + 1):
    _CLEAN[[_letter, _letter + 32]] = _letter if _letter in b"ACGT" else ord("N")
_CLEAN[np.frombuffer(b"-*.?", np.uint8)] = ord("N")  # gaps and stops, in alignments and old files
_NO_LETTERS = np.where(_CLEAN == _SPACE, _SPACE, _FOREIGN).astype(np.uint8)  # what may stand before the first header


@dataclass(frozen=True)
class GenomeSequence:
    """One sequence: its name (the first word of the header) and its letters, a byte each.

    `share` is where it begins and ends in the bytes of all files, as fractions of the whole; for progress.
    """

    name: str
    letters: np.ndarray
    share: tuple[float, float]


class Genome:
    """FASTA files that are read again and again. Where they hold one sequence only, it is read once and kept."""

    def __init__(self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> None:
        several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not several:
            raise DotaddError("give a FASTA file with the genome")
        self.paths = [os.path.expanduser(os.fspath(path)) for path in several]
        self._only: GenomeSequence | None = None

    @property
    def name(self) -> str:
        """What to call it in messages."""
        more = len(self.paths) - 1
        return self.paths[0] + (f" and {more} more" if more else "")

    def sequences(self) -> Iterator[GenomeSequence]:
        """All sequences in the order of the files. Let go of one before you ask for the next, or both are in memory."""
        if self._only is not None:
            yield self._only
            return
        names: set[str] = set()
        for sequence, path, line, last in self._read():
            if sequence.name in names:
                raise DataError(f"a second sequence is called {sequence.name!r}; names have to differ", path, line)
            if last and not names and len(self.paths) == 1:
                self._only = sequence
            names.add(sequence.name)
            yield sequence
            del sequence
        if not names:
            raise DataError("has no sequences", self.name)

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
                for header, line, letters, last in _records(file, path):
                    name = (header.split() or [""])[0]
                    if not name:
                        raise DataError("the header names no sequence; expected '>name'", path, line)
                    start, share = share, (before + min(raw.tell(), size)) / whole
                    yield GenomeSequence(name, letters, (start, share)), path, line, last
                    del letters
            before += size


def _records(file: IO[bytes], path: str) -> Iterator[tuple[str, int, np.ndarray, bool]]:
    """Header, its line, the letters of each record, and whether it is the last. Lines need not fit into the buffer."""
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
            table = _NO_LETTERS if header is None else _CLEAN
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

    Where that is, how many letters and newlines there were, whether a line begins there, and whether the byte there is
    no letter.
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
