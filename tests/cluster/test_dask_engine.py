"""Parts on Dask workers, in real processes: the same bits as in one process, whatever happens to the workers."""

import os
import signal
import threading
import time

import naive
import numpy as np
import pytest
from clusters import Struck, data, even, free_port, killed, pids, scheduler, worker, workers_forked, write_parts
from problems import LOSSES
from test_cocoa import shares, stated

pytest.importorskip("distributed")

import dask

from dotadd import LinearSVM
from dotadd.cluster import connection, dask_engine
from dotadd.cluster.average import average
from dotadd.cluster.cocoa import cocoa
from dotadd.cluster.connection import connected, local_workers
from dotadd.cluster.dask_engine import DaskEngine
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.partitions import Files, Partitions
from dotadd.cluster.requests import Begin, Descend, Describe, DualVariables, Measure, Solve
from dotadd.cluster.shard import Shard
from dotadd.errors import DataError, DotaddError
from dotadd.features import Linear
from dotadd.solvers import checkpoint
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings

TOL = Settings(tol=1e-3, max_passes=2000)
C = 0.1


@pytest.fixture(scope="module")
def workers():
    with workers_forked(), local_workers(4, 4) as client:
        yield client


@pytest.fixture
def cluster(workers):
    """Four workers; those that a test has killed are back."""
    workers.wait_for_workers(4, timeout=240)
    return workers


def here(engine):
    """The same parts in this process."""
    sources = [engine.data.source(group) for group in engine.groups]
    return LocalEngine([Shard(source, 1 << 30, number=k) for k, source in enumerate(sources)])


