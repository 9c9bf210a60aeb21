"""Kernels: their values, in any blocks and of any kind of rows, are those of their definitions."""

from __future__ import annotations

import naive_features
import naive_kernels as naive
import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from dotadd.data.batches import DenseRows, Images, SparseRows, Strings
from dotadd.errors import DataError, DotaddError
from dotadd.features import Linear, NGrams, Polynomial, Spectrum, WeightedDegree
from dotadd.features.base import Shape
from dotadd.kernel_svm import (
    RBF,
    FeatureKernel,
    FunctionKernel,
    LinearKernel,
    PolynomialKernel,
    Precomputed,
    Sigmoid,
    degree_products,
    named,
    parse,
    sparse_products,
)
from dotadd.kernel_svm import gram as feature_gram
from dotadd.kernel_svm import gram as grams

RNG = np.random.default_rng(7)
STRINGS = ["ACGTACGT", "AACCGGTT", "TTTTTTTT", "GATTACAG", "ACGTTCGT", "CCCCGGGG", "ACGTACGA"]


def sparse_matrix(rows: int, columns: int = 40, density: float = 0.2) -> csr_matrix:
    matrix = csr_matrix(random_array((rows, columns), density=density, rng=RNG, format="csr"))
    matrix.data += 0.1
    lil = matrix.tolil()
    lil[min(3, rows - 1)] = 0  # an empty row
    return csr_matrix(lil)


def sparse(matrix: csr_matrix, **how) -> SparseRows:
    return SparseRows(matrix.indptr.astype(np.int64), matrix.indices, matrix.data, matrix.shape[1], **how)


A, B = sparse_matrix(70), sparse_matrix(45)
DENSE, SPARSE = (lambda x: DenseRows(x.toarray())), sparse
VECTOR_KERNELS = {
    "linear": (LinearKernel(), pairwise.linear_kernel, naive.linear, {}),
    "poly": (
        PolynomialKernel(3, 0.5, 0.25), pairwise.polynomial_kernel, naive.polynomial,
        {"degree": 3, "gamma": 0.5, "coef0": 0.25},
    ),
    "rbf": (RBF(0.3), pairwise.rbf_kernel, naive.rbf, {"gamma": 0.3}),
    "rbf in float64": (RBF(30.0), pairwise.rbf_kernel, naive.rbf, {"gamma": 30.0}),
    "sigmoid": (Sigmoid(0.4, -0.7), pairwise.sigmoid_kernel, naive.sigmoid, {"gamma": 0.4, "coef0": -0.7}),
}  # fmt: skip
vector_kernels = pytest.mark.parametrize("name", VECTOR_KERNELS)


def all_rows(gram) -> np.ndarray:
    return gram.block(np.arange(gram.shape[0]))


