"""F1, Matthews, balanced accuracy, losses of probabilities: scikit-learn's, however rows are shared out; intervals hold
the truth about as often as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm
from sklearn import metrics
from sklearn.calibration import calibration_curve

from dotadd.model import evaluation, ranking
from dotadd.model.evaluation import Evaluator, evaluate
from dotadd.model.intervals import between, proportion
from dotadd.model.ranking import Ranking


def problem(classes, n=300, seed=0):
    """Labels, scores that foretell them somewhat, weights, and probabilities."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=n)
    logits = rng.normal(size=(n, classes)) + 1.5 * (truth[:, None] == np.arange(classes))
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    scores = logits[:, 1] - logits[:, 0] if classes == 2 else logits
    return truth, scores, rng.random(n), probability


def expected(truth, predicted, probability, weight, classes):
    how = {"sample_weight": weight}
    one_hot = truth[:, None] == np.arange(classes)
    error = ((probability - one_hot) ** 2).sum(axis=1) / (2 if classes == 2 else 1)
    return {
        "accuracy": metrics.accuracy_score(truth, predicted, **how),
        "macro_f1": metrics.f1_score(truth, predicted, average="macro", **how),
        "micro_f1": metrics.f1_score(truth, predicted, average="micro", **how),
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, predicted, **how),
        "matthews": metrics.matthews_corrcoef(truth, predicted, **how),
        "log_loss": metrics.log_loss(truth, probability, labels=range(classes), **how),
        "brier": np.average(error, weights=weight),
    } | {
        name: score(truth, predicted, average=None, labels=range(classes), **how)[classes == 2 :]
        for name, score in (
            ("precision", metrics.precision_score),
            ("recall", metrics.recall_score),
            ("f1", metrics.f1_score),
        )
    }


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_measures_are_scikit_learns(classes, weighted):
    truth, scores, weight, probability = problem(classes)
    weight = weight if weighted else None
    predicted = (scores > 0).astype(int) if classes == 2 else scores.argmax(axis=1)
    found = evaluate(truth, scores, np.arange(classes), sample_weight=weight, probability=probability)
    for name, value in expected(truth, predicted, probability, weight, classes).items():
        np.testing.assert_allclose(getattr(found, name), value, err_msg=name)
        if name in found.intervals:
            interval = found.intervals[name]
            np.testing.assert_allclose(interval.value, value)
            assert interval.low < interval.value < interval.high
    assert set(found.intervals) >= {"accuracy", "macro_f1", "balanced_accuracy", "matthews", "log_loss", "brier"}
    if classes == 2:
        assert metrics.brier_score_loss(truth, probability[:, 1], sample_weight=weight) == pytest.approx(found.brier)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
@pytest.mark.filterwarnings("ignore")  # scikit-learn's, of classes that are not there
def test_measures_are_scikit_learns_where_classes_are_missing(pairs):
    truth, predicted = (np.array(column) for column in zip(*pairs, strict=True))
    found = evaluate(truth, np.zeros((len(truth), 4)), np.arange(4), predicted)
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, predicted, average="macro"))
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(truth, predicted))
    assert found.matthews == pytest.approx(metrics.matthews_corrcoef(truth, predicted))
    assert found.log_loss is found.brier is found.calibration_error is None


@pytest.mark.parametrize("weighted", [False, True])
def test_the_calibration_error_is_that_of_the_bins(weighted):
    truth, scores, weight, probability = problem(2)
    each = weight if weighted else np.ones(len(truth))
    found = evaluate(truth, scores, np.arange(2), sample_weight=each, probability=probability).calibration_error
    p = probability[:, 1]
    errors = [
        abs(each[some] @ (p[some] - truth[some])) for k in range(15) for some in [(p >= k / 15) & (p < (k + 1) / 15)]
    ]
    assert found == pytest.approx(sum(errors) / each.sum())
    if not weighted:
        shares, means = calibration_curve(truth, p, n_bins=15)
        sizes = np.histogram(p, 15, (0, 1))[0]
        assert found == pytest.approx(np.abs(shares - means) @ sizes[sizes > 0] / len(p))


def test_the_calibration_error_of_several_classes_is_that_of_the_most_likely_one():
    truth, scores, _, probability = problem(4)
    shown, right = probability.max(axis=1), probability.argmax(axis=1) == truth
    two = evaluate(right, shown, np.array([False, True]), probability=np.stack([1 - shown, shown], axis=1))
    found = evaluate(truth, scores, np.arange(4), probability=probability)
    assert found.calibration_error == pytest.approx(two.calibration_error)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("held", [ranking.HELD, 50])
