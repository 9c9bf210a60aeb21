"""Training on files larger than the memory for them: what memory is used, what is written beside, and what survives."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from problems import arrow

import dotadd
from dotadd import LinearSVM
from dotadd.errors import DataError, DotaddError, NotConvergedWarning, StreamingWarning
from dotadd.problem.columns import Tally
from dotadd.sources.identity import Watched

MEASURED = """
import sys
from dotadd import LinearSVM
import warnings
warnings.simplefilter("ignore")
svm = LinearSVM(memory=sys.argv[2], max_passes=int(sys.argv[3]), n_jobs=2).fit(sys.argv[1])
assert svm.result_.solver == "stream", svm.result_.solver
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) * 1024)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from /proc")
def test_peak_memory_is_the_budget_plus_w_and_alpha_plus_300_mb(tmp_path):
    rows, width, budget = 50_000, 1000, 20_000_000
    script = tmp_path / "measured.py"
    script.write_text(MEASURED)

    def run(path, memory):
        found = subprocess.run(
            [sys.executable, script, path, str(memory), "3"], capture_output=True, text=True, check=True
        )
        return int(found.stdout.split()[-1])

    few = arrow(tmp_path / "few.arrow", 3000, width)
    run(few, 1_200_000)  # what has to be compiled is compiled here
    path = arrow(tmp_path / "many.arrow", rows, width)
    assert os.path.getsize(path) > 10 * budget * 0.99
    assert run(path, budget) <= budget + 4 * width + 9 * rows + 300_000_000


GROWN = """
import sys
import warnings
from dotadd import LinearSVM
warnings.simplefilter("ignore")

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024

phi = "(Number('n0', 'n1') + Category(" + ", ".join(f"'c{k}'" for k in range(30)) + ")).hashed(16)"
for path, memory in ((sys.argv[1], "100kB"), (sys.argv[2], sys.argv[3])):
    before = peak()
    svm = LinearSVM(phi, C=0.1, memory=memory, max_passes=2, n_jobs=2).fit(path, keep_cache=False)
    assert svm.result_.solver == "stream", svm.result_.solver
    assert 0 < svm.result_.kept_bytes <= int(memory.replace("kB", "000")), svm.result_.kept_bytes
print(peak() - before)
"""


def table(path, rows):
    """A CSV of numbers and words, of which rows in memory take several times as much as in the file."""
    rng = np.random.default_rng(rows)
    values, numbers = rng.integers(0, 1000, (rows, 30)), rng.normal(size=(rows, 2)).round(2)
    y = (values[:, 0] + (rng.random(rows) < 0.2)) % 2
    with open(path, "w") as file:
        file.write(",".join(["label", "n0", "n1", *(f"c{k}" for k in range(30))]) + "\n")
        for label, pair, row in zip(y.tolist(), numbers.tolist(), values.tolist(), strict=True):
            file.write(",".join([str(label), *map(str, pair), *map(hex, row)]) + "\n")
    return str(path)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from /proc")
def test_a_table_that_turns_out_too_large_to_be_loaded_grows_the_process_by_the_budget_and_100_mb(tmp_path):
    """While it is loaded in vain, copied, trained on with its features kept, and proved."""
    budget = 15_000_000
    few, many = table(tmp_path / "few.csv", 1000), table(tmp_path / "many.csv", 80_000)
    command = [sys.executable, "-c", GROWN, few, many, str(budget)]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown <= budget + 100_000_000


def libsvm(path, rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=50)
    with open(path, "w") as file:
        for _ in range(rows):
            indices = np.sort(rng.choice(50, 8, replace=False))
            values = rng.normal(size=8).round(3)
            label = "+1" if values @ w[indices] + rng.normal() > 0 else "-1"
            file.write(label + "".join(f" {i + 1}:{v}" for i, v in zip(indices, values, strict=True)) + "\n")
    return str(path)


def quiet_fit(svm, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamingWarning)
        return svm.fit(*arguments, **options)


