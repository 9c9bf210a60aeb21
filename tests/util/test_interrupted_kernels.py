"""Ctrl-C while a kernel is compiled or loaded: LLVM calls Python meanwhile, where what is raised is lost."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import signal
import sys

import numpy as np
from numba.core.codegen import CPUCodeLibrary

hook, when, sent = CPUCodeLibrary._object_getbuffer_hook.__func__, "first", []

@classmethod
def interrupted(cls, module):
    if not sent and sys.argv[1:] == [when]:
        sent.append(signal.raise_signal(signal.SIGINT))
    return hook(cls, module)

CPUCodeLibrary._object_getbuffer_hook = interrupted

try:
    from dotadd.core import block
except KeyboardInterrupt:
    print("interrupted")
    from dotadd.core import block

when = "later"

def length():
    values, out, one = np.ones(3, np.float32), np.empty(1), np.array([3])
    block.squared_norms(np.array([0]), one, None, values, np.zeros(1, np.uint32), True, out)
    return out[0]

try:
    print(length())
except KeyboardInterrupt:
    print("interrupted", length())
"""


def ran(folder, *arguments):
    code = [sys.executable, "-c", PROGRAM, *arguments]
    environment = {**os.environ, "DOTADD_CACHE_DIR": str(folder), "DOTADD_COMPILERS": "1"}
    done = subprocess.run(code, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("kept", [False, True])
def test_ctrl_c_is_not_lost_and_the_kernel_is_there(kept, when, tmp_path):
    if kept:
        assert ran(tmp_path)[0] == ["3.0"]
    told, errors = ran(tmp_path, when)
    assert told == ["interrupted", "3.0"]
    assert "Exception ignored" not in errors
