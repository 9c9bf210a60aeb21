"""Pools: rows that come and go are found again at their places, whatever their kind, within a budget of bytes."""

import numpy as np
import pytest

from dotadd.automata import Automaton
from dotadd.data.batches import DenseRows, Images, SparseRows, Strings
from dotadd.data.lattices import Lattices
from dotadd.data.pool import LOOSE, FixedPool, PackedPool, Pool
from dotadd.data.table import Cells, Table

KINDS = ["dense", "images", "windows", "strings", "sparse", "binary", "lattices", "tables"]

NAMES = ("letters", "ends", "indices", "values", "arc_offsets", "labels", "targets", "weights", "finals")


def rows(kind, n, seed):
    rng = np.random.default_rng(seed)
    if kind == "dense":
        return DenseRows(rng.normal(size=(n, 5)).astype(np.float32))
    if kind == "images":
        return Images(rng.integers(0, 255, (n, 3, 4)).astype(np.uint8))
    if kind == "windows":
        return Strings(rng.choice(np.frombuffer(b"ACGT", np.uint8), n * 7), width=7)
    if kind == "tables":
        words = ["w" * int(k) for k in rng.integers(0, 6, n)]
        letters = Strings(np.frombuffer("".join(words).encode(), np.uint8), np.cumsum([0, *map(len, words)]))
        return Table.from_columns({"a": Cells(rng.normal(size=n)), "b": Cells(strings=letters)})
    if kind == "lattices":
        return Lattices.from_automata([lattice(rng) for _ in range(n)])
    lengths = rng.integers(0, 9, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if kind == "strings":
        return Strings(rng.integers(65, 90, offsets[-1]).astype(np.uint8), offsets)
    indices = rng.integers(0, 50, offsets[-1]).astype(np.int32)
    values = None if kind == "binary" else rng.normal(size=offsets[-1]).astype(np.float32)
    return SparseRows(offsets, indices, values, 50, distinct=False)


def lattice(rng):
    arcs = [(q, t, rng.integers(1, 9), rng.uniform()) for q in range(5) for t in range(q + 1, 5) if rng.uniform() < 0.5]
    return Automaton.from_arcs(arcs, {0: rng.uniform(), 4: 1.0})


def contents(batch):
    """Each row as bytes."""
    found = []
    for r in range(len(batch)):
        one = batch.slice(r, r + 1).take(np.array([0]))
        arrays = [a for a in (getattr(one, n, None) for n in NAMES) if a is not None]
        found.append(b"|".join(a.tobytes() for a in arrays))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_come_and_go_are_found_at_their_places(kind):
    rng = np.random.default_rng(1)
    pool = Pool.like(rows(kind, 1, 0), 100_000, 8)
    here: dict[int, bytes] = {}
    for turn in range(30):
        batch = rows(kind, int(rng.integers(0, 12)), turn)
        assert pool.takes(batch)
        assert pool.has_room(batch)
        places = pool.put(batch)
        assert not set(places.tolist()) & here.keys()
        here |= dict(zip(places.tolist(), contents(batch), strict=True))
        gone = rng.permutation(sorted(here))[: len(here) // 3]
        pool.free(gone)
        for place in gone.tolist():
            del here[place]
        if turn % 4 == 3:
            stay = np.array(sorted(here), np.int64)
            if pool.squeeze(stay):
                here = dict(enumerate(here[place] for place in stay.tolist()))
                assert pool.loose == 0.0
        found = contents(pool.batch)
        assert all(found[place] == content for place, content in here.items())


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_bytes_are_used_than_allowed(kind):
    limit, beside = 4000, 16
    pool = Pool.like(rows(kind, 1, 0), limit, beside)
    used = 0
    for turn in range(200):
        batch = rows(kind, 3, turn)
        if not pool.has_room(batch):
            break
        pool.put(batch)
        used += int(batch.row_bytes().sum()) + beside * len(batch)
        assert pool.nbytes == used
    assert 0.8 * limit < used <= limit


@pytest.mark.parametrize("kind", ["dense", "windows"])
def test_rows_of_one_width_use_places_again(kind):
    pool = Pool.like(rows(kind, 1, 0), 10_000, 8)
    assert isinstance(pool, FixedPool)
    places = pool.put(rows(kind, 20, 1))
    pool.free(places[3:9])
    assert sorted(pool.put(rows(kind, 6, 2)).tolist()) == sorted(places[3:9].tolist())
    assert len(pool) == 20
    assert pool.loose == 0.0


@pytest.mark.parametrize("kind", ["strings", "sparse", "lattices"])
def test_lost_bytes_are_counted_and_come_back_by_squeezing(kind):
    pool = Pool.like(rows(kind, 1, 0), 100_000, 8)
    assert isinstance(pool, PackedPool)
    batch = rows(kind, 40, 1)
    places = pool.put(batch)
    before = pool.nbytes
    pool.free(places[::2])
    lengths = batch.row_bytes() + 8  # what lies beside a row goes with it
    share = lengths[::2].sum() / lengths.sum()
    assert pool.loose == pytest.approx(share)
    assert pool.loose > LOOSE
    assert pool.squeeze(places[1::2])
    assert pool.nbytes == before - int(batch.row_bytes()[::2].sum()) - 8 * len(places[::2])
    assert contents(pool.batch) == contents(batch)[1::2]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_layout_can_be_made_again(kind):
    pool = Pool.like(rows(kind, 1, 0), 100_000, 8)
    places = pool.put(rows(kind, 30, 1))
    pool.free(places[5:11])
    pool.put(rows(kind, 4, 2))
    stay = np.setdiff1d(np.arange(len(pool)), places[5:11]) if not isinstance(pool, FixedPool) else None
    if stay is None:
        spare = pool.layout(np.arange(0))["spare"]
        stay = np.setdiff1d(np.arange(len(pool)), spare)
    there = pool.layout(stay)["places"]
    again = Pool.again(pool.layout(stay), type(pool.batch), 100_000, 8)
    assert again.takes(pool.batch)
    batch = pool.batch.take(stay)
    order = np.random.default_rng(3).permutation(len(stay))
    for some in np.array_split(order, 3):
        again.write(there[some], batch.take(some))
    assert [contents(again.batch)[place] for place in there.tolist()] == contents(batch)
    assert (again.nbytes, again.loose) == (pool.nbytes, pool.loose)
    if isinstance(pool, FixedPool):
        more = rows(kind, 5, 9)
        assert again.put(more).tolist() == pool.put(more).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_layout_that_takes_more_than_allowed_is_not_made_again(kind):
    pool = Pool.like(rows(kind, 1, 0), 100_000, 8)
    places = pool.put(rows(kind, 30, 1))
    layout, kind = pool.layout(places), type(pool.batch)
    assert Pool.again(layout, kind, pool.nbytes, 8) is not None
    assert Pool.again(layout, kind, pool.nbytes - 1, 8) is None


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_taken_as_rows_come(kind):
    pool = Pool.like(rows(kind, 1, 0), 1 << 40, 8)
    for turn in range(20):
        pool.put(rows(kind, 10, turn))
        assert pool.room <= 4 * pool.nbytes + 200
    small = Pool.like(rows(kind, 1, 0), 4000, 8)
    while small.has_room(batch := rows(kind, 3, 5)):
        small.put(batch)
        assert small.room <= (2 if kind in ("lattices", "tables") else 1) * 4000 + 8  # states and arcs share the bytes


@pytest.mark.parametrize("kind", ["strings", "sparse", "lattices"])
def test_places_of_empty_rows_come_back_by_squeezing(kind):
    empty = rows(kind, 9, 1).slice(0, 0)
    pool = Pool.like(empty, 100_000, 8)
    if kind == "lattices":
        none = Lattices.from_automata([Automaton.from_arcs([], {0: 1.0})] * 6)
    elif kind == "strings":
        none = Strings(np.zeros(0, np.uint8), np.zeros(7, np.int64))
    else:
        none = SparseRows(np.zeros(7, np.int64), empty.indices, empty.values, 50)
    places = pool.put(none)
    pool.free(places[1:])
    assert pool.loose > LOOSE
    assert pool.squeeze(places[:1])
    assert len(pool) == 1


def test_other_kinds_of_rows_are_not_taken():
    assert not Pool.like(rows("dense", 1, 0), 1000, 8).takes(DenseRows(np.zeros((1, 6), np.float32)))
    assert not Pool.like(rows("dense", 1, 0), 1000, 8).takes(DenseRows(np.zeros((1, 5))))
    assert not Pool.like(rows("windows", 1, 0), 1000, 8).takes(rows("strings", 1, 0))
    assert not Pool.like(rows("binary", 1, 0), 1000, 8).takes(rows("sparse", 1, 0))
