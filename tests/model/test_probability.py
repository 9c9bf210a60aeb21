"""Probabilities against known ones, against scikit-learn's calibration and against optimality; and in model files."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import dotadd
from dotadd import DotaddError, KernelSVM, LinearSVM, ModelError
from dotadd.model import probability
from dotadd.model.probability import METHODS, Calibration, calibrate

TWO = np.array([0, 1])


def simulated(n, slope=1.5, offset=-0.7, seed=0):
    """Scores, labels that they foretell by a sigmoid, and its values."""
    rng = np.random.default_rng(seed)
    score = 2.0 * rng.normal(size=n)
    p = expit(slope * score + offset)
    return score, (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("n", [300, 3000, 30_000])
def test_a_sigmoid_is_found_to_the_error_that_so_many_rows_leave(n):
    score, y, p = simulated(n)
    found = calibrate(score, y, TWO).probabilities(score)[:, 1]
    design = np.stack([score, np.ones(n)], axis=1)
    covariance = np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]))  # Cramér and Rao
    error = p * (1 - p) * np.sqrt(np.einsum("ij,jk,ik->i", design, covariance, design))
    assert (np.abs(found - p) <= 4 * error + 4 / n).all()


@pytest.mark.parametrize("n", [300, 3000, 30_000])
def test_an_increasing_curve_is_found_to_the_error_that_so_many_rows_leave(n):
    """The band of Yang and Barber (2019): sums of m neighbours err by at most eps sqrt(m), and isotonic regression does
    not make it worse."""
    rng = np.random.default_rng(n)
    score = np.sort(rng.random(n))
    p = np.where(score < 0.3, 0.05, np.where(score < 0.6, score, 0.9))  # no sigmoid
    found = calibrate(score, (rng.random(n) < p).astype(int), TWO, method="isotonic").probabilities(score)[:, 1]
    eps, sums = np.sqrt(0.5 * np.log((n * n + n) / 0.001)), np.append(0.0, np.cumsum(p))
    high, low = np.ones(n), np.zeros(n)
    for m in 2 ** np.arange(int(np.log2(n))):
        mean = (sums[m:] - sums[:-m]) / m
        high[: n - m + 1] = np.minimum(high[: n - m + 1], mean + eps / np.sqrt(m))
        low[m - 1 :] = np.maximum(low[m - 1 :], mean - eps / np.sqrt(m))
    assert ((low <= found) & (found <= high)).all()
    assert n < 3000 or np.median(high - low) < 0.5, "the band says something"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 20.0, 1e6])
def test_sigmoids_are_those_of_scikit_learn(weighted, scale):
    score, y, _ = simulated(500)
    weight = np.random.default_rng(1).random(500) if weighted else None
    twin = _SigmoidCalibration().fit(score, y, weight)
    found = calibrate(scale * score, y, TWO, weight=weight).probabilities(scale * score)[:, 1]
    np.testing.assert_allclose(found, twin.predict(score), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("digits", [0, 1, 9])
def test_isotonic_curves_are_those_of_scikit_learn_with_ties_and_without(weighted, digits):
    score, y, _ = simulated(500)
    score = score.round(digits)
    weight = np.random.default_rng(1).integers(3, size=500) / 2 if weighted else None
    twin = IsotonicRegression(out_of_bounds="clip").fit(score, y, weight)
    new = np.linspace(-9, 9, 1001)
    found = calibrate(score, y, TWO, method="isotonic", weight=weight).probabilities(new)[:, 1]
    np.testing.assert_allclose(found, unsure(twin, score, weight).predict(new), atol=1e-6)


def unsure(twin, score, weight=None):
    """scikit-learn's curve, but that n rows of one class do not make certain of it."""
    weight, said = np.ones(len(score)) if weight is None else weight, twin.predict(score)
    between = said[(said > 0) & (said < 1)]
    low, high = (1 / (weight[said == end].sum() + 2) for end in (0, 1))
    ends = min(low, between.min(initial=1)), max(1 - high, between.max(initial=0))
    twin._build_f(twin.X_thresholds_, np.clip(twin.y_thresholds_, *ends))
    return twin


