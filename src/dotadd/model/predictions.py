r"""Predictions as a file: the end of its name says in which format, a row of it for each row of data.

First stand the columns of the data that are carried along, then `label` and `score`, or `score_A`, `score_B` and so on,
and if they are asked for `probability`, or `probability_A` and so on. Plain text has them without a header, a tab
between them; .tsv, .csv, .jsonl, .parquet and .arrow have names, too. Text keeps to its line and its column: formats
with tabs write \t, \n, \x1b, \\ and the like with backslashes, as Python does; CSV quotes; JSON has escapes of its own.
"""

from __future__ import annotations

import csv
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar, TextIO, cast

from dotadd._util.atomic import replacing
from dotadd._util.compressed import ENDINGS as COMPRESSED
from dotadd._util.compressed import writing
from dotadd.errors import DotaddError, as_written, printable
from dotadd.model.file import NO_PROBABILITIES, Classifier
from dotadd.sources import formats

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from dotadd.model.probability import Calibration

LABEL = "label"
TAKEN = "data_{}"  # what a column that is carried along is called where predictions have one of its name
FORMATS = {"": "txt"} | {
    ending: format.name
    for format in formats.FORMATS.values()
    if format.predictions
    for ending in format.endings
    if ending != ".arrows"
}


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file of this name, which need not have an ending; raises if that is not one of ours."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    compressed = bool(endings) and endings[-1] in COMPRESSED
    ending = "".join(endings[:-1][-1:] if compressed else endings[-1:])
    if ending not in FORMATS:
        known = f"{', '.join(filter(None, FORMATS))}, and text also with {', '.join(COMPRESSED)}"
        raise DotaddError(f"{path}: predictions are not written as {ending}, but as {known}")
    found = FORMATS[ending]
    if compressed and found in ("parquet", "arrow"):
        raise DotaddError(f"{path}: {ending} files are compressed inside; leave out {endings[-1]}")
    return found


def predicted(
    model: Classifier, score: np.ndarray, *, labels: bool = True, probability: bool = False
) -> dict[str, np.ndarray]:
    """The columns of predictions, in their order, for rows with these scores.

    `label` has the number of the class, which each format writes in its own way, or where rows have several labels
    the numbers of these, and every other column a number for each row. There is one score for two classes, and one for
    each class of more; and the same of probabilities, if they are asked for, of two classes that of the second.
    """
    found = {LABEL: _numbers(model, score)} if labels else {}
    kinds = {"score": score}
    if probability:
        chances(model)
        sure = model.probabilities(score)
        kinds["probability"] = sure[:, 1] if model.two else sure
    for kind, values in kinds.items():
        if model.two:
            found[kind] = values
        else:
            names = (f"{kind}_{as_written(label)}" for label in model.classes.tolist())
            found |= zip(names, values.T, strict=True)
    return found


def _numbers(model: Classifier, score: np.ndarray) -> np.ndarray:
    import numpy as np

    if model.several is None:
        return model.winners(score)
    found = np.empty(len(score), np.object_)
    found[:] = [np.flatnonzero(row).tolist() for row in score > 0.0]
    return found


def chances(model: Classifier) -> Calibration:
    """What makes probabilities of a model's scores, which has to be there."""
    if (found := model.probability) is None:
        raise DotaddError(NO_PROBABILITIES)
    return found


class Predictions(ABC):
    """A file that is being written."""

    def __init__(self, model: Classifier, *, labels: bool, probability: bool) -> None:
        self.model, self.labels, self.probability, self._begun = model, labels, probability, False

    def write(self, score: np.ndarray, ids: pa.RecordBatch | None = None) -> None:
        """The rows with these scores, and the columns that are carried along with them."""
        found = predicted(self.model, score, labels=self.labels, probability=self.probability)
        names = [] if ids is None else [TAKEN.format(name) if name in found else name for name in ids.schema.names]
        carried = dict(zip(names, () if ids is None else ids.columns, strict=True))
        if not self._begun:
            self.begin(carried, list(found))
            self._begun = True
        self.rows(carried, found)

    @abstractmethod
    def begin(self, carried: dict[str, pa.Array], names: Sequence[str]) -> None:
        """Whatever stands before the first row: the columns that are carried along, and those of predictions."""

    @abstractmethod
    def rows(self, carried: dict[str, pa.Array], found: dict[str, np.ndarray]) -> None:
        """Some rows."""


class TextPredictions(Predictions):
    """A file of text, in one of the formats of `sources/formats.py`. `classes` are labels as they are written there."""

    format: ClassVar[str]

    def __init__(self, model: Classifier, file: TextIO, *, labels: bool, probability: bool = False) -> None:
        super().__init__(model, labels=labels, probability=probability)
        self.file = file
        self.classes = [self.cell(label) for label in model.classes.tolist()]
        self.separator = str(model.read_as.get("separator", ","))

    def begin(self, carried: dict[str, pa.Array], names: Sequence[str]) -> None:
        self.lines([(*carried, *names)])

    def rows(self, carried: dict[str, pa.Array], found: dict[str, np.ndarray]) -> None:
        cells: list[list[str]] = [[self.cell(value) for value in array.to_pylist()] for array in carried.values()]
        for name, values in found.items():
            cells.append([self._label(k) for k in values.tolist()] if name == LABEL else [f"{v:.9g}" for v in values])
        self.lines(zip(*cells, strict=True))

    def _label(self, k: int | list[int]) -> str:
        """The label of a row, or its labels."""
        return self.separator.join(self.classes[one] for one in k) if isinstance(k, list) else self.classes[k]

    def cell(self, value: object) -> str:
        """A value as text."""
        return "" if value is None else as_written(value)

    def lines(self, rows: Iterable[Sequence[str]]) -> None:
        """Rows of cells, or names of columns."""
        raise NotImplementedError


