"""Training in memory that was cut short and goes on from its checkpoint ends as if nothing had happened."""

import json
import os
import re
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from problems import INTERCEPTS, flow_of, noisy, problem, sparse

import dotadd
from dotadd import LinearSVM
from dotadd._util.memory import Budget
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.shard import Shard
from dotadd.core.losses import Loss
from dotadd.data.batches import Strings
from dotadd.errors import DotaddError, NotConvergedWarning
from dotadd.features import NGrams, Shape, WeightedDegree
from dotadd.features.linear import Linear
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers import sample
from dotadd.solvers.checkpoint import Checkpoint, CheckpointError
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.table import SOLVERS, Needs, that_need

RESUMED = [name for name, solver in that_need(Needs.ROWS, Needs.PASSES).items() if solver.checkpoints]
BATCH = [name for name in RESUMED if SOLVERS[name].needs is Needs.PASSES]
SETTINGS = Settings(tol=1e-4, max_passes=400, seed=3)


def three_classes(n=200):
    X, _ = noisy(n=n)
    labels = np.argmax(X[:, :3] + 0.5 * np.random.default_rng(1).normal(size=(n, 3)), axis=1)
    return X, [np.where(labels == k, 1, -1) for k in range(3)]


def told(result):
    """All of a result but for the seconds."""
    numbers = [result.intercept, result.primal, result.dual, result.gap, result.passes, result.reason]
    alpha = None if result.alpha is None else result.alpha.tobytes()
    trace = [plain(row._replace(seconds=0.0)) for row in result.trace]
    return [result.w.tobytes(), alpha, plain(numbers), trace]


def plain(row):
    """In words, so that nothing that is no number equals itself, whoever has made it."""
    return [repr(float(one) if isinstance(one, np.floating) else one) for one in row]


def assert_same(results, others):
    assert [told(one) for one in results] == [told(one) for one in others]


def cut_short(name, make, folder, tells, settings=SETTINGS):
    """The results of a run that is interrupted when it has told so often how far it is, and goes on; a problem is made
    anew for each of them."""
    heard = []

    def stop(progress, k):
        heard.append(k)
        if len(heard) == tells:
            raise KeyboardInterrupt

    where = Checkpoint(str(folder / "c"), 1e9)
    before = SOLVERS[name](make(), replace(settings, on_progress=stop, checkpoint=where))
    if len(heard) < tells or all(result.converged for result in before):
        return before
    return SOLVERS[name](make(), replace(settings, seed=99, checkpoint=where, resume=True))


@pytest.mark.parametrize("name", RESUMED)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, name, intercept):
    X, ys = three_classes()
    for loss in [loss.name.lower() for loss in SOLVERS[name].losses]:

        def make(loss=loss):
            return problem(X, ys[:1], loss=loss, intercept=intercept, cost=10.0, dtype=np.float32)

        expected = SOLVERS[name](make(), SETTINGS)
        for tells in (1, 5, 13, 40):
            assert_same(cut_short(name, make, tmp_path, tells), expected)


@pytest.mark.parametrize("name", RESUMED)
def test_a_limit_on_passes_that_is_raised_leads_to_the_same_bits(tmp_path, name):
    """In dcd a limit calls for the tail when a quarter of it is over, and after ten passes: a lower one for none."""
    X, ys = three_classes(100)
    for loss in [loss.name.lower() for loss in SOLVERS[name].losses]:
        one = problem(X, ys, loss=loss, cost=10.0, dtype=np.float32)
        settings = replace(SETTINGS, tol=1e-3)
        expected = SOLVERS[name](one, settings)
        for passes in (1, 4, 9 if name == "dcd" else 23):
            where = Checkpoint(str(tmp_path / "c"), 1e9)
            before = SOLVERS[name](one, replace(settings, max_passes=passes, checkpoint=where))
            if not all(result.converged for result in before):
                assert_same(SOLVERS[name](one, replace(settings, seed=9, checkpoint=where, resume=True)), expected)