@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.integers(0, 3)),
        min_size=1,
        max_size=30,
    )
)
def test_any_scores_give_probabilities_that_follow_them_without_a_warning(rows):
    score, positive, weight = (np.array(column) for column in zip(*rows, strict=True))
    weight[0] = 1
    grid = np.sort(np.concatenate([score, [-np.inf, -1e308, 0.0, 1e308, np.inf]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in METHODS:
            found = calibrate(score, positive, [False, True], method=method, weight=weight).probabilities(grid)
            assert ((found >= 0) & (found <= 1)).all()
            np.testing.assert_allclose(found.sum(axis=1), 1.0)
            rises = np.diff(found[:, 1])
            assert (rises >= -1e-15).all() or (method == "sigmoid" and (rises <= 0).all())


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans(), st.integers(1, 3)), min_size=2, max_size=20))
def test_no_other_sigmoid_has_a_lower_loss_on_platts_targets(rows):
    score, positive, weight = (np.array(column) for column in zip(*rows, strict=True))
    slope, offset = calibrate(score, positive, [False, True], weight=weight).curves[0][:, 0]
    plus, minus = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))
    residual = weight * (expit(slope * score + offset) - target)
    assert abs(residual.sum()) < 1e-9 * weight.sum()  # the problem is convex
    assert abs(residual @ score) < 1e-8 * weight.sum()


@pytest.mark.parametrize("method", METHODS)
def test_weight_two_equals_row_twice(method):
    score, y, _ = simulated(200)
    score, weight = score.round(1), np.random.default_rng(2).integers(3, size=200)
    again = np.repeat(np.arange(200), weight)
    one = calibrate(score, y, TWO, method=method, weight=weight).probabilities(score)
    two = calibrate(score[again], y[again], TWO, method=method).probabilities(score)
    np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_rows_of_one_class_only_make_platts_prior(label):
    score = np.array([1.0, -2.0, 3.0])
    for method in METHODS:
        found = calibrate(score, [label] * 3, TWO, method=method).probabilities(score)
        np.testing.assert_allclose(found[:, label], 4 / 5)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(1, 3)), min_size=1, max_size=20))
def test_no_curve_is_certain_and_what_lies_between_is_as_the_rows_say(rows):
    score, positive, weight = (np.array(column) for column in zip(*rows, strict=True))
    found = calibrate(score, positive, [False, True], method="isotonic", weight=weight).probabilities(score)[:, 1]
    twin = IsotonicRegression().fit(score, positive, weight).predict(score)
    assert ((found > 0) & (found < 1)).all()
    inside = (twin > 0) & (twin < 1)
    np.testing.assert_allclose(found[inside], twin[inside], atol=1e-12)


def test_a_long_isotonic_curve_is_thinned_and_moves_by_a_level_at_most(monkeypatch):
    score = np.repeat(np.arange(4000.0), 2)
    y = np.tile([0, 1], 4000)
    weight = np.where(y, np.repeat(np.arange(1, 4001), 2), np.repeat(np.arange(4001, 1, -1), 2)).astype(float)
    thin = calibrate(score, y, TWO, method="isotonic", weight=weight)
    monkeypatch.setattr(probability, "LEVELS", 10**6)
    full = calibrate(score, y, TWO, method="isotonic", weight=weight)
    assert full.curves[0].shape[1] == 4000
    assert thin.curves[0].shape[1] <= 2050
    new = np.linspace(-10, 4010, 20_001)
    assert np.abs(thin.probabilities(new) - full.probabilities(new)).max() <= 1 / 1024


