"""Arrow copies that nobody can use any more go when another one is written beside them, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest

from dotadd.sources import open as open_source
from dotadd.sources.cached import as_arrow

ROWS = "a,b,c\n1,2,0\n3,4,1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x.csv", "y.csv", "z.csv"):
        (tmp_path / name).write_text(ROWS)
    return tmp_path


def copied(name: str, label: str) -> str:
    """Make a copy of a text and let go of it; returns its name."""
    return Path(as_arrow(open_source(name, label=label))[1][0]).name


def copies(folder: Path) -> set[str]:
    return {name for name in os.listdir(folder) if name.endswith(".dotadd.arrow")}


def change(path: Path) -> None:
    path.write_text(ROWS + "5,6,0\n")


def test_copies_of_texts_that_have_changed_or_are_gone_go_with_the_next_one(folder):
    changed, gone, same = copied("x.csv", "b"), copied("y.csv", "c"), copied("z.csv", "c")
    assert copies(folder) == {changed, gone, same}
    change(folder / "x.csv")
    (folder / "y.csv").unlink()
    assert copies(folder) == {changed, gone, same}, "until another one is written"
    new = copied("x.csv", "c")
    assert copies(folder) == {new, same}
    assert copied("z.csv", "b") in copies(folder) - {new, same}, "the same text may be read in two ways"
    assert copies(folder) > {new, same}


def test_what_only_looks_like_a_copy_stays(folder):
    (folder / "notes.dotadd.arrow").write_text("mine")
    with pa.OSFile("gone.csv.dotadd.arrow", "wb") as file, pa.ipc.new_file(file, pa.schema({"x": pa.int8()})):
        pass
    os.symlink("z.csv", folder / "link.dotadd.arrow")
    copied("x.csv", "c")
    assert copies(folder) >= {"notes.dotadd.arrow", "gone.csv.dotadd.arrow", "link.dotadd.arrow"}


def test_copies_that_somebody_reads_stay_until_nobody_does(folder):
    program = "import sys; from dotadd.sources import open; from dotadd.sources.cached import as_arrow\n"
    program += "source = as_arrow(open('x.csv', label='b'))[0]; print(source.path, flush=True); sys.stdin.read()\n"
    program += "print(sum(len(chunk) for chunk in source.chunks()))"
    command = [sys.executable, "-c", program]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    theirs = Path(other.stdout.readline().strip()).name
    mine = as_arrow(open_source("y.csv", label="c"))[0]
    for name in ("x.csv", "y.csv"):
        change(folder / name)
    copied("z.csv", "c")
    assert {theirs, Path(mine.path).name} <= copies(folder)
    assert other.communicate("")[0].strip() == "2"
    assert sum(len(chunk) for chunk in mine.chunks()) == 2
    del mine
    left = {copied("z.csv", "b"), copied("z.csv", "c")}
    assert copies(folder) == left
