"""Numbers and times as people read them."""

from __future__ import annotations


def number(value: float | None, digits: int = 6) -> str:
    """A measured number, short."""
    return "-" if value is None or value != value else f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """Seconds below two minutes, then minutes and hours."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"
