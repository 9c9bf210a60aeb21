"""Ctrl-C at places of one's own choice: between two steps, never inside of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupts:
    """While this context lasts, Ctrl-C is noted, and `check` raises KeyboardInterrupt.

    Outside the main thread, where no signal arrives, or where Ctrl-C is ignored, nothing changes.
    """

    def __init__(self) -> None:
        self._noted = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):
                self._before = before
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        if self._noted:
            self._noted = False
            self._before(signal.SIGINT, None)  # which may say something, and usually raises
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True
