"""How results look: aligned lines of a name and a value, and labels as people write them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def facts(lines: Mapping[str, str]) -> None:
    """A line for each name and value on stdout; names are dim on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        console.print(Text.assemble((f"{name:<{width}}  ", "dim"), value), soft_wrap=True)


def label_text(label: Any) -> str:
    """A label as it stood in the file: 1 and not 1.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def number(value: float | None, digits: int = 6) -> str:
    """A measured number, short."""
    return "-" if value is None or value != value else f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """Seconds below two minutes, then minutes and hours."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"
