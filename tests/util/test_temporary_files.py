"""Files appear whole or not at all, and what a killed process has left behind goes with the next that writes there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dotadd._util import atomic, locks
from dotadd._util.atomic import Temporary, replacing, require_writable, sweep
from dotadd._util.locks import LockFile

WRITER = """
import sys, time
from dotadd._util.atomic import replacing
with replacing(sys.argv[1]) as path:
    path.write_text("half")
    print(path, flush=True)
    time.sleep(60)
"""
WRITE_AGAIN = """
import sys
from dotadd._util.atomic import replacing
with replacing(sys.argv[1]) as path:
    path.write_text("whole")
"""


def writing(target: Path) -> tuple[subprocess.Popen, Path]:
    """A process that is in the midst of writing, and its temporary file."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def killed(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def write_again(target: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITE_AGAIN, str(target)], check=True)


def test_the_next_writer_removes_what_a_killed_one_left_and_nothing_of_a_living_one(tmp_path):
    target = tmp_path / "m"
    living, file = writing(target)
    dead, left = writing(target)
    killed(dead)
    try:
        assert left.exists()
        assert not target.exists()
        write_again(target)
        assert target.read_text() == "whole"
        assert sorted(tmp_path.iterdir()) == sorted([target, file])
    finally:
        killed(living)
    write_again(tmp_path / "another")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", "m"]


def left_behind(folder: Path, monkeypatch, name: str, run: str) -> Path:
    """A file that nobody holds any more, made on a machine of this name in this run of its kernel."""
    monkeypatch.setattr(atomic, "_machine", lambda: (name, run))
    made = Temporary(folder / "m")
    made._close()
    return made.path


def test_only_files_of_this_machine_are_removed_by_its_name_or_by_the_run_of_its_kernel(tmp_path, monkeypatch):
    machines = [("0" * 6, "1" * 6), ("0" * 6, "2" * 6), ("3" * 6, "1" * 6), ("3" * 6, "2" * 6)]
    paths = [left_behind(tmp_path, monkeypatch, *machine) for machine in machines]
    monkeypatch.setattr(atomic, "_machine", lambda: machines[0])
    sweep(tmp_path)
    assert [path.exists() for path in paths] == [False, False, False, True]


def test_other_files_and_links_stay(tmp_path):
    own = Temporary(tmp_path / "m")
    own._close()
    kept = [tmp_path / name for name in (".m.00ff00ff.tmp", "notes.tmp", ".m.tmp", own.path.name[1:])]
    for path in kept:
        path.touch()
    link = own.path.with_name(own.path.name.replace(".m.", ".link."))
    link.symlink_to("notes.tmp")
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([*kept, link])


def test_where_there_are_no_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch):
    left = Temporary(tmp_path / "m")
    left._close()

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    with LockFile(tmp_path / "lock"), replacing(tmp_path / "m") as path:
        path.write_text("whole")
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "m", left.path])


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, replacing(tmp_path / "m"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "m")
    assert not os.listdir(tmp_path)


def test_one_at_a_time_is_inside_a_lock_and_the_file_goes_with_the_last(tmp_path):
    inside, most, waits = 0, 0, []

    def work():
        nonlocal inside, most
        for _ in range(20):
            with LockFile(tmp_path / "lock", lambda: waits.append(1)):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert not os.listdir(tmp_path)


HOLD = """
import sys, time
from pathlib import Path
from dotadd._util.locks import LockFile
with LockFile(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(60)
"""


def test_a_lock_ends_with_the_process_that_held_it(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    waited: list[int] = []
    with LockFile(path, lambda: waited.append(1) or killed(process)):
        assert waited == [1]
    assert not path.exists()
    path.touch()  # left by a process that was killed
    LockFile(path).clear()
    assert not path.exists()


@pytest.mark.parametrize("name", ["loop", "zero\0byte"])
def test_a_name_that_no_file_can_have_is_refused_in_a_line(tmp_path, name):
    (tmp_path / "loop").symlink_to("other")
    (tmp_path / "other").symlink_to("loop")
    for write in (require_writable, lambda path: replacing(path).__enter__()):
        with pytest.raises(OSError, match=r"leads back to itself|zero byte") as caught:
            write(str(tmp_path / name))
        assert name in caught.value.filename
