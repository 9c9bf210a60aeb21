"""An earlier model is updated with other rows: the objective that is told, what it stands for, classes and features."""

import naive
import numpy as np
import pytest
from problems import LOSSES, noisy
from scipy.optimize import minimize_scalar

import dotadd
from dotadd import LinearSVM
from dotadd.core.losses import Loss
from dotadd.errors import DotaddError
from dotadd.solvers.checkpoint import CheckpointError
from dotadd.solvers.strength import second_derivative, strength

SPAM = ["buy cheap pills now", "cheap offer, buy now", "win money now", "free money offer"]
HAM = ["see you at lunch", "the report is attached", "lunch tomorrow?", "please see the report"]


def halves(n=400, d=12, seed=0):
    X, y = noisy(n=n, d=d, seed=seed)
    half = n // 2
    return (X[:half], y[:half]), (X[half:], y[half:]), (X, y)


def machine(**options):
    return LinearSVM(**{"dtype": "float64", "tol": 1e-6, "max_passes": 5000, "random_state": 0, **options})


def digits():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order] / 16.0, y[order]


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_answer_minimises_the_objective_that_is_told(loss, intercept):
    old, new, _ = halves()
    options = {"C": 0.7, "loss": loss, "intercept": intercept}
    before = machine(**options).fit(*old)
    after = machine(**options).fit(*new, start=before)
    s, centre = after.model_.training["update"]["strength"], (before.coef_[0], before.intercept_[0])
    assert s > 1.0
    cost = np.full(len(new[1]), 0.7 / s)
    best, w, _ = naive.solve(*new, cost, loss, intercept, centre)
    assert after.result_.gap <= 1e-6
    assert after.result_.primal == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(after.coef_[0], w, atol=2e-3 * np.abs(w).max())


@pytest.mark.parametrize("solver", ["dcd", "ocas", "lbfgs", "stream"])
def test_every_solver_finds_the_same_update(solver):
    old, new, _ = halves()
    before = machine().fit(*old).model_
    one = machine(solver="dcd").fit(*new, start=before)
    other = machine(solver=solver, tol=1e-5).fit(*new, start=before)
    assert other.result_.solver == solver
    assert other.model_.training["update"] == pytest.approx(one.model_.training["update"], rel=1e-9)
    assert other.result_.primal == pytest.approx(one.result_.primal, rel=2e-5)
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-2)


def test_a_model_that_stands_for_no_rows_leaves_a_plain_fit():
    old, new, _ = halves()
    before = machine().fit(*old)
    plain, after = machine().fit(*new), machine().fit(*new, start=before, stands_for=0)
    np.testing.assert_array_equal(plain.coef_, after.coef_)
    np.testing.assert_array_equal(plain.intercept_, after.intercept_)


def test_a_model_of_very_many_rows_stays_what_it_is():
    old, new, _ = halves()
    before = machine().fit(*old)
    after = machine().fit(*new, start=before, stands_for=1e12)
    np.testing.assert_allclose(after.coef_, before.coef_, atol=1e-6)
    np.testing.assert_allclose(after.intercept_, before.intercept_, atol=1e-6)


def test_the_more_rows_a_model_stands_for_the_nearer_the_answer_stays():
    old, new, _ = halves()
    before = machine().fit(*old)
    moved = [
        np.linalg.norm(machine().fit(*new, start=before, stands_for=rows).coef_ - before.coef_)
        for rows in (200, 1000, 10_000, 1_000_000)
    ]
    assert sorted(moved, reverse=True) == moved


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["tall", "wide"])
def test_half_and_then_the_other_half_lies_between_the_half_and_all(kind, loss):
    """By the objective over all rows, of which neither half alone has seen the other."""
    old, new, (X, y) = halves(n=3000, d=10) if kind == "tall" else halves(n=300, d=2000, seed=1)
    options = {"C": 1.0, "loss": loss, "tol": 1e-4}
    half, both = machine(**options).fit(*old), machine(**options).fit(X, y)
    after = machine(**options).fit(*new, start=half)

    def over_all(svm):
        return naive.primal(X, y, np.ones(len(y)), loss, svm.coef_[0], svm.intercept_[0], "regularized")

    assert over_all(both) <= over_all(after) < over_all(half)


