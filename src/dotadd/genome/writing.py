"""Windows of a genome as files: Arrow, Parquet, or FASTA, whose headers are name, place and label."""

from __future__ import annotations

import os
from pathlib import Path

from dotadd._util.atomic import require_writable
from dotadd._util.compressed import ENDINGS, compressing
from dotadd.data.batches import Strings
from dotadd.errors import as_written
from dotadd.genome.peaks import Peaks
from dotadd.genome.windows import Windows
from dotadd.sources.convert import is_parquet, write
from dotadd.sources.formats import ending_tells
from dotadd.sources.located import Located


def require_writable_windows(path: str) -> None:
    """Refuse now a name that tells another format, or a place that cannot be written to."""
    if not _is_fasta(path):
        is_parquet(path)
    require_writable(path)


def write_windows(source: Windows | Peaks, temporary: Path, path: str) -> None:
    """Write all windows to a temporary file, in the format that the name of the `path` tells."""
    if not _is_fasta(path):
        write(source, temporary, parquet=is_parquet(path))
        return
    with compressing(temporary, path) as file:
        for chunk in source.chunks():
            file.write(b"".join(_records(chunk)))


def _is_fasta(path: str) -> bool:
    stem, ending = os.path.splitext(path)
    named = ending_tells(stem if ending.lower() in ENDINGS else path)
    return named is not None and named.name == "fasta"


def _records(chunk: Located) -> list[bytes]:
    headers = chunk.coordinates.headers()
    labels = [""] * len(chunk) if chunk.y is None else [f" label={as_written(label)}" for label in chunk.y.tolist()]
    assert isinstance(chunk.batch, Strings)
    rows = zip(headers, labels, map(chunk.batch.__getitem__, range(len(chunk))), strict=True)
    return [b">%s\n%s\n" % (f"{header}{label}".encode(), letters) for header, label, letters in rows]
