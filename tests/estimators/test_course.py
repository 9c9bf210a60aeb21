"""The course of training, as terminals and notebooks tell it: the slowest problem, limits, and passes that go on."""

import math

import pytest

from dotadd.estimators import time_left
from dotadd.estimators.course import Course, Ends, FoldsCourse, KernelCourse
from dotadd.kernel_svm.problem import KernelProgress
from dotadd.solvers.result import Progress


def after(passes, gap, seconds=None):
    return Progress(passes, passes if seconds is None else seconds, 2.0, 1.0, gap, 5, 10)


def reading(passes, read, seconds, gap=0.1, cached=None):
    return Progress(passes, seconds, 2.0, 1.0, gap, 5, 10, read=read, cached=cached)


def course(*told, tol=1e-3, max_passes=1000, max_time=None):
    found = Course(Ends(tol, max_passes, max_time))
    for progress in told:
        found.note(progress, 0, 1)
    return found


def test_the_slowest_problem_is_the_one_that_counts():
    found = course()
    for k in range(1, 4):
        found.note(after(k, 10.0**-k), 0, 2)
        found.note(after(k, 10.0 ** (-k / 2)), 1, 2)
    assert found.done() == pytest.approx(math.log(10**-0.5 / 10**-1.5) / math.log(10**-0.5 / 1e-3))
    assert found.left() == pytest.approx(3.0)
    assert "gap 0.0316" in found.line()
    assert "about 3 s left" in found.line()


def test_limits_cut_the_time_left():
    for changes, left in (({"max_time": 3.5}, 0.5), ({"max_passes": 4}, 1.0)):
        assert course(*(after(k, 0.9**k) for k in (1, 2, 3)), **changes).left() == pytest.approx(left)


def test_passes_that_are_left_take_as_long_as_the_latest_half_of_those_that_are_over():
    found = course(*(after(k, 0.999**k, 10.0 * min(k, 10) + max(0, k - 10)) for k in range(1, 21)), max_passes=30)
    assert found.left() == pytest.approx(10.0)


def test_a_pass_over_data_on_disk_is_followed_from_within():
    found = course(reading(3, 0.42, 50.0, gap=0.02, cached=12345))
    assert found.inside
    assert found.line() == "pass 3, 42% read  gap ~0.02  50 s  12,345 rows in memory"
    assert found.done() == 0.42
    found.note(reading(3, 1.0, 60.0, gap=math.nan), 0, 1)
    assert found.line().startswith("pass 3, 100% read  gap ~0.02  60 s")  # the last gap that is known
    assert not found.inside


def test_within_a_pass_the_time_left_runs_down_but_not_below_the_rest_of_the_pass():
    found = course(reading(1, 0.0, 0.0), tol=0.01)
    for k, gap in ((1, 0.4), (2, 0.2), (3, 0.1)):  # halves in 10 s, so 33.2 s to go
        found.note(reading(k, 1.0, 10.0 * k, gap), 0, 1)
    total = 10.0 * math.log2(10.0)
    assert found.left() == pytest.approx(total)
    found.note(reading(4, 0.5, 35.0), 0, 1)
    assert found.left() == pytest.approx(total - 5.0)
    found.note(reading(4, 1.0, 40.0, 0.011), 0, 1)  # nearly there: the pass that goes on is the last
    found.note(reading(5, 0.1, 41.0), 0, 1)
    assert found.left() == pytest.approx(0.9 * 10.0, rel=0.02)


def test_the_time_left_of_a_single_pass_is_its_rest():
    told = [reading(1, read, 100.0 * read) for read in (0.0, 0.1, 0.2)]
    assert course(*told, max_passes=1).left() == pytest.approx(80.0)
    assert course(*told).left() is None


@pytest.mark.parametrize("seconds", [0.0, 190.0])  # a clock that starts anew, and one that goes on
def test_passes_before_a_checkpoint_do_not_count_as_fast(seconds):
    found = course(reading(19, 0.5, seconds), reading(19, 1.0, seconds + 5.0), max_passes=20)
    assert found.left() == pytest.approx(10.0)


def test_a_time_limit_is_that_of_the_run_that_goes_on():
    found = course(reading(19, 0.5, 190.0), reading(19, 0.6, 200.0), max_time=100.0)
    assert found.left() == pytest.approx(90.0)


def test_a_tail_is_followed_from_within_and_does_not_count_as_a_long_pass():
    found = course(*(after(k, 0.9**k) for k in range(1, 11)), max_passes=20)
    assert found.left() == pytest.approx(10.0)
    for seconds, share in ((10.0, 0.0), (12.0, 0.0), (13.0, 0.1), (20.0, 0.5)):
        found.note(after(10, 0.9**10, seconds)._replace(tail=share), 0, 1)
    assert found.inside
    assert found.left() == pytest.approx(8.0)
    assert "all active rows at once 50%" in found.line()
    found.note(after(11, 0.01, 30.0), 0, 1)
    assert not found.inside
    assert found.left() == pytest.approx(9.0, rel=0.2), "nine passes of a second, and not of three"


def told(steps, violation, seconds):
    return KernelProgress(steps, seconds, 3.0, violation, 7, 100)


def test_a_kernel_machine_is_there_when_its_violation_is():
    found = KernelCourse(Ends(1e-3))
    for k in range(1, 4):
        found.note(told(k, 10.0**-k, float(k)), 0, 1)
    assert found.left() == 0.0
    found = KernelCourse(Ends(1e-4))
    for k in range(1, 4):
        found.note(told(k, 10.0**-k, 10.0 * k), 0, 1)
    assert found.left() == pytest.approx(10.0)
    assert found.done() == pytest.approx(2 / 3)
    assert "support vectors 7" in found.line()


def test_pairs_of_classes_are_counted_in_whatever_order_they_come(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time_left.time, "monotonic", lambda: now[0])
    found, shares = KernelCourse(Ends(1e-2)), []
    for which in (0, 5, 1, 4, 2, 3):
        for violation in (1.0, 0.1, 0.01):
            now[0] += 1.0
            found.note(told(1, violation, now[0]), which, 6)
            shares.append(found.done())
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert found.left() == 0.0
    assert found.line().startswith("pair 6 of 6: ")


def test_fits_of_a_cross_validation_are_counted(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time_left.time, "monotonic", lambda: now[0])
    found = FoldsCourse(Ends(1e-3))
    for k in range(25):
        now[0] += 2.0
        found.note(after(1, 0.1), k, 50)
        if k == 4:
            assert found.line() == "fit 5 of 50  10 s", "those of large C take longer, nobody knows how much"
            assert found.done() == 0.1
    assert found.line() == "fit 25 of 50  50 s, about 50 s left"


def test_the_last_fit_is_on_all_rows_and_tells_how_far_it_is():
    found = FoldsCourse(Ends(1e-4))
    for k in range(3):
        found.note(after(1, 0.1), k, 3)
    for k in (1, 2, 3):
        found.note(after(k, 10.0**-k, 10.0 * k), 2, 3)
    assert found.left() == pytest.approx(10.0)
    assert found.line().startswith("on all rows: pass 3")
    kernels = FoldsCourse(Ends(1e-4))
    for k in (1, 2, 3):
        kernels.note(told(k, 10.0**-k, 10.0 * k), 0, 1)
    assert kernels.left() == pytest.approx(10.0)
