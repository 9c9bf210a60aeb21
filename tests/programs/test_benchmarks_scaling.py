"""The benchmark of scaling runs, on tiny data; and its formula is the one it prints."""

import sys
from pathlib import Path

import numpy as np
import pytest
from clusters import workers_forked

pytest.importorskip("distributed")
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import datasets, scaling
from benchmarks.scaling import Cost, Counted, Timed


def test_the_constants_that_made_the_times_are_found_again():
    true = Cost(nonzero=2e-9, bandwidth=5e8, latency=0.004, base=7.0, power=0.4)
    rows = dict(scaling.SIZES)
    timed = [
        Timed(weights, K, local := 2e-9 * rows[weights] * scaling.NONZEROS, local + true.network(weights, K))
        for weights, _ in scaling.SIZES
        for K in (1, 2, 4)
    ]
    counted = [Counted("x", K, true.rounds(K), 0.0, 1.0, 0.0, 0.0) for K in (1, 4, 16, 64)]
    found = scaling.fit(timed, counted)
    assert found.bandwidth == pytest.approx(5e8, rel=1e-3)
    assert found.latency == pytest.approx(0.004, rel=1e-3)
    assert found.nonzero == pytest.approx(2e-9)
    assert (found.base, found.power) == pytest.approx((7.0, 0.4))
    assert true.network(0, 8) == pytest.approx(4 * 0.004)


def test_a_machine_reads_what_its_memory_does_not_hold():
    cost = Cost(nonzero=1e-12, bandwidth=1.0, latency=0.0, base=1.0, power=0.0)
    assert cost.local(1e6, 1) == pytest.approx(1e-4)
    assert cost.local(1e9, 1) == pytest.approx(800.0)


def test_rounds_are_counted_and_averaging_is_judged_by_the_best_objective():
    X, y = datasets.load("a9a", tiny=True)
    one, several = scaling.count("a9a", X, y, [1, 4])
    assert one.rounds < several.rounds
    assert -1e-3 <= one.above <= 2e-3
    assert several.above > one.above
    assert several.gap >= several.above / (1 + several.above) - 2e-3


def test_all_tables_are_written_to_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scaling, "PROCESSES", (1, 2, 4))
    page = tmp_path / "scaling.md"
    page.write_text((Path(__file__).parents[2] / "docs" / "scaling.md").read_text())
    with workers_forked():
        cost = scaling.main(tiny=True, names=["w8a"], parts=[1, 2, 4], page=page)
    assert cost.latency > 0.0 or np.isfinite(cost.bandwidth)
    text = page.read_text()
    for name in ("scaling_rounds", "scaling_rounds_timed", "scaling_constants", "scaling_predictions"):
        table = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip().splitlines()
        assert len(table) > 3
        assert len({line.count("|") for line in table}) == 1, name
