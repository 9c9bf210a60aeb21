"""Several processes work on one text file at a time, and none is in the way of another."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dotadd
from dotadd.sources import open as open_source
from dotadd.sources.cached import as_arrow

JOBS = 3


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 12)).round(4)
    y = np.where(X @ rng.standard_normal(12) + rng.standard_normal(6000) > 0, 1, -1)
    rows = (f"{k} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, k in zip(X, y, strict=True))
    (tmp_path / "x.svm").write_text("\n".join(rows) + "\n")
    return tmp_path / "x.svm"


def train(path: Path, number: int, *more: str) -> subprocess.Popen:
    options = [
        "--memory",
        "100kB",
        "--jobs",
        "1",
        "--tol",
        "1e-2",
        "--max-passes",
        "5",
        "-o",
        str(path.parent / f"m{number}"),
    ]
    command = [sys.executable, "-m", "dotadd", "train", str(path), *options, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended_well(jobs: list[subprocess.Popen]) -> list[str]:
    said = []
    for job in jobs:
        said.append(job.communicate(timeout=120)[1])
        assert job.returncode == 0, said
    return said


@pytest.mark.parametrize("keep", ["--keep-cache", "--no-keep-cache"])
def test_jobs_on_one_text_end_with_the_same_model(path, keep):
    ended_well([train(path, number, keep) for number in range(JOBS)])
    models = [dotadd.load(path.parent / f"m{number}") for number in range(JOBS)]
    assert {model.w.tobytes() for model in models} == {models[0].w.tobytes()}
    copies = {"x.svm.dotadd.arrow"} if keep == "--keep-cache" else set()
    others = {f"m{number}{ending}" for number in range(JOBS) for ending in ("", ".checkpoint")}
    assert {"x.svm"} <= {file.name for file in path.parent.iterdir()} - others <= {"x.svm"} | copies


def test_jobs_that_read_a_text_in_different_ways_have_a_copy_each(path):
    ended_well([train(path, 0), train(path, 1, "--on-bad-row", "skip")])
    assert len(list(path.parent.glob("x.svm*.dotadd.arrow"))) == 2


CONVERT = """
import sys, time
from dotadd.sources import open as open_source
from dotadd.sources.cached import as_arrow

def hang(share):
    print("converting", flush=True)
    time.sleep(60)

as_arrow(open_source(sys.argv[1]), on_progress=hang)
"""


def test_one_that_is_killed_while_it_converts_does_not_block_the_others(path):
    process = subprocess.Popen([sys.executable, "-c", CONVERT, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "converting\n"
    said: list[str] = []

    def killed_once_it_is_waited_for(line: str) -> None:
        said.append(line)
        if "waiting" in line:
            process.send_signal(signal.SIGKILL)
            process.communicate()

    fast, copies = as_arrow(open_source(path), announce=killed_once_it_is_waited_for)
    assert said[-1] == f"another process is converting {path}: waiting for it"
    assert len(fast.load()) == 6000
    assert sorted(path.parent.iterdir()) == sorted([path, *copies])


def test_who_waits_uses_the_copy_that_the_other_one_has_made(path):
    made = as_arrow(open_source(path))[1][0]
    stamp = made.stat().st_ino
    made.rename(path.parent / "aside")
    process = subprocess.Popen([sys.executable, "-c", CONVERT, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()

    def finished_meanwhile(line: str) -> None:
        if "waiting" in line:
            (path.parent / "aside").rename(made)
            process.kill()
            process.communicate()

    fast, _ = as_arrow(open_source(path), announce=finished_meanwhile)
    assert made.stat().st_ino == stamp
    assert len(fast.load()) == 6000
