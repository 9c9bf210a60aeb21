"""Scores of a model: the definition, whatever the threads, the chunks and the width of the data."""

import numpy as np
import pytest
import scipy.sparse

from dotadd.errors import DataError, DotaddError, FeatureError, ModelError
from dotadd.features.base import Shape
from dotadd.features.expression import parse
from dotadd.features.linear import Linear
from dotadd.model.linear import Model
from dotadd.sources import open as open_source


def make(classes=(-1, 1), width=6, kind="dense rows"):
    rng = np.random.default_rng(1)
    shape = Shape(kind, n_features=width)
    rows = 1 if len(classes) == 2 else len(classes)
    w = rng.standard_normal((rows, width)).astype(np.float32)
    return Model(Linear().resolve(shape), shape, w, rng.standard_normal(rows), np.array(classes))


@pytest.mark.parametrize("classes", [(-1, 1), ("a", "b", "c")])
def test_scores_and_labels_are_those_of_the_definition(classes):
    model = make(classes)
    X = np.random.default_rng(2).standard_normal((50, 6))
    expected = X @ model.w.T.astype(np.float64) + model.intercept
    scores = model.decision_function(X)
    assert scores.shape == ((50,) if len(classes) == 2 else (50, 3))
    assert scores.reshape(50, -1) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    best = (expected[:, 0] > 0).astype(int) if len(classes) == 2 else expected.argmax(axis=1)
    assert model.predict(X).tolist() == np.array(classes)[best].tolist()


@pytest.mark.parametrize("n_jobs", [2, 3, -1, None])
def test_threads_do_not_change_a_bit(n_jobs):
    model = make()
    X = scipy.sparse.random(2001, 6, density=0.5, format="csr", random_state=0, dtype=np.float32)
    assert np.array_equal(model.decision_function(X, n_jobs=n_jobs), model.decision_function(X, n_jobs=1))


def test_chunks_do_not_change_a_bit():
    model = make()
    X = np.random.default_rng(3).standard_normal((1000, 6))
    parts = [model.decision_function(part) for part in np.array_split(X, 7)]
    assert np.array_equal(np.concatenate(parts), model.decision_function(X))


def test_zero_threads_are_refused():
    with pytest.raises(DotaddError, match="n_jobs is 0"):
        make().decision_function(np.zeros((2, 6)), n_jobs=0)


@pytest.mark.parametrize("width", [5, 7])
def test_dense_rows_of_another_width_are_refused(width):
    with pytest.raises(ModelError, match=f"X has {width} features, but Model is expecting 6"):
        make().predict(np.zeros((2, width)))


def test_sparse_rows_may_be_narrower_and_in_memory_not_wider():
    model = make()
    narrow = scipy.sparse.csr_matrix(np.eye(3, 4))
    assert np.array_equal(model.predict(narrow), model.predict(np.eye(3, 6)))
    with pytest.raises(ModelError, match="X has 7 features"):
        model.predict(scipy.sparse.csr_matrix(np.eye(3, 7)))


def test_features_that_training_did_not_have_are_ignored_in_files(tmp_path):
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1 9:5\n-1 2:1\n1 7:3\n-1 6:2 7:1 8:1\n")
    model = make()
    known = np.zeros((4, 6))
    known[0, 0], known[1, 1], known[3, 5] = 1, 1, 2
    assert model.decision_function(str(path)) == pytest.approx(model.decision_function(known))


def test_data_of_another_kind_is_refused():
    with pytest.raises(FeatureError, match="strings"):
        make().predict(["ACGT"])


def test_a_bad_row_is_refused_by_line_or_left_out_and_counted(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("seq,y\nACGT,1\nACNT,0\nNNNN,0\nTTTT,1\n")
    shape = Shape("strings", length=4)
    phi = parse("Spectrum(1)").resolve(shape)
    model = Model(phi, shape, np.array([[1.0, 2.0, 3.0, 4.0]]), np.zeros(1), np.array([0, 1]))
    with pytest.raises(DataError, match=r"x\.csv:3:3: .*'N'"):
        model.predict(open_source(str(path), column="seq", label="y"))
    source = open_source(str(path), column="seq", label="y", on_bad_row="skip")
    (chunk, scores), *rest = model.decision_chunks(source)
    assert not rest
    assert scores.tolist() == [10.0, 16.0]
    assert chunk.y.tolist() == [1, 1]
    assert source.skipped.count == 2
    assert "x.csv:3" in source.skipped.first


def test_weights_that_do_not_fit_the_classes_are_refused():
    shape = Shape("strings", length=4)
    for classes in ([0], [0, 1, 2]):
        with pytest.raises(ModelError, match="do not fit"):
            Model(parse("Spectrum(1)"), shape, np.zeros((1, 4)), np.zeros(1), np.array(classes))


def test_inspect_counts_measures_and_ranks_the_weights():
    shape = Shape("strings", length=4)
    w = np.array([[0.0, -3.0, 0.0, 4.0]], np.float32)
    inside = Model(parse("Spectrum(1)"), shape, w, np.zeros(1), np.array(["a", "b"])).inspect(largest=3)
    assert inside["nonzeros"] == [2]
    assert inside["norm"] == [5.0]
    assert inside["largest"] == [[(3, 4.0), (1, -3.0)]]
    assert inside["features"] == "Spectrum(1)"
