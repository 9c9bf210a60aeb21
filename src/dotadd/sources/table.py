"""Tables as examples, in files, in data frames or in memory: which columns are the examples, the label and the weight,
and chunks over record batches of Arrow."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd.data.batches import Batch, DenseRows, Images, SparseRows, Strings, from_arrow, unpack
from dotadd.data.lattices import is_lattices, lattices_from_arrow, packed
from dotadd.data.table import CELLS, Cells, Table, is_cells, table_from_arrow
from dotadd.errors import DataError, DotaddError, UnusedColumnsWarning
from dotadd.sources.base import Chunk, Source
from dotadd.sources.label_sets import sets_of
from dotadd.sources.labels import exact_labels, parsed_sets, separator_of, without
from dotadd.sources.sound import float_type, float_values, pixel_values

if TYPE_CHECKING:
    import pyarrow as pa

PACKED, LENGTH = b"dotadd.dna2", b"length"  # metadata of a field that holds DNA in two bits a letter
# Metadata of the schema of a file that `convert` wrote: the column of the examples, that of the lines on which they
# stood in a text, the names of the features, and those of all columns.
NOTHING = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")
)  # what a missing number is written as
NUMBERS = ("number", "both")  # kinds of columns of which numbers are read
EXAMPLES, LINES, COLUMNS, LAYOUT = b"column", b"lines", b"columns", b"layout"


class Wanted(NamedTuple):
    """The columns that somebody asks for, by name, or by number where a file has no header."""

    column: str | int | None = None
    label: str | int | None = None
    weight: str | int | None = None


@dataclass(frozen=True)
class Layout:
    """The columns that are read. `dense` says that the features are scalar columns, set side by side; otherwise the
    one feature column holds a whole example in each cell."""

    features: list[str]
    dense: bool
    label: str | None
    weight: str | None
    header: bool = True
    """Whether the columns have names; those of a file without a header are their numbers, from 0."""
    kinds: dict[str, str] | None = None
    """Where rows are those of a table, what each feature column is read as: "text", "number", "both" or "lattices"."""
    ids: tuple[str, ...] = ()
    """Columns that are carried along, whatever they hold."""

    @property
    def columns(self) -> list[str]:
        """Everything that has to be read, each column once."""
        return list(dict.fromkeys([*self.needed, *self.ids]))

    @property
    def needed(self) -> list[str]:
        """The columns without which there is no example."""
        beside = [name for name in (self.label, self.weight) if name is not None]
        return list(dict.fromkeys([*self.features, *beside]))

    def to_dict(self) -> dict[str, object]:
        """What a model file keeps; weights of examples mean nothing to a model."""
        record = {"features": self.features, "dense": self.dense, "label": self.label, "header": self.header}
        return record if self.kinds is None else record | {"kinds": self.kinds}

    @classmethod
    def from_dict(cls, record: object) -> Layout:
        """From `to_dict`; TypeError or KeyError where it is damaged."""
        if not isinstance(record, dict):
            raise TypeError("it does not say which columns there are")
        features, label, kinds = record["features"], record["label"], record.get("kinds")
        if not isinstance(features, list) or not all(isinstance(name, str) for name in [*features, label or ""]):
            raise TypeError("names of columns are not text")
        if kinds is not None and not (isinstance(kinds, dict) and set(kinds) == set(features)):
            raise TypeError("it does not say what each column is read as")
        return cls(features, bool(record["dense"]), label, None, bool(record["header"]), kinds)

    @classmethod
    def of_cells(cls, kinds: dict[str, str]) -> Layout:
        """The rows of a table of these columns, each read as its kind."""
        return cls(list(kinds), False, None, None, kinds=kinds)


def choose(
    names: Sequence[str],
    numeric: Sequence[str],
    whole: Sequence[str],
    wanted: Wanted,
    *,
    path: str | None,
    usual: str | None = None,
    like: Layout | None = None,
    guessed: bool = False,
    ids: Sequence[str | int] = (),
) -> Layout:
    """The layout of a table with these columns, of which some are numbers and some hold whole examples (text, lists).

    Where no column is wanted, all numbers but the label and the weight are features; where there are none, the one
    column that holds whole examples is read. `usual` is the label where none is asked for. With `like`, the columns of
    an earlier table are read, in the order that they have there, and its label if it is here. `guessed` says that only
    a look at some rows tells which columns are numbers: then an earlier table knows better. `ids` are carried along.
    """
    for asked in (*wanted, *ids):
        if asked is not None and asked not in names:
            raise DataError(f"there is no column {asked!r}; the columns are {listed(names)}", path)
    found = _chosen(names, numeric, whole, wanted, path, usual, like, guessed)
    return replace(found, ids=tuple(map(str, ids))) if ids else found


def _chosen(
    names: Sequence[str],
    numeric: Sequence[str],
    whole: Sequence[str],
    wanted: Wanted,
    path: str | None,
    usual: str | None,
    like: Layout | None,
    guessed: bool,
) -> Layout:
    column, label, weight = (asked if isinstance(asked, str) else None for asked in wanted)
    if like is not None and like.kinds is not None:
        usual = usual if usual in names and usual not in like.features else None
        return _of_cells(names, like, column, label or usual, weight, path)
    if like is not None and like.header and column is None:
        hint = "" if like.dense else "; name another with column= (--column)"
        if hint and guessed:
            hint += ', or, if each line is a text, say format="txt" (--format txt)'
        require_names(like.features, names, path, hint=hint)
        fitting = set(names if guessed else numeric if like.dense else whole)
        for name in like.features:
            if name not in fitting:
                kind = "numbers" if like.dense else "text or lists"
                raise DataError(f"column {name!r} holds no {kind}, unlike where the model was trained", path)
        return Layout(like.features, like.dense, like.label if label is None and like.label in names else label, weight)
    if label is None and usual in names:
        label = usual
    if column is not None:
        if column not in numeric and column not in whole:
            raise DataError(f"column {column!r} holds neither numbers nor text nor lists of numbers", path)
        dense = like.dense if guessed and like is not None else column in numeric
        return Layout([column], dense, label, weight)
    features = [name for name in numeric if name not in (label, weight)]
    candidates = [name for name in whole if name not in (label, weight)]
    if features:
        if candidates:
            message = f"only columns of numbers are read; left out: {listed(candidates)} (name one to read it instead)"
            warnings.warn(message if path is None else f"{path}: {message}", UnusedColumnsWarning, stacklevel=2)
        return Layout(features, True, label, weight)
    if len(candidates) == 1:
        return Layout(candidates, False, label, weight)
    raise DataError(f"which column holds the examples? Name it with column=; the columns are {listed(names)}", path)


def _of_cells(
    names: Sequence[str], like: Layout, column: str | None, label: str | None, weight: str | None, path: str | None
) -> Layout:
    """The layout of a table of which a map reads several columns."""
    if column is not None:
        raise DataError(f"features read the columns {listed(like.features)}: leave out column= (--column)", path)
    missing = [name for name in like.features if name not in names]
    if missing:
        lacks = "there are no columns" if len(missing) > 1 else "there is no column"
        raise DataError(f"{lacks} {listed(missing)}; the columns are {listed(names)}", path)
    label = like.label if label is None and like.label in names else label
    if label in like.features:
        raise DataError(f"column {label!r} is the label, and the features read it, too", path)
    return Layout(like.features, False, label, weight, kinds=like.kinds)


def require_names(wanted: Sequence[str], names: Sequence[str], path: str | None, hint: str = "") -> None:
    """Refuse a table that lacks columns that a model was trained on."""
    missing = list(dict.fromkeys(wanted).keys() - set(names))
    if missing:
        missing.sort(key=list(wanted).index)
        several = "s" if len(missing) > 1 else ""
        raise DataError(
            f"lacks the column{several} {listed(missing)} that the model was trained on; "
            f"the columns are {listed(names)}{hint}",
            path,
        )


def listed(names: Sequence[str], most: int = 20) -> str:
    """Column names for a message, cut off when there are very many, or when one is very long."""
    shown = ", ".join(repr(name if len(name) <= 60 else name[:60] + "...") for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    t = pa.types
    return t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)


def is_whole(kind: pa.DataType) -> bool:
    """Whether each cell of such a column can be an example by itself."""
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(kind):
        return is_whole(kind.value_type)
    binary = t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind) or t.is_binary_view(kind)
    lists = t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)
    return is_text(kind) or binary or lists or isinstance(kind, pa.FixedShapeTensorType)


def is_nested(kind: pa.DataType) -> bool:
    """Whether a cell of such a column holds several values."""
    import pyarrow as pa

    return pa.types.is_nested(kind) or isinstance(kind, pa.FixedShapeTensorType)


def layout_of(
    schema: pa.Schema,
    wanted: Wanted,
    *,
    path: str | None,
    like: Layout | None = None,
    ids: Sequence[str | int] = (),
) -> Layout:
    """The layout of a table of this schema. A file that `convert` wrote needs no names. The labels of a file are in a
    column called "label" where nobody says; those of a table in memory only if a map says which columns it reads."""
    if b"dotadd" in (schema.metadata or {}) and wanted.column is None:
        label, weight = (name if name in schema.names else None for name in ("label", "weight"))
        examples = schema.metadata.get(EXAMPLES, b"x").decode()
        wanted = Wanted(examples, wanted.label or label, wanted.weight or weight)
    numeric = [field.name for field in schema if is_number(field.type)]
    whole = [field.name for field in schema if is_whole(field.type)]
    usual = "label" if path is not None or (like is not None and like.kinds is not None) else None
    return choose(schema.names, numeric, whole, wanted, path=path, usual=usual, like=like, ids=ids)


def names_of(schema: pa.Schema, layout: Layout) -> tuple[list[str] | None, Layout | None]:
    """The names of the features, and of all columns as they were before `convert` put the features into one."""
    about = schema.metadata or {}
    if b"dotadd" not in about:
        return layout.features if layout.dense else None, layout
    columns = layout.features if layout.dense else _names(about.get(COLUMNS, b"null"))
    if LAYOUT in about:
        return columns, Layout.from_dict(json.loads(about[LAYOUT]))
    return columns, None if columns is None else Layout(columns, True, layout.label, layout.weight)


def _names(written: bytes) -> list[str] | None:
    """Names of features, as `convert` writes them."""
    names = json.loads(written)
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError("it does not say how its features are called")
    return names


def chunk_of(
    source: Source,
    table: pa.RecordBatch,
    layout: Layout,
    *,
    n_features: int | None = None,
    path: str | None = None,
    first_row: int = 0,
) -> Chunk:
    """The chunk over a record batch. Rows with missing values are bad; `first_row` numbers them in complaints."""
    table = _without_words(source, _plain_columns(table, layout, path), layout, path, first_row)
    table = _without_missing(source, table, layout, path, first_row)
    with _about(path):
        labels, separator = None if layout.label is None else table.column(layout.label), separator_of(source)
        ids = table.select(list(layout.ids)) if layout.ids else None
        batch, found = _batch_of(table, layout, n_features)
        chunk = Chunk(batch, None, _weights(table, layout), 0, path, ids=ids)
        if labels is not None and (separator is None or not is_text(labels.type)):
            chunk = replace(chunk, y=labels_of(labels))
        elif labels is not None and separator is not None:
            y, wrong = parsed_sets(labels.fill_null("").to_pylist(), separator, False)
            chunk, found = replace(chunk, y=y), wrong | found
    return without(source, replace(chunk, first_row=first_row), found) if found else chunk


def labels_beside(
    source: Source, table: pa.RecordBatch, layout: Layout, path: str | None, first_row: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels and weights of a record batch that holds these columns only."""
    beside = Layout([], False, layout.label, layout.weight)
    table = _without_missing(source, _plain_columns(table, beside, path), beside, path, first_row)
    assert layout.label is not None
    separator, labels = separator_of(source), table.column(layout.label)
    with _about(path):
        if separator is not None and is_text(labels.type):
            y, complaints = parsed_sets(labels.fill_null("").to_pylist(), separator, False)
            for row, message in complaints.items():
                raise DataError(f"row {first_row + row}: {message}", path)
            return y, _weights(table, layout)
        return labels_of(labels), _weights(table, layout)


