"""Tables as batches: cells come back as they were put in, however rows are taken, joined, pooled and written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotadd.data.batches import Strings
from dotadd.data.pool import Pool
from dotadd.data.table import TOGETHER, Cells, Table, table_from_arrow
from dotadd.errors import DataError

rows = st.lists(st.tuples(st.text(max_size=6), st.floats(allow_infinity=False), st.text(max_size=3)), max_size=12)


def table(cells):
    texts, numbers, words = ([row[k] for row in cells] for k in range(3))
    return Table.from_columns(
        {
            "text": Cells(strings=Strings.from_list(texts)),
            "number": Cells(numbers=np.array(numbers, np.float64)),
            "both": Cells(np.array([float(len(word)) for word in words]), Strings.from_list(words)),
        }
    )


def cells_of(batch):
    """The rows in plain Python."""
    texts, words = batch.strings("text"), batch.strings("both")
    numbers = batch.numbers("number")
    assert np.array_equal(batch.numbers("both"), [len(words[r].decode()) for r in range(len(batch))])
    return [(texts[r].decode(), float(numbers[r]), words[r].decode()) for r in range(len(batch))]


def same(found, expected):
    assert [(a, c) for a, _, c in found] == [(a, c) for a, _, c in expected]
    assert np.array_equal([b for _, b, _ in found], [b for _, b, _ in expected], equal_nan=True)


@settings(deadline=None)
@given(rows, st.data())
def test_rows_are_taken_sliced_and_joined(cells, data):
    batch = table(cells)
    same(cells_of(batch), cells)
    chosen = data.draw(st.lists(st.integers(0, len(cells) - 1))) if cells else []
    same(cells_of(batch.take(np.array(chosen, np.int64))), [cells[k] for k in chosen])
    first = data.draw(st.integers(0, len(cells)))
    halves = batch.slice(0, first), batch.slice(first, len(cells))
    same(cells_of(halves[1]), cells[first:])
    same(cells_of(Table.concat(halves)), cells)
    column = halves[1].strings("text")
    assert [column[r].decode() for r in range(len(column))] == [row[0] for row in cells[first:]]
    assert column.lengths().tolist() == [len(row[0].encode()) for row in cells[first:]]
    assert column.together().letters.tobytes() == "".join(row[0] for row in cells[first:]).encode()
    assert len(column.slice(0, len(column))) == len(column)


def test_many_rows_are_written_as_a_few_are():
    """Stretch by stretch, of which the last one is cut short."""
    cells = [(f"row {k}", k / 7.0, "x" * (k % 5)) for k in range(2 * TOGETHER + 3)]
    batch = table(cells)
    same(cells_of(batch), cells)
    some = batch.take(np.array([TOGETHER, 3, 3, 2 * TOGETHER + 2])).strings("both")
    assert some.lengths().tolist() == [len(some[row]) for row in range(4)]
    assert Table.from_columns({"none": Cells(np.empty(0))}).strings("none").lengths().tolist() == []


@settings(deadline=None)
@given(rows)
def test_what_goes_through_arrow_comes_back(cells):
    batch = table([("before", 0.5, ""), *cells]).slice(1, len(cells) + 1)
    same(cells_of(table_from_arrow(batch.to_arrow(), batch.names)), cells)


def test_rows_come_and_go_in_a_pool():
    cells = [(f"text {k}", float(k), "x" * k) for k in range(6)]
    batch = table(cells)
    pool = Pool.like(batch, 1 << 20, 8)
    places = pool.put(batch)
    pool.free(places[::2])
    pool.squeeze(places[1::2])
    same(cells_of(pool.batch.take(np.arange(3))), cells[1::2])
    again = Pool.again(pool.layout(np.arange(3)), Table, 1 << 20, 8)
    again.write(np.arange(3), pool.batch.take(np.arange(3)))
    same(cells_of(again.batch), cells[1::2])


def test_damaged_cells_are_refused():
    batch = table([("a", 1.0, "b"), ("c", 2.0, "d")])
    with pytest.raises(ValueError, match="do not have 2 cells"):
        table_from_arrow(batch.to_arrow(), ["text", "number"])
    with pytest.raises(DataError, match="no column 'age'"):
        batch.strings("age")
