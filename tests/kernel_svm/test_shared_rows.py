"""Kernel values that pairs share are those of the Gram, whatever happens to fit, and each is made once where all do."""

import numpy as np
import pytest
from kernel_problems import MatrixGram, rbf

from dotadd.kernel_svm import shared_rows
from dotadd.kernel_svm.shared_rows import PairGram, SharedRows, WholeGram

CLASSES = [(0, 23), (23, 57), (57, 70)]


def gram(n=70, seed=0):
    return MatrixGram(rbf(np.random.default_rng(seed).normal(size=(n, 4)), 0.3))


def nothing():
    """Nobody interrupts."""


@pytest.mark.parametrize("room", [0, 1, 5, 34])
def test_sums_and_blocks_are_those_of_the_gram_whatever_fits(room):
    K, rng = gram(), np.random.default_rng(room)
    rows = SharedRows(K, CLASSES[1], CLASSES[2], 4 * 13 * room)
    assert rows.values.nbytes <= 4 * 13 * room
    part = K.matrix[23:57, 57:70]
    for _ in range(30):
        some, columns = rng.permutation(34)[: rng.integers(1, 12)], rng.permutation(13)[: rng.integers(1, 13)]
        factors, out = rng.normal(size=len(some)), np.zeros(len(columns))
        rows.add(some, factors, columns, out)
        np.testing.assert_allclose(out, factors @ part[np.ix_(some, columns)], atol=1e-6)
        values = np.empty((len(some), len(columns)), np.float32)
        rows.block(some, columns, values)
        np.testing.assert_allclose(values, part[np.ix_(some, columns)], atol=1e-7)


def test_a_row_that_is_kept_is_not_made_again_and_the_one_used_longest_ago_leaves():
    K = gram()
    rows, everyone = SharedRows(K, CLASSES[0], CLASSES[1], 4 * 34 * 3), np.arange(34)

    def made(*some):
        before = len(K.blocks)
        rows.add(np.array(some), np.ones(len(some)), everyone, np.zeros(34))
        return sum(shape[0] for shape in K.blocks[before:])

    assert made(1, 2, 3) == 3
    assert made(2, 3) == 0
    assert made(7) == 1, "in the place of 1"
    assert made(2, 3, 7) == 0
    assert made(1) == 1


@pytest.mark.parametrize("strip", [1, 10**6])
def test_a_block_within_a_class_is_made_by_halves_and_is_symmetric(strip, monkeypatch):
    monkeypatch.setattr(shared_rows, "STRIP", strip)
    monkeypatch.setattr(shared_rows, "FEWEST", 5)
    K = gram()
    rows = SharedRows(K, CLASSES[1], CLASSES[1], 4 * 34**2)
    rows.make_whole(nothing)
    np.testing.assert_allclose(rows.values, K.matrix[23:57, 23:57], atol=1e-7)
    made = sum(a * b for a, b in K.blocks)
    assert made <= (34 * 39 / 2 if strip == 1 else 34**2)
    K.blocks.clear()
    rows.add(np.arange(34), np.ones(34), np.arange(34), np.zeros(34))
    assert K.blocks == []


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("whole", [False, True])
def test_the_gram_of_a_pair_is_that_of_its_examples(pair, whole, monkeypatch):
    monkeypatch.setattr(shared_rows, "FEWEST", 7)
    monkeypatch.setattr(shared_rows, "STRIP", 7)
    K, rng = gram(), np.random.default_rng(3)
    within = tuple(SharedRows(K, CLASSES[k], CLASSES[k], 4 * 34 * (34 if whole else 4)) for k in pair)
    numbers = np.concatenate([np.arange(*CLASSES[k]) for k in pair])
    K_pair, m = K.matrix[np.ix_(numbers, numbers)], len(numbers)
    if whole:
        for one in within:
            one.make_whole(nothing)
        mine = WholeGram.of_pair(within, np.empty(70**2, np.float32), nothing)
        np.testing.assert_allclose(mine.whole, K_pair, atol=1e-7)
    else:
        mine = PairGram(within, 4 * 34 * 6)
    assert mine.shape == (m, m)
    np.testing.assert_allclose(mine.diagonal(), np.diag(K_pair))
    for _ in range(10):
        some, columns = rng.permutation(m)[: rng.integers(1, m)], rng.permutation(m)[: rng.integers(1, m)]
        factors = rng.normal(size=len(some))
        np.testing.assert_allclose(mine.block(some, columns), K_pair[np.ix_(some, columns)], atol=1e-7)
        np.testing.assert_allclose(
            mine.times(some, factors, columns), factors @ K_pair[np.ix_(some, columns)], atol=1e-5
        )
        np.testing.assert_allclose(mine.times(some, factors), factors @ K_pair[some], atol=1e-5)
        np.testing.assert_allclose(mine.block(some), K_pair[some], atol=1e-7)


def test_sums_that_rounded_values_would_spoil_are_left_to_a_gram_that_knows_better():
    K = gram()
    K.doubles = True
    whole = WholeGram.of(K, nothing)
    whole.whole[:] = np.nan
    some, large = np.arange(40), np.full(40, 1e6)
    np.testing.assert_array_equal(whole.times(some, large), K.times(some, large))
    assert np.isnan(whole.times(some, large / 1e9)).all(), "small ones come from the matrix"