def test_text_larger_than_the_budget_is_streamed_from_a_copy_beside_it(tmp_path):
    path = libsvm(tmp_path / "x.svm")
    said = []
    svm = LinearSVM(memory="20kB", n_jobs=1).fit(path, announce=said.append)
    assert svm.result_.solver == "stream"
    assert "20 kB" in svm.result_.why
    assert any("x.svm.dotadd.arrow" in line for line in said)
    copy = tmp_path / "x.svm.dotadd.arrow"
    stamp = copy.stat().st_mtime_ns
    assert svm.result_.primal == pytest.approx(LinearSVM(solver="dcd").fit(path).result_.primal, rel=2e-3)
    quiet_fit(LinearSVM(memory="20kB", n_jobs=1), path)
    assert copy.stat().st_mtime_ns == stamp
    quiet_fit(LinearSVM(memory="20kB", n_jobs=1), path, keep_cache=False)
    assert not copy.exists()
    with pytest.warns(StreamingWarning, match="takes more than 20 kB of memory"):
        LinearSVM(memory="20kB", n_jobs=1).fit(path)


def test_data_within_the_budget_is_loaded(tmp_path):
    path = libsvm(tmp_path / "x.svm", rows=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamingWarning)
        svm = LinearSVM(memory="10MB").fit(path)
    assert svm.result_.solver != "stream"
    assert not (tmp_path / "x.svm.dotadd.arrow").exists()


