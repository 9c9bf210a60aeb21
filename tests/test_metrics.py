"""Metrics against scikit-learn's, with and without ties, and against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from dotadd import metrics
from dotadd.errors import DotaddError

AREAS = {"auroc": sklearn_metrics.roc_auc_score, "auprc": sklearn_metrics.average_precision_score}
rows = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=40)


@given(rows)
def test_auroc_is_the_chance_that_a_positive_scores_higher(pairs):
    positive, score = (np.array(column) for column in zip(*pairs, strict=True))
    wins = [(p > n) + 0.5 * (p == n) for p in score[positive] for n in score[~positive]]
    found = metrics.auroc(positive, score)
    assert np.isnan(found) if not wins else found == pytest.approx(np.mean(wins))


@given(rows, st.randoms())
def test_auprc_is_average_precision_and_ties_have_no_order(pairs, random):
    positive, score = (np.array(column) for column in zip(*pairs, strict=True))
    found = metrics.auprc(positive, score)
    if not positive.any():
        assert np.isnan(found)
        return
    assert found == pytest.approx(sklearn_metrics.average_precision_score(positive, score))
    order = random.sample(range(len(score)), len(score))
    assert metrics.auprc(positive[order], score[order]) == pytest.approx(found)


def test_large_float_scores_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    positive = rng.random(5000) < 0.01
    score = (rng.standard_normal(5000) + positive).astype(np.float32)
    assert metrics.auroc(positive, score) == pytest.approx(sklearn_metrics.roc_auc_score(positive, score))
    assert metrics.auprc(positive, score) == pytest.approx(sklearn_metrics.average_precision_score(positive, score))


@pytest.mark.parametrize("classes", [np.array([-1.0, 1.0]), np.array(["a", "b", "c"])])
def test_evaluate_agrees_with_scikit_learn_for_two_and_for_three_classes(classes):
    rng = np.random.default_rng(1)
    truth = rng.choice(classes, 200)
    two = len(classes) == 2
    scores = rng.integers(-4, 5, 200).astype(float) if two else rng.standard_normal((200, 3))
    found = metrics.evaluate(truth, scores, classes)
    predicted = classes[(scores > 0).astype(int)] if two else classes[scores.argmax(axis=1)]
    assert found.rows == 200
    assert found.accuracy == sklearn_metrics.accuracy_score(truth, predicted)
    assert np.array_equal(found.confusion, sklearn_metrics.confusion_matrix(truth, predicted, labels=classes))
    columns = [(classes[1], scores)] if two else [(label, scores[:, k]) for k, label in enumerate(classes)]
    assert found.auroc == pytest.approx([sklearn_metrics.roc_auc_score(truth == c, s) for c, s in columns])
    assert found.auprc == pytest.approx([sklearn_metrics.average_precision_score(truth == c, s) for c, s in columns])


def problem(rows=300, seed=0):
    """Booleans with both classes, scores with many ties, and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    positive = rng.random(rows) < 0.3
    return positive, rng.integers(-4, 5, rows) + positive, rng.integers(0, 4, rows) / 2


@pytest.mark.parametrize("name", AREAS)
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, object])
@pytest.mark.parametrize("negative", [0, -1])
def test_areas_are_the_same_however_two_classes_are_written(name, dtype, negative):
    if negative < 0 and dtype in (bool, np.uint8):
        pytest.skip("cannot hold -1")
    positive, score, _ = problem()
    truth = np.where(positive, 1, negative).astype(dtype)
    expected = AREAS[name](positive, score)
    assert positive.mean() < expected < 1
    assert getattr(metrics, name)(truth, score) == pytest.approx(expected)
    assert getattr(metrics, name)(truth.tolist(), score.tolist()) == pytest.approx(expected)


@pytest.mark.parametrize("name", AREAS)
def test_any_labels_will_do_if_the_positive_one_is_named(name):
    positive, score, _ = problem()
    area, expected = getattr(metrics, name), AREAS[name](positive, score)
    assert area(np.where(positive, "spam", "ham"), score, positive="spam") == pytest.approx(expected)
    assert area(np.where(positive, 3, np.arange(300) % 3), score, positive=3) == pytest.approx(expected)
    assert area(~positive, score, positive=False) == pytest.approx(expected)
    assert area(np.where(positive, 0, 1), score, positive=0) == pytest.approx(expected)