def assert_is(gram, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    """Blocks, sums and the diagonal of a gram are those of a matrix."""
    rows, columns = expected.shape
    scale = max(1.0, np.abs(expected).max())
    assert gram.shape == expected.shape
    whole = all_rows(gram)
    assert whole.dtype == np.float32
    assert whole.flags.c_contiguous
    np.testing.assert_allclose(whole, expected, atol=tolerance * scale, rtol=0)

    some, others = RNG.integers(0, rows, 19), RNG.integers(0, columns, 23)  # any order, some of them twice
    np.testing.assert_allclose(gram.block(some, others), expected[np.ix_(some, others)], atol=tolerance * scale, rtol=0)
    assert gram.block(some[:0]).shape == (0, columns)
    assert gram.block(some, others[:0]).shape == (19, 0)

    coefficients = RNG.standard_normal(19)
    reach = 19 * tolerance * scale
    np.testing.assert_allclose(gram.times(some, coefficients), coefficients @ expected[some], atol=reach)
    np.testing.assert_allclose(
        gram.times(some, coefficients, others), coefficients @ expected[np.ix_(some, others)], atol=reach
    )
    assert gram.times(some, coefficients).dtype == np.float64
    assert not gram.times(some[:0], coefficients[:0]).any()
    if rows == columns:
        np.testing.assert_allclose(gram.diagonal(), np.diag(expected), atol=tolerance * scale)
        assert gram.diagonal().dtype == np.float64


@vector_kernels
@pytest.mark.parametrize(("left", "right"), [(DENSE, DENSE), (SPARSE, SPARSE), (SPARSE, DENSE), (DENSE, SPARSE)])
def test_values_are_those_of_the_definition_and_of_scikit_learn(name, left, right):
    kernel, peer, twin, parameters = VECTOR_KERNELS[name]
    expected = peer(A.toarray(), B.toarray(), **parameters)
    np.testing.assert_allclose(naive.gram(twin, A.toarray(), B.toarray(), **parameters), expected, atol=1e-12)
    assert_is(kernel.gram(left(A), right(B), threads=2), expected)
    assert_is(kernel.gram(left(A), threads=2), peer(A.toarray(), **parameters))


@vector_kernels
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
def test_columns_that_are_alike_in_all_rows_are_left_out_and_count_where_other_rows_differ(name, dtype):
    kernel, peer, _, parameters = VECTOR_KERNELS[name]
    left, right = RNG.integers(0, 4, (33, 30)), RNG.integers(0, 4, (40, 30))
    left[:, 3:15], left[:, 20] = 0, 3
    X, Y = left.astype(dtype), right.astype(dtype)
    assert_is(kernel.gram(DenseRows(X)), peer(left, **parameters))
    gram = kernel.gram(DenseRows(X), DenseRows(Y))
    assert_is(gram, peer(left, right, **parameters))
    if name == "rbf":
        assert gram.products.a.shape[1] == 17
    assert_is(kernel.gram(DenseRows(Y), DenseRows(X)), peer(right, left, **parameters))
    nothing = np.zeros_like(X)
    assert_is(kernel.gram(DenseRows(nothing), DenseRows(Y)), peer(np.zeros(left.shape), right, **parameters))


@vector_kernels
def test_types_of_numbers_do_not_matter(name):
    kernel, peer, _, parameters = VECTOR_KERNELS[name]
    whole = RNG.integers(0, 3, (33, 30)).astype(np.uint8)
    expected = peer(whole.astype(np.float64), **parameters)
    compressed = csr_matrix(whole)
    batches = [DenseRows(whole.astype(dtype)) for dtype in (np.uint8, np.float32, np.float64, np.int64)]
    batches += [sparse(compressed.astype(np.float32))]
    for batch in batches:
        gram = kernel.gram(batch)
        np.testing.assert_allclose(all_rows(gram), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(gram.diagonal(), np.diag(expected), rtol=1e-5)
    assert_is(kernel.gram(Images(whole.reshape(33, 5, 6))), expected)


@vector_kernels
def test_binary_rows_and_repeated_indices(name):
    kernel, peer, _, parameters = VECTOR_KERNELS[name]
    offsets, indices = np.array([0, 3, 3, 6, 8]), np.array([1, 4, 1, 0, 1, 4, 4, 4], np.int32)
    matrix = csr_matrix((np.ones(8), indices, offsets), (4, 5)).toarray()  # repeated indices are added up
    assert_is(kernel.gram(SparseRows(offsets, indices, None, 5, distinct=False)), peer(matrix, **parameters))


@vector_kernels
def test_tiles_do_not_matter(name, monkeypatch):
    kernel, peer, _, parameters = VECTOR_KERNELS[name]
    monkeypatch.setattr(grams, "TILE", 100)
    monkeypatch.setattr(grams, "ROWS", 7)
    monkeypatch.setattr(sparse_products, "SCRATCH", 40)
    wide = sparse_matrix(600)  # the narrowest tile has 256 columns
    for make in (DENSE, SPARSE):
        assert_is(kernel.gram(make(A), make(wide), threads=2), peer(A.toarray(), wide.toarray(), **parameters))


def test_wide_spaces_are_hashed():
    """More slots than a table has, with the same values."""
    spread = A.tocoo()
    columns = spread.coords[1].astype(np.int64) * (2**34 + 12345)
    order = np.lexsort((columns, spread.coords[0]))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(spread.coords[0], minlength=A.shape[0]))])
    rows = SparseRows(offsets, columns[order], spread.data[order], 2**40)
    for kernel, peer, _, parameters in VECTOR_KERNELS.values():
        gram = kernel.gram(rows)
        np.testing.assert_allclose(all_rows(gram), peer(A.toarray(), **parameters), atol=1e-5)
        some, coefficients = np.array([3, 60, 3]), np.array([1.0, -2.0, 0.5])
        expected = coefficients @ peer(A.toarray(), **parameters)[some]
        np.testing.assert_allclose(gram.times(some, coefficients), expected, atol=1e-5)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("gamma", [0.01, 3.0])  # products in float32, and in float64
