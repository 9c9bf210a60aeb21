"""Numbers at the door: what is squared and summed up later is small enough for it, in every source and every map."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import dotadd
from dotadd import LinearSVM
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.fitting import agree
from dotadd.cluster.shard import Shard
from dotadd.core.block import Block
from dotadd.data.batches import LARGEST_VALUE, DenseRows, SparseRows
from dotadd.errors import DataError, DotaddError, FeatureError, NotConvergedWarning
from dotadd.features import Linear, Polynomial, WeightedDegree, parse
from dotadd.features.base import Shape
from dotadd.features.checks import materialize
from dotadd.problem.examples import InMemory
from dotadd.sources.sound import PIECE, unusable

HUGE = 1e30


def table(value=HUGE, row=3):
    X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    X[row, 1] = value
    return X, np.array([1, -1] * 4)


def sparse(X):
    rows = sp.csr_array(X)
    return SparseRows(rows.indptr.astype(np.int64), rows.indices, rows.data, X.shape[1])


def written(kind, folder, value=HUGE):
    X, y = table(value)
    path = folder / f"data.{kind}"
    frame = pa.table({"label": y, **{name: X[:, k] for k, name in enumerate("abc")}})
    match kind:
        case "csv":
            lines = [f"{label},{','.join(map(repr, map(float, row)))}" for label, row in zip(y, X, strict=True)]
            path.write_text("label,a,b,c\n" + "\n".join(lines) + "\n")
        case "svm":
            rows = [" ".join(f"{k + 1}:{v!r}" for k, v in enumerate(map(float, row))) for row in X]
            path.write_text("".join(f"{label} {row}\n" for label, row in zip(y, rows, strict=True)))
        case "jsonl":
            rows = [f'{{"label": {label}, "x": {list(map(float, row))}}}' for label, row in zip(y, X, strict=True)]
            path.write_text("\n".join(rows) + "\n")
        case "parquet":
            pyarrow.parquet.write_table(frame, path)
        case "arrow":
            pyarrow.feather.write_feather(frame, path, compression="uncompressed")
    return path


@pytest.mark.parametrize("kind", ["csv", "svm", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("memory", [None, "1KB"])
def test_files_with_values_that_overflow_are_refused_with_file_and_line(kind, memory, tmp_path):
    path = written(kind, tmp_path)
    source = dotadd.open(path, label="label") if kind != "svm" else dotadd.open(path)
    with pytest.raises(DataError, match=r"value '?1[.\de]*\+30'? is too large.* scale the data") as caught:
        LinearSVM(memory=memory).fit(source)
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)
    if kind in ("csv", "svm", "jsonl"):
        assert caught.value.line == {"csv": 5}.get(kind, 4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_arrays_with_values_that_overflow_are_refused_by_fit_and_predict(form):
    X, y = table()
    with pytest.raises(DotaddError, match=r"value 1e\+30 is too large"):
        LinearSVM().fit(form(X), y)
    svm = LinearSVM().fit(form(table(1.0)[0]), y)
    with pytest.raises(DotaddError, match=r"value 1e\+30 is too large"):
        svm.predict(form(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint64])
def test_each_value_is_looked_at(dtype):
    for size in (1, 5, PIECE, PIECE + 3):
        values = np.zeros(size, dtype)
        assert not len(unusable(values))
        values[[0, -1]] = dtype(1e17)
        assert unusable(values).tolist() == sorted({0, size - 1})
    assert not len(unusable(np.array([LARGEST_VALUE, -LARGEST_VALUE]).astype(np.float64)))
    if np.dtype(dtype).kind == "f":
        assert unusable(np.array([0, np.nan, 1, np.inf, -np.inf, -1e17], dtype)).tolist() == [1, 3, 4, 5]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_largest_values_that_are_let_in_train_to_finite_numbers(loss):
    X, y = np.random.default_rng(1).normal(size=(40, 3)), np.array([1, -1] * 20)
    X *= LARGEST_VALUE / abs(X).max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        svm = LinearSVM(loss=loss, max_passes=50, tol=1e-2).fit(X, y)
    assert np.isfinite(svm.coef_).all()
    assert np.isfinite(svm.decision_function(X)).all()


@pytest.mark.parametrize("degree", [2, 3])
def test_products_that_overflow_are_refused_before_they_are_made(degree):
    phi = Polynomial(degree).resolve(Shape("dense rows", n_features=3))
    fine = DenseRows(np.full((2, 3), 0.9 * phi.largest))
    assert phi.check(fine) is None
    assert abs(materialize(phi, fine)).max() <= 2.5 * LARGEST_VALUE**2
    X, y = table(1.1 * phi.largest)
    for batch in (DenseRows(X), sparse(X)):
        bad = phi.check(batch)
        assert bad.row == 3
    with pytest.raises(DotaddError, match=r"row 3.* too large"):
        LinearSVM(Polynomial(degree)).fit(X, y)


@pytest.mark.parametrize("phi", ["Polynomial(3)", "(Linear() + Polynomial(3).hashed(8)).normalized()"])
@pytest.mark.parametrize("memory", ["1GB", "100"])
def test_products_that_overflow_are_refused_in_memory_and_on_streams_alike(tmp_path, memory, phi):
    """The row is not the widest one, and not the first; without it, both train on the others."""
    X, y = table(1.1 * Polynomial(3).largest)
    lines = [f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()))
             for row, label in zip(X, y, strict=True)]  # fmt: skip
    path = tmp_path / "x.svm"
    path.write_text("\n".join([*lines, f"1 {lines[0][2:]} 4:1", ""]))
    svm = LinearSVM(phi, memory=memory, max_passes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match=r"x\.svm:4: value .* is too large: the products of 3 such values"):
            svm.fit(path)
        source = dotadd.open(path, on_bad_row="skip")
        svm.fit(source)
    assert (svm.model_.training["rows"], source.skipped.count) == (8, 1)


def test_parts_of_data_refuse_products_that_overflow_too():
    X, y = table(1.1 * Polynomial(3).largest)
    parts = LocalEngine([Shard(dotadd.open(X[some], y[some]), 1 << 20) for some in (slice(2), slice(2, 8))])
    with pytest.raises(DotaddError, match=r"row 1.* is too large: the products of 3 such values"):
        agree(parts, lambda data, shape: Polynomial(3).resolve(shape))


@pytest.mark.parametrize(
    "make",
    [
        lambda: 1e308 * Linear(),
        lambda: 10**400 * Linear(),
        lambda: 1e10 * (1e10 * Linear()),
        lambda: float("nan") * Linear(),
        lambda: WeightedDegree(2, weights=[1e308, 1.0]),
        lambda: WeightedDegree(2, weights=[10**400, 1.0]),
        lambda: Polynomial(2, coef0=1e300),
        lambda: Polynomial(2, coef0=10**400),
        lambda: parse("Rational(1e308 * ngram(2))"),
        lambda: parse("Rational(1e200 * (1e200 * ngram(2)))"),
    ],
)
def test_scales_with_which_features_would_overflow_are_refused_where_they_are_made(make):
    with pytest.raises(FeatureError) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_rows_of_tiny_length_are_normalized_too():
    batch = DenseRows(np.array([[1e-40, 0.0], [0.0, 1e-20], [3e-40, 4e-40]], np.float32))
    for some in (batch, batch.slice(1, 2), batch.slice(0, 1)):
        (picked,) = InMemory(Linear(n_features=2).normalized(), some).blocks()
        np.testing.assert_allclose(Block.squared_norms(picked.block), 1.0, rtol=1e-4)
