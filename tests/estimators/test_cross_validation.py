"""LinearSVMCV: each fold and C is what a fit of its own on the rows of that fold would give."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

import dotadd
from dotadd import DataError, DotaddError, LinearSVM, LinearSVMCV, WordNGrams
from dotadd.errors import StreamingWarning
from dotadd.estimators import trial
from dotadd.model.probability import calibrate

CS = [0.01, 0.1, 1.0, 10.0]
TIGHT = {"tol": 1e-6, "random_state": 0, "dtype": "float64"}


def rows(n=240, d=8, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    directions = rng.normal(size=(d, classes))
    return X, np.argmax(X @ directions + 1.5 * rng.normal(size=(n, classes)), axis=1)


def texts(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return [" ".join(f"w{k}" for k in rng.zipf(1.4, 12) % 50) + f" {'spam' * (a ^ (rng.random() < 0.2))}" for a in y], y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_scores_are_those_of_machines_trained_fold_by_fold(classes, loss):
    X, y = rows(classes=classes)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    svm = LinearSVMCV(Cs=CS, cv=splits, loss=loss, cv_tol=1e-6, **TIGHT).fit(X, y)
    for i, C in enumerate(CS):
        held = np.full((len(y), classes) if classes > 2 else len(y), np.nan)
        for fold, (train, test) in enumerate(splits):
            one = LinearSVM(C=C, loss=loss, **TIGHT).fit(X[train], y[train])
            held[test] = one.decision_function(X[test])
            assert svm.scores_[fold, i] == pytest.approx(one.score(X[test], y[test]), abs=1.1 / len(test))
        if svm.C_ == C:
            np.testing.assert_allclose(svm.held_out_scores_, held, atol=2e-2 * np.abs(held).max())
    assert (svm.cv_results_["max_gap"] <= 1e-6).all()
    best = LinearSVM(C=svm.C_, loss=loss, **TIGHT).fit(X, y)
    np.testing.assert_allclose(svm.decision_function(X), best.decision_function(X), atol=1e-2)


def test_the_choice_is_that_of_grid_search():
    X, y = texts()
    phi, splits = WordNGrams((1, 1)), list(KFold(5).split(X))
    ours = LinearSVMCV(phi, Cs=CS, cv=splits, cv_tol=1e-6, **TIGHT).fit(X, y)
    grid = GridSearchCV(LinearSVM(phi, **TIGHT), {"C": CS}, cv=splits).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=0.01)
    assert grid.best_params_["C"] == ours.C_
    for name in ("mean_test_score", "std_test_score", "rank_test_score"):
        assert ours.cv_results_[name].shape == grid.cv_results_[name].shape
    assert ours.cv_results_["params"] == grid.cv_results_["params"]


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "f1_macro", "balanced_accuracy"])
def test_what_is_best_is_measured_as_scikit_learn_does(scoring):
    X, y = rows()
    splits = list(KFold(3).split(X))
    ours = LinearSVMCV(Cs=CS, cv=splits, cv_tol=1e-7, scoring=scoring, **TIGHT).fit(X, y)
    for i, C in enumerate(CS):
        theirs = cross_val_score(LinearSVM(C=C, **TIGHT), X, y, cv=splits, scoring=scoring)
        np.testing.assert_allclose(ours.scores_[:, i], theirs, atol=0.01)


def test_bits_do_not_depend_on_threads():
    X, y = texts()
    one, two = (LinearSVMCV(WordNGrams((1, 2)), Cs=5, cv=3, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert one.held_out_scores_.tobytes() == two.held_out_scores_.tobytes()
    assert one.scores_.tobytes() == two.scores_.tobytes()
    assert one.C_ == two.C_


def test_rows_that_are_not_kept_give_the_same_folds():
    X, y = texts()
    kept, made = (
        LinearSVMCV(WordNGrams((1, 2)), Cs=CS, cv=3, keep=keep, cv_tol=1e-6, **TIGHT).fit(X, y)
        for keep in (True, False)
    )
    np.testing.assert_allclose(kept.scores_, made.scores_, atol=0.021)
    np.testing.assert_allclose(kept.held_out_scores_, made.held_out_scores_, atol=0.05)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("solver", ["stream", "ocas"])
def test_from_disk_all_folds_are_trained_in_the_same_readings(tmp_path, classes, solver):
    X, y = rows(1500, 4, classes)
    weight = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    path = tmp_path / "rows.csv"
    lines = (",".join(map(str, (label, times, *row))) for label, times, row in zip(y, weight, X, strict=True))
    path.write_text("label,weight,a,b,c,d\n" + "".join(line + "\n" for line in lines))
    tight = {"cv_tol": 1e-3, "random_state": 0, "dtype": "float64", "cv": 3, "Cs": [1e-4, 1e-3, 1e-2]}
    memory = LinearSVMCV(**tight).fit(X, y, sample_weight=weight)
    data, passes = dotadd.open(str(path), weight="weight"), {}
    disk = LinearSVMCV(solver=solver, memory="20kB", **tight)
    with pytest.warns(StreamingWarning):
        disk.fit(data, keep_cache=False, on_progress=lambda progress, k, n: passes.update({k: progress.passes}))
    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]
    assert (disk.cv_results_["max_gap"] <= 1e-3).all()
    count = 3 * (classes if classes > 2 else 1)  # of machines for each C
    for i in range(3):
        assert len({passes[k] for k in range(i * count, (i + 1) * count)}) == 1 or solver == "ocas"
    np.testing.assert_allclose(disk.scores_, memory.scores_, atol=0.02)  # rows near the border may change sides
    same = LinearSVMCV(**tight | {"Cs": [disk.C_]}).fit(X, y, sample_weight=weight)
    # |w - w*|^2 / 2 is at most the gap times the primal, which is below 10 here, and rows are about 3 long
    np.testing.assert_allclose(disk.held_out_scores_, same.held_out_scores_, atol=0.4)
    assert np.mean(np.abs(disk.held_out_scores_ - same.held_out_scores_)) < 0.05
    np.testing.assert_allclose(disk.decision_function(X), same.decision_function(X), atol=0.4)


def test_values_of_c_that_have_no_room_together_come_after_each_other(tmp_path, monkeypatch):
    X, y = rows(400)
    path = str(tmp_path / "rows.csv")
    names = ",".join(["label", *"abcdefgh"[: X.shape[1]]])
    np.savetxt(path, np.column_stack([y, X]), delimiter=",", header=names, comments="")
    tight = {"cv_tol": 1e-3, "random_state": 0, "dtype": "float64", "cv": 3, "Cs": [1e-4, 1e-3, 0.01]}
    together, apart = (LinearSVMCV(solver="ocas", memory="5kB", **tight) for _ in range(2))
    with pytest.warns(StreamingWarning):
        together.fit(path)
    monkeypatch.setattr(trial, "available", lambda: 4)
    with pytest.warns(StreamingWarning):
        apart.fit(path)
    np.testing.assert_allclose(apart.scores_, together.scores_, atol=0.01)
    assert max(apart.cv_results_["max_gap"]) <= 1e-3


def test_a_row_of_weight_zero_is_as_if_it_were_not_there():
    X, y = rows()
    weight = np.ones(len(y))
    weight[::5] = 0.0
    folds = np.arange(len(y)) % 3
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]
    ours = LinearSVMCV(Cs=CS, cv=splits, cv_tol=1e-6, **TIGHT).fit(X, y, sample_weight=weight)
    there = weight > 0.0
    fewer = [(np.flatnonzero(folds[there] != f), np.flatnonzero(folds[there] == f)) for f in range(3)]
    theirs = LinearSVMCV(Cs=CS, cv=fewer, cv_tol=1e-6, **TIGHT).fit(X[there], y[there])
    np.testing.assert_allclose(ours.scores_, theirs.scores_, atol=0.05)


def test_one_standard_error_takes_the_smallest_c_that_is_nearly_as_good():
    X, y = rows()
    best, modest = (
        LinearSVMCV(Cs=9, cv=5, random_state=0, rule=rule).fit(X, y) for rule in ("best", "one_standard_error")
    )
    mean, spread = best.scores_.mean(axis=0), best.scores_.std(axis=0, ddof=1) / np.sqrt(5)
    Cs = best.cv_results_["param_C"]
    assert Cs[np.argmax(mean)] == best.C_
    assert modest.C_ == Cs[np.flatnonzero(mean >= mean.max() - spread[np.argmax(mean)])[0]] <= best.C_


def test_values_of_c_are_where_the_data_is():
    X, y = rows()
    small, large = (LinearSVMCV(Cs=6, cv=2, random_state=0).fit(scale * X, y) for scale in (0.01, 100.0))
    for svm, scale in ((small, 0.01), (large, 100.0)):
        middle = svm.cv_results_["param_C"][3] * np.median(np.sum((scale * X) ** 2, axis=1))
        assert 0.3 < middle < 3.2


def test_groups_and_times_reach_the_folds():
    X, y = rows()
    groups = np.arange(len(y)) // 12
    svm = LinearSVMCV(Cs=[1.0], cv=4, random_state=0, refit=False).fit(X, y, groups=groups)
    assert not hasattr(svm, "model_")
    assert np.isfinite(svm.held_out_scores_).all()
    late = LinearSVMCV(Cs=[1.0], cv=4, random_state=0).fit(X, y, times=True)
    assert np.isnan(late.held_out_scores_[: len(y) // 5]).all()
    assert np.isfinite(late.held_out_scores_[len(y) // 5 :]).all()


def test_from_a_file(tmp_path):
    X, y = texts()
    path = tmp_path / "mails.csv"
    path.write_text("label,text\n" + "".join(f"{label},{text}\n" for label, text in zip(y, X, strict=True)))
    phi = "WordNGrams((1, 1))"
    svm = LinearSVMCV(phi, Cs=CS, cv=3, random_state=0).fit(str(path))
    same = LinearSVMCV(phi, Cs=CS, cv=3, random_state=0).fit(X, y)
    assert svm.scores_.tobytes() == same.scores_.tobytes()
    assert svm.model_.training["cross_validation"]["C"] == CS
    svm.save(tmp_path / "m.dotadd")


@pytest.mark.parametrize("memory", [None, "20kB"])
def test_groups_are_a_column_of_the_file(tmp_path, memory):
    X, y = rows(600, 3)
    groups = [f"g{k}" for k in np.arange(len(y)) // 20]
    path = tmp_path / "rows.csv"
    lines = (",".join(map(str, line)) for line in zip(y, groups, *X.T, strict=True))
    path.write_text("label,person,a,b,c\n" + "".join(line + "\n" for line in lines))
    phi = "Number('a') + Number('b') + Number('c')"
    cv = {"Cs": [1e-3], "cv": 4, "random_state": 0, "cv_tol": 1e-5, "dtype": "float64"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamingWarning)
        named = LinearSVMCV(phi, memory=memory, **cv).fit(str(path), groups="person")
    given = LinearSVMCV(phi, **cv).fit(str(path), groups=np.array(groups))
    np.testing.assert_allclose(named.held_out_scores_, given.held_out_scores_, atol=0.02)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_come_from_held_out_scores(method):
    X, y = rows(600)
    svm = LinearSVMCV(Cs=[0.1], cv=3, random_state=0, probability=method).fit(X, y)
    curves = calibrate(svm.held_out_scores_, y, np.array([0, 1]), method=method)
    np.testing.assert_array_equal(svm.predict_proba(X), curves.probabilities(svm.decision_function(X)))
    with pytest.raises(AttributeError):
        LinearSVMCV(Cs=[0.1], cv=3, random_state=0).fit(X, y).predict_proba(X)


def test_a_threshold_holds_to_its_purpose_on_held_out_rows():
    X, y = rows(600)
    svm = LinearSVMCV(Cs=[0.1, 1.0], cv=3, random_state=0, threshold="recall=0.95").fit(X, y)
    found = svm.held_out_scores_[y == 1] > svm.model_.threshold.value
    assert found.mean() >= 0.95
    np.testing.assert_array_equal(svm.predict(X) == 1, svm.decision_function(X) > svm.model_.threshold.value)


def test_a_time_limit_keeps_what_was_tried():
    X, y = rows(2000, 30)

    def slow(progress, k, n):
        if k == 2:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        LinearSVMCV(Cs=CS, cv=2, n_jobs=1).fit(X, y, on_progress=slow)
    with pytest.raises(DotaddError, match="before one C was tried"):
        LinearSVMCV(Cs=CS, cv=2, max_time=1e-9).fit(X, y)


def test_ctrl_c_ends_it():
    X, y = rows(500)
    told = []

    def press(progress, k, n):
        told.append((k, n))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LinearSVMCV(Cs=CS, cv=3, n_jobs=1).fit(X, y, on_progress=press)
    assert told == [(0, 3 * len(CS) + 1)]


def test_progress_counts_all_fits():
    X, y = rows(classes=3)
    told = set()
    LinearSVMCV(Cs=CS, cv=3, n_jobs=2, random_state=0).fit(X, y, on_progress=lambda _, k, n: told.add((k, n)))
    total = 3 * 3 * len(CS) + 3
    assert told == {(k, total) for k in range(total)}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Cs": []}, "Cs is"),
        ({"Cs": [1.0, -1.0]}, "Cs is"),
        ({"Cs": 0}, "Cs is 0"),
        ({"cv": 1}, "cv is 1"),
        ({"cv": None}, "cv is None"),
        ({"rule": "worst"}, "rule is 'worst'"),
        ({"probability": "sure"}, "probability is 'sure'"),
        ({"threshold": "luck=1"}, "luck"),
        ({"cv_tol": 0.0}, "cv_tol is 0.0"),
        ({"scoring": "beauty"}, "scoring is 'beauty'"),
        ({"loss": "round"}, "loss is 'round'"),
    ],
)
def test_parameters_that_cannot_act_are_refused(parameters, message):
    X, y = rows(40)
    with pytest.raises(DotaddError, match=message):
        LinearSVMCV(**parameters).fit(X, y)


def test_rows_beside_the_data_have_to_fit():
    X, y = rows(40)
    with pytest.raises(DotaddError, match="groups= has the shape"):
        LinearSVMCV(cv=2).fit(X, y, groups=[1, 2])
    with pytest.raises(DotaddError, match="give one of them"):
        LinearSVMCV(cv=2).fit(X, y, groups=y, times=True)
    with pytest.raises(DataError, match="class 1 has 1 row, and 2 folds need 2 or more"):
        LinearSVMCV(cv=2).fit(X, [0] * 39 + [1])
    with pytest.raises(DataError, match="class 1 has 4 rows, and 5 folds need 5 or more"):
        LinearSVMCV(cv=5).fit(X, [0] * 36 + [1] * 4)
    with pytest.raises(DataError, match="to train on"):
        LinearSVMCV(cv=4).fit(X, [0] * 36 + [1] * 4, groups=np.arange(40) // 4)
    with pytest.raises(DataError, match="fold"):
        LinearSVMCV(cv=2).fit(X, y, groups=y)


def test_it_is_an_estimator():
    X, y = rows()
    svm = clone(LinearSVMCV(Cs=[0.5], cv=3, random_state=0)).set_params(rule="one_standard_error")
    assert svm.get_params()["rule"] == "one_standard_error"
    svm.fit(X, y)
    assert svm.C_ == 0.5
    assert svm.coef_.shape == (1, 8)
    assert svm.score(X, y) > 0.5
    assert svm.n_features_in_ == 8
