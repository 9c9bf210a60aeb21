"""A bar for work whose end is known: share done and time left on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from dotadd.cli.screen import duration, tell
from dotadd.printable import printable

FIRST, AGAIN = 1.0, 10.0  # seconds before the bar appears, and between two plain lines


class Bar:
    """Call it with the share that is done, from 0 to 1."""

    def __init__(self, title: str) -> None:
        self.title = printable(title)
        self.bar: Any = None

    def __enter__(self) -> Bar:
        self.started = self.last_line = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty():
            if now - self.last_line >= AGAIN:
                self.last_line = now
                tell(self.line(share, now))
            return
        if self.bar is None:
            if now - self.started < FIRST:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            text = TextColumn("{task.description}", markup=False)
            self.bar = Progress(BarColumn(24), text, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(self.title, total=1.0)
            self.bar.start()
        self.bar.update(self.task, description=self.line(share, now), completed=share)

    def line(self, share: float, now: float) -> str:
        spent = now - self.started
        left = f", about {duration(max(1.0, spent / share - spent))} left" if 0 < share < 1 else ""
        return f"{self.title} {share:.0%}  {duration(spent)}{left}"
