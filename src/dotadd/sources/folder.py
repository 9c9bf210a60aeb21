"""Folders of files that are an example each, with the name of its subfolder as its label; and those of PNG and JPEG
files, gray images of one size. Texts are in `text_folder.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd._util.compressed import reading
from dotadd.data.batches import Images
from dotadd.errors import DataError, require_extra
from dotadd.sources.base import Chunk
from dotadd.sources.files import FileSource
from dotadd.sources.formats import IMAGES, format_of_folder
from dotadd.sources.labels import are_numbers, label_table, parsed
from dotadd.sources.text import fields_of

if TYPE_CHECKING:
    import pyarrow as pa

PATH = "path"  # what the names of files are called where they are carried along


class Inside(NamedTuple):
    """What a folder holds: the paths of files inside of it, in order, and names of what is hidden."""

    names: list[str]
    hidden: list[str]


@dataclass
class Folder(FileSource):
    """The files of a folder, sorted by path, each an example. Subclasses say which files these are, and read them.

    The label of a file is the topmost subfolder that it lies in. `labels` is the path of a file with a name and a label
    on each line, a comma or a tab between them, where names are paths inside of the folder. Those who want no labels
    but predictions are told the paths.
    """

    labels: str | None = field(default=None, kw_only=True)
    ids: tuple[str | int, ...] = field(default=(), kw_only=True, compare=False)

    def __post_init__(self) -> None:
        self.path = self.path.rstrip("/" + os.sep) or os.sep
        if os.path.basename(self.path) in (".", ".."):
            self.path = os.path.abspath(self.path)  # a copy beside it takes its name
        for name in self.ids:
            if name != PATH:
                raise DataError(f"there is no column {name!r}; a folder has the column {PATH!r}", self.path)

    @property
    def stride(self) -> int:
        return 4 << 20

    def files(self) -> list[str]:
        beside = [] if self.labels is None else [self.labels]
        return [self._file(name) for name in self._names()] + beside

    def _names(self) -> list[str]:
        """The paths of all examples inside of the folder, in order."""
        raise NotImplementedError

    def _file(self, name: str) -> str:
        return os.path.join(self.path, *name.split("/"))

    def _labelled(self, names: list[str]) -> tuple[list[str], np.ndarray | None]:
        """The files that have labels, and these; None if no file can have one."""
        if not self.labelled:
            return names, None
        if self.labels is not None:
            word_of = label_table(self.labels, _cells)
            absent = f"has no label in {self.labels}, where names are paths inside of the folder"
        else:
            word_of = {name: name.split("/")[0] for name in names if "/" in name}
            absent = "has no label: it lies beside the subfolders that others have theirs from; move it into one"
            if not word_of:
                return names, None
        words = [word_of.get(name, "") for name in names]
        # Names of folders are no numbers mistyped.
        numeric = are_numbers(words) if self.labels is not None else not parsed([*set(word_of.values())], True)[1]
        y, complaints = parsed(words, numeric)
        for row in sorted(complaints):
            message = complaints[row] if names[row] in word_of else absent
            self.bad_row(DataError(message, self._file(names[row])))
        rows = [row for row in range(len(names)) if row not in complaints]
        return [names[row] for row in rows], y[rows]

    def _carried(self, names: Sequence[str]) -> pa.RecordBatch | None:
        """The paths, where they are carried along."""
        if self.labelled and not self.ids:
            return None
        import pyarrow as pa

        shown = [os.fsencode(name).decode(errors="backslashreplace") for name in names]
        return pa.RecordBatch.from_pydict({PATH: pa.array(shown, pa.large_string())})


@dataclass
class ImageFolder(Folder):
    """The images of a folder. Colours become gray; 16-bit gray stays what it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._names():
            raise DataError("is a folder without PNG and JPEG files", self.path)
        require_extra("PIL.Image", f"{self.path}: images need")

    def read(self, nbytes: int) -> Iterator[Chunk]:
        names, y = self._labelled(self._names())
        like: tuple[str, np.ndarray] | None = None
        rows: list[int] = []
        for row, name in enumerate(names):
            image = self._image(name, like)
            if image is not None:
                like = like or (name, image)
                if not rows:
                    step = min(max(1, nbytes // max(1, image.nbytes)), len(names) - row)
                    values = np.empty((step, *image.shape), image.dtype)
                values[len(rows)] = image
                rows.append(row)
            if rows and (len(rows) == len(values) or row == len(names) - 1):
                ids = self._carried([names[k] for k in rows])
                yield Chunk(Images(values[: len(rows)]), None if y is None else y[rows], None, 0, self.path, ids=ids)
                rows = []
                if self.on_progress is not None:
                    self.on_progress((row + 1) / len(names))

    def _names(self) -> list[str]:
        """What is hidden, and other files, are passed over."""
        return [name for name in files_inside(self.path).names if name.lower().endswith(IMAGES)]

    def _image(self, name: str, like: tuple[str, np.ndarray] | None) -> np.ndarray | None:
        """An image, None if it cannot be used; it has to be like the first one."""
        try:
            image = _gray(self._file(name))
            if like is not None and _size(image) != _size(like[1]):
                message = f"is {_size(image)}, and {self._file(like[0])} is {_size(like[1])}; all have to be alike"
                raise DataError(message, self._file(name))
        except DataError as error:
            self.bad_row(error)
            return None
        return image


def _gray(path: str) -> np.ndarray:
    """The pixels of an image, as uint8 or uint16."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=("PNG", "JPEG")) as image:
            if image.mode.startswith("I"):  # 16 bits; some versions of pillow say 32
                return np.asarray(image).astype(np.uint16)
            return np.asarray(image if image.mode == "L" else image.convert("L"))
    except UnidentifiedImageError:
        raise DataError("is not a PNG or JPEG image; it is damaged, or something else", path) from None
    except Exception as error:  # on damaged files decoders raise whatever they come across
        raise DataError(f"cannot be decoded as an image: {error}", path) from None


def _size(image: np.ndarray) -> str:
    return f"{image.shape[1]} x {image.shape[0]} pixels of {8 * image.itemsize} bits"


def _cells(line: str) -> list[str]:
    try:
        return fields_of(line, "\t" if "\t" in line else ",")[0]
    except ValueError:
        return []


def opened_folder(path: str, format: str | None) -> str:
    """The name of the format of a folder: as asked for, or of images if these are at least half of its files."""
    return format or format_of_folder(path, files_inside(path).names)


def files_inside(path: str) -> Inside:
    """All files in a folder and in those inside of it. Hidden files and folders are named, and not looked into."""
    names, hidden = [], []
    with reading(path):
        for folder, inside, files in os.walk(path, onerror=_refuse, followlinks=True):
            prefix = os.path.relpath(folder, path).replace(os.sep, "/") + "/"
            prefix = "" if prefix == "./" else prefix
            hidden += [prefix + name for name in (*inside, *files) if name.startswith(".")]
            inside[:] = [name for name in inside if not name.startswith(".") and not _leads_up(folder, name)]
            names += [prefix + name for name in files if not name.startswith(".")]
    return Inside(sorted(names), sorted(hidden))


def _leads_up(folder: str, name: str) -> bool:
    """Whether a subfolder is a link to one that it lies in, so that there would be no end to it."""
    path = os.path.join(folder, name)
    return os.path.islink(path) and os.path.join(os.path.realpath(folder), "").startswith(
        os.path.join(os.path.realpath(path), "")
    )


def _refuse(error: OSError) -> None:
    raise error
