"""Damaged files of every format: read well, or refused in one line that names the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.__main__ import CASES, start
from fuzz.formats import FORMATS

GROUPS = 4  # a process each, since it takes a while to start one


@pytest.mark.parametrize("names", [list(FORMATS)[group::GROUPS] for group in range(GROUPS)], ids="-".join)
def test_damaged_files_are_read_well_or_refused_in_one_line(names, capfd):
    assert start(names, CASES, seed=0) == 0, capfd.readouterr().out


@pytest.mark.parametrize(("name", "seed", "case"), [("arrow", 77, 19420)])
def test_what_once_ended_the_process_is_refused(name, seed, case):
    command = [sys.executable, "-m", "fuzz", name, "--seed", str(seed), "--only", str(case)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