@pytest.mark.parametrize("name", RESUMED)
@pytest.mark.parametrize("tells", [2, 9, 30, 60])
def test_several_classes_go_on_together_and_those_that_are_done_stay_as_they_are(tmp_path, name, tells):
    X, ys = three_classes()
    loss = "squared_hinge" if name == "newton" else "hinge"

    def make():
        return problem(X, ys, loss=loss, cost=[1.0, 10.0] * (len(X) // 2), dtype=np.float32)

    assert_same(cut_short(name, make, tmp_path, tells), SOLVERS[name](make(), SETTINGS))


def texts(phi, threads, *, keep, count=300):
    rng = np.random.default_rng(0)
    words = ["offer", "free", "win", "meeting", "notes", "lunch", "report", "today"]
    y = np.where(rng.random(count) < 0.4, 1, -1)
    lines = [" ".join(rng.choice(words, 8, p=np.where(np.arange(8) < 3, 3 + k, 3) / (24 + 3 * k))) for k in y]
    batch = Strings.from_list(lines)
    phi = phi.resolve(Shape.of(batch)).learn(batch)
    examples = InMemory(phi, batch, threads=threads, budget=Budget(1 << 30) if keep else None)
    signs = [one.astype(np.int8) for one in (y, np.roll(y, 7), np.where(np.arange(count) % 3 == 0, 1, -1))]
    return Problem(examples, Columns.of(signs, np.full(count, 5.0)), Loss.SQUARED_HINGE)


@pytest.mark.parametrize("name", RESUMED)
@pytest.mark.parametrize(("keep", "threads"), [(True, 1), (True, 2), (False, 1)])
def test_rows_that_are_kept_or_made_anew_and_threads_change_no_bit(tmp_path, name, keep, threads):
    def make():
        return texts(NGrams((2, 3)).hashed(10), threads, keep=keep)

    settings = replace(SETTINGS, tol=1e-3)
    resumed, expected = cut_short(name, make, tmp_path, 7, settings), SOLVERS[name](make(), settings)
    if name == "newton" and not keep:  # which passes serve two classes depends on when these began to ask
        resumed, expected = ([replace(one, passes=0, trace=[]) for one in some] for some in (resumed, expected))
    assert_same(resumed, expected)


def test_a_sample_goes_on_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(sample, "FIRST", 40)
    rng = np.random.default_rng(0)
    letters = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, (400, 12))]
    y = np.where(rng.random(400) < 0.3, 1, -1).astype(np.int8)
    letters[(y > 0) & (rng.random(400) < 0.8), 5:8] = np.frombuffer(b"CAG", np.uint8)
    batch = Strings(letters.ravel(), width=12)
    phi = WeightedDegree(3).normalized().resolve(Shape.of(batch))

    def make():
        return Problem(InMemory(phi, batch), Columns.of([y], np.full(400, 1.0)))

    (expected,) = SOLVERS["dcd"](make(), SETTINGS)
    sizes = {row.sample for row in expected.trace}
    assert len(sizes) > 2
    for passes in (1, 3, 6, 10):
        assert_same(cut_short("dcd", make, tmp_path, passes), [expected])


@pytest.mark.parametrize("name", BATCH)
def test_batch_solvers_go_on_with_data_on_disk(tmp_path, name):
    X, ys = three_classes()
    loss = "squared_hinge" if name == "newton" else "hinge"

    def make():
        return flow_of(sparse(X), Linear().resolve(Shape.of(sparse(X))), ys, 10.0, loss=loss).hold()

    assert_same(cut_short(name, make, tmp_path, 9), SOLVERS[name](make(), SETTINGS))


