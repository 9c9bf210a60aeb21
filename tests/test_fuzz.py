"""Damaged files of every format: read well, or refused in one line that names the file."""

from __future__ import annotations

import pytest
from fuzz.__main__ import CASES, start
from fuzz.formats import FORMATS

GROUPS = 4  # a process each, since it takes a while to start one


@pytest.mark.parametrize("names", [list(FORMATS)[group::GROUPS] for group in range(GROUPS)], ids="-".join)
def test_damaged_files_are_read_well_or_refused_in_one_line(names, capfd):
    assert start(names, CASES, seed=0) == 0, capfd.readouterr().out
