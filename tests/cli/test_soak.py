"""A little of tests/soak.py, so that it cannot rot: whole programs, killed and starved, which take a while to start."""

from __future__ import annotations

import random

import pytest
from soak import JOBS, Soak, disk


@pytest.mark.parametrize("name", JOBS)
def test_what_is_killed_or_finds_a_full_disk_leaves_nothing_half_done_and_ends_the_same_next_time(tmp_path, name):
    soak, chance = Soak(JOBS[name], tmp_path, scale=0.25), random.Random(1)
    for _ in range(2):
        soak.kill(chance)
    soak.check_end()
    soak.fill_disk(500)


@pytest.mark.parametrize("name", ["vectors", "convert"])
def test_the_same_on_a_disk_of_its_own_that_is_full(tmp_path, name):
    with disk(tmp_path) as alone:
        if not alone:
            pytest.skip("no disk can be mounted here")
        Soak(JOBS[name], tmp_path, scale=0.25, alone=True).fill_disk(10_000)
