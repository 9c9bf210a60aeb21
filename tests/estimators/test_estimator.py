"""LinearSVM: scikit-learn's conventions, parameters that act, answers that survive being saved."""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from problems import noisy
from sklearn.utils.estimator_checks import parametrize_with_checks

import dotadd
from dotadd import DataError, DotaddError, LinearSVM, NotConvergedWarning, Spectrum
from dotadd.solvers.result import Reason, Result

EXPECTED_FAILURES = dict.fromkeys(
    ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
    "answers agree to the duality gap that tol asks for, not to the last digits that this check wants",
)


@parametrize_with_checks(
    [LinearSVM(random_state=0, dtype="float64"), LinearSVM(random_state=0, loss="logistic")],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        check(estimator)


def three_classes(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    y = np.array(["cat", "dog", "eel"])[np.argmax(X[:, :3] + 0.3 * rng.normal(size=(n, 3)), axis=1)]
    return X, y


def test_two_classes_reach_the_optimum_of_an_independent_solver():
    X, y = noisy(n=100)
    svm = LinearSVM(C=0.5, tol=1e-6, dtype="float64", max_passes=20000, random_state=0).fit(X, y)
    best, w, _ = naive.solve(X, y, np.full(len(y), 0.5), "hinge", "regularized")
    assert svm.result_.primal == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(svm.coef_[0], w, atol=1e-2)
    np.testing.assert_allclose(svm.decision_function(X), X @ svm.coef_[0] + svm.intercept_, rtol=1e-9)


def test_dense_sparse_and_all_their_dtypes_give_the_same_answer():
    X, y = noisy(n=100)
    X = X.astype(np.float32)
    reference = LinearSVM(random_state=0).fit(X, y).coef_
    for other in (
        X.astype(np.float64),
        sp.csr_matrix(X),
        sp.csc_matrix(X.astype(np.float64)),
        sp.csr_array((X[X != 0], np.nonzero(X)[1].astype(np.int64), sp.csr_array(X).indptr.astype(np.int64)), X.shape),
    ):
        np.testing.assert_allclose(LinearSVM(random_state=0).fit(other, y).coef_, reference, rtol=2e-2, atol=5e-3)


def test_several_classes_are_each_against_the_rest():
    X, y = three_classes()
    svm = LinearSVM(tol=1e-6, dtype="float64", max_passes=20000, random_state=0).fit(X, y)
    assert svm.classes_.tolist() == ["cat", "dog", "eel"]
    assert svm.coef_.shape == (3, 5)
    for k, label in enumerate(svm.classes_):
        best = naive.solve(X, np.where(y == label, 1, -1), np.ones(len(y)), "hinge", "regularized")[0]
        assert svm.result_[k].primal == pytest.approx(best, rel=1e-5)
    assert svm.decision_function(X).shape == (300, 3)
    assert svm.score(X, y) > 0.8


def test_each_block_is_expanded_once_for_all_classes():
    class Counting(Spectrum):
        def fill(self, batch, rows, block):
            nonlocal filled
            filled += len(rows)
            super().fill(batch, rows, block)

    rng = np.random.default_rng(0)
    texts, y = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(90)], np.arange(90) % 9
    filled = 0
    with pytest.warns(NotConvergedWarning):
        LinearSVM(Counting(3), max_passes=3, tol=1e-9).fit(texts, y)
    # lengths, three passes, all margins, and the sum of the support vectors: not that for each of nine classes
    assert filled <= 6 * len(texts)


def test_an_index_twice_in_a_row_counts_with_the_sum_of_its_values():
    X, y = noisy(n=100)
    whole = sp.csr_matrix(X)
    halves = sp.csr_matrix((np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), whole.shape)
    one, other = (LinearSVM(random_state=0, dtype="float64").fit(rows, y) for rows in (whole, halves))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


def test_classes_of_strings_solved_together_equal_those_solved_alone():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(120)]
    y = np.arange(120) % 3
    texts = [text[:10] + ["ACACAC", "GGTGGT", "TTTTAA"][k] + text[16:] for text, k in zip(texts, y, strict=True)]
    together = LinearSVM("WeightedDegree(3)", tol=1e-5, random_state=0, dtype="float64").fit(texts, y)
    for k in range(3):
        alone = LinearSVM("WeightedDegree(3)", tol=1e-5, random_state=0, dtype="float64").fit(texts, y == k)
        assert together.result_[k].primal == pytest.approx(alone.result_.primal, rel=1e-4)
    assert together.score(texts, y) == 1.0


