"""Table: rows whose cells have names. A cell has a number, or letters, or both.

The cells of a row lie one after the other, so that a row comes and goes as one of any other kind does, and the features
of all of its cells are made while it is in the cache. A map of one column reads it as `Strings` or as numbers; nothing
is copied for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np

from dotadd._jit import kernel, plain
from dotadd.data.batches import Strings, arrow_of, numpy_of
from dotadd.data.lattices import Lattices, unpacked
from dotadd.data.ragged import Parts, Ragged, as_offsets
from dotadd.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from dotadd.automata.automaton import Automaton
    from dotadd.automata.symbols import HashedSymbols, SymbolTable

TOGETHER = 1 << 11  # rows that are written together


class Cells(NamedTuple):
    """The column of a table: a number for each row (NaN where it is missing), letters for each row, or both."""

    numbers: np.ndarray | None = None
    strings: Strings | None = None

    def __len__(self) -> int:
        given = self.numbers if self.strings is None else self.strings
        return 0 if given is None else len(given)


class Table(Ragged):
    """Row r has the cells offsets[r] to offsets[r + 1], as many as there are names. Cell c has the number values[c],
    which is NaN where it has none, and the letters ends[c] to ends[c + 1], which may be those of a packed lattice.
    `words` are what labels of lattices are called, as far as somebody knows."""

    kind = "tables"

    def __init__(
        self,
        names: Sequence[str],
        offsets: np.ndarray,
        ends: np.ndarray,
        values: np.ndarray,
        letters: np.ndarray,
        *,
        words: HashedSymbols | None = None,
    ) -> None:
        self.names = tuple(names)
        self.offsets, self.ends = as_offsets(offsets), as_offsets(ends)
        self.values, self.letters, self.words = values, letters, words

    @classmethod
    def from_columns(cls, columns: Mapping[str, Cells], words: HashedSymbols | None = None) -> Table:
        """From columns of one length."""
        rows, width = max(map(len, columns.values()), default=0), len(columns)
        values, ends = np.empty((rows, width)), np.zeros(rows * width + 1, np.int64)
        several = [np.nan if cells.numbers is None else cells.numbers for cells in columns.values()]
        for first in range(0, rows, TOGETHER):  # column by column, each line of the cache would come and go for each
            for k, numbers in enumerate(several):
                part = slice(first, first + TOGETHER)
                values[part, k] = numbers[part] if isinstance(numbers, np.ndarray) else numbers
        for k, cells in enumerate(columns.values()):
            if cells.strings is not None:
                ends[k + 1 :: width] = cells.strings.lengths()
        np.cumsum(ends, out=ends)
        letters = np.empty(ends[-1], np.uint8)
        for k, cells in enumerate(columns.values()):
            if cells.strings is not None:
                starts, _ = cells.strings.bounds(np.arange(rows))
                _copy_cells(plain(cells.strings.letters), starts, ends, k, width, letters)
        return cls(
            tuple(columns), np.arange(rows + 1, dtype=np.int64) * width, ends, values.reshape(-1), letters, words=words
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_features(self) -> int:
        """Columns; how many features they have depends on the map."""
        return len(self.names)

    def parts(self) -> Parts:
        return Parts((self.offsets, self.ends), (self.values, self.letters), (1, 2))

    @classmethod
    def of(cls, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        return cls((), *offsets, *arrays)

    def made(self, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        return type(self)(self.names, *offsets, *arrays, words=self.words)

    def alike(self, other: Self) -> tuple[Self, Self]:
        if self.words is not other.words and self.words is not None:
            for name in other.words or ():
                self.words.add(name)
        if not self.names and other.names:  # room for rows that are to come
            return other.made(*self.parts()[:2]), other
        return self, other

    def places(self, names: Sequence[str]) -> np.ndarray:
        """Which cell of a row each of these columns is."""
        return places_of(tuple(names), self.names)

    def strings(self, name: str) -> ColumnStrings:
        """The letters of a column."""
        return ColumnStrings(self, int(self.places([name])[0]))

    def lattices(self, name: str) -> ColumnLattices:
        """The lattices of a column."""
        return ColumnLattices(self.strings(name), self.words)

    def numbers(self, name: str) -> np.ndarray:
        """The numbers of a column."""
        return self.values[self.offsets[:-1] + self.places([name])[0]]

    def longest_and_shortest(self) -> tuple[np.ndarray, np.ndarray]:
        """Letters of the longest and the shortest cell of each column."""
        width = len(self.names)
        if not len(self):
            return np.zeros(width, np.int64), np.zeros(width, np.int64)
        lengths = np.diff(self.ends[int(self.offsets[0]) : int(self.offsets[-1]) + 1]).reshape(-1, width)
        return lengths.max(axis=0), lengths.min(axis=0)

    def without_numbers(self) -> set[str]:
        """The columns in which no row has a number, where there are rows. Often the first rows tell."""
        left, rows = np.arange(len(self.names)), self.offsets[:-1]
        for first in range(0, len(self), TOGETHER):
            if len(left):
                places = rows[first : first + TOGETHER, None] + left
                left = left[np.isnan(self.values[places]).all(axis=0)]
        return {self.names[k] for k in left.tolist()} if len(self) else set()

    def to_arrow(self) -> pa.Array:
        """A list of cells for each row; names go with the schema of a file."""
        import pyarrow as pa

        cells = slice(int(self.offsets[0]), int(self.offsets[-1]))
        ends = self.ends[cells.start : cells.stop + 1]
        letters = slice(int(ends[0]), int(ends[-1]))
        buffers = [None, pa.py_buffer(np.ascontiguousarray(ends - ends[0])), pa.py_buffer(self.letters[letters])]
        text = pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)
        items = pa.StructArray.from_arrays([arrow_of(self.values[cells]), text], ["number", "text"])
        return pa.LargeListArray.from_arrays(arrow_of(self.offsets - self.offsets[0]), items)


@lru_cache(256)
def places_of(names: tuple[str, ...], known: tuple[str, ...]) -> np.ndarray:
    """Where some names are among all of them. Kernels ask for each block of rows, so it is looked up once."""
    missing = [name for name in names if name not in known]
    if missing:
        listed = ", ".join(map(repr, known))
        raise DataError(f"there is no column {missing[0]!r} among those that were read: {listed}")
    return np.array([known.index(name) for name in names], np.int64)


class ColumnStrings(Strings):
    """The letters of one column of a table where they are, among those of the others."""

    def __init__(self, table: Table, place: int) -> None:
        super().__init__(table.letters, np.zeros(1, np.int64))
        self._table, self._place = table, place

    def __len__(self) -> int:
        return len(self._table)

    def bounds(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cells = self._table.offsets[:-1][rows] + self._place
        return self._table.ends[cells], self._table.ends[cells + 1]

    def lengths(self) -> np.ndarray:
        table, place, width = self._table, self._place, len(self._table.names)
        first, stop = int(table.offsets[0]), int(table.offsets[-1])
        if stop - first != len(self) * width:  # not row after row
            starts, ends = self.bounds(np.arange(len(self)))
            return ends - starts
        return table.ends[first + place + 1 : stop + 1 : width] - table.ends[first + place : stop : width]

    def together(self) -> Strings:
        return self.take(np.arange(len(self)))

    def take(self, rows: np.ndarray) -> Self:
        starts, ends = self.bounds(rows)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        letters = np.empty(offsets[-1], np.uint8)
        _copy_cells(plain(self.letters), starts, offsets, 0, 1, letters)
        return cast("Self", Strings(letters, offsets))  # no table is left around them

    def slice(self, first: int, stop: int) -> Self:
        return type(self)(self._table.slice(first, stop), self._place)

    def parts(self) -> Parts:
        return self.together().parts()

    def with_offsets(self) -> Self:
        return self.take(np.arange(len(self)))


class ColumnLattices(Lattices):
    """The lattices that are packed in the cells of one column; those that are taken are unpacked."""

    def __init__(self, cells: Strings, words: SymbolTable | None) -> None:
        self._cells, self.words = cells, words

    def __len__(self) -> int:
        return len(self._cells)

    def take(self, rows: np.ndarray) -> Self:
        return cast("Self", unpacked(self._cells.take(rows), self.words))

    def slice(self, first: int, stop: int) -> Self:
        return type(self)(self._cells.slice(first, stop), self.words)

    def parts(self) -> Parts:
        return self.take(np.arange(len(self))).parts()

    def automaton(self, row: int, symbols: SymbolTable | None = None) -> Automaton:
        return self.take(np.array([row])).automaton(0, symbols)


CELLS = b"dotadd.cells"  # metadata of a field that holds the rows of a table: the names of its columns, in JSON


def is_cells(kind: pa.DataType) -> bool:
    """Whether a column of this type holds the rows of a table."""
    import pyarrow as pa

    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not lists or not pa.types.is_struct(kind.value_type):
        return False
    return [field.name for field in kind.value_type] == ["number", "text"]


def table_from_arrow(array: pa.Array, names: Sequence[str]) -> Table:
    """The batch over an Arrow array's memory; the inverse of `to_arrow`. What stands there is checked."""
    import pyarrow as pa

    items = array.values
    numbers, text = items.field("number"), items.field("text")
    if any(part.null_count for part in (array, items, numbers, text)):
        raise ValueError("its cells are damaged: values are missing")
    if not pa.types.is_float64(numbers.type) or not pa.types.is_large_binary(text.type):
        raise ValueError(f"cannot read a column of {array.type} as the cells of a table")
    offsets = numpy_of(array.offsets)
    if (np.diff(offsets) != len(names)).any():
        raise ValueError(f"its rows do not have {len(names)} cells")
    first, count = text.offset, len(text)
    ends = np.frombuffer(text.buffers()[1], np.int64)[first : first + count + 1]
    letters = text.buffers()[2]
    letters = np.empty(0, np.uint8) if letters is None else np.frombuffer(letters, np.uint8)
    if len(ends) and ((np.diff(ends) < 0).any() or ends[0] < 0 or ends[-1] > len(letters)):
        raise ValueError("its cells are damaged: their letters lead beyond the file")
    return Table(names, offsets, ends, numpy_of(numbers), letters)


@kernel
def _copy_cells(source, starts, ends, k, width, out):
    """Write the letters that begin at starts[r] to cell k of row r, of `width` cells each."""
    for r in range(len(starts)):
        cell = np.uint64(r * width + k)
        p = np.uint64(starts[r])
        for q in range(np.uint64(ends[cell]), np.uint64(ends[cell + np.uint64(1)])):
            out[q] = source[p]
            p += np.uint64(1)
