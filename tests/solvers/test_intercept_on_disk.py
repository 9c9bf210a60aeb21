"""The best intercept by passes over stretches of rows: what the search in memory finds, in bounded memory."""

import tracemalloc

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotadd.core.losses import Loss
from dotadd.solvers import intercept_on_disk
from dotadd.solvers.free_intercept import best_intercept
from dotadd.solvers.intercept_on_disk import ColumnOutputs

LOSSES = ["hinge", "squared_hinge", "logistic"]


@st.composite
def outputs(draw):
    """ColumnOutputs that may be apart from each other (flat stretches), alike (ties), of one class, and costs of 0."""
    n = draw(st.integers(1, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sign = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])), 1, -1).astype(np.int8)
    output = rng.normal(size=n) + draw(st.sampled_from([0.0, 0.5, 5.0])) * sign + draw(st.sampled_from([0.0, -30.0]))
    if draw(st.booleans()):
        output = np.round(output)
    cost = rng.uniform(0.1, 2.0, n) if draw(st.booleans()) else np.ones(n)
    return output, sign, cost * (rng.random(n) >= draw(st.sampled_from([0.0, 0.3, 1.0])))


TINY = {"STRETCH": 7, "FEW": 4, "PIVOTS": 3, "SAMPLE": 8}  # so that a few rows take several passes


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=300)
@given(data=outputs())
def test_by_stretches_the_intercept_is_that_of_the_search_in_memory(loss, data):
    output, sign, cost = data
    expected = best_intercept(Loss.named(loss), output, sign, cost)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in TINY.items():
            patch.setattr(intercept_on_disk, name, size)
        b = ColumnOutputs(output, sign, cost).best_intercept(Loss.named(loss))
    assert b == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def objective(b):
        return float(cost @ naive.loss_value(loss, sign * (output + b)))

    assert objective(b) <= objective(expected) + 1e-12 * cost.sum()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alike", [False, True])
def test_the_intercept_of_a_million_rows_takes_a_few_megabytes(tmp_path, monkeypatch, loss, alike):
    rows = 1_000_000
    for name in ("STRETCH", "FEW"):
        monkeypatch.setattr(intercept_on_disk, name, getattr(intercept_on_disk, name) // 5)
    rng = np.random.default_rng(0)
    output = np.memmap(tmp_path / "output", np.float64, "w+", shape=rows)
    output[:] = np.zeros(rows) if alike else rng.standard_normal(rows, np.float32)
    sign = np.where(rng.random(rows, np.float32) < 0.3, 1, -1).astype(np.int8)
    cost = np.ones(rows)
    columns = ColumnOutputs(np.asarray(output), sign, cost)
    # What has to be compiled is compiled here.
    ColumnOutputs(output[:9], sign[:9], cost[:9]).best_intercept(Loss.named(loss))
    tracemalloc.start()
    b = columns.best_intercept(Loss.named(loss))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6 / 5  # and each column in float64 takes 8 MB
    assert b == pytest.approx(best_intercept(Loss.named(loss), output, sign, cost), rel=1e-9)
