"""Training on data larger than memory, from the command line: checkpoints come and go, and nothing is said in vain."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dotadd.cli import run
from dotadd.cli.large import Streaming
from dotadd.estimators.linear import LinearSVM
from dotadd.model.linear import load
from dotadd.solvers.checkpoint import CheckpointError
from dotadd.solvers.result import Progress, Reason

DATA = "1 1:1 2:0.5\n-1 1:-1\n1 1:2\n-1 2:-1 3:1\n"
TRACE = [
    Progress(1, 0.5, 2.0, 1.0, 0.5, 4, 4, read=0.5, cached=3),
    Progress(1, 1, 2, 1.5, 0.2, 4, 4, read=1.0, cached=2),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.svm").write_text(DATA)
    return tmp_path


@pytest.fixture
def told(monkeypatch):
    """Training looks as if it had streamed; what it was told is in here, and how it ends can be put in."""
    told = {"reason": Reason.CONVERGED}
    real = LinearSVM.fit

    def fit(self, source, *, on_progress, announce, checkpoint, **more):
        told.update(more, checkpoint=checkpoint, memory=self.memory)
        announce("the data is larger than 1kB")
        Path(checkpoint).write_bytes(b"state")
        for progress in TRACE:
            on_progress(progress, 0, 1)
        real(self, source)
        self.result_ = replace(self.result_, trace=TRACE, reason=told["reason"])
        if told["reason"] is Reason.INTERRUPTED:
            raise KeyboardInterrupt
        return self

    monkeypatch.setattr(LinearSVM, "fit", fit)
    return told


def train(options):
    return run(["train", "x.svm", *options.split()])


def test_the_options_reach_the_library(folder, told):
    assert train("-o m -q") == 0
    always = {"keep_checkpoint": True, "reason": Reason.CONVERGED}  # it goes when the model is saved
    expected = {"checkpoint": "m.checkpoint", "checkpoint_every": 60.0, "resume": False, "keep_cache": True}
    assert told == expected | always | {"memory": None}
    (folder / "c").touch()
    options = "--memory 500MB --checkpoint c --checkpoint-every 2.5 --resume --no-keep-cache"
    assert train(f"-o m -q {options}") == 0
    expected = {"checkpoint": "c", "checkpoint_every": 2.5, "resume": True, "keep_cache": False}
    assert told == expected | always | {"memory": "500MB"}


@pytest.mark.parametrize("reason", [Reason.CONVERGED, Reason.PRECISION])
def test_a_checkpoint_is_removed_when_there_is_nothing_to_go_on_for(folder, told, capsys, reason):
    told["reason"] = reason
    assert train("-o m") == 0
    assert sorted(os.listdir()) == ["m", "x.svm"]
    assert "--resume" not in capsys.readouterr().err


@pytest.mark.parametrize("reason", [Reason.INTERRUPTED, Reason.MAX_TIME, Reason.MAX_PASSES])
@pytest.mark.parametrize("quiet", ["", " -q"])
def test_a_checkpoint_stays_when_training_is_not_done_and_the_last_line_says_how_to_go_on(
    folder, told, capsys, monkeypatch, reason, quiet
):
    told["reason"] = reason
    code = 130 if reason is Reason.INTERRUPTED else 0
    for resume in ("", " --resume"):
        monkeypatch.setattr(sys, "argv", f"dotadd train x.svm -o m{quiet}{resume}".split())
        assert run() == code
        last = capsys.readouterr().err.splitlines()[-1]
        assert re.match("dotadd: to go on from m.checkpoint", last)
        assert last.endswith(f": dotadd train x.svm -o m{quiet} --resume")
        assert ("--max-passes" in last) is (reason is Reason.MAX_PASSES)
        assert sorted(os.listdir()) == ["m", "m.checkpoint", "x.svm"]


def test_training_in_memory_leaves_a_checkpoint_alone(folder, capsys):
    (folder / "m.checkpoint").write_text("of another run")
    assert train("-o m") == 0
    assert (folder / "m.checkpoint").read_text() == "of another run"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-o m --resume", "m.checkpoint: there is no checkpoint to go on from; leave out --resume to start anew"),
        ("-o m --resume --checkpoint c", "c: there is no checkpoint"),
        ("-o m --checkpoint m", "m cannot be both model and checkpoint"),
        ("-o m --checkpoint none/c", "the folder .* does not exist"),
        ("-o m --checkpoint-every 0", "--checkpoint-every 0 has to be a positive number of seconds"),
        ("-o m --checkpoint-every nan", "--checkpoint-every: 'nan' is not a finite number"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(folder, capsys, options, words):
    assert train(options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"dotadd: error: .*{words}.*\n", err)
    assert os.listdir() == ["x.svm"]


def test_a_pipe_has_no_checkpoint_beside_it(folder, capsys):
    os.mkfifo("pipe")
    assert Streaming().path("pipe") is None
    assert Streaming(checkpoint="c").path("pipe") == "c"
    assert train("-o pipe --resume") == 2
    assert "name one with --checkpoint" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["pipe", "x.svm"]


def test_passes_are_logged_and_what_happens_within_them_is_not(folder, told):
    for resume, lines in (("", 2), (" --resume", 4)):  # the log goes on
        told["reason"] = Reason.MAX_TIME
        assert train(f"-o m -q --log log{resume}") == 0
        records = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        assert len(records) == lines
        *_, after_pass, summary = records
        assert (after_pass["passes"], after_pass["read"], after_pass["cached"]) == (1, 1.0, 2)
        assert "summary" in summary


def test_announcements_are_lines_of_their_own_and_none_if_quiet(folder, told, capsys):
    train("-o m --memory 1kB")
    assert "dotadd: the data is larger than 1kB\n" in capsys.readouterr().err
    train("-o m --memory 1kB -q")
    assert capsys.readouterr() == ("", "")


def test_the_summary_tells_budget_and_rows_in_memory(folder, told, capsys):
    train("-o m --memory 1kB")
    shown = capsys.readouterr().out
    assert "1kB for examples, 2 in it at the end" in shown
    assert re.search("passes .* over the data on disk in", shown)


@pytest.fixture
def large(folder):
    """Some rows of which few fit into 2 kB."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)).round(3)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1, -1)
    lines = (f"{k} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, k in zip(X, y, strict=True))
    (folder / "x.svm").write_text("\n".join(lines) + "\n")
    return folder


def test_training_that_was_cut_short_goes_on_to_the_same_objective(large, capsys):
    assert train("-o whole -q") == 0
    assert train("-o m --memory 2kB --max-passes 2 --log log") == 0
    assert "m.checkpoint" in capsys.readouterr().err.splitlines()[-1]
    assert (large / "m.checkpoint").exists()
    assert train("-o m --memory 2kB --log log --resume") == 0
    out, err = capsys.readouterr()
    assert "2kB for examples" in out
    assert "in place of x.svm" in err
    assert not (large / "m.checkpoint").exists()
    (whole,), (parts,) = (load(name).training["primal"] for name in ("whole", "m"))
    assert parts == pytest.approx(whole, rel=2e-3)
    records = [json.loads(line) for line in (large / "log").read_text().splitlines()]
    passes = [record["passes"] for record in records if "passes" in record]
    assert passes == list(range(1, len(passes) + 1))
    assert all(record["read"] == 1.0 for record in records if "passes" in record)


def test_training_that_begins_anew_does_not_replace_the_checkpoint_of_an_earlier_run(large, capsys):
    assert train("-o m -q --memory 2kB --max-passes 2") == 0
    before = (large / "m.checkpoint").read_bytes()
    capsys.readouterr()
    for again in ("-o m", "-o m --checkpoint m.checkpoint", "-o other --checkpoint m.checkpoint -C 7"):
        assert train(f"{again} -q --memory 2kB") == 2
        line = r"dotadd: error: m.checkpoint: holds training from 2.*: .*--resume.* anew, remove it.*\n"
        assert re.fullmatch(line, capsys.readouterr().err)
        assert (large / "m.checkpoint").read_bytes() == before
    with pytest.raises(CheckpointError, match=r"m\.checkpoint: holds training"):
        LinearSVM(memory="2kB").fit("x.svm", checkpoint="m.checkpoint")
    assert (large / "m.checkpoint").read_bytes() == before
    assert train("-o m -q --memory 2kB --resume") == 0
    assert train("-o m -q --memory 2kB") == 0


def test_training_that_is_done_leaves_no_checkpoint_that_the_next_one_would_stumble_over(large):
    for _ in range(2):
        svm = LinearSVM(memory="2kB", tol=0.01).fit("x.svm", checkpoint="c", checkpoint_every=1e-9)
        assert svm.result_.converged
        assert not (large / "c").exists()


def test_a_second_run_with_the_checkpoint_of_one_that_lives_is_refused_in_a_line(large, capsys):
    assert train("-o m -q --memory 2kB --max-passes 2 --log log") == 0
    program = "from dotadd import LinearSVM; import sys; LinearSVM(memory='2kB', tol=1e-15, max_passes=10**9).fit("
    program += "'x.svm', checkpoint='m.checkpoint', resume=True, checkpoint_every=1e-9, "
    program += "on_progress=lambda *told: print(1, flush=True))"
    first = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "1\n"
        log = (large / "log").read_bytes()
        capsys.readouterr()
        for again in ("--resume", ""):
            assert train(f"-o m -q --memory 2kB --log log {again}") == 2
            line = (
                "dotadd: error: m.checkpoint: a run that has not ended writes to this checkpoint: wait for it, or give "
            )
            assert capsys.readouterr().err.startswith(line)
        assert (large / "log").read_bytes() == log
        with pytest.raises(CheckpointError, match="has not ended"):
            LinearSVM(memory="2kB").fit("x.svm", checkpoint="m.checkpoint", resume=True)
    finally:
        first.kill()
        first.communicate()
    assert train("-o m -q --memory 2kB --resume") == 0
    assert not [name for name in os.listdir() if name.endswith(("checkpoint", ".lock"))]


def test_the_copy_of_a_text_stays_or_goes_as_asked(large):
    assert train("-o m -q --memory 2kB --max-passes 1 --no-keep-cache") == 0
    assert not list(large.glob("*.arrow"))
    assert train("-o n -q --memory 2kB --max-passes 1") == 0
    assert len(list(large.glob("*.arrow"))) == 1


def test_what_is_no_checkpoint_is_refused_whether_the_data_fits_or_not(large, capsys):
    (large / "m.checkpoint").write_text("something else")
    for memory in ("", " --memory 2kB"):
        assert train(f"-o m --resume{memory}") == 2
        assert "no checkpoint of dotadd, or damaged" in capsys.readouterr().err
    assert train("-o m --memory few") == 2
    assert "'few' is no size of memory" in capsys.readouterr().err
