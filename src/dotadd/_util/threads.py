"""Work shared among threads: kernels release the GIL, so a thread pool is all it takes.

One pool serves the whole process: a new one costs as much as a small kernel call. The thread that asks for the work
takes its share of it, and work that asks for threads itself does without, so no more threads run than were asked for.

BLAS has one thread meanwhile. With threads of its own it may let them spin for a while after each product, on the cores
that ours want; and how it cuts a product into pieces, which rounding follows, depends on how many it has.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from dotadd.errors import DotaddError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")

PIECE = 1 << 16  # rows that a thread takes at a time: an answer to Ctrl-C waits for them
FEWEST = 256  # rows that are worth a thread of their own


def thread_count(n_jobs: int | None) -> int:
    """All cores for None; otherwise so many threads, negative numbers counting down from all cores and one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise DotaddError("n_jobs is 0; give a number of threads, or None for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def over_rows(work: Callable[[int, int], None], rows: int, threads: int) -> None:
    """work(first, stop) for consecutive pieces of range(rows).

    Where each piece writes to places of its own, the result does not depend on the number of threads.
    """
    for_each(row_pieces(rows, threads), lambda piece: work(*piece), threads)


def row_pieces(rows: int, threads: int, share: int = 1) -> list[tuple[int, int]]:
    """range(rows) in pieces (first, stop), `share` or more of them for each thread; one empty piece if there are none.

    All threads get as many, unless the rows are too few or too many.
    """
    most = threads * max(share, -(-rows // (PIECE * threads)))
    size = max(1, FEWEST if rows < FEWEST * most else -(-rows // most))
    return [(first, min(first + size, rows)) for first in range(0, max(rows, 1), size)]


def for_each(items: Sequence[Item], work: Callable[[Item], None], threads: int) -> None:
    """work(item) for each item. When one of them raises, or Ctrl-C, those not yet begun are dropped.

    What runs then comes to its end before the exception arrives here, so nothing is written to afterwards.
    """
    if threads <= 1 or len(items) <= 1 or getattr(_here, "working", False):
        for item in items:
            work(item)
        return
    left = deque(items)

    def share() -> None:
        _here.working = True
        try:
            while left:
                try:
                    item = left.popleft()
                except IndexError:  # another thread was faster
                    return
                work(item)
        except BaseException:
            left.clear()
            raise
        finally:
            _here.working = False

    others: list[Future[None]] = []
    try:
        pool = _shared_pool(threads - 1)
        for _ in range(min(threads, len(items)) - 1):
            others.append(pool.submit(share))
        share()
        for other in others:
            if not other.cancel():
                other.result()
    except BaseException:
        left.clear()
        wait([other for other in others if not other.cancel()])
        raise


def beside(work: Callable[[], Item]) -> Future[Item] | None:
    """Begin work() in another thread; in none if this one is itself at work for `for_each`."""
    return None if getattr(_here, "working", False) else _shared_pool(1).submit(work)


_here = threading.local()  # `working`: whether this thread is at work for `for_each`
_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0  # threads that the pool may have


def _shared_pool(size: int) -> ThreadPoolExecutor:
    """The pool, with room for so many threads; a smaller one is left to those who use it, and ends with them."""
    global _pool, _size
    with _lock:
        if _pool is None or _size < size:
            _pool, _size = ThreadPoolExecutor(size, thread_name_prefix="dotadd"), size
        return _pool


def _begin_anew() -> None:
    """A forked process has none of the threads of its parent, and perhaps a lock that one of them held."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


_limiting = threading.Lock()  # held by who has set the limit: it counts for all threads, and only he may lift it
_limits = ExitStack()  # what gives BLAS its threads back


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """What is inside finds BLAS with one thread, in whatever thread of ours; who enters while that is so changes
    nothing."""
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _limits:
            _limits.enter_context(_controller().limit(limits=1, user_api="blas"))
            yield
    finally:
        _limiting.release()


def blas_came() -> None:
    """Another library with a BLAS of its own has been loaded; where there is to be one thread, it has one, too."""
    _controller.cache_clear()
    if _limiting.locked():
        _limits.enter_context(_controller().limit(limits=1, user_api="blas"))


@cache
def _controller() -> ThreadpoolController:
    """It looks through all libraries of this process, which takes two milliseconds. scikit-learn comes with it."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
