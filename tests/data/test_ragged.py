"""The ragged core: rows of every kind against plain lists of their items."""

from __future__ import annotations

import numpy as np
import pytest
from test_pool import KINDS, contents, rows

from dotadd.data.batches import SparseRows, Strings
from dotadd.data.lattices import Lattices
from dotadd.data.pool import Pool
from dotadd.data.ragged import joined


@pytest.mark.parametrize("kind", KINDS)
def test_rows_taken_from_slices_are_those_of_the_whole(kind):
    batch = rows(kind, 20, 3)
    whole = contents(batch)
    order = np.random.default_rng(0).integers(0, 11, 30)
    assert contents(batch.slice(4, 15)) == whole[4:15]
    assert contents(batch.slice(4, 15).take(order)) == [whole[4 + row] for row in order]
    assert contents(batch.slice(4, 15).slice(3, 3)) == []
    assert contents(batch.take(np.empty(0, np.int64))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_joined_pieces_in_any_order_are_the_rows_in_that_order(kind):
    batch = rows(kind, 20, 3)
    pieces = [(4, 15), (0, 0), (19, 20), (0, 7), (4, 5)]
    wanted = [row for first, stop in pieces for row in contents(batch)[first:stop]]
    found = joined(batch.slice(first, stop) for first, stop in pieces)
    assert type(found) is type(batch)
    assert contents(found) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_rows_are_those_of_their_arrays(kind):
    batch = rows(kind, 20, 3)
    for row, nbytes in enumerate(batch.row_bytes().tolist()):
        offsets, arrays, _ = batch.take(np.array([row])).parts()
        places = sum(deeper.nbytes - deeper.itemsize for deeper in offsets[1:])  # of items, and not of the row
        assert nbytes == sum(array.nbytes for array in arrays) + places
    assert batch.slice(2, 9).row_bytes().tolist() == batch.row_bytes()[2:9].tolist()


@pytest.mark.parametrize("kind", ["strings", "sparse", "lattices"])
def test_offsets_are_int64_whatever_came(kind):
    batch = rows(kind, 9, 1)
    offsets, arrays, _ = batch.parts()
    for dtype in (np.int32, np.uint64, ">i8"):
        again = batch.made([one.astype(dtype) for one in offsets], arrays)
        assert all(one.dtype == np.int64 and one.dtype.isnative for one in again.parts().offsets)
        assert contents(again) == contents(batch)
    assert all(
        mine is theirs for mine, theirs in zip(batch.made(offsets, arrays).parts().offsets, offsets, strict=True)
    )


def test_a_joined_batch_does_not_hold_what_it_was_made_of():
    parent = Strings(np.zeros(1 << 20, np.uint8), np.arange(0, 1 << 20, 1 << 10))
    found = joined([parent.slice(0, 1), parent.slice(1, 2)])
    assert found.nbytes < 1 << 12
    assert found.letters.base is None or found.letters.base.nbytes < 1 << 12


def test_lattices_keep_the_words_that_one_of_them_knows():
    batch = rows("lattices", 4, 1)
    known = Lattices(*batch.parts().offsets, *batch.parts().arrays, words={"a": 1})
    assert known.take(np.array([0])).words == known.slice(0, 1).words == {"a": 1}
    assert joined([batch, known]).words == joined([known, batch]).words == {"a": 1}


def test_a_pool_takes_rows_of_the_same_kind_that_say_less():
    """Binary rows where values are kept, and rows of one width where they may differ."""
    sparse, strings = Pool.like(rows("sparse", 1, 0), 9000, 8), Pool.like(rows("strings", 1, 0), 9000, 8)
    for pool, more in ((sparse, rows("binary", 5, 1)), (strings, rows("windows", 5, 1))):
        assert pool.takes(more)
        assert pool.has_room(more)
        places = pool.put(more)
        wanted = SparseRows.concat([rows("sparse", 1, 0).slice(0, 0), more]) if pool is sparse else more.with_offsets()
        assert contents(pool.batch.take(places)) == contents(wanted)
