"""The time left: exact where a gap falls by a constant factor or work is done at a constant rate, and near the truth on
courses that only roughly do."""

import math
import random

import pytest

from dotadd.estimators import time_left
from dotadd.estimators.time_left import FORESEEN, Fits, Rate, Trend


def trend(points, tol=1e-3):
    found = Trend(tol)
    for at, gap in points:
        found.note(at, gap)
    return found


def test_it_is_exact_for_a_gap_that_falls_by_a_constant_factor():
    points = [(float(t), 0.5 * math.exp(-0.1 * t)) for t in range(1, 30)]
    when = math.log(0.5 / 1e-3) / 0.1
    assert trend(points).left(29.0) == pytest.approx(when - 29)
    assert trend(points).left(31.0) == pytest.approx(when - 31)
    assert trend(points).left(1e9) == 0.0


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(1.0, 0.4)],
        [(1.0, 0.5), (2.0, 0.6)],
        [(1.0, 0.5), (1.0, 0.4)],
        [(1.0, math.nan), (2.0, 0.1)],
        [(1.0, math.inf), (2.0, math.nan)],
        [(1.0, 0.99), (2.0, 0.98)],
    ],
)
def test_it_is_unknown_without_a_falling_trend(points):
    assert trend(points).left(2.0) is None


def test_what_happened_long_ago_does_not_count():
    slow_then_fast = [(float(t), 0.9) for t in range(20)] + [(20.0 + t, 0.9 * math.exp(-float(t))) for t in range(10)]
    assert trend(slow_then_fast, 0.9 * math.exp(-12.0)).left(29.0) == pytest.approx(3.0)


def test_a_gap_that_is_reached_leaves_nothing():
    assert trend([(1.0, 0.4), (2.0, 0.0)]).left(2.0) == 0.0
    assert trend([(1.0, 0.4), (2.0, 0.0)]).share() == 1.0
    assert trend([(1.0, 0.4), (2.0, 0.1)], tol=0.0).left(2.0) is None


def test_a_gap_that_was_too_rosy_leaves_nothing_to_say():
    assert trend([(1.0, 0.4), (2.0, 1e-4), (3.0, 9e-5)]).left(3.0) is None


def test_a_gap_that_jumps_up_is_another_solvers_and_begins_a_trend():
    creeping = [(float(t), 0.9 * math.exp(-0.02 * t)) for t in range(1, 60)]
    other = [(60.0 + t, 0.9 * math.exp(-0.5 * t)) for t in range(8)]
    assert trend(creeping + other).left(67.0) == pytest.approx(math.log(900.0) / 0.5 - 7.0)


def test_a_step_that_goes_on_is_told_by_the_share_of_it_that_is_done():
    found = trend([(float(t), 0.5 * math.exp(-0.1 * t)) for t in range(1, 30)])
    found.within(30.0, 0.0)
    assert found.left(31.0) is None, "nothing tells how long it takes"
    found.within(32.0, 0.0)  # what came before its first part is over
    found.within(34.0, 0.25)
    assert found.left(34.0) == pytest.approx(6.0)
    assert found.left(36.0) == pytest.approx(4.0)
    found.note(40.0, 1e-2)
    assert found.left(40.0) is None, "what comes after it has another pace"
    found.note(41.0, 5e-3)
    assert found.left(41.0) == pytest.approx(math.log2(5.0))


def courses():
    """Gaps over time as solvers have them: a beginning in which nothing falls, noise, jumps up, passes that become
    faster as rows are left out, and a rate that slows down."""
    for seed in range(20):
        rng = random.Random(seed)
        at, log, slope = 0.0, 0.0, rng.uniform(0.05, 0.3)
        points = []
        for k in range(10_000):
            at += rng.uniform(0.8, 1.2) * (1.0 if seed % 2 else max(0.4, 0.99**k))
            log -= slope * (0.3 if k < 3 else 1.0 / (1.0 + 0.02 * max(0, k - 3) * (seed % 3 == 0)))
            points.append((at, math.exp(log + rng.uniform(-0.3, 0.3) * (seed % 5 == 0))))
            if points[-1][1] <= 1e-3:
                break
        yield points


def test_it_is_within_30_per_cent_of_the_whole_most_of_the_time():
    good = said = 0
    for points in courses():
        total = points[-1][0]
        for stop in range(2, len(points)):
            at = points[stop - 1][0]
            left = trend(points[:stop]).left(at)
            if at >= total / 10 and left is not None:
                said += 1
                good += abs(at + left - total) <= 0.3 * total
    assert said > 500
    assert good >= 0.8 * said


class FakeTime:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(time_left.time, "monotonic", lambda: self.now)


def test_counted_work_at_a_constant_rate_is_told_exactly(monkeypatch):
    clock = FakeTime(monkeypatch)
    rate = Rate()
    assert rate.left() is None
    for k in range(1, 10_001):
        clock.now += 0.01
        rate.note(k / 10_000)
        assert rate.left() == pytest.approx(100.0 - 0.01 * k, abs=1e-6)
    assert len(rate.points) < 1100
    assert rate.spent == pytest.approx(100.0)


def test_a_slow_beginning_is_forgotten_and_waiting_runs_down(monkeypatch):
    """Ten seconds before the first of a hundred pieces, one second for each: told exactly after the tenth of them but
    for what the first took, and then exactly."""
    clock = FakeTime(monkeypatch)
    rate = Rate()
    clock.now += 10.0
    for k in range(1, 101):
        clock.now += 1.0
        rate.note(k / 100)
        if k >= 3:
            assert rate.left() == pytest.approx(100.0 - k)
    rate = Rate()
    clock.now += 4.0
    rate.note(0.5)
    clock.now += 3.0
    assert rate.left() == pytest.approx(1.0)


def test_pieces_that_become_slower_are_within_30_per_cent(monkeypatch):
    """As fits along a path of C: the last takes three times as long as the first."""
    clock = FakeTime(monkeypatch)
    rate, took = Rate(), [1.0 + 2.0 * k / 99 for k in range(100)]
    for k, seconds in enumerate(took):
        clock.now += seconds
        rate.note((k + 1) / 100)
        if k >= 40:
            assert abs(rate.spent + rate.left() - sum(took)) <= 0.3 * sum(took)


@pytest.mark.parametrize(("factor", "since", "within"), [(1.0, FORESEEN, 0.02), (1.2, 0.5, 0.3), (1.5, 0.8, 0.3)])
def test_fits_along_a_path_that_take_longer_and_longer_are_foreseen(monkeypatch, factor, since, within):
    """Five folds and ten values of C, each of which takes so many times as long as the one before: after four fifths of
    the fits two fifths of the time are over."""
    clock = FakeTime(monkeypatch)
    path, took = Fits(), [factor ** (k // 5) for k in range(50)]
    for k, seconds in enumerate(took):
        clock.now += seconds
        path.note((k + 1) / 50)
        left = path.left()
        if (k + 1) / 50 < FORESEEN:
            assert left is None
        if (k + 1) / 50 >= since:
            assert abs(path.spent + left - sum(took)) <= within * sum(took)
