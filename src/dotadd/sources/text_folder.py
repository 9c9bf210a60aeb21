"""Folders of texts, a subfolder for each class, as 20 newsgroups, mails and reviews come.

A text is the bytes of its file, whatever its encoding: maps of text read UTF-8, and take other bytes as letters of
their own. One file is in memory at a time, beside the chunk that it goes into.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dotadd._util.compressed import COMPRESSED, decompressed, largest_record, reading, too_large
from dotadd.data.batches import Strings
from dotadd.errors import DataError, UnusedFilesWarning
from dotadd.sources.base import Chunk
from dotadd.sources.folder import Folder, files_inside
from dotadd.sources.formats import IMAGES

BOM = b"\xef\xbb\xbf"
NO_TEXT = "has zero bytes in it, so that it is no text"
STEP = 1 << 20
ROW = 8  # bytes that a text counts for beside its own, so that empty ones have an end


@dataclass
class TextFolder(Folder):
    """The texts of a folder, or of one file alone. Images, what is hidden, and what lies beside the subfolders that
    others have their labels from, is left out, and that is told once."""

    told: bool = field(default=False, init=False, repr=False, compare=False)

    def read(self, nbytes: int) -> Iterator[Chunk]:
        names, y = self._labelled(self._names())
        texts: list[bytes] = []
        rows: list[int] = []
        size, most = 0, largest_record() if self.largest is None else self.largest
        for row, name in enumerate(names):
            text = self._text(name, most)
            if text is not None:
                texts.append(text)
                rows.append(row)
                size += len(text) + ROW
            if rows and (size >= nbytes or row == len(names) - 1):
                files = tuple((k, self._file(names[row])) for k, row in enumerate(rows))
                ids = self._carried([names[row] for row in rows])
                labels = None if y is None else y[rows]
                yield Chunk(Strings.from_list(texts), labels, None, 0, self.path, files=files, ids=ids)
                texts, rows, size = [], [], 0
                if self.on_progress is not None:
                    self.on_progress((row + 1) / len(names))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._alone = os.path.isfile(self.path)

    def _file(self, name: str) -> str:
        return self.path if self._alone else super()._file(name)

    def _names(self) -> list[str]:
        if self._alone:
            return [os.path.basename(self.path)]
        names, hidden = files_inside(self.path)
        images = [name for name in names if name.lower().endswith(IMAGES)]
        names = [name for name in names if not name.lower().endswith(IMAGES)]
        beside: list[str] = []
        if self.labelled and self.labels is None and any("/" in name for name in names):
            beside = [name for name in names if "/" not in name]
            names = [name for name in names if "/" in name]
        if not names:
            raise DataError("is a folder without texts", self.path)
        self._tell({"hidden": hidden, "images": images, "beside the subfolders": beside})
        return names

    def _tell(self, left_out: dict[str, list[str]]) -> None:
        if not self.told and any(left_out.values()):
            what = ", ".join(f"{_shown(names)} ({why})" for why, names in left_out.items() if names)
            warnings.warn(f"{self.path}: left out: {what}", UnusedFilesWarning, stacklevel=2)
        self.told = True

    def _text(self, name: str, most: int) -> bytes | None:
        """A text, None if it cannot be used."""
        path = self._file(name)
        try:
            with reading(path), open(path, "rb", buffering=0) as file:
                text = file.readall() if os.fstat(file.fileno()).st_size <= most else None
            if text is not None and text.startswith(tuple(COMPRESSED)):
                text = _unpacked(path, most)
            if text is None:
                raise too_large(most, path, budget=self.largest is not None)
            if b"\0" in text:
                raise DataError(f"{NO_TEXT}; move it away, or leave it out by on_bad_row= (--on-bad-row skip)", path)
        except DataError as error:
            self.bad_row(error)
            return None
        return text.removeprefix(BOM)


def _unpacked(path: str, most: int) -> bytes | None:
    """A text that is compressed, None if it is larger than this."""
    parts: list[bytes] = []
    with decompressed(path) as (_, file), reading(path):
        while more := file.read(STEP):  # which makes room for as much as it is asked for
            parts.append(more)
            if sum(map(len, parts)) > most:
                return None
    return b"".join(parts)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2:,} more" if len(names) > 2 else "")
