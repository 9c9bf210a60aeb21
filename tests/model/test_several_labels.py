"""Several labels a row: scikit-learn's measures of indicator matrices, however rows are shared out."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics

from dotadd import DotaddError
from dotadd.model.several_labels import LabelEvaluator


def problem(rows=200, labels=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((rows, labels)) < np.linspace(0.02, 0.5, labels)
    predicted = truth ^ (rng.random((rows, labels)) < 0.1)
    truth[:, -1] = predicted[:, -1] = False  # a label that nothing has
    return truth, predicted, rng.random(rows)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_array])
@pytest.mark.filterwarnings("ignore")  # scikit-learn's, of the label that nothing has
def test_measures_are_scikit_learns(kind, weighted):
    truth, predicted, weight = problem()
    how = {"sample_weight": weight if weighted else None}
    parts = [LabelEvaluator(6) for _ in range(4)]
    for part, rows in zip(parts, np.array_split(np.random.default_rng(1).permutation(200), 4), strict=True):
        part.see(kind(truth[rows]), kind(predicted[rows].astype(int)), weight[rows] if weighted else None)
    found = (parts[0] + parts[3] + parts[1] + parts[2]).finish()
    assert found.rows == 200
    assert found.micro_f1.value == pytest.approx(metrics.f1_score(truth, predicted, average="micro", **how))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, predicted, average="macro", labels=range(5), **how))
    assert found.exact == pytest.approx(metrics.accuracy_score(truth, predicted, **how))
    for name, score in (("precision", metrics.precision_score), ("recall", metrics.recall_score)):
        np.testing.assert_allclose(getattr(found, name)[:5], score(truth, predicted, average=None, **how)[:5])
        assert np.isnan(getattr(found, name)[5])
    np.testing.assert_allclose(found.f1[:5], metrics.f1_score(truth, predicted, average=None, **how)[:5])


def test_intervals_of_micro_f1_hold_the_truth_about_95_times_of_100():
    """Rows are all right or all wrong in places, so that pairs of a row are far from independent."""
    rng = np.random.default_rng(0)

    def draw(rows):
        truth = rng.random((rows, 8)) < 0.3
        bad = rng.random((rows, 1)) < 0.3
        return truth, truth ^ (bad & (rng.random((rows, 8)) < 0.5))

    every = LabelEvaluator(8)
    every.see(*draw(400_000))
    value, held = every.finish().micro_f1.value, 0
    for _ in range(300):
        some = LabelEvaluator(8)
        some.see(*draw(200))
        held += some.finish().micro_f1.low <= value <= some.finish().micro_f1.high
    assert 270 <= held <= 298


def test_what_all_rows_weigh_does_not_make_them_more():
    truth, predicted, _ = problem()
    one, two = LabelEvaluator(6), LabelEvaluator(6)
    one.see(truth, predicted)
    two.see(truth, predicted, np.full(200, 7.0))
    assert two.finish().micro_f1 == pytest.approx(one.finish().micro_f1)


def test_nothing_seen_has_no_measures():
    found = LabelEvaluator(3).finish()
    assert np.isnan([*found.micro_f1, found.macro_f1, found.exact]).all()


@pytest.mark.parametrize(
    ("truth", "predicted", "weight"),
    [
        (np.zeros((3, 2)), np.zeros((4, 2)), None),
        (np.zeros((3, 5)), np.zeros((3, 5)), None),
        (np.zeros((3, 2)), np.zeros((3, 2)), np.ones(2)),
        (np.zeros((3, 2)), np.zeros((3, 2)), np.array([1.0, -1.0, 1.0])),
    ],
)
def test_what_does_not_pair_up_is_refused_in_a_line(truth, predicted, weight):
    with pytest.raises(DotaddError) as refused:
        LabelEvaluator(2).see(truth, predicted, weight)
    assert "\n" not in str(refused.value)
