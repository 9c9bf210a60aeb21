r"""Predictions as a file: the end of its name says in which format, a row of it for each row of data.

Text is a label, a tab and the score, or a score for each class; .csv, .jsonl, .parquet and .arrow have columns `label`
and `score`, or `score_A`, `score_B` and so on. Text in a label keeps to its line and its column: tab-separated text
writes \t, \n, \x1b, \\ and the like with backslashes, as Python does; CSV quotes; JSON has escapes of its own.
"""

from __future__ import annotations

import csv
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar, TextIO, cast

from dotadd._util.atomic import replacing
from dotadd._util.compressed import ENDINGS as COMPRESSED
from dotadd._util.compressed import writing
from dotadd.errors import DotaddError, as_written, printable
from dotadd.model.file import Classifier, Record
from dotadd.sources import formats

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

REFUSED = (".zst", ".lz4", ".zip", ".7z", ".br", ".z", ".lzma", ".npy", ".npz", ".xls", ".xlsx", ".arrows")
FORMATS = {"": "tsv", ".txt": "tsv"} | {
    ending: format.name
    for format in formats.FORMATS.values()
    if format.predictions
    for ending in format.endings
    if ending not in REFUSED
}


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file of this name, tab-separated text where the name does not tell; raises if it is not ours."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    compressed = bool(endings) and endings[-1] in COMPRESSED
    ending = "".join(endings[:-1][-1:] if compressed else endings[-1:])
    if ending in REFUSED:
        known = f"{', '.join(filter(None, FORMATS))}, and text also with {', '.join(COMPRESSED)}"
        raise DotaddError(f"{path}: predictions are not written as {ending}, but as {known}")
    found = FORMATS.get(ending, "tsv")
    if compressed and found in ("parquet", "arrow"):
        raise DotaddError(f"{path}: {ending} files are compressed inside; leave out {endings[-1]}")
    return found


def score_names(model: Classifier) -> list[str]:
    """The columns of scores: one for two classes, one for each class of more."""
    if len(model.classes) == 2:
        return ["score"]
    return [f"score_{as_written(label)}" for label in model.classes.tolist()]


def schema(model: Classifier, *, labels: bool = True) -> pa.Schema:
    """The columns of predictions as a table."""
    import pyarrow as pa

    first = {"label": _arrow_labels(model).type} if labels else {}
    return pa.schema(first | dict.fromkeys(score_names(model), pa.float64()))


def columns(model: Classifier, score: np.ndarray, *, labels: bool = True) -> Record:
    """Some rows of that table, from their scores."""
    import pyarrow as pa

    first = {"label": _arrow_labels(model).take(pa.array(model.winners(score)))} if labels else {}
    return first | dict(zip(score_names(model), score[None] if score.ndim == 1 else score.T, strict=True))


def _arrow_labels(model: Classifier) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(model.classes.tolist())
    except UnicodeEncodeError:
        raise DotaddError("a label is no proper text, so that only text can be written: .tsv or .jsonl") from None


class Predictions(ABC):
    """A file that is being written."""

    def __init__(self, model: Classifier, *, labels: bool) -> None:
        self.model, self.labels, self.names = model, labels, score_names(model)

    @abstractmethod
    def write(self, score: np.ndarray) -> None:
        """The rows with these scores."""

    def rows(self, score: np.ndarray) -> Iterator[tuple[int, list[float]]]:
        """Of each row the number of its class, and its scores."""
        lists = score.reshape(len(score), -1).tolist()
        return zip(self.model.winners(score).tolist(), lists, strict=True)


class TextPredictions(Predictions):
    """A file of text, in one of the formats of `sources/formats.py`."""

    format: ClassVar[str]

    def __init__(self, model: Classifier, file: TextIO, *, labels: bool) -> None:
        super().__init__(model, labels=labels)
        self.file = file


class TabSeparated(TextPredictions):
    """Lines without a header."""

    format = "tsv"

    def __init__(self, model: Classifier, file: TextIO, *, labels: bool) -> None:
        super().__init__(model, file, labels=labels)
        # A backslash that the label has itself is doubled, so that escapes can be told from it.
        texts = [printable(as_written(label).replace("\\", "\\\\")) for label in model.classes.tolist()]
        self.first = [f"{text}\t" if labels else "" for text in texts]

    def write(self, score: np.ndarray) -> None:
        lines = (self.first[best] + "\t".join([f"{one:.9g}" for one in scores]) for best, scores in self.rows(score))
        self.file.write("".join([f"{line}\n" for line in lines]))


class CommaSeparated(TextPredictions):
    """Lines under a header; what has commas, quotes or line breaks in it is quoted."""

    format = "csv"

    def __init__(self, model: Classifier, file: TextIO, *, labels: bool) -> None:
        super().__init__(model, file, labels=labels)
        self.writer = csv.writer(file, lineterminator="\n")
        self.writer.writerow(["label"] * labels + self.names)
        self.first = [[as_written(label)] * labels for label in model.classes.tolist()]

    def write(self, score: np.ndarray) -> None:
        self.writer.writerows(
            [*self.first[best], *(f"{one:.9g}" for one in scores)] for best, scores in self.rows(score)
        )


class JsonLines(TextPredictions):
    """An object a line, in ASCII, so that no reader takes something else for the end of a line. A score that is not
    finite is null."""

    format = "jsonl"

    def __init__(self, model: Classifier, file: TextIO, *, labels: bool) -> None:
        super().__init__(model, file, labels=labels)
        values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in model.classes.tolist()]
        self.first = [{"label": value} if labels else {} for value in values]

    def write(self, score: np.ndarray) -> None:
        for best, scores in self.rows(score):
            finite = (one if math.isfinite(one) else None for one in scores)
            record = self.first[best] | dict(zip(self.names, finite, strict=True))
            self.file.write(json.dumps(record, allow_nan=False) + "\n")


class TablePredictions(Predictions):
    """An Arrow or Parquet file."""

    def __init__(self, model: Classifier, writer: pa.RecordBatchFileWriter | pq.ParquetWriter, *, labels: bool) -> None:
        super().__init__(model, labels=labels)
        self.writer = writer

    def write(self, score: np.ndarray) -> None:
        import pyarrow as pa

        rows = columns(self.model, score, labels=self.labels)
        self.writer.write_batch(pa.RecordBatch.from_pydict(rows, schema(self.model, labels=self.labels)))


@contextmanager
def predictions(path: str | os.PathLike[str], model: Classifier, *, labels: bool = True) -> Iterator[Predictions]:
    """A file to write predictions to, in the format that its name tells; it appears whole or not at all."""
    kind = format_of(path)
    for text in (TabSeparated, CommaSeparated, JsonLines):
        if text.format == kind:
            # Half a character, which UTF-8 cannot have, is an escape in CSV as it is in the others.
            with (
                writing(path) as raw,
                TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", errors="backslashreplace", newline="") as file,
            ):
                yield text(model, file, labels=labels)
            return
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetWriter if kind == "parquet" else pa.RecordBatchFileWriter
    with replacing(path) as temporary, table(str(temporary), schema(model, labels=labels)) as writer:
        yield TablePredictions(model, writer, labels=labels)