class TabSeparated(TextPredictions):
    """Lines under a header."""

    format = "tsv"

    def cell(self, value: object) -> str:
        # A backslash that a text has itself is doubled, so that escapes can be told from it.
        return printable(super().cell(value).replace("\\", "\\\\"))

    def lines(self, rows: Iterable[Sequence[str]]) -> None:
        self.file.write("".join(["\t".join(row) + "\n" for row in rows]))

    def begin(self, carried: dict[str, pa.Array], names: Sequence[str]) -> None:
        self.lines([[self.cell(name) for name in (*carried, *names)]])


class PlainText(TabSeparated):
    """The same lines without one."""

    format = "txt"

    def begin(self, carried: dict[str, pa.Array], names: Sequence[str]) -> None:
        pass


class CommaSeparated(TextPredictions):
    """Lines under a header; what has commas, quotes or line breaks in it is quoted."""

    format = "csv"

    def lines(self, rows: Iterable[Sequence[str]]) -> None:
        csv.writer(self.file, lineterminator="\n").writerows(rows)


class JsonLines(TextPredictions):
    """An object a line, in ASCII, so that no reader takes something else for the end of a line. A score that is not
    finite is null."""

    format = "jsonl"

    def begin(self, carried: dict[str, pa.Array], names: Sequence[str]) -> None:
        self.values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in self.model.classes.tolist()]

    def rows(self, carried: dict[str, pa.Array], found: dict[str, np.ndarray]) -> None:
        columns = {name: array.to_pylist() for name, array in carried.items()}
        for name, values in found.items():
            columns[name] = [self._value(k) for k in values.tolist()] if name == LABEL else values.tolist()
        for row in zip(*columns.values(), strict=True):
            finite = (None if isinstance(one, float) and not math.isfinite(one) else one for one in row)
            record = dict(zip(columns, finite, strict=True))
            self.file.write(json.dumps(record, allow_nan=False, default=str) + "\n")

    def _value(self, k: int | list[int]) -> object:
        return [self.values[one] for one in k] if isinstance(k, list) else self.values[k]


class TablePredictions(Predictions):
    """An Arrow or Parquet file; `opened` begins one of a schema."""

    def __init__(
        self,
        model: Classifier,
        opened: Callable[[pa.Schema], pa.RecordBatchFileWriter],
        *,
        labels: bool,
        probability: bool = False,
    ) -> None:
        super().__init__(model, labels=labels, probability=probability)
        self._opened = opened
        self._labels = _arrow_labels(model)

    def begin(self, carried: dict[str, pa.Array], names: Sequence[str]) -> None:
        import pyarrow as pa

        types = {name: array.type for name, array in carried.items()}
        kind = self._labels.type if self.model.several is None else pa.list_(self._labels.type)
        own = {name: kind if name == LABEL else pa.float64() for name in names}
        self._schema = pa.schema(types | own)
        self._writer = self._opened(self._schema)

    def rows(self, carried: dict[str, pa.Array], found: dict[str, np.ndarray]) -> None:
        import pyarrow as pa

        own = {name: self._taken(v) if name == LABEL else v for name, v in found.items()}
        self._writer.write_batch(pa.RecordBatch.from_pydict(carried | own, self._schema))

    def _taken(self, numbers: np.ndarray) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        if self.model.several is None:
            return self._labels.take(pa.array(numbers))
        ends = np.cumsum([0, *map(len, numbers)])
        flat = pa.array([k for some in numbers for k in some], pa.int64())
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), self._labels.take(flat))

    def end(self) -> None:
        """A file of no rows has columns, too."""
        import numpy as np

        if not self._begun:
            self.write(np.zeros(0 if self.model.two else (0, len(self.model.classes))))


def _arrow_labels(model: Classifier) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(model.classes.tolist())
    except UnicodeEncodeError:
        raise DotaddError("a label is no proper text, and only .tsv and .jsonl can hold it") from None


@contextmanager
def predictions(
    path: str | os.PathLike[str], model: Classifier, *, labels: bool = True, probability: bool = False
) -> Iterator[Predictions]:
    """A file to write predictions to, in the format that its name tells; it appears whole or not at all."""
    kind = format_of(path)
    for text in (PlainText, TabSeparated, CommaSeparated, JsonLines):
        if text.format == kind:
            # Half a character, which UTF-8 cannot have, is an escape in CSV as it is in the others.
            with (
                writing(path) as raw,
                TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8", errors="backslashreplace", newline="") as file,
            ):
                yield text(model, file, labels=labels, probability=probability)
            return
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetWriter if kind == "parquet" else pa.RecordBatchFileWriter
    with replacing(path) as temporary, ExitStack() as stack:
        written = TablePredictions(
            model,
            lambda schema: stack.enter_context(table(str(temporary), schema)),
            labels=labels,
            probability=probability,
        )
        yield written
        written.end()
