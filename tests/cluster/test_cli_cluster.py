"""The command line on Dask workers: training, prediction, evaluation and scans, in real processes."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
from clusters import data, even, free_port, pids, scheduler, worker, write_parts, written_certificate

pytest.importorskip("distributed")

from distributed import Client

import dotadd
from dotadd.cli import run
from dotadd.cluster import connection
from dotadd.model import evaluation


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = data()
    write_parts(tmp_path, X, y, [*even(240, 3), []])
    return tmp_path


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    port, folder = free_port(), tmp_path_factory.mktemp("workers")
    with scheduler(port), worker(port, folder / "a"), worker(port, folder / "b"):
        with Client(found := f"tcp://127.0.0.1:{port}") as client:
            client.wait_for_workers(2, timeout=120)
        yield found


def test_training_on_a_cluster_leaves_the_model_of_one_machine_and_no_checkpoint(folder, address, capsys):
    assert run(["train", "part-*.svm", "-o", "m", "-C", "0.1", "--scheduler", address, "--log", "log"]) == 0
    shown = capsys.readouterr().out
    assert "cocoa: the examples lie in parts" in shown
    assert "rounds" in shown
    assert run(["train", "part-0.svm", "part-1.svm", "part-2.svm", "-o", "alone", "-C", "0.1", "-q"]) == 0
    together, alone = dotadd.load("m").training, dotadd.load("alone").training
    assert together["rows"] == alone["rows"] == 240
    assert together["gap"] <= 1e-3
    assert together["primal"] == pytest.approx(alone["primal"], rel=2e-3)
    assert json.loads((folder / "log").read_text().splitlines()[-1])["summary"]["training"]["solver"] == "cocoa"
    assert sorted(os.listdir()) == ["alone", "log", "m", *(f"part-{number}.svm" for number in range(4))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_keeps_the_model_and_a_checkpoint_that_other_workers_go_on_from(folder, address, number):
    """The signal goes to the whole process group, as from a terminal, and the workers must not mind."""
    options = ["part-*.svm", "-o", "m", "-C", "10", "--tol", "1e-7", "--max-passes", "100000"]
    command = [sys.executable, "-m", "dotadd", "train", *options, "--workers", "2", "--log", "log"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # tests under nohup ignore it
    )  # fmt: skip
    while process.poll() is None:
        if os.path.exists("log") and os.path.getsize("log"):
            break
        time.sleep(0.01)
    os.killpg(process.pid, number)
    said = process.communicate(timeout=240)[1]
    assert process.returncode == 128 + number, said
    assert "the model so far is saved in m" in said
    assert "dotadd: to go on from m.checkpoint" in said
    first = dotadd.load("m").training
    if number == signal.SIGINT:  # there is no time to measure it otherwise
        assert 0.0 < first["gap"] < 1.0
    assert run(["train", *options[:-4], "--tol", "1e-3", "--scheduler", address, "-q", "--resume"]) == 0
    again = dotadd.load("m").training
    assert again["gap"] <= 1e-3
    assert again["passes"] > first["passes"]
    assert not [name for name in os.listdir() if "checkpoint" in name]


def test_a_scheduler_with_certificates_takes_those_who_have_one_and_nobody_else(folder, capsys, monkeypatch):
    port, tls = free_port(), written_certificate(folder)
    mine = ["--tls-ca", tls[1], "--tls-cert", tls[3], "--tls-key", tls[5]]
    (folder / "other").mkdir()
    other = written_certificate(folder / "other")
    theirs = ["--tls-ca", other[1], "--tls-cert", other[3], "--tls-key", other[5]]
    with scheduler(port, tls), worker(port, folder / "a", tls):
        there = ["train", "part-*.svm", "-o", "m", "-C", "0.1", "-q", "--scheduler", f"tls://127.0.0.1:{port}"]
        assert run([*there, *mine]) == 0
        assert dotadd.load("m").training["gap"] <= 1e-3
        os.remove("m")
        monkeypatch.setattr(connection, "ANSWER", 2.0)
        for options, complaint in [
            ([], "needs certificates: give --tls-ca"),
            (theirs, "no Dask scheduler answers there that takes these certificates"),
            (mine[:4], "go together"),
            ([*mine[:4], "--tls-key", "none.pem"], "none.pem: No such file"),
            ([*mine[:4], "--tls-key", "part-0.svm"], "part-0.svm"),
            ([*mine, "tcp"], "begins with tls://"),
        ]:
            asked = [one.replace("tls://", "tcp://") for one in there] if "tcp" in options else there
            assert run([*asked, *(one for one in options if one != "tcp")]) == 2
            said = capsys.readouterr().err.splitlines()
            assert complaint in said[-1]
            assert len(said) == 1
        assert not (folder / "m").exists()


def test_a_driver_that_is_killed_leaves_no_part_on_the_workers(folder, address):
    from dotadd.cluster.connection import connected
    from dotadd.cluster.held import held_here

    options = ["part-*.svm", "-o", "m", "-C", "10", "--tol", "1e-9", "--max-passes", "1000000", "--log", "log"]
    process = subprocess.Popen([sys.executable, "-m", "dotadd", "train", *options, "--scheduler", address, "-q"])
    with connected(address) as client:

        def held():
            return set().union(*client.run(held_here).values())

        while process.poll() is None and not (os.path.exists("log") and os.path.getsize("log")):
            time.sleep(0.01)
        assert held()
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60.0
        while held() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not held()


def test_c_is_chosen_on_a_cluster_as_on_one_machine(folder, address, capsys):
    X, y = data()
    lines = [
        f"{label},p{k % 31},{','.join(map(str, row[:4]))}\n" for k, (label, row) in enumerate(zip(y, X, strict=True))
    ]
    for number, mine in enumerate(even(240, 3)):
        (folder / f"{number}.csv").write_text("".join(["label,person,a,b,c,d\n", *(lines[k] for k in mine)]))
    phi = ["--features", "Number('a', 'b', 'c', 'd')"]
    options = ["?.csv", *phi, "-C", "auto", "--cv", "3", "--Cs", "0.0001,0.01,1", "--group", "person", "--seed", "1"]
    assert run(["train", *options, "-o", "m", "--scheduler", address]) == 0
    assert "accuracy on rows held out by 3 folds" in capsys.readouterr().out
    assert run(["train", *options, "-o", "alone", "-q"]) == 0
    there, here = dotadd.load("m").training, dotadd.load("alone").training
    assert (there["solver"], there["gap"] <= 1e-3) == ("cocoa", True)
    for name in ("mean", "std", "pooled"):
        np.testing.assert_allclose(there["cross_validation"][name], here["cross_validation"][name], atol=0.03)
    assert max(there["cross_validation"]["gap"]) <= 1e-2
    assert there["C"] == there["cross_validation"]["C"][int(np.argmax(there["cross_validation"]["mean"]))]
    with connection.connected(address) as client:
        svm = dotadd.LinearSVMCV(phi[1], Cs=[1e-4, 0.01, 1.0], cv=3, random_state=1, refit=False)
        svm.fit("?.csv", groups="person", engine=client)
    np.testing.assert_allclose(svm.cv_results_["mean_test_score"], here["cross_validation"]["mean"], atol=0.03)
    assert run(["train", *options, "-o", "m", "--scheduler", address, "--probability", "sigmoid"]) == 2
    assert "stay with the parts of a cluster" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("x.svm --scheduler tcp://127.0.0.1:9", "tcp://127.0.0.1:9: no Dask scheduler answers there"),
        ("x.svm --scheduler {address}", "x.svm: no worker has a file of this name"),
        ("part-*.svm --scheduler {address} --workers 2", "give one of them"),
        ("part-*.svm --workers 0", "of at least 1"),
        ("part-*.svm --workers 1 --kernel rbf", "not for --kernel"),
        ("part-*.svm --scheduler {address} --solver dcd", "works on one machine"),
        ("part-0.svm --solver cocoa", "give engine= .--workers."),
        ("part-*.svm odd.csv --scheduler {address}", "odd.csv: "),
        ("part-*.svm bad.svm --scheduler {address}", "bad.svm:2:"),
        ("part-*.svm --workers 1 --tls-ca a --tls-cert b --tls-key c", "and with --scheduler"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(folder, address, capsys, monkeypatch, options, complaint):
    monkeypatch.setattr(connection, "ANSWER", 0.5)
    (folder / "odd.csv").write_text("label,a\n1,2\n-1,3\n")
    (folder / "bad.svm").write_text("1 1:2\n-1 1:two\n")
    assert run(["train", *options.format(address=address).split(), "-o", "m"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert complaint.replace(".--workers.", "(--workers)") in said[-1]
    assert len(said) == 1
    assert not (folder / "m").exists()
    assert not np.any([name.startswith("m.") for name in os.listdir()])


def test_predictions_are_those_of_one_machine_in_a_set_of_parquet_files(folder, address, capsys):
    assert run(["train", "part-*.svm", "-o", "m", "-C", "0.1", "-q", "--workers", "1"]) == 0
    assert run(["predict", "m", "part-*.svm", "-o", "scores", "--scheduler", address]) == 0
    assert "240 rows in 4 files in scores" in capsys.readouterr().err
    names = [f"part-0000{number}.parquet" for number in range(4)]
    assert sorted(os.listdir("scores")) == names
    model = dotadd.load("m")
    for number, name in enumerate(names):
        table = pq.read_table(folder / "scores" / name)
        assert table.column_names == ["label", "score"]
        if number < 3:
            assert table["label"].to_pylist() == model.predict(f"part-{number}.svm").tolist()
            np.testing.assert_allclose(table["score"], model.decision_function(f"part-{number}.svm"), rtol=1e-5)
        else:
            assert len(table) == 0
    assert run(["predict", "m", "part-*.svm", "-o", "scores", "--scheduler", address]) == 2
    assert "there are parts in this folder already" in capsys.readouterr().err
    assert run(["evaluate", "m", "part-*.svm", "--scheduler", address, "--log", "there"]) == 0
    assert run(["evaluate", "m", *(f"part-{number}.svm" for number in range(3)), "--log", "here"]) == 0
    there, here = (json.loads((folder / name).read_text()) for name in ("there", "here"))
    for measure in ("rows", "accuracy", "auroc", "auprc", "confusion"):
        np.testing.assert_allclose(there[measure], here[measure], err_msg=measure)


def test_columns_are_carried_along_and_what_a_model_remembers_reaches_workers(folder, address):
    for part in "ab":
        lines = [f"{part}{k},{k % 2},{1 - k % 2},{k % 2}\n" for k in range(20)]
        (folder / f"{part}.csv").write_text("".join(["who,x,z,label\n", *lines]))
        (folder / f"{part}.zero").write_text("".join(f"{k % 2} 0:{k % 2} 1:{1 - k % 2}\n" for k in range(20)))
    phi = ["--features", 'Number("x", "z")']
    assert run(["train", "?.csv", "-o", "m", "-q", *phi, "--scheduler", address]) == 0
    assert run(["predict", "m", "?.csv", "--id", "who", "-o", "scores", "--scheduler", address]) == 0
    table = pq.read_table(folder / "scores")
    assert table.column_names == ["who", "label", "score"]
    assert table["who"].to_pylist() == [f"{part}{k}" for part in "ab" for k in range(20)]
    assert table["label"].to_pylist() == [k % 2 for k in range(20)] * 2
    reading = ["--format", "libsvm", "--zero-based"]
    assert run(["train", "?.zero", "-o", "n", "-q", *reading, "--scheduler", address]) == 0
    assert dotadd.load("n").read_as == {"format": "libsvm", "zero_based": True}
    assert run(["evaluate", "n", "?.zero", "--scheduler", address, "--log", "there"]) == 0
    assert json.loads((folder / "there").read_text())["accuracy"] == 1.0


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_bad_row_in_prediction_is_one_line_with_its_place(folder, address, capsys, command):
    assert run(["train", "part-0.svm", "-o", "m", "-C", "0.1", "-q"]) == 0
    (folder / "bad.svm").write_text("1 1:2\n-1 1:two\n")
    output = ["-o", "scores"] if command == "predict" else []
    assert run([command, "m", "part-*.svm", "bad.svm", *output, "--scheduler", address]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "bad.svm:2:" in said[-1]
    assert len(said) == 1


def test_predictions_survive_the_loss_of_a_worker(folder):
    from dotadd.cluster import predicting as partitioned
    from dotadd.cluster.connection import local_workers

    X, y = data()
    pattern = write_parts(folder, X, y, even(240, 8), name="small-{}.svm")
    svm = dotadd.LinearSVM(C=0.1).fit(X, y)
    with local_workers(2, 2) as client:
        victims = list(pids(client).values())

        def strike(share):
            if len(victims) > 1:
                os.kill(victims.pop(), signal.SIGKILL)

        done = partitioned.predict(client, svm.model_, pattern, "scores", on_progress=strike)
    assert done.rows == [30] * 8
    assert pq.read_table(done.paths)["label"].to_pylist() == svm.predict(X).tolist()


def test_several_classes_are_predicted_and_evaluated_file_by_file(folder, address):
    from dotadd.cluster import predicting as partitioned
    from dotadd.cluster.connection import connected

    X, y = data()
    y = np.where(X[:, 0] > 0.9, 2, y)
    pattern = write_parts(folder, X, y, even(240, 2), name="three-{}.svm")
    svm = dotadd.LinearSVM(C=0.1).fit(X, y)
    with connected(address) as client:
        done = partitioned.predict(client, svm.model_, pattern, "scores")
        found = partitioned.evaluate(client, svm.model_, pattern)
    assert done.rows == [120, 120]
    table = pq.read_table(done.paths)
    assert table.column_names == ["label", "score_-1", "score_1", "score_2"]
    assert table["label"].to_pylist() == svm.predict(X).tolist()
    expected = evaluation.evaluate(y, svm.decision_function(X), svm.classes_)
    assert found.accuracy == expected.accuracy
    assert found.auroc == pytest.approx(expected.auroc)
    assert found.auprc == pytest.approx(expected.auprc)
    np.testing.assert_array_equal(found.confusion, expected.confusion)


def test_a_scan_finds_what_one_machine_finds_chromosome_by_chromosome(folder, address, capsys):
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        letters = "".join(rng.choice(list("ACGT"), 3000))
        (folder / f"{name}.fa").write_text(f">{name}\n{letters}\n")
    (folder / "zero.fa").write_text(">zero\nAAAA\n")
    windows = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(40)]
    dotadd.LinearSVM(dotadd.Spectrum(2), C=0.3).fit(windows, rng.choice([-1, 1], 40)).model_.save("m")
    shared = ["--model", "m", "--signal", "acceptor", "--strand", "+", "--threshold", "0"]
    assert run(["scan", "one.fa", "two.fa", "zero.fa", *shared, "-o", "here.bedgraph"]) == 0
    assert run(["scan", "*.fa", *shared, "-o", "there", "--scheduler", address]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split(",")[0] == shown[4].split(",")[0]  # positions
    lines = [line.split("\t") for line in (folder / "here.bedgraph").read_text().splitlines()]
    table = pq.read_table([folder / "there" / f"part-0000{number}.parquet" for number in range(3)])
    assert [table[name].to_pylist() for name in ("chromosome", "start", "end")] == [
        [line[0] for line in lines], [int(line[1]) for line in lines], [int(line[2]) for line in lines],
    ]  # fmt: skip
    np.testing.assert_allclose(table["score"], [float(line[3]) for line in lines], rtol=1e-5)
    assert set(table["strand"].to_pylist()) == {"+"}
