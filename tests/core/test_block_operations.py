"""DOT, ADD and squared lengths of blocks against plain matrices, for every layout a block may have."""

import naive
import numpy as np
import pytest

from dotadd.core import block as blocks
from dotadd.core.block import Block

DIM = 40


def sparse_block(index_dtype, value_dtype, *, distinct):
    rng = np.random.default_rng(3)
    lengths = np.array([0, 1, 7, 20, 0, 33])
    end = np.cumsum(lengths)
    pick = [rng.choice(DIM, n, replace=not distinct) for n in lengths]
    values = None if value_dtype is None else rng.integers(-9, 10, end[-1]).astype(value_dtype)
    return Block(end - lengths, end, np.concatenate(pick).astype(index_dtype), values, distinct=distinct)


def dense_block(value_dtype):
    values = np.random.default_rng(4).integers(0, 9, 5 * DIM).astype(value_dtype)
    offsets = np.arange(6) * DIM
    return Block(offsets[:-1], offsets[1:], None, values, distinct=True)


BLOCKS = {
    "32-bit, float32, repeated": sparse_block(np.uint32, np.float32, distinct=False),
    "32-bit, float64": sparse_block(np.uint32, np.float64, distinct=True),
    "64-bit, float32": sparse_block(np.uint64, np.float32, distinct=True),
    "binary": sparse_block(np.uint32, None, distinct=True),
    "binary, repeated": sparse_block(np.uint32, None, distinct=False),
    "dense float32": dense_block(np.float32),
    "dense bytes": dense_block(np.uint8),
}


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dot_add_and_norms_agree_with_the_matrix(name, dtype):
    block = BLOCKS[name]
    matrix = naive.matrix(block, DIM)
    w = np.random.default_rng(5).normal(size=DIM).astype(dtype)
    np.testing.assert_allclose(block.dot(w), matrix @ w.astype(np.float64), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(block.squared_norms(), (matrix**2).sum(axis=1), rtol=1e-12)
    coefficients = np.array([0.5, -1.0, 2.0, 0.0, 1.0, -0.25])[: len(block)]
    expected = w + coefficients @ matrix
    block.add(coefficients, w)
    np.testing.assert_allclose(w, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_product_is_dot_and_then_add_with_some_scales(name):
    block = BLOCKS[name]
    matrix, rng = naive.matrix(block, DIM), np.random.default_rng(6)
    v, w = rng.normal(size=DIM).astype(np.float32), rng.normal(size=DIM)
    scales = np.array([0.5, -1.0, 2.0, 0.0, 1.0, -0.25])[: len(block)]
    expected = w + matrix.T @ (scales * (matrix @ v))
    block.dot_add(scales, v, w)
    np.testing.assert_allclose(w, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", BLOCKS)
def test_products_of_features_are_those_of_the_matrix(name):
    block, width = BLOCKS[name], DIM + 1
    matrix, every = naive.matrix(block, width), blocks.every_row(len(block))
    scales = np.array([0.5, -1.0, 2.0, 0.0, 1.0, -0.25])[: len(block)]
    out = np.zeros(width * width)
    blocks.add_products(block.start, block.end, block.indices, block.values, every, scales, width, out)
    out = out.reshape(width, width)
    np.testing.assert_allclose(out + out.T, matrix.T @ (scales[:, None] * matrix), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("binary", [False, True])
def test_a_w_beyond_the_cache_makes_no_difference(binary):
    rng, dim = np.random.default_rng(7), blocks.FAR // 4 + 1
    lengths = rng.integers(0, 40, 30)
    end = np.cumsum(lengths)
    indices = rng.integers(0, dim, end[-1]).astype(np.uint32)
    values = None if binary else rng.normal(size=end[-1]).astype(np.float32)
    block = Block(end - lengths, end, indices, values)
    used, places = np.unique(indices, return_inverse=True)
    matrix = naive.matrix(Block(end - lengths, end, places.astype(np.uint32), values), len(used))
    v, scales = rng.normal(size=dim).astype(np.float32), rng.normal(size=30) * (rng.random(30) < 0.8)
    output = matrix @ v[used]
    np.testing.assert_allclose(block.dot(v), output, rtol=1e-6, atol=1e-6)
    for product in (False, True):
        w = np.zeros(dim)
        if product:
            block.dot_add(scales, v, w)
        else:
            block.add(scales, w)
        expected = np.zeros(dim)
        expected[used] = matrix.T @ (scales * output if product else scales)
        np.testing.assert_allclose(w, expected, rtol=1e-6, atol=1e-6)


def test_accumulation_is_in_float64():
    n = 1 << 20
    block = Block(np.array([0]), np.array([n]), None, np.full(n, 0.1, np.float32), distinct=True)
    expected = n * float(np.float32(0.1))
    assert block.dot(np.ones(n, np.float32))[0] == pytest.approx(expected, rel=1e-12)


def test_a_view_copies_nothing_and_accepts_read_only_memory():
    offsets, indices, values = np.array([0, 2, 3]), np.array([1, 4, 0], np.int32), np.array([1.0, 2.0, 3.0])
    for array in (offsets, indices, values):
        array.flags.writeable = False
    block = blocks.view(offsets, indices, values, distinct=True)
    assert np.shares_memory(block.indices, indices)
    assert np.shares_memory(block.values, values)
    np.testing.assert_array_equal(block.dot(np.arange(5.0)), [9.0, 0.0])


def test_a_placed_block_shifts_indices_and_scales_values():
    block = Block.scratch(np.array([3, 3]), 100)
    block.append(0, np.array([1]), 2.0)
    block.placed(10, 0.5).append(0, np.array([1, 2]), np.array([4.0, 6.0]))
    expected = np.zeros((2, 100))
    expected[0, [1, 11, 12]] = [2.0, 2.0, 3.0]
    np.testing.assert_array_equal(naive.matrix(block, 100), expected)


def test_a_scratch_for_a_space_beyond_32_bits_has_64_bit_indices():
    assert Block.scratch(np.array([1]), 2**32).indices.dtype == np.uint32
    assert Block.scratch(np.array([1]), 2**32 + 1).indices.dtype == np.uint64


def lopsided_block(short, long):
    """Many short rows, in which indices repeat, and one long row among them."""
    rng = np.random.default_rng(5)
    lengths = np.r_[rng.integers(0, 6, short // 2), long, rng.integers(0, 6, short // 2)]
    end = np.cumsum(lengths)
    indices = rng.integers(0, 4, end[-1])
    first = int(end[short // 2] - long)
    indices[first : first + long] = rng.integers(0, long, long)
    return Block(end - lengths, end, indices.astype(np.uint32), rng.integers(-9, 10, end[-1]).astype(np.float32))


def test_squared_lengths_of_short_rows_beside_a_long_one_are_those_of_the_definition():
    block = lopsided_block(200, 5000)
    wanted = [
        sum(np.bincount(block.indices[lo:hi], block.values[lo:hi]) ** 2) if hi > lo else 0.0
        for lo, hi in zip(block.start.tolist(), block.end.tolist(), strict=True)
    ]
    np.testing.assert_allclose(block.squared_norms(), wanted)


@pytest.mark.parametrize("lengths", [(4096, 4095, 4000), (70_000, 300, 100_000)])
@pytest.mark.parametrize("slots", [5, 1 << 20])
def test_squared_lengths_are_those_of_the_definition_however_long_rows_are(lengths, slots):
    rng = np.random.default_rng(0)
    end = np.cumsum(lengths)
    indices = rng.integers(0, slots, end[-1]).astype(np.uint32)
    block = Block(end - lengths, end, indices, rng.integers(-9, 10, end[-1]).astype(np.float32))
    rows = [slice(lo, hi) for lo, hi in zip(block.start.tolist(), block.end.tolist(), strict=True)]
    wanted = [(np.bincount(indices[row], block.values[row]) ** 2).sum() for row in rows]
    np.testing.assert_allclose(block.squared_norms(), wanted)


def test_a_long_row_is_paid_for_once():
    """2 million places cleared for each of 100,000 rows would take minutes."""
    block = lopsided_block(100_000, 1_000_000)
    norms = block.squared_norms()
    alone = Block(block.start[:50_000], block.end[:50_000], block.indices, block.values)
    np.testing.assert_array_equal(norms[:50_000], alone.squared_norms())
