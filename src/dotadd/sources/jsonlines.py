"""JSON lines: an object on each line, the example in one field (text or a list of numbers) or in all numeric fields.

Arrow's parser reads pieces in which every line looks like an object, and only the fields that are asked for: it ends
the process where the first value of a text is null, and where it has to find out the types of deeply nested fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dotadd.data.batches import Batch, DenseRows, Strings, from_arrow
from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.files import TableFile
from dotadd.sources.labels import EXACT
from dotadd.sources.layout import Layout, choose, listed
from dotadd.sources.table import numbers, one_array, side_by_side
from dotadd.sources.text import Records, pieces, records_of

if TYPE_CHECKING:
    import pyarrow as pa

HALF = "has half of a surrogate pair, which is no text"


@dataclass
class JsonLinesFile(TableFile):
    """One file of JSON lines. The first object that can be read tells which fields there are."""

    column: str | None = field(default=None, kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    weight: str | None = field(default=None, kw_only=True)
    dtype: type = field(default=np.float32, kw_only=True)

    def read(self, nbytes: int) -> Iterator[Chunk]:
        reader = _Reader(self)
        for piece in pieces(self.path, nbytes, on_progress=self.on_progress, largest=self.largest):
            records = records_of(piece)
            if len(records):
                yield reader.chunk(records)


class _Stumble(Exception):
    """Arrow's parser did not like a piece."""


class _Reader:
    """What stays the same through a file, and how a piece becomes a chunk."""

    def __init__(self, source: JsonLinesFile) -> None:
        self.source = source
        self.layout: Layout | None = None
        self.label_types: list[pa.DataType] = []  # Arrow's, in the order in which they are tried
        self.length: int | None = None  # of an example that is a list

    def chunk(self, records: Records) -> Chunk:
        layout = self.layout or self._look(records)
        try:
            columns = self._fast(records, layout)
        except _Stumble:
            return self._careful(records)
        assert layout is not None
        batch: Batch
        if layout.dense:
            values = side_by_side([numbers(columns[name]) for name in layout.features])
            batch = DenseRows(values.astype(self.source.dtype, copy=False))
        else:
            batch = from_arrow(columns[layout.features[0]])
        weight = None if layout.weight is None else numbers(columns[layout.weight])
        words = None if layout.label is None else _words(columns[layout.label])
        return Chunk(batch, None, weight, 0, self.source.path, records.lines, words=words)

    def _look(self, records: Records) -> Layout | None:
        """The layout by the first line that can be read."""
        for record in range(len(records)):
            with suppress(DataError):
                self._row(records[record], 0)
            if self.layout is not None:
                break
        return self.layout

    def _fast(self, records: Records, layout: Layout | None) -> dict[str, pa.Array]:
        """The columns by Arrow's parser, or _Stumble."""
        import pyarrow as pa

        if layout is None or self.length is not None or not records.are_between("{", "}"):
            raise _Stumble
        types = {name: pa.float64() if layout.dense else pa.large_string() for name in layout.features}
        if layout.weight is not None:
            types[layout.weight] = pa.float64()
        if layout.label is None or layout.label in types:
            return _parsed(records, types)
        for kind in self.label_types:
            with suppress(_Stumble):
                columns = _parsed(records, {**types, layout.label: kind})
                if pa.types.is_floating(kind) and not _exact(columns[layout.label]):
                    break
                self.label_types = [kind]  # the others need not be tried any more
                return columns
        raise _Stumble

    def _careful(self, records: Records) -> Chunk:
        """The rows by Python's parser, line by line."""
        examples: list[Any] = []
        words: list[str] = []
        weights: list[float] = []
        lines: list[int] = []
        for record in range(len(records)):
            text, line = records[record], int(records.lines[record])
            if text.isspace():
                continue
            try:
                example, word, weight = self._row(text, line)
            except DataError as error:
                self.source.bad_row(error)
                continue
            examples.append(example)
            words.append(word)
            weights.append(weight)
            lines.append(line)
        layout = self.layout
        weight_array = np.array(weights) if layout is not None and layout.weight is not None else None
        labels = words if layout is not None and layout.label is not None else None
        line_array = np.array(lines, np.int64)
        return Chunk(self._batch(examples), None, weight_array, 0, self.source.path, line_array, words=labels)

    def _batch(self, examples: list[Any]) -> Batch:
        if not examples:
            return Strings(np.empty(0, np.uint8), np.zeros(1, np.int64))
        if isinstance(examples[0], bytes):
            return Strings.from_list(examples)
        return DenseRows(np.array(examples, self.source.dtype))

    def _row(self, text: bytearray, line: int) -> tuple[Any, str, float]:
        """The example (bytes or a list of numbers), its label's word and its weight."""
        path = self.source.path
        try:
            row = json.loads(text)
        except RecursionError:
            raise DataError("is nested too deeply", path, line) from None
        except UnicodeDecodeError as error:
            raise DataError(
                "is not UTF-8 text; convert it, for example with iconv", path, line, error.start + 1
            ) from None
        except json.JSONDecodeError as error:
            raise DataError(f"is not JSON: {error.msg}", path, line, error.colno) from None
        except ValueError:  # Python reads no more than some thousand digits
            raise DataError("has a whole number of thousands of digits", path, line) from None
        if not isinstance(row, dict):
            raise DataError("is not a JSON object", path, line)
        layout = self.layout = self.layout or self._layout(row, line)
        try:
            if layout.dense:
                example: Any = [_number(row[name], name) for name in layout.features]
            else:
                example = self._whole(row[layout.features[0]], layout.features[0])
            word = "" if layout.label is None else _word(row[layout.label], layout.label)
            weight = 1.0 if layout.weight is None else _number(row[layout.weight], layout.weight)
        except KeyError as error:
            raise DataError(
                f"field {error.args[0]!r} is missing; the fields are {listed(list(row))}", path, line
            ) from None
        except ValueError as error:
            raise DataError(str(error), path, line) from None
        return example, word, weight

    def _layout(self, row: dict[str, object], line: int) -> Layout:
        import pyarrow as pa

        source = self.source
        numeric = [name for name, value in row.items() if isinstance(value, int | float)]
        whole = [name for name, value in row.items() if isinstance(value, str | list)]
        layout = choose(
            list(row), numeric, whole, column=source.column, label=source.label, weight=source.weight,
            path=source.path, usual="label", like=source.like, guessed=True,
        )  # fmt: skip
        for name in layout.columns:
            if not _is_text(name):
                raise DataError(f"the name {name!r} of a field {HALF}", source.path, line)
        source.columns, source.layout = layout.features if layout.dense else None, layout
        if layout.label is not None:
            kinds = {str: [pa.large_string()], bool: [pa.bool_()], float: [pa.float64()]}
            self.label_types = kinds.get(type(row[layout.label]), [pa.int64(), pa.float64()])
        return layout

    def _whole(self, value: object, name: str) -> bytes | list[float]:
        if isinstance(value, str) and self.length is None:
            if not _is_text(value):
                raise ValueError(f"field {name!r} {HALF}")
            return value.encode()
        if not isinstance(value, list):
            raise ValueError(f"field {name!r} is not {'text' if self.length is None else 'a list of numbers'}")
        if self.length is None:
            self.length = len(value)
        if len(value) != self.length:
            raise ValueError(f"field {name!r} has {len(value)} numbers, and the lists before it have {self.length}")
        return [_number(item, name) for item in value]


