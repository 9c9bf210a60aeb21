"""Packed rows: what is unpacked is what was packed, to the bit, in a fraction of the bytes."""

import numpy as np
import pytest

from dotadd.core.block import Block, every_row
from dotadd.problem.examples import InMemory
from dotadd.problem.packed import MOST, Packed, pack


def block_of(rows, dtype, dim):
    """A block of rows given as pairs of indices and values."""
    ends = np.cumsum([len(indices) for indices, _ in rows]).astype(np.int64)
    indices = np.concatenate([some for some, _ in rows]).astype(np.uint32 if dim <= 2**32 else np.uint64)
    values = np.concatenate([some for _, some in rows]).astype(dtype)
    return Block(np.append(0, ends[:-1]), ends, indices, values, distinct=True)


def random_rows(dim, seed=0):
    """Rows of few values and of many, in no order of their indices; the first has none, and one the last slot."""
    rng = np.random.default_rng(seed)
    made = [(np.empty(0, np.int64), np.empty(0)), (np.array([dim - 1]), np.array([0.5]))]
    for count, different in [(1, 1), (40, 3), (40, MOST), (60, MOST + 1), (60, 60), (300, 7)]:
        indices = np.unique(rng.integers(0, dim, count))
        rng.shuffle(indices)
        values = rng.normal(size=different)
        made.append((indices, values[np.arange(len(indices)) % different]))
    return made


@pytest.mark.parametrize("dim", [300, 1 << 20, 1 << 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_unpacked_is_what_was_packed(dtype, dim):
    rows = random_rows(dim)
    packed = pack(block_of(rows, dtype, dim), every_row(len(rows)))
    order = np.random.default_rng(1).permutation(np.append(np.arange(len(rows)), 5))
    seen = []
    for block, at, some in InMemory(Packed(dim, dtype), packed, dtype=dtype).blocks(order):
        for place, row in zip(at, some, strict=True):
            indices, values = rows[row]
            inside, by_index = slice(block.start[place], block.end[place]), np.argsort(indices)
            np.testing.assert_array_equal(block.indices[inside], indices[by_index])
            np.testing.assert_array_equal(block.values[inside], values[by_index].astype(dtype))
            seen.append(row)
    assert seen == order.tolist()


def test_counts_of_words_take_less_than_half_of_their_bytes():
    rng, dim = np.random.default_rng(0), 1 << 20
    rows = [(rng.choice(dim, 130, replace=False), 0.1 * rng.integers(1, 6, 130)) for _ in range(50)]
    block = block_of(rows, np.float32, dim)
    assert pack(block, every_row(50)).nbytes < 0.45 * (block.indices.nbytes + block.values.nbytes)
