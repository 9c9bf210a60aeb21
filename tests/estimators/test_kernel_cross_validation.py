"""KernelSVMCV: each fold and C is what a fit of its own on the rows of that fold would give."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import dotadd
from dotadd import DataError, DotaddError, KernelSVM, KernelSVMCV, Spectrum

CS = [0.1, 1.0, 10.0]
TIGHT = {"tol": 1e-5, "random_state": 0}


def rows(n=150, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, ((X**2).sum(axis=1) + 0.7 * rng.normal(size=n)).argsort().argsort() * classes // n


@pytest.fixture(params=["whole", "in parts"])
def memory(request):
    """Room for the matrix of all examples, and for some rows of it."""
    return {"whole": "10MB", "in parts": 60_000}[request.param]


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_scores_are_those_of_machines_trained_fold_by_fold(classes, memory):
    X, y = rows(classes=classes)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    svm = KernelSVMCV(gamma=0.5, Cs=CS, cv=splits, cv_tol=1e-5, memory=memory, **TIGHT).fit(X, y)
    for i, C in enumerate(CS):
        held = np.full((len(y), classes) if classes > 2 else len(y), np.nan)
        for fold, (train, test) in enumerate(splits):
            one = KernelSVM(gamma=0.5, C=C, **TIGHT).fit(X[train], y[train])
            held[test] = one.decision_function(X[test])
            assert svm.scores_[fold, i] == pytest.approx(one.score(X[test], y[test]), abs=1e-9)
        if svm.C_ == C:
            np.testing.assert_allclose(svm.held_out_scores_, held, atol=1e-3)
    best = KernelSVM(gamma=0.5, C=svm.C_, **TIGHT).fit(X, y)
    np.testing.assert_allclose(svm.decision_function(X), best.decision_function(X), atol=1e-3)
    assert svm.machine_.C == svm.C_
    assert svm.model_.training["cross_validation"]["folds"] == 4


def test_the_choice_is_that_of_grid_search():
    X, y = rows(classes=3)
    ours = KernelSVMCV(gamma=0.5, Cs=CS, cv=StratifiedKFold(5), cv_tol=1e-5, **TIGHT).fit(X, y)
    grid = GridSearchCV(KernelSVM(gamma=0.5, **TIGHT), {"C": CS}, cv=StratifiedKFold(5)).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=1e-9)
    assert grid.best_params_["C"] == ours.C_


@pytest.mark.parametrize("solver", ["double_chunking", "chunking", "smo"])
def test_any_solver_on_any_number_of_threads_gives_the_same(solver):
    X, y = rows(classes=3)
    one, two = (
        KernelSVMCV(gamma=0.5, Cs=CS, cv=3, solver=solver, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.held_out_scores_, two.held_out_scores_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    tight = KernelSVMCV(gamma=0.5, Cs=CS, cv=3, cv_tol=1e-6, random_state=0).fit(X, y)
    np.testing.assert_allclose(one.scores_, tight.scores_, atol=0.021)  # a row of a fold


def test_more_folds_and_values_of_c_make_no_more_values_of_the_kernel():
    X, y = rows(120)

    def made(Cs, cv):
        values = []

        def kernel(a, b):
            values.append(len(a) * len(b))
            return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(axis=2))

        assert KernelSVMCV(kernel, Cs=Cs, cv=cv, random_state=0, refit=False).fit(X, y).best_score_ > 0.6
        return sum(values)

    assert made(CS, 10) == made([1.0], 2)


def test_strings_weights_and_a_matrix_that_is_given():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(80)]
    y = np.array([("AC" in x) != ("GT" in x) for x in X])
    weight = rng.integers(0, 3, len(y)).astype(float)
    svm = KernelSVMCV(Spectrum(2), Cs=CS, cv=4, cv_tol=1e-5, **TIGHT).fit(X, y, sample_weight=weight)
    assert np.isfinite(svm.held_out_scores_).all()
    assert len(svm.held_out_scores_) == np.count_nonzero(weight)
    phi = Spectrum(2).fit_transform(X)
    K = (phi @ phi.T).toarray()
    given = KernelSVMCV("precomputed", Cs=CS, cv=4, cv_tol=1e-5, **TIGHT).fit(K, y, sample_weight=weight)
    np.testing.assert_allclose(given.scores_, svm.scores_, atol=1e-9)
    np.testing.assert_allclose(given.decision_function(K), svm.decision_function(X), atol=1e-3)


def test_groups_times_rules_probabilities_and_thresholds():
    X, y = rows(200)
    groups = np.arange(200) // 10
    svm = KernelSVMCV(Cs=CS, cv=4, probability="sigmoid", threshold="recall=0.9", random_state=0)
    svm.fit(X, y, groups=groups)
    assert svm.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert (svm.predict(X)[y == 1] == 1).mean() > 0.8
    late = KernelSVMCV(Cs=CS, cv=4, rule="one_standard_error", random_state=0).fit(X, y, times=True)
    assert np.isnan(late.held_out_scores_[:40]).all()
    assert CS[int(np.argmax(late.cv_results_["mean_test_score"]))] >= late.C_
    clone(svm).fit(X, y)


def test_the_range_of_c_follows_the_length_of_rows():
    X, y = rows()
    near, far = (KernelSVMCV("linear", Cs=4, cv=3, random_state=0).fit(X * by, y) for by in (1.0, 100.0))
    np.testing.assert_allclose(far.cv_results_["param_C"], near.cv_results_["param_C"] * 1e-4, rtol=1e-9)


def test_a_saved_model_tells_how_c_was_chosen(tmp_path):
    X, y = rows()
    svm = KernelSVMCV(Cs=CS, cv=3, random_state=0).fit(X, y)
    svm.save(tmp_path / "m.dotadd")
    model = dotadd.load(tmp_path / "m.dotadd")
    assert model.training["cross_validation"]["C"] == CS
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X))


def test_time_that_is_up_before_anything_was_tried_is_told():
    with pytest.raises(DotaddError, match="before one C was tried"):
        KernelSVMCV(Cs=CS, cv=3, max_time=1e-9).fit(*rows())


def test_ctrl_c_keeps_what_was_tried():
    def stop(progress, k, n):
        if k >= 7:
            raise KeyboardInterrupt

    svm = KernelSVMCV(Cs=CS, cv=4, n_jobs=1, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        svm.fit(*rows(400), on_progress=stop)
    assert not hasattr(svm, "model_")
    assert svm.scores_.shape == (4, len(CS))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"Cs": [-1]}, "Cs"),
        ({"Cs": []}, "Cs"),
        ({"cv": 1}, "cv"),
        ({"rule": "worst"}, "rule"),
        ({"scoring": "best"}, "scoring"),
        ({"solver": "dcd"}, "solver"),
        ({"kernel": "round"}, "round"),
    ],
)
def test_bad_parameters_are_told_in_one_line(given, told):
    with pytest.raises(DotaddError, match=told) as error:
        KernelSVMCV(**given).fit(*rows(40))
    assert "\n" not in str(error.value)


def test_a_class_that_is_rarer_than_folds_is_told():
    X, y = rows(40)
    with pytest.raises(DataError, match="no row of class 2"):
        KernelSVMCV(cv=StratifiedKFold(3), Cs=CS).fit(X, np.where(np.arange(40) == 3, 2, y))
