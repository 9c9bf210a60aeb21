"""Text, an example a line; with labels, these stand before the text as fastText has them: `__label__spam buy now`.

The first line tells whether there are labels. Where there are none, an empty line is an example of no letters, so that
the nth prediction is about the nth line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dotadd.data.batches import Strings
from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.text import pieces
from dotadd.sources.text_folder import BOM, NO_TEXT

LABEL = re.compile(rb"\s*__label__(\S*)\s*")


@dataclass
class LinesFile(FileSource):
    """One file of text. Labels that nobody wants are no part of it."""

    def read(self, nbytes: int) -> Iterator[Chunk]:
        labels: bool | None = None
        held: list[tuple[int, list[bytes]]] = []  # empty lines before the first that tells
        for piece in pieces(
            self.path, nbytes, on_progress=self.on_progress, largest=self.largest, line=self.first_line
        ):
            lines = bytes(piece.letters).split(b"\n")[:-1]
            if piece.line == 1:
                lines[0] = lines[0].removeprefix(BOM)
            held.append((piece.line, lines))
            if labels is None and (first := next((line for line in lines if line.strip()), None)) is not None:
                labels = LABEL.match(first) is not None
            if labels is not None:
                yield from (self._chunk(*some, labels) for some in held)
                held = []
        yield from (self._chunk(*some, False) for some in held)

    def _chunk(self, first: int, lines: list[bytes], labels: bool) -> Chunk:
        texts: list[bytes] = []
        words: list[str] = []
        numbers: list[int] = []
        for number, line in enumerate(lines, first):
            if labels and not line.strip():
                continue
            try:
                word, text = _split(line.removesuffix(b"\r"), labels)
            except ValueError as error:
                self.bad_row(DataError(str(error), self.path, number))
                continue
            texts.append(text)
            words.append(word)
            numbers.append(number)
        found = words if labels and self.labelled else None
        return Chunk(Strings.from_list(texts), None, None, 0, self.path, np.array(numbers, np.int64), words=found)


def _split(line: bytes, labels: bool) -> tuple[str, bytes]:
    """Label and text of a line; ValueError if it is not like the first."""
    if b"\0" in line:
        raise ValueError(f"{NO_TEXT}; convert it to UTF-8, for example with iconv")
    found = LABEL.match(line)
    if found is None and labels:
        raise ValueError("has no label, and the first line has one; write __label__NAME before the text")
    if found is None:
        return "", line
    if not labels:
        raise ValueError("has a label, and the first line has none")
    text = line[found.end() :]
    if LABEL.match(text) is not None:
        raise ValueError("has two labels; an example has one")
    return found[1].decode(errors="replace"), text
