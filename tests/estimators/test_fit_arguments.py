"""Every argument of fit, and every parameter, acts or raises: in memory, on streams and on parts, for every solver."""

import inspect
import warnings

import numpy as np
import pytest
from problems import noisy

import dotadd
from dotadd import DotaddError, KernelSVM, LinearSVM, NotConvergedWarning
from dotadd.cli import run
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.shard import Shard
from dotadd.errors import StreamingWarning
from dotadd.solvers.table import SOLVERS as TABLE
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)
STREAMING = that_need(Needs.PIECES)

BATCH = ["ocas", "bmrm", "svmperf", "newton", "lbfgs"]
MODES = (
    [("memory", s) for s in SOLVERS]
    + [("stream", s) for s in (*STREAMING, *BATCH)]
    + [("parts", s) for s in that_need(Needs.PARTS)]
)


class Run:
    """A fit of one solver in one mode, and what can be seen of it."""

    def __init__(self, mode, solver, folder):
        self.mode, self.folder = mode, folder
        X, y = noisy(n=120)
        loss = "squared_hinge" if solver in ("newton", "lbfgs") else "hinge"
        self.svm = LinearSVM(solver=solver, loss=loss, C=0.1, tol=1e-2, max_passes=30, random_state=0, dtype="float64")
        self.X, self.y = X, y
        self.path = folder / "x.csv"
        lines = [",".join(map(repr, [*row, label])) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
        self.path.write_text("\n".join([",".join([*(f"c{k}" for k in range(X.shape[1])), "label"]), *lines, ""]))
        if mode == "stream":
            self.svm.memory = "2KB"

    def fit(self, **more):
        if self.mode == "parts":
            given = {"X": None, "engine": LocalEngine([Shard(dotadd.open(self.X, self.y), 10**6)])}
        elif self.mode == "memory":
            given = {"X": self.X, "y": self.y}
        else:
            given = {"X": self.path, "announce": lambda line: None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            warnings.simplefilter("ignore", StreamingWarning)
            self.svm.fit(**(given | more))
        return self.svm

    @property
    def copy(self):
        return self.folder / "x.csv.dotadd.arrow"


def outcome(svm):
    return svm.coef_.copy(), svm.result_.reason, svm.n_iter_


PLAIN = {}  # what a fit without any change ends with, for each mode and solver


def differs(run, change=lambda: None, **more):
    """Whether a run that is changed, or given more, ends otherwise than without."""
    key = run.mode, run.svm.solver
    before = PLAIN[key] if key in PLAIN else PLAIN.setdefault(key, outcome(run.fit()))
    change()
    after = outcome(run.fit(**more))
    return not np.array_equal(before[0], after[0]) or before[1:] != after[1:]


def acts_or_raises(acts):
    """Whether something could be seen, or was refused in one line."""
    try:
        return acts()
    except DotaddError as error:
        return "\n" not in str(error)


def acts_sample_weight(run):
    return differs(run, sample_weight=np.linspace(0.1, 3.0, len(run.y)))


def acts_start(run):
    return differs(run, start=run.fit().result_)


def acts_on_progress(run):
    told = []
    run.fit(on_progress=lambda progress, k, n: told.append((k, n)))
    return set(told) == {(0, 1)}


def acts_checkpoint(run):
    run.svm.max_passes, run.svm.tol = 2, 1e-12  # one that has not ended keeps its checkpoint
    run.fit(checkpoint=run.folder / "c")
    return (run.folder / "c").exists()


def acts_resume(run):
    run.svm.max_passes, run.svm.tol = 2, 1e-12
    run.fit(checkpoint=run.folder / "c")
    run.svm.max_passes = 4
    resumed = run.fit(checkpoint=run.folder / "c", resume=True).result_.passes
    return resumed == run.fit().result_.passes


def acts_keep_checkpoint(run):
    """A run that is done removes its checkpoint, unless it is to be kept."""
    run.svm.max_passes, run.svm.tol = 2, 1e-12
    run.fit(checkpoint=run.folder / "c")
    kept = (run.folder / "c").read_bytes()
    run.svm.max_passes, run.svm.tol = 500, 0.1
    for keep in (True, False):
        (run.folder / "c").write_bytes(kept)
        run.fit(checkpoint=run.folder / "c", resume=True, keep_checkpoint=keep)
        if any(path.name.startswith("c") for path in run.folder.iterdir()) != keep:
            return False
    return True


def acts_keep_cache(run):
    """Without it, no copy of the text is left."""
    run.fit(keep_cache=False)
    return not run.copy.exists()


def acts_announce(run):
    """Told of each file that is written; in memory and on parts that hold their rows, there is none."""
    told = []
    run.fit(announce=told.append)
    return any(str(run.copy) in line for line in told) == run.copy.exists()


def acts_stands_for(run):
    """The more rows an earlier model stands for, the less of it moves."""
    model = run.fit().model_
    moved = [np.linalg.norm(run.fit(start=model, stands_for=rows).coef_ - model.w) for rows in (1, 10**6)]
    return moved[1] < moved[0]


def acts_new_classes(run):
    """Labels that the earlier model does not know become classes, or are refused."""
    model, given = run.fit().model_, {"X": run.X, "y": np.where(np.arange(len(run.y)) < 20, 7.0, run.y)}
    added = len(run.fit(start=model, new_classes=True, **given).classes_) == 3
    with pytest.raises(DotaddError, match="no class 7"):
        run.fit(start=model, new_classes=False, **given)
    return added


ACTS = {
    "X": lambda run: differs(run, X=run.X[:, ::-1], **({} if run.mode == "memory" else {"y": run.y})),
    "y": lambda run: differs(run, y=-run.y),
    "sample_weight": acts_sample_weight,
    "start": acts_start,
    "stands_for": acts_stands_for,
    "new_classes": acts_new_classes,
    "on_progress": acts_on_progress,
    "checkpoint": acts_checkpoint,
    "checkpoint_every": lambda run: differs(run, checkpoint_every=1.0),
    "resume": acts_resume,
    "keep_checkpoint": acts_keep_checkpoint,
    "keep_cache": acts_keep_cache,
    "announce": acts_announce,
    "engine": lambda run: differs(run, X=None, y=None, engine=LocalEngine([Shard(dotadd.open(run.X, -run.y), 10**6)])),
}


@pytest.mark.parametrize("name", list(inspect.signature(LinearSVM.fit).parameters)[1:])
@pytest.mark.parametrize(("mode", "solver"), MODES)
def test_each_argument_of_fit_acts_or_raises(tmp_path, mode, solver, name):
    assert acts_or_raises(lambda: ACTS[name](Run(mode, solver, tmp_path)))


@pytest.mark.parametrize(("mode", "solver"), [one for one in MODES if not TABLE[one[1]].checkpoints])
def test_a_checkpoint_that_nobody_would_write_is_refused(tmp_path, mode, solver):
    with pytest.raises(DotaddError, match=r"keeps no checkpoint|is done in one round"):
        Run(mode, solver, tmp_path).fit(checkpoint=tmp_path / "c")


@pytest.mark.parametrize("every", [0.0, -1.0, float("nan"), float("inf"), "1", True])
def test_seconds_between_checkpoints_are_positive(tmp_path, every):
    with pytest.raises(DotaddError, match="checkpoint_every"):
        Run("stream", "stream", tmp_path).fit(checkpoint=tmp_path / "c", checkpoint_every=every)


CHANGES = {
    "phi": "Polynomial(2)",
    "C": 0.01,
    "loss": "logistic",
    "intercept": "none",
    "class_weight": {1: 5.0},
    "tol": 0.9,
    "max_passes": 1,
    "max_time": 1e-9,
    "random_state": 1,
    "dtype": "float32",
}
ELSEWHERE = {
    "solver": "MODES has them all",
    "n_jobs": "speed alone",
    "memory": "chooses between memory and stream",
    "keep": "speed alone, and test_kept_rows.py",
}
DETERMINISTIC = {*BATCH, "average"}


@pytest.mark.parametrize("name", sorted(set(LinearSVM().get_params()) - set(ELSEWHERE)))
@pytest.mark.parametrize(("mode", "solver"), MODES)
def test_each_parameter_acts_or_raises(tmp_path, mode, solver, name):
    if name == "random_state" and solver in DETERMINISTIC:
        pytest.skip(f"{solver} draws no random numbers")
    if solver in ("sgd", "pegasos") and name == "tol":
        pytest.skip("on so few rows the objective stalls at once for either tolerance")
    run = Run(mode, solver, tmp_path)
    assert acts_or_raises(lambda: differs(run, lambda: run.svm.set_params(**{name: CHANGES[name]})))


def test_each_argument_of_a_kernel_machines_fit_acts():
    X, y = noisy(n=80)
    told = []
    plain = KernelSVM(random_state=0).fit(X, y).dual_coef_
    assert list(inspect.signature(KernelSVM.fit).parameters) == ["self", "X", "y", "sample_weight", "on_progress"]
    for given in ((X[:, ::-1] ** 2, y), (X, -y), (X, y, np.linspace(0.1, 1.0, len(y)))):
        assert not np.array_equal(KernelSVM(random_state=0).fit(*given).dual_coef_, plain)
    KernelSVM(random_state=0).fit(X, y, on_progress=lambda progress, k, n: told.append(k))
    assert told


@pytest.mark.parametrize("option", ["--checkpoint c", "--checkpoint-every 5"])
def test_the_command_line_refuses_a_checkpoint_that_nobody_would_write(tmp_path, monkeypatch, capsys, option):
    monkeypatch.chdir(tmp_path)
    Run("memory", "dcd", tmp_path)
    others = "--solver block_minimization --memory 2KB"
    assert run(["train", "x.csv", "-o", "m", "-q", *others.split(), *option.split()]) == 2
    assert "keeps no checkpoint" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
    assert run(["train", "x.csv", "-o", "m", "-q"]) == 0
