"""A loaded model is a classifier to scikit-learn: it has classes, scores itself, and serves where fitted ones do."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.utils.validation import check_is_fitted

import dotadd
from dotadd import DataError, DotaddError, KernelSVM, LinearSVM


def clouds(classes, n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.array(["ant", "bee", "cow"])[:classes][
        np.argmax(X[:, :classes] + 0.5 * rng.normal(size=(n, classes)), axis=1)
    ]


@pytest.fixture(params=[(LinearSVM, 2), (LinearSVM, 3), (KernelSVM, 2), (KernelSVM, 3)], ids=str)
def fitted(request, tmp_path):
    machine, classes = request.param
    X, y = clouds(classes)
    svm = machine(random_state=0).fit(X, y)
    svm.save(tmp_path / "m")
    return svm, dotadd.load(tmp_path / "m"), X, y


def test_it_says_what_it_is(fitted):
    svm, model, _, _ = fitted
    assert is_classifier(model)
    assert not is_regressor(model)
    check_is_fitted(model)
    assert model.classes_.tolist() == svm.classes_.tolist()
    with pytest.raises(DotaddError, match="trained already"):
        model.fit(np.eye(2), [0, 1])


def test_its_score_is_the_share_of_labels_that_it_gets_right(fitted):
    svm, model, X, y = fitted
    weight = np.linspace(0.0, 1.0, len(y))
    assert model.score(X, y) == svm.score(X, y) == accuracy_score(y, svm.predict(X))
    assert model.score(X, y, weight) == pytest.approx(accuracy_score(y, svm.predict(X), sample_weight=weight))
    for scorer in ("accuracy", "f1_macro", "balanced_accuracy"):
        assert get_scorer(scorer)(model, X, y) == get_scorer(scorer)(svm, X, y)


def test_without_labels_the_data_brings_its_own(fitted, tmp_path):
    svm, model, X, y = fitted
    pd.DataFrame(X, columns=list("abc")).assign(label=y).to_csv(tmp_path / "d.csv", index=False)
    assert model.score(tmp_path / "d.csv") == svm.score(tmp_path / "d.csv") == pytest.approx(svm.score(X, y), abs=0.01)
    with pytest.raises(DataError, match="no labels to score against"):
        model.score(X)


def test_rows_of_a_file_count_by_the_weights_that_are_given(fitted, tmp_path):
    _, model, X, y = fitted
    pd.DataFrame(X, columns=list("abc")).assign(label=y).to_csv(tmp_path / "d.csv", index=False)
    weight = np.arange(len(y)) % 3
    expected = accuracy_score(y, model.predict(tmp_path / "d.csv"), sample_weight=weight)
    assert model.score(tmp_path / "d.csv", sample_weight=weight) == pytest.approx(expected)
    for wrong in (weight[1:], np.append(weight, 1)):
        with pytest.raises(DotaddError, match="do not pair up"):
            model.score(tmp_path / "d.csv", sample_weight=wrong)


def test_rows_of_a_source_count_by_the_weights_that_it_brings(fitted, tmp_path):
    _, model, X, y = fitted
    weight = np.arange(len(y)) % 3
    wrong = np.roll(y, 1)
    expected = accuracy_score(wrong, model.predict(X), sample_weight=weight)
    assert expected != pytest.approx(accuracy_score(wrong, model.predict(X)))
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=wrong, w=weight)
    frame.to_parquet(tmp_path / "d.parquet")
    for source in (dotadd.open(X, wrong, weight), dotadd.open(tmp_path / "d.parquet", label="label", weight="w")):
        assert model.score(source) == pytest.approx(expected)
        assert model.score(source, sample_weight=np.ones(len(y))) == accuracy_score(wrong, model.predict(X))
    assert model.score(dotadd.open(X, None, weight), wrong) == pytest.approx(expected)
    with pytest.raises(DotaddError, match="do not pair up"):
        model.score(X, y[1:])
    with pytest.raises(DotaddError, match="do not pair up"):
        model.score(X, np.append(y, y[0]))


def test_labels_of_another_type_are_all_wrong(fitted):
    _, model, X, y = fitted
    assert model.score(X, [f"no {label}" for label in y]) == 0.0


def test_scikit_learn_can_calibrate_and_inspect_it(fitted):
    _, model, X, y = fitted
    calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(y), len(model.classes_))
    assert np.mean(calibrated.predict(X) == y) > 0.6
    assert permutation_importance(model, X, y, n_repeats=2, random_state=0).importances.shape == (3, 2)


def test_labels_in_a_table_are_found_by_the_name_they_had(tmp_path):
    X, y = clouds(3)
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=y)
    svm = LinearSVM(random_state=0).fit(dotadd.open(frame, label="kind"))
    frame[["kind", "c", "b", "a"]].to_csv(tmp_path / "d.csv", index=False)
    for data in (frame[["c", "kind", "a", "b"]], tmp_path / "d.csv"):
        assert svm.model_.score(data) == pytest.approx(svm.model_.score(X, y), abs=0.01)


def test_loading_and_predicting_imports_no_scikit_learn(tmp_path):
    X, y = clouds(2)
    LinearSVM(random_state=0).fit(X, y).save(tmp_path / "m")
    code = (
        "import sys, numpy, dotadd\n"
        f"model = dotadd.load({str(tmp_path / 'm')!r})\n"
        "model.score(numpy.zeros((2, 3)), model.classes_[:2])\n"
        "sys.exit('sklearn' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
