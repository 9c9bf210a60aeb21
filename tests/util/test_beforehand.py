"""Other processes compile what a first fit needs next: answers stay the same, and nobody waits for one that is gone."""

import importlib.util
import inspect
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dotadd import _jit
from dotadd._jit import beforehand

pytestmark = pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")

WALK = next(iter(beforehand.walks().values()))
FIT = """
import numpy as np, dotadd
from dotadd import _jit
X = np.random.default_rng(0).normal(size=(200, 5))
svm = dotadd.LinearSVM(random_state=0).fit(X, X[:, 0] > 0)
print(svm.coef_.tobytes().hex(), svm.intercept_.tobytes().hex())
ours = _jit.BEFOREHAND
here = sum(len(each.stats.cache_misses) for each in _jit.KERNELS)
print(sum(there.is_set() for there in ours._elsewhere.values()), here)
"""
KILLED = """
import os, sys
from pathlib import Path
from dotadd._jit.beforehand import Beforehand, walks
import subprocess
popen = subprocess.Popen
def told(*given, **options):
    other = popen(*given, **options)
    print(other.pid, flush=True)
    return other
subprocess.Popen = told
ours = Beforehand(Path(sys.argv[1]), print)
ours.has(next(iter(walks().values()))[0])
sys.stdin.readline()
os.kill(os.getpid(), 9)
"""


def run(code, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_each_line_names_a_kernel_and_its_arguments():
    for line in {line for walk in beforehand.walks().values() for line in walk}:
        name, *words = line.split(" ")
        module, _, kernel = name.rpartition(".")
        function = getattr(importlib.import_module(f"dotadd.{module}"), kernel).py_func
        assert len(words) == len(inspect.signature(function).parameters), line
        assert beforehand.written(function, beforehand._arguments(words)) == line


@pytest.mark.unchecked
@pytest.mark.skipif(_jit.STORE is None, reason="what a fit needs is told by what it finds in the cache")
@pytest.mark.parametrize("name", ["array", "letters of texts", "windows"])
def test_first_fits_need_what_is_written_down(name):
    """If it fails, run `python release/walks.py`. Threads may ask in another order each time."""
    spec = importlib.util.spec_from_file_location("walks", Path(__file__).parents[2] / "release" / "walks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert sorted(module.asked(module.DATA + module.FITS[name])) == sorted(beforehand.walks()[name])


def test_with_another_process_the_model_is_the_same_and_both_have_compiled(tmp_path):
    alone, together = (
        run(FIT, DOTADD_COMPILERS=str(count), DOTADD_CACHE_DIR=str(tmp_path / str(count))) for count in (1, 2)
    )
    (model, theirs), (same_model, done_elsewhere) = (out.stdout.splitlines() for out in (alone, together))
    assert model == same_model
    assert theirs == f"0 {len(WALK)}"
    elsewhere, here = map(int, done_elsewhere.split())
    assert elsewhere > 0
    assert here < len(WALK)
    assert together.stderr.count("\n") == 1  # that it compiles
    kept = [{path.name for path in (tmp_path / str(count) / "kernels").iterdir()} for count in (1, 2)]
    assert kept[0] == kept[1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
def test_another_process_ends_with_the_one_that_has_started_it(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"DOTADD_COMPILERS": "2"},
    ) as parent:  # fmt: skip
        other = int(parent.stdout.readline())
        os.kill(other, 0)  # it is there
        parent.communicate("now\n")
    assert parent.returncode == -9
    for _ in range(600):
        try:
            os.kill(other, 0)
            if Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return  # ended, and nobody has asked how
        except OSError:
            return
        time.sleep(0.1)
    pytest.fail("it is still there")


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/python", ""])
def test_where_no_other_process_can_run_this_one_compiles(program, tmp_path, monkeypatch):
    monkeypatch.setenv("DOTADD_COMPILERS", "3")
    monkeypatch.setattr(sys, "executable", program)
    ours = beforehand.Beforehand(tmp_path, lambda name: None)
    assert not ours.has(WALK[0])
    for feeder in ours._feeders:
        feeder.join()
    for line in WALK[1:]:
        ours.has(line)  # it returns
    assert not (tmp_path / "kernels").exists()


def test_a_kernel_that_is_on_no_walk_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("DOTADD_COMPILERS", "2")
    ours = beforehand.Beforehand(tmp_path, lambda name: None)
    assert not ours.has("somewhere.else int64")
    assert not ours._feeders
    assert ours.progress == (0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows forks no processes")
def test_a_forked_process_waits_for_nobody(tmp_path):
    ours = beforehand.Beforehand(tmp_path, lambda name: None)
    ours._elsewhere[WALK[1]] = beforehand.threading.Event()
    child = os.fork()
    if child == 0:
        os._exit(int(ours.has(WALK[1])))
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "getloadavg"), reason="Windows does not tell how busy it is")
def test_cores_that_are_busy_are_left_alone(monkeypatch):
    monkeypatch.delenv("DOTADD_COMPILERS", raising=False)
    monkeypatch.setattr(beforehand, "thread_count", lambda jobs: 3)
    for load, count in ((0.4, 3), (1.6, 2), (2.0, 1), (50.0, 1)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert beforehand.compilers() == count


def test_workers_of_pools_compile_alone(monkeypatch):
    monkeypatch.delenv("DOTADD_COMPILERS", raising=False)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(beforehand.compilers) == 1