def test_half_and_then_the_other_half_is_as_accurate_as_all():
    X, y = digits()
    options = {"C": 1.0, "tol": 1e-3, "dtype": "float32"}
    half, both = machine(**options).fit(X[:600], y[:600]), machine(**options).fit(X[:1200], y[:1200])
    after = machine(**options).fit(X[600:1200], y[600:1200], start=half)
    accuracy = [svm.score(X[1200:], y[1200:]) for svm in (half, after, both)]
    assert accuracy[1] >= accuracy[2] - 0.015
    assert accuracy[1] >= accuracy[0] - 0.005


def test_a_new_class_is_found_and_old_ones_that_are_missing_stay():
    X, y = digits()
    options = {"C": 1.0, "tol": 1e-3, "dtype": "float32"}
    known, there = y[:600] != 9, y[600:1200] != 0
    before = machine(**options).fit(X[:600][known], y[:600][known])
    after = machine(**options).fit(X[600:1200][there], y[600:1200][there], start=before)
    np.testing.assert_array_equal(after.classes_, np.arange(10))
    found, truth = after.predict(X[1200:]), y[1200:]
    for label in (0, 9):
        assert np.mean(found[truth == label] == label) > 0.75
    assert np.mean(found == truth) > 0.9


def test_two_classes_become_columns_of_opposite_weights_where_a_third_comes():
    old, new, _ = halves()
    names = np.where(new[1] > 0, "b", "c")
    before = machine().fit(old[0], np.where(old[1] > 0, "b", "a"))
    after = machine().fit(new[0], names, start=before, stands_for=1e12)
    assert list(after.classes_) == ["a", "b", "c"]
    np.testing.assert_allclose(after.coef_[:2], np.stack([-before.coef_[0], before.coef_[0]]), atol=1e-6)
    alone = machine().fit(new[0], names == "c")
    assert np.mean((after.predict(new[0]) == "c") == alone.predict(new[0])) > 0.6


@pytest.mark.parametrize("loss", LOSSES)
def test_a_column_whose_rows_were_all_negative_begins_where_they_would_have_it(loss):
    """The intercept that minimises b^2 / 2 + C n loss(-b)."""
    old, _, _ = halves()
    before = machine(loss=loss).fit(old[0], np.where(old[1] > 0, "b", "a"))
    empty = np.zeros((3, old[0].shape[1]))
    after = machine(loss=loss, C=1e-9).fit(empty, ["a", "b", "c"], start=before)

    def objective(b):
        return 0.5 * b * b + 1e-9 * 200 * naive.loss_value(loss, -b)

    assert after.intercept_[2] == pytest.approx(minimize_scalar(objective).x, abs=1e-8)


def test_one_class_of_two_may_be_all_that_comes():
    old, new, _ = halves()
    before = machine().fit(*old)
    rows = new[1] > 0
    after = machine().fit(new[0][rows], new[1][rows], start=before)
    np.testing.assert_array_equal(after.classes_, before.classes_)
    assert after.coef_.shape == before.coef_.shape


def test_what_a_map_has_learned_stays():
    texts, labels = SPAM + HAM, ["spam"] * 4 + ["ham"] * 4
    before = LinearSVM("WordNGrams((1, 2)).tfidf()").fit(texts, labels)
    after = LinearSVM().fit(["cheap report", "money at lunch"], ["spam", "ham"], start=before)
    for name, array in before.model_.phi.state().items():
        np.testing.assert_array_equal(array, after.model_.phi.state()[name])
    assert after.model_.training["stands_for"] == 10
    again = LinearSVM("WordNGrams((1, 2)).tfidf()").fit(["free pills"], ["spam"], start=after)
    assert again.model_.training["stands_for"] == 11


def test_a_saved_model_is_updated_as_the_one_in_memory(tmp_path):
    old, new, _ = halves()
    before = machine(dtype="float32").fit(*old)
    before.model_.save(tmp_path / "old.dotadd")
    one = machine(dtype="float32").fit(*new, start=before.model_)
    other = machine(dtype="float32").fit(*new, start=dotadd.load(tmp_path / "old.dotadd"))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    other.model_.save(tmp_path / "new.dotadd")
    loaded = dotadd.load(tmp_path / "new.dotadd")
    assert loaded.training["stands_for"] == 400
    np.testing.assert_array_equal(loaded.decision_function(new[0]), one.decision_function(new[0]))


def test_rows_of_a_file_that_are_narrower_or_wider_fit_the_model(tmp_path):
    old, new, _ = halves()
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{value:.6f}" for j, value in enumerate(row[:5])) + " 40:1"
        for row, label in zip(*new, strict=True)
    ]
    (tmp_path / "new.svm").write_text("\n".join(lines) + "\n")
    before = machine().fit(*old)
    for solver in ("auto", "stream"):
        after = machine(solver=solver).fit(str(tmp_path / "new.svm"), start=before, announce=lambda line: None)
        assert after.coef_.shape == before.coef_.shape
        assert after.model_.shape == before.model_.shape


