"""How results look: aligned lines of a name and a value. Whatever users bring is printable before it gets here."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

from dotadd._util.forgiving import Forgiving
from dotadd.printable import as_written, printable


def tell(message: str) -> None:
    """A line for people on stderr."""
    sys.stderr.write(f"dotadd: {printable(message)}\n")


@contextmanager
def lenient_screen() -> Iterator[None]:
    """While this lasts, what is shown on stdout is beside the point, and it is no error if it cannot be."""
    stdout = sys.stdout
    sys.stdout = cast(TextIO, Forgiving(stdout, lambda why: tell(f"the summary cannot be shown: {why}")))
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout = stdout


def facts(lines: Mapping[str, str]) -> None:
    """A line for each name and value on stdout; names are dim on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:<{width}}  ", "dim"), printable(value)), soft_wrap=True)


def label_text(label: Any) -> str:
    """A label as it stood in the file, for people."""
    return printable(as_written(label))


def number(value: float | None, digits: int = 6) -> str:
    """A measured number, short."""
    return "-" if value is None or value != value else f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """Seconds below two minutes, then minutes and hours."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"