def _parsed(records: Records, types: dict[str, pa.DataType]) -> dict[str, pa.Array]:
    """Fields of these types by Arrow's parser, or _Stumble. Other fields are passed over, however they are nested."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    try:
        table = arrow_json.read_json(
            pa.BufferReader(pa.py_buffer(records.whole)),
            arrow_json.ReadOptions(block_size=len(records.whole) + 1),
            arrow_json.ParseOptions(explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"),
        )
        columns = {name: one_array(table.column(name)) for name in types}
        for column in columns.values():
            column.validate(full=True)  # that text is UTF-8
    except (pa.ArrowException, KeyError):
        raise _Stumble from None
    if len(table) != len(records) or any(column.null_count for column in columns.values()):
        raise _Stumble
    return columns


def _exact(column: pa.Array) -> bool:
    """Whether floats hold these labels as they are written."""
    return bool((np.abs(numbers(column)) < EXACT).all())


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: object, name: str) -> float:
    if not isinstance(value, int | float):
        raise _not_a_number(value, name)
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"field {name!r} has a number that is too large") from None


def _not_a_number(value: object, name: str) -> ValueError:
    return ValueError(f"field {name!r} is {'missing' if value is None else 'not a number: ' + json.dumps(value)[:40]}")


def _word(value: object, name: str) -> str:
    if isinstance(value, str):
        if not _is_text(value):
            raise ValueError(f"field {name!r} {HALF}")
        return value
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return repr(int(value))  # Arrow does not tell 1 from 1.0
    if isinstance(value, int | float):
        return repr(value)
    raise _not_a_number(value, name)


def _words(column: pa.Array) -> list[str]:
    """Labels of an Arrow column as words; each distinct one is turned once."""
    values = column.to_pylist()
    word_of = {value: _word(value, "label") for value in set(values)}
    return [word_of[value] for value in values]