def several(n=600, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.argmax(X[:, :classes] + rng.normal(size=(n, classes)), axis=1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("machine", [LinearSVM, KernelSVM])
def test_models_have_the_probabilities_of_scikit_learns_calibration(machine, classes, method):
    X, y = several(classes=classes)
    model = machine(C=0.1, random_state=0).fit(X[:300], y[:300]).model_
    model.calibration = calibrate(model.decision_function(X[300:]), y[300:], model.classes, method=method)
    twin = CalibratedClassifierCV(FrozenEstimator(model), method=method).fit(X[300:], y[300:])
    if method == "isotonic":  # but for its certainty: see above
        for k, one in enumerate(twin.calibrated_classifiers_[0].calibrators):
            unsure(one, model.decision_function(X[300:]).reshape(300, -1)[:, k])
    np.testing.assert_allclose(model.predict_proba(X[:300]), twin.predict_proba(X[:300]), atol=2e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_logistic_loss_has_scikit_learns_probabilities_without_any_calibration(classes):
    X, y = several(classes=classes)
    svm = LinearSVM(loss="logistic", C=0.5, tol=1e-8, intercept="free", dtype="float64", random_state=0).fit(X, y)
    twin = OneVsRestClassifier(LogisticRegression(C=0.5, tol=1e-8)).fit(X, y)
    np.testing.assert_allclose(svm.predict_proba(X), twin.predict_proba(X), atol=1e-4)
    assert (svm.classes_[svm.predict_proba(X).argmax(axis=1)] == svm.predict(X)).all()


def test_small_probabilities_against_the_class_are_not_rounded_away():
    found = Calibration.of_logistic(1).probabilities(np.array([50.0, -50.0, 800.0]))
    np.testing.assert_allclose(found[:2, 0], [np.exp(-50), 1.0], rtol=1e-12)
    assert found[2].tolist() == [0.0, 1.0]


def test_classes_that_were_not_trained_have_no_probability():
    scores = np.array([[1.0, -np.inf, 2.0], [-1e4, -np.inf, -1e4]])
    found = Calibration.of_logistic(3).probabilities(scores)
    assert found[:, 1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found[1].tolist() == [0.5, 0.0, 0.5]
    learned = calibrate(scores, [0, 1], [0, 1, 2])  # nor is anything learned from them
    assert learned.probabilities(scores)[:, 1].tolist() == [0.0, 0.0]


def test_only_what_has_probabilities_has_the_method():
    X, y = several(classes=2)
    svm, logistic = LinearSVM(random_state=0), LinearSVM(loss="logistic")
    assert hasattr(logistic, "predict_proba")
    for machine in (svm, svm.fit(X, y), svm.model_, KernelSVM(random_state=0).fit(X, y)):
        assert not hasattr(machine, "predict_proba")
        with pytest.raises(AttributeError, match="logistic"):
            machine.predict_log_proba(X)
    svm.model_.calibration = calibrate(svm.decision_function(X), y, svm.classes_)
    assert svm.predict_proba(X).shape == (len(X), 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("machine", [LinearSVM, KernelSVM])
def test_a_calibration_survives_being_saved(tmp_path, machine, classes, method):
    X, y = several(classes=classes)
    model = machine(random_state=0).fit(X, y).model_
    model.save(tmp_path / "plain")
    assert dotadd.load(tmp_path / "plain").calibration is None
    model.calibration = calibrate(model.decision_function(X), y, model.classes, method=method)
    model.save(tmp_path / "m")
    loaded = dotadd.load(tmp_path / "m")
    assert loaded.calibration.method == method
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "damage",
    [
        lambda header, tensors: header["calibration"].update(method="pickle"),
        lambda header, tensors: header["calibration"].clear(),
        lambda header, tensors: tensors.pop("calibration.curves"),
        lambda header, tensors: tensors.update({"calibration.offsets": np.array([0, 9])}),
        lambda header, tensors: tensors.update({"calibration.offsets": np.array([0, 1, 2])}),
        lambda header, tensors: tensors["calibration.curves"].fill(np.nan),
        lambda header, tensors: tensors.update({"calibration.curves": tensors["calibration.curves"][:, ::-1].copy()}),
        lambda header, tensors: tensors["calibration.curves"][1].__imul__(2.0),
    ],
)
def test_a_damaged_calibration_is_refused_in_a_line(tmp_path, damage):
    X, y = several(classes=2)
    model = LinearSVM(random_state=0).fit(X, y).model_
    model.calibration = calibrate(model.decision_function(X), y, model.classes, method="isotonic")
    model.save(tmp_path / "m")
    with safe_open(tmp_path / "m", framework="np") as file:
        header, tensors = json.loads(file.metadata()["dotadd"]), load_file(tmp_path / "m")
    damage(header, tensors)
    save_file(tensors, tmp_path / "m", {"dotadd": json.dumps(header)})
    with pytest.raises(ModelError, match="calibration is damaged") as refused:
        dotadd.load(tmp_path / "m")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "tree"}, "sigmoid or isotonic"),
        ({"scores": np.zeros((4, 2))}, "do not fit scores of shape"),
        ({"scores": np.array([0.0, np.nan, 1.0, 2.0])}, "row 2 is not a number"),
        ({"y": [0, 1, 1]}, "pair up"),
        ({"y": [0, 1, 2, 1]}, "none of the classes"),
        ({"weight": np.ones(3)}, "pair up"),
        ({"weight": np.array([1, 1, 1, -1])}, "weight"),
        ({"weight": np.zeros(4)}, "no row"),
        ({"scores": np.zeros(0), "y": []}, "no row"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_a_line(change, words):
    given = {"scores": np.arange(4.0), "y": [0, 1, 0, 1], "classes": TWO, "weight": None} | change
    with pytest.raises(DotaddError, match=words) as refused:
        calibrate(given.pop("scores"), given.pop("y"), given.pop("classes"), **given)
    assert "\n" not in str(refused.value)
