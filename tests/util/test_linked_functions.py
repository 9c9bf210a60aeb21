"""Functions that only kernels call are linked into them: they compute what Python would, which cannot call them."""

import os
import subprocess
import sys

import numpy as np

from dotadd import _jit
from dotadd._jit import linking

PROGRAM = """
import numpy as np
from dotadd._jit import inner, kernel

@inner
def root(x):
    if x < 0.0:
        raise ValueError("no root of this")
    return np.sqrt(x)

@inner
def length(values, lo, hi):
    total = 0.0
    for k in range(lo, hi):
        total += values[k] * values[k]
    return root(total - 1.0)

@inner
def countdown(n):
    return 0 if n == 0 else 1 + countdown(n - 1)

@kernel
def lengths(values, step):
    out = np.zeros(len(values) // step)
    for j in range(len(out)):
        out[j] = length(values, j * step, (j + 1) * step) + countdown(j)
    return out

@kernel
def longest(values, step):
    return np.max(lengths(values, step)) + root(4.0)

values = np.arange(12.0)
print(lengths(values, 3).tolist(), longest(values, 3))
try:
    lengths(np.zeros(3), 3)
except ValueError as error:
    print(error)
"""


def test_what_is_linked_computes_and_raises_as_python_does_compiled_anew_and_from_the_cache(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    runs = [
        subprocess.run(
            [sys.executable, path], env=os.environ | environment, capture_output=True, text=True, check=True
        ).stdout
        for environment in (
            {"NUMBA_DISABLE_JIT": "1"},
            {"DOTADD_CACHE_DIR": str(tmp_path / "cache")},
            {"DOTADD_CACHE_DIR": str(tmp_path / "cache")},
        )
    ]
    expected = np.sqrt((np.arange(12.0).reshape(4, 3) ** 2).sum(axis=1) - 1.0) + np.arange(4)
    assert runs[0] == f"{expected.tolist()} {expected.max() + 2.0}\nno root of this\n"
    assert runs[1:] == runs[:1] * 2


def test_where_python_calls_one_it_runs_as_python():
    @_jit.inner
    def double(x):
        return 2 * x

    @_jit.inner
    def mixed(h):
        return double(np.uint64(h * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32))

    @_jit.kernel
    def twice_mixed(h):
        return double(mixed(h))

    number = np.uint64(0xFFFFFFFF)
    expected = 2 * ((0xFFFFFFFF * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32)
    for _ in range(2):  # before there is anything compiled, and then
        assert mixed(number) == expected
        assert twice_mixed(number) == 2 * expected


def test_another_numba_compiles_them_as_it_does(monkeypatch):
    monkeypatch.setattr(linking, "TRIED", set())
    twice = linking.only_linked(lambda x: 2.0 * x, {})
    assert twice(4.0) == 8.0
