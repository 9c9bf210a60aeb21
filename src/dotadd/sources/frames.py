"""Tables in memory: pandas and polars data frames, Arrow tables, and whatever else speaks Arrow's C interface."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from dotadd.batch import Batch, DenseRows
from dotadd.errors import DataError
from dotadd.sources.base import Chunk, Source
from dotadd.sources.layout import Layout, choose
from dotadd.sources.memory import MemorySource
from dotadd.sources.sound import with_distinct
from dotadd.sources.table import chunk_of, labels_of, layout_of, names_of
from dotadd.sources.values import float_type

if TYPE_CHECKING:
    import pyarrow as pa


def is_table(x: Any) -> bool:
    """Whether x is a data frame, a series, or an Arrow table, batch or array."""
    return is_pandas(x) or hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")


def is_pandas(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "pandas"


def from_table(x: Any, names: dict[str, Any], on_bad_row: str) -> MemorySource:
    """The source over a table; `names` are the columns asked for: column, label and weight, and what they are like.
    What has no names of text, as a series, is read as it stands."""
    pandas = is_pandas(x)
    named = x.ndim == 2 and all(isinstance(name, str) for name in x.columns) if pandas else hasattr(x, "columns")
    names = names if named else names | {"like": None}
    source = Source(on_bad_row=on_bad_row)  # notes columns and bad rows while the table is read
    content = _from_pandas(source, x, names) if pandas else _from_arrow(source, _arrow_table(x), names)
    layout = source.layout if named else None
    return MemorySource(content, on_bad_row=on_bad_row, columns=source.columns, layout=layout, skipped=source.skipped)


def _arrow_table(x: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(x, pa.RecordBatch):
        return pa.Table.from_batches([x])
    if isinstance(x, pa.Array | pa.ChunkedArray):
        return pa.table({"x": x})
    if hasattr(x, "__arrow_c_stream__") and not hasattr(x, "columns"):  # a series
        return pa.table({"x": pa.chunked_array(x)})
    return x if isinstance(x, pa.Table) else pa.table(x)


def _from_arrow(source: Source, table: pa.Table, names: dict[str, Any]) -> Chunk:
    layout = layout_of(table.schema, path=None, **names)
    source.columns, source.layout = names_of(table.schema, layout)
    batches = table.select(layout.columns).combine_chunks().to_batches()
    chunks = [with_distinct(chunk_of(source, batch, layout)) for batch in batches]
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        raise DataError("the table has no examples")

    def joined(name: str) -> np.ndarray | None:
        return None if getattr(chunks[0], name) is None else np.concatenate([getattr(c, name) for c in chunks])

    batch: Batch = type(chunks[0].batch).concat(chunk.batch for chunk in chunks)
    return dataclasses.replace(chunks[0], batch=batch, y=joined("y"), weight=joined("weight"))


def _from_pandas(source: Source, frame: Any, names: dict[str, Any]) -> Chunk:
    """Numbers as pandas keeps them, without a copy where that is one array; text through Arrow."""
    import pyarrow as pa

    frame = frame.to_frame() if frame.ndim == 1 else frame
    columns = [str(name) for name in frame.columns]
    if len(set(columns)) < len(columns):
        raise DataError("two columns of the data frame have the same name")
    frame = frame.set_axis(columns, axis=1)
    types = dict(zip(columns, (_numpy_type(dtype) for dtype in frame.dtypes), strict=True))
    numeric = [name for name, dtype in types.items() if dtype is not None]
    layout = choose(columns, numeric, [name for name in columns if name not in numeric], path=None, **names)
    if not layout.dense:
        return _from_arrow(source, pa.Table.from_pandas(frame[layout.columns], preserve_index=False), names)
    source.columns, source.layout = layout.features, layout
    features = frame if layout.features == columns else frame[layout.features]
    dtype = np.result_type(*[float_type(types[name]) for name in layout.features])  # type: ignore[arg-type]
    nullable = any(not isinstance(kind, np.dtype) for kind in features.dtypes)
    values = features.to_numpy(dtype, na_value=np.nan) if nullable else features.to_numpy(dtype)
    return _with_beside(source, Chunk(DenseRows(values), None, None, 0), frame, layout)


def _with_beside(source: Source, chunk: Chunk, frame: Any, layout: Layout) -> Chunk:
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


def _numpy_type(dtype: Any) -> np.dtype | None:
    """The NumPy type of a numeric pandas column, None for any other."""
    kind = getattr(dtype, "numpy_dtype", dtype)
    return kind if isinstance(kind, np.dtype) and kind.kind in "biuf" else None
