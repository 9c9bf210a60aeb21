"""Work shared among threads: kernels release the GIL, so a thread pool is all it takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dotadd.errors import DotaddError

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


def row_pieces(rows: int, threads: int) -> list[tuple[int, int]]:
    """range(rows) in pieces (first, stop) for threads; one empty piece if there are no rows."""
    size = min(PIECE, max(FEWEST, -(-rows // threads)))
    return [(first, min(first + size, rows)) for first in range(0, max(rows, 1), size)]


def for_each(items: Sequence[Item], work: Callable[[Item], None], threads: int) -> None:
    """work(item) for each item. When one of them raises, or Ctrl-C, those not yet begun are dropped."""
    if threads <= 1 or len(items) <= 1:
        for item in items:
            work(item)
        return
    pool = ThreadPoolExecutor(min(threads, len(items)))
    try:
        for done in [pool.submit(work, item) for item in items]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)
