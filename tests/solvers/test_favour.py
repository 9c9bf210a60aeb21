"""Favoured passes: odds follow gains, visits follow odds, and the optimum is the same."""

import numpy as np
import pytest
from naive import solve
from problems import noisy, problem

from dotadd.solvers import dcd as dcd_module
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.dcd import dcd
from dotadd.solvers.favour import FIRST, MORE, MOST, TRIED, Favour, gained
from dotadd.solvers.result import Progress, Reason
from dotadd.solvers.run import Settings


def generator(seed):
    return np.random.default_rng(seed).integers(1, 2**63, 1, dtype=np.uint64)


@pytest.mark.parametrize("seed", range(20))
def test_visits_are_shared_out_by_the_odds(seed):
    random = np.random.default_rng(seed)
    favour = Favour(300)
    favour.odds[:] = np.exp(random.normal(size=300))
    rows = np.flatnonzero(random.random(300) < 0.7).astype(np.uint32)
    visits = np.bincount(favour.draw(rows, generator(seed)), minlength=300)
    due = np.zeros(300)
    due[rows] = len(rows) * favour.odds[rows] / favour.odds[rows].sum()
    assert (np.abs(visits - due) < 1.0 + 1e-3).all()  # a row that is due 2.3 visits has 2 or 3
    assert abs(visits.sum() - len(rows)) <= 1


def test_each_row_gets_its_share_in_the_long_run():
    favour, rows = Favour(5), np.arange(5, dtype=np.uint32)
    favour.odds[:] = 0.1, 0.2, 0.3, 0.4, 4.0
    random = np.random.default_rng(0).integers(0, 2**63, (4000, 1), dtype=np.uint64) * np.uint64(2)
    visits = sum(np.bincount(favour.draw(rows, one), minlength=5) for one in random)
    np.testing.assert_allclose(visits / 4000, favour.odds, atol=0.03)


def test_rows_that_gain_more_have_higher_odds_within_bounds():
    favour, norms, rows = Favour(6), np.array([1.0, 1.0, 1.0, 4.0, 1.0, 1.0]), np.arange(5, dtype=np.uint32)
    for _ in range(50):
        favour.order(rows, np.zeros(6), generator(0), favoured=False)
        favour.learn(np.array([0.0, 0.1, 0.2, 0.2, 3.0, 9.0]), norms)
    odds = favour.odds
    assert (np.diff(odds[[0, 1, 2, 3, 4]]) >= 0.0).all()
    assert odds[0] == pytest.approx(1.0 / MOST)
    assert odds[4] == pytest.approx(MOST)
    assert odds[5] == 1.0  # it was not visited


@pytest.mark.parametrize("alpha", [np.zeros(3), np.array([np.inf, 1.0, 0.0]), np.full(3, 1e200), np.full(3, np.nan)])
def test_numbers_that_say_nothing_change_no_odds(alpha):
    favour = Favour(3)
    favour.order(np.arange(3, dtype=np.uint32), np.zeros(3), generator(0), favoured=False)
    favour.learn(alpha, np.ones(3))
    assert (favour.odds == 1.0).all()
    assert len(favour.draw(np.empty(0, np.uint32), generator(0))) == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_optimum_is_the_same_after_fewer_visits(loss, monkeypatch):
    """Where C is so large that coordinate descent creeps."""
    monkeypatch.setattr(dcd_module._State, "tail_pays", lambda *given: False)
    X, y = noisy(150, 60, 3)
    one, settings = problem(X, y, loss=loss, cost=100.0), Settings(tol=1e-4, max_passes=20_000)
    (found,) = dcd(one, settings)
    monkeypatch.setattr(Favour, "draw", lambda favour, rows, rng: rows.copy())
    (plain,) = dcd(one, settings)
    assert found.reason is plain.reason is Reason.CONVERGED
    assert FIRST < found.passes < plain.passes
    best, _, _ = solve(X, y, np.full(len(y), 100.0), loss, "regularized")
    assert best <= found.primal * (1.0 + 1e-9)
    assert found.primal <= best * (1.0 + 2e-4)


def trace_of(gains, visits):
    """What passes have told that gained so much a visit."""
    duals = np.cumsum([5.0, *np.multiply(gains, visits)])
    return [
        Progress(k, 0.0, 9.0, dual, 0.5, active, 1000)
        for k, (dual, active) in enumerate(zip(duals, [*visits, 3], strict=True))
    ]


@pytest.mark.parametrize("visits", [(100, 100, 100), (1000, 500, 20)])
@pytest.mark.parametrize("around", [(1.0, 1.0), (2.0, 0.5), (0.1, 10.0)])
def test_a_favoured_pass_pays_where_its_visits_gain_more_than_those_around_it(around, visits):
    before, after = around
    assert gained(trace_of([before, 1.01 * MORE, after], visits))
    assert not gained(trace_of([before, 0.99 * MORE, after], visits))
    assert not gained(trace_of([before, 0.0, after], visits))


def counted(monkeypatch, draw=Favour.draw):
    """The favoured passes that are drawn from now on."""
    drawn = []

    def count(favour, rows, rng):
        drawn.append(len(rows))
        return draw(favour, rows, rng)

    monkeypatch.setattr(Favour, "draw", count)
    return drawn


def test_favoured_passes_that_gain_no_more_than_others_are_given_up(monkeypatch):
    X, y = noisy(150, 60, 3)
    one, settings = problem(X, y, cost=100.0), Settings(tol=1e-5, max_passes=60)
    monkeypatch.setattr(dcd_module._State, "tail_pays", lambda *given: False)
    drawn = counted(monkeypatch)
    (found,) = dcd(one, settings)
    assert len(drawn) > (found.passes - FIRST) // 2 - 2  # every other one
    drawn = counted(monkeypatch, lambda favour, rows, rng: rows.copy())
    (plain,) = dcd(one, settings)
    assert plain.passes == 60
    assert len(drawn) == 1


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("tells", range(FIRST - 1, FIRST + TRIED + 3))
def test_a_run_that_is_cut_short_while_favour_is_tried_ends_with_the_same_bits(tells, plain, tmp_path, monkeypatch):
    monkeypatch.setattr(dcd_module._State, "tail_pays", lambda *given: False)
    if plain:
        monkeypatch.setattr(Favour, "draw", lambda favour, rows, rng: rows.copy())
    X, y = noisy(150, 60, 3)
    one, heard = problem(X, y, cost=100.0), []

    def stop(progress, k):
        heard.append(k)
        if len(heard) == tells:
            raise KeyboardInterrupt

    (expected,) = dcd(one, Settings(tol=1e-5, max_passes=40))
    where = Checkpoint(str(tmp_path / "c"), 1e9)
    (before,) = dcd(one, Settings(tol=1e-5, max_passes=40, on_progress=stop, checkpoint=where))
    assert before.passes == tells
    (found,) = dcd(one, Settings(tol=1e-5, max_passes=40, checkpoint=where, resume=True))
    assert found.w.tobytes() == expected.w.tobytes()
    assert found.alpha.tobytes() == expected.alpha.tobytes()
