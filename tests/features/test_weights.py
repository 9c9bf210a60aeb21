"""Costs that are no numbers are refused in one line: of classes, of examples, and their products."""

import numpy as np
import pytest
from problems import noisy

import dotadd
from dotadd import DotaddError, KernelSVM, LinearSVM
from dotadd.cli import run
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.shard import Shard

MACHINES = [LinearSVM, KernelSVM]
NAN, INF = float("nan"), float("inf")


def fit(machine, y=None, weight=None, **parameters):
    X, labels = noisy(n=40)
    return machine(random_state=0, **parameters).fit(X, labels if y is None else y, weight)


def refused(words, *given, **named):
    with pytest.raises(DotaddError, match=words) as caught:
        fit(*given, **named)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("weight", [NAN, INF, -1, -1.0, 0, None, "2", True, 10**400, 1j, [1.0]])
def test_the_weight_of_a_class_is_a_number_above_0(machine, weight):
    refused("class_weight gives class 1 the weight .*no number above 0", machine, class_weight={1: weight})


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("C", [NAN, INF, 0, -1, None, "1", True, 10**400])
def test_c_is_a_positive_number(machine, C):
    refused("C is", machine, C=C)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bad", [NAN, INF, -INF, -1e-9, None])
def test_the_weight_of_an_example_is_a_number_from_0_on(machine, bad):
    weight = [1.0] * 40
    weight[7] = bad
    refused("row 7: weight", machine, weight=weight)
    refused("sample_weight has to be a number", machine, weight=["heavy"] * 40)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("C", "factor", "weight", "side"),
    [(1e308, 1e10, 1.0, "large"), (1e308, 1.0, 1e10, "large"), (1.0, 1.0, 1e308, "large"), (1e308, 1.0, 1.0, "large"),
     (1e-300, 1e-300, 1.0, "small"), (1e-300, 1.0, 1e-300, "small"), (1e-310, 1.0, 1.0, "small")],
)  # fmt: skip
def test_products_that_no_number_holds_are_refused(machine, C, factor, weight, side):
    refused(f"too {side} for a number", machine, C=C, class_weight={1: factor}, weight=np.full(40, weight))


@pytest.mark.parametrize("machine", MACHINES)
def test_weights_of_zero_leave_examples_out_and_change_no_other_cost(machine):
    weight = np.ones(40)
    weight[::5] = 0.0
    assert fit(machine, weight=weight).result_.converged


@pytest.mark.parametrize("bad", ["nan", "inf", "-1", "x"])
def test_weights_in_files_are_refused_with_their_line(tmp_path, capsys, bad):
    rows = [f"{x},{y},{'2' if k != 5 else bad}" for k, (x, y) in enumerate(zip(range(20), [0, 1] * 10, strict=True))]
    path = tmp_path / "d.csv"
    path.write_text("x,label,w\n" + "\n".join(rows) + "\n")
    for more in ([], ["--memory", "1KB", "--solver", "stream"], ["--kernel", "rbf"]):
        assert run(["train", str(path), "--weight", "w", "-o", str(tmp_path / "m"), "-q", *more]) == 2
        assert "d.csv:7" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("class_weight", "weight"), [({1: NAN}, 1.0), ({1: 1.0}, -1.0), ({1: 1e-300}, 1e-300)])
def test_parts_refuse_them_too(class_weight, weight):
    X, y = noisy(n=40)
    halves = [slice(0, 20), slice(20, 40)]
    parts = LocalEngine(
        [Shard(dotadd.open(X[h], y[h], np.full(20, weight)), 10**6, number=k) for k, h in enumerate(halves)]
    )
    with pytest.raises(DotaddError, match=r"no number above 0|weight -1.0 is not|too small"):
        LinearSVM(class_weight=class_weight).fit(None, engine=parts)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, NAN])
def test_a_seed_is_a_whole_number_from_0_on(machine, seed):
    with pytest.raises(DotaddError, match="random_state is"):
        machine(random_state=seed).fit(*noisy(n=40))


@pytest.mark.parametrize("seed", [None, 0, np.int64(3), np.uint8(3), 2**70])
@pytest.mark.parametrize("machine", MACHINES)
def test_whole_numbers_of_any_kind_are_seeds(machine, seed):
    machine(random_state=seed).fit(*noisy(n=40))
    machine(random_state=np.random.default_rng(0)).fit(*noisy(n=40))
    machine(random_state=np.random.RandomState(0)).fit(*noisy(n=40))


@pytest.mark.parametrize(
    ("name", "value"), [("max_passes", 1.9), ("max_passes", True), ("n_jobs", 1.5), ("n_jobs", True)]
)
@pytest.mark.filterwarnings("ignore::dotadd.NotConvergedWarning")
def test_whole_means_whole(name, value):
    with pytest.raises(DotaddError, match=f"{name} is {value}"):
        LinearSVM(**{name: value}).fit(*noisy(n=40))
    assert LinearSVM(random_state=0, **{name: np.int32(2)}, tol=0.5).fit(*noisy(n=40)).n_iter_ <= 2 or name == "n_jobs"


@pytest.mark.parametrize("options", ["--seed -1", "--max-passes 1.9", "--max-passes 0", "-C nan", "-C 1e-320"])
def test_the_command_line_says_so_in_one_line(tmp_path, capsys, options):
    path = tmp_path / "d.csv"
    path.write_text("x,label\n" + "1,0\n2,1\n" * 5)
    assert run(["train", str(path), "-o", str(tmp_path / "m"), *options.split()]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert options.split()[1] in told[0] or "too small for a number" in told[0]
