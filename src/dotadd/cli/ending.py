"""How commands end early without losing anything.

SIGTERM and SIGHUP are raised as Ctrl-C is, so that all that handles one handles all. A model that was hours in the
making is saved elsewhere if there is no room where it was to go.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from dotadd.cli.screen import tell

if TYPE_CHECKING:
    from dotadd.model.kernel import KernelModel
    from dotadd.model.linear import Model


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


ELSEWHERE = 1
"""The exit code where a model has been saved, but not where it should be."""


def save(model: Model | KernelModel, output: str) -> str:
    """Save the model to this file, or to one in another place if that cannot be written; returns which, and says so."""
    from dotadd.errors import DotaddError

    try:
        model.save(output)
        return output
    except OSError as error:
        why = f"{output}: the model cannot be written: {error.strerror or error}"
    tried = []
    for path in _other_places(output):
        try:
            model.save(path)
        except OSError:
            tried.append(str(path.parent))
            continue
        tell(f"error: {why}; it is in {path} now")
        return str(path)
    raise DotaddError(f"{why}; nor can it be in {', '.join(tried)}")


def _other_places(output: str) -> Iterator[Path]:
    """Files of the same name, or nearly so, that do not exist: here, at home, and among temporary ones."""
    name = Path(output).name
    for folder in dict.fromkeys((os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir())):
        names = (name, *(f"{name}.{number}" for number in range(1, 100)))
        free = (path for path in (Path(folder, other) for other in names) if not path.exists())
        if (path := next(free, None)) is not None:
            yield path
