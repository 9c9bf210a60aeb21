"""Rows that are kept: the same rows with equal indices merged, within the budget, and for those that are wanted."""

import threading

import numpy as np
import pytest

from dotadd._util.memory import Budget
from dotadd.core import kept as module
from dotadd.core.block import Block
from dotadd.core.kept import KeptRows

DIM = 50


def block_of(rows, dtype=np.float32):
    """Rows of (index, value) pairs as a block."""
    block = Block.scratch(np.array([len(row) for row in rows], np.int64), DIM, dtype=dtype)
    for r, row in enumerate(rows):
        block.append(r, np.array([i for i, _ in row], np.uint32), np.array([v for _, v in row], dtype))
    return block


def random_rows(count, seed=0, longest=30):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest, count)
    return [[(int(rng.integers(DIM)), float(rng.integers(1, 9))) for _ in range(length)] for length in lengths]


def merged(row):
    """Naive: each index once, where it was first, with the sum of its values."""
    sums = {}
    for index, value in row:
        sums[index] = sums.get(index, 0.0) + value
    return sums


def kept_row(kept, r):
    lo, hi = kept.block.start[r], kept.block.end[r]
    return list(zip(kept.block.indices[lo:hi].tolist(), kept.block.values[lo:hi].tolist(), strict=True))


def nonzeros(rows):
    return sum(len(row) for row in rows)


def test_equal_indices_are_merged_where_the_first_of_them_was():
    rows = random_rows(40)
    kept = KeptRows(40, nonzeros(rows), DIM, np.float32, Budget(1 << 20))
    order = np.random.default_rng(1).permutation(40).astype(np.uint32)
    for some in np.array_split(order, 7):
        assert kept.put(some, block_of([rows[r] for r in some])) == len(some)
    assert kept.complete
    for r, row in enumerate(rows):
        assert kept_row(kept, r) == list(merged(row).items())
    assert kept.nbytes == 8 * sum(len(merged(row)) for row in rows)


@pytest.mark.parametrize("dim", [50, 64, 4095, 1 << 20])
def test_rows_with_more_non_zeros_than_slots_are_merged_like_others(dim):
    rng = np.random.default_rng(dim)
    rows = [[(int(index), 1.0) for index in rng.integers(0, dim, length)] for length in (70_000, 3, 900, 66_000)]
    rows.append([(dim - 1, 2.0), (0, 1.0), (dim - 1, 3.0)])
    kept = KeptRows(5, nonzeros(rows), dim, np.float32, Budget(1 << 24))
    assert kept.put(np.arange(5, dtype=np.uint32), block_of(rows)) == 5
    for r, row in enumerate(rows):
        found = kept_row(kept, r)  # long rows are laid out in two parts
        assert dict(found) == merged(row)
        assert len(found) == len(merged(row))


def test_what_merging_has_saved_goes_back_to_the_budget_once_all_rows_are_there():
    rows = random_rows(40)
    budget = Budget(1 << 20)
    kept = KeptRows(40, nonzeros(rows), DIM, np.float32, budget)
    assert budget.left == budget.total - 8 * nonzeros(rows)
    kept.put(np.arange(40, dtype=np.uint32), block_of(rows))
    assert kept.nbytes < 8 * nonzeros(rows)
    assert budget.left == budget.total - kept.nbytes


