"""Cholesky decompositions by the addresses of LAPACK's routines."""

import numpy as np
import pytest

from dotadd._util.lapack import cholesky


@pytest.mark.parametrize("n", [1, 2, 33, 300])
def test_what_it_solves_is_what_NumPy_solves(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    b, place = rng.normal(size=n), A.copy()
    solve, given = cholesky(place), b.copy()
    np.testing.assert_allclose(solve(b), np.linalg.solve(A, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(solve(A[0]), np.eye(n)[0], atol=1e-8)
    assert b.tolist() == given.tolist(), "the right side stays as it was"


def test_a_matrix_that_is_not_positive_definite_is_told():
    assert cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert cholesky(-np.eye(3)) is None
