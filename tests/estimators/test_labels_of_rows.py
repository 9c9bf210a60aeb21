"""Several labels a row: each label is the binary SVM that it would be alone, from memory and from disk."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, f1_score, hamming_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

from dotadd import KernelSVM, KernelSVMCV, LinearSVM, LinearSVMCV, load
from dotadd import open as open_source
from dotadd.errors import DataError, DotaddError, ModelError
from dotadd.model.several_labels import LabelEvaluator

NAMES = np.array(["acq", "corn", "earn", "oil", "wheat"])


def problem(rows=200, features=12, labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    Y = (X @ rng.normal(size=(features, labels)) + rng.normal(size=(rows, labels)) > 1.5).astype(np.int64)
    return X, Y


def lists(Y):
    return [NAMES[np.flatnonzero(row)].tolist() for row in Y]


def machine(**more):
    return LinearSVM(**({"C": 0.1, "tol": 1e-7, "random_state": 0, "dtype": "float64"} | more))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_each_label_is_the_svm_that_it_is_alone(loss, class_weight):
    X, Y = problem()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    found = machine(loss=loss, class_weight=class_weight).fit(X, Y, weight)
    assert found.decision_function(X).shape == Y.shape
    for k in range(Y.shape[1]):
        alone = machine(loss=loss, class_weight=class_weight).fit(X, Y[:, k], weight)
        np.testing.assert_allclose(found.coef_[k], alone.coef_[0], atol=2e-4)
        np.testing.assert_allclose(found.intercept_[k], alone.intercept_[0], atol=2e-4)
        assert found.result_[k].gap <= 1e-7


def test_the_weight_of_a_label_is_that_of_its_rows():
    X, Y = problem()
    found = machine(class_weight={"corn": 3.0}).fit(X, lists(Y))
    for k, label in enumerate(NAMES.tolist()):
        alone = machine(class_weight={1: 3.0 if label == "corn" else 1.0}).fit(X, Y[:, k])
        np.testing.assert_allclose(found.coef_[k], alone.coef_[0], atol=2e-4)


def test_predictions_are_given_as_labels_were():
    X, Y = problem()
    dense, sparse, named = (machine().fit(X, y) for y in (Y, sp.csr_matrix(Y), lists(Y)))
    found = dense.predict(X)
    assert found.dtype.kind == "i"
    assert found.shape == Y.shape
    assert (found == (dense.decision_function(X) > 0.0)).all()
    assert sp.issparse(sparse.predict(X))
    assert (sparse.predict(X).toarray() == found).all()
    np.testing.assert_array_equal(MultiLabelBinarizer(classes=NAMES).fit_transform(named.predict(X)), found)
    assert named.classes_.tolist() == NAMES.tolist()
    assert dense.classes_.tolist() == list(range(5))
    for one, y in ((dense, Y), (sparse, sp.csr_matrix(Y)), (named, lists(Y)), (named, [set(row) for row in lists(Y)])):
        assert one.score(X, y) == pytest.approx(accuracy_score(Y, found))


def test_squared_hinge_predicts_as_one_vs_rest_of_linear_svc():
    X, Y = problem(seed=4)
    peer = OneVsRestClassifier(LinearSVC(C=0.1, tol=1e-8, max_iter=100_000)).fit(X, Y)
    found = machine(loss="squared_hinge").fit(X, Y)
    np.testing.assert_allclose(found.decision_function(X), peer.decision_function(X), atol=1e-3)


def test_a_label_of_all_rows_or_of_none_is_predicted_always_or_never():
    X, Y = problem()
    Y[:, 1], Y[:, 3] = 0, 1
    found = machine(loss="logistic").fit(X, Y)
    assert (found.predict(X)[:, [1, 3]] == [0, 1]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn tells of such labels
        peer = OneVsRestClassifier(LinearSVC()).fit(X, Y).predict(X)
    np.testing.assert_array_equal(found.predict(X)[:, [1, 3]], peer[:, [1, 3]])
    sure = found.predict_proba(X)
    assert (sure[:, 1] < 0.01).all()
    assert (sure[:, 3] > 0.99).all()
    alone = machine(loss="logistic").fit(X, Y[:, [0, 2, 4]])
    np.testing.assert_array_equal(found.coef_[[0, 2, 4]], alone.coef_)


def test_probabilities_of_labels_are_each_for_itself():
    X, Y = problem()
    found = machine(loss="logistic").fit(X, Y)
    sure = found.predict_proba(X)
    np.testing.assert_allclose(sure, 1.0 / (1.0 + np.exp(-found.decision_function(X))), atol=1e-12)
    assert not np.allclose(sure.sum(axis=1), 1.0)
    with pytest.raises(DotaddError, match="several labels a row are not calibrated"):
        found.model_.calibrate(X, Y)


def test_a_saved_model_says_the_same(tmp_path):
    X, Y = problem()
    for y in (Y, sp.csr_matrix(Y), lists(Y), lists(Y[:, :1]), lists(Y[:, :2])):
        found = machine().fit(X, y)
        found.save(tmp_path / "x.dotadd")
        again = load(tmp_path / "x.dotadd")
        assert again.several == found.model_.several
        assert again.inspect()["several_labels"] == again.several
        np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))
        assert again.decision_function(X).shape == (len(X), len(found.classes_))
        one, other = again.predict(X), found.predict(X)
        assert one == other if isinstance(one, list) else (one != other).sum() == 0


def test_a_damaged_kind_of_labels_is_refused(tmp_path):
    X, Y = problem()
    found = machine().fit(X, Y)
    found.model_.several = "anything"
    found.save(tmp_path / "x.dotadd")
    with pytest.raises(ModelError, match="header is damaged"):
        load(tmp_path / "x.dotadd")


def texts(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    words = {label: [f"{label}{n}" for n in range(6)] for label in NAMES.tolist()}
    Y = rng.random((rows, 5)) < [0.4, 0.2, 0.1, 0.3, 0.05]
    more = [f"w{n}" for n in range(300)]
    x = [
        " ".join([*rng.choice(more, 12), *(word for label in row for word in rng.choice(words[label], 2))])
        for row in lists(Y)
    ]
    return x, Y


@pytest.mark.parametrize("solver", ["stream", "ocas"])
def test_the_same_weights_from_disk(tmp_path, solver):
    x, Y = texts()
    path = tmp_path / "x.jsonl"
    rows = zip(x, lists(Y), strict=True)
    path.write_text("\n".join(json.dumps({"text": text, "topics": row}) for text, row in rows) + "\n")
    phi, told = "WordNGrams(1, bits=12).tfidf()", []
    source = open_source(path, column="text", label="topics")
    found = machine(phi=phi, tol=1e-4, solver=solver, memory=30_000).fit(source, announce=told.append)
    inside = machine(phi=phi, tol=1e-6).fit(x, lists(Y))
    assert any("x.jsonl" in line for line in told), "it was copied, and read from disk"
    furthest = np.sqrt(2e-4 * max(result.primal for result in found.result_))  # |w - w*|^2 / 2 is at most the gap
    assert np.linalg.norm(found.coef_ - inside.coef_, axis=1).max() <= furthest
    assert max(result.gap for result in found.result_) <= 1e-4
    assert found.model_.several == "lists"
    assert found.classes_.tolist() == NAMES.tolist()


def test_labels_in_groups_that_memory_has_room_for_have_the_same_answers():
    X, Y = problem(rows=300)
    whole, parts = machine().fit(X, Y), machine(memory=30_000).fit(X, Y)
    assert "of 5 problems at a time" in parts.result_[0].why
    assert whole.result_[0].alpha is not None
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=2e-4)
    assert all(result.gap <= 1e-7 and result.alpha is None for result in parts.result_)


def test_more_sets_of_labels_than_16_bits_have_codes_for():
    rng = np.random.default_rng(5)
    rows = 70_000
    Y = np.unpackbits(np.arange(rows, dtype=">u4").view(np.uint8).reshape(rows, 4), axis=1)[:, -17:]
    X = (Y @ rng.normal(size=(17, 4)) + rng.normal(size=(rows, 4))).astype(np.float32)
    found = LinearSVM(C=1e-4, tol=1e-3, random_state=0).fit(X, Y)
    for k in (0, 16):
        alone = LinearSVM(C=1e-4, tol=1e-3, random_state=0).fit(X, Y[:, k])
        assert found.result_[k].primal == pytest.approx(alone.result_.primal, rel=2e-3)


def test_measures_are_those_of_scikit_learn(tmp_path):
    X, Y = problem(rows=500, seed=6)
    found, weight = machine().fit(X[:200], Y[:200]), np.random.default_rng(7).uniform(0.1, 2.0, 300)
    told = found.model_.evaluated(open_source(X[200:], Y[200:], weight)).finish()
    truth, predicted = Y[200:], found.predict(X[200:])
    assert told.micro_f1.value == pytest.approx(f1_score(truth, predicted, average="micro", sample_weight=weight))
    assert told.macro_f1 == pytest.approx(f1_score(truth, predicted, average="macro", sample_weight=weight))
    assert told.exact == pytest.approx(accuracy_score(truth, predicted, sample_weight=weight))
    assert told.hamming_loss == pytest.approx(hamming_loss(truth, predicted, sample_weight=weight))
    assert found.score(X[200:], truth, weight) == pytest.approx(told.exact)


def test_a_label_that_the_model_does_not_have_is_never_right():
    X, Y = problem()
    found = machine().fit(X, lists(Y))
    right = found.predict(X)
    assert found.score(X, right) == 1.0
    strange = [[*row, "rice"] if k % 4 == 0 else row for k, row in enumerate(right)]
    assert found.score(X, strange) == 0.75
    evaluator = LabelEvaluator(5)
    with pytest.raises(DotaddError, match="label rice is none of the model's labels"):
        evaluator.see_sets(np.array([("rice",), ()], object), np.zeros((2, 5)), NAMES)


@pytest.mark.parametrize("svm", [KernelSVM("rbf"), LinearSVMCV(Cs=2, cv=2), KernelSVMCV("rbf", Cs=2, cv=2)])
def test_who_takes_one_label_a_row_says_so(svm):
    X, Y = problem(rows=40)
    for y in (Y, lists(Y), sp.csr_array(Y)):
        with pytest.raises(DotaddError, match="there are several labels a row: LinearSVM"):
            svm.fit(X, y)


def test_labels_without_anything_to_learn_are_refused():
    X, _ = problem(rows=4)
    for y, message in (
        ([[], [], [], []], "no row has a label"),
        ([["a", "b"]] * 4, "all rows have the same labels"),
        (np.zeros((4, 3)), "all rows have the same labels"),
    ):
        with pytest.raises(DataError, match=message):
            machine().fit(X, y)
    one = machine().fit(X, [0, 1, 0, 1])
    with pytest.raises(DataError, match="the model was trained on one each"):
        one.model_.score(X, np.array([("a",), (), (), ()], object))