def test_rows_beyond_the_budget_are_turned_away():
    rows = random_rows(40)
    budget = Budget(8 * nonzeros(rows) // 2)
    kept = KeptRows(40, nonzeros(rows), DIM, np.float32, budget)
    taken = [kept.put(np.array([r], np.uint32), block_of([rows[r]])) for r in range(40)]
    assert any(taken)
    assert not all(taken)
    assert not kept.complete
    assert kept.nbytes <= budget.total - budget.left <= budget.total
    assert [bool(here) for here in kept.here] == taken


def test_rows_that_are_wanted_get_the_room_of_those_that_are_not():
    rows = [row or [(0, 1.0)] for row in random_rows(60)]
    kept = KeptRows(60, nonzeros(rows), DIM, np.float32, Budget(8 * nonzeros(rows) // 3))
    for r in range(60):
        kept.put(np.array([r], np.uint32), block_of([rows[r]]))
    assert not kept.complete
    wanted = np.arange(52, 60, dtype=np.uint32)
    kept.make_room(wanted)
    assert not kept.here[:52].any()
    for r in wanted:
        assert kept.put(np.array([r], np.uint32), block_of([rows[r]]))
    for r in wanted:
        assert kept_row(kept, r) == list(merged(rows[r]).items())


def test_rows_that_stay_are_as_they_were_when_others_leave():
    rows = [row or [(0, 1.0)] for row in random_rows(60)]
    kept = KeptRows(60, nonzeros(rows), DIM, np.float32, Budget(8 * nonzeros(rows) // 2))
    for r in np.random.default_rng(2).permutation(60):
        kept.put(np.array([r], np.uint32), block_of([rows[r]]))
    stay = np.flatnonzero(kept.here)[::3]
    wanted = np.concatenate([stay, np.flatnonzero(~kept.here)[:3]]).astype(np.uint32)
    before = kept.nbytes
    kept.make_room(wanted)
    assert kept.nbytes < before
    assert np.flatnonzero(kept.here).tolist() == stay.tolist()
    for r in stay:
        assert kept_row(kept, r) == list(merged(rows[r]).items())


def test_nothing_moves_while_there_is_room():
    rows = [row or [(0, 1.0)] for row in random_rows(20)]
    kept = KeptRows(20, nonzeros(rows), DIM, np.float32, Budget(1 << 20))
    kept.put(np.arange(10, dtype=np.uint32), block_of(rows[:10]))
    kept.make_room(np.arange(15, 20, dtype=np.uint32))
    assert kept.here[:10].all()


@pytest.mark.parametrize("total", [0, 100, 10**6])
def test_a_budget_never_grants_more_than_it_has(total):
    budget = Budget(total)
    granted = []

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            wanted = int(rng.integers(1, 5000))
            granted.append(budget.take(wanted))
            assert budget.left >= 0

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == total - budget.left
    budget.release(sum(granted))
    assert budget.left == total


def test_where_nothing_can_be_reserved_nothing_is_kept(monkeypatch):
    real = np.empty

    def refuse(shape, *rest):
        if np.size(shape) == 1 and shape > 10**6:
            raise MemoryError
        return real(shape, *rest)

    budget = Budget(1 << 30)
    with monkeypatch.context() as patch:  # no longer, since what is compiled meanwhile would find it, too
        patch.setattr(np, "empty", refuse)
        kept = KeptRows(3, 2 * 10**6, DIM, np.float32, budget)
    assert not kept.whole
    assert budget.left == budget.total
    assert kept.put(np.arange(3, dtype=np.uint32), block_of([[(1, 1.0)]] * 3)) == 0
    assert not kept.here.any()


@pytest.mark.parametrize("room", [2.0, 0.4])
def test_long_rows_are_laid_out_in_two_parts_by_the_pages_of_their_slots(room, monkeypatch):
    monkeypatch.setattr(module, "LONG_ROWS", 1)
    rng = np.random.default_rng(3)
    dim = (16 << 10) + 77
    rows = [[(int(i), float(rng.integers(1, 9))) for i in rng.integers(0, dim, n)] for n in rng.integers(0, 60, 50)]
    rows[7] = [*rows[7], (5, 1.0), (2000, 2.0), (5, 3.0)]
    kept = KeptRows(50, nonzeros(rows), dim, np.float32, Budget(int(8 * room * nonzeros(rows))))
    for some in np.array_split(rng.permutation(50).astype(np.uint32), 9):
        kept.make_room(some)
        kept.put(some, block_of([rows[r] for r in some]))
    assert 0 < kept.count <= 50
    for r in np.flatnonzero(kept.here):
        row, first = kept_row(kept, r), kept.block.mid[r] - kept.block.start[r]
        assert dict(row) == merged(rows[r])
        assert [(index >> 10) % 2 for index, _ in row] == [0] * first + [1] * (len(row) - first)


@pytest.mark.parametrize("seed", range(5))
def test_renumbered_rows_have_no_empty_slots_and_the_same_products(seed):
    rows = [[(7 * i % DIM, v) for i, v in row if i % 3 == 0] for row in random_rows(40, seed, longest=6)]
    budget = Budget(1 << 20)
    kept = KeptRows(len(rows), 1000, DIM, np.float32, budget)
    kept.put(np.arange(len(rows), dtype=np.uint32), block_of(rows))
    met, left = sorted({i for row in rows for i, _ in row}), budget.left
    other, count = kept.renumbered(DIM)
    assert count == len(met)
    w = np.random.default_rng(seed).normal(size=DIM)
    np.testing.assert_array_equal(other.block.dot(w[met]), kept.block.dot(w))
    assert [kept_row(kept, r) for r in range(len(rows))] == [list(merged(row).items()) for row in rows]  # as before
    other.let_go()
    assert budget.left == left


def test_rows_that_have_most_slots_or_no_room_are_not_renumbered():
    rows = [[(i, 1.0)] for i in range(DIM)]
    kept = KeptRows(DIM, DIM, DIM, np.float32, Budget(1 << 20))
    kept.put(np.arange(DIM, dtype=np.uint32), block_of(rows))
    assert kept.renumbered(DIM) is None
    full = KeptRows(DIM, DIM, DIM, np.float32, Budget(8 * DIM + 8 * DIM // 2))
    full.put(np.arange(DIM, dtype=np.uint32), block_of([[(3, 1.0)]] * DIM))
    assert full.complete
    full._budget.take(full._budget.left - 4 * DIM + 1)
    assert full.renumbered(DIM) is None
