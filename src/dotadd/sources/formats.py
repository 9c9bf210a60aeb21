"""Which format a file has: by the end of its name, or else by how it begins."""

from __future__ import annotations

import re
from pathlib import Path

from dotadd.automata.files import MANY
from dotadd.automata.files import format_of as automata_format
from dotadd.errors import DataError
from dotadd.sources.idx import has_magic
from dotadd.sources.text import first_lines

FORMATS = ("libsvm", "csv", "tsv", "jsonl", "fasta", "arrow", "parquet", "npy", "npz", "idx", "lattices")

_EXTENSIONS = {
    ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".fa": "fasta", ".fasta": "fasta", ".fna": "fasta", ".faa": "fasta", ".ffn": "fasta",
    ".arrow": "arrow", ".arrows": "arrow", ".ipc": "arrow", ".feather": "arrow",
    ".parquet": "parquet", ".pq": "parquet",
    ".npy": "npy", ".npz": "npz",
    ".ark": "lattices", ".lat": "lattices", ".sausage": "lattices", ".mesh": "lattices", ".wcn": "lattices",
}  # fmt: skip

_MAGIC = {
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"PAR1": "parquet",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
_LIBSVM_LINE = re.compile(rb"[-+]?[\d.][-+\d.eE,]*(\s+\d+:\S+)*\s*(#.*)?")
_LATTICE_CELL = re.compile(rb"[\"\t,;]\[\(('|\"\"?)")  # where a cell begins with a list of nodes
_COMPRESSED = {".gz", ".bz2", ".xz"}
_IDX = re.compile(r".*([-._]idx[1-9]([-._](u?byte|short|int|float|double))?|\.idx)", re.IGNORECASE)
_IMAGES = (".png", ".jpg", ".jpeg")


def format_of(path: str) -> str:
    """One of FORMATS. The file has to exist."""
    stem, suffixes = Path(path).name, [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        stem = stem[: -len(suffixes.pop())]
    if suffixes and suffixes[-1] in _EXTENSIONS:
        name = _EXTENSIONS[suffixes[-1]]
        return "lattices" if name in ("csv", "tsv") and _LATTICE_CELL.search(first_lines(path)) else name
    if suffixes and suffixes[-1] in _IMAGES:
        raise DataError("is a single image; give the folder that it lies in", path)
    if _IDX.fullmatch(stem):
        return "idx"
    beginning = first_lines(path)
    for magic, name in _MAGIC.items():
        if beginning.startswith(magic):
            return name
    if has_magic(beginning):
        return "idx"
    if not beginning.strip():
        raise DataError("has no examples", path)
    found = "lattices" if automata_format(beginning) in MANY else _by_line(beginning)
    if found is None:
        raise DataError(f"has no known format; say which it is with format= (one of {', '.join(FORMATS)})", path)
    return found


def _by_line(beginning: bytes) -> str | None:
    lines = (line.strip() for line in beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    line = next(line for line in lines if line and not line.startswith(b"#")) if beginning.strip() else b""
    if line.startswith(b">"):
        return "fasta"
    if line.startswith(b"{"):
        return "jsonl"
    if _LIBSVM_LINE.fullmatch(line) and (b":" in line or b"," not in line):
        return "libsvm"
    if b"\t" in line:
        return "tsv"
    return "csv" if b"," in line or b";" in line else None