def _weights(table: pa.RecordBatch, layout: Layout) -> np.ndarray | None:
    if layout.weight is None:
        return None
    column = table.column(layout.weight)
    if not is_number(column.type):
        raise DataError(f"weights of type {column.type} cannot be used; give numbers")
    return numbers(column).astype(np.float64, copy=False)


@contextmanager
def _about(path: str | None) -> Iterator[None]:
    """Complaints in one line that name the file."""
    import pyarrow as pa

    try:
        yield
    except (ValueError, pa.ArrowException) as error:
        if isinstance(error, DotaddError) and (path is None or getattr(error, "path", None) == path):
            raise
        raise DataError((str(error).splitlines() or ["cannot be read"])[0], path) from None


def unpacked(field: pa.Field) -> int:
    """How many times larger examples are in memory than on disk."""
    length = packed_length(field)
    return 1 if length is None else max(1, length // field.type.byte_width)


def packed_length(field: pa.Field) -> int | None:
    """Letters of each string of a column that holds packed DNA, None if it does not."""
    import pyarrow as pa

    metadata = field.metadata or {}
    if PACKED not in metadata:
        return None
    written = metadata.get(LENGTH, b"")
    length = int(written) if written.isdigit() and len(written) < 10 else 0
    if not length or not pa.types.is_fixed_size_binary(field.type) or (length + 3) // 4 != field.type.byte_width:
        raise DataError(f"column {field.name!r} is said to hold packed DNA, and does not; the file is damaged")
    return length


def _plain_columns(table: pa.RecordBatch, layout: Layout, path: str | None) -> pa.RecordBatch:
    """The columns without dictionaries and views. What of a file Arrow is to follow is looked at first: it trusts."""
    import pyarrow as pa

    columns = [table.column(name) for name in layout.columns]
    if path is not None:
        for name, column in zip(layout.columns, columns, strict=True):
            if name not in layout.features or plainer(column[:0]).type != column.type:
                column.validate(full=True)
    columns = [plainer(column) for column in columns]
    fields = [table.schema.field(name) for name in layout.columns]
    schema = pa.schema([field.with_type(column.type) for field, column in zip(fields, columns, strict=True)])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _without_words(
    source: Source, table: pa.RecordBatch, layout: Layout, path: str | None, first_row: int
) -> pa.RecordBatch:
    """The rows that have numbers, or nothing, in the columns of text that a map reads as numbers."""
    import pyarrow as pa

    bad: dict[int, DataError] = {}
    for name, kind in (layout.kinds or {}).items():
        words = table.column(name)
        if kind not in NUMBERS or not is_text(words.type):
            continue
        try:
            _number_cells(words, name)
        except DataError:
            for row, word in enumerate(words.to_pylist()):
                if not _is_number(word):
                    shown = repr(word if len(word) <= 40 else word[:40] + "...")
                    message = f"row {first_row + row}: column {name!r}: {shown} is not a number"
                    bad.setdefault(row, DataError(message, path))
    for row in sorted(bad):
        source.bad_row(bad[row])
    return table.filter(pa.array(np.isin(np.arange(len(table)), list(bad), invert=True))) if bad else table


def _is_number(word: str | None) -> bool:
    try:
        return word is None or word.strip() in NOTHING or ("_" not in word and float(word) is not None)
    except ValueError:
        return False


def _without_missing(
    source: Source, table: pa.RecordBatch, layout: Layout, path: str | None, first_row: int
) -> pa.RecordBatch:
    import pyarrow as pa

    lacks = np.full(len(table), -1)  # the first column in which a row has no value
    for k, name in enumerate(layout.needed):
        if layout.kinds is not None and name in layout.kinds:  # what a missing value is, the map says
            continue
        column = table.column(name)
        absent = np.zeros(len(column), np.bool_)
        if name == layout.label and (is_nested(column.type) or separator_of(source) is not None):
            continue  # a row without labels
        if column.null_count:
            absent |= column.is_null().to_numpy(zero_copy_only=False)
        if name in (layout.label, layout.weight) and pa.types.is_floating(column.type):
            absent |= ~np.isfinite(numbers(column))
        lacks[absent & (lacks < 0)] = k
    if not (lacks >= 0).any():
        return table
    for row in np.flatnonzero(lacks >= 0).tolist():
        message = f"row {first_row + row}: column {layout.needed[lacks[row]]!r} has a missing value; fill or drop it"
        source.bad_row(DataError(message, path))
    if path is not None:
        table.validate(full=True)
    return table.filter(pa.array(lacks < 0))


def _batch_of(table: pa.RecordBatch, layout: Layout, n_features: int | None) -> tuple[Batch, dict[int, str]]:
    """The examples, and complaints about rows that are to be left out."""
    if layout.kinds is not None:
        return table_of({name: table.column(name) for name in layout.features}, layout.kinds)
    return _plain_batch(table, layout, n_features), {}


def _plain_batch(table: pa.RecordBatch, layout: Layout, n_features: int | None) -> Batch:
    if layout.dense:
        return DenseRows(side_by_side([numbers(table.column(name)) for name in layout.features]))
    (name,) = layout.features
    field = table.schema.field(name)
    if is_lattices(field.type):
        return lattices_from_arrow(table.column(name))
    if is_cells(field.type):
        names = json.loads((field.metadata or {}).get(CELLS, b"null"))
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("it does not say how its columns are called")
        return table_from_arrow(table.column(name), names)
    length = packed_length(field)
    batch = from_arrow(table.column(name), n_features=n_features)
    if length is not None:
        assert isinstance(batch, Strings)
        return unpack(batch.letters.reshape(len(batch), -1), length)
    if isinstance(batch, Images):
        return Images(pixel_values(batch.values, f"column {name!r}"))
    if isinstance(batch, DenseRows):
        return type(batch)(float_values(batch.values, f"column {name!r}"))
    if isinstance(batch, SparseRows) and batch.values is not None:
        batch.values = float_values(batch.values, f"column {name!r}")
    return batch


def table_of(columns: dict[str, pa.Array], kinds: dict[str, str]) -> tuple[Table, dict[int, str]]:
    """The rows of a table, of which each column is read as its kind; and complaints about cells without a lattice."""
    if "lattices" not in kinds.values():
        return Table.from_columns({name: _cells(array, kinds[name], name) for name, array in columns.items()}), {}
    from dotadd.automata.symbols import HashedSymbols
    from dotadd.sources.lattice_cells import lattices_of

    words, cells, complaints = HashedSymbols(), dict[str, Cells](), dict[int, str]()
    for name, column in columns.items():
        if kinds[name] != "lattices":
            cells[name] = _cells(column, kinds[name], name)
        elif is_lattices(column.type):
            cells[name] = Cells(strings=packed(lattices_from_arrow(column)))
        else:
            batch, found = lattices_of(_text_cells(plainer(column), name), words)
            cells[name] = Cells(strings=packed(batch))
            complaints = {row: f"column {name!r}: {message}" for row, message in found.items()} | complaints
    return Table.from_columns(cells, words), complaints


def _cells(array: pa.Array, kind: str, name: str) -> Cells:
    array = plainer(array)
    numbers = _number_cells(array, name) if kind in NUMBERS else None
    return Cells(numbers, None if kind == "number" else _text_cells(array, name))


def _number_cells(array: pa.Array, name: str) -> np.ndarray:
    """The numbers of a column, NaN where one is missing; words are read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(array.type):
        words = pc.utf8_trim_whitespace(array)
        array = pc.if_else(pc.is_in(words, pa.array(sorted(NOTHING), words.type)), None, words)
        try:
            array = array.cast(pa.float64())
        except pa.ArrowInvalid:
            raise DataError(f"column {name!r} holds words, and a feature wants its numbers") from None
    if not (is_number(array.type) or pa.types.is_decimal(array.type) or pa.types.is_null(array.type)):
        raise DataError(f"column {name!r} holds {array.type}, and a feature wants its numbers")
    array = array.cast(pa.float64(), safe=False)
    return numbers(array.fill_null(_scalar(array.type, np.full(1, np.nan))) if array.null_count else array)


def _text_cells(array: pa.Array, name: str) -> Strings:
    """The letters of a column, none where a cell is missing. Whole numbers are written without a point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    t, kind = pa.types, array.type
    if t.is_floating(kind):
        array = pc.if_else(pc.is_finite(array), array, None)
    elif is_nested(kind):
        what = f'lattices: read them by Column({name!r}, ..., holds="lattices")' if is_lattices(kind) else kind
        raise DataError(f"column {name!r} holds {what}, and a feature wants text")
    if not (t.is_binary(array.type) or t.is_large_binary(array.type)):
        array = array.cast(pa.large_string())
    if array.null_count:
        large = t.is_large_string(array.type) or t.is_large_binary(array.type)
        array = array.fill_null(_scalar(array.type, np.zeros(2, np.int64 if large else np.int32), b""))
    batch = from_arrow(array)
    assert isinstance(batch, Strings)
    return batch


def plainer(array: pa.Array) -> pa.Array:
    """Dictionaries and views as the plain arrays that they stand for."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = plainer(array.dictionary).take(array.indices)  # pyarrow does not take from views
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def _scalar(kind: pa.DataType, *buffers: np.ndarray | bytes) -> pa.Scalar:
    """One value, by the buffers of an array of it: `pa.scalar` imports pandas as `to_numpy` does."""
    import pyarrow as pa

    return pa.Array.from_buffers(kind, 1, [None, *map(pa.py_buffer, buffers)])[0]


def numbers(array: pa.Array) -> np.ndarray:
    """An array of numbers. Where there is pandas, `to_numpy` imports it: half a second and 50 MB."""
    import pyarrow as pa

    whole = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    return np.from_dlpack(array) if whole and not array.null_count else array.to_numpy(zero_copy_only=False)


def labels_of(array: pa.Array) -> np.ndarray:
    """A label column as int64 or float64 where it holds numbers, else as text; lists of labels as sets of them."""
    import pyarrow as pa

    array = plainer(array)
    if is_number(array.type):
        return exact_labels(numbers(array))
    if is_text(array.type):
        return np.array(array.to_pylist(), np.str_)
    t = pa.types
    lists = t.is_list(array.type) or t.is_large_list(array.type) or t.is_fixed_size_list(array.type)
    if lists and (is_text(kind := array.type.value_type) or t.is_integer(kind)):
        rows = [row or () for row in array.to_pylist()]
        if any(label is None or label == "" for row in rows for label in row):
            raise DataError("a label in a list of them is missing; leave it out")
        return sets_of(rows)
    raise DataError(f"labels of type {array.type} cannot be used; give numbers, text, or lists of these")


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The chunks of a column joined."""
    import pyarrow as pa

    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def side_by_side(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns as one C-ordered array: float32 if that holds all of them, else float64."""
    dtype = np.result_type(*[float_type(column.dtype) for column in columns])
    values = np.empty((len(columns[0]), len(columns)), dtype)
    for k, column in enumerate(columns):
        values[:, k] = column
    return values
