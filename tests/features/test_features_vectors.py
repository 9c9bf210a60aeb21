"""Linear, Polynomial and Hashed over sparse and dense rows."""

from __future__ import annotations

import itertools

import naive_features as naive
import numpy as np
import pytest

from dotadd.data.batches import DenseRows, Images, SparseRows
from dotadd.errors import FeatureError
from dotadd.features import Hashed, Linear, Polynomial, Shape, Spectrum
from dotadd.features.base import require_room
from dotadd.features.checks import check_feature_map, materialize


def dense(rows: int = 6, columns: int = 7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.6)
    z[0] = 0
    return z


def sparse(z: np.ndarray, *, shuffled: bool = False) -> SparseRows:
    """The same vectors as sparse rows; shuffled, they are out of order and each value is split in two."""
    indices = [np.flatnonzero(row).astype(np.int32) for row in z]
    values = [row[at] for row, at in zip(z, indices, strict=True)]
    if shuffled:
        rng = np.random.default_rng(1)
        orders = [rng.permutation(2 * len(at)) for at in indices]
        values = [np.r_[0.25 * v, 0.75 * v][o] for v, o in zip(values, orders, strict=True)]
        indices = [np.r_[at, at][o] for at, o in zip(indices, orders, strict=True)]
    offsets = np.cumsum([0, *(len(at) for at in indices)])
    return SparseRows(offsets, np.concatenate(indices), np.concatenate(values), z.shape[1], distinct=not shuffled)


def batches(z: np.ndarray) -> list:
    return [DenseRows(z), sparse(z), sparse(z, shuffled=True), Images(z.reshape(len(z), 1, -1))]


def gram(matrix) -> np.ndarray:
    return naive.gram(naive.rows_of(matrix))


def test_linear_is_the_vector():
    z = dense()
    for batch in batches(z):
        assert np.allclose(materialize(Linear(), batch).toarray(), z)


def test_linear_takes_binary_rows_and_narrow_types():
    rows = SparseRows(np.array([0, 2, 2, 3]), np.array([0, 2, 1]), None, 3)
    assert materialize(Linear(), rows).toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    z = dense().astype(np.float32)
    assert np.array_equal(materialize(Linear(), DenseRows(z)).toarray(), z.astype(np.float64))


def test_linear_view_copies_nothing():
    z = dense()
    rows = sparse(z)
    view = Linear().view(rows)
    assert np.shares_memory(view.indices, rows.indices)
    assert np.shares_memory(view.values, rows.values)
    assert np.shares_memory(Linear().view(DenseRows(z)).values, z)


