"""Rankings: areas are those of all scores together, exactly or nearly, however the rows are shared out."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotadd.model import evaluation, ranking
from dotadd.model.ranking import Ranked, Ranking


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=40), st.integers(0, 40))
def test_areas_of_joined_rankings_are_those_of_all_rows(rows, cut):
    positive, score = (np.array(column) for column in zip(*rows, strict=True))
    joined = Ranking.of(positive[:cut], score[:cut]).joined(Ranking.of(positive[cut:], score[cut:]))
    assert joined.auroc() == pytest.approx(evaluation.auroc(positive, score), nan_ok=True)
    assert joined.auprc() == pytest.approx(evaluation.auprc(positive, score), nan_ok=True)


def test_with_more_scores_than_there_is_room_for_areas_are_close(monkeypatch):
    monkeypatch.setattr(ranking, "MOST", 3000)
    rng = np.random.default_rng(0)
    positive = rng.random(20_000) < 0.2
    score = rng.normal(size=20_000) + positive
    parts = [Ranking.of(positive[k::4], score[k::4]) for k in range(4)]
    joined = reduce(Ranking.joined, parts)
    assert len(joined.score) <= 3000
    assert (np.diff(joined.score) < 0).all()
    assert joined.true.sum() == positive.sum()
    assert joined.auroc() == pytest.approx(evaluation.auroc(positive, score), abs=1e-3)
    assert joined.auprc() == pytest.approx(evaluation.auprc(positive, score), abs=3e-3)


@pytest.mark.parametrize("columns", [1, 3])
def test_scores_that_pass_by_have_the_exact_areas_while_they_are_few_and_close_ones_beyond(monkeypatch, columns):
    rng = np.random.default_rng(1)
    positive = rng.random((columns, 20_000)) < 0.2
    score = rng.normal(size=(columns, 20_000)) + positive

    def ranked():
        found = Ranked()
        for first in range(0, 20_000, 700):
            some = slice(first, first + 700)
            found.add(list(positive[:, some]), list(score[:, some]))
        return found.rankings()

    exact = [(evaluation.auroc(*one), evaluation.auprc(*one)) for one in zip(positive, score, strict=True)]
    np.testing.assert_allclose([(one.auroc(), one.auprc()) for one in ranked()], exact, rtol=1e-12)
    for name, value in {"HELD": 9000, "COUNTED": columns * 3000, "FEWEST": 10}.items():
        monkeypatch.setattr(ranking, name, value)
    few = ranked()
    assert all(len(one.score) <= 3000 + 9000 // columns for one in few)
    assert [one.true.sum() for one in few] == positive.sum(axis=1).tolist()
    np.testing.assert_allclose([(one.auroc(), one.auprc()) for one in few], exact, atol=3e-3)
    assert Ranked().rankings() == []
