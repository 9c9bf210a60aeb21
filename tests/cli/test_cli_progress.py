"""Progress: the time left follows the trend of the gap; a bar on a terminal, few plain lines elsewhere."""

import io
import json
import math
import sys
from itertools import pairwise

import pytest

from dotadd.cli.options import Solving
from dotadd.cli.progress import Watch, seconds_left
from dotadd.cli.screen import duration, label_text, number
from dotadd.solvers.result import Progress


def after(passes, gap, seconds=None):
    return Progress(passes, passes if seconds is None else seconds, 2.0, 1.0, gap, 5, 10)


def test_time_left_is_exact_for_a_gap_that_falls_by_a_constant_factor():
    points = [(float(t), 0.5 * math.exp(-0.1 * t)) for t in range(1, 30)]
    when = math.log(0.5 / 1e-3) / 0.1
    assert seconds_left(points, 1e-3) == pytest.approx(when - 29)


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(1.0, 0.5)],
        [(1.0, 0.5), (2.0, 0.6)],
        [(1.0, 0.5), (1.0, 0.4)],
        [(1.0, math.nan), (2.0, 0.1)],
        [(1.0, 0.99), (2.0, 0.98)],
    ],
)
def test_time_left_is_unknown_without_a_falling_trend(points):
    assert seconds_left(points, 1e-3) is None


def test_time_left_looks_at_the_latest_passes_only():
    slow_then_fast = [(float(t), 1.0) for t in range(20)] + [(20.0 + t, math.exp(-float(t))) for t in range(10)]
    assert seconds_left(slow_then_fast, math.exp(-12.0)) == pytest.approx(3.0)


def watch(title="x", log=None, quiet=False, **limits):
    return Watch(title, Solving(**limits), log=log, quiet=quiet)


def test_the_slowest_problem_is_the_one_that_counts():
    w = watch(quiet=True)
    for k in range(1, 4):
        w(after(k, 10.0**-k), 0, 2)
        w(after(k, 10.0 ** (-k / 2)), 1, 2)
    assert w.done(after(3, 0.03)) == pytest.approx(math.log(10**-0.5 / 10**-1.5) / math.log(10**-0.5 / 1e-3))
    assert w.left(after(3, 0.03)) == pytest.approx(3.0)
    assert "gap 0.0316" in w.line(after(3, 0.03))


def test_limits_cut_the_time_left():
    for changes, left in (({"max_time": 3.5}, 0.5), ({"max_passes": 4}, 1.0)):
        w = watch(quiet=True, **changes)
        for k in (1, 2, 3):
            w(after(k, 0.9**k), 0, 1)
        assert w.left(after(3, 0.7)) == pytest.approx(left)


def test_every_pass_is_logged_as_strict_json():
    log = io.StringIO()
    w = watch(quiet=True, log=log)
    w(after(1, math.nan), 0, 1)
    w(after(2, 0.5), 0, 1)
    records = [json.loads(line, parse_constant=pytest.fail) for line in log.getvalue().splitlines()]
    assert [record["gap"] for record in records] == [None, 0.5]


@pytest.mark.parametrize(("seconds", "most"), [(230, 30), (3600, 45), (86_400, 65)])
def test_a_long_run_is_told_in_few_lines_and_never_silent_for_a_quarter_of_it(capsys, monkeypatch, seconds, most):
    now = 0.0
    monkeypatch.setattr("dotadd.cli.progress.time.monotonic", lambda: now)
    told = []
    with watch() as w:
        for now in (k / 2 for k in range(2 * seconds)):
            w(after(1 + int(now), 0.9, now), 0, 1)
            if capsys.readouterr().err:
                told.append(now)
    assert 20 < len(told) <= most
    assert told[:4] == [1.0, 2.0, 3.0, 4.0]
    assert all(later <= 1.0 + 1.25 * before for before, later in pairwise(told))


