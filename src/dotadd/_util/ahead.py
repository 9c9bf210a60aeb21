"""Reading ahead: the next item of an iterator is brought by a thread of its own while the caller has this one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import Any, Generic, Self, TypeVar

Item = TypeVar("Item")

_END = object()
HANDOVER = 2e-4  # seconds after which Python lets another thread go on: the reader needs it for moments, but often


class _Handover:
    """The interpreter's switch interval: short while anybody reads ahead, and afterwards what it was before."""

    def __init__(self) -> None:
        self._lock, self._readers, self._before = threading.Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._readers == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(HANDOVER, self._before))
            self._readers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                sys.setswitchinterval(self._before)


_HANDOVER = _Handover()


class ReadAhead(Generic[Item]):
    """The items of an iterator, one of them ahead; with `ahead` false each is brought when it is asked for.

    It is a context: whatever ends it, nothing is being read afterwards, and the iterator is closed.
    """

    def __init__(self, items: Iterator[Item], *, ahead: bool = True) -> None:
        self._items = items
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="dotadd-reader") if ahead else None
        self._coming: Future[Any] | None = None
        self._ask()

    def __enter__(self) -> Self:
        if self._pool is not None:
            _HANDOVER.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            _HANDOVER.__exit__()
            self._pool.shutdown(cancel_futures=True)
        if hasattr(self._items, "close"):
            self._items.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        item = next(self._items, _END) if self._coming is None else self._coming.result()
        if item is _END:
            raise StopIteration
        self._ask()
        return item  # type: ignore[return-value]  # not the end, which is no Item

    def wait(self, seconds: float = 0.0) -> bool:
        """Whether the next item is there, after at most so many seconds."""
        if self._coming is None:
            return True
        try:
            self._coming.exception(seconds)
        except NotYet:
            return False
        return True

    def _ask(self) -> None:
        if self._pool is not None:
            self._coming = self._pool.submit(next, self._items, _END)  # type: ignore[call-overload]  # next with a default
