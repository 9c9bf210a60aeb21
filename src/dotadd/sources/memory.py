"""Examples that are in memory already: arrays, sparse matrices, lists, tables (pandas and polars data frames, Arrow
tables, and whatever else speaks Arrow's C interface); and labels given beside any source.

Nothing is copied that does not have to be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from dotadd.data.batches import Batch, DenseRows, Images, SparseRows, Strings
from dotadd.errors import DataError, DotaddError
from dotadd.sources.base import CHUNK_BYTES, Around, Chunk, Options, Source, join_chunks
from dotadd.sources.formats import require_options
from dotadd.sources.label_sets import given_sets
from dotadd.sources.sound import (
    float_type,
    float_values,
    offsets_fit,
    pixel_values,
    require_inside,
    require_letters,
    sound_rows,
    with_distinct,
)
from dotadd.sources.table import Layout, Wanted, choose, chunk_of, labels_of, layout_of, names_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from scipy import sparse


@dataclass
class MemorySource(Source):
    """One chunk over memory that is there already. Its soundness is looked at once, before the first pass."""

    content: Chunk

    def __post_init__(self) -> None:
        self._sound: Chunk | None = None

    @property
    def name(self) -> str:
        return self.content.path or f"the {self.content.batch.kind} in memory"

    def load(self, limit: int | None = None) -> Chunk:
        return super().load()  # what is in memory already takes no more

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        if self._sound is None:
            if not len(self.content):
                raise DataError("has no examples", self.name)
            require_inside(self.content.batch, self.name)
            self._sound = sound_rows(self, self.content)
        if not len(self._sound):
            raise DataError(f"has no example that can be read; the first complaint: {self.skipped.first}", self.name)
        yield self._sound


def opened(x: object, options: Options, on_bad_row: str, like: Layout | None = None) -> Source:
    """A source of anything in memory."""
    if is_table(x) and not isinstance(x, np.ndarray):
        require_options(options, {"column", "label", "weight"}, "tables in memory")
        wanted = Wanted(*(options.get(name) for name in Wanted._fields))
        return from_table(x, wanted, like, on_bad_row)
    require_options(options, set(), f"{type(x).__name__} in memory")
    if isinstance(x, Source):
        if on_bad_row != "error" and x.on_bad_row != on_bad_row:
            raise DotaddError("on_bad_row is set where a source is opened; this one is open already")
        return x
    batch: Batch
    if isinstance(x, Batch):
        batch = x
    elif isinstance(x, np.ndarray):
        batch = batch_from_numpy(x)
    elif hasattr(x, "tocsr"):
        batch = batch_from_scipy(x)
    elif isinstance(x, list | tuple):
        batch = batch_from_list(x)
    elif hasattr(x, "__array__"):
        batch = batch_from_numpy(np.asarray(x))
    else:
        raise DotaddError(f"cannot read examples from {type(x).__name__}; see dotadd.open for what can be read")
    return MemorySource(Chunk(batch, None, None, 0), on_bad_row=on_bad_row)


@dataclass
class Beside(Around):
    """Another source with labels or weights given beside it, in the order of its rows."""

    y: np.ndarray | None = None
    weight: np.ndarray | None = None

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        rows = 0
        for chunk in self.source.chunks(nbytes):
            self.columns = self.source.columns
            span = slice(chunk.first_row, chunk.first_row + len(chunk))
            rows = span.stop
            self._require_length(rows, at_least=True)
            y = chunk.y if self.y is None else self.y[span]
            weight = chunk.weight if self.weight is None else self.weight[span]
            yield dataclasses.replace(chunk, y=y, weight=weight)
        self._require_length(rows, at_least=False)

    def _require_length(self, rows: int, at_least: bool) -> None:
        for name, array in (("y", self.y), ("sample_weight", self.weight)):
            if array is not None and (len(array) < rows or (not at_least and len(array) != rows)):
                more = "at least " if at_least else ""
                raise DataError(f"{name} has {len(array)} entries, and {self.name} has {more}{rows} examples")


def beside(source: Source, y: object, sample_weight: object) -> Source:
    """The source with these labels and weights, checked."""
    if y is None and sample_weight is None:
        return source
    if isinstance(source, Around) and source.labels_inside:
        return dataclasses.replace(source, source=beside(source.source, y, sample_weight))
    if source.on_bad_row == "skip" and not isinstance(source, MemorySource):
        raise DataError("y and sample_weight beside a file do not go with on_bad_row='skip': rows would shift")
    labels, weights = _labels(y), _weights(sample_weight)
    if not isinstance(source, MemorySource):
        return Beside(source, labels, weights, on_bad_row=source.on_bad_row, skipped=source.skipped)
    content = source.content
    for name, array in (("y", labels), ("sample_weight", weights)):
        if array is not None and len(array) != len(content):
            raise DataError(f"{name} has {len(array)} entries, and there are {len(content)} examples")
    content = dataclasses.replace(
        content,
        y=content.y if labels is None else labels,
        weight=content.weight if weights is None else weights,
    )
    return MemorySource(content, on_bad_row=source.on_bad_row, columns=source.columns, layout=source.layout)


def _labels(y: object) -> np.ndarray | None:
    if y is None:
        return None
    if (several := given_sets(y)) is not None:
        return several.y
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"y must be one-dimensional, and its shape is {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise DataError(f"row {row}: label {array[row]} is not finite; Input y contains NaN or infinity")
    if array.dtype.kind == "O" and any(label is None or label != label for label in array):
        raise DataError("y has missing values; fill or drop them")
    return array


def _weights(sample_weight: object) -> np.ndarray | None:
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise DataError("sample_weight has to be a number for each example") from None
    if weights.ndim != 1:
        raise DataError(f"sample_weight must be one-dimensional, and its shape is {weights.shape}")
    return weights


def batch_from_numpy(array: np.ndarray) -> Batch:
    """2-D: dense rows; 3-D: images (uint8 and uint16 stay what they are); 1-D of text or bytes: strings."""
    if array.ndim == 1 and array.dtype.kind in "OUST":
        require_letters(array)
        return batch_from_list(array.tolist())
    if array.ndim == 2:
        if not array.shape[1]:
            raise DataError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
        return DenseRows(float_values(array))
    if array.ndim == 3:
        return Images(pixel_values(array))
    if array.ndim == 1:
        raise DataError(f"Expected 2D array, got 1D array instead (shape {array.shape}). Reshape your data: a row each")
    raise DataError(
        f"an array of {array.ndim} dimensions cannot be read: give (rows, features) or (images, height, width)"
    )


_ADVICE = "for rows of named values give pandas.DataFrame(rows), or a file of JSON lines"


def batch_from_list(items: Sequence[object]) -> Batch:
    """Strings, automata, or lists of numbers of one length."""
    texts = [item for item in items if isinstance(item, str | bytes)]
    if len(texts) == len(items):
        try:
            return Strings.from_list(texts)
        except UnicodeEncodeError as error:
            raise DataError(f"a string cannot be written as UTF-8: {error.reason}") from None
    from dotadd.automata.automaton import Automaton

    automata = [item for item in items if isinstance(item, Automaton)]
    if len(automata) == len(items):
        from dotadd.data.lattices import Lattices

        return Lattices.from_automata(automata)
    if texts or any(item is None for item in items):
        row = next(row for row, item in enumerate(items) if not isinstance(item, str | bytes))
        raise DataError(f"row {row} is not a string like the others, but {type(items[row]).__name__}")
    try:
        array = np.asarray(items)
        if array.ndim == 1 and array.dtype.kind in "OUST":
            raise DataError(f"row 0 is {type(items[0]).__name__}, and no list of numbers or string; {_ADVICE}")
        return batch_from_numpy(array)
    except ValueError as error:
        raise error if isinstance(error, DataError) else DataError("the lists differ in length") from None


def batch_from_scipy(matrix: sparse.sparray) -> SparseRows:
    """CSR without a copy of indices and values; other formats are converted. Integers and booleans become floats."""
    if matrix.ndim != 2:
        raise DataError(f"a sparse array of {matrix.ndim} dimension cannot be read; rows and features are needed")
    _require_sound(matrix)
    csr = matrix if matrix.format == "csr" else matrix.tocsr()
    return SparseRows(
        csr.indptr, csr.indices, float_values(csr.data), csr.shape[1], distinct=bool(csr.has_canonical_format)
    )


def _require_sound(matrix: sparse.sparray) -> None:
    """Refuse a matrix whose arrays lead outside of one another: SciPy does not look, and reads or writes there.

    Indices of CSR are left to `sound_rows`, which names the row.
    """
    rows, columns = matrix.shape
    places: list[tuple[np.ndarray, int]] = []
    if matrix.format in ("csr", "csc", "bsr"):
        down, across = (rows, columns) if matrix.format != "csc" else (columns, rows)
        if matrix.format == "bsr":
            down, across = (down // matrix.data.shape[1], across // matrix.data.shape[2])
        length = min(len(matrix.indices), len(matrix.data))
        if len(matrix.indptr) != down + 1 or not offsets_fit(matrix.indptr, length):
            raise DataError(
                f"the {matrix.format.upper()} matrix is damaged: indptr has to have {down + 1} entries "
                f"that never fall, from 0 to the {length} that are stored"
            )
        places = [(matrix.indices, across)] if matrix.format != "csr" else []
    elif matrix.format == "coo":
        places = [(matrix.row, rows), (matrix.col, columns)]
    for indices, stop in places:
        if len(indices) and not (indices.min() >= 0 and indices.max() < stop):
            raise DataError(f"the {matrix.format.upper()} matrix is damaged: an index is not from 0 to {stop - 1}")


def is_table(x: object) -> bool:
    """Whether x is a data frame, a series, or an Arrow table, batch or array."""
    return is_pandas(x) or hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")


def is_pandas(x: object) -> bool:
    return type(x).__module__.partition(".")[0] == "pandas"


def first_rows(x: object, count: int) -> pa.Table | None:
    """The first rows of a data frame or table whose columns have names; None of anything else."""
    if not is_table(x) or not hasattr(x, "columns"):
        return None

    if not is_pandas(x):
        return _arrow_table(x).slice(0, count)
    frame = cast("pd.DataFrame", x)
    named = all(isinstance(name, str) for name in frame.columns)
    return _table_of_pandas(frame.head(count)) if named else None


def from_table(x: object, wanted: Wanted, like: Layout | None, on_bad_row: str) -> MemorySource:
    """The source over a table, of which the columns that are wanted, or are like those of an earlier one, are read.
    What has no names of text, as a series, is read as it stands."""
    source = Source(on_bad_row=on_bad_row)  # notes columns and bad rows while the table is read
    if is_pandas(x):
        named, content = _from_pandas(source, x, wanted, like)
    else:
        named = hasattr(x, "columns")
        content = _from_arrow(source, _arrow_table(x), wanted, like if named else None)
    layout = source.layout if named else None
    return MemorySource(content, on_bad_row=on_bad_row, columns=source.columns, layout=layout, skipped=source.skipped)


def _arrow_table(x: object) -> pa.Table:
    import pyarrow as pa

    if isinstance(x, pa.RecordBatch):
        return pa.Table.from_batches([x])
    if isinstance(x, pa.Array | pa.ChunkedArray):
        return pa.table({"x": x})
    if hasattr(x, "__arrow_c_stream__") and not hasattr(x, "columns"):  # a series
        return pa.table({"x": pa.chunked_array(x)})
    return x if isinstance(x, pa.Table) else pa.table(x)


def _from_arrow(source: Source, table: pa.Table, wanted: Wanted, like: Layout | None) -> Chunk:
    layout = layout_of(table.schema, wanted, path=None, like=like)
    source.columns, source.layout = names_of(table.schema, layout)
    batches = table.select(layout.columns).combine_chunks().to_batches()
    if not batches:
        raise DataError("the table has no examples")
    return join_chunks(with_distinct(chunk_of(source, batch, layout)) for batch in batches)


def _from_pandas(source: Source, frame: pd.DataFrame, wanted: Wanted, like: Layout | None) -> tuple[bool, Chunk]:
    """Whether the columns have names, and the examples: numbers as pandas keeps them, without a copy where that is one
    array; text through Arrow."""

    named = frame.ndim == 2 and all(isinstance(name, str) for name in frame.columns)
    like = like if named else None
    frame = frame.to_frame() if frame.ndim == 1 else frame
    columns = [str(name) for name in frame.columns]
    if len(set(columns)) < len(columns):
        raise DataError("two columns of the data frame have the same name")
    frame = frame.set_axis(columns, axis=1)
    types = dict(zip(columns, (_numpy_type(dtype) for dtype in frame.dtypes), strict=True))
    numeric = [name for name, dtype in types.items() if dtype is not None]
    whole = [name for name in columns if name not in numeric]
    layout = choose(columns, numeric, whole, wanted, path=None, like=like)
    if not layout.dense:
        return named, _from_arrow(source, _table_of_pandas(frame[layout.columns]), wanted, like)
    source.columns, source.layout = layout.features, layout
    features = frame if layout.features == columns else frame[layout.features]
    kinds = [kind for name in layout.features if (kind := types[name]) is not None]
    dtype = np.result_type(*map(float_type, kinds))
    nullable = any(not isinstance(kind, np.dtype) for kind in features.dtypes)
    values = features.to_numpy(dtype, na_value=np.nan) if nullable else features.to_numpy(dtype)
    return named, _with_beside(source, Chunk(DenseRows(values), None, None, 0), frame, layout)


def _table_of_pandas(frame: pd.DataFrame) -> pa.Table:
    """The frame as Arrow has it; columns of several types at once, which it does not have, as text."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.table({name: _array_of_pandas(frame[name]) for name in frame.columns})


