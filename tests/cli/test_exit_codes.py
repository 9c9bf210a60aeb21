"""The exit codes that --help and the documents list are those that commands have, and there are no others."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dotadd import cli

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command_line.md"


def done(tmp_path, monkeypatch):
    return cli.run(["--version"])


def elsewhere(tmp_path, monkeypatch):
    """A disk without room: the model is saved in the current folder."""
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("+1 1:1\n-1 2:1\n")
    code = cli.run(["train", "rows.svm", "-o", "/dev/full", "--quiet"])
    assert Path("full").is_file()
    return code


def refused(tmp_path, monkeypatch):
    return cli.run(["predict", str(tmp_path / "nowhere.dotadd"), "rows.svm"])


def unread(tmp_path, monkeypatch):
    """As in `dotadd --help | true`: the reader has gone before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    code = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_IGN); from dotadd.cli import main; main()"
    out = subprocess.run([sys.executable, "-c", code, "--help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    return out.returncode


def signalled(number):
    """The signal comes while a command runs."""

    def stopped(tmp_path, monkeypatch):
        monkeypatch.setattr(cli, "app", lambda *_, **__: signal.raise_signal(number))
        ignored = signal.getsignal(number) is signal.SIG_IGN  # by nohup, and then it is ignored here, too
        if ignored:
            signal.signal(number, signal.SIG_DFL)
        try:
            return cli.run([])
        finally:
            if ignored:
                signal.signal(number, signal.SIG_IGN)

    return stopped


REAL = {
    0: done,
    1: elsewhere,
    2: refused,
    129: signalled(signal.SIGHUP),
    130: signalled(signal.SIGINT),
    141: unread,
    143: signalled(signal.SIGTERM),
}


@pytest.mark.parametrize("code", REAL)
def test_documented_code_is_the_real_one(code, tmp_path, monkeypatch):
    assert REAL[code](tmp_path, monkeypatch) == code


def test_help_lists_every_code(capsys):
    assert cli.run(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Exit codes:")[2]
    assert [int(code) for code in re.findall(r"^ +(\d+) ", listed, re.MULTILINE)] == sorted(REAL)
    assert max(map(len, listed.splitlines())) <= 80  # none is broken in two on a narrow terminal


def test_the_page_of_the_command_line_lists_every_code():
    rows = re.search(r"\| exit code \|.*\n\|.*\n((?:\|.*\n)+)", PAGE.read_text())[1]
    codes = [int(code) for row in rows.splitlines() for code in re.findall(r"\d+", row.split("|")[1])]
    assert sorted(codes) == sorted(REAL)


def test_defect_ends_with_a_traceback_and_not_as_bad_input(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(ZeroDivisionError):  # which Python makes 1 of
        cli.run([])