@pytest.mark.parametrize("name", RESUMED)
def test_a_checkpoint_that_is_written_all_the_time_changes_nothing_and_any_of_them_will_do(tmp_path, name, monkeypatch):
    """As if it had been killed after each of them."""
    X, ys = three_classes(80)
    loss = "squared_hinge" if name == "newton" else "hinge"
    one = problem(X, ys, loss=loss, cost=3.0, dtype=np.float32)
    settings = replace(SETTINGS, tol=1e-2)
    expected, written = SOLVERS[name](one, settings), []
    save = Checkpoint.save

    def kept(self, arrays, record):
        save(self, arrays, record)
        if len(written) < 200:
            (tmp_path / f"c{len(written)}").write_bytes((tmp_path / "c").read_bytes())
            written.append(tmp_path / f"c{len(written)}")
        self._next = 0.0

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", kept)
        where = Checkpoint(str(tmp_path / "c"), 1e-9)
        time.sleep(0.001)
        assert_same(SOLVERS[name](one, replace(settings, checkpoint=where)), expected)
    assert len(written) > 3
    for path in written[:: max(1, len(written) // 5)]:
        again = replace(settings, seed=7, checkpoint=Checkpoint(str(path), 1e9), resume=True)
        assert_same(SOLVERS[name](one, again), expected)


@pytest.mark.parametrize("name", ["dcd", "sgd"])
def test_a_pass_that_was_cut_short_goes_on_at_its_next_row(tmp_path, name, monkeypatch):
    """Time is over between two blocks, somewhere in the middle of a pass."""
    from dotadd.features import filling
    from dotadd.solvers.clock import Clock, StoppedError

    monkeypatch.setattr(filling, "CALL_NONZEROS", 50)
    X, ys = three_classes()
    expected = SOLVERS[name](problem(X, ys, cost=3.0), SETTINGS)
    left = [37]

    def check(self):
        left[0] -= 1
        if left[0] <= 0:
            raise StoppedError(Reason.MAX_TIME)

    where = Checkpoint(str(tmp_path / "c"), 1e9)
    with monkeypatch.context() as patched:
        patched.setattr(Clock, "check", check)
        patched.setattr(Clock, "peek", check)
        SOLVERS[name](problem(X, ys, cost=3.0), replace(SETTINGS, checkpoint=where))
    again = SOLVERS[name](problem(X, ys, cost=3.0), replace(SETTINGS, checkpoint=where, resume=True))
    assert_same(again, expected)


@pytest.mark.parametrize("name", RESUMED)
def test_a_run_goes_on_to_another_tolerance(tmp_path, name):
    """A class that was done has to be done better; a looser tolerance is reached at once."""
    X, ys = three_classes()
    loss = "squared_hinge" if name == "newton" else "hinge"
    one = problem(X, ys, loss=loss, cost=[1.0, 10.0] * (len(X) // 2))
    where = Checkpoint(str(tmp_path / "c"), 1e9)
    coarse = SOLVERS[name](one, Settings(tol=0.3, max_passes=3, checkpoint=where))
    assert (tmp_path / "c").exists()
    for tol in (1e-5, 0.5):
        fine = SOLVERS[name](one, Settings(tol=tol, max_passes=5000, checkpoint=where, resume=True))
        assert all(result.converged for result in fine)
        if coarse[0].gap is not None:
            assert all(result.gap <= tol for result in fine)


@pytest.mark.parametrize("name", RESUMED)
def test_no_checkpoint_is_asked_for_and_nothing_is_copied_for_one(name, monkeypatch):
    from dotadd.solvers import saving

    def refuse(*_):
        raise AssertionError("nobody has asked for a state")

    monkeypatch.setattr(saving.Saving, "save", refuse)
    monkeypatch.setattr("dotadd.solvers.planes.Planes.state", refuse)
    monkeypatch.setattr("dotadd.solvers.lbfgs.History.state", refuse)
    X, ys = three_classes(100)
    SOLVERS[name](problem(X, ys, loss="squared_hinge"), Settings(tol=1e-2, max_passes=50))


def quiet(svm, *data, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return svm.fit(*data, **how)


def machine(**more):
    return LinearSVM(**({"C": 10.0, "tol": 1e-4, "random_state": 0, "n_jobs": 1} | more))


@pytest.mark.parametrize("solver", ["auto", *RESUMED])
def test_an_estimator_goes_on_and_removes_its_checkpoint_when_it_is_done(tmp_path, solver):
    X, y = noisy(n=300)
    where, loss = tmp_path / "c", "squared_hinge"
    expected = quiet(machine(solver=solver, loss=loss), X, y)
    short = quiet(machine(solver=solver, loss=loss, max_passes=2), X, y, checkpoint=where)
    assert where.exists()
    with pytest.raises(CheckpointError, match="holds training from"):
        quiet(machine(solver=solver, loss=loss), X, y, checkpoint=where)
    svm = quiet(machine(solver=solver, loss=loss), X, y, checkpoint=where, resume=True)
    assert svm.result_.solver == short.result_.solver == expected.result_.solver
    assert np.array_equal(svm.coef_, expected.coef_)
    assert svm.result_.gap == expected.result_.gap
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_an_earlier_version_which_counted_less_is_gone_on_from(tmp_path):
    X, ys = three_classes(100)
    one = problem(X, ys[:1], loss="hinge", cost=10.0, dtype=np.float32)
    settings = replace(SETTINGS, tol=1e-3)
    where = Checkpoint(str(tmp_path / "c"), 1e9)
    (before,) = SOLVERS["dcd"](one, replace(settings, max_passes=9, checkpoint=where))
    assert not before.converged
    with np.load(tmp_path / "c") as file:
        arrays = dict(file)
    text, found = arrays["record"].tobytes().decode(), []

    def without(pairs):
        found.extend(name for name, _ in pairs if name.split(".")[-1] in ("stretch", "looked"))
        return {name: value for name, value in pairs if name.split(".")[-1] not in ("stretch", "looked")}

    arrays["record"] = np.frombuffer(json.dumps(json.loads(text, object_pairs_hook=without)).encode(), np.uint8)
    assert len(found) == 2
    with open(tmp_path / "c", "wb") as file:
        np.savez(file, **arrays)
    (result,) = SOLVERS["dcd"](one, replace(settings, checkpoint=where, resume=True))
    assert result.converged
    assert result.gap <= 1e-3
    assert result.passes > 9


def test_what_wrote_a_checkpoint_goes_on_with_it_and_nothing_else_does(tmp_path):
    X, y = noisy(n=300)
    where = tmp_path / "c"
    quiet(machine(solver="ocas", max_passes=2), X, y, checkpoint=where)
    before = where.read_bytes()
    refused = {
        "solver was ocas, and is lbfgs": (machine(solver="lbfgs"), X, y),
        "solver was ocas, and is stream": (machine(solver="stream"), X, y),
        "data was": (machine(), X + 1e-3, y),
        "intercept was regularized, and is free": (machine(intercept="free"), X, y),
        "cost was": (machine(C=3.0), X, y),
        "dtype was": (machine(dtype="float64"), X, y),
        "loss was": (machine(loss="logistic"), X, y),
        "features was": (machine(phi="Polynomial(2)"), X, y),
    }
    for message, (svm, *data) in refused.items():
        with pytest.raises(CheckpointError, match=f"c: is a checkpoint of another problem: {message}"):
            svm.fit(*data, checkpoint=where, resume=True)
    with pytest.raises(CheckpointError, match="data was"):
        machine().fit(X, -y, checkpoint=where, resume=True)
    with pytest.raises(CheckpointError, match="solver was ocas, and is cocoa"):
        machine().fit(None, engine=LocalEngine([Shard(dotadd.open(X, y), 10**6)]), checkpoint=where, resume=True)
    with pytest.raises(DotaddError, match="start= from an earlier fit: give one of them"):
        machine().fit(X, y, checkpoint=where, resume=True, start=machine().fit(X, y).result_)
    assert where.read_bytes() == before
    assert quiet(machine(), X, y, checkpoint=where, resume=True).result_.solver == "ocas"


@pytest.mark.parametrize("later", [-10, -1, 1, 4])
def test_auto_that_changes_its_mind_goes_on_before_and_after_it_does(tmp_path, later):
    """Coordinate descent creeps, as in test_choice.py, and cutting planes go on from its w."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6)) * np.where(rng.random(4000) < 0.003, 40.0, 0.5)[:, None]
    y = np.where(X @ rng.normal(size=6) + 2.0 * rng.normal(size=4000) > 0, 1, -1)
    expected = machine(C=1.0, intercept="free").fit(X, y).result_
    assert expected.solver == "ocas"
    tells, heard = int(re.search(r"crept, and after (\d+) passes", expected.why)[1]) + later, []

    def stop(progress, k, n):
        heard.append(progress)
        if len(heard) == tells:
            raise KeyboardInterrupt

    where = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        quiet(machine(C=1.0, intercept="free"), X, y, on_progress=stop, checkpoint=where)
    assert Checkpoint(str(where)).solver_on_disk() == ("dcd" if later < 0 else "ocas")
    resumed = machine(C=1.0, intercept="free", random_state=5).fit(X, y, checkpoint=where, resume=True).result_
    assert resumed.solver == "ocas"
    assert_same([resumed], [expected])


def test_what_parts_have_written_is_not_taken_for_something_else(tmp_path):
    X, y = noisy(n=300)
    where, engine = tmp_path / "c", LocalEngine([Shard(dotadd.open(X, y), 10**6)])
    quiet(machine(max_passes=1, tol=1e-12), None, engine=engine, checkpoint=where)
    with pytest.raises(CheckpointError, match=r"of parts of the data: give engine= \(--workers\)"):
        machine().fit(X, y, checkpoint=where, resume=True)


KILLED = """
import sys
from dotadd import LinearSVM
svm = LinearSVM(solver=sys.argv[1], loss="squared_hinge", C=10.0, tol=1e-13, max_passes=10**9, n_jobs=2)
svm.fit(
    "x.svm", checkpoint="c", checkpoint_every=1e-3, resume=sys.argv[2] == "resume",
    on_progress=lambda progress, k, n: print(progress.passes, flush=True),
)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("solver", RESUMED)
def test_sigkill_at_any_moment_does_no_harm(tmp_path, solver):
    """Killed twice at random, then ended at a looser tolerance, with its proof."""
    X, ys = three_classes(1000)
    labels = np.argmax(np.stack(ys), axis=0)
    rows = (f"{k} " + " ".join(f"{j + 1}:{v:.4g}" for j, v in enumerate(x)) for x, k in zip(X, labels, strict=True))
    (tmp_path / "x.svm").write_text("\n".join(rows) + "\n")
    for way in ("begin", "resume"):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", KILLED, solver, way],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until = time.monotonic() + 120
        while not (tmp_path / "c").exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        process.stdout.readline()  # it is at work
        time.sleep(0.05)
        process.kill()
        said = [line for line in process.communicate()[1].splitlines() if "compiling for this machine" not in line]
        assert not said, said
        if not (tmp_path / "c").exists():
            return  # nothing was left to do
    record = json.loads(np.load(tmp_path / "c")["record"].tobytes())
    assert record["problem"]["solver"] == solver
    svm = LinearSVM(solver=solver, loss="squared_hinge", C=10.0, tol=1e-2, max_passes=20_000)
    quiet(svm, str(tmp_path / "x.svm"), checkpoint=tmp_path / "c", resume=True)
    assert all(result.converged for result in svm.result_)
    assert {result.solver for result in svm.result_} == {solver}
    assert not (tmp_path / "c").exists()
