"""How results look: aligned lines of a name and a value. Whatever users bring is printable before it gets here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from dotadd.printable import as_written, printable


def tell(message: str) -> None:
    """A line for people on stderr."""
    sys.stderr.write(f"dotadd: {printable(message)}\n")


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
