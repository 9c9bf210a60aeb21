"""Settings of the test run."""

import builtins
import gc
import os
import signal
import threading

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
