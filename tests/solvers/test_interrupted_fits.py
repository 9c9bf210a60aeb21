"""Ctrl-C while an estimator is fitted: what there is is kept, and then the caller gets its KeyboardInterrupt."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
from problems import noisy
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import GridSearchCV

from dotadd import KernelSVM, LinearSVM
from dotadd.errors import NotConvergedWarning, StreamingWarning
from dotadd.kernel_svm import problem, smo
from dotadd.solvers.result import Reason
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)
STREAMING = that_need(Needs.PIECES)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

KERNEL = ["smo", "chunking", "double_chunking"]
MACHINES = [*SOLVERS, *STREAMING, *KERNEL]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", StreamingWarning)
        yield


@pytest.fixture(autouse=True)
def talkative(monkeypatch):
    """Kernel machines tell of every step, and not a few times a second."""
    monkeypatch.setattr(problem, "SAY_EVERY", 0.0)
    monkeypatch.setattr(smo, "WORK", 1)


def machine(solver):
    """An estimator that has far to go."""
    if solver in KERNEL:
        return KernelSVM("linear", solver=solver, tol=1e-9, C=100.0, random_state=0)
    loss = "squared_hinge" if solver == "newton" else "hinge"
    memory = "50kB" if solver in STREAMING else None
    return LinearSVM(solver=solver, loss=loss, tol=1e-13, C=10.0, memory=memory, random_state=0, n_jobs=1)


def examples(solver):
    return noisy(n=2000 if solver in STREAMING else 400, d=10)


def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)


class Presses:
    """A callback that presses Ctrl-C, or raises it itself, when it is told of a model for the n-th time."""

    def __init__(self, at, error=None):
        self.left, self.error = at, error

    def __call__(self, progress, k, n):
        self.left -= getattr(progress, "support", 9) > 4
        if self.left == 0:
            if self.error is not None:
                raise self.error
            press()


@pytest.mark.parametrize("solver", MACHINES)
def test_ctrl_c_keeps_the_model_so_far_and_is_raised(solver):
    X, y = examples(solver)
    svm = machine(solver)
    with pytest.raises(KeyboardInterrupt):
        svm.fit(X, y, on_progress=Presses(2))
    assert svm.result_.reason is Reason.INTERRUPTED
    assert svm.decision_function(X).any()
    assert np.isfinite(svm.result_.primal), "the first Ctrl-C leaves time for the proof"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("solver", MACHINES)
def test_what_the_callback_raises_is_what_the_caller_gets(solver):
    X, y = examples(solver)
    enough = KeyboardInterrupt("enough")
    with pytest.raises(KeyboardInterrupt) as raised:
        machine(solver).fit(X, y, on_progress=Presses(1, enough))
    assert raised.value is enough
    with pytest.raises(ZeroDivisionError):
        machine(solver).fit(X, y, on_progress=Presses(1, ZeroDivisionError()))


@pytest.mark.parametrize("estimator", [LinearSVM, KernelSVM])
def test_ctrl_c_after_the_last_step_is_raised_when_the_model_is_kept(estimator, monkeypatch):
    X, y = noisy(n=100)
    keep = estimator._keep

    def late(self, *rest):
        press()
        keep(self, *rest)

    monkeypatch.setattr(estimator, "_keep", late)
    svm = estimator(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        svm.fit(X, y)
    assert svm.result_.reason is Reason.CONVERGED
    assert svm.predict(X).shape == y.shape


def test_a_grid_search_ends_with_the_fit_that_was_interrupted():
    X, y = noisy(n=300)
    began = []

    class Counted(LinearSVM):
        def fit(self, X, y, **rest):
            began.append(1)
            return super().fit(X, y, **rest)

    search = GridSearchCV(Counted(tol=1e-9, random_state=0), {"C": [0.1, 1.0, 10.0]}, cv=3)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y, on_progress=Presses(3))
    assert len(began) == 1
    assert not hasattr(search, "cv_results_")


@pytest.mark.parametrize("solver", ["dcd", "ocas", "stream", "smo"])
def test_a_handler_of_ones_own_decides_what_a_signal_means(solver):
    """One for SIGTERM that raises SystemExit ends training with what there is; one that only takes note does not."""
    X, y = examples(solver)
    noted = []

    def leave(number, frame):
        raise SystemExit(3)

    for handler in (leave, lambda number, frame: noted.append(number)):
        before = signal.signal(signal.SIGTERM, handler)
        try:
            svm = machine(solver).set_params(max_time=1.0)

            def tell(progress, k, n, told=[0]):  # noqa: B006
                told[0] += 1
                if told[0] == 2:
                    press(signal.SIGTERM)

            if handler is leave:
                with pytest.raises(SystemExit):
                    svm.fit(X, y, on_progress=tell)
                assert svm.result_.reason is Reason.INTERRUPTED
                assert np.isnan(svm.result_.primal), "whoever sends SIGTERM does not wait for a proof"
            else:
                svm.fit(X, y, on_progress=tell)
                assert noted == [signal.SIGTERM]
                assert svm.result_.reason is not Reason.INTERRUPTED
        finally:
            signal.signal(signal.SIGTERM, before)


def test_an_interrupted_stream_leaves_a_checkpoint_to_go_on_from(tmp_path):
    X, y = examples("stream")
    where = tmp_path / "state"
    svm = machine("stream")
    with pytest.raises(KeyboardInterrupt):
        svm.fit(X, y, on_progress=Presses(5), checkpoint=where)
    assert where.exists()
    svm.set_params(tol=1e-3).fit(X, y, checkpoint=where, resume=True)
    assert svm.result_.reason is Reason.CONVERGED


@pytest.mark.parametrize("solver", ["stream", "block_minimization", "ocas"])
def test_no_thread_reads_on_after_ctrl_c(solver, tmp_path):
    X, y = examples("stream")
    dump_svmlight_file(X, y, str(tmp_path / "x.svm"), zero_based=False)
    svm = machine("stream").set_params(solver=solver, n_jobs=2)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        svm.fit(str(tmp_path / "x.svm"), on_progress=Presses(2))
    assert svm.result_.reason is Reason.INTERRUPTED
    assert not [one for one in set(threading.enumerate()) - before if "reader" in one.name]


@pytest.mark.parametrize("solver", ["ocas", "smo", "stream"])
def test_warnings_of_a_fit_point_to_whoever_called_it(solver):
    X, y = examples(solver)
    classes = np.arange(len(y)) % 4
    svm = machine(solver).set_params(max_time=1e-9)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        svm.fit(X, classes[:, None])
    assert {"DataConversionWarning", "NotConvergedWarning"} <= {one.category.__name__ for one in told}
    assert {one.filename for one in told} == {__file__}