def test_measures_and_intervals_do_not_depend_on_who_saw_which_rows(monkeypatch, classes, held):
    truth, scores, _, probability = problem(classes)
    predicted = (scores > 0.3).astype(int) if classes == 2 else scores.argmax(axis=1)
    whole = evaluate(truth, scores, np.arange(classes), predicted, probability=probability)
    monkeypatch.setattr(ranking, "HELD", held)
    joined = Evaluator(np.arange(classes))
    for rows in np.array_split(np.random.default_rng(0).permutation(len(truth)), 7):
        part = Evaluator(np.arange(classes))
        part.see(truth[rows], scores[rows], predicted[rows], None, probability[rows])
        joined = joined + part.packed()
    found = joined.finish()
    assert found.intervals.keys() == whole.intervals.keys()
    for name, interval in whole.intervals.items():
        if name in ("log_loss", "brier"):
            assert found.intervals[name] == pytest.approx(interval)  # sums of numbers that are not whole
        else:
            assert found.intervals[name] == interval
    assert found.calibration_error == pytest.approx(whole.calibration_error)
    if classes == 2:
        assert np.array_equal(found.at_zero, metrics.confusion_matrix(truth, scores > 0))
        assert np.array_equal(found.at_zero, whole.at_zero)


@pytest.mark.parametrize("factor", [1.0, 0.01, 70.0])
def test_what_all_rows_weigh_does_not_make_them_more(factor):
    truth, scores, _, probability = problem(2)
    plain = evaluate(truth, scores, np.arange(2), probability=probability).intervals
    weight = np.full(len(truth), factor)
    found = evaluate(truth, scores, np.arange(2), sample_weight=weight, probability=probability).intervals
    for name, interval in plain.items():
        assert found[name] == pytest.approx(interval, rel=1e-6)


def test_bins_of_scores_change_the_intervals_of_areas_little():
    rng = np.random.default_rng(0)
    positive = rng.random(20_000) < 0.01
    rank = Ranking.of(positive, rng.normal(size=20_000) + 2.0 * positive)
    exact, near = rank.intervals(most=1 << 20), rank.intervals(most=512)
    for name, interval in exact.items():
        assert near[name].value == interval.value
        assert near[name].high - near[name].low == pytest.approx(interval.high - interval.low, rel=0.2)


def test_where_all_rows_are_right_draws_tell_nothing_and_counts_do():
    truth = np.arange(50) % 2
    found = evaluate(truth, truth - 0.5, np.arange(2)).intervals
    assert found["accuracy"] == (1.0, pytest.approx(0.025 ** (1 / 50)), 1.0)
    for name in ("auroc", "auprc", "f1", "matthews"):
        assert found[name].value == 1.0
        assert np.isnan([found[name].low, found[name].high]).all()
        assert str(found[name]) == "1.0000"


def test_intervals_between_two_numbers_stay_there():
    way = 0.1 / 0.25 * norm.ppf(0.975)
    assert between(0.5, 0.1) == pytest.approx((0.5, expit(-way), expit(way)))
    low, high = between(-0.999, 0.5, least=-1.0)[1:]
    assert -1.0 <= low < -0.999 < high <= 1.0
    assert np.isnan(proportion(0, 0)).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_hold_the_truth_about_95_times_of_100(weighted):
    """Two normal classes, of which all measures are known. 300 draws of the data hold it 285 times, give or take 15
    (four standard deviations). With weights, half of the rows weigh three times as much as others."""
    share, shift, n, draws = 0.3, 1.5, 400, 300
    recall, fpr = norm.sf(0.5 - shift), norm.sf(0.5)
    tp, fp, fn, tn = share * recall, (1 - share) * fpr, share * (1 - recall), (1 - share) * (1 - fpr)
    grid = np.linspace(-6, 8, 20_001)
    above, wrong = share * norm.sf(grid - shift), (1 - share) * norm.sf(grid)
    truth = {
        "accuracy": tp + tn,
        "f1": 2 * tp / (2 * tp + fp + fn),
        "balanced_accuracy": (recall + 1 - fpr) / 2,
        "macro_f1": tp / (2 * tp + fp + fn) + tn / (2 * tn + fp + fn),
        "matthews": (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
        "auroc": norm.cdf(shift / np.sqrt(2)),
        "auprc": -np.trapezoid(above / (above + wrong), above) / share,
    }
    rng, held = np.random.default_rng(1), dict.fromkeys(truth, 0)
    for _ in range(draws):
        positive = rng.random(n) < share
        score = rng.normal(size=n) + shift * positive
        weight = np.where(rng.random(n) < 0.5, 3.0, 1.0) if weighted else None
        found = evaluate(positive, score, np.array([False, True]), score > 0.5, sample_weight=weight)
        for name, value in truth.items():
            held[name] += found.intervals[name].low <= value <= found.intervals[name].high
    assert all(times >= 270 for times in held.values()), held


def test_without_areas_there_are_no_intervals():
    found = Evaluator(np.arange(2), areas=False)
    found.see(np.array([0, 1]), np.zeros(2), np.array([0, 1]))
    assert found.finish().intervals == {}
    assert evaluation.evaluate(np.array([0, 1]), np.zeros(2), np.arange(2), intervals=False).intervals == {}