@pytest.mark.parametrize("most", [0, 3, 8192])
def test_features_of_any_frequency(most, gamma, wide, monkeypatch):
    """Some that all rows have, some that most have, many that one row has; some twice in a row."""
    monkeypatch.setattr(sparse_products, "COLUMNS", most)
    monkeypatch.setattr(sparse_products, "SLOTS", 4 if wide else 1 << 20)
    monkeypatch.setattr(sparse_products, "SCRATCH", 2000)
    rng = np.random.default_rng(most)
    share = 1.0 / np.arange(1, 301)
    x = rng.normal(size=(150, 300)) * (rng.random((150, 300)) < share)
    whole = csr_matrix(x)
    twice = SparseRows(
        np.concatenate([[0], np.cumsum(2 * np.diff(whole.indptr))]).astype(np.int64),
        np.repeat(whole.indices, 2).astype(np.uint32),
        np.repeat(whole.data / 2, 2),
        300,
        distinct=False,
    )
    for rows, columns in (
        (sparse(whole), None),
        (twice, None),
        (sparse(whole[:70]), twice),
        (twice, sparse(whole[:9])),
    ):
        a = x[: len(rows)]
        b = a if columns is None else x[: len(columns)]
        np.testing.assert_allclose(all_rows(LinearKernel().gram(rows, columns)), a @ b.T, atol=2e-5)
        np.testing.assert_allclose(
            all_rows(RBF(gamma).gram(rows, columns)), pairwise.rbf_kernel(a, b, gamma), atol=2e-6
        )
        gram, some = RBF(gamma).gram(rows, columns, threads=3), rng.permutation(len(b))[:40]
        expected = pairwise.rbf_kernel(a, b, gamma)[np.ix_([5, 2], some)]
        np.testing.assert_allclose(gram.block(np.array([5, 2]), some), expected, atol=2e-6)


@pytest.mark.parametrize("offset", [0.0, 1000.0, -1e6])
@pytest.mark.parametrize("gamma", [0.05, 5.0])
def test_rbf_does_not_mind_where_the_data_lies(offset, gamma):
    """The data is rounded once, to where it lies; nothing else may get lost."""
    x = RNG.standard_normal((90, 12)) + offset
    x = np.vstack([x, x[:10]])
    expected = pairwise.rbf_kernel(x - offset, gamma=gamma)
    for gram in (RBF(gamma).gram(DenseRows(x)), RBF(gamma).gram(DenseRows(x[:50]), DenseRows(x))):
        np.testing.assert_allclose(all_rows(gram), expected[: gram.shape[0]], atol=1e-5)
    compressed = csr_matrix(x)
    near = 1e-5 if abs(offset) < 1e4 else 0.05  # sparse rows are not moved: float64 subtracts 1e13 from 1e13
    np.testing.assert_allclose(all_rows(RBF(gamma).gram(sparse(compressed))), expected, atol=near)