def best(X, y, loss="hinge", cost=C):
    return naive.solve(X, y, np.full(len(y), cost), loss, "regularized")[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_one_two_and_four_workers_find_the_bits_that_one_process_finds(cluster, tmp_path, parts, loss, monkeypatch):
    monkeypatch.setattr(dask_engine, "SMALL", 0)  # so that messages go down the tree
    X, y = data()
    pattern = write_parts(tmp_path, X, y, shares(240, parts))
    with DaskEngine(cluster, Partitions.of(pattern)) as engine:
        assert len({seat.worker for seat in engine._seats.values()}) == engine.parts == parts
        (result,) = cocoa(engine, stated(engine, loss=loss, C=C, dtype=np.float32), TOL)
        local = here(engine)
        (alone,) = cocoa(local, stated(local, loss=loss, C=C, dtype=np.float32), TOL)
    assert result.reason is Reason.CONVERGED
    assert result.primal <= best(X, y, loss) * (1 + 1e-3)
    np.testing.assert_array_equal(result.w, alone.w)
    assert result.trace[-1].gap == alone.trace[-1].gap


def test_an_empty_file_uneven_ones_and_a_class_in_one_of_them_are_fitted_together(cluster, tmp_path):
    X, y = data()
    y = np.where(X[:, 0] > 0.9, 2, y)
    others = np.flatnonzero(y != 2)
    pattern = write_parts(tmp_path, X, y, [others[:150], [], np.flatnonzero(y == 2), others[150:]])
    seen = []
    svm = LinearSVM(C=C).fit(pattern, engine=cluster, on_progress=lambda progress, k, n: seen.append((k, n)))
    for label, result in zip([-1, 1, 2], svm.result_, strict=True):
        assert result.solver == "cocoa"
        assert result.gap <= 1e-3
        assert result.primal <= best(X, np.where(y == label, 1, -1)) * (1 + 1e-3)
    assert set(seen) == {(0, 3), (1, 3), (2, 3)}
    assert svm.score(X, y) > 0.6


def test_a_table_is_read_by_its_columns_on_workers(cluster, tmp_path):
    rng = np.random.default_rng(0)
    jobs, sizes = np.array(["nurse", "cook", "pilot"])[rng.integers(0, 3, 240)], rng.normal(size=240)
    y = np.where((jobs == "nurse") ^ (sizes > 0.5), "yes", "no")
    lines = [f"{job},{size:.3f},{label}" for job, size, label in zip(jobs, sizes, y, strict=True)]
    for number, mine in enumerate(even(240, 3)):
        (tmp_path / f"part-{number}.csv").write_text("\n".join(["job,size,label", *(lines[i] for i in mine)]) + "\n")
    phi, pattern = 'Category("job", bits=8) + Number("size")', str(tmp_path / "part-*.csv")
    together = LinearSVM(phi, C=C).fit(pattern, engine=cluster)
    alone = LinearSVM(phi, C=C, tol=1e-5).fit(pattern)
    assert together.result_.gap <= 1e-3
    assert together.result_.primal <= alone.result_.primal * (1 + 1e-3)
    assert together.score(pattern) == pytest.approx(alone.score(pattern), abs=0.02)


def test_workers_learn_the_scales_of_all_rows_together(cluster, tmp_path):
    X, y = data()
    pattern = write_parts(tmp_path, X, y, shares(240, 4))
    for how in ("std", "robust"):
        phi = Linear().scaled(how, center=False)
        svm = LinearSVM(phi, C=C, tol=0.5, random_state=0).fit(pattern, engine=cluster)
        learned = phi.fit(X)._fitted
        np.testing.assert_array_equal(svm.model_.phi.state()["factor"], learned.state()["factor"])


def test_averaging_is_that_of_one_process_and_survives_the_loss_of_a_worker(cluster, tmp_path):
    X, y = data()
    pattern = write_parts(tmp_path, X, y, shares(240, 3))
    with Struck(cluster, Partitions.of(pattern), strike=killed, at=1, kind=Solve) as engine:
        (result,) = average(engine, stated(engine, C=C, dtype=np.float32), TOL)
        local = here(engine)
        (alone,) = average(local, stated(local, C=C, dtype=np.float32), TOL)
    assert engine._losses == {0: 1}
    np.testing.assert_array_equal(result.w, alone.w)
    assert result.reason is Reason.AVERAGED


@pytest.mark.parametrize("kind", [Descend, Measure])
def test_a_worker_that_is_killed_while_a_round_is_on_its_way_is_made_up_for(cluster, tmp_path, kind):
    X, y = data()
    rows = shares(240, 3)
    pattern = write_parts(tmp_path, X, y, rows)
    said = []
    at = 4 if kind is Descend else 1
    with Struck(cluster, Partitions.of(pattern), strike=killed, at=at, kind=kind, announce=said.append) as engine:
        (result,) = cocoa(engine, stated(engine, C=C, dtype=np.float32), TOL, gather=True)
    assert engine._losses == {0: 1}
    assert any("part 0 with it: made anew elsewhere" in line for line in said)
    assert result.reason is Reason.CONVERGED
    assert result.primal <= best(X, y) * (1 + 1e-3)
    order = np.concatenate(rows)
    np.testing.assert_allclose(result.w, (result.alpha * y[order]) @ X[order], atol=1e-4)


def killed_at_work(engine, worker):
    """The worker gets its call, and dies before it answers."""
    pid = pids(engine.client)[worker]
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()


def cut_off(engine, worker):
    """The driver's connection breaks; Dask connects anew, and all that the driver had there is dropped."""
    engine.client.loop.add_callback(engine.client.scheduler_comm.comm.abort)


def all_cancelled(engine, worker):
    """Somebody cancels what the driver waits for; all workers and parts are there."""
    calls = [key for key in engine.client.futures if "Holder" not in str(key)]
    engine.client.loop.add_callback(engine.client._handle_cancelled_keys, calls)


def all_restarted(engine, worker):
    """Somebody restarts all workers: futures are cancelled, and the parts have gone with their processes."""
    engine.client.restart(timeout=240)


@pytest.mark.parametrize(
    ("strike", "kind", "when"),
    [
        *((killed, Descend, when) for when in ("begins", "vectors", "sent", "answered", "seated")),
        *((killed_at_work, kind, "begins") for kind in (Describe, Begin, Descend, DualVariables)),
        *((strike, Descend, "sent") for strike in (cut_off, all_cancelled, all_restarted)),
    ],
)
def test_whatever_is_lost_at_any_time_of_a_round_training_goes_on_to_the_optimum(
    workers, tmp_path, monkeypatch, strike, kind, when
):
    workers.wait_for_workers(2, timeout=240)
    monkeypatch.setattr(dask_engine, "SMALL", 0)  # so that vectors have a life of their own on the workers
    X, y = data()
    rows = shares(240, 3)
    pattern = write_parts(tmp_path, X, y, rows)
    at = 3 if kind is Descend else 1
    with Struck(workers, Partitions.of(pattern), strike=strike, at=at, kind=kind, when=when) as engine:
        (result,) = cocoa(engine, stated(engine, C=C, dtype=np.float32), TOL, gather=True)
    assert engine.strike is None
    assert result.reason is Reason.CONVERGED
    assert result.primal <= best(X, y) * (1 + 1e-3)
    order = np.concatenate(rows)
    np.testing.assert_allclose(result.w, (result.alpha * y[order]) @ X[order], atol=1e-4)


def test_where_no_worker_is_left_one_that_joins_late_takes_the_parts(tmp_path):
    X, y = data()
    pattern = write_parts(tmp_path, X, y, shares(240, 2))
    said = []
    spawned = {"distributed.worker.multiprocessing-method": "spawn"}  # a forked one is there before anybody misses it
    with dask.config.set(spawned), local_workers(1, 2) as client:
        first = set(client.nthreads())
        with Struck(client, Partitions.of(pattern), strike=killed, announce=said.append) as engine:
            assert engine.parts == 2
            (result,) = cocoa(engine, stated(engine, C=C, dtype=np.float32), TOL)
            assert not {seat.worker for seat in engine._seats.values()} & first
    assert result.primal <= best(X, y) * (1 + 1e-3)
    assert any("no worker" in line for line in said)


def test_a_slow_worker_is_waited_for_and_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "SLOW", 0.1)
    X, y = data()
    pattern = write_parts(tmp_path, X, y, shares(240, 2))
    said, names = [], []

    def slowed(engine, worker):
        pid = pids(engine.client)[worker]
        names.append(worker)
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(0.8, os.kill, (pid, signal.SIGCONT)).start()

    with Struck(cluster, Partitions.of(pattern), strike=slowed, when="begins", announce=said.append) as engine:
        (result,) = cocoa(engine, stated(engine, C=C, dtype=np.float32), TOL)
        local = here(engine)
        (alone,) = cocoa(local, stated(local, C=C, dtype=np.float32), TOL)
    np.testing.assert_array_equal(result.w, alone.w)
    assert any(line.startswith(f"descend: waiting for {names[0]} (part 0)") for line in said)