@pytest.mark.parametrize(
    "truth", [[-1, 0, 1], [0, 2], [1.5, 0], ["a", "b"], ["0", "1"], [np.nan, 1], [None, 1], [-1, 0]]
)
def test_labels_that_do_not_say_which_class_is_positive_are_refused_in_a_line(truth):
    for area in (metrics.auroc, metrics.auprc):
        with pytest.raises(DotaddError, match="positive=") as refused:
            area(truth, np.zeros(len(truth)))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", AREAS)
@pytest.mark.parametrize("seed", range(5))
def test_weighted_areas_agree_with_scikit_learn(name, seed):
    positive, score, weight = problem(60, seed)
    expected = AREAS[name](positive, score, sample_weight=weight)
    assert getattr(metrics, name)(positive, score, sample_weight=weight) == pytest.approx(expected)


@given(st.lists(st.tuples(st.booleans(), st.integers(-2, 2), st.integers(0, 3)), min_size=1, max_size=20))
def test_weight_two_equals_row_twice(triples):
    positive, score, weight = (np.array(column) for column in zip(*triples, strict=True))
    again = np.repeat(np.arange(len(score)), weight)
    for area in (metrics.auroc, metrics.auprc):
        found = area(positive, score, sample_weight=weight)
        assert found == pytest.approx(area(positive[again], score[again]), nan_ok=True)
    assert metrics.accuracy(positive, score > 0, sample_weight=weight) == pytest.approx(
        metrics.accuracy(positive[again], score[again] > 0), nan_ok=True
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool, np.float16])
def test_scores_of_any_type_of_number_keep_their_order(dtype):
    score = np.array([0, 1, 100, 127, 5, 1]).astype(dtype)
    positive = np.array([0, 0, 1, 1, 1, 0], bool)
    for name, area in AREAS.items():
        assert getattr(metrics, name)(positive, score) == pytest.approx(area(positive, score.astype(float)))
    lowest = np.array([-128, 3, 4], np.int8)  # has no opposite in its type
    assert metrics.auroc([0, 1, 1], lowest) == 1.0


def test_infinite_scores_are_ties_like_others():
    assert metrics.auroc([1, 0, 1, 0], [np.inf, np.inf, -np.inf, -np.inf]) == 0.5


@pytest.mark.parametrize("truth", [[], [0, 0], [1, 1], [-1, -1]])
def test_areas_of_one_class_are_not_a_number_and_say_so_in_their_documentation(truth, recwarn):
    score = np.arange(len(truth))
    assert np.isnan(metrics.auroc(truth, score))
    assert metrics.auprc(truth, score) == pytest.approx(1.0 if 1 in truth else np.nan, nan_ok=True)
    assert not list(recwarn)
    assert "NaN" in metrics.auroc.__doc__
    assert "NaN" in metrics.auprc.__doc__


@pytest.mark.parametrize(
    ("truth", "score", "weight", "words"),
    [
        ([0, 1], [1.0], None, "2 labels and 1 scores"),
        ([0, 1], [[1.0], [2.0]], None, "shape"),
        ([[0, 1]], [1.0, 2.0], None, "shape"),
        ([0, 1], [1.0, np.nan], None, "row 2"),
        ([0, 1], ["a", "b"], None, "numbers"),
        ([0, 1], [1.0, 2.0], [1.0], "2 labels and 1 weights"),
        ([0, 1], [1.0, 2.0], [1.0, -1.0], "weight"),
        ([0, 1], [1.0, 2.0], [1.0, np.inf], "weight"),
    ],
)
def test_what_has_no_area_is_refused_in_a_line(truth, score, weight, words):
    for area in (metrics.auroc, metrics.auprc):
        with pytest.raises(DotaddError, match=words):
            area(truth, score, sample_weight=weight)


def test_accuracy_and_confusion_refuse_what_does_not_pair_up():
    with pytest.raises(DotaddError, match="3 labels and 1 predictions"):
        metrics.accuracy(np.ones(3), np.ones(1))
    with pytest.raises(DotaddError, match="shape"):
        metrics.accuracy(np.ones(3), np.ones((3, 1)))
    assert np.isnan(metrics.accuracy(np.ones(0), np.ones(0)))
    for strange in (["a", "d"], ["a", "A"], ["a", "b"]):
        with pytest.raises(DotaddError, match="none of the classes"):
            metrics.confusion(["a", "c"], strange, np.array(["a", "c"]))
