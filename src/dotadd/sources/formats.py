"""The formats of files, each entered once: `open`, `convert`, predictions, error messages, the documents and the tests
of all formats read this table or are held against it. The command line reads it before it imports anything heavy, so
what numbers need is imported where a file is looked at.

Which format a file has is told by the end of its name, or else by how it begins. A new format is a source class in a
file of its own and an entry here (see CONTRIBUTING.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dotadd._util.compressed import ENDINGS as COMPRESSED
from dotadd.errors import DataError, DotaddError

if TYPE_CHECKING:
    from dotadd.sources.base import Options, Source
    from dotadd.sources.files import FileSource

_LIBSVM_LINE = re.compile(rb"[-+]?[\d.][-+\d.eE,]*(\s+\d+:\S+)*\s*(#.*)?")
_LATTICE_CELL = re.compile(rb"[\"\t,;]\[\(('|\"\"?)")  # where a cell begins with a list of nodes
_IDX = re.compile(rb"\0\0[\x08\x09\x0b-\x0e][\x01-\x08].{4}", re.DOTALL)  # type and number of dimensions
_IMAGES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Format:
    """A format of files, or of folders.

    name:     as in `format=`.
    title:    what it is called in documents.
    about:    what is read of it.
    endings:  how the names of its files end, apart from .gz and the like.
    source:   module and class that read it; the module is imported when a file of it is opened. The options that it
              takes are the fields of the class.
    begins:   whether a file that begins so has this format.
    doubt:    how much else begins so; formats with less of it are tried first.
    pattern:  names of its files that tell without an ending.
    examples: whether `convert` writes it.
    predictions: whether `predict` does.
    """

    name: str
    title: str
    about: str
    endings: tuple[str, ...]
    source: str
    begins: Callable[[bytes], bool]
    doubt: int = 0
    pattern: str | None = None
    examples: bool = False
    predictions: bool = False

    @property
    def source_class(self) -> type[FileSource]:
        module, name = self.source.split(":")
        found: type[FileSource] = getattr(import_module(f"dotadd.sources.{module}"), name)
        return found

    def open(self, path: str, given: Options, on_bad_row: str) -> Source:
        """The source of one file. Options that have no meaning for it are refused."""
        found = self.source_class
        what = f"{self.name} files" if self.endings or self.pattern else self.title
        require_options(given, {field.name for field in fields(found)}, what)
        return found.opened(path, self.name, {"on_bad_row": on_bad_row, **given})


def require_options(given: Options, allowed: set[str], what: str) -> None:
    """Refuse options that have no meaning for what is read."""
    for name in given:
        if name not in allowed:
            raise DotaddError(f"{name}= has no meaning for {what}")


def _magic(*beginnings: bytes) -> Callable[[bytes], bool]:
    return lambda beginning: beginning.startswith(beginnings)


def is_idx(beginning: bytes) -> bool:
    """Whether a file that begins so is an idx file."""
    return _IDX.match(beginning) is not None


def _line(beginning: bytes) -> bytes:
    """The first line that is neither empty nor a remark."""
    lines = (line.strip() for line in beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    return next((line for line in lines if line and not line.startswith(b"#")), b"")


def _has_libsvm(beginning: bytes) -> bool:
    line = _line(beginning)
    return _LIBSVM_LINE.fullmatch(line) is not None and (b":" in line or b"," not in line)


def _has_commas(beginning: bytes) -> bool:
    line = _line(beginning)
    return b"," in line or b";" in line


def _has_lattices(beginning: bytes) -> bool:
    from dotadd.automata.files import MANY, format_of

    return format_of(beginning) in MANY


FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        Format(
            "libsvm", "LIBSVM", "sparse rows", (".svm", ".libsvm", ".svmlight"), "libsvm:LibsvmFile", _has_libsvm, 2
        ),
        Format(
            "csv", "CSV", "columns of numbers, or one of text", (".csv",), "delimited:DelimitedFile", _has_commas, 4,
            predictions=True,
        ),
        Format(
            "tsv", "TSV", "the same with tabs", (".tsv", ".tab"), "delimited:DelimitedFile",
            lambda beginning: b"\t" in _line(beginning), 3, predictions=True,
        ),
        Format(
            "jsonl", "JSON lines", "objects of numbers, text or lists", (".jsonl", ".ndjson", ".json"),
            "jsonlines:JsonLinesFile", lambda beginning: _line(beginning).startswith(b"{"), 2, predictions=True,
        ),
        Format(
            "fasta", "FASTA", "sequences, labels in their headers", (".fa", ".fasta", ".fna", ".faa", ".ffn"),
            "fasta:FastaFile", lambda beginning: _line(beginning).startswith(b">"), 2,
        ),
        Format(
            "arrow", "Arrow", "IPC files and streams: columns of numbers, text or lists",
            (".arrow", ".arrows", ".ipc", ".feather"), "arrow:ArrowFile", _magic(b"ARROW1", b"\xff\xff\xff\xff"),
            examples=True, predictions=True,
        ),
        Format(
            "parquet", "Parquet", "the same columns", (".parquet", ".pq"), "arrow:ArrowFile", _magic(b"PAR1"),
            examples=True, predictions=True,
        ),
        Format("npy", ".npy", "an array of rows, images or text", (".npy",), "arrays:NpyFile", _magic(b"\x93NUMPY")),
        Format("npz", ".npz", "arrays with labels beside", (".npz",), "arrays:NpzFile", _magic(b"PK\x03\x04")),
        Format(
            "idx", "idx", "images and rows, as MNIST comes", (".idx",), "arrays:IdxFile", is_idx,
            pattern=r".*[-._]idx[1-9]([-._](u?byte|short|int|float|double))?",
        ),
        Format(
            "lattices", "lattices", "text archives of Kaldi and OpenFst, confusion networks, cells of tables",
            (".ark", ".lat", ".sausage", ".mesh", ".wcn"), "lattices:LatticeFile",
            _has_lattices, 1,
        ),
    )
}  # fmt: skip

FOLDER = Format("folder", "folders of images", "PNG and JPEG", (), "folder:ImageFolder", lambda beginning: False)

KNOWN = ", ".join(FORMATS)
_ENDINGS = {ending: format for format in FORMATS.values() for ending in format.endings}


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise DotaddError(f"unknown format {name!r}; it is one of {KNOWN}")
    return FORMATS[name]


def ending_tells(path: str | os.PathLike[str]) -> Format | None:
    """The format that the end of a name stands for, if there is one."""
    return _ENDINGS.get(Path(path).suffix.lower())


def format_of(path: str) -> str:
    """The name of a file's format. The file has to exist."""
    from dotadd.sources.text import first_lines

    stem = Path(path).name
    while Path(stem).suffix.lower() in COMPRESSED:
        stem = Path(stem).stem
    found = ending_tells(stem)
    if found is not None:
        table = found.name in ("csv", "tsv")
        return "lattices" if table and _LATTICE_CELL.search(first_lines(path)) else found.name
    if Path(stem).suffix.lower() in _IMAGES:
        raise DataError("is a single image; give the folder that it lies in", path)
    for format in FORMATS.values():
        if format.pattern is not None and re.fullmatch(format.pattern, stem, re.IGNORECASE):
            return format.name
    beginning = first_lines(path)
    if not beginning.strip():
        raise DataError("has no examples", path)
    for format in sorted(FORMATS.values(), key=lambda format: format.doubt):
        if format.begins(beginning):
            return format.name
    raise DataError(f"has no known format; say which it is with format= (one of {KNOWN})", path)