def test_a_part_that_is_lost_again_and_again_ends_training(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "OFTEN", 0)
    X, y = data()
    pattern = write_parts(tmp_path, X, y, even(240, 2))
    with Struck(cluster, Partitions.of(pattern), strike=killed) as engine:
        task = stated(engine, C=C, dtype=np.float32)
        with pytest.raises(DotaddError, match=r"part 0 \(.*part-0.svm\) was lost 1 times.*memory\?"):
            cocoa(engine, task, TOL)


def held_by(client):
    """The parts that workers hold."""

    def held():
        from dotadd.cluster.held import held_here

        return held_here()

    return set().union(*client.run(held).values())


def test_the_parts_are_let_go_when_the_engine_is_closed(cluster, tmp_path):
    X, y = data()
    pattern = write_parts(tmp_path, X, y, even(240, 4))
    with DaskEngine(cluster, Partitions.of(pattern)) as engine:
        tokens = {seat.token for seat in engine._seats.values()}
        assert len(tokens & held_by(cluster)) == engine.parts == 4
    deadline = time.monotonic() + 60.0
    while tokens & held_by(cluster) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not tokens & held_by(cluster)


def test_a_run_whose_scheduler_dies_stops_with_a_checkpoint_and_another_one_goes_on_from_it(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SHARE", 0)  # one a round
    X, y = data()
    pattern = write_parts(tmp_path, X, y, even(240, 2))
    port = free_port()
    svm = LinearSVM(
        C=C, tol=1e-5, max_passes=5000, dtype="float64", random_state=0
    )  # such a gap is at the edge of float32
    files = {"checkpoint": tmp_path / "run", "checkpoint_every": 1e-6}
    with scheduler(port) as process, worker(port, tmp_path / "a"), connected(f"tcp://127.0.0.1:{port}") as client:

        def strike(progress, k, n):
            if progress.passes == 3:
                process.kill()

        complaint = rf"scheduler at tcp://127.0.0.1:{port} has gone; training stopped in round \d+, and resume .*run$"
        with pytest.raises(DotaddError, match=complaint):
            svm.fit(pattern, engine=client, on_progress=strike, **files)
    passes = []
    with (
        scheduler(port),
        worker(port, tmp_path / "a"),
        worker(port, tmp_path / "b"),
        connected(f"tcp://127.0.0.1:{port}") as client,
    ):
        svm.fit(
            pattern,
            engine=client,
            resume=True,
            on_progress=lambda progress, k, n: passes.append(progress.passes),
            **files,
        )
    assert passes[0] > 1
    assert svm.result_.reason is Reason.CONVERGED
    assert svm.result_.primal <= best(X, y) * (1 + 1e-4)


def test_a_stranger_can_talk_to_no_process_of_local_workers(workers):
    from distributed import Security
    from distributed.comm import connect

    known = workers.scheduler_info(n_workers=-1)["workers"]
    processes = [workers.scheduler.address, *known, *(one["nanny"] for one in known.values())]
    assert all(address.startswith("tls://127.0.0.1:") for address in processes)
    stranger = Security.temporary().get_connection_args("client") | {"require_encryption": False}
    for address in [*processes, *(one.replace("tls://", "tcp://") for one in processes)]:

        async def talk(address=address):
            comm = await connect(address, timeout=2, **stranger)
            comm.abort()

        with pytest.raises(OSError, match=r"Timed out|SSL|TLS|[Cc]losed"):
            workers.sync(talk)


def test_an_address_without_a_scheduler_is_refused_soon(monkeypatch):
    monkeypatch.setattr(connection, "ANSWER", 0.5)
    with pytest.raises(DotaddError, match="no Dask scheduler answers there"), connected("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(DotaddError, match="nonsense"), connected("nonsense://"):
        pass


def test_workers_with_another_version_are_refused(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("dotadd._version.__version__", "0.0.7")
    X, y = data()
    pattern = write_parts(tmp_path, X, y, even(240, 2))
    with pytest.raises(DotaddError, match=r"the worker tls://\S+ has dotadd .*, and here is 0.0.7: install the same"):
        DaskEngine(cluster, Partitions.of(pattern))


def test_files_that_do_not_go_together_or_are_not_there_are_refused_in_one_line(cluster, tmp_path):
    for number, names in enumerate(["a,b", "b,a"]):
        (tmp_path / f"{number}.csv").write_text(f"label,{names}\n1,2,3\n-1,3,4\n")
    pattern = str(tmp_path / "*.csv")
    for files, complaint in [
        (pattern, r"1.csv: has the columns \['b', 'a'\], and .*0.csv has \['a', 'b'\]"),
        (str(tmp_path / "*.none"), "no worker has a file of this name"),
        (np.ones((3, 3)), "ndarray is in memory here"),
        ([], "give the files"),
    ]:
        with pytest.raises(DotaddError, match=complaint) as caught:
            LinearSVM().fit(files, engine=cluster)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("svm", "options", "complaint"),
    [
        (LinearSVM(solver="newton"), {}, 'with engine= use "cocoa" or "average"'),
        (LinearSVM(solver="average"), {"resume": True, "checkpoint": "c"}, "nothing to resume|there is no checkpoint"),
        (LinearSVM(), {"y": [1, 2]}, "labels and weights are read from the files"),
        (LinearSVM(intercept="free"), {}, "free intercept"),
    ],
)
def test_what_cannot_be_done_on_parts_is_refused(cluster, tmp_path, svm, options, complaint):
    X, y = data(40)
    pattern = write_parts(tmp_path, X, y, even(40, 2))
    with pytest.raises(DotaddError, match=complaint):
        svm.fit(pattern, engine=cluster, **options)


def test_solvers_for_parts_need_an_engine_which_is_a_client():
    with pytest.raises(DotaddError, match="give engine="):
        LinearSVM(solver="cocoa").fit(np.eye(2), [0, 1])
    with pytest.raises(DotaddError, match="has to be a Dask client"):
        LinearSVM().fit("x", engine="tcp://127.0.0.1:8786")


def test_files_are_grouped_by_disk_and_size_and_stay_in_order():
    seen = {
        "one": {"/a/0": (0, 10), "/a/1": (0, 10), "/a/2": (0, 20), "/b": (1, 5)},
        "two": {"/a/0": (0, 10), "/a/1": (0, 10), "/a/2": (0, 20)},
    }
    files = Files.of(["/a/*", "/b"], seen)
    assert files.groups({"one": 1, "two": 1}) == [["/a/0", "/a/1"], ["/a/2"], ["/b"]]
    assert files.groups({"one": 4, "two": 4}) == [["/a/0"], ["/a/1"], ["/a/2"], ["/b"]]
    uneven = Files.of(["*"], {"one": {path: (0, size) for path, size in zip("abcde", [1, 90, 3, 1, 1], strict=True)}})
    assert [len(uneven.groups({"one": n})) for n in range(1, 8)] == [1, 2, 3, 4, 5, 5, 5]
    assert files.workers_with(["/a/0", "/b"]) == ["one"]
    with pytest.raises(DataError, match="/a/0: is not the same file on all workers"):
        Files.of(["/a/*"], {"one": {"/a/0": (0, 1)}, "two": {"/a/0": (0, 2)}})