@pytest.mark.parametrize("width", [3, 784])
def test_rbf_of_equal_rows_is_one(width):
    x = RNG.random((15, width)) * 3 + 5
    same = np.vstack([x, x])
    for gamma in ("scale", 0.5 / width, 20.0):
        for batch in (DenseRows(same), DenseRows(same.astype(np.float32)), sparse(csr_matrix(same))):
            gram = RBF(gamma).resolve(batch).gram(batch)
            block = all_rows(gram)
            assert np.abs(np.diag(block) - 1).max() < 1e-6
            assert np.abs(np.diag(block, 15) - 1).max() < 1e-6
            assert block.max() <= 1
            one = np.array([7])
            assert abs(gram.times(one, np.ones(1), one + 15)[0] - 1) < 1e-6


def test_rbf_over_its_whole_range():
    """From 1 down to what float32 calls nothing: the exponential is right to 1e-6 of itself and never below 0."""
    x = np.linspace(0, 12, 500)[:, None]
    block = RBF(1.0).gram(DenseRows(np.zeros((1, 1))), DenseRows(x)).block(np.array([0]))[0]
    expected = np.exp(-(x[:, 0] ** 2))
    seen = expected > 1e-37
    np.testing.assert_allclose(block[seen], expected[seen], rtol=2e-5)  # an exponent of 85 rounds to 4e-6
    near = expected > 1e-2
    np.testing.assert_allclose(block[near], expected[near], rtol=1e-6)
    assert (block[~seen] >= 0).all()
    assert (block[~seen] < 1e-36).all()


def test_sums_are_in_float64():
    """10,000 rows that almost cancel."""
    x = np.zeros((10_000, 1))
    coefficients = np.tile([1.0, -1.0], 5_000)
    coefficients[-1] += 1e-9
    for kernel in (RBF(1.0), PolynomialKernel(2, 1.0, 1.0), LinearKernel()):
        rows = DenseRows(x if kernel != LinearKernel() else x + 1)
        gram = kernel.gram(rows, rows.take(np.arange(2)))
        assert gram.times(np.arange(10_000), coefficients) == pytest.approx(1e-9, rel=1e-3)


@vector_kernels
def test_no_rows(name):
    kernel = VECTOR_KERNELS[name][0]
    for make in (DENSE, SPARSE):
        gram = kernel.gram(make(A), make(B[:0]))
        assert gram.block(np.arange(5)).shape == (5, 0)
        assert gram.times(np.arange(5), np.ones(5)).shape == (0,)
        assert kernel.gram(make(A[:0])).diagonal().shape == (0,)


def test_float32_rows_are_not_copied_for_linear_and_given_kernels():
    x = RNG.random((20, 20), dtype=np.float32)
    assert np.shares_memory(LinearKernel().gram(DenseRows(x)).products.a, x)
    symmetric = x + x.T
    assert np.shares_memory(Precomputed().gram(DenseRows(symmetric)).values, symmetric)


# gamma


def test_gamma_is_that_of_scikit_learn():
    y = np.arange(70) % 2
    batch = Images(RNG.integers(0, 256, (70, 4, 6)).astype(np.uint8))
    cases = [
        (DENSE(A), A.toarray()),
        (SPARSE(A), A),
        (DenseRows(A.toarray() + 1000), A.toarray() + 1000),
        (batch, batch.values.reshape(70, 24).astype(np.float64)),
    ]
    for gamma in ("scale", "auto"):
        for rows, x in cases:
            for kernel in (RBF(gamma), PolynomialKernel(gamma=gamma), Sigmoid(gamma)):
                assert kernel.resolve(rows).gamma == pytest.approx(SVC(gamma=gamma).fit(x, y)._gamma, rel=1e-9)


def test_gamma_of_constant_rows_is_one_as_in_scikit_learn():
    assert RBF().resolve(DenseRows(np.zeros((4, 3)))).gamma == 1.0
    assert RBF().resolve(DenseRows(np.full((4, 3), 7.0))).gamma == 1.0


def test_a_part_of_the_rows_has_no_gamma_of_its_own():
    expected = pairwise.rbf_kernel(A.toarray(), gamma=RBF().resolve(SPARSE(A)).gamma)
    np.testing.assert_allclose(all_rows(RBF().gram(SPARSE(A))), expected, atol=1e-5)
    with pytest.raises(DotaddError, match=r"RBF\(\) depends on the training data"):
        RBF().gram(SPARSE(A), SPARSE(B))


