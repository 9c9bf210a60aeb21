"""Settings of the test run."""

import builtins
import gc
import os
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import settings

# Programs that are started in the background ignore Ctrl-C, which some tests send to themselves.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("DOTADD_COMPILERS", "1")  # each core has a test to run; those of helpers ask for them

# The first example may compile, so none has a deadline; CI draws the same examples each time.
settings.register_profile("dotadd", deadline=None, derandomize=bool(os.environ.get("CI")))
# Where every access is checked, the question is whether any of them is out of bounds; the rest is asked without.
settings.register_profile("checked", parent=settings.get_profile("dotadd"), max_examples=15)
settings.load_profile("checked" if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else "dotadd")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Each worker begins to import tests at another folder, and finds the others' assertions rewritten: in a fresh
    clone that takes 9 s of the processor, which each would spend at the same time."""
    if (worker := getattr(session.config, "workerinput", None)) is not None:
        args = session.config.args
        if len(args) == 1:
            args = sorted({str(path.parent) for path in Path(args[0]).glob("*/test_*.py")}) or args
        first = int(worker["workerid"].removeprefix("gw")) * len(args) // worker["workercount"]
        session.config.args = args[first:] + args[:first]


def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path)  # in the order that all workers have


def pytest_collection_finish():
    """The modules and thousands of tests that are there now stay: no search for garbage has to look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def forbid_matplotlib(monkeypatch):
    """Called, it makes matplotlib look as if it were not installed."""
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    return lambda: monkeypatch.setattr(builtins, "__import__", without)
