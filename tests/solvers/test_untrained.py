"""A class that training did not come to is told of, and never predicted."""

import importlib
import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest
from problems import LOSSES

import dotadd
from dotadd import KernelSVM, LinearSVM, NotConvergedWarning, UntrainedClassWarning
from dotadd.cli import run
from dotadd.errors import ModelError
from dotadd.estimators import linear as estimators
from dotadd.kernel_svm.one_against_one import tournament
from dotadd.kernel_svm.problem import SOLVERS
from dotadd.problem.examples import InMemory
from dotadd.solvers.result import Reason

NAMES = np.array(["ant", "bee", "cow", "dog"])


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(700, 4))
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
    return X[:200], NAMES[y[:200]], X[200:]


@pytest.fixture
def out_of_time(monkeypatch):
    """So many binary problems are solved, and then time is up."""
    real, kernel = dict(estimators.SOLVERS), SOLVERS["smo"]

    def after(solved):
        def linear(problem, settings, start):
            results = real["dcd"](problem, settings, start)
            nothing = {"passes": 0, "reason": Reason.MAX_TIME, "intercept": 0.0}
            late = [replace(one, w=np.zeros_like(one.w), **nothing) for one in results[solved:]]
            return [*results[:solved], *late]

        calls = []

        def pair(problem, settings, alpha=None):
            calls.append(problem)
            found = kernel(problem, settings, alpha)
            nothing = {"alpha": np.zeros_like(found.alpha), "intercept": 0.0, "steps": 0, "reason": Reason.MAX_TIME}
            return found if len(calls) <= solved else replace(found, **nothing)

        monkeypatch.setitem(estimators.SOLVERS, "dcd", replace(real["dcd"], solve=linear))
        for name in SOLVERS:
            monkeypatch.setitem(SOLVERS, name, pair)

    return after


@pytest.mark.filterwarnings("ignore::dotadd.NotConvergedWarning")
def test_classes_that_were_not_reached_are_told_and_never_win(tmp_path, data, out_of_time):
    X, y, test = data
    whole = LinearSVM(solver="dcd", random_state=0).fit(X, y).decision_function(test)
    out_of_time(2)
    with pytest.warns(UntrainedClassWarning, match=r"2 of 4 classes .*never predicted: cow, dog"):
        svm = LinearSVM(solver="dcd", random_state=0).fit(X, y)
    svm.save(tmp_path / "m")
    for model in (svm, dotadd.load(tmp_path / "m")):
        scores = model.decision_function(test)
        np.testing.assert_array_equal(scores[:, :2], whole[:, :2])
        assert (scores[:, 2:] == -np.inf).all()
        assert model.predict(test).tolist() == NAMES[whole[:, :2].argmax(axis=1)].tolist()


@pytest.mark.filterwarnings("ignore::dotadd.NotConvergedWarning")
def test_pairs_that_were_not_reached_do_not_vote(tmp_path, data, out_of_time):
    X, y, test = data
    keep = y != "dog"  # an odd number of classes: in the first round one of them meets nobody
    X, y = X[keep], y[keep]
    whole = KernelSVM(solver="smo", gamma=0.5, random_state=0).fit(X, y)
    decisions = whole.model_.decisions(dotadd.open(test).load().batch)
    out_of_time(1)
    assert tournament(3)[0] == (0, 1), "ant and bee"
    with pytest.warns(UntrainedClassWarning, match=r"1 of 3 classes .*never predicted: cow"):
        svm = KernelSVM(solver="smo", gamma=0.5, random_state=0, n_jobs=1).fit(X, y)
    svm.save(tmp_path / "m")
    votes = np.array([decisions[0] >= 0, decisions[0] < 0])
    for model in (svm, dotadd.load(tmp_path / "m")):
        scores = model.decision_function(test)
        assert (scores[:, 2] == -np.inf).all()
        np.testing.assert_array_equal(np.rint(scores[:, :2]), votes.T)
        assert "cow" not in model.predict(test)


@pytest.mark.filterwarnings("ignore::dotadd.NotConvergedWarning")
@pytest.mark.parametrize("machine", [LinearSVM, KernelSVM])
def test_where_nothing_was_trained_it_is_told(data, out_of_time, machine):
    X, y, test = data
    out_of_time(0)
    solver = {"solver": "dcd"} if machine is LinearSVM else {}
    with pytest.warns(UntrainedClassWarning, match="before any class was trained"):
        svm = machine(random_state=0, **solver).fit(X, y)
    assert np.isfinite(svm.decision_function(test)).all()


@pytest.mark.parametrize("machine", [LinearSVM, KernelSVM])
def test_a_model_that_is_complete_is_not_complained_of(data, machine):
    X, y, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("error", UntrainedClassWarning)
        warnings.simplefilter("ignore", NotConvergedWarning)
        assert machine(random_state=0).fit(X, y).model_.untrained == ()


@pytest.mark.filterwarnings("ignore::dotadd.NotConvergedWarning")
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_that_ctrl_c_kept_from_beginning_is_not_trained(data, monkeypatch, loss):
    X, y, test = data
    blocks, begun = InMemory.blocks, []

    def row_by_row(self, rows=None, *, ahead=False, focus=False):
        for at in range(len(rows)):
            yield from blocks(self, rows[at : at + 1])

    def descend(*arguments):
        begun.append(arguments)
        real(*arguments)
        if len(begun) == len(X) + 9:  # in the midst of the second class
            os.kill(os.getpid(), signal.SIGINT)

    sweep = importlib.import_module("dotadd.solvers.sweep")
    real = sweep.descend
    monkeypatch.setattr(InMemory, "blocks", row_by_row)
    monkeypatch.setattr(sweep, "descend", descend)
    svm = LinearSVM(solver="dcd", loss=loss, n_jobs=1, random_state=0)  # one class after the other
    with (
        pytest.warns(UntrainedClassWarning, match=r"2 of 4 classes .*never predicted: cow, dog"),
        pytest.raises(KeyboardInterrupt),
    ):
        svm.fit(X, y)
    assert [result.passes for result in svm.result_] == [1, 1, 0, 0]
    assert not any(result.w.any() for result in svm.result_[2:])
    assert set(svm.predict(test)) <= {"ant", "bee"}


def test_numbers_of_problems_that_are_not_there_are_refused(data):
    model = LinearSVM(random_state=0).fit(*data[:2]).model_
    with pytest.raises(ModelError, match="untrained"):
        dotadd.Model(
            model.phi,
            model.shape,
            model.w,
            model.intercept,
            model.classes,
            model.training,
            model.columns,
            untrained=[4],
        )


def test_the_command_line_says_so(tmp_path, capsys, data, out_of_time):
    X, y, _ = data
    lines = [f"{label},{','.join(map(str, row))}" for label, row in zip(y, X.tolist(), strict=True)]
    (tmp_path / "d.csv").write_text("label,a,b,c,d\n" + "\n".join(lines) + "\n")
    out_of_time(3)
    assert run(["train", str(tmp_path / "d.csv"), "-o", str(tmp_path / "m"), "-q", "--solver", "dcd"]) == 0
    assert "1 of 4 classes" in capsys.readouterr().err
    assert run(["predict", str(tmp_path / "m"), str(tmp_path / "d.csv")]) == 0
    told = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {line[0] for line in told} <= {"ant", "bee", "cow"}
    assert {line[4] for line in told} == {"-inf"}
