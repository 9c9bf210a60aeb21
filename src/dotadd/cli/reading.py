"""The options that say how to read data, shared by all commands that do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from dotadd.cli.screen import tell

if TYPE_CHECKING:
    from dotadd.distributed.partitions import Partitions
    from dotadd.sources.base import Source

FORMATS = Literal["libsvm", "csv", "tsv", "jsonl", "fasta", "arrow", "parquet", "npy", "npz", "idx", "lattices"]


@Parameter(name="*", group="Reading the data")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read data."""

    format: FORMATS | None = None
    """Format of the file, where name and content do not tell."""

    label: str | None = None
    """Column with the labels, or array of an .npz file."""

    column: str | None = None
    """Column with the text or sequence; without it, all columns of numbers. Of an .npz file, the array of examples."""

    weight: str | None = None
    """Column with the weights of the rows."""

    labels: str | None = None
    """Second file of names and labels, for FASTA, lattices and folders of images; for idx images, the idx file of
    labels."""

    zero_based: Annotated[bool, Parameter(negative="", show_default=False)] = False
    """Indices of LIBSVM files count from 0."""

    size: str | None = None
    """Rows of numbers are images of this height and width, such as 24x32."""

    symbols: str | None = None
    """Words of lattices and their numbers, one of each a line; without it, words are hashed."""

    semiring: Literal["log", "real"] | None = None
    """Weights of lattices are costs (log, the default) or stand as they are (real)."""

    on_bad_row: Literal["error", "skip"] = "error"
    """Stop at a row that cannot be used, or leave it out and count it."""

    def given(self) -> dict[str, Any]:
        """The options that were given. Others are not passed on, so that one without meaning for the format is
        refused."""
        return {name: value for name, value in asdict(self).items() if value not in (None, False)}

    def open(self, data: list[str]) -> Source:
        from dotadd.sources import open as open_source

        return open_source([Path(name) for name in data], **self.given())


def tell_skipped(source: Source | Partitions) -> None:
    """One line on stderr if rows were left out."""
    if source.skipped.count:
        tell(f"left out {source.skipped.count:,} bad rows; the first: {source.skipped.first}")


def title_of(data: Sequence[str]) -> str:
    """What to call the data on screen."""
    return os.path.basename(data[0]) + (f" and {len(data) - 1} more" if len(data) > 1 else "")
