"""Where lines for people go when nobody can read them: training does not end because its terminal or pipe is gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class Steady:
    """A text stream that loses what cannot be written, from the first such line on."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        try:
            return self._file.write(text)
        except (OSError, ValueError):
            self._lose()
            return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except (OSError, ValueError):
            self._lose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def _lose(self) -> None:
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, it takes the stream's place for good
        with suppress(OSError, ValueError):  # what is still to be flushed at the end goes there, too
            os.dup2(nowhere.fileno(), self._file.fileno())
        self._file = nowhere


@contextmanager
def steady() -> Iterator[None]:
    """Here lines on stderr never raise. A stream that was closed from the start leads nowhere, and its number is taken:
    the next file that is opened would get it, and with it whatever is printed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, for the rest of the process
    before = sys.stderr
    sys.stderr = cast(TextIO, Steady(before))
    try:
        yield
    finally:
        sys.stderr = before
