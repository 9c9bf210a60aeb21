"""Text streams that are not worth dying for, such as a log, or the screen."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any


class Forgiving:
    """A stream like another one, of which a full disk or a closed pipe is told once; what is written then is lost.

    With None for a stream, everything is.
    """

    def __init__(self, stream: IO[str] | None, on_failure: Callable[[str], None] = lambda why: None) -> None:
        self._stream = open(os.devnull, "w", encoding="utf-8") if stream is None else stream  # noqa: SIM115
        self._on_failure, self._failed = on_failure, False

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def close(self) -> None:
        self._try(self._stream.close)

    def __enter__(self) -> Forgiving:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except (OSError, ValueError) as error:  # ValueError: it has been closed
            if self._failed:
                return
            self._failed = True
            with suppress(OSError, ValueError):  # what waits to be written would fail again, at the latest at the end
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            self._on_failure(getattr(error, "strerror", None) or str(error))


class Closed(io.TextIOBase):
    """A stream that was closed before the program began: writing to it raises OSError, and not AttributeError."""

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "is closed", self._name)


def occupy_standard_streams() -> None:
    """Let no file that is opened later become standard input, output or error, where these are closed: what a library
    has to say would end up in it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the smallest number that is free