def _array_of_pandas(column: pd.Series) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        values = column.astype(object).where(column.notna(), None).tolist()
    for row, value in enumerate(values):
        if not isinstance(value, str | bytes | bool | int | float | np.generic | None):
            raise DataError(f"row {row}: column {column.name!r} holds a {type(value).__name__} among other types")
    return pa.array([_word(value) for value in values], pa.large_string())


def _word(value: object) -> str | None:
    """A value as it stands in a file: whole numbers without a point, and true and false in small letters."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _with_beside(source: Source, chunk: Chunk, frame: pd.DataFrame, layout: Layout) -> Chunk:
    """Labels and weights out of columns of a pandas frame; rows without are bad."""
    import pyarrow as pa

    beside = [name for name in (layout.label, layout.weight) if name is not None]
    if not beside:
        return chunk
    missing = frame[beside].isna().to_numpy()
    for row in np.flatnonzero(missing.any(axis=1)):
        name = beside[int(np.argmax(missing[row]))]
        source.bad_row(chunk.error(int(row), f"column {name!r} has a missing value; fill or drop it"))
    if missing.any():
        keep = np.flatnonzero(~missing.any(axis=1))
        chunk, frame = chunk.take(keep), frame.iloc[keep]
    y = None if layout.label is None else labels_of(pa.array(frame[layout.label]))
    weight = None if layout.weight is None else frame[layout.weight].to_numpy(np.float64)
    return dataclasses.replace(chunk, y=y, weight=weight)


def _numpy_type(dtype: object) -> np.dtype | None:
    """The NumPy type of a numeric pandas column, None for any other."""
    kind = getattr(dtype, "numpy_dtype", dtype)
    return kind if isinstance(kind, np.dtype) and kind.kind in "biuf" else None
