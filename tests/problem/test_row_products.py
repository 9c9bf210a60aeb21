"""The Gram matrix of rows is that of the matrix of phi's features."""

import numpy as np
import pytest
from problems import noisy, problem

from dotadd import BagOfWords, NGrams, Spectrum
from dotadd._util.memory import Budget
from dotadd.data.batches import SparseRows, Strings
from dotadd.features.base import Shape
from dotadd.features.linear import Linear
from dotadd.problem import row_products as module
from dotadd.problem.examples import InMemory
from dotadd.problem.row_products import row_products

RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(["a", "bb", "cc", "dd", "e f"], RNG.integers(0, 12))) for _ in range(50)]
DNA = ["".join(RNG.choice(list("ACGT"), 30)) for _ in range(50)]


def naive(phi, batch, rows):
    matrix = phi.transform(batch).toarray().astype(np.float64)[rows]
    return matrix @ matrix.T


@pytest.mark.parametrize(
    ("phi", "lines"),
    [
        (BagOfWords(bits=12), TEXTS),
        (NGrams((1, 3), bits=14).normalized(), TEXTS),
        (0.5 * BagOfWords(bits=4) + NGrams(2, bits=8), TEXTS),
        (Spectrum(3), DNA),
    ],
    ids=repr,
)
@pytest.mark.parametrize("room", [None, 10**7])
@pytest.mark.parametrize("far", [1, 1 << 24])  # slots numbered anew, or not
def test_products_are_those_of_the_rows(monkeypatch, phi, lines, room, far):
    monkeypatch.setattr(module, "FAR", far)
    batch = Strings.from_list(lines)
    phi = phi.resolve(Shape.of(batch))
    examples = InMemory(phi, batch, budget=None if room is None else Budget(room))
    rows = np.random.default_rng(1).permutation(50)[:33].astype(np.uint32)
    for _ in range(2):
        np.testing.assert_allclose(row_products(examples, rows), naive(phi, batch, rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dense", [False, True])
def test_products_of_vectors(dense):
    X, y = noisy(n=40)
    rows = np.arange(3, 30, dtype=np.uint32)
    examples = problem(X, y, dense=dense).examples
    np.testing.assert_allclose(row_products(examples, rows), X[rows] @ X[rows].T, rtol=1e-12, atol=1e-12)


def test_values_that_are_all_one():
    indices = np.array([0, 2, 4, 2, 3, 0, 2], np.int32)
    batch = SparseRows(np.array([0, 3, 5, 7]), indices, None, 5)
    examples = InMemory(Linear().resolve(Shape.of(batch)), batch)
    assert row_products(examples, np.arange(3, dtype=np.uint32)).tolist() == [[3, 1, 2], [1, 2, 1], [2, 1, 2]]