def test_linear_refuses_rows_wider_than_the_model():
    bad = Linear(n_features=5).check(DenseRows(dense()))
    assert bad.message == "rows have 7 features, and the model was made for 5"
    assert Linear(n_features=8).check(DenseRows(dense())) is None


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("coef0", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("degree", [2, 3])
def test_polynomial_inner_products_are_the_kernel(degree, coef0, hashed):
    z = dense()
    phi = Polynomial(degree, coef0=coef0)
    phi = phi.hashed(30) if hashed else phi
    for batch in batches(z):
        assert np.allclose(gram(materialize(phi, batch)), (z @ z.T + coef0) ** degree)


@pytest.mark.parametrize("coef0", [0.0, 2.0])
@pytest.mark.parametrize("degree", [2, 3])
def test_polynomial_equals_its_twin(degree, coef0):
    z = dense()
    matrix = materialize(Polynomial(degree, coef0=coef0), sparse(z))
    coordinates = range(0 if coef0 else 1, z.shape[1] + 1)
    # the combinatorial number system: sets in the order of their largest element, then the next, ...
    order = sorted(itertools.combinations_with_replacement(coordinates, degree), key=lambda u: u[::-1])
    for row, vector in enumerate(z):
        twin = naive.polynomial(vector, degree, coef0)
        assert np.allclose(matrix[[row]].toarray().ravel(), [twin.get(u, 0.0) for u in order])


@pytest.mark.parametrize(("degree", "n"), [(2, 1), (2, 9), (3, 1), (3, 9)])
def test_polynomial_dimension_counts_the_monomials(degree, n):
    shape = Shape("dense rows", n_features=n)
    assert Polynomial(degree).resolve(shape).dim == naive.monomials(n, degree)
    assert Polynomial(degree, coef0=1.0).resolve(shape).dim == naive.monomials(n + 1, degree)


def test_polynomial_of_binary_rows_takes_every_value_for_one():
    rows = SparseRows(np.array([0, 2, 3]), np.array([0, 2, 2]), None, 3)
    z = np.array([[1.0, 0, 1], [0, 0, 1]])
    assert np.allclose(gram(materialize(Polynomial(2), rows)), (z @ z.T) ** 2)


def test_polynomial_too_large_for_memory_is_refused_with_advice():
    shape = Shape("sparse rows", n_features=2_000_000)
    with pytest.raises(FeatureError, match=r"use \.hashed\(bits\)"):
        require_room(Polynomial(2).resolve(shape))
    assert Polynomial(3).hashed(20).resolve(shape).dim == 2**20


def test_hashed_adds_up_what_shares_a_slot():
    """The hashed map is the map times a 0/1 matrix with a single 1 in each row."""
    z = dense(columns=40)
    fold = materialize(Hashed(4), sparse(np.eye(40)))
    assert (np.diff(fold.indptr) == 1).all()
    assert len(np.unique(fold.indices)) > 8
    for batch in batches(z):
        assert np.allclose(materialize(Hashed(4), batch).toarray(), z @ fold.toarray())


def test_hashing_without_collisions_changes_no_inner_product():
    z = dense(columns=40)
    assert np.allclose(gram(materialize(Linear().hashed(30), sparse(z))), z @ z.T)


def test_hash_spreads_indices_as_evenly_as_chance():
    n = 2**14
    rows = SparseRows(np.array([0, n]), np.arange(n) * 64, None, 64 * n)
    used = materialize(Hashed(14), rows).nnz / n
    assert used == pytest.approx(1 - np.exp(-1), abs=0.02)


def test_hashed_vectors_may_have_columns_never_seen_before():
    phi = Hashed(6).resolve(Shape("dense rows", n_features=3))
    assert phi.check(DenseRows(dense(columns=9))) is None


def test_hashing_a_space_beyond_32_bits_keeps_all_of_the_index():
    """Rows that differ only in the high bits of their indices must not meet in one slot."""
    far = np.array([5, 5 + 2**32, 5 + 2**33], np.int64)
    rows = SparseRows(np.arange(4), far, None, 2**34)
    phi = (2 * Linear()).hashed(20).resolve(Shape.of(rows))  # scaled, so that there is no view to read from
    assert len(set(materialize(phi, rows).indices.tolist())) == 3


@pytest.mark.parametrize(
    "phi",
    [Linear(), Hashed(3), Polynomial(2), Polynomial(3, coef0=1.0), Polynomial(3).hashed(5), Polynomial(2).hashed(9)],
)
def test_vector_maps_keep_the_contract(phi):
    for batch in batches(dense()):  # few combinations of types, since each is compiled
        check_feature_map(phi, batch)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(4), "degree has to be a whole number from 2 to 3"),
        (lambda: Polynomial(2, coef0=-1), "coef0 has to be a number that is not negative"),
        (lambda: Polynomial(2, coef0="1"), "coef0 has to be a number"),
        (lambda: Polynomial(2).dim, "does not know the number of columns"),
        (lambda: Linear().dim, "does not know the number of columns"),
        (lambda: Linear(n_features=-1), "n_features has to be"),
        (lambda: Hashed(0), "bits has to be"),
        (lambda: check_feature_map(Spectrum(2), DenseRows(np.ones((2, 2)))), "reads strings, and the data is dense"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FeatureError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
