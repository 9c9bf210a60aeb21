"""Metrics against scikit-learn's, with and without ties, and against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from dotadd import metrics

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
