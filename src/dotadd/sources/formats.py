"""The formats of files, each entered once: `open`, `convert`, predictions, error messages, the documents and the tests
of all formats read this table or are held against it. The command line reads it before it imports anything heavy, so
what numbers need is imported where a file is looked at.

Which format a file has is told by the end of its name, or else by how it begins. A new format is a source class in a
file of its own and an entry here (see CONTRIBUTING.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
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
IMAGES = (".png", ".jpg", ".jpeg")
_LABEL = b"__label__"  # how a line of text begins that has a label, as fastText writes it


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
    by_lines: whether some lines of it can be read without the others.
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
    by_lines: bool = False
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
        what = f"{self.name} files" if self.name in FORMATS else self.title
        require_options(given, {field.name for field in fields(found)}, what)
        source = found.opened(path, self.name, {"on_bad_row": on_bad_row, **given})
        source.given = {"format": self.name, **given}
        return source

    def takes(self, option: str) -> bool:
        """Whether an option has a meaning for it."""
        return option in {field.name for field in fields(self.source_class)}


def require_options(given: Options, allowed: set[str], what: str) -> None:
    """Refuse options that have no meaning for what is read."""
    for name in given:
        if name == "ids" and name not in allowed:
            raise DotaddError(f"ids= (--id) has no meaning for {what}, which have no columns")
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


def _has_columns(beginning: bytes) -> bool:
    """Whether it is a table with commas, and no text with commas in it: each line has as many as the first."""
    lines = [line for line in beginning.split(b"\n")[:20] if line.strip()][: -1 if len(beginning) > 1 << 15 else None]
    return len(lines) > 1 and any(
        lines[0].count(mark) and len({line.count(mark) for line in lines}) == 1 for mark in (b",", b";")
    )


def _has_lattices(beginning: bytes) -> bool:
    from dotadd.automata.files import MANY, format_of

    return format_of(beginning) in MANY


FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        Format(
            "libsvm", "LIBSVM", "sparse rows", (".svm", ".libsvm", ".svmlight"), "libsvm:LibsvmFile", _has_libsvm, 2,
            by_lines=True,
        ),
        Format(
            "csv", "CSV", "columns of numbers, or one of text", (".csv",), "delimited:DelimitedFile", _has_commas, 4,
            by_lines=True, predictions=True,
        ),
        Format(
            "tsv", "TSV", "the same with tabs", (".tsv", ".tab"), "delimited:DelimitedFile",
            lambda beginning: b"\t" in _line(beginning), 3, by_lines=True, predictions=True,
        ),
        Format(
            "jsonl", "JSON lines", "objects of numbers, text or lists", (".jsonl", ".ndjson", ".json"),
            "jsonlines:JsonLinesFile", lambda beginning: _line(beginning).startswith(b"{"), 2, by_lines=True,
            predictions=True,
        ),
        Format(
            "txt", "text", "an example a line, behind its label where it begins with `__label__spam`", (".txt",),
            "lines:LinesFile", lambda beginning: _line(beginning).startswith(_LABEL), 1, by_lines=True,
            predictions=True,
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

FOLDERS: dict[str, Format] = {
    "images": Format("images", "folders of images", "PNG and JPEG", (), "folder:ImageFolder", lambda beginning: False),
    "texts": Format("texts", "folders of texts", "a file each", (), "text_folder:TextFolder", lambda beginning: False),
}
"""What folders hold; each file is an example, and the name of its subfolder its label."""

KNOWN = ", ".join(FORMATS)
TABLES = ("csv", "tsv")  # which are lattices where a column holds them and nobody says otherwise
TEXT = ".txt"  # a name that many things have: it is text where nothing tells that it is something else
_ENDINGS = {ending: format for format in FORMATS.values() for ending in format.endings}


def format_named(name: str) -> Format:
    if name in FOLDERS:
        return FOLDERS[name]
    if name not in FORMATS:
        raise DotaddError(f"unknown format {name!r}; it is one of {KNOWN}")
    return FORMATS[name]


def format_of_folder(path: str, names: Sequence[str]) -> str:
    """What a folder with these files in it holds."""
    if not names:
        raise DataError("is a folder without files", path)
    images = sum(name.lower().endswith(IMAGES) for name in names)
    if 2 * images >= len(names):
        return "images"
    endings = {os.path.splitext(name)[1].lower() for name in names if not name.lower().endswith(IMAGES)}
    if endings <= _ENDINGS.keys() - {TEXT}:
        raise DataError(f"is a folder of data files; give them by a pattern like folder/*{min(endings)}", path)
    return "texts"


def ending_tells(path: str | os.PathLike[str]) -> Format | None:
    """The format that the end of a name stands for, if there is one."""
    return _ENDINGS.get(Path(path).suffix.lower())


def format_of_like(path: str, before: str | None, cells: bool) -> str:
    """The name of a file's format, where earlier data had the format `before`: that is taken where the file does not
    tell its own. Where a map reads `cells` of a table, or did, one with a column of lattices is a table like any other.
    After texts, all is text whose name does not say otherwise, unless it begins like no text does; after texts of a
    file each, a file is one."""
    if before in ("txt", "texts") and ending_tells(_stem(path)) in (None, FORMATS["txt"]):
        return certain_format(first_bytes(path)) or before
    told = ending_tells(_stem(path))
    if told is not None and told.name in TABLES and (cells or before in TABLES):
        return told.name
    try:
        return format_of(path)
    except UnknownFormatError:
        if before not in FORMATS:
            raise
        return before


def certain_format(beginning: bytes) -> str | None:
    """The format that a file has which begins so, where nothing else does."""
    return next((name for name, format in FORMATS.items() if not format.doubt and format.begins(beginning)), None)


def _stem(path: str) -> str:
    """The name of a file without .gz and the like."""
    stem = Path(path).name
    while Path(stem).suffix.lower() in COMPRESSED:
        stem = Path(stem).stem
    return stem


def first_bytes(path: str) -> bytes:
    from dotadd.sources.text import first_lines

    return first_lines(path)


class UnknownFormatError(DataError):
    """Neither name nor beginning of a file tells what it is."""


def format_of(path: str) -> str:
    """The name of a file's format. The file has to exist."""
    stem = _stem(path)
    found = ending_tells(stem)
    if found is not None and found.name != "txt":
        lattices = found.name in TABLES and _LATTICE_CELL.search(first_bytes(path))
        return "lattices" if lattices else found.name
    if Path(stem).suffix.lower() in IMAGES:
        raise DataError("is a single image; give the folder that it lies in", path)
    for format in FORMATS.values():
        if format.pattern is not None and re.fullmatch(format.pattern, stem, re.IGNORECASE):
            return format.name
    beginning = first_bytes(path)
    if not beginning.strip():
        raise DataError("has no examples", path)
    for format in sorted(FORMATS.values(), key=lambda format: format.doubt):
        if format.begins(beginning) and (found is None or format.name != "csv" or _has_columns(beginning)):
            return format.name
    if found is not None:
        return found.name
    raise UnknownFormatError(f"has no known format; say which it is with format= (one of {KNOWN})", path)