CHANGES = {
    "C": 0.01,
    "loss": "logistic",
    "solver": "sgd",
    "intercept": "none",
    "class_weight": {1: 5.0},
    "tol": 0.5,
    "max_passes": 1,
    "max_time": 1e-9,
    "random_state": 1,
    "dtype": "float64",
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_parameter_acts(name):
    X, y = noisy(n=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        before = LinearSVM(random_state=0).fit(X, y)
        after = LinearSVM(random_state=0).set_params(**{name: CHANGES[name]}).fit(X, y)
    assert not np.array_equal(before.coef_, after.coef_)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("C", 0.0),
        ("C", "1"),
        ("C", float("nan")),
        ("loss", "huber"),
        ("solver", "libsvm"),
        ("intercept", True),
        ("class_weight", "auto"),
        ("tol", -1.0),
        ("max_passes", 0),
        ("max_time", 0),
        ("n_jobs", 0),
        ("dtype", "int8"),
        ("phi", 3),
    ],
)
def test_a_parameter_that_cannot_act_is_refused_by_name(parameter, value):
    X, y = noisy()
    with pytest.raises(DotaddError, match=parameter):
        LinearSVM(**{parameter: value}).fit(X, y)


def test_balanced_classes_weigh_the_same_in_total():
    X, y = noisy(n=200, shift=2.0)
    balanced = LinearSVM(class_weight="balanced", tol=1e-6, dtype="float64", max_passes=20000, random_state=0).fit(X, y)
    count = {label: np.sum(y == label) for label in (-1, 1)}
    given = {label: len(y) / (2 * count[label]) for label in count}
    explicit = LinearSVM(class_weight=given, tol=1e-6, dtype="float64", max_passes=20000, random_state=0).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, explicit.coef_, rtol=1e-6)


def test_stopping_early_keeps_the_model_and_quotes_the_gap():
    X, y = noisy(n=300)
    told = r"limit on passes .* relative duality gap is 0\.\d+ .*raise max_passes"
    with pytest.warns(NotConvergedWarning, match=told):
        svm = LinearSVM(max_passes=2, tol=1e-9, random_state=0).fit(X, y)
    assert svm.result_.reason is Reason.MAX_PASSES
    assert svm.score(X, y) > 0.5


def test_an_interrupted_fit_keeps_the_model():
    X, y = noisy(n=300)

    def interrupt(progress, k, n):
        if progress.passes == 3:
            raise KeyboardInterrupt

    svm = LinearSVM(tol=1e-9, random_state=0)
    told = pytest.warns(NotConvergedWarning, match="training was interrupted after 3 passes")
    with told, pytest.raises(KeyboardInterrupt):
        svm.fit(X, y, on_progress=interrupt)
    assert svm.result_.reason is Reason.INTERRUPTED
    assert 0.0 < svm.result_.gap < 1.0


def test_a_path_of_costs_warm_starts_each_from_the_last():
    X, y = noisy(n=300)
    before: Result | None = None
    for C in (0.01, 0.1, 1.0):
        svm = LinearSVM(C=C, tol=1e-4, random_state=0, max_passes=5000).fit(X, y, start=before)
        cold = LinearSVM(C=C, tol=1e-4, random_state=0, max_passes=5000).fit(X, y)
        assert svm.result_.primal == pytest.approx(cold.result_.primal, rel=2e-4)
        before = svm.result_
    with pytest.raises(DotaddError, match="same examples"):
        LinearSVM().fit(X[:50], y[:50], start=before)


def test_a_saved_model_predicts_the_same(tmp_path):
    X, y = three_classes()
    svm = LinearSVM(random_state=0).fit(X, y)
    svm.save(tmp_path / "m.dotadd")
    model = dotadd.load(tmp_path / "m.dotadd")
    np.testing.assert_array_equal(model.predict(X), svm.predict(X))
    np.testing.assert_array_equal(model.decision_function(X), svm.decision_function(X))


def test_one_class_only_is_refused():
    with pytest.raises(DataError, match=r"all labels are 1: one class only"):
        LinearSVM().fit(np.eye(3), [1, 1, 1])


def test_strings_without_a_map_get_advice():
    with pytest.raises(DotaddError, match=r"strings need a feature map: for text try WordNGrams"):
        LinearSVM().fit(["a", "b"], [0, 1])


def test_a_foreign_letter_is_refused_with_its_place():
    with pytest.raises(DataError, match=r"row 1, column 3: letter 'N' is not in the alphabet"):
        LinearSVM("Spectrum(2)").fit(["ACGT", "ACNT"], [0, 1])


def test_a_kernel_given_by_its_map_separates_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = X[:, 0] * X[:, 1] > 0
    assert LinearSVM("Polynomial(2)", C=10, random_state=0).fit(X, y).score(X, y) > 0.95
    assert LinearSVM(C=10, random_state=0).fit(X, y).score(X, y) < 0.75
