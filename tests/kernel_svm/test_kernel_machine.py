"""KernelSVM: the answers of scikit-learn's SVC, its conventions, and bad input refused in one line."""

import os
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_problems import MatrixGram, blobs, rbf
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from dotadd import DataError, DotaddError, IndefiniteKernelWarning, KernelSVM, NotConvergedWarning, Spectrum
from dotadd.data.batches import DenseRows
from dotadd.kernel_svm.problem import SOLVERS, KernelProblem, KernelSettings, answer
from dotadd.solvers.result import Reason

EXPECTED_FAILURES = dict.fromkeys(
    ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
    "the variance that gamma='scale' stands for counts rows, not weights; and answers agree to tol only",
)


@parametrize_with_checks([KernelSVM(random_state=0)], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        check(estimator)


def clouds(classes, n=300, test=1000, seed=0):
    """Classes by the angle of the first two columns, with noise; training and test examples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + test, 4))
    angle = np.arctan2(*(X[:, :2] + 0.2 * rng.normal(size=(n + test, 2))).T)
    y = (np.floor((angle / (2 * np.pi) + 0.5) * classes) % classes).astype(int)
    return X[:n], y[:n], X[n:]


def duals(svm, K, y):
    """The dual objective of each pair of classes, by its definition, from the support vectors and coefficients."""
    k, labels = len(svm.classes_), np.searchsorted(svm.classes_, y[svm.support_])
    dense = svm.dual_coef_.toarray() if sp.issparse(svm.dual_coef_) else np.asarray(svm.dual_coef_)
    found = []
    for i in range(k):
        for j in range(i + 1, k):
            mine, theirs = np.flatnonzero(labels == i), np.flatnonzero(labels == j)
            rows = np.concatenate([mine, theirs])
            c = np.concatenate([dense[j - 1, mine], dense[i, theirs]])
            at = svm.support_[rows]
            found.append(np.abs(c).sum() - 0.5 * c @ K[np.ix_(at, at)] @ c)
    return np.array(found)


def assert_agree(ours, theirs, K, y, test, kept=slice(None)):
    """`kept` are the rows that `theirs` was trained on."""
    np.testing.assert_allclose(duals(ours, K, y), duals(theirs, K[kept][:, kept], y[kept]), rtol=1e-4)
    results = ours.result_ if isinstance(ours.result_, list) else [ours.result_]
    np.testing.assert_allclose([result.dual for result in results], duals(ours, K, y), rtol=1e-4)
    shown = test[:, kept] if theirs.kernel == "precomputed" else test
    assert np.mean(ours.predict(test) == theirs.predict(shown)) >= 0.999
    a, b = ours.decision_function(test), theirs.decision_function(shown)
    assert a.shape == b.shape
    near = np.abs(a - b) < 0.05  # but where a vote that hangs by a thread falls the other way
    assert near.mean() > 0.995


KERNELS = {
    "rbf": ({"gamma": 0.5}, lambda A: np.exp(-0.5 * ((A[:, None] - A[None]) ** 2).sum(axis=2))),
    "poly": ({"gamma": 0.3, "degree": 2, "coef0": 1.0}, lambda A: (0.3 * A @ A.T + 1.0) ** 2),
    "linear": ({}, lambda A: A @ A.T),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_objective_and_predictions_agree_with_libsvm(kernel, classes, form):
    X, y, test = clouds(classes)
    parameters, of = KERNELS[kernel]
    ours = KernelSVM(kernel, C=2.0, random_state=0, **parameters).fit(form(X), y)
    theirs = SVC(kernel=kernel, C=2.0, **parameters).fit(form(X), y)
    assert_agree(ours, theirs, of(X), y, form(test))


@pytest.mark.parametrize("classes", [2, 4])
def test_precomputed_kernels_agree_with_libsvm(classes):
    X, y, test = clouds(classes)
    of = KERNELS["rbf"][1]
    every = of(np.vstack([X, test]))
    K, T = every[: len(X), : len(X)], every[len(X) :, : len(X)]
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    ours = KernelSVM("precomputed", random_state=0).fit(K, y, weight)
    kept = np.flatnonzero(weight)  # SVC counts support vectors among these
    theirs = SVC(kernel="precomputed").fit(K[np.ix_(kept, kept)], y[kept], weight[kept])
    assert_agree(ours, theirs, K, y, T, kept)
    assert weight[ours.support_].all()


@pytest.mark.parametrize("classes", [2, 4])
def test_weights_of_classes_and_examples_agree_with_libsvm(classes):
    X, y, test = clouds(classes)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(X))
    weight[::9] = 0.0
    for class_weight, weights in (({0: 3.0, 1: 0.5}, weight), ("balanced", np.ones(len(X)))):
        kept = np.flatnonzero(weights)  # SVC counts support vectors among these
        ours = KernelSVM(gamma=0.5, class_weight=class_weight, random_state=0).fit(X, y, weights)
        theirs = SVC(gamma=0.5, class_weight=class_weight).fit(X[kept], y[kept], weights[kept])
        assert_agree(ours, theirs, KERNELS["rbf"][1](X), y, test, kept)


def test_gamma_means_what_it_means_in_scikit_learn():
    X, y, test = clouds(2)
    for gamma in ("scale", "auto"):
        ours, theirs = KernelSVM(gamma=gamma, random_state=0).fit(3 * X, y), SVC(gamma=gamma).fit(3 * X, y)
        assert np.abs(ours.decision_function(3 * test) - theirs.decision_function(3 * test)).max() < 0.02


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_optimum(solver):
    X, y, test = clouds(3)
    ours = KernelSVM(gamma=0.5, solver=solver, random_state=0).fit(X, y)
    assert_agree(ours, SVC(gamma=0.5).fit(X, y), KERNELS["rbf"][1](X), y, test)


def test_what_is_said_of_solvers_is_what_their_table_says():
    text = " ".join((KernelSVM.__doc__ or "").split())
    assert [solver.name for solver in SOLVERS.values() if f'"{solver.name}"' not in text] == []
    assert [solver.what for solver in SOLVERS.values() if solver.what not in text] == []
    with pytest.raises(DotaddError, match=", ".join(SOLVERS)):
        KernelSVM(solver="dcd").fit(np.eye(2), [0, 1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_starts_from_any_alpha(solver):
    X, y = blobs(n=80, shift=0.3)
    problem = KernelProblem(MatrixGram(rbf(X, 0.5)), y, np.ones(80))
    cold = SOLVERS[solver](problem, KernelSettings(tol=1e-4))
    warm = SOLVERS[solver](problem, KernelSettings(tol=1e-3), cold.alpha)
    assert cold.steps > 0
    assert (warm.steps, warm.reason) == (0, Reason.CONVERGED)
    np.testing.assert_allclose(warm.alpha, cold.alpha)


def test_a_problem_that_was_not_begun_has_the_numbers_of_alpha_zero():
    cost, nothing = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    found = answer("smo", Reason.MAX_TIME, nothing, np.array([1, -1, 1], np.int8), cost, nothing)
    assert (found.primal, found.dual, found.violation, found.intercept) == (6.0, 0.0, 2.0, 0.0)
    assert not found.trained


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_attributes_are_laid_out_as_in_scikit_learn(form):
    X, y, _ = clouds(3)
    names = np.array(["ant", "bee", "cow"])[y]
    svm = KernelSVM("linear", random_state=0).fit(form(X), names)
    assert svm.classes_.tolist() == ["ant", "bee", "cow"]
    assert svm.dual_coef_.shape == (2, len(svm.support_))
    assert svm.intercept_.shape == (3,)
    assert svm.n_iter_.shape == (3,)
    assert svm.n_features_in_ == 4
    assert svm.n_support_.sum() == len(svm.support_)
    assert names[svm.support_].tolist() == np.repeat(svm.classes_, svm.n_support_).tolist()
    vectors = svm.support_vectors_
    assert sp.issparse(vectors) == (form is sp.csr_matrix)
    vectors = vectors.toarray() if sp.issparse(vectors) else vectors
    assert np.array_equal(vectors, X[svm.support_])
    # the decision between ant and bee, from what is told of it
    ant, bee = (np.repeat(np.arange(3), svm.n_support_) == k for k in (0, 1))
    w = svm.dual_coef_[0, ant] @ vectors[ant] + svm.dual_coef_[0, bee] @ vectors[bee]
    decisions = svm.model_.decisions(svm.model_.vectors.slice(0, 5))
    np.testing.assert_allclose(decisions[0], vectors[:5] @ w + svm.intercept_[0], rtol=1e-5, atol=1e-5)


def test_zero_weight_is_as_good_as_absence():
    X, y, test = clouds(2)
    kept = np.random.default_rng(2).random(len(X)) < 0.5
    some = KernelSVM(random_state=0).fit(X[kept], y[kept])
    weighted = KernelSVM(random_state=0).fit(X, y, kept.astype(float))
    np.testing.assert_allclose(weighted.decision_function(test), some.decision_function(test), rtol=1e-9)
    assert np.array_equal(weighted.support_, np.flatnonzero(kept)[some.support_])


def strings(n=80, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    texts = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(n)]
    return [text[:8] + ["ACACAC", "GGTGGT", "TTTTAA"][k] + text[14:] for text, k in zip(texts, y, strict=True)], y


def counts(texts):
    """How often each of the 16 pairs of letters occurs."""
    two = [a + b for a in "ACGT" for b in "ACGT"]
    return np.array([[sum(text[i : i + 2] == pair for i in range(len(text))) for pair in two] for text in texts], float)


@pytest.mark.parametrize("kernel", ["Spectrum(2)", Spectrum(2)])
def test_any_feature_map_is_a_kernel_of_strings(kernel):
    texts, y = strings()
    others, _ = strings(seed=1)
    ours = KernelSVM(kernel, C=0.1, random_state=0).fit(texts, y)
    K = counts(texts) @ counts(texts).T
    theirs = SVC(kernel="precomputed", C=0.1).fit(K, y)
    np.testing.assert_allclose(duals(ours, K, y), duals(theirs, K, y), rtol=1e-4)
    assert np.array_equal(ours.predict(others), theirs.predict(counts(others) @ counts(texts).T))
    with pytest.raises(AttributeError, match="strings have no array"):
        _ = ours.support_vectors_


def test_a_function_of_ones_own_is_a_kernel():
    X, y, test = clouds(3)

    def of(A, B):
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    ours = KernelSVM(of, random_state=0).fit(X, y)
    assert_agree(ours, SVC(gamma=0.5).fit(X, y), of(X, X), y, test)


CHANGES = {
    "kernel": "linear",
    "C": 0.01,
    "gamma": 7.0,
    "class_weight": {1: 5.0},
    "tol": 0.5,
    "max_time": 1e-9,
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_parameter_acts(name):
    X, y, test = clouds(2, n=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        before = KernelSVM(solver="smo", random_state=0).fit(X, y)
        after = KernelSVM(solver="smo", random_state=0).set_params(**{name: CHANGES[name]}).fit(X, y)
    assert not np.allclose(before.decision_function(test), after.decision_function(test), rtol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0.0}, "C is 0.0"),
        ({"C": -1}, "C is -1"),
        ({"C": float("nan")}, "C is nan"),
        ({"kernel": "gauss"}, "there is no kernel 'gauss'"),
        ({"kernel": "Gauss(1)"}, "there is no kernel 'Gauss'"),
        ({"kernel": 3}, "there is no kernel 3"),
        ({"gamma": -1.0}, "gamma has to be a number above 0"),
        ({"kernel": "poly", "degree": 0}, "degree has to be"),
        ({"solver": "libsvm"}, "solver is 'libsvm'"),
        ({"tol": 0}, "tol is 0"),
        ({"memory": "much"}, "'much' is no size of memory"),
        ({"class_weight": "auto"}, "class_weight is 'auto'"),
        ({"class_weight": {1: 0.0}}, "class_weight gives class 1 the weight 0"),
        ({"max_time": 0}, "max_time is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_a_parameter_that_cannot_act_is_refused_by_name(parameters, words):
    X, y, _ = clouds(2, n=20)
    with pytest.raises(DotaddError, match=words) as caught:
        KernelSVM(**parameters).fit(X, y)
    assert "\n" not in str(caught.value)


def test_bad_data_is_refused_in_one_line():
    X, y, _ = clouds(2, n=20)
    K = X @ X.T
    holed, skewed = X.copy(), K.copy()
    holed[3, 1], skewed[2, 5] = np.nan, 99.0
    for given, kernel, words in (
        (holed, "rbf", "row 3.*[Nn]a[Nn]"),
        (np.where(np.eye(20), np.nan, K), "precomputed", "row 0.*[Nn]a[Nn]"),
        (K[:, :7], "precomputed", "not square: it has 20 rows and 7 columns"),
        (skewed, "precomputed", r"not symmetric: entry \(2, 5\) is 99"),
        (X, lambda A, B: A @ B.T + A[:, :1], "not symmetric"),
        (["ACGT"] * 20, "rbf", "use a map of strings such as Spectrum"),
    ):
        with pytest.raises(DotaddError, match=words) as caught:
            KernelSVM(kernel, random_state=0).fit(given, y)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="all labels are 1: one class only"):
        KernelSVM().fit(X, np.ones(20, int))
    with pytest.raises(DataError, match=r"row 1, column 3: letter 'N'"):
        KernelSVM("Spectrum(2)").fit(["ACGT", "ACNT"], [0, 1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_indefinite_kernel_is_told_of_and_training_ends(solver):
    X, y, _ = clouds(2, n=150)
    K = X @ X.T
    for given, kernel in ((X, "sigmoid"), (K - 3 * np.eye(150), "precomputed")):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            svm = KernelSVM(kernel, gamma=2.0, coef0=1.0, solver=solver, max_time=20.0, random_state=0).fit(given, y)
        assert any(one.category is IndefiniteKernelWarning and "indefinite" in str(one.message) for one in told)
        results = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
        assert all(result.reason is not Reason.MAX_TIME for result in results)
        assert np.isfinite(svm.decision_function(given)).all()


def test_a_definite_matrix_is_not_called_indefinite():
    X, y, _ = clouds(2, n=150)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefiniteKernelWarning)
        KernelSVM("precomputed", random_state=0).fit((X @ X.T).astype(np.float32), y)  # of rank 4


def test_a_time_limit_keeps_the_model_and_tells_the_violation():
    X, y, test = clouds(4, n=400)
    with pytest.warns(NotConvergedWarning, match=r"the time limit was reached .*violated by .*raise max_time"):
        svm = KernelSVM(solver="smo", max_time=1e-6, random_state=0).fit(X, y)
    assert all(result.reason is Reason.MAX_TIME for result in svm.result_)
    assert svm.predict(test).shape == (len(test),)


def test_an_interrupted_fit_keeps_the_model_of_the_pairs_before(monkeypatch):
    X, y, _ = clouds(3, n=400)
    real, calls = SOLVERS["smo"], []

    def interrupted_in_the_second(problem, settings, alpha=None):
        calls.append(len(problem))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return real(problem, settings, alpha)

    monkeypatch.setitem(SOLVERS, "double_chunking", interrupted_in_the_second)
    svm = KernelSVM(gamma=0.5, random_state=0)
    told = pytest.warns(NotConvergedWarning, match="training was interrupted .* in 2 of 3 pairs")
    with told, pytest.raises(KeyboardInterrupt):
        svm.fit(X, y)
    assert [result.reason for result in svm.result_] == [Reason.CONVERGED, Reason.INTERRUPTED, Reason.INTERRUPTED]
    assert len(calls) == 2
    two = y != 2
    first = svm.model_.decisions(DenseRows(X[two]))[0]
    alone = KernelSVM(gamma=0.5, solver="smo", random_state=0).fit(X[two], y[two])
    np.testing.assert_allclose(first, -alone.decision_function(X[two]), atol=5e-3)


def test_progress_is_told_of_each_pair():
    X, y, _ = clouds(3, n=200)
    told = []
    KernelSVM(random_state=0).fit(X, y, on_progress=lambda progress, k, n: told.append((k, n, progress.support)))
    assert {(k, n) for k, n, _ in told} == {(0, 3), (1, 3), (2, 3)}
    assert max(support for *_, support in told) > 0
