"""Progress on a screen: a bar on a terminal, few plain lines elsewhere, and a log."""

import io
import json
import math
import sys
import time
from itertools import pairwise

import pytest

from dotadd.cli.options import Solving
from dotadd.cli.progress import Watch, started_bar
from dotadd.cli.screen import duration, label_text, number
from dotadd.estimators.course import Course
from dotadd.solvers.result import Progress


def after(passes, gap, seconds=None):
    return Progress(passes, passes if seconds is None else seconds, 2.0, 1.0, gap, 5, 10)


def watch(title="x", log=None, quiet=False, **limits):
    return Watch(title, Course(Solving(**limits).limits), log=log, quiet=quiet)


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


def test_only_whole_passes_are_logged():
    log = io.StringIO()
    w = watch(quiet=True, log=log)
    for progress in (reading(1, 0.0, 0.0), reading(1, 0.5, 5.0), reading(1, 1.0, 10.0), after(2, 0.5)):
        w(progress, 0, 1)
    assert [json.loads(line)["passes"] for line in log.getvalue().splitlines()] == [1, 2]


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


@pytest.mark.parametrize(("ago", "said"), [(0, ""), (1, ""), (5, "for 5 s now"), (75, "for 75 s now")])
def test_a_bar_of_which_nothing_is_told_says_for_how_long(ago, said):
    bar, task = started_bar("fit", None)
    try:
        bar.update(task, told=time.monotonic() - ago)
        assert bar.columns[1].render(bar.tasks[0]).plain == said
    finally:
        bar.stop()
