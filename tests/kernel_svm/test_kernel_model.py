"""KernelModel: what goes into the file comes out, scores are those of the definition, and bad files are refused."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import save_file

import dotadd
from dotadd import KernelModel, KernelSVM, ModelError
from dotadd.data.batches import DenseRows, Images, SparseRows, Strings
from dotadd.features.base import Shape
from dotadd.kernel_svm.kernels import RBF, LinearKernel
from dotadd.model.kernel import pairs, votes


def rows(n=60, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    return X, np.argmax(X[:, :3], axis=1)


def texts(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    made = ["".join(rng.choice(list("ACGT"), 12 + k % 2)) for k in range(n)]
    return [text[:4] + ["ACAC", "GGTG", "TTTT"][k] + text[8:] for text, k in zip(made, y, strict=True)], y


X, y = rows()
T, t = texts()
PIXELS = np.random.default_rng(3).integers(0, 255, (60, 4, 5)).astype(np.uint8)
MACHINES = {
    "dense": (KernelSVM("rbf"), X, y, DenseRows),
    "float32": (KernelSVM("poly", degree=2, coef0=1.0), X.astype(np.float32), y > 0, DenseRows),
    "sparse": (KernelSVM("rbf"), sp.csr_matrix(X), y, SparseRows),
    "sparse linear": (KernelSVM("linear"), sp.csr_matrix(X), y > 0, SparseRows),
    "images": (KernelSVM("rbf"), PIXELS, y, Images),
    "strings": (KernelSVM("Spectrum(2)"), T, t, Strings),
    "one length": (KernelSVM("WeightedDegree(2)"), [text[:12] for text in T], t, Strings),
    "learned": (KernelSVM("Spectrum(3).indexed('hash_table')"), T, t, Strings),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_saved_model_comes_back_and_predicts_the_same(name, tmp_path):
    machine, data, labels, kind = MACHINES[name]
    svm = machine.set_params(random_state=0).fit(data, labels)
    svm.save(tmp_path / "m")
    loaded = dotadd.load(tmp_path / "m")
    assert isinstance(loaded, KernelModel)
    assert type(loaded.vectors) is kind
    assert repr(loaded.kernel) == repr(svm.model_.kernel)
    assert loaded.shape == svm.model_.shape
    assert loaded.classes.tolist() == svm.classes_.tolist()
    assert loaded.training == svm.model_.training
    assert np.array_equal(loaded.support, svm.support_)
    assert np.array_equal(loaded.decision_function(data), svm.decision_function(data))
    assert np.array_equal(loaded.predict(data), svm.predict(data))


def test_a_precomputed_kernel_keeps_the_numbers_of_the_rows(tmp_path):
    K = X @ X.T
    svm = KernelSVM("precomputed", random_state=0).fit(K, y)
    svm.save(tmp_path / "m")
    loaded = dotadd.load(tmp_path / "m")
    assert len(loaded.vectors) == 0
    assert np.array_equal(loaded.decision_function(K[:7]), svm.decision_function(K[:7]))
    with pytest.raises(ModelError, match="X has 59 features, but Model is expecting 60"):
        loaded.predict(K[:, :59])


def test_a_function_is_not_saved(tmp_path):
    svm = KernelSVM(lambda A, B: A @ B.T, random_state=0).fit(X, y)
    with pytest.raises(ModelError, match="a model file holds no functions"):
        svm.save(tmp_path / "m")
    assert not any(tmp_path.iterdir())


def made(kernel, classes=4, each=5, seed=0):
    """A model of random coefficients."""
    rng = np.random.default_rng(seed)
    n, problems = classes * each, classes * (classes - 1) // 2
    return KernelModel(
        kernel,
        Shape("dense rows", n_features=3),
        DenseRows(rng.normal(size=(n, 3))),
        np.arange(n),
        np.full(classes, each),
        rng.normal(size=(classes - 1, n)),
        rng.normal(size=problems),
        np.arange(classes),
    )


@pytest.mark.parametrize("kernel", [RBF(0.5), LinearKernel()], ids=["blocks", "linadd"])
@pytest.mark.parametrize("classes", [2, 4])
def test_decisions_are_those_of_the_definition(kernel, classes, monkeypatch):
    monkeypatch.setattr("dotadd.model.kernel.COLUMNS", 7)
    monkeypatch.setattr("dotadd.model.kernel.TILE", 21)  # three support vectors at a time
    model = made(kernel, classes)
    Z, V = np.random.default_rng(1).normal(size=(30, 3)), model.vectors.values
    K = V @ Z.T if kernel == LinearKernel() else np.exp(-0.5 * ((V[:, None] - Z[None]) ** 2).sum(axis=2))
    of = np.repeat(np.arange(classes), 5)
    expected = []
    for pair, (i, j) in enumerate(pairs(classes)):
        factor = np.where(of == i, model.coefficients[j - 1], np.where(of == j, model.coefficients[i], 0.0))
        expected.append(factor @ K + model.intercept[pair])
    np.testing.assert_allclose(model.decisions(DenseRows(Z), threads=2), expected, rtol=1e-4, atol=1e-5)


def test_votes_go_to_the_winner_of_each_pair_and_ties_to_the_first():
    decisions = np.array([[2.0, 0.5], [1.0, -3.0], [-1.0, 0.1]])  # of pairs 01, 02, 12
    scores = votes(decisions, 3)
    assert np.rint(scores).tolist() == [[2, 0, 1], [1, 1, 1]]
    assert np.abs(scores - np.rint(scores)).max() < 1 / 3
    assert scores[1].argmax() == 2  # the surest
    assert made(RBF(1.0), 3).winners(scores).tolist() == [0, 0]  # as LIBSVM


def test_a_model_without_support_vectors_says_its_intercept():
    model = made(RBF(1.0), 2, each=0)
    assert model.decision_function(np.zeros((3, 3))).tolist() == [model.intercept[0]] * 3


def test_features_that_training_did_not_have_are_dropped_from_files_only(tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1 2:0.5\n-1 1:-1\n1 1:2\n-1 2:-1\n")
    (tmp_path / "wide.svm").write_text("1 1:1 2:0.5 9:4\n")
    (tmp_path / "same.svm").write_text("1 1:1 2:0.5\n")
    svm = KernelSVM(random_state=0).fit(tmp_path / "train.svm")
    assert svm.decision_function(tmp_path / "wide.svm") == svm.decision_function(tmp_path / "same.svm")
    with pytest.raises(ModelError, match="X has 9 features, but Model is expecting 2"):
        svm.decision_function(np.zeros((1, 9)))


def rewritten(path, change=lambda header: None, **tensors):
    """The same model file with another header, or other tensors."""
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["dotadd"])
        old = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(header)
    changed = {name.replace("__", "."): array for name, array in tensors.items()}
    save_file(old | changed, path, metadata={"dotadd": json.dumps(header)})


@pytest.mark.parametrize(
    ("change", "tensors", "words"),
    [
        (lambda header: header.update(format=99), {}, "newer dotadd"),
        (lambda header: header.update(kernel="RBF('scale')"), {}, "kernel cannot be made.*not resolved"),
        (lambda header: header.update(kernel="__import__('os').getpid()"), {}, "kernel cannot be made"),
        (lambda header: header["vectors"].update(kind="trees"), {}, "damaged.*trees"),
        (lambda header: header.pop("vectors"), {}, "damaged"),
        (lambda header: None, {"counts": np.array([1, 1, 1])}, "do not fit"),
        (lambda header: None, {"coefficients": np.zeros((2, 3))}, "do not fit"),
        (lambda header: None, {"coefficients": np.zeros((2, 3), np.int64)}, "not a model of dotadd"),
        (lambda header: None, {"vectors__offsets": np.array([0, 9_000_000_000])}, "offsets do not fit"),
        (lambda header: None, {"vectors__indices": np.full(1, 7, np.int32)}, "damaged|do not fit"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(change, tensors, words, tmp_path):
    KernelSVM(random_state=0).fit(sp.csr_matrix(X), y).save(tmp_path / "m")
    rewritten(tmp_path / "m", change, **tensors)
    with pytest.raises(ModelError, match=words) as caught:
        dotadd.load(tmp_path / "m")
    assert str(tmp_path / "m") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_index_outside_of_the_space_is_refused(tmp_path):
    svm = KernelSVM(random_state=0).fit(sp.csr_matrix(X), y)
    svm.save(tmp_path / "m")
    indices = svm.model_.vectors.indices.copy()
    indices[0] = 6
    rewritten(tmp_path / "m", vectors__indices=indices)
    with pytest.raises(ModelError, match="indices do not fit"):
        dotadd.load(tmp_path / "m")
