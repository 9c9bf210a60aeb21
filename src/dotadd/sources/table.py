"""Arrow tables as examples: the part that files, data frames and tables in memory share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from dotadd.data.batches import Batch, DenseRows, Images, SparseRows, Strings, from_arrow
from dotadd.data.lattices import is_lattices, lattices_from_arrow
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import Chunk, Source
from dotadd.sources.labels import exact_labels
from dotadd.sources.layout import Layout, choose
from dotadd.sources.sound import float_type, float_values, pixel_values

if TYPE_CHECKING:
    import pyarrow as pa

PACKED, LENGTH = b"dotadd.dna2", b"length"  # metadata of a field that holds DNA in two bits a letter
# Metadata of the schema of a file that `convert` wrote: the column of the examples, that of the lines on which they
# stood in a text, the names of the features, and those of all columns.
EXAMPLES, LINES, COLUMNS, LAYOUT = b"column", b"lines", b"columns", b"layout"


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


def layout_of(
    schema: pa.Schema,
    *,
    column: str | None,
    label: str | None,
    weight: str | None,
    path: str | None,
    like: Layout | None = None,
) -> Layout:
    """The layout of a table of this schema. A file that `convert` wrote needs no names."""
    if b"dotadd" in (schema.metadata or {}) and column is None:
        column = schema.metadata.get(EXAMPLES, b"x").decode()
        label = label or ("label" if "label" in schema.names else None)
        weight = weight or ("weight" if "weight" in schema.names else None)
    numeric = [field.name for field in schema if is_number(field.type)]
    whole = [field.name for field in schema if is_whole(field.type)]
    return choose(schema.names, numeric, whole, column=column, label=label, weight=weight, path=path, like=like)


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
    table = _without_missing(source, _plain_columns(table, layout, path), layout, path, first_row)
    with _about(path):
        y = None if layout.label is None else labels_of(table.column(layout.label))
        return Chunk(_batch_of(table, layout, n_features), y, _weights(table, layout), 0, path)


def labels_beside(
    source: Source, table: pa.RecordBatch, layout: Layout, path: str | None, first_row: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels and weights of a record batch that holds these columns only."""
    beside = Layout([], False, layout.label, layout.weight)
    table = _without_missing(source, _plain_columns(table, beside, path), beside, path, first_row)
    assert layout.label is not None
    with _about(path):
        return labels_of(table.column(layout.label)), _weights(table, layout)


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


def _without_missing(
    source: Source, table: pa.RecordBatch, layout: Layout, path: str | None, first_row: int
) -> pa.RecordBatch:
    import pyarrow as pa

    lacks = np.full(len(table), -1)  # the first column in which a row has no value
    for k, name in enumerate(layout.columns):
        column = table.column(name)
        absent = np.zeros(len(column), np.bool_)
        if column.null_count:
            absent |= column.is_null().to_numpy(zero_copy_only=False)
        if name in (layout.label, layout.weight) and pa.types.is_floating(column.type):
            absent |= ~np.isfinite(numbers(column))
        lacks[absent & (lacks < 0)] = k
    if not (lacks >= 0).any():
        return table
    for row in np.flatnonzero(lacks >= 0).tolist():
        message = f"row {first_row + row}: column {layout.columns[lacks[row]]!r} has a missing value; fill or drop it"
        source.bad_row(DataError(message, path))
    if path is not None:
        table.validate(full=True)
    return table.filter(pa.array(lacks < 0))


def _batch_of(table: pa.RecordBatch, layout: Layout, n_features: int | None) -> Batch:
    if layout.dense:
        return DenseRows(side_by_side([numbers(table.column(name)) for name in layout.features]))
    (name,) = layout.features
    field = table.schema.field(name)
    if is_lattices(field.type):
        return lattices_from_arrow(table.column(name))
    length = packed_length(field)
    batch = from_arrow(table.column(name), n_features=n_features)
    if length is not None:
        from dotadd.sources.dna import unpack

        assert isinstance(batch, Strings)
        return unpack(batch.letters.reshape(len(batch), -1), length)
    if isinstance(batch, Images):
        return Images(pixel_values(batch.values, f"column {name!r}"))
    if isinstance(batch, DenseRows):
        return type(batch)(float_values(batch.values, f"column {name!r}"))
    if isinstance(batch, SparseRows) and batch.values is not None:
        batch.values = float_values(batch.values, f"column {name!r}")
    return batch


def plainer(array: pa.Array) -> pa.Array:
    """Dictionaries and views as the plain arrays that they stand for."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def numbers(array: pa.Array) -> np.ndarray:
    """An array of numbers. Where there is pandas, `to_numpy` imports it: half a second and 50 MB."""
    import pyarrow as pa

    whole = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    return np.from_dlpack(array) if whole and not array.null_count else array.to_numpy(zero_copy_only=False)


def labels_of(array: pa.Array) -> np.ndarray:
    """A label column as int64 or float64 where it holds numbers, else as text."""
    array = plainer(array)
    if is_number(array.type):
        return exact_labels(numbers(array))
    if is_text(array.type):
        return np.array(array.to_pylist(), np.str_)
    raise DataError(f"labels of type {array.type} cannot be used; give numbers or text")


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
