"""BLAS has one thread inside, and as many as before outside."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from dotadd._util.threads import one_blas_thread


def threads_of_blas():
    np.zeros((2, 2)) @ np.zeros((2, 2))  # which has it loaded
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_one_thread_inside_and_as_many_as_before_outside():
    before = threads_of_blas()
    with one_blas_thread():
        assert threads_of_blas() == {1}
        with one_blas_thread():
            assert threads_of_blas() == {1}
        assert threads_of_blas() == {1}
    assert threads_of_blas() == before


def test_an_error_inside_gives_the_threads_back():
    before = threads_of_blas()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert threads_of_blas() == before


def test_another_thread_that_enters_and_leaves_changes_nothing():
    before, seen = threads_of_blas(), []

    def look():
        with one_blas_thread():
            seen.append(threads_of_blas())

    with one_blas_thread():
        other = threading.Thread(target=look)
        other.start()
        other.join()
        assert threads_of_blas() == {1}
    assert seen == [{1}]
    assert threads_of_blas() == before
    look()
    assert threads_of_blas() == before


LATE = """
import numpy as np
from threadpoolctl import threadpool_info

from dotadd._util.lapack import cholesky
from dotadd._util.threads import one_blas_thread


def threads_of_blas():
    return sorted(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")


(before,) = set(threads_of_blas())
with one_blas_thread():
    cholesky(np.eye(3))
    assert len(threads_of_blas()) == 2, "LAPACK has a BLAS of its own"
    assert set(threads_of_blas()) == {1}
assert set(threads_of_blas()) == {before}
with one_blas_thread():
    assert set(threads_of_blas()) == {1}
assert set(threads_of_blas()) == {before}
"""


def test_a_library_that_is_loaded_inside_has_one_thread_too():
    subprocess.run([sys.executable, "-c", LATE], check=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "3"})