def test_streaming_predicts_like_training_in_memory(tmp_path):
    """Classes, class weights, sample weights, several classes, learned features, bad rows that are skipped."""
    rng = np.random.default_rng(3)
    words = ["red", "green", "blue", "cat", "dog", "sun", "moon"]
    lines = ["text,label,weight"]
    for _ in range(900):
        k = int(rng.integers(0, 3))
        text = " ".join([words[k], *rng.choice(words[3:], 4)])
        lines.append(f"{text},{'abc'[k]},{rng.integers(1, 4)}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    source = lambda: dotadd.open(path, column="text", label="label", weight="weight")  # noqa: E731
    options = {"C": 0.1, "class_weight": "balanced", "tol": 1e-4}
    phi = dotadd.BagOfWords().indexed("hash_table")
    streamed = quiet_fit(LinearSVM(phi, memory="10kB", n_jobs=1, **options), source())
    loaded = LinearSVM(phi, **options).fit(source())
    assert [r.solver for r in streamed.result_] == ["stream"] * 3
    assert streamed.classes_.tolist() == loaded.classes_.tolist() == ["a", "b", "c"]
    for one, other in zip(streamed.result_, loaded.result_, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=3e-4)
    texts = ["red cat", "green sun", "blue dog moon"]
    assert streamed.predict(texts).tolist() == loaded.predict(texts).tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("solver", ["ocas", "newton", "block_minimization", "selective_block_minimization"])
def test_other_solvers_take_data_larger_than_memory(tmp_path, solver):
    path = libsvm(tmp_path / "x.svm")
    loss = "squared_hinge" if solver == "newton" else "hinge"
    svm = quiet_fit(LinearSVM(memory="30kB", solver=solver, loss=loss, n_jobs=1, C=0.1), path)
    assert svm.result_.solver == solver
    assert svm.result_.primal == pytest.approx(
        LinearSVM(solver="dcd", loss=loss, C=0.1).fit(path).result_.primal, rel=2e-3
    )


def test_what_needs_all_examples_in_memory_says_so(tmp_path):
    path = libsvm(tmp_path / "x.svm")
    for solver in ("dcd", "sgd"):
        with pytest.raises(DotaddError, match=f"solver='{solver}' works with examples in memory.*x.svm.*use solver="):
            LinearSVM(memory="20kB", solver=solver).fit(path)
    with pytest.raises(DotaddError, match="is no size of memory"):
        LinearSVM(memory="much").fit(path)
    with pytest.raises(DotaddError, match="there is no checkpoint to resume from"):
        LinearSVM().fit(path, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(DotaddError, match="cannot resume what it has begun"):
        LinearSVM(solver="block_minimization").fit(path, checkpoint=tmp_path / "c", resume=True)


@pytest.mark.parametrize("free", [3, 10**5, 10**12])
def test_a_run_goes_on_with_the_budget_it_had_whatever_is_free_now(tmp_path, free, monkeypatch):
    """More might hold all the data, less might not hold what was kept; either way the bits are those of one run."""
    path = arrow(tmp_path / "x.arrow", 4000, 20, batch=100)
    options = {"n_jobs": 1, "random_state": 3, "C": 0.1}
    with monkeypatch.context() as then:
        then.setattr("dotadd.estimators.fitting.available", lambda: 200_000)
        unbroken = quiet_fit(LinearSVM(**options), path)
        file = tmp_path / "c"
        with pytest.warns(NotConvergedWarning):
            quiet_fit(LinearSVM(**options, max_passes=1), path, checkpoint=file)
    monkeypatch.setattr("dotadd.estimators.fitting.available", lambda: free)
    resumed = quiet_fit(LinearSVM(**options), path, checkpoint=file, resume=True, keep_checkpoint=True)
    assert resumed.result_.solver == "stream"
    assert resumed.coef_.tobytes() == unbroken.coef_.tobytes()
    assert resumed.result_.passes == unbroken.result_.passes
    smaller = quiet_fit(LinearSVM(**options, memory="40kB"), path, checkpoint=file, resume=True)
    assert smaller.result_.gap <= 1e-3
    assert max(row.cached for row in smaller.result_.trace[1:]) < max(row.cached for row in unbroken.result_.trace)


@pytest.mark.parametrize("how", ["cut", "touched"])
def test_a_file_that_changes_during_training_ends_it_with_a_checkpoint(tmp_path, how):
    path = arrow(tmp_path / "x.arrow", 4000, 20, batch=100)
    checkpoint = tmp_path / "c"

    def change(progress, k, n):
        if progress.passes == 2 and how == "cut":
            os.truncate(path, os.path.getsize(path) // 2)
        elif progress.passes == 2:
            os.utime(path, ns=(1, 1))

    with pytest.raises(DotaddError, match=r"x\.arrow.*(changed|cut off).*resume \(--resume\) goes on from"):
        quiet_fit(LinearSVM(memory="30kB", tol=1e-9, n_jobs=1), path, on_progress=change, checkpoint=checkpoint)
    assert checkpoint.exists()


def test_the_watch_over_files_notices_a_change(tmp_path):
    path = tmp_path / "x.svm"
    libsvm(path, rows=10)
    watched = Watched(dotadd.open(path))
    watched.check()
    path.write_text(path.read_text() + "1 1:1\n")
    with pytest.raises(DataError, match="has changed"):
        watched.check()


def command(*arguments):
    return [sys.executable, "-m", "dotadd", "train", *map(str, arguments)]


def test_kill_9_and_resume_end_with_the_same_model(tmp_path):
    path = arrow(tmp_path / "x.arrow", 2000, 30, batch=500)
    options = ["--memory", "25kB", "--jobs", "1", "--tol", "1e-3", "-C", "2", "--quiet"]
    subprocess.run(command(path, "-o", tmp_path / "unbroken", *options), check=True)
    broken = command(path, "-o", tmp_path / "broken", *options, "--checkpoint-every", "0.05")
    checkpoint = tmp_path / "broken.checkpoint"
    for _ in range(5):  # on a machine where it is over before it can be killed, try again
        checkpoint.unlink(missing_ok=True)
        process = subprocess.Popen(broken)
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.returncode == -signal.SIGKILL:
            break
    assert process.returncode == -signal.SIGKILL, "it was over before it could be killed"
    assert checkpoint.exists()
    assert not (tmp_path / "broken").exists()
    subprocess.run([*broken, "--resume"], check=True)
    assert not checkpoint.exists()
    one, other = (dotadd.load(tmp_path / name) for name in ("unbroken", "broken"))
    assert other.training["passes"] == one.training["passes"]
    assert other.training["primal"] == one.training["primal"]
    assert other.w.tobytes() == one.w.tobytes()


def test_ctrl_c_writes_the_model_with_its_gap_and_says_how_to_go_on(tmp_path):
    path = arrow(tmp_path / "x.arrow", 20_000, 30, batch=500)
    arguments = command(
        path, "-o", tmp_path / "m", "--memory", "200kB", "--tol", "1e-12", "-C", "10", "--log", tmp_path / "log"
    )
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, restore_signals=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not (tmp_path / "log").exists() or not (tmp_path / "log").stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    model = dotadd.load(tmp_path / "m")
    assert 0 < model.training["gap"] < 1
    assert "--resume" in said
    assert (tmp_path / "m.checkpoint").exists()
    assert "summary" in json.loads((tmp_path / "log").read_text().splitlines()[-1])


def test_parts_without_labels_are_refused_with_the_name_of_the_first(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(2):
        pq.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}), tmp_path / f"{number}.parquet")
    joined = dotadd.open(str(tmp_path / "*.parquet")).load()
    with pytest.raises(DotaddError, match=r"0\.parquet: has no labels to train on"):
        Tally().note(joined)