@pytest.mark.parametrize("size", [1e-30, 1e25])
def test_scale_makes_up_for_tiny_and_huge_numbers(size):
    x = RNG.standard_normal((20, 5))
    for kernel in (RBF(), PolynomialKernel(coef0=1.0), Sigmoid()):
        for make in (DenseRows, lambda y: sparse(csr_matrix(y))):
            expected, found = all_rows(kernel.gram(make(x))), all_rows(kernel.gram(make(x * size)))
            np.testing.assert_allclose(found, expected, atol=1e-5)


# given matrices and functions


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_given_matrix(dtype, monkeypatch):
    monkeypatch.setattr(grams, "TILE", 60)
    monkeypatch.setattr(grams, "ROWS", 9)
    values = RNG.integers(-9, 9, (25, 25))
    values = (values + values.T).astype(dtype)
    assert_is(Precomputed().gram(DenseRows(values)), values)
    others = RNG.integers(-9, 9, (40, 25)).astype(dtype)
    assert_is(Precomputed().gram(DenseRows(values), DenseRows(others)), others.T)
    assert_is(Precomputed().gram(DenseRows(values[:3]), DenseRows(others)), others.T)


def test_given_matrix_with_the_rounding_of_float32_counts_as_symmetric():
    x = RNG.standard_normal((300, 50)).astype(np.float32)
    values = x @ x.T.copy()
    values[3, 7] *= 1 + 1e-6
    Precomputed().gram(DenseRows(values))


def test_given_matrix_that_is_none_is_refused():
    values = np.eye(2100)
    values[3, 2070] = 5.0
    with pytest.raises(DotaddError, match=r"not symmetric: entry \(3, 2070\) is 5.0, and \(2070, 3\) is 0.0"):
        Precomputed().gram(DenseRows(values))
    with pytest.raises(DotaddError, match="not square: it has 3 rows and 4 columns"):
        Precomputed().gram(DenseRows(np.ones((3, 4))))
    values[3, 2070], values[5, 6] = 0.0, np.nan
    with pytest.raises(DotaddError, match=r"has nan at entry \(5, 6\)"):
        Precomputed().gram(DenseRows(values))
    with pytest.raises(DotaddError, match=r"has inf at entry \(1, 0\)"):
        Precomputed().gram(DenseRows(np.eye(2)), DenseRows(np.array([[0.0, 1.0], [np.inf, 1.0]])))
    with pytest.raises(DotaddError, match="has 3 columns, and there are 2 training examples"):
        Precomputed().gram(DenseRows(np.eye(2)), DenseRows(np.ones((1, 3))))


def test_function_gets_rows_as_arrays(monkeypatch):
    monkeypatch.setattr(grams, "TILE", 60)
    monkeypatch.setattr(grams, "ROWS", 9)
    expected = pairwise.laplacian_kernel(A.toarray(), B.toarray(), gamma=0.2)
    kernel = FunctionKernel(lambda x, y: pairwise.laplacian_kernel(x, y, gamma=0.2))
    assert_is(kernel.gram(DENSE(A), DENSE(B)), expected)
    assert_is(kernel.gram(DENSE(A)), pairwise.laplacian_kernel(A.toarray(), gamma=0.2))
    assert_is(FunctionKernel(lambda x, y: x @ y.T).gram(SPARSE(A), SPARSE(B)), (A @ B.T).toarray())
    images = Images(RNG.random((40, 3, 4)))
    assert_is(FunctionKernel(lambda x, y: x @ y.T).gram(images), pairwise.linear_kernel(images.values.reshape(40, 12)))
    assert not kernel.saved


def test_function_that_returns_something_else_is_refused():
    x, rows = DENSE(A), np.arange(4)
    with pytest.raises(DotaddError, match=r"shape \(4,\) and type float64 for 4 and 70 rows"):
        FunctionKernel(lambda a, b: a.sum(axis=1)).gram(x).block(rows)
    with pytest.raises(DotaddError, match="numbers of shape"):
        FunctionKernel(lambda a, b: [["x"] * len(b)] * len(a)).gram(x).times(rows, np.ones(4))
    with pytest.raises(DotaddError, match="returned nan for rows 0 and 0"):
        FunctionKernel(lambda a, b: np.full((len(a), len(b)), np.nan)).gram(x).diagonal()


