"""What was learned is not lost because a disk is full or nobody listens: models, logs, what is said on the screen."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from soak import disk

import dotadd
from dotadd.cli import run
from dotadd.model.linear import Model
from dotadd.solvers.result import Reason

DATA = "1 1:1 2:0.5\n-1 1:-1\n1 1:2\n-1 2:-1 3:1\n" * 20


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # compiled kernels stay where they are
    (tmp_path / "home").mkdir()
    (tmp_path / "x.svm").write_text(DATA)
    return tmp_path


def train(*options: str, **more):
    command = [sys.executable, "-m", "dotadd", "train", "x.svm", *options]
    return subprocess.run(command, stdout=more.pop("stdout", subprocess.PIPE), text=True, timeout=120, **more)


def trained(folder: Path, name: str = "m") -> bool:
    return dotadd.load(folder / name).training["reason"] == Reason.CONVERGED.value


@pytest.mark.parametrize("kernel", [[], ["--kernel", "rbf"]])
def test_a_model_that_finds_no_room_is_saved_in_another_place(folder, kernel):
    (folder / "full").write_text("something of the user's")
    ended = train("-o", "/dev/full", *kernel, stderr=subprocess.PIPE)
    assert ended.returncode == 1
    path = folder / "full.1"
    line = f"dotadd: error: /dev/full: the model cannot be written: No space left on device; it is in {path} now"
    assert line in ended.stderr.splitlines()
    assert str(path) in ended.stdout
    assert len(dotadd.load(path).classes) == 2
    assert (folder / "full").read_text() == "something of the user's"


def test_places_are_tried_in_order_and_a_file_there_is_never_replaced(folder, monkeypatch, capsys):
    refused: list[str] = []
    real = Model.save

    def save(self, path):
        if Path(path).parent not in (folder / "home",):
            refused.append(str(path))
            raise OSError(28, "No space left on device")
        real(self, path)

    monkeypatch.setattr(Model, "save", save)
    (folder / "out").mkdir()
    assert run(["train", "x.svm", "-o", "out/m", "-q", "--log", "log"]) == 1
    assert refused == ["out/m", str(folder / "m")]
    assert f"it is in {folder / 'home' / 'm'} now" in capsys.readouterr().err
    assert json.loads((folder / "log").read_text().splitlines()[-1])["summary"]["model"] == str(folder / "home" / "m")


def test_a_model_that_can_be_written_nowhere_is_told_of_in_a_line(folder):
    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    ended = train("-o", "m", "-q", stderr=subprocess.PIPE, preexec_fn=little_room)
    assert ended.returncode == 2
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("dotadd: error: m: the model cannot be written: File too large; nor can it be in ")
    assert sorted(os.listdir(folder)) == ["home", "x.svm"]


STREAM = """
import numpy as np, warnings; warnings.simplefilter("ignore")
from dotadd import LinearSVM
rng = np.random.default_rng(0)
LinearSVM(memory="60kB", solver="stream", max_passes=1).fit(rng.normal(size=(40_000, 4)), rng.integers(3, size=40_000))
"""


@pytest.mark.parametrize("kind", ["disk", "limit"])
def test_dual_variables_that_find_no_room_beside_the_examples_are_told_of_in_a_line(tmp_path, kind):
    """To write to a map of a file on a full disk would end the process by a signal."""

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    with disk(tmp_path, "size=200k") if kind == "disk" else nullcontext(True) as there:
        if not there:
            pytest.skip("no disk can be mounted here")
        ended = subprocess.run(
            [sys.executable, "-c", STREAM], env={**os.environ, "TMPDIR": str(tmp_path)}, text=True,
            stderr=subprocess.PIPE, preexec_fn=None if kind == "disk" else little_room, timeout=120,
        )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    line = f"dotadd.errors.DotaddError: {tmp_path}: 320 kB beside the examples cannot be written there ("
    assert ended.stderr.splitlines()[-1].startswith(line)


PLANES = """
import os, sys, tempfile
import numpy as np
from dotadd.solvers.planes import Planes, Shares
planes = Planes(40_000, 4, np.dtype(np.float64), nbytes=1, exact=True, threads=1)
filler = open(os.path.join(tempfile.gettempdir(), "filler"), "wb", buffering=0)
for at in range(int(sys.argv[1]) + 8):
    if at == int(sys.argv[1]):  # somebody else takes the rest of the disk
        free = os.statvfs(tempfile.gettempdir())
        os.posix_fallocate(filler.fileno(), 0, free.f_bavail * free.f_frsize)
    planes.append(np.full(40_000, float(at)), 0.0, 1.0, Shares(np.zeros(4)))
    planes.solve(1e-3)
print(planes.capacity)
"""


@pytest.mark.parametrize("before", [0, 5])
def test_cutting_planes_that_find_no_room_are_merged_or_told_of_in_a_line(tmp_path, before):
    with disk(tmp_path, "size=8m") as there:
        if not there:
            pytest.skip("no disk can be mounted here")
        command = [sys.executable, "-c", PLANES, str(before)]
        ended = subprocess.run(
            command, env={**os.environ, "TMPDIR": str(tmp_path)}, text=True, capture_output=True, timeout=240
        )
    if before:
        assert (ended.returncode, ended.stdout) == (0, f"{before + 1}\n"), ended.stderr
        return
    assert ended.returncode == 1, ended.stderr
    line = f"dotadd.errors.DotaddError: {tmp_path} has no room for 3 cutting planes"
    assert ended.stderr.splitlines()[-1].startswith(line)


def test_a_log_that_cannot_be_written_is_told_of_once_and_training_goes_on(folder, capsys):
    assert run(["train", "x.svm", "-o", "m", "--log", "/dev/full"]) == 0
    said = capsys.readouterr().err
    assert said.count("/dev/full: the log cannot be written: No space left on device; training goes on") == 1
    assert trained(folder)


def test_training_goes_on_when_nobody_reads_what_it_says(folder):
    def closed():
        os.close(2)

    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full:
        for number, stderr in enumerate([{"preexec_fn": closed}, {"stderr": writer}, {"stderr": full}]):
            # text larger than memory: files are announced
            ended = train("-o", f"m{number}", "--memory", "1kB", "--no-keep-cache", **stderr)
            assert ended.returncode == 0, stderr
            assert "gap" in ended.stdout
            assert trained(folder, f"m{number}")
    os.close(writer)


def test_a_summary_that_cannot_be_shown_is_no_error(folder):
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full:
        for number, stdout in enumerate([full, writer]):
            ended = train("-o", f"m{number}", "--test", "x.svm", stdout=stdout, stderr=subprocess.PIPE)
            assert ended.returncode == 0
            assert ended.stderr.count("dotadd: the summary cannot be shown: ") == 1
            assert trained(folder, f"m{number}")
    os.close(writer)
    ended = train("-o", "m2", stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert ended.returncode == 0
    assert trained(folder, "m2")


def test_predictions_that_cannot_be_shown_are_an_error(folder):
    assert train("-o", "m", "-q").returncode == 0
    command = [sys.executable, "-m", "dotadd", "predict", "m", "x.svm"]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
    assert (ended.returncode, ended.stderr) == (2, "dotadd: error: standard output: is closed\n")
    ended = subprocess.run([*command, "-o", "/dev/full"], stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("dotadd: error: ")
    assert "No space left on device" in ended.stderr
