"""Signals sent to `dotadd train` as a process: it answers soon, and the model so far is there."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from problems import arrow

import dotadd
from dotadd import LinearSVM
from dotadd.errors import NotConvergedWarning
from dotadd.solvers.result import Reason

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

SOON = 120  # seconds; it takes less than one, but machines are slow at times
HARD = ["-C", "1000", "--tol", "1e-13", "--max-passes", "100000000"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two classes that overlap, to be trained on without end."""
    return arrow(tmp_path_factory.mktemp("data") / "x.arrow", 20_000, 30, batch=500)


def command(data, output, *options):
    return [sys.executable, "-m", "dotadd", "train", data, "-o", str(output), *HARD, *options]


@pytest.fixture
def started():
    """Starts a process and waits until it has told of some passes. It would train without end if its test failed."""
    processes = []

    def start(arguments, log, prepare=lambda: None, **options):
        def heard():  # under nohup, tests have inherited that SIGHUP is ignored
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            prepare()

        process = subprocess.Popen([*arguments, "--log", str(log)], text=True, preexec_fn=heard, **options)
        processes.append(process)
        while process.poll() is None and not (log.exists() and log.read_text().count("\n") > 2):
            time.sleep(0.02)
        assert process.poll() is None, process.communicate()
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


KINDS = {
    "memory": [],
    "dcd": ["--solver", "dcd", "--checkpoint-every", "1000"],
    "ocas": ["--solver", "ocas", "--checkpoint-every", "1000"],
    "stream": ["--memory", "200kB"],
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [  # the first is answered with a proof, the other two by the same lines without one
        ("SIGINT", "memory"),
        ("SIGINT", "stream"),
        ("SIGINT", "dcd"),
        ("SIGTERM", "memory"),
        ("SIGTERM", "ocas"),
        ("SIGHUP", "stream"),
    ],
)
def test_a_signal_saves_the_model_so_far(data, started, tmp_path, name, kind):
    number, output = getattr(signal, name), tmp_path / "m"
    process = started(command(data, output, *KINDS[kind]), tmp_path / "log", stderr=subprocess.PIPE)
    process.send_signal(number)
    _, said = process.communicate(timeout=SOON)
    assert process.returncode == 128 + number, said
    assert "Traceback" not in said
    assert f"the model so far is saved in {output}" in said
    training = dotadd.load(output).training
    assert training["reason"] == Reason.INTERRUPTED.value
    measured = training["gap"] is not None and np.isfinite(training["gap"])
    assert measured == (name == "SIGINT"), "there is time for the proof after Ctrl-C only"
    assert (tmp_path / "m.checkpoint").exists() is (kind != "memory")
    if kind != "memory":
        svm = LinearSVM(C=1000.0, tol=1e-13, max_passes=training["passes"] + 2)
        with pytest.warns(NotConvergedWarning):
            svm.fit(data, checkpoint=tmp_path / "m.checkpoint", resume=True)
        assert svm.result_.solver == kind
        assert svm.result_.passes >= training["passes"] + 2


@pytest.mark.parametrize("kind", ["memory", "stream"])
def test_a_second_ctrl_c_leaves_out_the_proof_and_saves_the_model(data, started, tmp_path, kind):
    output = tmp_path / "m"
    process = started(command(data, output, *KINDS[kind]), tmp_path / "log", stderr=subprocess.PIPE)
    said = ""
    process.send_signal(signal.SIGINT)
    while "Ctrl-C again" not in said:
        said += process.stderr.readline()
    process.send_signal(signal.SIGINT)
    said += process.communicate(timeout=SOON)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert dotadd.load(output).training["reason"] == Reason.INTERRUPTED.value


def test_nohup_means_that_sighup_is_ignored(data, started, tmp_path):
    output = tmp_path / "m"
    arguments = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command(data, output)]
    process = started(arguments, tmp_path / "log", stderr=subprocess.PIPE)
    process.send_signal(signal.SIGHUP)
    before = (tmp_path / "log").stat().st_size
    until = time.monotonic() + SOON
    while (tmp_path / "log").stat().st_size == before and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None
    assert (tmp_path / "log").stat().st_size > before
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SOON)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_terminal_that_is_closed_ends_training_with_the_model_so_far(data, started, tmp_path):
    """The bar is on the terminal when that goes away, which sends SIGHUP; no line can be written any more."""
    output = tmp_path / "m"
    ours, theirs = pty.openpty()

    def own_terminal():
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = started(
        command(data, output), tmp_path / "log", stdin=theirs, stdout=theirs, stderr=theirs, prepare=own_terminal
    )
    os.close(theirs)
    os.close(ours)
    assert process.wait(SOON) == 128 + signal.SIGHUP
    assert dotadd.load(output).training["reason"] == Reason.INTERRUPTED.value


@pytest.mark.parametrize("how", ["2>&-", ">&- 2>&-", "2>/dev/full"])
def test_a_stderr_that_is_closed_does_not_end_training(tmp_path, how):
    if "/dev/full" in how and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    (tmp_path / "x.svm").write_text("1 1:1\n-1 1:-1\n1 2:1\n-1 2:-1\n")
    training = ["-m", "dotadd", "train", "x.svm", "-o", "m", "--max-passes", "1"]
    arguments = ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, *training]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=4 * SOON)
    assert done.returncode == 0, done.stderr
    assert set(os.listdir(tmp_path)) == {"x.svm", "m"}
    assert dotadd.load(tmp_path / "m").predict(str(tmp_path / "x.svm")).tolist() == [1, -1, 1, -1]


def test_a_pipe_whose_reader_is_gone_does_not_end_training(data, started, tmp_path):
    output = tmp_path / "m"
    process = started(command(data, output, "--max-time", "3"), tmp_path / "log", stderr=subprocess.PIPE)
    process.stderr.close()  # lines appear once a second
    assert process.wait(4 * SOON) == 0
    assert dotadd.load(output).training["reason"] == Reason.MAX_TIME.value


def test_ctrl_c_in_python_gives_a_model_and_then_keyboard_interrupt(data, tmp_path):
    script = (
        "import sys, dotadd\n"
        "svm = dotadd.LinearSVM(C=1e3, tol=1e-13, max_passes=10**8, memory='200kB')\n"
        "try:\n"
        "    svm.fit(sys.argv[1], on_progress=lambda progress, *_: print(progress.passes, flush=True))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', svm.result_.reason.name)\n"
    )
    arguments = [sys.executable, "-W", "ignore", "-c", script, data]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert re.match(r"\d+\n", process.stdout.readline())
    process.send_signal(signal.SIGINT)
    told, said = process.communicate(timeout=SOON)
    assert process.returncode == 0, said
    assert told.splitlines()[-1] == "interrupted INTERRUPTED"
    assert "Traceback" not in said