# maps


def feature_kernels():
    spectrum = [naive_features.spectrum(z, 3, "ACGT") for z in STRINGS]
    degree = [naive_features.weighted_degree(z, naive_features.falling_weights(3), "ACGT") for z in STRINGS]
    yield Spectrum(3), naive_features.gram(spectrum)
    yield WeightedDegree(3).hashed(20), naive_features.gram(degree)
    plain = naive_features.gram(spectrum)
    yield Spectrum(3).normalized(), plain / np.sqrt(np.outer(np.diag(plain), np.diag(plain)))
    yield 2.0 * Spectrum(3) + WeightedDegree(3), 4 * plain + naive_features.gram(degree)
    yield Spectrum(3).indexed("hash_table"), plain
    yield Spectrum(3).hashed(21), plain
    grams_of = [[z[i : i + n] for n in (2, 3) for i in range(len(z) - n + 1)] for z in STRINGS]
    counts = [[float(sum(u == v for u in x for v in y)) for y in grams_of] for x in grams_of]
    yield NGrams((2, 3), bits=22), np.array(counts)


@pytest.mark.parametrize("number", range(7))
def test_feature_kernel_is_the_inner_product_of_the_map(number):
    phi, expected = list(feature_kernels())[number]
    batch = Strings.from_list(STRINGS)
    gram = FeatureKernel(phi).gram(batch, threads=2)
    assert gram.linadd
    assert_is(gram, expected)
    kernel = FeatureKernel(phi).resolve(batch)
    assert_is(kernel.gram(batch.slice(0, 3), batch, threads=2), expected[:3])


def shared_letters(letters: str, n: int = 40) -> list[str]:
    """Strings of 0 to 150 letters that agree at most positions, so k-mers are shared across the borders of words."""
    rng = np.random.default_rng(3)
    model = rng.integers(0, len(letters), 150)
    rows = np.where(rng.random((n, 150)) < 0.8, model, rng.integers(0, len(letters), (n, 150)))
    lengths = np.r_[0, 1, 63, 64, 65, 128, rng.integers(0, 151, n - 6)]
    return ["".join(letters[k] for k in row[:length]) for row, length in zip(rows, lengths, strict=True)]


@pytest.mark.parametrize(("name", "letters"), [("dna", "ACGT"), ("protein", "ACDEFGHIKLMNPQRSTVWY"), ("xy", "xy")])
@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 3.0, 0.0]])
@pytest.mark.parametrize("span", [None, (60, -3)])
@pytest.mark.parametrize("normalized", [False, True])
def test_weighted_degree_from_bits_is_the_definition(name, letters, weights, span, normalized):
    strings = shared_letters(letters)
    read = strings if span is None else [z[slice(*span)] for z in strings]
    betas = weights or naive_features.falling_weights(4)
    expected = np.array([[naive_features.weighted_degree_kernel(x, y, betas) for y in read] for x in read])
    phi = WeightedDegree(4, alphabet=name, weights=weights, span=span)
    if normalized:
        lengths = np.sqrt(np.where(np.diag(expected) > 0.0, np.diag(expected), 1.0))
        phi, expected = phi.normalized(), expected / np.outer(lengths, lengths)
    batch = Strings.from_list(strings)
    gram = FeatureKernel(phi).gram(batch, threads=2)
    assert isinstance(gram.products, degree_products.DegreeProducts)
    assert_is(gram, expected)
    kernel = FeatureKernel(phi).resolve(batch)
    assert_is(kernel.gram(batch.slice(0, 3), batch, threads=2), expected[:3])  # rows of fewer letters than the columns


