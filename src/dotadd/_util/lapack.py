"""Cholesky decompositions by SciPy's LAPACK, in place, while other threads go on.

scipy.linalg.lapack keeps other threads waiting (it holds the GIL); numpy.linalg.cholesky does not, but copies and takes
longer (1,400 rows: 48 ms, and 27 here). So the routines are called by their addresses, which SciPy tells for Cython.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from dotadd._util.threads import blas_came

_UPPER = b"U"  # of LAPACK's columns: the lower triangle of NumPy's rows


def cholesky(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """What solves matrix x = b for a symmetric matrix of float64, whose place its decomposition takes; None if it is
    not positive definite."""
    assert matrix.flags.c_contiguous
    assert matrix.dtype == np.float64
    n, info = _number(len(matrix)), _number(0)
    _routine("dpotrf", 5)(_UPPER, n, matrix.ctypes.data, n, info)
    if info.contents.value:
        return None

    def solve(b: np.ndarray) -> np.ndarray:
        x = b.astype(np.float64)
        _routine("dpotrs", 8)(_UPPER, n, _number(1), matrix.ctypes.data, n, x.ctypes.data, n, _number(0))
        return x

    return solve


def _number(n: int) -> ctypes._Pointer[ctypes.c_int]:
    return ctypes.pointer(ctypes.c_int(n))


@cache
def _routine(name: str, arguments: int) -> Callable[..., None]:
    """LAPACK's routine of this name, all of whose arguments are addresses."""
    from scipy.linalg import cython_lapack

    blas_came()
    capsule, api = cython_lapack.__pyx_capi__[name], ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)