def test_plain_lines_come_no_more_than_one_a_second(capsys, monkeypatch):
    clock = iter([0.0, 0.5, 1.2, 1.2, 1.9, 2.3, 2.3])
    monkeypatch.setattr("dotadd.cli.progress.time.monotonic", lambda: next(clock))
    with watch() as w:
        for k in range(1, 5):
            w(after(k, 0.5**k), 0, 1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["dotadd: pass 2", "dotadd: pass 4"]


def test_quiet_says_nothing(capsys, monkeypatch):
    monkeypatch.setattr("dotadd.cli.progress.time.monotonic", iter(range(0, 1000, 10)).__next__)
    with watch(quiet=True) as w:
        w(after(1, 0.5), 0, 1)
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with watch(title="[b]x") as w:
        w.bar.refresh()
        w(after(1, 0.5), 0, 1)
        w.bar.refresh()
    shown = sys.stderr.getvalue()
    assert "[b]x: reading" in shown
    assert "pass 1" in shown


def test_numbers_are_short():
    assert [number(value) for value in (None, math.nan, 0.00012345678, 12.0)] == ["-", "-", "0.000123457", "12"]
    assert [duration(value) for value in (0.123, 12.34, 125, 9000)] == ["0.12 s", "12 s", "2 min 05 s", "2 h 30 min"]
    assert [label_text(value) for value in (1.0, -2.5, 3, "spam")] == ["1", "-2.5", "3", "spam"]


def reading(passes, read, seconds, gap=0.1, cached=None):
    return Progress(passes, seconds, 2.0, 1.0, gap, 5, 10, read=read, cached=cached)


def test_a_pass_over_data_on_disk_is_followed_from_within():
    w = watch(quiet=True)
    within = reading(3, 0.42, 50.0, gap=0.02, cached=12345)
    w(within, 0, 1)
    assert w.line(within) == "pass 3, 42% read  gap ~0.02  50 s  12,345 rows in memory"
    assert w.done(within) == 0.42
    w(reading(3, 1.0, 60.0, gap=math.nan), 0, 1)
    assert w.line(reading(3, 1.0, 60.0)).startswith("pass 3, 100% read  gap ~0.02  60 s")  # the last gap that is known


def test_only_whole_passes_are_logged():
    log = io.StringIO()
    w = watch(quiet=True, log=log)
    for progress in (reading(1, 0.0, 0.0), reading(1, 0.5, 5.0), reading(1, 1.0, 10.0), after(2, 0.5)):
        w(progress, 0, 1)
    assert [json.loads(line)["passes"] for line in log.getvalue().splitlines()] == [1, 2]


def test_within_a_pass_the_time_left_runs_down_but_not_below_the_rest_of_the_pass():
    w = watch(quiet=True, tol=0.01)
    w(reading(1, 0.0, 0.0), 0, 1)
    for k, gap in ((1, 0.4), (2, 0.2), (3, 0.1)):  # halves in 10 s, so 33.2 s to go
        w(reading(k, 1.0, 10.0 * k, gap), 0, 1)
    total = 10.0 * math.log2(10.0)
    assert w.left(reading(3, 1.0, 30.0)) == pytest.approx(total)
    assert w.left(reading(4, 0.5, 35.0)) == pytest.approx(total - 5.0)
    w(reading(4, 1.0, 40.0, 0.011), 0, 1)  # nearly there: the pass that goes on is the last
    assert w.left(reading(5, 0.1, 41.0)) == pytest.approx(0.9 * 10.0)


def test_the_time_left_of_a_single_pass_is_its_rest():
    w = watch(quiet=True, max_passes=1)
    for read in (0.0, 0.1, 0.2):
        w(reading(1, read, 100.0 * read), 0, 1)
    assert w.left(reading(1, 0.2, 20.0)) == pytest.approx(80.0)
    assert watch(quiet=True).left(reading(1, 0.2, 20.0)) is None


@pytest.mark.parametrize("seconds", [0.0, 190.0])  # a clock that starts anew, and one that goes on
def test_passes_before_a_checkpoint_do_not_count_as_fast(seconds):
    w = watch(quiet=True, max_passes=20)
    w(reading(19, 0.5, seconds), 0, 1)
    w(reading(19, 1.0, seconds + 5.0), 0, 1)
    assert w.left(reading(19, 1.0, seconds + 5.0)) == pytest.approx(10.0)


def test_a_time_limit_is_that_of_the_run_that_goes_on():
    w = watch(quiet=True, max_time=100.0)
    w(reading(19, 0.5, 190.0), 0, 1)
    assert w.left(reading(19, 0.6, 200.0)) == pytest.approx(90.0)


def test_plain_lines_within_a_pass_come_every_ten_seconds(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("dotadd.cli.progress.time.monotonic", lambda: clock[0])
    with watch() as w:
        for second in range(1, 26):
            clock[0] = float(second)
            w(reading(1, second / 25, second), 0, 1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"dotadd: pass 1, {share}% read" for share in (40, 80, 100)]


def test_the_bar_moves_a_few_times_a_second(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with watch() as w:
        moved = []
        monkeypatch.setattr(w.bar, "update", lambda task, *, completed, **_: moved.append(completed))
        clock = [w.last_shown]
        monkeypatch.setattr("dotadd.cli.progress.time.monotonic", lambda: clock[0])
        for step in range(1000):
            clock[0] += 0.001
            w(reading(1, step / 1000, step / 1000), 0, 1)
    assert 3 <= len(moved) <= 6
    assert moved == sorted(moved)


def test_an_announcement_stands_above_the_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    said = "x.svm: a copy [b] of 12 MB is written " + "beside it " * 20
    with watch() as w:
        w.announce(said)
    assert f"dotadd: {said}\n" in sys.stderr.getvalue()
