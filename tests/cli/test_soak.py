"""A little of tests/soak.py, so that it cannot rot: whole programs, killed and starved, which take a while to start."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from soak import JOBS, Soak, disk

FEWER_PASSES = {name: replace(job, command=job.command.replace("passes 60", "passes 15")) for name, job in JOBS.items()}


@pytest.mark.parametrize("name", JOBS)
def test_what_is_killed_or_finds_a_full_disk_leaves_nothing_half_done_and_ends_the_same_next_time(tmp_path, name):
    """Kernels need not be compiled where the disk is full: the test below and `make soak` do that."""
    job = FEWER_PASSES[name]
    soak, chance = Soak(job, tmp_path, scale=0.25 if job.resumes else 0.1, runs=1), random.Random(1)
    for _ in range(2):
        soak.kill(chance)
    soak.check_end()
    soak.fill_disk(500, os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


@pytest.mark.parametrize("name", ["vectors", "convert"])
def test_the_same_on_a_disk_of_its_own_that_is_full(tmp_path, name):
    with disk(tmp_path) as alone:
        if not alone:
            pytest.skip("no disk can be mounted here")
        Soak(FEWER_PASSES[name], tmp_path, scale=0.25, alone=True, runs=1).fill_disk(10_000)
