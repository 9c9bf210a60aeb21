"""Progress: the time left follows the trend of the gap; a bar on a terminal, few plain lines elsewhere."""

import io
import json
import math
import sys

import pytest

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


def watch(**changes):
    return Watch(
        **({"title": "x", "tol": 1e-3, "max_passes": 1000, "max_time": None, "log": None, "quiet": False} | changes)
    )


def test_the_slowest_problem_is_the_one_that_counts():
    w = watch(quiet=True)
    for k in range(1, 4):
        w(after(k, 10.0**-k), 0, 2)
        w(after(k, 10.0 ** (-k / 2)), 1, 2)
    assert w.done() == pytest.approx(math.log(10**-0.5 / 10**-1.5) / math.log(10**-0.5 / 1e-3))
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


def test_a_terminal_gets_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

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