def test_a_machine_updates_itself():
    old, new, _ = halves()
    svm = machine().fit(*old)
    other = machine().fit(*new, start=svm.model_)
    np.testing.assert_array_equal(svm.fit(*new, start=svm).coef_, other.coef_)


@pytest.mark.parametrize("solver", ["dcd", "stream"])
def test_an_update_is_resumed_to_the_same_bits_and_not_with_another_model(tmp_path, solver):
    old, new, _ = halves()
    before, other = machine().fit(*old).model_, machine(C=0.5).fit(*old).model_
    options, where = {"solver": solver, "C": 5.0, "n_jobs": 1}, str(tmp_path / "state")
    whole = machine(**options).fit(*new, start=before)
    with pytest.warns(dotadd.NotConvergedWarning):
        machine(**options, max_passes=2).fit(*new, start=before, checkpoint=where)
    with pytest.raises(CheckpointError, match="update"):
        machine(**options).fit(*new, start=other, checkpoint=where, resume=True)
    resumed = machine(**options).fit(*new, start=before, checkpoint=where, resume=True)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


def refused(match, *data, start, options=None, **more):
    with pytest.raises(DotaddError, match=match):
        machine(**(options or {})).fit(*data, start=start, **more)


def test_what_cannot_be_updated_is_refused_in_a_line():
    old, new, _ = halves()
    before = machine().fit(*old)
    strange = np.where(new[1] > 0, 1, 7)
    refused("the model has no class 7: it has -1, 1", new[0], strange, start=before, new_classes=False)
    refused("classes are numbers, and the labels of the new rows are names", new[0], strange.astype(str), start=before)
    refused("has an intercept", *new, start=before, options={"intercept": "none"})
    refused("cannot change to", *new, start=before, options={"phi": "Polynomial(2)"})
    refused("sgd cannot update an earlier model", *new, start=before, options={"solver": "sgd"})
    refused("stands_for=-1 is no number of rows", *new, start=before, stands_for=-1)
    refused("is neither", *new, start=3)
    refused("give it as start=", *new, start=None, stands_for=3)
    refused("give it as start=", *new, start=before.result_, new_classes=False)
    before.model_.training.pop("rows")
    refused("how many rows it stands for", *new, start=before)
    assert machine().fit(*new, start=before, stands_for=200).model_.training["stands_for"] == 400


@pytest.mark.parametrize("r", [0.1, 1.0, 9.0])
def test_the_strength_makes_the_least_error_over_all_slots(r):
    bend = np.exp(np.random.default_rng(0).normal(size=50) * 3.0)

    def error(s):
        right = 1.0 + (1.0 + r) * bend
        return float(np.sum(bend * right * (1.0 / (s + bend) - 1.0 / right) ** 2))

    tried = np.exp(np.linspace(0.0, np.log1p(r * bend.max()), 2000))
    assert error(strength(bend, r)) <= 1.01 * min(map(error, tried))


def test_the_strength_is_one_where_rows_do_not_meet_and_grows_where_they_do():
    assert strength(np.full(100, 1e-6), 3.0) == pytest.approx(1.0, abs=1e-3)
    assert strength(np.full(100, 1e4), 3.0) == pytest.approx(3e4, rel=0.1)
    assert strength(np.zeros(5), 3.0) == strength(np.ones(5), 0.0) == 1.0


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bend_of_a_loss_adds_up_to_the_change_of_its_slope(loss):
    margins = np.linspace(-20.0, 20.0, 400_001)
    change = np.gradient(naive.loss_value(loss, margins), margins)
    area = np.trapezoid(second_derivative(Loss.named(loss), margins), margins)
    assert area == pytest.approx(change[-1] - change[0], rel=1e-3)


def test_a_model_of_several_labels_is_not_updated():
    X, _ = noisy(n=40)
    labels = [["a"] if row[0] > 0 else ["a", "b"] if row[1] > 0 else ["b"] for row in X]
    before = machine().fit(X, labels)
    with pytest.raises(DotaddError, match="have several"):
        machine().fit(X, labels, start=before)
    with pytest.raises(DotaddError, match="several labels"):
        machine().fit(X, labels, start=machine().fit(X, X[:, 0] > 0))