def test_feature_kernel_of_many_strings_uses_blocks_and_threads():
    strings = ["".join(RNG.choice(list("ACGT"), RNG.integers(0, 20))) for _ in range(300)]
    expected = naive_features.gram([naive_features.spectrum(z, 2, "ACGT") for z in strings[:40]])
    gram = FeatureKernel(Spectrum(2)).gram(Strings.from_list(strings), threads=2)
    np.testing.assert_allclose(gram.block(np.arange(40), np.arange(40)), expected)
    rows, coefficients = np.arange(300), RNG.standard_normal(300)
    np.testing.assert_allclose(gram.times(rows, coefficients), coefficients @ all_rows(gram).astype(np.float64))


def test_sums_in_large_spaces_go_through_float32(monkeypatch):
    monkeypatch.setattr(feature_gram, "EXACT_SLOTS", 0)
    gram = FeatureKernel(Spectrum(3)).gram(Strings.from_list(STRINGS))
    assert gram.times(np.array([0, 4]), np.array([1.0, -0.5])) == pytest.approx(
        [1.0, -0.5] @ gram.block(np.array([0, 4]))
    )


def test_feature_kernel_of_vectors():
    for make in (DENSE, SPARSE):
        assert_is(FeatureKernel(Linear()).gram(make(A)), pairwise.linear_kernel(A.toarray()))
        expected = pairwise.polynomial_kernel(A.toarray(), B.toarray(), degree=2, gamma=1, coef0=1)
        assert_is(FeatureKernel(Polynomial(2, coef0=1.0, n_features=40)).gram(make(A), make(B)), expected)


def test_letters_outside_of_the_alphabet_are_refused_with_their_row():
    batch = Strings.from_list(["ACGT", "AXGT"])
    found = WeightedDegree(2).resolve(Shape.of(batch)).check(batch)
    if found is None:  # such letters are left out
        FeatureKernel(WeightedDegree(2)).gram(batch)
    else:
        with pytest.raises(DataError, match="row 1"):
            FeatureKernel(WeightedDegree(2)).gram(batch)


# descriptions


DESCRIBED = [
    LinearKernel(),
    PolynomialKernel(),
    PolynomialKernel(2, 0.1, -1),
    RBF(),
    RBF("auto"),
    RBF(gamma=1e-300),
    Sigmoid(coef0=2),
    Precomputed(),
    FeatureKernel(Spectrum(8)),
    FeatureKernel((2.0 * Spectrum(3) + WeightedDegree(4, length=20).hashed(20)).normalized()),
]


@pytest.mark.parametrize("kernel", DESCRIBED, ids=repr)
def test_what_is_written_is_read_back(kernel):
    again = parse(repr(kernel))
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert repr(again) == repr(kernel)
    assert sum(other == kernel for other in DESCRIBED) == 1


def test_kernels_do_not_change():
    with pytest.raises(AttributeError):
        RBF().gamma = 1.0


def test_expression_of_a_map_is_its_kernel():
    assert parse("Spectrum(8)") == FeatureKernel(Spectrum(8))
    assert parse(" 0.5 * Spectrum(8).normalized() + Spectrum(2)") == FeatureKernel(
        0.5 * Spectrum(8).normalized() + Spectrum(2)
    )

    class Mine(Linear):
        pass

    assert isinstance(parse("Mine()", {"Mine": Mine}).phi, Mine)


def test_names_and_objects_for_the_estimator():
    assert named("linear") == LinearKernel()
    assert named("poly", 0.5, 2, 1.0) == PolynomialKernel(degree=2, gamma=0.5, coef0=1.0)
    assert named("rbf", "auto") == RBF("auto")
    assert named("sigmoid", 2.0, 3, 0.5) == Sigmoid(gamma=2.0, coef0=0.5)
    assert named("precomputed") == Precomputed()
    assert named("RBF(gamma=0.1)", 7.0) == named(RBF(0.1), 7.0) == RBF(0.1)
    assert named("Spectrum(8)") == named(Spectrum(8)) == FeatureKernel(Spectrum(8))
    assert named(pairwise.rbf_kernel) == FunctionKernel(pairwise.rbf_kernel)


