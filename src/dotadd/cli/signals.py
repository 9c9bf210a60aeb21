"""Signals that end a command: SIGTERM and SIGHUP are raised as Ctrl-C is, so that all that handles one handles all."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class SignalledError(KeyboardInterrupt):
    """A signal has arrived that asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """What a shell would tell of a process that the signal has ended: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + getattr(interrupt, "number", signal.SIGINT)


@contextmanager
def raised() -> Iterator[None]:
    """Here SIGTERM and SIGHUP raise SignalledError, unless they are ignored, as by nohup, or handled already."""
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def interrupt(number: int, frame: FrameType | None) -> None:
        if signal.Signals(number).name == "SIGHUP":  # the terminal is gone: what is written there would be an error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for descriptor in terminals:
                os.dup2(nowhere, descriptor)
            os.close(nowhere)
        raise SignalledError(number)

    numbers = []
    if threading.current_thread() is threading.main_thread():
        known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        numbers = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
