"""BLAS on one thread, while our own threads share out the work.

A BLAS that has threads of its own may let them spin for a while after each product, on the cores that our threads want;
and how it cuts a product into pieces, which rounding follows, depends on how many it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_limiting = Lock()  # held by who has set the limit: it counts for all threads, and only he may lift it


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """What is inside finds BLAS with one thread, in whatever thread of ours; who enters while that is so changes
    nothing."""
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


@cache
def _controller() -> ThreadpoolController:
    """It looks through all libraries of this process, which takes two milliseconds. scikit-learn comes with it."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