@pytest.mark.parametrize("kernel", ["gauss", "", None, 3, RBF])
def test_what_is_no_kernel_is_told_what_there_is(kernel):
    with pytest.raises(DotaddError, match='there are "linear", "poly", "rbf", "sigmoid", "precomputed", an expression'):
        named(kernel)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("RFB(0.1)", "kernel, column 1: there is no kernel 'RFB'; there are LinearKernel, .*Spectrum"),
        ("RBF", "RBF needs brackets"),
        ("RBF(gamma=0)", "kernel, column 1: RBF: gamma has to be a number above 0"),
        ("RBF(sigma=1)", "it takes gamma"),
        ("RBF(0.1) + RBF(1)", "column 1: there is no map 'RBF'"),
        ("FeatureKernel(3)", "takes a feature map"),
        ("FeatureKernel(Spectrum(0))", "kernel, column 15: Spectrum"),
        ("Spectrum(3).spread()", "column 1: there is no .spread"),
        ("RBF(__import__('os'))", "no kernel '__import__'"),
        ("3", "3 is not a kernel"),
        ("RBF(", "not an expression"),
        (" ", "the expression of a kernel is empty"),
    ],
)
def test_expressions_that_are_none_are_refused_with_their_column(text, complaint):
    with pytest.raises(DotaddError, match=complaint):
        parse(text)


def test_bad_parameters_are_refused():
    for gamma in (0, -1.0, np.nan, np.inf, "big", None, True):
        with pytest.raises(DotaddError, match="gamma has to be a number above 0"):
            RBF(gamma)
    for degree in (0, 2.5, "3", 101, True):
        with pytest.raises(DotaddError, match="degree has to be a whole number"):
            PolynomialKernel(degree)
    for coef0 in (np.nan, "0"):
        with pytest.raises(DotaddError, match="coef0 has to be a number"):
            Sigmoid(coef0=coef0)
    with pytest.raises(DotaddError, match="takes a function"):
        FunctionKernel(3)
    with pytest.raises(DotaddError, match="takes a feature map"):
        FeatureKernel("Spectrum(3)")


@vector_kernels
def test_data_that_does_not_fit_is_refused(name):
    kernel = VECTOR_KERNELS[name][0]
    with pytest.raises(DotaddError, match=r"the data is strings: use a map of strings such as Spectrum\(8\)"):
        kernel.gram(Strings.from_list(["AB"]))
    with pytest.raises(DotaddError, match="rows have 41 features, and those of the kernel's other side 40"):
        kernel.gram(DENSE(A), DenseRows(np.ones((2, 41))))
    with pytest.raises(DotaddError, match="rows have 39 features"):
        kernel.gram(DENSE(A), DenseRows(np.ones((2, 39))))
    with pytest.raises(DotaddError, match="rows have 41 features"):
        kernel.gram(SPARSE(A), SPARSE(sparse_matrix(5, 41)))
    narrow = sparse_matrix(5, 30)
    assert_is(kernel.gram(SPARSE(A), SPARSE(narrow)), kernel.gram(SPARSE(A), sparse(csr_matrix(
        (narrow.data, narrow.indices, narrow.indptr), (5, 40)))).block(np.arange(70)))  # fmt: skip
    bad = A.toarray()
    bad[4, 2] = np.nan
    with pytest.raises(DotaddError, match="row 4 has NaN"):
        kernel.gram(DenseRows(bad)).diagonal()
    with pytest.raises(DotaddError, match="row 4 has NaN"):
        kernel.gram(sparse(csr_matrix(bad))).diagonal()


def test_polynomials_beyond_float32_are_refused():
    with pytest.raises(DotaddError, match="more than float32 can hold: scale the data"):
        PolynomialKernel(9, 1.0).gram(DenseRows(np.full((2, 2), 1e3)))


def test_maps_of_vectors_refuse_strings():
    with pytest.raises(DotaddError, match=r"FeatureKernel\(Linear\(\)\) reads"):
        FeatureKernel(Linear()).gram(Strings.from_list(["AB"]))
