"""Metrics against scikit-learn's, with and without ties, and against their definitions."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from dotadd.errors import DotaddError
from dotadd.model import evaluation, ranking

AREAS = {"auroc": sklearn_metrics.roc_auc_score, "auprc": sklearn_metrics.average_precision_score}
rows = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=40)


@given(rows)
def test_auroc_is_the_chance_that_a_positive_scores_higher(pairs):
    positive, score = (np.array(column) for column in zip(*pairs, strict=True))
    wins = [(p > n) + 0.5 * (p == n) for p in score[positive] for n in score[~positive]]
    found = evaluation.auroc(positive, score)
    assert np.isnan(found) if not wins else found == pytest.approx(np.mean(wins))


@given(rows, st.randoms())
def test_auprc_is_average_precision_and_ties_have_no_order(pairs, random):
    positive, score = (np.array(column) for column in zip(*pairs, strict=True))
    found = evaluation.auprc(positive, score)
    if not positive.any():
        assert np.isnan(found)
        return
    assert found == pytest.approx(sklearn_metrics.average_precision_score(positive, score))
    order = random.sample(range(len(score)), len(score))
    assert evaluation.auprc(positive[order], score[order]) == pytest.approx(found)


def test_large_float_scores_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    positive = rng.random(5000) < 0.01
    score = (rng.standard_normal(5000) + positive).astype(np.float32)
    assert evaluation.auroc(positive, score) == pytest.approx(sklearn_metrics.roc_auc_score(positive, score))
    assert evaluation.auprc(positive, score) == pytest.approx(sklearn_metrics.average_precision_score(positive, score))


@pytest.mark.parametrize("classes", [np.array([-1.0, 1.0]), np.array(["a", "b", "c"])])
def test_evaluate_agrees_with_scikit_learn_for_two_and_for_three_classes(classes):
    rng = np.random.default_rng(1)
    truth = rng.choice(classes, 200)
    two = len(classes) == 2
    scores = rng.integers(-4, 5, 200).astype(float) if two else rng.standard_normal((200, 3))
    found = evaluation.evaluate(truth, scores, classes)
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
    assert getattr(evaluation, name)(truth, score) == pytest.approx(expected)
    assert getattr(evaluation, name)(truth.tolist(), score.tolist()) == pytest.approx(expected)


@pytest.mark.parametrize("name", AREAS)
def test_any_labels_will_do_if_the_positive_one_is_named(name):
    positive, score, _ = problem()
    area, expected = getattr(evaluation, name), AREAS[name](positive, score)
    assert area(np.where(positive, "spam", "ham"), score, positive="spam") == pytest.approx(expected)
    assert area(np.where(positive, 3, np.arange(300) % 3), score, positive=3) == pytest.approx(expected)
    assert area(~positive, score, positive=False) == pytest.approx(expected)
    assert area(np.where(positive, 0, 1), score, positive=0) == pytest.approx(expected)


@pytest.mark.parametrize(
    "truth", [[-1, 0, 1], [0, 2], [1.5, 0], ["a", "b"], ["0", "1"], [np.nan, 1], [None, 1], [-1, 0]]
)
def test_labels_that_do_not_say_which_class_is_positive_are_refused_in_a_line(truth):
    for area in (evaluation.auroc, evaluation.auprc):
        with pytest.raises(DotaddError, match="positive=") as refused:
            area(truth, np.zeros(len(truth)))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", AREAS)
@pytest.mark.parametrize("seed", range(5))
def test_weighted_areas_agree_with_scikit_learn(name, seed):
    positive, score, weight = problem(60, seed)
    expected = AREAS[name](positive, score, sample_weight=weight)
    assert getattr(evaluation, name)(positive, score, sample_weight=weight) == pytest.approx(expected)


@given(st.lists(st.tuples(st.booleans(), st.integers(-2, 2), st.integers(0, 3)), min_size=1, max_size=20))
def test_weight_two_equals_row_twice(triples):
    positive, score, weight = (np.array(column) for column in zip(*triples, strict=True))
    again = np.repeat(np.arange(len(score)), weight)
    for area in (evaluation.auroc, evaluation.auprc):
        found = area(positive, score, sample_weight=weight)
        assert found == pytest.approx(area(positive[again], score[again]), nan_ok=True)
    assert evaluation.accuracy(positive, score > 0, sample_weight=weight) == pytest.approx(
        evaluation.accuracy(positive[again], score[again] > 0), nan_ok=True
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool, np.float16])
def test_scores_of_any_type_of_number_keep_their_order(dtype):
    score = np.array([0, 1, 100, 127, 5, 1]).astype(dtype)
    positive = np.array([0, 0, 1, 1, 1, 0], bool)
    for name, area in AREAS.items():
        assert getattr(evaluation, name)(positive, score) == pytest.approx(area(positive, score.astype(float)))
    lowest = np.array([-128, 3, 4], np.int8)  # has no opposite in its type
    assert evaluation.auroc([0, 1, 1], lowest) == 1.0


def test_infinite_scores_are_ties_like_others():
    assert evaluation.auroc([1, 0, 1, 0], [np.inf, np.inf, -np.inf, -np.inf]) == 0.5


@pytest.mark.parametrize("truth", [[], [0, 0], [1, 1], [-1, -1]])
def test_areas_of_one_class_are_not_a_number_and_say_so_in_their_documentation(truth, recwarn):
    score = np.arange(len(truth))
    assert np.isnan(evaluation.auroc(truth, score))
    assert evaluation.auprc(truth, score) == pytest.approx(1.0 if 1 in truth else np.nan, nan_ok=True)
    assert not list(recwarn)
    assert "NaN" in evaluation.auroc.__doc__
    assert "NaN" in evaluation.auprc.__doc__


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
    for area in (evaluation.auroc, evaluation.auprc):
        with pytest.raises(DotaddError, match=words):
            area(truth, score, sample_weight=weight)


def test_labels_of_another_length_are_refused_before_any_is_looked_at():
    found = evaluation.Evaluator(np.array([0, 1]))
    with pytest.raises(DotaddError, match="3 labels and 2 predictions do not pair up"):
        found.see(np.array([0, 1, 7]), np.zeros(2), np.array([0, 1]))


def test_accuracy_and_confusion_refuse_what_does_not_pair_up():
    with pytest.raises(DotaddError, match="3 labels and 1 predictions"):
        evaluation.accuracy(np.ones(3), np.ones(1))
    with pytest.raises(DotaddError, match="shape"):
        evaluation.accuracy(np.ones(3), np.ones((3, 1)))
    assert np.isnan(evaluation.accuracy(np.ones(0), np.ones(0)))
    for strange in (["a", "d"], ["a", "A"], ["a", "b"]):
        with pytest.raises(DotaddError, match="none of the classes"):
            evaluation.confusion(["a", "c"], strange, np.array(["a", "c"]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("held", [ranking.HELD, 50])
def test_measures_do_not_depend_on_who_saw_which_rows(monkeypatch, classes, held):
    monkeypatch.setattr(ranking, "HELD", held)
    rng = np.random.default_rng(0)
    truth, weight = rng.integers(classes, size=200), rng.random(200)
    scores = rng.normal(size=200 if classes == 2 else (200, classes)).round(1)
    won = (scores > 0).astype(int) if classes == 2 else scores.argmax(axis=1)

    def seen(rows):
        one = evaluation.Evaluator(np.arange(classes))
        for some in np.array_split(rows, 3):
            one.see(truth[some], scores[some], won[some], weight[some])
        return one

    parts = [seen(rows) for rows in np.array_split(rng.permutation(200), 4)]
    joined = sum((part.packed() for part in parts), evaluation.Evaluator(np.arange(classes))).finish()
    columns = [(truth == 1, scores)] if classes == 2 else [(truth == k, scores[:, k]) for k in range(classes)]
    assert joined.rows == 200
    np.testing.assert_allclose(joined.accuracy, sklearn_metrics.accuracy_score(truth, won, sample_weight=weight))
    np.testing.assert_allclose(joined.confusion, sklearn_metrics.confusion_matrix(truth, won, sample_weight=weight))
    for name, definition in AREAS.items():
        expected = [definition(*column, sample_weight=weight) for column in columns]
        np.testing.assert_allclose(getattr(joined, name), expected)


def test_what_travels_is_no_larger_for_more_rows(monkeypatch):
    for name, value in {"MOST": 100, "COUNTED": 100, "FEWEST": 10}.items():
        monkeypatch.setattr(ranking, name, value)
    sizes = []
    for rows in (10_000, 20_000):
        truth, scores = np.arange(rows) % 2, np.random.default_rng(0).normal(size=rows)
        found = evaluation.Evaluator(np.array([0, 1]))
        found.see(truth, scores, (scores > 0).astype(int))
        assert found.finish().auroc == [pytest.approx(evaluation.auroc(truth, scores))]
        sizes.append(len(pickle.dumps(found.packed())))
    assert max(sizes) < 5000


def test_a_label_that_is_none_of_the_classes_is_predicted_wrong():
    found = evaluation.Evaluator(np.array([0, 1]), areas=False)
    found.see(np.array([0, 1, 2, 1]), np.zeros(4), np.array([0, 1, 1, 0]))
    assert found.accuracy == 0.5
