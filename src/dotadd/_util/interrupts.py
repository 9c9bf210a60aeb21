"""Ctrl-C and its like at places of one's own choice: between two steps, never inside of one.

Signals are put off here, and not interpreted. Whoever handles one in Python, as Python itself does with Ctrl-C and the
command line also with SIGTERM and SIGHUP, is called as usual, only later: when the work that goes on asks. If the
handler raises, the work ends with what it has, and what was raised is raised again when that is safe. A second signal
before the first was obeyed goes to its handler at once, wherever that is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_here = threading.local()  # the outermost scope of this thread


class Interrupts:
    """The scope in which signals can be put off. One within another of the same thread is that other one:

        with Interrupts() as interrupts: ...

    With `asked`, it is the scope of a thread that helps another one, to whose scope signals are left.

    They arrive at once until `put_off` is called. A signal that nobody has obeyed when the scope ends is handed over
    there. Outside the main thread, where no signal arrives, and of signals that are ignored or that no Python code
    handles, nothing changes.
    """

    def __init__(self, asked: Interrupts | None = None) -> None:
        self._asked = asked
        self.raised: BaseException | None = None
        """What the handler of a signal has raised, or a callback for it: the work is to end."""
        self.hurried = False
        """Whether that was SIGTERM or SIGHUP: whoever sends them does not wait for long, nor press a second time."""
        self._before: dict[int, Any] = {}
        self._waiting: int | None = None
        self._putting_off = False

    def outermost(self) -> Interrupts:
        """The scope that counts here."""
        outer: Interrupts | None = getattr(_here, "scope", None)
        return self if outer is None else outer

    def __enter__(self) -> Interrupts:
        outer = self.outermost()
        if outer is not self:
            return outer
        _here.scope = self
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._arrive)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if getattr(_here, "scope", None) is not self:
            return
        _here.scope = None
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is None or issubclass(kind, Exception):
            self._deliver()

    def put_off(self) -> None:
        """From now on signals wait until `obey`."""
        self._putting_off = True

    def obey(self) -> bool:
        """Hand over a signal that is waiting; returns whether the work is to end, now or since an earlier one."""
        if self._asked is not None:
            self.hurried = self._asked.hurried
            return self._asked.pending
        with suppress(BaseException):  # it is in `raised`
            self._deliver()
        return self.raised is not None

    @property
    def pending(self) -> bool:
        """Whether a signal is waiting, or has ended the work; nothing is handed over, so any thread may ask."""
        return self._waiting is not None or self.raised is not None or (self._asked is not None and self._asked.pending)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Here signals are not put off."""
        putting_off, self._putting_off = self._putting_off, False
        try:
            self._deliver()
            yield
        finally:
            self._putting_off = putting_off

    @contextmanager
    def later(self) -> Iterator[None]:
        """Here signals are put off, and at the end handed over."""
        putting_off, self._putting_off = self._putting_off, True
        try:
            yield
        finally:
            self._putting_off = putting_off
            if not putting_off:
                self._deliver()

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        if self._putting_off and self._waiting is None:
            self._waiting = number
        else:
            self._waiting = None
            self._hand_over(number, frame)

    def _deliver(self) -> None:
        if self._waiting is not None:  # one that arrives from here on finds it still waiting, or nothing: none is lost
            number, self._waiting = self._waiting, None
            self._hand_over(number, None)

    def _hand_over(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before[number](number, frame)
        except BaseException as error:
            self.raised, self.hurried = error, number != signal.SIGINT
            raise


@contextmanager
def following(asked: Interrupts) -> Iterator[None]:
    """In a thread that helps, work ends by the signals that arrive at the thread that asked for help."""
    before: Interrupts | None = getattr(_here, "scope", None)
    if before is asked:
        yield
        return
    _here.scope = Interrupts(asked)
    try:
        yield
    finally:
        _here.scope = before
