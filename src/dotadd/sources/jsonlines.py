"""JSON lines: an object on each line, the example in one field (text or a list of numbers) or in all numeric fields.

Arrow's parser reads pieces in which every line looks like an object, and only the fields that are asked for: it ends
the process where the first value of a text is null, and where it has to find out the types of deeply nested fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import numpy as np

from dotadd.errors import DataError
from dotadd.sources.base import Chunk
from dotadd.sources.labels import EXACT
from dotadd.sources.table import Layout, choose, listed, numbers, one_array
from dotadd.sources.text import Records, pieces, records_of
from dotadd.sources.text_table import NOT_UTF8, Row, Stumble, TextTable, TextTableFile, number_word

if TYPE_CHECKING:
    import pyarrow as pa

LOOK = 1 << 16  # bytes that are read to find the first object
HALF = "has half of a surrogate pair, which is no text"


class JsonLinesFile(TextTableFile):
    """One file of JSON lines. The first object that can be read tells which fields there are."""

    def read(self, nbytes: int) -> Iterator[Chunk]:
        several = pieces(self.path, nbytes, on_progress=self.on_progress, largest=self.largest, line=self.first_line)
        yield from _JsonLines(self).chunks(map(records_of, several))

    def column_names(self) -> list[str] | None:
        """The fields of the first line; None if one of them holds a list, which is an example by itself."""
        with closing(pieces(self.path, LOOK, largest=self.largest)) as beginning:
            for records in map(records_of, beginning):
                for record in range(len(records)):
                    with suppress(ValueError, RecursionError):
                        row = json.loads(records[record])
                        if isinstance(row, dict):
                            nested = any(isinstance(value, list | dict) for value in row.values())
                            return None if nested else list(row)
        return None


class _JsonLines(TextTable):
    def __init__(self, source: JsonLinesFile) -> None:
        super().__init__(source)
        self.label_types: list[pa.DataType] = []  # Arrow's, in the order in which they are tried
        self.length: int | None = None  # of an example that is a list
        self.lists = False  # whether labels come in lists
        self.cell_types: dict[str, pa.DataType] = {}  # of the columns of a table that are read as text

    def types(self, layout: Layout) -> dict[str, pa.DataType]:
        """Numbers are float64, as JSON has them."""
        import pyarrow as pa

        types = super().types(layout)
        if layout.dense or self.length is not None:
            number = pa.float64()
            types |= dict.fromkeys(layout.features, number if self.length is None else pa.list_(number))
        if self.lists and layout.label is not None:
            types[layout.label] = pa.list_(pa.large_string())
        return types

    def fast(self, records: Records) -> dict[str, pa.Array]:
        import pyarrow as pa

        layout = self.layout or self._look(records)
        if layout is None or self.length is not None or not records.are_between("{", "}"):
            raise Stumble
        types, label = self.types(layout) | self.cell_types, layout.label
        words = self.lists or label is None or pa.types.is_large_string(types[label])
        if label is None or not words or label in layout.features:
            return _parsed(records, types, self.cells)
        for kind in self.label_types:
            with suppress(Stumble):
                columns = _parsed(records, {**types, label: kind}, self.cells)
                if pa.types.is_floating(kind) and not _exact(columns[label]):
                    break
                self.label_types = [kind]  # the others need not be tried any more
                return columns
        raise Stumble

    def _look(self, records: Records) -> Layout | None:
        """The layout by the first line that can be read."""
        for record in range(len(records)):
            with suppress(DataError):
                self.row(records[record], 0)
            if self.layout is not None:
                break
        return self.layout

    def row(self, record: bytearray, line: int) -> Row:
        path = self.source.path
        if record.isspace():
            return {}
        try:
            row = json.loads(record)
        except RecursionError:
            raise DataError("is nested too deeply", path, line) from None
        except UnicodeDecodeError as error:
            raise DataError(NOT_UTF8, path, line, error.start + 1) from None
        except json.JSONDecodeError as error:
            raise DataError(f"is not JSON: {error.msg}", path, line, error.colno) from None
        except ValueError:  # Python reads no more than some thousand digits
            raise DataError("has a whole number of thousands of digits", path, line) from None
        if not isinstance(row, dict):
            raise DataError("is not a JSON object", path, line)
        layout = self.layout or self._layout(row, line)
        example = _number if layout.dense else self._whole
        try:
            found: Row = (
                {name: example(row[name], name) for name in layout.features}
                if layout.kinds is None
                else {name: _cell(row.get(name), kind, name) for name, kind in layout.kinds.items()}
            )
            if layout.label is not None and layout.label not in found:
                found[layout.label] = self._labels(row[layout.label], layout.label)
            if layout.weight is not None:
                found[layout.weight] = _number(row[layout.weight], layout.weight)
            for name in self.carried:
                found[name] = _carried(row.get(name), name)
        except KeyError as error:
            raise DataError(
                f"field {error.args[0]!r} is missing; the fields are {listed(list(row))}", path, line
            ) from None
        except ValueError as error:
            raise DataError(str(error), path, line) from None
        return found

    def _layout(self, row: dict[str, object], line: int) -> Layout:
        import pyarrow as pa

        source = self.source
        numeric = [name for name, value in row.items() if isinstance(value, int | float)]
        whole = [name for name, value in row.items() if isinstance(value, str | list)]
        layout = choose(
            list(row), numeric, whole, source.wanted, path=source.path, usual="label", like=source.like, guessed=True,
            ids=source.ids,
        )  # fmt: skip
        for name in layout.columns:
            if not _is_text(name):
                raise DataError(f"the name {name!r} of a field {HALF}", source.path, line)
        self.layout = layout
        texts = [name for name, kind in (layout.kinds or {}).items() if kind != "number"]
        self.cell_types = {name: _cell_type(row[name]) for name in (*texts, *self.carried)}
        if layout.label is not None:
            kinds = {str: [pa.large_string()], bool: [pa.bool_()], float: [pa.float64()]}
            self.label_types = kinds.get(type(row[layout.label]), [pa.int64(), pa.float64()])
            if isinstance(row[layout.label], list):
                self.lists, self.label_types = True, [pa.list_(pa.int64()), pa.list_(pa.large_string())]
        return self.settle(layout)

    def _labels(self, value: object, name: str) -> str | list[str]:
        """The label of a row, or its labels; null is none."""
        if self.lists:
            return [
                _word(one, name) for one in (value if isinstance(value, list) else [] if value is None else [value])
            ]
        return "" if value is None and self.source.separator is not None else _word(value, name)

    def _whole(self, value: object, name: str) -> str | list[float]:
        if isinstance(value, str) and self.length is None:
            if not _is_text(value):
                raise ValueError(f"field {name!r} {HALF}")
            return value
        if not isinstance(value, list):
            raise ValueError(f"field {name!r} is not {'text' if self.length is None else 'a list of numbers'}")
        if self.length is None:
            self.length = len(value)
        if len(value) != self.length:
            raise ValueError(f"field {name!r} has {len(value)} numbers, and the lists before it have {self.length}")
        return [_number(item, name) for item in value]


def _cell_type(value: object) -> pa.DataType:
    """As what Arrow reads a field that becomes text."""
    import pyarrow as pa

    if isinstance(value, bool):
        return pa.bool_()
    return pa.int64() if isinstance(value, int) else pa.float64() if isinstance(value, float) else pa.large_string()


def _cell(value: object, kind: str, name: str) -> str | float:
    """The value of a cell of a table; one that is missing is NaN, or a text of no letters."""
    if kind == "number":
        return math.nan if value is None else _number(value, name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else _word(value, name)


def _carried(value: object, name: str) -> str | None:
    """What is carried along, as text."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    return None if value is None else str(value).lower() if isinstance(value, bool) else _word(value, name)


def _parsed(records: Records, types: dict[str, pa.DataType], cells: set[str]) -> dict[str, pa.Array]:
    """Fields of these types by Arrow's parser, or Stumble. Other fields are passed over, however they are nested.
    Values may be missing in `cells`."""
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
        raise Stumble from None
    if len(table) != len(records) or any(columns[name].null_count for name in columns.keys() - cells):
        raise Stumble
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
        raise _unlike(value, name, "not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"field {name!r} has a number that is too large") from None


def _unlike(value: object, name: str, wanted: str) -> ValueError:
    found = "missing" if value is None else f"{wanted}: {json.dumps(value)[:40]}"
    return ValueError(f"field {name!r} is {found}")


def _word(value: object, name: str) -> str:
    if isinstance(value, str):
        if not _is_text(value):
            raise ValueError(f"field {name!r} {HALF}")
        return value
    if isinstance(value, int | float):
        return number_word(value)
    raise _unlike(value, name, "neither text nor a number")
